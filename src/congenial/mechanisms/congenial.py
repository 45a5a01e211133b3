"""Congenial: integer noise, or counts, given equality figures.

congenial-dp, section 2, with its errata: the loss is eps_cell * Delta_1(S) per person, not "epsilon
per cell", and equality figures cost nothing in the normaliser because the conforming tables form a
translate of one lattice. Nonnegativity is different: conditioning on it has a price
(`privacy.normaliser`). Draws are exact and independent (sampling/), not the end of a Markov chain.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any

import numpy as np

from congenial.data.arrays import Ints
from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.limits import Limits, conforming_tables, limits
from congenial.figures.support import LOOSE, Support, support
from congenial.mechanisms.error_laws import WIDE, TiedErrors, WideSum, sums_alike
from congenial.mechanisms.families import DISCRETE_GAUSSIAN, DOUBLE_GEOMETRIC
from congenial.mechanisms.mechanism import ErrorLaw, Mechanism, register
from congenial.pairs.pairs import Adjacency
from congenial.privacy.composition import conditions
from congenial.privacy.normaliser import Conditions, Price, largest_eps_cell
from congenial.privacy.tradeoff import Pure, Tradeoff
from congenial.sampling.conditioned import ConditionedCounts, ConditionedNoise
from congenial.sampling.discrete import CellLaw, DoubleGeometric, cell_law
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.sums import Pmf, subset_sum_law


class Conditioned(Mechanism):
    """A law on the tables that agree with every published figure it conditions on."""

    conditions = True

    @cached_property
    def support(self) -> Support:
        """The groups of released cells whose sums are published, or tied by what is."""
        return support(self.description.support, self.description.table)


class IntegerNoise(Conditioned):
    """Integer noise given that every sum of it that is conditioned on is zero.

    All additive integer mechanisms are this class with a family and a set of figures: without
    figures to condition on every cell is free, and the law is that of independent noise.
    """

    def refuse_unfit(self) -> None:
        """Refuse a structure without a sampler."""
        _ = self.conditioned

    @cached_property
    def conditioned(self) -> ConditionedNoise:
        """The law of the noise."""
        return ConditionedNoise(self.cell, self.support)

    @property
    def cell(self) -> CellLaw:
        """The law of the noise in one cell, before conditioning."""
        return cell_law(self.family, self.description.scale)

    @property
    def sampler(self) -> str:
        """The reasons of the chooser, part by part."""
        return "; ".join(self.conditioned.why)

    def laws(self, truth: Any = None) -> list[IntegerLaw]:  # noqa: ARG002
        """The law of the noise."""
        return [self.conditioned]

    def noise(self, randomness: Randomness, draws: int) -> Any:
        """Independent draws of u: array of shape (draws, *shape)."""
        return self.conditioned.draw_many(randomness, draws).reshape(draws, *self.shape)

    def log_density(self, y: Any, table: Table) -> Any:
        """log p(y | x) = log of the unconditioned law of u = y - phi(x), minus log Z."""
        u = np.asarray(y, dtype=np.int64) - self.query(table)
        return self.conditioned.log_density(u.reshape(*u.shape[: u.ndim - len(self.shape)], -1))

    @property
    def normalised(self) -> bool:
        """Whether `log_density` includes the normaliser, which is unknown for some large tables."""
        return self.conditioned.log_Z is not None

    @cached_property
    def _tied_errors(self) -> TiedErrors:
        return TiedErrors(self.conditioned)

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """Laws of the noise in sums of cells: m of the k cells of every group a sum meets."""
        laws, of_sum = self.different_error_laws(index, sums)
        return [laws[i] for i in of_sum.tolist()]

    def different_error_laws(self, index: Any, sums: int) -> tuple[list[ErrorLaw], Any]:
        """The laws that occur, once each, and the number of each sum's.

        Groups are independent; sums that meet groups in the same way share one law. Where groups
        are tied the law is exact if one sum is free in each tie, otherwise simulated.
        """
        flat, labels = np.asarray(index).reshape(-1), self.support.labels.reshape(-1)
        if self.support.ties:
            tied_laws, of_tied = self._tied_errors.laws(flat, sums)
            return list(tied_laws), of_tied
        if sums == flat.size and np.array_equal(flat, np.arange(sums)):
            return self._laws_of_cells()
        loose = np.bincount(flat[(flat >= 0) & (labels == LOOSE)], minlength=sums)
        inside = (flat >= 0) & (labels >= 0)
        groups = max(self.support.groups, 1)
        pair, m = np.unique(flat[inside] * groups + labels[inside], return_counts=True)
        met = np.stack([m, self.support.sizes[pair % groups]], axis=1)
        start = np.searchsorted(pair // groups, np.arange(sums + 1))
        laws, of_sum = list[ErrorLaw](), np.zeros(sums, dtype=np.int64)
        for alike in sums_alike(start, met, loose):
            first = int(alike[0])
            parts = sorted(map(tuple, met[start[first] : start[first + 1]].tolist()))
            of_sum[alike] = len(laws)
            laws.append(self._law(parts, int(loose[first])))
        return laws, of_sum

    def _law(self, parts: list[tuple[int, int]], loose: int) -> ErrorLaw:
        """m of the k cells of each group (m, k), and cells of no group; wide only in sums of
        numbers.
        """
        cell = self.conditioned.cell
        if self.description.magnitude is not None and cell.variance > WIDE:
            return WideSum(loose, cell)
        return subset_sum_law(parts, cell, loose)

    def _laws_of_cells(self) -> tuple[list[ErrorLaw], Any]:
        """The same for single cells without ties: the size of a cell's group says it all."""
        labels = self.support.labels.reshape(-1)
        by_label = np.concatenate([self.support.sizes, [0, -1]])  # LOOSE, then FROZEN
        there = np.bincount(labels % len(by_label), minlength=len(by_label)) > 0
        kinds = np.unique(by_label[there])
        of_label = np.searchsorted(kinds, by_label)
        laws = [
            self._law([(1, size)] if size > 0 else [], int(size == 0)) for size in kinds.tolist()
        ]
        return laws, of_label[labels]


@register
class Congenial(IntegerNoise):
    """A protected table that agrees with every published figure.

    Formula: p(y | x) ~ exp(-eps_cell * ||y - phi(x)||_1) on { y integer : group totals of y are
    those published }. Assumes the published figures hold for the data (checked at release).

    Formal guarantee: for any two conforming databases that differ in at most a* records, the log-
    likelihood ratio of any release is at most eps_cell * Delta_1(S), and some pair attains it. The
    normaliser is the same for all of them: equality figures are translation invariant.

    Edge cases: a group of one cell is published as it is, because the figures fix it; an empty
    group stays zero; cells that no figure touches get independent noise; values may be negative.

    Source: congenial-dp, section 2 and Theorem 2.1; semi-dp, section 3; docs/errata.

    >>> from congenial import Guarantee, Schema, SeededRandomness, SemiAdjacent, Table
    >>> from congenial import publish, release_table, total
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65]}})
    >>> table = Table(schema, ["sex", "age"], [[5, 9], [4, 7]])
    >>> target = Guarantee.pure(1, under=SemiAdjacent(publish(table, total(by="sex"))))
    >>> made = Congenial.calibrate(target, ("sex", "age"))
    >>> release_table(made, table, SeededRandomness(1)).margin("sex").tolist()  # as published
    [14, 11]
    """

    name = "congenial"
    noise_family = DOUBLE_GEOMETRIC
    citation = "Gong and Meng 2020 (congenial-dp), section 2, corrected; semi-dp, section 3"


@register
class CongenialCounts(Conditioned):
    """A protected table of nonnegative counts that agrees with every published figure and bound.

    Formula: p(m | x) ~ exp(-eps_cell * ||m - phi(x)||_1) on { m integer, m >= 0 : published sums of
    m are as published, published bounds hold }. Assumes that both hold for the data (checked at
    release).

    Formal guarantee: for any two conforming databases that differ in at most a* records, the log-
    likelihood ratio of any release is at most eps_cell * Delta_1(S) (the adjacency price) plus a
    bound on log Z(s')/Z(s) (the normaliser price, `price`): conditioning on signs and bounds
    depends on the data. Where all conforming tables can be listed the loss is exact. Making the
    counts nonnegative afterwards (`project`) is free, and better unless an analyst needs the exact
    law of nonnegative counts.

    Edge cases: as for `Congenial`. The law depends on the data: there is no law of the error that
    holds for every table, so no interval; `congenial infer` uses the density instead. The time a
    draw takes depends on the data too (docs/known-limits).

    Source: congenial-dp, section 2; the price is ours
    (docs/explanation/what-an-exact-figure-costs).
    """

    name = "congenial_counts"
    noise_family = DOUBLE_GEOMETRIC
    nonnegative = True
    additive = False
    citation = "Gong and Meng 2020 (congenial-dp), section 2, with the price of nonnegativity"

    @classmethod
    def parameter_for(
        cls, target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]
    ) -> Fraction:
        """The largest eps per cell whose two prices together stay within epsilon per person."""
        assert isinstance(target, Pure)
        distance, replaced = int(adjacency.l1(table).value), adjacency.metric == "replace-one"
        conditions = Conditions.of(adjacency.figures, table, distance, replaced)
        on_grid = Fraction(floor(target.eps * 10**9), 10**9)  # as the ledger rounds it
        return largest_eps_cell(on_grid, conditions)

    def refuse_unfit(self) -> None:
        """Refuse both margins of a table with four or more rows and columns, by structure alone."""
        for tie in self.support.ties:
            alone = bool(np.all(self.support.sizes[tie.groups] == 1))
            if alone and tie.shape is not None and len(tie.shape) == 2 and min(tie.shape) > 3:
                rows, columns = tie.shape
                raise StructureError(
                    f"both margins of a {rows} x {columns} table are published: counts given that "
                    "none is negative are drawn for at most three rows or columns.",
                    remedy="Use nonnegative = 'project': counts are fitted to the draw, for free.",
                )

    sampler_error = Fraction(0)

    @property
    def sampler(self) -> str:
        """The reasons of the chooser, part by part; by published figures alone."""
        cell, nobody = DoubleGeometric(self.description.rate), np.zeros(self.shape, dtype=np.int64)
        return "; ".join(ConditionedCounts(cell, self.support, nobody, self.limits).why)

    def laws(self, truth: Any = None) -> list[IntegerLaw]:
        """The law of the counts."""
        return [self.given(truth)]

    @cached_property
    def price(self) -> Price:
        """The normaliser price, in epsilon per person."""
        return conditions(self.description, self.adjacency).price(self.description.rate)

    @cached_property
    def limits(self) -> Limits:
        """The published bounds that the table can show."""
        return limits(self.description.support, self.description.table)

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """No error in sums that the published figures fix; refused for any other."""
        if not np.all(self.support.fixes(index, sums)):
            return super().error_laws(index, sums)
        return [Pmf(0, np.ones(1))] * sums

    def check(self, table: Table) -> None:
        """As for every mechanism; tables too wide to draw from are refused before anything is
        spent.
        """
        super().check(table)
        self.given(self.query(table)).prepare()

    def given(self, truth: Any) -> ConditionedCounts:
        """The law of the counts when phi(x) = truth; the last one is kept."""
        key, cell = np.asarray(truth).tobytes(), DoubleGeometric(self.description.rate)
        if key not in self._last:
            self._last.clear()
            law = ConditionedCounts(cell, self.support, truth, self.limits, self._listed)
            self._last[key] = law
        return self._last[key]

    @cached_property
    def _last(self) -> dict[bytes, ConditionedCounts]:
        return {}

    @cached_property
    def _listed(self) -> Ints | None:
        """All conforming tables, where they are few."""
        return conforming_tables(self.description.support, self.description.table)

    def draw(self, truth: Any, randomness: Randomness, draws: int) -> Any:
        """Independent draws of m given phi(x): array of shape (draws, *shape)."""
        return self.given(truth).draw_many(randomness, draws).reshape(draws, *self.shape)

    def log_density(self, y: Any, table: Table) -> Any:
        """log p(y | x), the normaliser of this very table included."""
        m, truth = np.asarray(y, dtype=np.int64), self.query(table)
        flat = m.reshape(*m.shape[: m.ndim - len(self.shape)], -1)
        if not self.limits.hold(truth.reshape(-1)):  # no such table can have been released from
            return np.full(flat.shape[:-1], -np.inf)[()]
        return self.given(truth).log_density(flat)


@register
class CongenialGaussian(IntegerNoise):
    """The same with discrete Gaussian noise: a table that agrees with every published figure, zCDP.

    Formula: p(y | x) ~ exp(-||y - phi(x)||_2^2 / (2 sigma^2)) on the tables with the published
    group totals.

    Formal guarantee: rho = Delta_2(S)^2 / (2 sigma^2) for any two conforming databases that differ
    in at most a* records: on a lattice, shifting a discrete Gaussian by a lattice vector u costs at
    most alpha ||u||^2 / (2 sigma^2) in Renyi divergence of order alpha. It is not G_mu.

    Edge cases: as for `Congenial`. Source: Canonne, Kamath, Steinke 2020, Proposition 5, for any
    lattice; semi-dp, section 4, with integers in place of reals.
    """

    name = "congenial_gaussian"
    noise_family = DISCRETE_GAUSSIAN
    citation = "Canonne, Kamath, Steinke 2020; semi-dp, section 4"
