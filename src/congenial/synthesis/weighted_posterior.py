"""Exact draws from a weighted posterior on a finite Theta, by rejection.

Both laws have weights exp(e_j) with e_j known exactly as rational numbers, and use one primitive.
Whole numbers w_j >= K exp(e_j - r) are computed in doubles, rounded up with room to spare (r and K
are constants). Propose j with probability w_j / sum w, which is exact with whole numbers; accept it
with probability K exp(e_j - r) / w_j <= 1, which ball arithmetic decides exactly against a lazily
refined uniform. Accepted proposals have probability ~ exp(e_j): H = 0. Nearly all
proposals are accepted. No inverse of a distribution function in doubles is involved: it would have
holes where probabilities are small.

Time depends a little on the data (how many proposals were needed). That is not covered by a promise
about what is published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.errors import GuaranteeError
from congenial.sampling.exact_decisions import ball, happens
from congenial.sampling.randomness import Randomness, uniform_below

_ROOM = 1 + 2.0**-20  # covers every rounding error of a proposal weight, see `_check_size`
_LARGEST_LOG = 2.0**26  # log weights in doubles are then within 2^-25 of the exact ones
_TOTAL = 1 << 62  # proposal weights of one cell add up to less than this
_BATCH = 1 << 18  # cells proposed at a time
_LARGEST_LAW = 20_000_000  # cells times values of one composition


def refuse_large_law(cells: int, values: int) -> None:
    """Refuse a composition of so many cells with so many values each if no draw of it can end."""
    if cells * values > _LARGEST_LAW:
        raise GuaranteeError(
            f"{cells} categories with {values} values each are too many for one draw.",
            remedy="Use a higher floor, fewer steps, or coarser categories.",
        )


@dataclass(frozen=True, eq=False)
class Finite:
    """P(j) ~ exp(unit * total_j + log_prior_j) on j = 0 .. size - 1, drawn exactly.

    `total` are whole numbers, `unit` a rational, and log_prior the doubles as they are (dyadic
    rationals), so that every weight is a well-defined real number.
    """

    total: Ints
    log_prior: Floats
    unit: Fraction

    def __post_init__(self) -> None:
        if not np.isfinite(self.log_prior).all():
            raise GuaranteeError(
                "the prior is zero or undefined somewhere on Theta.",
                remedy="Leave out such points of Theta.",
            )

    @cached_property
    def _reference(self) -> int:
        return int(np.argmax(self.total * float(self.unit) + self.log_prior))

    @cached_property
    def log_weights(self) -> Floats:
        """Log weights relative to the (nearly) largest one, in doubles."""
        ahead = (self.total - self.total[self._reference]) * float(self.unit)
        return np.asarray(ahead + (self.log_prior - self.log_prior[self._reference]))

    @cached_property
    def log_probabilities(self) -> Floats:
        """log P(j)."""
        top = float(self.log_weights.max())
        return np.asarray(
            self.log_weights - top - np.log(np.exp(self.log_weights - top).sum()), dtype=float
        )

    def exact_log_weight(self, j: int) -> Fraction:
        """Log weight of j relative to the reference, exactly."""
        at = self._reference
        step = int(self.total[j]) - int(self.total[at])
        return self.unit * step + Fraction(self.log_prior[j]) - Fraction(self.log_prior[at])

    @cached_property
    def _proposal(self) -> tuple[Fraction, Ints, Ints]:
        """K, the weights w_j and their running sums, all below 2^62."""
        log_w = self.log_weights
        _check_size(log_w, self.log_prior)
        scale = float(_TOTAL >> (4 + log_w.size.bit_length()))
        weights = _upper(log_w, scale)
        return Fraction(scale), weights, np.cumsum(weights)

    def prepare(self) -> None:
        """Build what drawing needs; GuaranteeError where nothing exact can be built."""
        _ = self._proposal

    def draw(self, randomness: Randomness) -> int:
        """One exact draw of j."""
        scale, weights, running = self._proposal
        while True:
            u = uniform_below(int(running[-1]), randomness)
            j = int(np.searchsorted(running, u, side="right"))
            if happens(_log_ratio(self.exact_log_weight(j), scale, int(weights[j])), randomness):
                return j


@dataclass(frozen=True, eq=False)
class WeightedComposition:
    """P(c) ~ prod_l exp(unit * count_l * score(c_l) + log_prior(c_l)) on whole c with sum c = size.

    The lattice version of a Dirichlet law: probabilities c / size of `cells` levels, each at least
    low / size and at most high / size. `score` and `log_prior` run over low .. high.

    The cells are proposed independently and kept if they add up; the law given the sum does not
    change when every weight is multiplied by exp(-tilt * c), so a tilt that makes the expected sum
    right costs nothing and keeps about one proposal in 2.5 standard deviations of the sum.
    """

    counts: Ints
    score: Ints
    log_prior: Floats
    unit: Fraction
    low: int
    size: int

    @property
    def high(self) -> int:
        """Largest value of a cell."""
        return self.low + len(self.score) - 1

    def __post_init__(self) -> None:
        cells = len(self.counts)
        if not cells * self.low <= self.size <= cells * self.high:
            raise GuaranteeError(
                f"no probabilities of {cells} levels lie between {self.low}/{self.size} and "
                f"{self.high}/{self.size}.",
                remedy="Lower the floor or raise the ceiling.",
            )
        refuse_large_law(cells, len(self.score))

    def exact_log_weight(self, c: Ints) -> Fraction:
        """Log weight of a composition, exactly, up to a constant of the law."""
        places = c - self.low
        whole = sum(int(n) * int(self.score[at]) for n, at in zip(self.counts, places, strict=True))
        return self.unit * whole + sum((Fraction(self.log_prior[at]) for at in places), Fraction(0))

    @cached_property
    def _kinds(self) -> tuple[Ints, Ints]:
        """The different counts, and which of them each cell has: equal cells share one table."""
        kinds, of_cell = np.unique(self.counts, return_inverse=True)
        return kinds, of_cell.reshape(-1)

    def _log_weights(self, tilt: int) -> tuple[Ints, Ints, Floats]:
        """For each kind of cell and value: exact log weight in units, tilted; the place of the
        largest; log weights relative to it, in doubles.
        """
        values = np.arange(self.low, self.high + 1, dtype=np.int64)
        levels = self._kinds[0][:, None] * self.score[None, :] - tilt * values[None, :]
        best = np.argmax(levels * float(self.unit) + self.log_prior, axis=1)
        top = levels[np.arange(len(levels)), best]
        log_w = (levels - top[:, None]) * float(self.unit)
        return levels, best, log_w + (self.log_prior[None, :] - self.log_prior[best][:, None])

    @cached_property
    def _tilt(self) -> tuple[int, float]:
        """A tilt, in units, for which the expected sum is near the wanted one, and the sum's sd."""
        values = np.arange(self.low, self.high + 1, dtype=float)
        often = np.bincount(self._kinds[1])

        def moments(tilt: int) -> tuple[float, float]:
            log_w = self._log_weights(tilt)[2]
            p = np.exp(log_w - log_w.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            mean = p @ values
            spread = np.maximum(p @ values**2 - mean**2, 0.0)
            return float(often @ mean), float(np.sqrt(often @ spread))

        furthest = (1 << 61) // self.high  # tilt * value stays below 2^61
        reach = min(furthest, int(1 / (self.unit * self.size)) + 1)
        while reach < furthest and not moments(reach)[0] <= self.size <= moments(-reach)[0]:
            reach = min(furthest, 4 * reach)
        low, high = -reach, reach
        while True:
            middle = (low + high) // 2
            mean, sd = moments(middle)
            if abs(mean - self.size) <= 0.2 * sd or high - low <= 1:
                return middle, sd
            low, high = (middle, high) if mean > self.size else (low, middle)

    @cached_property
    def _proposal(self) -> tuple[list[Fraction], Ints, Ints, Ints, Ints]:
        """For each kind of cell: K, exact log weights, place of the largest, weights w, their
        running sums.
        """
        levels, best, log_w = self._log_weights(self._tilt[0])
        _check_size(log_w, self.log_prior)
        mass = np.exp(np.minimum(log_w, 1.0)).sum(axis=1)
        scale = (float(_TOTAL) * (1 - 2.0**-18) - 4.0 * log_w.shape[1]) / mass
        weights = np.stack([_upper(row, k) for row, k in zip(log_w, scale, strict=True)])
        running = np.cumsum(weights, axis=1)
        assert int(running[:, -1].max()) < _TOTAL
        return [Fraction(float(k)) for k in scale], levels, best, weights, running

    def prepare(self) -> None:
        """Build what drawing needs; GuaranteeError where nothing exact can be built."""
        _ = self._proposal

    def draw(self, randomness: Randomness) -> Ints:
        """One exact draw of c."""
        running, cells = self._proposal[-1], len(self.counts)
        rows = max(1, min(_BATCH // cells, 16 + int(8 * self._tilt[1])))
        while True:
            bits = (randomness.words(rows * cells) >> np.uint64(2)).astype(np.int64)
            pairs = zip(running[self._kinds[1]], bits.reshape(cells, rows), strict=True)
            places = np.stack([np.searchsorted(run, u, side="right") for run, u in pairs])
            # a place beyond the last one is the part of 2^62 that no value takes: not a proposal
            sound = (places < len(self.score)).all(axis=0)
            fits = sound & (places.sum(axis=0) == self.size - cells * self.low)
            for row in np.flatnonzero(fits):
                if self._accept(places[:, row], randomness):
                    return np.asarray(places[:, row] + self.low, dtype=np.int64)

    def _accept(self, places: Ints, randomness: Randomness) -> bool:
        scale, levels, best, weights, _ = self._proposal
        exact, constant, weight = Fraction(0), Fraction(1), 1
        for kind, at in zip(self._kinds[1], places, strict=True):
            exact += self.unit * (int(levels[kind, at]) - int(levels[kind, best[kind]]))
            exact += Fraction(self.log_prior[at]) - Fraction(self.log_prior[best[kind]])
            constant *= scale[kind]
            weight *= int(weights[kind, at])
        return happens(_log_ratio(exact, constant, weight), randomness)


def _upper(log_w: Floats, scale: float) -> Ints:
    """Whole numbers at least scale * exp(exact log weight), given log weights in doubles."""
    with np.errstate(under="ignore"):
        return (np.floor(np.exp(log_w) * (scale * _ROOM)) + 2).astype(np.int64)


def _check_size(log_w: Floats, log_prior: Floats) -> None:
    """The condition under which `_ROOM` covers all errors of `_upper`.

    A log weight is a product of two exact numbers and a few sums: its error is below 2^-51 times
    the sum of magnitudes, 2^-24 for magnitudes below 2^26; exp adds 2^-50. Far below, where
    magnitudes are larger, exp is 0 and the weight 2 exceeds the exact one.
    """
    near = log_w[log_w > -200]
    if np.abs(log_prior).max() > _LARGEST_LOG or np.abs(near).max(initial=0.0) > _LARGEST_LOG:
        raise GuaranteeError(
            "the log prior is too large for an exact draw.", remedy="Scale it below 2^26."
        )


def _log_ratio(exact: Fraction, scale: Fraction, weight: int) -> Callable[[], Any]:
    """The log of K exp(e) / w as a ball at the working precision of the moment."""
    factor = scale / weight
    return lambda: ball(exact) + ball(factor).log()
