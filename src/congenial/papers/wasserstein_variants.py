"""The Wasserstein exponential mechanism in forms that no plan offers: any loss on a finite range,
real numbers on a public grid, and the promise of two releases.

partially-private-data, Theorem 9 and Lemmas 6 and 7, with errata.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import ctx

from congenial.data.arguments import (
    CALL,
    COUNT,
    EXACT,
    EXACT_NUMBER,
    INTEGER,
    REAL,
    SEQUENCE,
    check_fields,
    expect,
    listed,
    optional,
    pairs_of,
    takes,
)
from congenial.data.arrays import Floats, Ints
from congenial.errors import DataError, GuaranteeError, StructureError
from congenial.mechanisms.wasserstein.base_measure import naive
from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.mechanisms.wasserstein.secret_promise import CITATION, usable
from congenial.pairs.secrets import SecretPairs, may_add
from congenial.pairs.stated_laws import rational
from congenial.privacy.guarantee import BASES, Guarantee
from congenial.privacy.numbers import above
from congenial.privacy.tradeoff import Pure
from congenial.sampling.exact_decisions import ball, pick
from congenial.sampling.randomness import Randomness
from congenial.transport.delta_z import DistanceBound

_MOST = 10_000  # points of a range


@dataclass(frozen=True, eq=False)
class FiniteRange:
    """Any loss on a finite range: p(y | x) ~ base(y) exp(-rate loss(y, x)), y over `points`, x over
    `states`.

    The range is public and small, so the normaliser of every state is known, and the constant c of
    Theorem 9 need not be 2: the rate may be raised until the largest loss over all pairs Delta_z
    apart, normalisers included, is epsilon. Draws are exact, decided in ball arithmetic.

    losses: rational, one row per state, one column per point. base: positive weights, uniform if
    None. near: pairs of states that Delta_z may bring together. At rate epsilon / (2 sigma), or at
    the `largest_rate`, log p(y | x) differs by at most epsilon between near states: epsilon given
    the public figures, for the scenarios behind Delta_z. A loss that never changes between near
    states is refused: it asks for no noise.

    >>> from congenial.sampling import SeededRandomness
    >>> ages = [0, 10, 20, 30]
    >>> law = FiniteRange.of(ages, ages, lambda y, x: abs(y - x), lambda a, b: abs(a - b), 10)
    >>> law.theorem_rate(1), law.worst_loss(law.theorem_rate(1)) < 1
    (Fraction(1, 20), True)
    >>> len(law.draw(2, law.largest_rate(1), SeededRandomness(1), 5))
    5
    """

    losses: tuple[tuple[Fraction, ...], ...]
    near: tuple[tuple[int, int], ...]
    base: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        table, near = listed(listed(EXACT_NUMBER)), pairs_of(INTEGER, INTEGER)
        check_fields(self, StructureError, losses=table, near=near, base=listed(EXACT))
        states, points = len(self.losses), len(self.base)
        if not states or not points or any(len(row) != points for row in self.losses):
            raise StructureError(
                "the losses are not one row per state with one column per base weight.",
                remedy="Build the table with FiniteRange.of.",
            )
        if any(not 0 <= i < states for pair in self.near for i in pair):
            raise StructureError(
                f"a near state is not in 0 .. {states - 1}.", remedy="Number the states from 0."
            )

    @classmethod
    @takes(
        StructureError,
        points=SEQUENCE,
        states=SEQUENCE,
        loss=CALL,
        distance=CALL,
        delta_z=REAL,
        base=optional(SEQUENCE),
    )
    def of(
        cls,
        points: Sequence[Any],
        states: Sequence[Any],
        loss: Callable[[Any, Any], object],
        distance: Callable[[Any, Any], float],
        delta_z: float,
        base: Sequence[object] | None = None,
    ) -> FiniteRange:
        """Evaluate a loss (y, x) everywhere; near states are those with distance <= delta_z."""
        if not len(points) or not len(states) or len(points) * len(states) > _MOST**2 // 10:
            raise StructureError(
                f"{len(points)} points and {len(states)} states cannot be enumerated.",
                remedy="Use a built-in loss, or a coarser range.",
            )
        table = tuple(tuple(rational(loss(y, x)) for y in points) for x in states)
        weights = (
            tuple(rational(w) for w in base) if base is not None else (Fraction(1),) * len(points)
        )
        if any(w <= 0 for w in weights) or len(weights) != len(points):
            raise StructureError("base weights must be positive, one per point.")
        n = len(states)
        near = tuple(
            (i, j)
            for i in range(n)
            for j in range(n)
            if i != j and distance(states[i], states[j]) <= delta_z
        )
        return cls(table, near, weights)

    @property
    def sigma(self) -> Fraction:
        """The largest change of the loss over near states (Theorem 9)."""
        changes = (
            abs(a - b)
            for i, j in self.near
            for a, b in zip(self.losses[i], self.losses[j], strict=True)
        )
        return max(changes, default=Fraction(0))

    def worst_loss(self, rate: Fraction) -> float:
        """max over near pairs and points of log p(y | x) / p(y | x'), to about 1e-12."""
        logs = self.log_density(rate)
        return max((float((logs[i] - logs[j]).max()) for i, j in self.near), default=0.0)

    def theorem_rate(self, epsilon: object) -> Fraction:
        """epsilon / (2 sigma)."""
        if self.sigma == 0:
            raise GuaranteeError("the loss never changes: no noise is asked for.")
        return rational(epsilon) / (2 * self.sigma)

    def largest_rate(self, epsilon: object) -> Fraction:
        """A rate as large as enumeration allows, never below Theorem 9's; rounded down.

        Bisection; every rate that is taken is checked.
        """
        target = rational(epsilon)
        low = self.theorem_rate(target)
        high = 2 * low
        while self._fits(high, target) and high < 2**20 * low:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._fits(middle, target) else (low, middle)
        return low

    def _fits(self, rate: Fraction, epsilon: Fraction) -> bool:
        return self.worst_loss(rate) <= float(epsilon) * (1 - 1e-11)

    def log_density(self, rate: Fraction) -> Floats:
        """log p(y | x), one row per state."""
        losses = np.array([[float(rate * v) for v in row] for row in self.losses])
        logs = np.log([float(w) for w in self.base]) - losses
        top = logs.max(axis=1, keepdims=True)
        return np.asarray(logs - top - np.log(np.exp(logs - top).sum(axis=1, keepdims=True)))

    def draw(self, state: int, rate: Fraction, randomness: Randomness, n: int) -> Ints:
        """n exact draws of the number of a point: smallest k with F(k) > U, U refined lazily."""

        @cache
        def weights(precision: int) -> list[Any]:  # noqa: ARG001 - part of the key
            both = zip(self.base, self.losses[state], strict=True)
            return [ball(w) * ball(-rate * v).exp() for w, v in both]

        drawn = [
            pick(randomness.word(), 64, lambda: weights(ctx.prec), randomness) for _ in range(n)
        ]
        return np.array(drawn, dtype=np.int64)


LARGEST = 2**52  # grid points whose number is exact as a double


@dataclass(frozen=True, eq=False)
class WassersteinReals:
    """Vectors of `dimension` real numbers; `bound` is Delta_z in the norm of the loss, l1 or l2.

    p(y | x) ~ exp(-epsilon ||y - T(x)|| / sigma) on the multiples of a public unit. T(x) is rounded
    to the grid first, which may move two values apart by one unit in every coordinate, so Delta_z
    grows by that much and nothing is lost to floating point: the promise is about the law that is
    drawn. No sign and no prior, so the normaliser is constant and c = 1 (Theorem 9). A tenth of the
    noise is fine enough a `unit`, and a finer one costs nothing.
    """

    pairs: SecretPairs
    bound: DistanceBound
    epsilon: Fraction
    unit: Fraction
    dimension: int = 1

    def __post_init__(self) -> None:
        fields = {"pairs": SecretPairs, "bound": DistanceBound}
        check_fields(self, GuaranteeError, **fields, dimension=COUNT)
        for field in ("epsilon", "unit"):
            object.__setattr__(self, field, rational(getattr(self, field)))
        if self.unit <= 0 or self.dimension < 1:
            raise GuaranteeError(
                f"a grid of unit {self.unit} in {self.dimension} dimensions.",
                remedy="Give a positive unit and at least one dimension.",
            )
        if self.bound.measure not in ("l1", "l2"):
            raise GuaranteeError(
                f"Delta_z in {self.bound.measure} does not bound a loss on the reals.",
                remedy="Compute delta_z at level 'query' in l1 or l2.",
            )
        _ = self.on_grid  # refuses a bound that cannot be used

    @cached_property
    def on_grid(self) -> WassersteinExponential:
        """The mechanism on whole numbers of units."""
        loss = "l2" if self.bound.measure == "l2" else "l1"
        many = self.dimension if loss == "l1" else math.isqrt(self.dimension - 1) + 1
        reach = usable(self.bound) / self.unit + many
        whole = replace(self.bound, value=above(reach))
        base = naive(self.dimension)
        return WassersteinExponential(self.pairs, whole, base, self.epsilon, loss)  # type: ignore[arg-type]

    @property
    def guarantee(self) -> Guarantee:
        """epsilon given the public figures; rounding to the grid is inside it."""
        assumptions = (
            f"values are multiples of {self.unit}, and Delta_z = {self.bound.value:g} in "
            f"{self.bound.measure} before rounding"
        )
        inner = self.on_grid.guarantee
        return replace(inner, assumptions=(*inner.assumptions, assumptions))

    def rounded(self, statistic: npt.ArrayLike) -> Ints:
        """The nearest grid point, in units."""
        values = np.atleast_1d(np.asarray(statistic, dtype=float))
        far = np.abs(values) > float(LARGEST * self.unit)
        if values.shape != (self.dimension,) or np.any(far | ~np.isfinite(values)):
            raise DataError(
                f"the statistic is not a vector of {self.dimension} numbers near the grid.",
                remedy="Give finite numbers, one per coordinate, or a larger unit.",
            )
        return np.array([round(Fraction(v) / self.unit) for v in values.tolist()], dtype=np.int64)

    def draw(self, statistic: npt.ArrayLike, randomness: Randomness, draws: int) -> Floats:
        """Draws of y, shape (draws, dimension): independent and exact, but for the l2 loss."""
        units = self.on_grid.draw(self.rounded(statistic), randomness, draws)
        return np.asarray(units * float(self.unit))

    def log_density(self, y: npt.ArrayLike, statistic: npt.ArrayLike) -> Any:
        """log p(y | x) of grid points (..., dimension)."""
        units = np.rint(np.asarray(y, dtype=float) / float(self.unit)).astype(np.int64)
        return self.on_grid.log_density(units, self.rounded(statistic))

    def release(
        self, statistic: npt.ArrayLike, randomness: Randomness | None = None, name: str = "release"
    ) -> ValuesRelease:
        """Draw once: the only call that spends privacy."""
        drawn = self.on_grid.release(self.rounded(statistic), randomness, name)
        law = {"rate": str(self.on_grid.rate), "loss": self.on_grid.loss, "unit": str(self.unit)}
        return replace(
            drawn,
            description=replace(drawn.description, law=law),
            guarantee=self.guarantee,
            values=tuple(v * float(self.unit) for v in drawn.values),
        )


@takes(GuaranteeError, one=Guarantee, other=Guarantee)
def joint_promise(
    one: Guarantee,
    other: Guarantee,
    blocks: tuple[Collection[int], Collection[int]] | None = None,
) -> Guarantee:
    """Two releases with independent noise, each with a promise given the public figures.

    By the corrected rule (Lemmas 6 and 7 as printed are false): losses add, the larger one counts,
    or GuaranteeError; `congenial.pairs.may_add` says which and why. `blocks` are the people
    (numbered from 0) whose records each release looks at, if they are disjoint.
    """
    for promise in (one, other):
        expect(promise.tradeoff, Pure, "what is promised", "Give pure promises.", GuaranteeError)
    rule = may_add(one.adjacency, other.adjacency, blocks).require().rule  # type: ignore[arg-type]
    losses = [Fraction(promise.tradeoff.eps) for promise in (one, other)]  # type: ignore[attr-defined]
    return Guarantee(
        one.adjacency,
        Pure(sum(losses) if rule == "add" else max(losses)),
        max(one.basis, other.basis, key=BASES.index),
        tuple(dict.fromkeys(one.assumptions + other.assumptions)),
        tuple(dict.fromkeys(one.not_covered + other.not_covered)),
        CITATION,
    )
