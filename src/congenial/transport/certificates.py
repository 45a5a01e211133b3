"""Certificates: what anybody can check without trusting the computation that found a distance.

A `Coupling` proves (W, delta)-closeness of two laws of finitely many cells: it moves mass of one
law to mass of the other, nothing moves further than W, and at most delta stays behind. A
`Dominance` proves it on the log scale, for delta = 0, and a `Translation` for laws of one family.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from congenial.data.arrays import Floats
from congenial.errors import GuaranteeError
from congenial.pairs.stated_laws import Law, StatedDiscrete
from congenial.privacy.guarantee import Basis

Norm = Literal["l1", "l2", "linf", "hamming"]
NORMS: tuple[Norm, ...] = ("l1", "l2", "linf", "hamming")


class Certificate(Protocol):
    """Something that proves a distance when it is verified.

    A distance that a search or a solver found is worth what its certificate proves: `verify` uses
    none of the code that found it.
    """

    def verify(self) -> bool:
        """Whether the proof holds."""


@dataclass(frozen=True, eq=False)
class Side:
    """One law as a coupling sees it: cells (or rows of points) and integer masses."""

    low: Floats
    high: Floats
    masses: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Coupling:
    """Pieces of mass `pieces[k]` moved from cell `pairs[k, 0]` on the left to `pairs[k, 1]`.

    Masses are integers out of `total`; whatever is not moved is coupled anyhow, further than
    `within`, and has probability at most `delta`.
    """

    left: Side
    right: Side
    pairs: npt.NDArray[np.int64]
    pieces: npt.NDArray[Any]
    total: int
    within: float
    delta: Fraction
    norm: Norm

    @property
    def unmatched(self) -> Fraction:
        """The probability that is not moved within the distance."""
        return 1 - Fraction(int(sum(self.pieces.tolist())), self.total)

    def lengths(self) -> Floats:
        """How far each piece moves at most, rounded up."""
        i, j = self.pairs.T
        forth = lengths(self.left.low[i], self.right.high[j], self.norm)
        if self.left.low is self.left.high and self.right.low is self.right.high:
            return forth
        return np.maximum(forth, lengths(self.left.high[i], self.right.low[j], self.norm))

    def verify(self) -> bool:
        """Whether no cell gives or takes more than it has, delta is kept, and nothing is too far.

        The first two are checked in integers, the third with distances that are rounded up.
        """
        spent = all(
            _within(side.masses, self.pairs[:, column], self.pieces)
            for column, side in enumerate((self.left, self.right))
        )
        positive = all(piece > 0 for piece in self.pieces.tolist())
        near = len(self.pieces) == 0 or float(self.lengths().max()) <= self.within
        return bool(spent and positive and near and self.unmatched <= self.delta)


@dataclass(frozen=True, eq=False)
class Dominance:
    """On the line, W_inf <= w exactly when F(x) <= G(x + w) and G(x) <= F(x + w) for every x.

    `left` and `right` are (points, level of the distribution function at each point), levels on
    a scale that keeps both tails, known within `error`.
    """

    left: tuple[Floats, Floats]
    right: tuple[Floats, Floats]
    within: float
    error: float

    def verify(self) -> bool:
        """Whether both inequalities hold at every jump, whatever the rounding was."""
        return self._below(self.left, self.right) and self._below(self.right, self.left)

    def _below(self, lower: tuple[Floats, Floats], upper: tuple[Floats, Floats]) -> bool:
        (x, f), (y, g) = lower, upper
        last = np.searchsorted(y, x + self.within, side="right") - 1
        last -= (y[last] > x) & (lengths(x, y[last], "l1") > self.within)  # x + w was rounded up
        if np.any(last < 0):
            return False
        return bool(np.all((g[last] == np.inf) | (f + self.error <= g[last])))


@dataclass(frozen=True)
class Translation:
    """The second law is the first one moved by `shift`; its mean moves by that too, so W_inf is
    |shift|.

    >>> Translation(shift=2.0, within=2.5).verify(), Translation(shift=3.0, within=2.5).verify()
    (True, False)
    """

    shift: float
    within: float

    def verify(self) -> bool:
        """Whether the shift is within the distance."""
        return abs(self.shift) <= self.within


@dataclass(frozen=True)
class ShiftedNormal:
    """Normal laws `gap` apart: no coupling moves 2 Phi((gap - w)/2 sd) - 1 of the mass within w.

    Two normal laws of standard deviation `sd` whose means differ by `gap`: the mass that cannot be
    moved within w is the total variation of laws gap - w apart, and `delta` bounds it.

    >>> ShiftedNormal(gap=1.0, sd=1.0, within=0.5, delta=0.2).verify()
    True
    >>> ShiftedNormal(gap=1.0, sd=1.0, within=0.5, delta=0.1).verify()
    False
    """

    gap: float
    sd: float
    within: float
    delta: float

    def verify(self) -> bool:
        """Whether that mass is at most delta."""
        far = max(0.0, self.gap - self.within) / (2 * self.sd)
        return math.erf(far / math.sqrt(2)) <= self.delta * (1 + 1e-9)


def lengths(x: Floats, y: Floats, norm: Norm) -> Floats:
    """Distances between rows (or numbers) x and y, never below the true ones.

    Exact for whole numbers under l1, l_inf and Hamming, and for l2 where the root is whole;
    otherwise rounded up in the last digits.
    """
    if x.ndim == 1:
        x, y = x[:, None], y[:, None]
    if norm == "hamming":
        return np.asarray(np.count_nonzero(x != y, axis=1), dtype=np.float64)
    gap = np.abs(x - y)
    raised = 1 + (x.shape[1] + 2) * 2.0**-52
    whole = bool(np.all(x == np.rint(x)) and np.all(y == np.rint(y)) and gap.max(initial=0) < 2**25)
    if norm == "l2" and x.shape[1] > 1:
        square = np.sum(gap**2, axis=1)
        root = np.sqrt(square)
        clean = whole & (square < 2.0**53) & (np.rint(root) ** 2 == square)  # below it: exact
        return np.asarray(np.where(clean, root, root * raised))
    distance = np.max(gap, axis=1) if norm == "linf" else np.sum(gap, axis=1)
    return np.asarray(distance if whole else _raised(x, y, distance, raised))


def _raised(x: Floats, y: Floats, found: Floats, raised: float) -> Floats:
    if x.shape[1] > 1:
        return found * raised
    high, low = np.maximum(x, y)[:, 0], np.minimum(x, y)[:, 0]
    rounded = high - found  # two-sum: what rounding lost decides about the next double
    with np.errstate(invalid="ignore"):
        lost = (high - (found + rounded)) + (rounded - low)
    return np.where(lost > 0, np.nextafter(found, np.inf), found)


def _within(masses: npt.NDArray[Any], cell: npt.NDArray[np.int64], pieces: Any) -> bool:
    """Whether the pieces at each cell add up to no more than its mass."""
    used = np.zeros(len(masses), dtype=object if pieces.dtype == object else np.int64)
    np.add.at(used, cell, pieces)
    return bool(np.all(used <= masses))


# ---- distance -----------------------------------------------------------------------------------
#
# A distance between two laws, with its footing and its proof.


@dataclass(frozen=True, eq=False)
class Distance:
    """The least W found, with its proof. `at_least`: no smaller W than this can do.

    `value` is infinite when no finite W couples the laws, or none that could be shown.
    """

    value: float
    at_least: float
    delta: Fraction
    norm: Norm
    empirical: bool = False
    prove: Callable[[], Certificate] | None = field(default=None, repr=False)

    @property
    def exact(self) -> bool:
        """Whether both bounds agree."""
        return self.value == self.at_least

    @property
    def basis(self) -> Basis:
        """A sample gives an estimate; a bracket gives a bound; otherwise it is proved."""
        if self.empirical:
            return "estimate"
        return "theorem" if self.exact else "numerical bound"

    @cached_property
    def certificate(self) -> Certificate:
        """The proof that the laws are (value, delta)-close."""
        self.require()
        assert self.prove is not None
        return self.prove()

    def require(self) -> float:
        """The value; GuaranteeError, with a remedy, when it is infinite."""
        if math.isfinite(self.value):
            return self.value
        if self.delta:
            raise GuaranteeError(
                f"no finite W makes the two distributions (W, {float(self.delta):g})-close.",
                remedy="Ask with a larger delta.",
            )
        raise GuaranteeError(
            "W_inf between the two distributions is infinite, or cannot be bounded from their "
            "quantiles.",
            remedy="Ask for (W, delta)-closeness with a small delta > 0.",
        )


def empirical(*laws: Law) -> bool:
    """Whether one of the laws is a sample.

    A distance between samples is an estimate, and a promise that rests on it says so.
    """
    return any(isinstance(law, StatedDiscrete) and law.empirical for law in laws)
