"""Arithmetic on quantities that is neither a sum nor one ratio, such as a difference of shares.

Smooth functions of sums: the delta method, whose multiplier is the simulated quantile of the
studentised error. It is *checked*: the simulated denominators keep their sign and curvature moves
the multiplier by little. Where the check fails, and for quantiles and indices: intervals of the two
sides that hold together (Bonferroni), put through the operation; that keeps the level whatever the
laws are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from congenial.errors import InferenceError
from congenial.inference.estimates.cell_estimates import DRAWS, Floats
from congenial.inference.estimates.interval_cover import IntervalCover
from congenial.inference.estimates.quantities import (
    MAY_BE_ZERO,
    CellSums,
    Ends,
    Operator,
    Quantity,
    Smooth,
)

DELTA = "delta method, checked by simulation from the public law"
TOGETHER = "intervals of its two sides that hold together"
CURVED = 1.1  # the studentised multiplier over the linear one, at most
STEP = 1e-4  # of a standard deviation, for derivatives

_OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


@dataclass(frozen=True, eq=False)
class Arithmetic(Smooth):
    """left operator right."""

    operator: Operator
    left: Quantity
    right: Quantity

    @cached_property
    def values(self) -> Floats:
        """The operation on the estimates."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = _OPERATIONS[self.operator](self.left.values, self.right.values)
        return np.where(np.isfinite(found), found, np.nan)

    @property
    def smooth(self) -> bool:
        """Whether it is a smooth function of sums."""
        sides = (self.left, self.right)
        return all(isinstance(one, Smooth) and getattr(one, "smooth", True) for one in sides)

    def parts(self) -> list[CellSums]:
        """The sums of both sides."""
        assert isinstance(self.left, Smooth)
        assert isinstance(self.right, Smooth)
        return self.left.parts() + self.right.parts()

    def divisors(self) -> list[bool]:
        """The denominators of both sides, and what it divides by."""
        assert isinstance(self.left, Smooth)
        assert isinstance(self.right, Smooth)
        right = self.right.divisors()
        return self.left.divisors() + ([True] * len(right) if self.operator == "/" else right)

    def evaluate(self, sums: list[Any]) -> Any:
        """The operation on arrays of the sums."""
        assert isinstance(self.left, Smooth)
        assert isinstance(self.right, Smooth)
        taken = len(self.left.parts())
        sides = self.left.evaluate(sums[:taken]), self.right.evaluate(sums[taken:])
        return _OPERATIONS[self.operator](*sides)

    def sizes(self) -> Floats:
        """Studentised errors of a smooth function; otherwise the larger of both sides'."""
        if self.smooth:
            return self._delta.studentised
        return np.maximum(_standard(self.left.sizes()), _standard(self.right.sizes()))

    @cached_property
    def _delta(self) -> _Delta:
        return _Delta(self)

    def ends(self, cover: IntervalCover) -> Ends:
        """By the delta method where its check holds."""
        if not self.smooth:
            return self._together(cover)
        delta, level = self._delta, cover
        studentised, linear = level.reach(delta.studentised), level.reach(delta.linear)
        held = delta.stable & (studentised <= CURVED * linear)
        reach = np.maximum(studentised, linear) * delta.deviations
        ends = Ends(self.values - reach, self.values + reach, [DELTA] * len(reach))
        if not held.all():
            other = self._together(cover)
            for i in np.flatnonzero(~held):
                ends.low[i], ends.high[i] = other.low[i], other.high[i]
                ends.methods[i], ends.notes[i] = other.methods[i], other.notes[i]
        return ends

    @property
    def deviations(self) -> Floats:
        """By the delta method, where it is smooth."""
        return self._delta.deviations if self.smooth else super().deviations

    def _together(self, cover: IntervalCover) -> Ends:
        half = cover.split(2)
        left, right = self.left.ends(half), self.right.ends(half)
        with np.errstate(divide="ignore", invalid="ignore"):
            corners = [
                _OPERATIONS[self.operator](one, other)
                for one in (left.low, left.high)
                for other in (right.low, right.high)
            ]
        low, high = np.min(corners, axis=0), np.max(corners, axis=0)
        notes = [one or other for one, other in zip(left.notes, right.notes, strict=True)]
        if self.operator == "/":
            crossed = (right.low <= 0) & (right.high >= 0)
            low, high = np.where(crossed, -np.inf, low), np.where(crossed, np.inf, high)
            notes = [MAY_BE_ZERO if c else n for c, n in zip(crossed, notes, strict=True)]
        return Ends(low, high, [TOGETHER] * len(low), notes)


class _Delta:
    """Linearised and studentised errors of a smooth function of sums."""

    def __init__(self, quantity: Arithmetic) -> None:
        self._f = quantity.evaluate
        parts = quantity.parts()
        self._divisors = quantity.divisors()
        self._theta = [one.values for one in parts]
        self._errors = [one.errors for one in parts]
        self._scale = [np.sqrt(np.mean(e**2, axis=0)) for e in self._errors]
        with np.errstate(divide="ignore", invalid="ignore"):
            self._work_out()

    def _work_out(self) -> None:
        slopes = self._slopes(self._theta)
        moved = sum(s * e for s, e in zip(slopes, self._errors, strict=True))
        self.deviations = np.sqrt(np.mean(np.square(moved), axis=0))
        self.linear = np.abs(moved) / np.where(self.deviations > 0, self.deviations, 1.0)
        drawn = [t + e for t, e in zip(self._theta, self._errors, strict=True)]
        there = self._slopes(drawn)
        variance = np.zeros((DRAWS, len(self.deviations)))
        for i, one in enumerate(there):
            for j, other in enumerate(there):
                variance += one * other * np.mean(self._errors[i] * self._errors[j], axis=0)
        away = np.abs(self._f(drawn) - self._f(self._theta))
        spread = np.sqrt(np.maximum(variance, 0))
        found = np.divide(away, spread, out=np.zeros_like(away), where=spread > 0)
        self.studentised = np.where(np.isfinite(found), found, np.inf)
        self.stable = self._keeps_signs(drawn) & np.isfinite(self.deviations)

    def _slopes(self, at: list[Any]) -> list[Any]:
        """Derivatives by each sum, by central differences."""
        found = []
        for k, scale in enumerate(self._scale):
            step = STEP * np.where(scale > 0, scale, 1.0)
            up, down = list(at), list(at)
            up[k], down[k] = at[k] + step, at[k] - step
            found.append((self._f(up) - self._f(down)) / (2 * step))
        return found

    def _keeps_signs(self, drawn: list[Any]) -> Any:
        """Whether no denominator changes its sign in any draw."""
        kept = np.ones(len(self._theta[0]), dtype=bool)
        for divides, theta, values in zip(self._divisors, self._theta, drawn, strict=True):
            if divides:
                kept &= np.all(values * np.sign(theta) > 0, axis=0)
        return kept


def _standard(sizes: Floats) -> Floats:
    """Sizes in units of their own root mean square."""
    scale = np.sqrt(np.mean(sizes**2, axis=0))
    return np.asarray(sizes / np.where(scale > 0, scale, 1.0))


def refuse_all_unbounded(ends: Ends, text: str) -> None:
    """Refuse an answer of which no group has a bounded interval."""
    bounded = np.isfinite(ends.low) | np.isfinite(ends.high)
    if bounded.any() or not any(ends.notes):
        return
    why = next(note for note in ends.notes if note)
    raise InferenceError(
        f"'{text}': {why}.",
        remedy="Ask for a larger group (fewer conditions, a coarser name after 'by'), for the "
        "count itself, or for a difference instead of a ratio.",
    )
