"""Indices of roughness, calibrated by simulation along tables from even to rougher than drawn.

Let z0 be the table without any roughness (even, or the same shares everywhere) that has the sums of
the estimate z. For tables z_t = z0 + t (z - z0) the index grows with t, and the law of the index of
z_t plus noise is simulated from the public law. The interval holds the indices of all z_t for which
the index of the estimate lies between the tails of that law; the estimate is the index of the z_t
whose median it is. Bias is thereby taken out. The law depends on more than the index: many small
differences, or a few large ones. So two shapes are tried, all differences as drawn and only those
that stand out, and the interval covers both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.advance import one_by_one
from congenial.inference.estimates.cell_estimates import DRAWS, CellEstimates, Floats, Weights
from congenial.inference.estimates.interval_cover import IntervalCover
from congenial.inference.estimates.quantities import NOBODY, Ends, Quantity

METHOD = "bias-corrected: calibrated by simulation along tables from even to rougher than drawn"
USED = 2_000  # simulated tables
BATCH = 8_000_000  # numbers held at a time
ROUGHNESS = np.concatenate([np.linspace(0, 1.2, 13), [1.4, 1.7, 2.0, 2.5, 3.0]])
FINER = 14  # tables looked at between the first and the last that are compatible
TAIL = 0.4  # of what the level leaves, on either side; half would be too much for other shapes
STANDS_OUT = 2.0  # standard deviations

Index = Callable[[Floats], Floats]
Smoothest = Callable[[Floats, Any], Floats]


@dataclass(frozen=True, eq=False)
class ScaledIndex(Quantity):
    """An index of the sums `weights`, shaped (groups, ...), and its table without roughness."""

    source: CellEstimates
    weights: Weights
    shape: tuple[int, ...]
    index: Index
    smoothest: Smoothest

    @cached_property
    def _estimate(self) -> Floats:
        return np.asarray(self.weights @ self.source.cells).reshape(self.shape)

    @cached_property
    def _errors(self) -> Floats:
        errors = self.source.errors(self.weights)[:USED]
        return errors.reshape(len(errors), *self.shape)

    @cached_property
    def _seen(self) -> Floats:
        """The index of the estimates as they are, biased."""
        return self.index(self._estimate)

    @cached_property
    def _possible(self) -> Any:
        return (np.diff(self.weights.indptr) > 0).reshape(self.shape)

    @cached_property
    def _shapes(self) -> list[tuple[Floats, Floats]]:
        """Tables without roughness and differences from them: all of them, or the outstanding."""
        table = np.maximum(self._estimate, 0.0)
        even = self.smoothest(table, self._possible)
        away = table - even
        noise = np.sqrt(np.mean(self._errors**2, axis=0))
        size = np.abs(away) / np.where(noise > 0, noise, 1.0)
        axes = tuple(range(1, away.ndim))
        limit = np.minimum(STANDS_OUT, size.max(axis=axes, keepdims=True))
        return [(even, away), (even, np.where(size >= limit, away, 0.0))]

    @cached_property
    def _simulated(self) -> list[_Simulated]:
        """For each shape, indices of its tables from even to rough."""
        roughness = np.repeat(ROUGHNESS[:, None], self.shape[0], axis=1)
        return [self._along(shape, roughness) for shape in self._shapes]

    def _along(self, shape: tuple[Floats, Floats], roughness: Floats) -> _Simulated:
        """True and simulated indices of tables of a roughness, (tables, groups)."""
        true, drawn = [], []
        for t in one_by_one(list(roughness), "simulating indices"):
            table = self._rough(shape, t)
            true.append(np.nan_to_num(self.index(table)))
            drawn.append(np.sort(self._noisy(table), axis=0))
        return _Simulated(roughness, np.array(true), np.array(drawn))

    def _rough(self, shape: tuple[Floats, Floats], t: Floats) -> Floats:
        even, away = shape
        return np.asarray(np.maximum(even + t.reshape(-1, *(1,) * (even.ndim - 1)) * away, 0.0))

    def _noisy(self, table: Floats) -> Floats:
        """The index of the table with each draw of noise added, (draws, groups)."""
        step = max(1, BATCH // max(table.size, 1))
        parts = [
            self.index(table + self._errors[start : start + step])
            for start in range(0, len(self._errors), step)
        ]
        return np.nan_to_num(np.concatenate(parts))

    @cached_property
    def _roughness(self) -> Floats:
        """For each group, the roughness at which the median index is the one seen."""
        middle = self._simulated[0].quantile(0.5)
        found = [
            _interpolated(seen, middle[:, g], ROUGHNESS) for g, seen in enumerate(self._seen_or_0)
        ]
        return np.array(found)

    @cached_property
    def _seen_or_0(self) -> Floats:
        return np.nan_to_num(self._seen)

    @cached_property
    def values(self) -> Floats:
        """The index of the table whose median index is the one seen."""
        found = self.index(self._rough(self._shapes[0], self._roughness))
        return np.where(np.isnan(self._seen), np.nan, found)

    def sizes(self) -> Floats:
        """How far the index of as rough a table strays from its median."""
        noisy = self._noisy(self._rough(self._shapes[0], self._roughness))
        return np.resize(np.abs(noisy - np.median(noisy, axis=0)), (DRAWS, noisy.shape[1]))

    def ends(self, cover: IntervalCover) -> Ends:
        """The least and the largest index of the tables that are compatible."""
        tail = (1 - cover.level) * TAIL
        low, high = np.full(self.shape[0], np.inf), np.full(self.shape[0], -np.inf)
        for shape, coarse in zip(self._shapes, self._simulated, strict=True):
            fine = self._along(shape, coarse.around(self._seen_or_0, tail))
            least, largest = fine.compatible(self._seen_or_0, tail)
            low, high = np.minimum(low, least), np.maximum(high, largest)
        none = np.isnan(self._seen)
        notes = [NOBODY if missing else "" for missing in none]
        methods = [METHOD] * len(notes)
        return Ends(np.where(none, np.nan, low), np.where(none, np.nan, high), methods, notes)


@dataclass(frozen=True, eq=False)
class _Simulated:
    """Indices of tables of growing roughness: true ones, and sorted draws with noise."""

    roughness: Floats  # (tables, groups)
    true: Floats  # (tables, groups)
    drawn: Floats  # (tables, draws, groups)

    def quantile(self, probability: float) -> Floats:
        """A quantile of every table's draws, outwards, (tables, groups)."""
        draws = self.drawn.shape[1]
        if probability > 0.5:
            return np.asarray(self.drawn[:, min(int(np.ceil(probability * draws)), draws - 1)])
        return np.asarray(self.drawn[:, max(int(probability * draws) - 1, 0)])

    def _inside(self, seen: Floats, tail: float) -> Any:
        """Tables whose draws have the seen index between their tails, and the ones beside."""
        low, high = self.quantile(tail), self.quantile(1 - tail)
        gap = np.maximum(np.maximum(low - seen, seen - high), 0.0)
        inside = gap == gap.min(axis=0)
        wider = inside.copy()
        wider[1:] |= inside[:-1]
        wider[:-1] |= inside[1:]
        return wider

    def around(self, seen: Floats, tail: float) -> Floats:
        """Roughness between the first and the last compatible table, in finer steps."""
        inside = self._inside(seen, tail)
        first = np.min(np.where(inside, self.roughness, np.inf), axis=0)
        last = np.max(np.where(inside, self.roughness, -np.inf), axis=0)
        return np.asarray(np.linspace(first, last, FINER))

    def compatible(self, seen: Floats, tail: float) -> tuple[Floats, Floats]:
        """The least and the largest true index of compatible tables."""
        inside = self._inside(seen, tail)
        least = np.min(np.where(inside, self.true, np.inf), axis=0)
        return least, np.max(np.where(inside, self.true, -np.inf), axis=0)


def _interpolated(seen: float, medians: Floats, roughness: Floats) -> float:
    """The roughness at a median; an index may rise or fall with roughness."""
    order = np.argsort(medians, kind="stable")
    return float(np.interp(seen, medians[order], roughness[order]))
