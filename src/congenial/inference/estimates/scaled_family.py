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

from congenial.inference.estimates.cell_estimates import DRAWS, CellEstimates, Floats, Weights
from congenial.inference.estimates.cover import Cover
from congenial.inference.estimates.quantities import NOBODY, Ends, Quantity

METHOD = "bias-corrected: calibrated by simulation along tables from even to rougher than drawn"
USED = 2_000  # simulated tables
BATCH = 8_000_000  # numbers held at a time
ROUGHNESS = np.concatenate([np.linspace(0, 1.2, 19), [1.3, 1.5, 1.75, 2.0, 2.5, 3.0]])
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
    def _simulated(self) -> list[tuple[Floats, Floats]]:
        """For each shape: the index of every z_t, and its sorted simulated values, (t, draws)."""
        found = []
        for even, away in self._shapes:
            true, drawn = [], []
            for t in ROUGHNESS:
                table = np.maximum(even + t * away, 0.0)
                true.append(self.index(table))
                drawn.append(np.sort(self._noisy(table), axis=0))
            found.append((np.array(true), np.array(drawn)))
        return found

    def _noisy(self, table: Floats) -> Floats:
        """The index of the table with each draw of noise added, (draws, groups)."""
        step = max(1, BATCH // max(table.size, 1))
        parts = [
            self.index(table + self._errors[start : start + step])
            for start in range(0, len(self._errors), step)
        ]
        return np.nan_to_num(np.concatenate(parts))

    @cached_property
    def values(self) -> Floats:
        """The index of the table whose median index is the one seen."""
        true, drawn = self._simulated[0]
        middle = drawn[:, drawn.shape[1] // 2]
        found = np.array(
            [
                np.interp(*_increasing(seen, middle[:, g], true[:, g]))
                for g, seen in enumerate(self._seen)
            ]
        )
        return np.where(np.isnan(self._seen), np.nan, found)

    def sizes(self) -> Floats:
        """How far the index of as rough a table strays from its median."""
        true = self._simulated[0][0]
        nearest = np.nanargmin(np.abs(np.nan_to_num(true) - np.nan_to_num(self.values)), axis=0)
        table = np.maximum(self._at(nearest), 0.0)
        noisy = self._noisy(table)
        repeated = np.resize(np.abs(noisy - np.median(noisy, axis=0)), (DRAWS, noisy.shape[1]))
        return np.asarray(repeated)

    def _at(self, places: Any) -> Floats:
        even, away = self._shapes[0]
        t = ROUGHNESS[places].reshape(-1, *(1,) * (even.ndim - 1))
        return np.asarray(even + t * away)

    def ends(self, cover: Cover) -> Ends:
        """The least and the largest index of the tables that are compatible."""
        tail = max(int((1 - cover.level) / 2 * len(self._errors)) - 1, 0)
        sets = [self._compatible(true, drawn, tail) for true, drawn in self._simulated]
        low = np.min([one[0] for one in sets], axis=0)
        high = np.max([one[1] for one in sets], axis=0)
        notes = [NOBODY if np.isnan(seen) else "" for seen in self._seen]
        methods = [METHOD] * len(notes)
        none = np.isnan(self._seen)
        return Ends(np.where(none, np.nan, low), np.where(none, np.nan, high), methods, notes)

    def _compatible(self, true: Floats, drawn: Floats, tail: int) -> tuple[Floats, Floats]:
        """Ends of the indices of compatible tables, with the next table on either side."""
        low, high = drawn[:, tail], drawn[:, drawn.shape[1] - 1 - tail]
        seen = np.nan_to_num(self._seen)
        inside = (low <= seen) & (seen <= high)
        gap = np.where(inside, 0.0, np.maximum(low - seen, seen - high))
        inside |= gap == gap.min(axis=0)
        wider = inside.copy()
        wider[1:] |= inside[:-1]
        wider[:-1] |= inside[1:]
        true = np.nan_to_num(true)
        least = np.min(np.where(wider, true, np.inf), axis=0)
        return least, np.max(np.where(wider, true, -np.inf), axis=0)


def _increasing(seen: float, medians: Floats, true: Floats) -> tuple[float, Floats, Floats]:
    """Medians in increasing order, for interpolation; an index may fall with roughness."""
    order = np.argsort(medians, kind="stable")
    return seen, medians[order], np.nan_to_num(true[order])
