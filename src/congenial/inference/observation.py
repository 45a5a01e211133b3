"""What a release says about a latent table: its values, their law, and what is public besides.

Everything here comes from the release alone. The law is one of two kinds: independent noise in
every cell (`noise`; conditioned on published sums or not, which for the latent table is the same
because the normaliser is constant; where it is not, `normaliser` works it out), perhaps with noise
in sums besides (`levels`); or any density of the mechanism (`density`).

From a release to an observation: which law it has, and what is public besides.

How a release is read follows `outlook`: noise of the cells, perhaps in sums too; counts given their
signs, with a normaliser or a list of all tables; or the mechanism's own density.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.arguments import expect, texts
from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Axis
from congenial.data.schema import Schema
from congenial.data.table import Table, cell_index
from congenial.errors import CongenialError, InferenceError
from congenial.figures.figures import Figures
from congenial.figures.limits import conforming_tables
from congenial.figures.support import FROZEN, LOOSE, support
from congenial.inference.cell_noise import LevelNoise, Noise
from congenial.inference.feasibility import outlook, outlook_of_tables, outlook_of_values
from congenial.inference.latent_tables import LatentTables
from congenial.inference.samplers.log_normaliser import Normaliser, listed_law, log_signed
from congenial.mechanisms.congenial import IntegerNoise
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.mechanisms.tables_release import TablesRelease
from congenial.mechanisms.wasserstein.base_measure import congenial, published_sums
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.pairs.pairs import Adjacency
from congenial.privacy.description import Family
from congenial.privacy.tradeoff import Pure

Density = Callable[[Any], Floats]  # tables of shape (n, cells) -> log p(y | x), (n,)


@dataclass(frozen=True)
class Observation:
    """A released table (or vector) y, flat, and its law given the latent x.

    whole: the latent values are counts (0, 1, ...); otherwise real numbers. largest_change: bound
    on |log p(y | x) - log p(y | x')| when one record is replaced, inf where none is known. listed:
    all possible x with their log p(y | x), where they are few and no other way is simpler. finer:
    where the law is known for finer cells only, the observation of these, with the cell of x that
    each belongs to; all ways to split a count of x over them are equally likely.
    """

    y: Floats
    conforming: LatentTables
    noise: Noise | None = None
    normaliser: Normaliser | None = field(default=None, repr=False)
    levels: LevelNoise | None = field(default=None, repr=False)
    density: Density | None = field(default=None, repr=False)
    listed: tuple[Ints, Floats] | None = field(default=None, repr=False)
    whole: bool = True
    axes: tuple[Axis, ...] = ()
    published: Figures | None = field(default=None, repr=False)
    largest_change: float = math.inf
    bounded: bool = False  # whether x must keep public bounds besides
    notes: tuple[str, ...] = ()
    finer: tuple[Observation, Ints] | None = field(default=None, repr=False)

    @classmethod
    def of_values(
        cls, values: npt.ArrayLike, family: Family, scale: Fraction | float, whole: bool = True
    ) -> Observation:
        """Released numbers with independent noise of a family; `scale` as in a description.

        For values that do not come from a bundle: eps per cell for the l1 families, sigma squared
        for the Gaussian ones.
        """
        y = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
        noise = Noise.of_family(family, Fraction(scale), np.ones(len(y), dtype=np.int64))
        return cls(
            y,
            LatentTables.anything(len(y)),
            noise,
            whole=whole,
            largest_change=2 * noise.largest_step,
        )

    @classmethod
    def of_density(
        cls,
        values: npt.ArrayLike,
        density: Density,
        *,
        largest_change: float = math.inf,
    ) -> Observation:
        """Released values with any density: `density(x)` gives log p(y | x) for each row of x."""
        y = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
        return cls(
            y,
            LatentTables.anything(len(y)),
            density=density,
            largest_change=largest_change,
        )

    @property
    def cells(self) -> int:
        """Number of latent values."""
        return len(self.y)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the latent table."""
        return tuple(axis.size for axis in self.axes) or (self.cells,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its axes."""
        return tuple(axis.name for axis in self.axes) or ("cell",)

    @property
    def dims(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Axes with their levels."""
        if self.axes:
            return tuple((axis.name, axis.levels) for axis in self.axes)
        return (("cell", tuple(map(str, range(self.cells)))),)

    @cached_property
    def impossible(self) -> Any:
        """Cells that are empty by definition (structural zeros)."""
        zeros = () if self.published is None else self.published.zeros
        if self.published is None or not zeros:
            return np.zeros(self.cells, dtype=bool)
        rules = Figures(self.published.schema, zeros, (None,) * len(zeros))
        return support(rules, self.names).labels.reshape(-1) == FROZEN

    def log_law(self, x: Any) -> Floats:
        """log p(y | x) for tables (n, cells), up to one constant; -inf where x is impossible."""
        x = np.asarray(x)
        if not self.whole:
            return self._log_density(x)
        logs = np.full(len(x), -np.inf)
        possible = self.conforming.holds(x) & np.all(x >= 0, axis=-1)
        logs[possible] = self._log_density(x[possible])
        return logs

    def _log_density(self, x: Any) -> Floats:
        if self.density is not None:
            return self.density(x)
        assert self.noise is not None
        moving = self.conforming.moving
        weights = self.noise.at(moving).log_weight(self.y[moving] - x[:, moving])
        logs = np.asarray(weights.sum(axis=-1))
        if self.normaliser is not None:
            logs += self.normaliser.log_base - self.normaliser.log(x)
        if self.levels is not None:
            logs += self.levels.log_weight(x)
        return logs

    @property
    def unrelated(self) -> bool:
        """Whether cells have nothing to do with each other: noise of their own, and no sum."""
        alone = self.levels is None and self.finer is None
        return self.noise is not None and alone and self.conforming.open

    def given_totals(self, labels: Ints, totals: Ints) -> Observation:
        """The same with totals of parts known from elsewhere, such as the number of people."""
        if self.conforming.open and np.all(self.conforming.labels == LOOSE):
            return replace(self, conforming=LatentTables.of_groups(labels, totals))
        conforming = self.conforming
        if not conforming.ties and np.all(conforming.labels[conforming.moving] >= 0):
            sums = np.zeros(len(totals), dtype=np.int64)
            np.add.at(sums, labels, conforming.start(self.y, np.full(self.cells, np.inf)))
            if np.array_equal(sums, totals):
                return self
        raise InferenceError(
            "the totals given to the model differ from the published ones.",
            remedy="Leave them out: the published totals are used automatically.",
        )


MOST_KEPT = 200_000  # densities of tables remembered
AS_ONE = (
    "a count of the model is the sum of finer cells; all ways to split it are taken to be equally "
    "likely"
)


class OtherCells(InferenceError):
    """The law is known for the cells as released, and the model is about sums of them."""

    def __init__(self, release: DrawnTable | ValuesRelease, what: str) -> None:
        remedy = "Leave out `by` and public=False."
        if release.table:
            remedy = f"Model the cells as released: by = {', '.join(release.table)}."
        super().__init__(what, remedy=remedy)


def observe(
    release: DrawnTable | ValuesRelease | TablesRelease | Observation,
    by: str | Sequence[str] | None = None,
    public: bool = True,
) -> Observation:
    """What a release says about the table over `by` (default: as released).

    `public` conditions on the published figures too (the paper's Z); without it only the released
    values are used, which is possible for mechanisms that do not contain the figures already.
    """
    if isinstance(release, Observation):
        return release
    expect(public, bool, "public", "Give True or False.", InferenceError)
    if isinstance(release, ValuesRelease):
        return _of_values(release, by, public)
    if isinstance(release, TablesRelease):
        if len(release.drawn) > 1:
            return _of_tables(release, by, public)
        release = release.only
    if not isinstance(release, DrawnTable):
        raise _no_density()
    names = release.table if by is None else texts(by, "by", InferenceError)
    mechanism = release.mechanism
    plain = not mechanism.conditions
    if not public and not plain:
        raise InferenceError(
            f"'{mechanism.name}' draws tables that agree with the published figures: its values "
            "contain them, and they cannot be ignored.",
            remedy="Leave out public=False.",
        )
    axes = release.schema.axes(names)
    figures = release.published if public else Figures(release.schema)
    common: dict[str, Any] = {
        "axes": axes,
        "published": release.published,
        "notes": _notes(release),
        "conforming": LatentTables.of_support(support(figures, names)),
    }
    if not (plain or isinstance(mechanism, IntegerNoise)):
        return _of_mechanism(release, names, common)
    index = np.broadcast_to(cell_index(release.schema, release.table, names), release.values.shape)
    cells = math.prod(axis.size for axis in axes)
    y = np.zeros(cells)
    np.add.at(y, index.reshape(-1), np.asarray(release.values, dtype=float).reshape(-1))
    terms = _noisy_terms(release, index.reshape(-1), cells, plain)
    if terms is None:
        return _through_finer(observe(release, None, public), release.table, names, common)
    noise = Noise.of_family(release.description.family, release.description.scale, terms)
    return Observation(y, noise=noise, largest_change=2 * noise.largest_step, **common)


def _through_finer(
    fine: Observation, cells: tuple[str, ...], names: tuple[str, ...], common: dict[str, Any]
) -> Observation:
    """The table over `names`, seen through the cells of a finer one whose law is known."""
    assert fine.published is not None
    index = np.broadcast_to(cell_index(fine.published.schema, cells, names), fine.shape)
    owner = np.ascontiguousarray(index.reshape(-1), dtype=np.int64)
    y = np.zeros(math.prod(axis.size for axis in common["axes"]))
    np.add.at(y, owner, fine.y)
    shared = {**common, "notes": (*common["notes"], AS_ONE)}
    return Observation(y, finer=(fine, owner), **shared)


def _of_tables(release: TablesRelease, by: str | Sequence[str] | None, public: bool) -> Observation:
    """Several tables measured at once: noise in sums of the finest cells that they tell apart."""
    if not public and release.published.equalities:
        raise InferenceError(
            "the tables were drawn to agree with the published figures: their values contain "
            "them, and they cannot be ignored.",
            remedy="Leave out public=False.",
        )
    cells = finest_cells(release, by)
    names = cells if by is None else texts(by, "by", InferenceError)
    outlook = outlook_of_tables(release.description)
    if not outlook.works:
        raise InferenceError(f"{outlook.why}.", remedy=outlook.remedy)
    common: dict[str, Any] = {"published": release.published, "notes": _notes(release)}
    fine = Observation(
        _even(release, cells),
        LatentTables.of_support(support(release.published, cells)),
        Noise.flat(release.schema.size(cells)),
        levels=LevelNoise.of_tables(release, cells),
        axes=release.schema.axes(cells),
        **common,
    )
    if names == cells:
        return fine
    common |= {
        "axes": release.schema.axes(names),
        "conforming": LatentTables.of_support(support(release.published, names)),
    }
    return _through_finer(fine, cells, names, common)


def finest_cells(release: TablesRelease, by: str | Sequence[str] | None) -> tuple[str, ...]:
    """A table that every measured table and the model's are sums of: a printed one, or all axes."""
    wanted = [law.table for law in release.description.measured]
    if by is not None:
        wanted.append(texts(by, "by", InferenceError))
    for names in sorted(release.tables, key=release.schema.size):
        if all(_is_sum(release.schema, names, law) for law in wanted):
            return names
    bases = {axis.base for names in wanted for axis in release.schema.axes(names)}
    return tuple(name for name in release.schema.names if name in bases)


def _is_sum(schema: Schema, cells: tuple[str, ...], names: tuple[str, ...]) -> bool:
    try:
        cell_index(schema, cells, names)
    except CongenialError:
        return False
    return True


def _even(release: TablesRelease, cells: tuple[str, ...]) -> Floats:
    """Estimates of the cells; where only a coarser table has them, spread evenly."""
    at = max(range(len(release.tables)), key=lambda i: release.estimates[i].size)
    if cells in release.tables:
        at = release.tables.index(cells)
    shape = tuple(axis.size for axis in release.schema.axes(cells))
    index = np.broadcast_to(cell_index(release.schema, cells, release.tables[at]), shape)
    width = np.bincount(index.reshape(-1))
    spread = release.estimates[at].reshape(-1) / width
    return np.asarray(spread[index.reshape(-1)])


def _of_values(release: ValuesRelease, by: str | Sequence[str] | None, public: bool) -> Observation:
    """Counts released given public information: l1 noise with a normaliser, or an l2 density."""
    if "base_measure" not in release.description.law:
        raise _no_density()
    names = release.table if by is None else texts(by, "by", InferenceError)
    if names != release.table or (not public and release.base.kind != "naive"):
        raise OtherCells(
            release,
            f"the law of '{release.description.mechanism}' is known for the released table, given "
            "the published figures.",
        )
    outlook = outlook_of_values(release.loss, release.base)
    if not outlook.works:
        raise InferenceError(f"{outlook.why}.", remedy=outlook.remedy)
    if not release.density_known:
        raise InferenceError(
            "the sums in the law of this release are not those that published figures fix.",
            remedy="Ask for a release given the published figures.",
        )
    y = release.counts.reshape(-1)
    change = 2 * release.description.law["factor"] * float(release.rate)
    common: dict[str, Any] = {
        "axes": release.schema.axes(names),
        "published": release.published if names else None,
        "notes": _notes(release),
        "conforming": _conforming_values(release, public),
        "largest_change": change,
    }
    if release.loss == "l1" and outlook.way != "density":
        ones = np.ones(len(y), dtype=np.int64)
        noise = Noise.of_family("double_geometric", release.rate, ones)
        varies = not release.base.translation_invariant
        normaliser = Normaliser(release.base, y, release.rate) if varies else None
        return Observation(y.astype(float), noise=noise, normaliser=normaliser, **common)
    density = _density_of_values(release, y)
    return Observation(y.astype(float), density=density, **common)


def _conforming_values(release: ValuesRelease, public: bool) -> LatentTables:
    """Tables that the figures leave; without a table, counts with the sums of the base measure."""
    if release.table:
        figures = release.published if public else Figures(release.schema)
        return LatentTables.of_support(support(figures, release.table))
    labels = np.full(release.base.cells, LOOSE, dtype=np.int64)
    for number, (group, _) in enumerate(release.base.totals):
        labels[list(group)] = number
    return LatentTables.of_groups(labels, [total for _, total in release.base.totals])


def _density_of_values(release: ValuesRelease, y: Ints) -> Callable[[Any], Floats]:
    """log p(y | x), normalised under the l1 loss, where each count has a normaliser of its own."""
    rate, signed = float(release.rate), release.loss == "l1"

    def density(x: Any) -> Floats:
        table = np.asarray(x)
        if signed:
            away = rate * np.abs(y - table) + log_signed(table, rate)
            return np.asarray(-away.sum(axis=-1))
        return np.asarray(-rate * np.sqrt(((y - table) ** 2.0).sum(axis=-1)))

    return density


def _notes(release: DrawnTable | ValuesRelease | TablesRelease) -> tuple[str, ...]:
    """What a reader of the posterior should know about the release."""
    notes = []
    if release.guarantee.basis == "uncertified chain":
        notes.append("the release was drawn by a Markov chain; its limiting distribution is used")
    if release.published.bounds and not getattr(release.description, "nonnegative", False):
        notes.append("published bounds are not used")
    if isinstance(release, ValuesRelease) and not release.table:
        notes.append(
            "the released values are not counts of a possible table; they are treated as counts"
        )
    return tuple(notes)


def _no_density() -> InferenceError:
    return InferenceError(
        "this release has no density: the bundle does not describe its noise.",
        remedy="Use a table released by a mechanism with a known density.",
    )


def _of_mechanism(
    release: DrawnTable, names: tuple[str, ...], common: dict[str, Any]
) -> Observation:
    """Any mechanism through its own `log_density`, one table at a time."""
    if names != release.table:
        raise OtherCells(
            release,
            f"the law of '{release.description.mechanism}' is known for the released table only, "
            f"not for sums over {', '.join(n for n in release.table if n not in names) or 'it'}.",
        )
    mechanism, shape = release.mechanism, release.values.shape
    prospect = outlook(mechanism)
    if not prospect.works:
        raise InferenceError(f"{prospect.why}.", remedy=prospect.remedy)
    if prospect.way == "counts":
        return _of_counts(release, common)
    if prospect.way == "listed":
        common["listed"] = _listed(release)
    drawn = np.asarray(release.values)
    computed: dict[bytes, float] = {}  # chains come back to the same tables, and a density is slow

    def density(x: Any) -> Floats:
        logs = np.empty(len(x))
        for i, counts in enumerate(np.asarray(x, dtype=np.int64).reshape(-1, *shape)):
            key = counts.tobytes()
            if key not in computed:
                if len(computed) >= MOST_KEPT:
                    computed.clear()
                table = Table(release.schema, release.table, counts)
                computed[key] = float(mechanism.log_density(drawn, table))
            logs[i] = computed[key]
        return logs

    return Observation(
        drawn.astype(float).reshape(-1),
        density=density,
        bounded=release.description.nonnegative and bool(release.published.bounds),
        largest_change=_change_of_one_record(release),
        **common,
    )


def _of_counts(release: DrawnTable, common: dict[str, Any]) -> Observation:
    """Counts given signs and the sums of groups: l1 noise whose normaliser is worked out."""
    y = np.asarray(release.values, dtype=np.int64).reshape(-1)
    rate = release.description.rate
    base = congenial(len(y), published_sums(support(release.published, release.table)))
    return Observation(
        y.astype(float),
        noise=Noise.of_family("double_geometric", rate, np.ones(len(y), dtype=np.int64)),
        normaliser=Normaliser(base, y, rate),
        largest_change=_change_of_one_record(release),
        **common,
    )


def _listed(release: DrawnTable) -> tuple[Ints, Floats]:
    """All conforming tables, and the log density of the release given each."""
    tables = conforming_tables(release.description.support, release.table)
    assert tables is not None
    drawn = np.asarray(release.values).reshape(-1)
    return tables, listed_law(tables, drawn, float(release.description.rate))


def _change_of_one_record(release: DrawnTable) -> float:
    """Bound on |log p(y | x) - log p(y | x')| for conforming tables that differ in one record.

    It is the promise's epsilon where that is pure and about replaced records; a record that is
    replaced is one removed and one added.
    """
    promise, pairs = release.guarantee.tradeoff, release.guarantee.adjacency
    if not isinstance(promise, Pure) or not isinstance(pairs, Adjacency):
        return math.inf
    steps = 1 if pairs.metric == "replace-one" else -(-2 // pairs.records)
    return steps * float(promise.eps)


def _noisy_terms(release: DrawnTable, index: Ints, cells: int, plain: bool) -> Ints | None:
    """Released cells with noise in each modelled cell; None where their noise is not independent.

    Under conditioning, a modelled cell may hold whole groups (no noise) and part of one more: then
    the noise of modelled cells is again independent noise given the groups' sums.
    """
    if plain:
        return np.bincount(index, minlength=cells)
    structure = support(release.description.support, release.table)
    labels = structure.labels.reshape(-1)
    groups = max(structure.groups, 1)
    inside = labels >= 0
    pair, met = np.unique(index[inside] * groups + labels[inside], return_counts=True)
    cell, group = pair // groups, pair % groups
    split = met < structure.sizes[group]
    split |= structure.tied[group] if structure.ties else False
    partial = np.bincount(cell[split], minlength=cells)
    loose = np.bincount(index[labels == LOOSE], minlength=cells)
    if np.any(partial > 1) or np.any((partial == 1) & (loose > 0)):
        return None
    terms = loose
    np.add.at(terms, cell[split], met[split])
    return terms
