"""Independent additive noise, cell by cell, as an analyst sees it: weights of y - x.

A modelled cell may be a sum of several released cells; its noise is then the sum of as many
independent draws. Constants are left out: they are the same for every latent table, also where the
noise was conditioned on published sums (the normaliser is constant on conforming tables).

Noise in sums of the cells: a release with `levels`, or several tables measured at once.

p(y | x) ~ exp(-sum over nodes v of rate_v f(y_v - x_v)), x_v the sum over the cells below v, f the
absolute value or the square. Along a line of the latent table only the nodes change that are not
above as many ends that go up as ends that go down, and the law stays log-concave: tables are
redrawn exactly, as without levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.data.schema import Schema
from congenial.data.table import cell_index
from congenial.errors import InferenceError
from congenial.mechanisms.tables_release import TablesRelease
from congenial.privacy.description import Family
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.sums import iid_sum_law

Kind = Literal["l1", "l2", "table"]

_CODES: dict[Kind, int] = {"l1": 0, "l2": 1, "table": 2}  # as in _kernels
_DEEP = 42.0  # -log of what laws of counts leave out
_WIDE = 14  # standard deviations kept of a sum of discrete Gaussian variables


@dataclass(frozen=True)
class Noise:
    """Log weight of the noise u in each cell.

    kind "l1": -scale |u|; "l2": -scale u^2; "table": rows[which[cell]], centred at u = 0, for sums
    of integer noise. All of them are log-concave.
    """

    kind: Kind
    scale: Floats
    rows: Floats
    which: Ints

    @classmethod
    def of_family(cls, family: Family, scale: Fraction, terms: Ints) -> Noise:
        """The noise of a family in cells that are sums of `terms` released cells each.

        Cells of no noisy term get the weights of one: their true value is known, so it is not used.
        """
        terms = np.maximum(np.asarray(terms, dtype=np.int64), 1)
        rate = float(scale)
        none = np.zeros((1, 1)), np.zeros(len(terms), dtype=np.int64)
        if family == "gaussian" or (family == "discrete_gaussian" and terms.max(initial=1) == 1):
            return cls("l2", 1 / (2 * rate * terms), *none)
        if terms.max(initial=1) == 1:
            return cls("l1", np.full(len(terms), rate), *none)
        if family == "laplace":
            raise InferenceError(
                "sums of several Laplace draws are not supported.",
                remedy="Model the released cells, or ask the publisher for whole-number noise.",
            )
        sizes, which = np.unique(terms, return_inverse=True)
        laws = [_log_sum_law(family, scale, int(m)) for m in sizes]
        reach = max(len(law) // 2 for law in laws)
        rows = np.full((len(laws), 2 * reach + 1), -np.inf)
        for row, law in zip(rows, laws, strict=True):
            half = len(law) // 2
            row[reach - half : reach + half + 1] = law
        return cls("table", np.full(len(terms), rate), rows, which.astype(np.int64))

    @classmethod
    def flat(cls, cells: int) -> Noise:
        """No law of their own: where the noise is in sums of the cells only."""
        return cls("l2", np.zeros(cells), np.zeros((1, 1)), np.zeros(cells, dtype=np.int64))

    def log_weight(self, u: Any) -> Floats:
        """Log weights of noise of shape (..., cells)."""
        u = np.asarray(u, dtype=float)
        if self.kind == "l1":
            return np.asarray(-self.scale * np.abs(u))
        if self.kind == "l2":
            return np.asarray(-self.scale * u * u)
        reach = self.rows.shape[1] // 2
        inside = np.abs(u) <= reach
        at = np.where(inside, u + reach, 0).astype(np.int64)
        return np.where(inside, self.rows[self.which, at], -np.inf)

    @property
    def largest_step(self) -> float:
        """Largest change of a cell's log weight when its count moves by one; inf for l2 noise."""
        if self.kind == "l2":
            return math.inf
        if self.kind == "l1":
            return float(self.scale.max(initial=0.0))
        before, after = self.rows[:, :-1], self.rows[:, 1:]
        inside = np.isfinite(before) & np.isfinite(after)  # -inf beyond the end of a shorter law
        return float(np.abs(after[inside] - before[inside]).max())

    @cached_property
    def arguments(self) -> tuple[int, Floats, Floats, Ints]:
        """Kind, scale, rows and which, as the compiled loops take them."""
        scale = np.exp(self.scale) if self.kind == "l1" else self.scale
        return _CODES[self.kind], np.ascontiguousarray(scale, dtype=float), self.rows, self.which

    @property
    def convolution_work(self) -> float:
        """About how many products the laws of sums of the cells take, built up by halves."""
        if self.kind == "table":
            return float(len(self.which) * self.rows.shape[1] ** 2)
        if self.kind == "l1":
            return float(np.sum((2 * _DEEP / self.scale) ** 2))
        return float(np.sum(4 * _DEEP / np.maximum(self.scale, 1e-300)))

    def at(self, cells: Any) -> Noise:
        """The noise of some of the cells."""
        return Noise(self.kind, self.scale[cells], self.rows, self.which[cells])


def _log_sum_law(family: Family, scale: Fraction, terms: int) -> Floats:
    """Log probabilities of a sum of integer draws, symmetric about 0, from positive terms only."""
    if family == "double_geometric":
        return np.log(iid_sum_law(terms, DoubleGeometric(scale)).probs)
    rate = float(scale)
    half = math.ceil(_WIDE * math.sqrt(rate)) + 2
    single = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * rate))
    law = np.ones(1)
    for _ in range(terms):
        law = np.convolve(law, single)
        cut = len(law) // 2 - math.ceil(_WIDE * math.sqrt(rate * terms)) - 2
        law = law[max(cut, 0) : len(law) - max(cut, 0)]
        law /= law.sum()
    return np.log(law)


@dataclass(frozen=True, eq=False)
class LevelNoise:
    """above: the node over each cell at each level, (cells, levels). rates and values of the nodes.

    rates: eps of each node, or 1 / (2 sigma^2) where the noise is Gaussian (`squared`).
    """

    above: Ints = field(repr=False)
    rates: Floats = field(repr=False)
    values: Ints = field(repr=False)
    squared: bool = False

    @classmethod
    def none(cls, cells: int) -> LevelNoise:
        """No noise in sums."""
        return cls(np.zeros((cells, 0), dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64))

    @classmethod
    def of_tables(cls, release: TablesRelease, cells: tuple[str, ...]) -> LevelNoise:
        """The measured tables of a release as sums of the cells of a finer one."""
        gaussian = release.description.family == "discrete_gaussian"
        tables = []
        for law, drawn in zip(release.description.measured, release.drawn, strict=True):
            rate = 1 / (2 * float(law.scale)) if gaussian else float(law.scale)
            index = _below(release.schema, cells, law.table)
            tables.append((index, rate, np.asarray(drawn, dtype=np.int64).reshape(-1)))
        return cls._of_tables(tables, squared=gaussian)

    @classmethod
    def _of_tables(cls, tables: list[tuple[Ints, float, Ints]], squared: bool) -> LevelNoise:
        """Tables as (node of each cell, rate, values), nodes numbered through."""
        sizes = [len(values) for _, _, values in tables]
        first = np.cumsum([0, *sizes[:-1]])
        above = [index + start for (index, _, _), start in zip(tables, first, strict=True)]
        rates = [np.full(len(values), rate) for _, rate, values in tables]
        values = np.concatenate([values for _, _, values in tables])
        return cls(np.stack(above, axis=1), np.concatenate(rates), values, squared)

    def gaps(self, x: Any) -> Ints:
        """Value minus sum of every node, for whole tables of shape (n, cells)."""
        whole = np.asarray(x).astype(np.int64)
        sums = np.zeros((len(self.rates), len(whole)), dtype=np.int64)
        for column in self.above.T:
            np.add.at(sums, column, whole.T)
        return np.ascontiguousarray(self.values - sums.T)

    def log_weight(self, x: Any) -> Floats:
        """Log weight of what was drawn given each row of tables."""
        gaps = self.gaps(x).astype(float)
        return np.asarray(-((gaps * gaps if self.squared else np.abs(gaps)) @ self.rates))


def _below(schema: Schema, cells: tuple[str, ...], names: tuple[str, ...]) -> Ints:
    """The cell of the table over `names` that each cell belongs to, flat."""
    shape = tuple(axis.size for axis in schema.axes(cells))
    index = np.broadcast_to(cell_index(schema, cells, names), shape)
    return np.ascontiguousarray(index.reshape(-1), dtype=np.int64)
