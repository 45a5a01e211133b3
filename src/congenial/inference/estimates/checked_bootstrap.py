"""Any function of the table: a bootstrap with the public noise, bias-corrected and checked.

R = f(z + noise) - f(z) at the estimate z stands for f(estimate) - f(truth). Its mean is the bias
that is taken out, the quantile of |R - mean| how far the interval reaches. That assumes the law of
R to be the same at the estimate and at the truth. The check puts the estimate in the truth's place:
new estimates z + noise, an interval from each, made in the same way; the reach is widened until
f(z) is inside as often as the level says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.errors import InferenceError
from congenial.inference.estimates.cell_estimates import DRAWS, CellEstimates, Floats, Weights
from congenial.inference.estimates.interval_cover import IntervalCover
from congenial.inference.estimates.quantities import NOBODY, Ends, Quantity

METHOD = "bootstrap with the public noise, bias-corrected, widened until its check held"
USED = 1_000  # simulated tables
CHECKED = 200  # estimates of the check
INNER = 100  # simulated tables for each of them


@dataclass(frozen=True, eq=False)
class CheckedFunction(Quantity):
    """A function of the sums `weights`: arrays (n, *shape) to numbers (n, groups)."""

    source: CellEstimates
    weights: Weights
    shape: tuple[int, ...]
    function: Callable[[Floats], Floats]
    within: tuple[float, float] = (-np.inf, np.inf)  # where the truth must lie

    @cached_property
    def _estimate(self) -> Floats:
        return np.asarray(self.weights @ self.source.cells).reshape(self.shape)

    @cached_property
    def _errors(self) -> Floats:
        errors = self.source.errors(self.weights)[: USED + CHECKED]
        return np.asarray(errors.reshape(len(errors), *self.shape))

    @cached_property
    def _seen(self) -> Floats:
        return np.asarray(self.function(self._estimate[None])[0])

    @cached_property
    def _away(self) -> Floats:
        """R for every simulated table, (USED, groups)."""
        found = self.function(self._estimate + self._errors[:USED]) - self._seen
        return np.where(np.isfinite(found), found, 0.0)

    @cached_property
    def values(self) -> Floats:
        """f(z) less its simulated bias."""
        return np.asarray(np.clip(self._centre, *self.within))

    @property
    def _centre(self) -> Floats:
        return np.asarray(self._seen - self._away.mean(axis=0))

    def sizes(self) -> Floats:
        """|R - bias|."""
        found = np.abs(self._away - self._away.mean(axis=0))
        return np.asarray(np.resize(found, (DRAWS, found.shape[1])))

    @property
    def deviations(self) -> Floats:
        """Standard deviation of R."""
        return np.asarray(self._away.std(axis=0))

    def ends(self, cover: IntervalCover) -> Ends:
        """Around the corrected value, as far as the check asks for."""
        reach = cover.reach(self.sizes()) * self._widening(cover)
        none = np.isnan(self._seen)
        notes = [NOBODY if missing else "" for missing in none]
        low, high = (np.clip(self._centre + s * reach, *self.within) for s in (-1, 1))
        return Ends(low, high, [METHOD] * len(notes), notes)

    def _widening(self, cover: IntervalCover) -> Floats:
        """By what the reach must be multiplied for intervals of new estimates to cover f(z)."""
        sure = cover.level + np.sqrt(cover.level * (1 - cover.level) / CHECKED)
        rank = min(int(np.ceil(sure * CHECKED)), CHECKED) - 1
        needed = np.ones((CHECKED, len(self._seen)))
        inner = self._errors[:INNER]
        for i in range(CHECKED):
            drawn = self._estimate + self._errors[USED + i]
            seen = self.function(drawn[None])[0]
            away = np.nan_to_num(self.function(drawn + inner) - seen)
            bias = away.mean(axis=0)
            reach = np.quantile(np.abs(away - bias), cover.level, axis=0)
            off = np.abs(np.nan_to_num(seen) - bias - np.nan_to_num(self._seen))
            needed[i] = np.divide(off, reach, out=np.ones_like(off), where=reach > 0)
        return np.asarray(np.maximum(np.sort(needed, axis=0)[rank], 1.0))


def function_of_table(source: CellEstimates, function: Callable[[Any], Any]) -> CheckedFunction:
    """A Python function of the table, which takes counts (floats, perhaps negative) by axis."""
    shape = tuple(axis.size for axis in source.schema.axes(source.axes))

    def each(tables: Floats) -> Floats:
        return np.stack([_number(function(one)) for one in tables])

    identity = sp.eye_array(source.cells.size, format="csr")
    return CheckedFunction(source, identity, shape, each)


def _number(found: Any) -> Floats:
    try:
        numbers = np.atleast_1d(np.asarray(found, dtype=float))
    except (TypeError, ValueError):
        numbers = None
    if numbers is None or numbers.ndim != 1:
        raise InferenceError(
            "the function does not return a number.",
            remedy="Return a number, or a one-dimensional array of numbers.",
        )
    return numbers
