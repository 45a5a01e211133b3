"""Laws of a statistic, as a scenario states them: what is believed, before anything is computed.

Five kinds. `StatedDiscrete` has exact integer masses (a pmf of fractions, or a sample);
`StatedLogDiscrete` has masses known as logarithms up to a relative error (a pmf of floats, or a
binomial with very many trials); `StatedBinomial`; `StatedNormal`; and `StatedContinuous`, given by
its quantile functions. How far apart two laws are is worked out in transport/.

A float is read as the decimal it prints (0.1 is 1/10). If the decimals of a pmf have at most 15
digits and add up to one exactly, they were meant and the law is exact; otherwise they were computed
and rounded, and distances count the rounding against you.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.arguments import (
    ARRAY,
    CALL,
    FINITE,
    FLAG,
    NUMBER,
    POSITIVE,
    REAL,
    TEXT,
    WHOLE,
    Rule,
    check_arguments,
    check_fields,
    either,
    expect,
    one_of,
    optional,
)
from congenial.data.arrays import Floats
from congenial.data.attribute import check_name
from congenial.data.rational import LARGEST, as_written, exact
from congenial.errors import GuaranteeError, StructureError

LARGEST_INT64 = 1 << 62  # masses below this are kept as machine integers
FLOAT_ERROR = 2.0**-40  # relative error allowed for masses that were computed in floats
_SUM_ERROR = 1e-9  # a pmf whose sum is further than this from one is a mistake, not rounding
_MOST_DECIMALS = 20_000  # longer pmfs of floats are not read digit by digit
_MOST_BITS = 10_000_000  # digits of an exact binomial pmf, all points together


@dataclass(frozen=True, eq=False)
class StatedDiscrete:
    """Finitely many points with integer masses; the probability of point i is masses[i] / total.

    `points` is (n,) and sorted, or (n, d). `empirical` marks a sample, of which every conclusion is
    an estimate. Points are the doubles they are; scale a statistic to whole numbers to have none
    rounded. Build it with `pmf` or `sample`.
    """

    points: Floats
    masses: npt.NDArray[Any]
    empirical: bool = False

    def __post_init__(self) -> None:
        arrays: dict[str, Rule | type] = {"points": np.ndarray, "masses": np.ndarray}
        check_fields(self, GuaranteeError, **arrays, empirical=FLAG)
        _check_points(self.points, len(self.masses))

    @cached_property
    def total(self) -> int:
        """The sum of the masses."""
        return int(self.masses.sum())

    @property
    def dimension(self) -> int:
        """Coordinates of a point."""
        return 1 if self.points.ndim == 1 else int(self.points.shape[1])

    def log_masses(self) -> Floats:
        """Logarithms of the probabilities, for comparison with a law on the log scale."""
        if self.masses.dtype != object:
            return np.asarray(np.log(self.masses) - math.log(self.total), dtype=np.float64)
        return np.array([math.log(m) for m in self.masses.tolist()]) - math.log(self.total)


@dataclass(frozen=True, eq=False)
class StatedLogDiscrete:
    """Points whose masses are known as logarithms, each within a relative `error`.

    Far tails keep their digits, which matters: the largest displacement sits there.
    """

    points: Floats
    logs: Floats
    error: float = FLOAT_ERROR

    def __post_init__(self) -> None:
        _check_points(self.points, len(self.logs))

    @property
    def dimension(self) -> int:
        """Coordinates of a point."""
        return 1 if self.points.ndim == 1 else int(self.points.shape[1])

    def log_masses(self) -> Floats:
        """Logarithms of the probabilities."""
        return self.logs


@dataclass(frozen=True)
class StatedBinomial:
    """`shift` plus the number of successes in n independent trials of probability p.

    P(shift + k) = C(n, k) p^k (1 - p)^(n - k), with rational p, so that distances are exact.
    """

    n: int
    p: Fraction
    shift: int = 0

    def __post_init__(self) -> None:
        expect(self.n, WHOLE, "n", "Give how many trials there are.", GuaranteeError)
        object.__setattr__(self, "p", probability(self.p, "p"))
        if self.n < 0:
            raise GuaranteeError(f"a binomial of {self.n} trials.", remedy="Give 0 or more.")

    def tabulated(self) -> StatedDiscrete | StatedLogDiscrete:
        """The pmf: exact integers, or logarithms when those would have too many digits."""
        a, b = self.p.numerator, self.p.denominator
        if a in (0, b):
            return pmf([self.shift + (self.n if a else 0)], [1])
        if self.n**2 * b.bit_length() > _MOST_BITS:
            return self._logarithmic()
        masses, term = [], (b - a) ** self.n
        for k in range(self.n + 1):
            masses.append(term)
            term = term * (self.n - k) * a // ((k + 1) * (b - a))
        return pmf(np.arange(self.n + 1.0) + self.shift, masses)

    def _logarithmic(self) -> StatedLogDiscrete:
        from scipy.special import gammaln

        k = np.arange(self.n + 1.0)
        largest = float(gammaln(self.n + 1.0))
        choose = largest - gammaln(k + 1) - gammaln(self.n - k + 1)
        yes, no = math.log(float(self.p)), math.log(float(1 - self.p))
        # every term is right within 8 units in its last place, and none passes these sizes
        size = 3 * largest + self.n * (abs(yes) + abs(no))
        return StatedLogDiscrete(
            k + self.shift,
            choose + k * yes + (self.n - k) * no,
            math.expm1(8 * size * 2.0**-52),
        )


@dataclass(frozen=True)
class StatedNormal:
    """The normal law with this mean and standard deviation.

    Two such laws with one sd are |mean - mean'| apart in every Wasserstein distance; with two,
    W_inf is infinite and only a distance with delta > 0 is finite.
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        for name in ("mean", "sd"):
            expect(getattr(self, name), NUMBER, name, "Give a number.", GuaranteeError)
            if isinstance(getattr(self, name), int) and abs(getattr(self, name)) > LARGEST:
                raise GuaranteeError(f"{name} is too large.", remedy="Give a number below 1e300.")
        if not (math.isfinite(self.mean) and 0 < self.sd < math.inf):
            raise GuaranteeError(
                f"a normal law with mean {self.mean} and standard deviation {self.sd}.",
                remedy="Both are finite, and the second is positive.",
            )


@dataclass(frozen=True)
class StatedContinuous:
    """A continuous law by its quantiles: `quantile(u)` from below, `upper_quantile(u)` from above.

    The two answer P(X <= x) = u and P(X >= x) = u, so that both tails keep their digits. They are
    taken to be right within `accuracy`, relative to the value and to the spread of the law.
    `family` names everything but the location: two laws of one family are translates of each other.
    """

    quantile: Callable[[Floats], Floats]
    upper_quantile: Callable[[Floats], Floats]
    support: tuple[float, float] = (-math.inf, math.inf)
    family: str = ""
    location: float = 0.0
    accuracy: float = 1e-9

    def __post_init__(self) -> None:
        ends = Rule(
            "two numbers, (low, high)",
            lambda one: (
                isinstance(one, list | tuple) and len(one) == 2 and all(map(REAL.holds, one))
            ),
        )
        called = {"quantile": CALL, "upper_quantile": CALL, "support": ends, "family": TEXT}
        check_fields(self, GuaranteeError, **called, location=FINITE, accuracy=POSITIVE)

    @classmethod
    def of(cls, frozen: Any) -> StatedContinuous:
        """From a frozen distribution of `scipy.stats`, for example `gamma(2, loc=1)`.

        Two laws made from one distribution with equal shapes and scale are one family.
        """
        if not hasattr(frozen, "isf") or hasattr(frozen, "pmf"):
            raise GuaranteeError(
                "this object is not a frozen continuous distribution.",
                remedy="Give for example scipy.stats.gamma(2), or a pmf for a discrete law.",
            )
        shapes, location, scale = frozen.dist._parse_args(*frozen.args, **frozen.kwds)
        low, high = frozen.support()
        family = f"{frozen.dist.name} {[float(s) for s in shapes]} {float(scale)!r}"
        return cls(frozen.ppf, frozen.isf, (float(low), float(high)), family, float(location))


Law = StatedDiscrete | StatedLogDiscrete | StatedBinomial | StatedNormal | StatedContinuous


def pmf(
    points: Mapping[Any, Any] | Sequence[Any] | npt.NDArray[Any],
    masses: Sequence[Any] | npt.NDArray[Any] | None = None,
) -> StatedDiscrete | StatedLogDiscrete:
    """A discrete law from points and their masses, or from a mapping of one to the other.

    Fractions and strings such as "1/3" are exact; integers are weights out of their sum. Points
    without mass are left out; masses that do not add up to one are refused.

    >>> law = pmf({0: "1/2", 3: "1/2"})
    >>> law.masses.tolist(), law.total
    ([1, 1], 2)
    """
    if isinstance(points, Mapping):
        masses, points = list(points.values()), list(points)
    if masses is None:
        raise GuaranteeError("a pmf has no probabilities.", remedy="Use `sample` for a sample.")
    expect(masses, (Sequence, np.ndarray), "masses", "Give a list of numbers.", GuaranteeError)
    where = _points(points)
    _check_points(where, len(masses))
    if _floats(masses) and len(masses) > _MOST_DECIMALS:
        return _rounded(where, np.asarray(masses, dtype=np.float64))
    shares = [rational(value) for value in masses]
    weights = all(isinstance(value, int | np.integer) for value in masses)
    total = sum(shares, Fraction(0)) if weights else Fraction(1)
    if any(value < 0 for value in shares) or not total:
        raise GuaranteeError(
            "a pmf has a negative probability, or none above 0.",
            remedy="Give probabilities of 0 or more, which add up to 1.",
        )
    if sum(shares, Fraction(0)) != total or any(_computed(value) for value in masses):
        return _rounded(where, np.array([float(value) for value in shares]))
    return _exact(where, shares)


def sample(points: Sequence[Any] | npt.NDArray[Any]) -> StatedDiscrete:
    """The empirical law of a sample: each draw has the same mass. Conclusions are estimates.

    What is calibrated to a sample has the basis "estimate" in its promise: no proof covers what
    the sample missed.

    >>> sample([1, 1, 3]).points.tolist()
    [1.0, 1.0, 3.0]
    """
    where = _points(points)
    if where.ndim == 1 and not np.all(where[1:] >= where[:-1]):
        where = np.sort(where)
    return StatedDiscrete(where, np.ones(len(where), dtype=np.int64), empirical=True)


def probability(value: object, name: str) -> Fraction:
    """Read a probability as a rational number; refused outside 0 .. 1."""
    number = rational(value)
    if not 0 <= number <= 1:
        raise GuaranteeError(f"{name} = {value} is not a probability.", remedy="Give 0 to 1.")
    return number


def rational(value: object) -> Fraction:
    """Read a number exactly; a float is the decimal it prints, not its binary neighbour."""
    try:
        return as_written(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise GuaranteeError(f"{value!r} is not a number.", remedy='Give a Fraction or "1/3".')


def _computed(value: object) -> bool:
    """Whether a float has more digits than a person writes."""
    return isinstance(value, float | np.floating) and float(f"{value:.15g}") != value


def _points(points: Any) -> Floats:
    try:
        where = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise GuaranteeError(
            "a distribution has points that are not numbers.",
            remedy="Give numbers, or rows of numbers.",
        ) from None
    if where.ndim not in (1, 2):
        raise GuaranteeError(
            "the points of a distribution are not a list.", remedy="Give a list of numbers."
        )
    if where.size and np.abs(where).max() >= 2.0**53:
        _check_whole(points, where)
    return where[:, 0] if where.ndim == 2 and where.shape[1] == 1 else where


def _check_whole(points: Any, where: Floats) -> None:
    """Refuse whole numbers that are not doubles: distances between them would be wrong."""
    stated = np.asarray(points, dtype=object).reshape(-1).tolist()
    for value, taken in zip(stated, where.reshape(-1).tolist(), strict=True):
        if isinstance(value, int | np.integer) and int(value) != taken:
            raise GuaranteeError(
                "a distribution has a whole number above 2^53, which cannot be stored exactly.",
                remedy="Subtract a public constant from the statistic.",
            )


def _check_points(points: Floats, masses: int) -> None:
    if points.ndim not in (1, 2) or len(points) != masses:
        raise GuaranteeError(
            f"a distribution has points of shape {points.shape} and {masses} masses.",
            remedy="Give one mass for each point; points in several dimensions are rows.",
        )
    if not points.size or not np.all(np.isfinite(points)):
        raise GuaranteeError(
            "a distribution has no points, or a point that is not a finite number.",
            remedy="Give at least one point; leave out what cannot be observed.",
        )


def _exact(where: Floats, masses: list[Fraction]) -> StatedDiscrete:
    common = math.lcm(*(value.denominator for value in masses))
    whole = [value.numerator * (common // value.denominator) for value in masses]
    shared = math.gcd(*whole)
    keep = [i for i, value in enumerate(whole) if value]
    if where.ndim == 1:
        keep.sort(key=lambda i: float(where[i]))
    kind = np.int64 if sum(whole) < LARGEST_INT64 * shared else object
    return StatedDiscrete(where[keep], np.array([whole[i] // shared for i in keep], dtype=kind))


def _rounded(where: Floats, masses: Floats) -> StatedLogDiscrete:
    """A pmf whose masses were computed in floating point: normalised, with a relative error."""
    total = float(masses.sum())
    if not abs(total - 1) <= _SUM_ERROR or np.any(masses < 0):
        raise GuaranteeError(
            f"the masses of a pmf add up to {total:.9g}, not to 1.",
            remedy="Give probabilities that add up to one, as fractions if they are known exactly.",
        )
    keep = np.flatnonzero(masses > 0)
    if where.ndim == 1:
        keep = keep[np.argsort(where[keep], kind="stable")]
    return StatedLogDiscrete(
        where[keep], np.log(masses[keep] / total), FLOAT_ERROR + abs(total - 1)
    )


def _floats(masses: Any) -> bool:
    """Whether masses are given in double precision."""
    try:
        return bool(np.asarray(masses).dtype.kind == "f")
    except ValueError:
        return False  # lists of different lengths: refused one by one


# ---- vector laws --------------------------------------------------------------------------------
#
# Laws of a vector of statistics: what one believes about the figures before the data are seen.
#
# A Gaussian law has a mean and a covariance, given by an expert or fitted; a discrete law has
# points and masses, given or sampled. Laws are public: a promise about them names them.


ROUNDING = Fraction(1, 10**9)  # masses whose sum is this close to 1 were rounded

WORTH = Rule("a number, 0 or more", lambda one: REAL.holds(one) and one >= 0)  # 0: not known
GAUSSIAN: dict[str, Rule | type] = {
    "mean": either(ARRAY, FINITE, np.ndarray),
    "covariance": either(ARRAY, FINITE, np.ndarray),
    "worth": optional(WORTH),
}
DISCRETE: dict[str, Rule | type] = {
    "points": ARRAY,
    "masses": optional(one_of(list, tuple, np.ndarray)),
}


@dataclass(frozen=True)
class VectorLaw(ABC):
    """The law of the statistics in one scenario, called `label`."""

    label: str

    @property
    @abstractmethod
    def mean(self) -> Floats:
        """Expected statistics."""

    @property
    @abstractmethod
    def covariance(self) -> Floats:
        """Covariance of the statistics."""

    @property
    def dimension(self) -> int:
        """Number of statistics."""
        return len(self.mean)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data."""

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> VectorLaw:
        """Inverse of `to_dict`."""
        if "points" in data:
            return DiscreteLaw.of(data["label"], data["points"], data["masses"])
        return GaussianLaw.of(data["label"], data["mean"], data["covariance"])


@dataclass(frozen=True)
class GaussianLaw(VectorLaw):
    """N(mean, covariance). `worth`: the number of independent datasets a fit is worth.

    None for a law that is given and not fitted. Build it with `GaussianLaw.of`. Only the error of
    the fit needs `worth`, before anything is drawn: no file has it.

    >>> GaussianLaw.of("p = 0.45", [100, 101], [[22, -6], [-6, 13]]).covariance.trace()
    np.float64(35.0)
    """

    centre: tuple[float, ...]
    spread: tuple[tuple[float, ...], ...]
    worth: float | None = None

    def __post_init__(self) -> None:
        check_name(self.label, "law")
        mean, covariance = np.array(self.centre), np.array(self.spread)
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
            raise StructureError(
                f"law {self.label!r}: the covariance does not have one row and column per "
                "statistic.",
                remedy="Give a square matrix with one row per statistic.",
            )
        finite = np.isfinite(mean).all() and np.isfinite(covariance).all()
        if not finite or not np.allclose(covariance, covariance.T, rtol=1e-9, atol=0):
            raise StructureError(
                f"law {self.label!r}: mean or covariance is not finite, or not symmetric.",
                remedy="Give finite numbers and a symmetric matrix.",
            )
        least = np.linalg.eigvalsh(covariance)[0] if len(mean) else 0.0
        if least < -1e-9 * max(1e-300, np.abs(covariance).max()):
            raise StructureError(
                f"law {self.label!r}: the covariance has a negative eigenvalue.",
                remedy="Give a positive definite matrix.",
            )

    @classmethod
    def of(cls, label: str, mean: Any, covariance: Any, worth: float | None = None) -> GaussianLaw:
        """From arrays; the covariance is symmetrised in the last digit."""
        arguments = {"mean": mean, "covariance": covariance, "worth": worth}
        check_arguments("GaussianLaw.of", arguments, GAUSSIAN, StructureError)
        spread = np.atleast_2d(np.asarray(covariance, dtype=np.float64))
        if spread.ndim == 2 and spread.shape[0] == spread.shape[1]:
            close = np.allclose(spread, spread.T, rtol=1e-9, atol=0)
            spread = (spread + spread.T) / 2 if close else spread
        centre = np.atleast_1d(np.asarray(mean, dtype=np.float64))
        return cls(label, tuple(centre.tolist()), tuple(map(tuple, spread.tolist())), worth)

    @cached_property
    def mean(self) -> Floats:
        """Expected statistics."""
        return _frozen(self.centre)

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the statistics."""
        return _frozen(self.spread)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "label": self.label,
            "mean": list(self.centre),
            "covariance": [list(row) for row in self.spread],
        }


@dataclass(frozen=True)
class DiscreteLaw(VectorLaw):
    """Finitely many points with masses that add up to one; build it with `DiscreteLaw.of`.

    >>> DiscreteLaw.of("mu", [1, 2, 3, 100], [0.6, 0.2, 0, 0.2]).mean.tolist()
    [21.0]
    """

    atoms: tuple[tuple[float, ...], ...]
    masses: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        check_name(self.label, "law")
        if not self.atoms or len(self.atoms) != len(self.masses):
            raise StructureError(
                f"law {self.label!r} has {len(self.atoms)} points and {len(self.masses)} masses.",
                remedy="Give one mass per point.",
            )
        if len({len(atom) for atom in self.atoms}) != 1 or not np.isfinite(self.points).all():
            raise StructureError(
                f"law {self.label!r}: its points differ in length or are not finite.",
                remedy="Give one finite number per statistic.",
            )
        if min(self.masses) < 0 or sum(self.masses) != 1:
            raise StructureError(
                f"law {self.label!r}: its masses are negative or do not add up to 1.",
                remedy="Give probabilities.",
            )

    @classmethod
    def of(cls, label: str, points: Any, masses: Sequence[Any] | None = None) -> DiscreteLaw:
        """From points (a sample if no masses are given); equal points are merged, zeros dropped.

        Masses are read exactly (0.1 is one tenth); a rounding gap of at most 1e-9 is scaled away.
        """
        arguments = {"points": points, "masses": masses}
        check_arguments("DiscreteLaw.of", arguments, DISCRETE, StructureError)
        table = np.asarray(points, dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        weights = [Fraction(1, max(1, len(table)))] * len(table)
        if masses is not None:
            weights = [Fraction(exact(each_mass, f"law {label!r}, masses")) for each_mass in masses]
        total = sum(weights, Fraction(0))
        if 0 < abs(total - 1) <= ROUNDING:
            weights = [weight / total for weight in weights]
        if len(weights) != len(table):
            return cls(label, tuple(map(tuple, table.tolist())), tuple(weights))
        merged: dict[tuple[float, ...], Fraction] = {}
        for atom, mass in zip(map(tuple, table.tolist()), weights, strict=True):
            if mass:
                merged[atom] = merged.get(atom, Fraction(0)) + mass
        return cls(label, tuple(merged), tuple(merged.values()))

    @cached_property
    def points(self) -> Floats:
        """The points, one row each."""
        return _frozen(self.atoms)

    @cached_property
    def probabilities(self) -> Floats:
        """The masses as floats."""
        return _frozen([float(mass) for mass in self.masses])

    @cached_property
    def mean(self) -> Floats:
        """Expected statistics."""
        return _frozen(self.probabilities @ self.points)

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the statistics."""
        centred = self.points - self.mean
        return _frozen((centred * self.probabilities[:, None]).T @ centred)

    @cached_property
    def exact_mean(self) -> tuple[Fraction, ...]:
        """Expected statistics without rounding: points are taken as the doubles they are."""
        columns = zip(*self.atoms, strict=True)
        return tuple(
            sum((m * Fraction(x) for m, x in zip(self.masses, column, strict=True)), Fraction(0))
            for column in columns
        )

    def shifted_to(self, other: DiscreteLaw) -> bool:
        """Whether `other` is this law translated, exactly: a point that is off tells them apart."""
        if len(self.atoms) != len(other.atoms):
            return False
        mine_sorted, two = (
            sorted(zip(law.atoms, law.masses, strict=True)) for law in (self, other)
        )
        first = _step(mine_sorted[0][0], two[0][0])
        return all(
            mine == theirs and _step(here, there) == first
            for (here, mine), (there, theirs) in zip(mine_sorted, two, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "label": self.label,
            "points": [list(atom) for atom in self.atoms],
            "masses": [f"{m.numerator}/{m.denominator}" for m in self.masses],
        }


def _step(one: Sequence[float], other: Sequence[float]) -> list[Fraction]:
    """other - one, without rounding."""
    return [Fraction(y) - Fraction(x) for x, y in zip(one, other, strict=True)]


def _frozen(values: Any) -> Floats:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array
