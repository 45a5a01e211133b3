"""Scenarios of a count or of a mean: disclosure rules, dependence bounds, and normal records.

partially-private-data, examples 1 and 2 and section 4.4, corrected (docs/errata).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from congenial.data.arguments import COUNT, FLAG, check_fields
from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.pairs.scenarios.scenarios import (
    Conditionals,
    Independence,
    Level,
    Query,
    Scenarios,
    no_query,
)
from congenial.pairs.scenarios.statistic_laws import StatedBinomial, probability, rational


@dataclass(frozen=True)
class CountRule:
    """A public property of a count out of n: it lies between `low(n)` and `high(n)`."""

    label: str
    share: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))
    margin: int = 0

    def range(self, n: int) -> tuple[int, int]:
        """The least and the greatest count that satisfies the rule."""
        low = max(self.margin, math.ceil(n * self.share[0]))
        return low, min(n - self.margin, math.floor(n * self.share[1]))

    def __call__(self, database: tuple[int, ...]) -> bool:
        """Whether the number of ones in the database satisfies it."""
        low, high = self.range(len(database))
        return low <= sum(one == 1 for one in database) <= high


def k_anonymity(k: int) -> CountRule:
    """Publicly known: both the count and the number of all others are at least k (Eq 18).

    k <= count <= n - k. The end points are known to all, so a count beside one of them can move
    in one direction only.
    """
    return CountRule(f"the count and its complement are {k} or more", margin=k)


def t_closeness(t: object, target: object) -> CountRule:
    """Publicly known: the share is within t of a public share (Eq 18).

    |count / n - target| <= t, with t and target rational numbers or text such as "1/20".
    """
    near, centre = probability(t, "t"), probability(target, "target")
    label = f"the share is within {near} of {centre}"
    return CountRule(label, (max(centre - near, Fraction(0)), min(centre + near, Fraction(1))))


@dataclass(frozen=True)
class BoundedCounts(Scenarios):
    """n independent yes-or-no answers, of which a disclosure rule is public (example 2).

    The class is every product law with chances strictly between 0 and 1, given low <= S <= high.
    Let K be the count without one person: log-concave, so that the count given "yes" (law of K + 1)
    is above the count given "no" (law of K) by 0 or 1: Delta is 1, and 0 if the rule fixes the
    count. Database-wise one further person may have to change, because K given its range moves by
    at most one and the others given K move by one record at a time: Delta is 2, and 1 when the rule
    excludes nothing. (The paper says that such rules never change Delta; see docs/errata.)
    """

    n: int
    rule: CountRule

    kind: ClassVar[str] = "bounded counts"

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, n=COUNT, rule=CountRule)
        low, high = self.rule.range(self.n)
        if self.n < 1 or low > high:
            raise GuaranteeError(
                f"no count of {self.n} people satisfies '{self.rule.label}'.",
                remedy="Correct the rule: what is known must be possible.",
            )

    @property
    def belief(self) -> str:
        """In words."""
        return f"the answers of {self.n} people are independent, except for what is public"

    @property
    def facts(self) -> tuple[str, ...]:  # type: ignore[override]
        """The rule."""
        return (self.rule.label,)

    @property
    def excluded(self) -> tuple[str, ...]:
        """All pairs, when the rule settles everybody's answer."""
        return ("every pair: the public rule fixes every answer",) if self._settled else ()

    @property
    def _settled(self) -> bool:
        low, high = self.rule.range(self.n)
        return high == 0 or low == self.n

    def conditionals(self, level: Level, query: Query | None = None) -> Iterator[Conditionals]:
        """One pair, of known distance."""
        no_query(query, self)
        if self._settled:
            return
        low, high = self.rule.range(self.n)
        if level == "query":
            known = 0 if low == high else 1
        else:
            known = 1 if (low, high) == (0, self.n) else 2
        yield Conditionals("one person's answer", self.kind, known=Fraction(known))

    def independence(self, blocks: Sequence[Collection[int]]) -> Independence:
        """Only if the rule excludes nothing."""
        del blocks
        return "blocks" if self.rule.range(self.n) == (0, self.n) else "none"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        low, high = (str(share) for share in self.rule.share)
        rule = {"label": self.rule.label, "share": [low, high], "margin": self.rule.margin}
        return {"kind": self.kind, "n": self.n, "rule": rule}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BoundedCounts:
        """Inverse of `to_dict`."""
        rule = data["rule"]
        low, high = (fraction(share) for share in rule["share"])
        return cls(data["n"], CountRule(rule["label"], (low, high), rule["margin"]))


@dataclass(frozen=True)
class DependentCounts(Scenarios):
    """A count of n yes-or-no answers that may depend on one person's (section 4.4, corrected).

    Given that person's answer the others are independent; the chance of a "yes" is p0 when that
    person says no and p1 when yes, z0 <= p0 <= p1 <= z1, perhaps different for each of the others.
    Delta is W_inf(Bin(n-1, z0), 1 + Bin(n-1, z1)): the extreme law lies below, or above, every
    other in the class. Database-wise the others are taken to be equally likely (one p0, one p1,
    which `alike` says in the belief): then a coupling of the counts gives nested sets of people,
    and Delta is the same.

    Blocks of people count as dependent: the others are independent once that one person's answer
    is known, but not once the answer of another one is, which is as much of a secret.
    """

    n: int
    z0: Fraction
    z1: Fraction
    alike: bool = False

    kind: ClassVar[str] = "dependent counts"

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, n=COUNT, alike=FLAG)
        for name in ("z0", "z1"):
            object.__setattr__(self, name, probability(getattr(self, name), name))
        if self.n < 1:
            raise GuaranteeError(f"a count of {self.n} people.", remedy="Give 1 or more.")
        if self.z0 > self.z1:
            raise GuaranteeError(
                f"z0 = {self.z0} is above z1 = {self.z1}: no chances satisfy z0 <= p0 <= p1 <= z1.",
                remedy="Exchange them.",
            )

    @property
    def belief(self) -> str:
        """In words."""
        return (
            f"given one person's answer the other {self.n - 1} are independent, each a yes with "
            f"chance {self.z0} or more after a no, and {self.z1} or less, but no smaller, after a "
            f"yes{', the same for all of them' if self.alike else ''}"
        )

    def conditionals(self, level: Level, query: Query | None = None) -> Iterator[Conditionals]:
        """The extreme pair of the class."""
        del level  # the coupling of counts is one of databases
        no_query(query, self)
        left, right = (
            StatedBinomial(self.n - 1, self.z0),
            StatedBinomial(self.n - 1, self.z1, shift=1),
        )
        yield Conditionals("one person's answer", f"z0 = {self.z0}, z1 = {self.z1}", left, right)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        told = {"kind": self.kind, "n": self.n, "z0": str(self.z0), "z1": str(self.z1)}
        return told | ({"alike": True} if self.alike else {})


@dataclass(frozen=True)
class ConditionalNormal(Scenarios):
    """The mean of n independent normal records, given a public figure Z normal with them (Eq 16).

    `variance` of a record, `public_variance` of Z, `with_record` = Cov(X_1, Z) and `with_mean` =
    Cov(Xbar, Z); a record moves by at most `diameter`. Given Z, the mean moves by
    |(s2 t2 / n - a b) / (s2 t2 - a^2)| times that, whatever the value of Z: the printed formula
    keeps z and lacks the absolute value (docs/errata).
    """

    n: int
    variance: Fraction
    public_variance: Fraction
    with_record: Fraction
    with_mean: Fraction
    diameter: Fraction

    kind: ClassVar[str] = "conditional normal"

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, n=COUNT)
        names = ("variance", "public_variance", "with_record", "with_mean", "diameter")
        for name in names:
            object.__setattr__(self, name, rational(getattr(self, name)))
        if self.n < 1 or self.variance <= 0 or self.public_variance <= 0 or self.diameter <= 0:
            raise GuaranteeError(
                "n, both variances and the diameter must be positive.", remedy="Correct them."
            )
        if self._left <= 0:
            raise GuaranteeError(
                "the public figure determines a record (Cov^2 = product of the variances).",
                remedy="Nothing is left to protect; check the covariance of a record with it.",
            )
        if self._determinant < 0:
            raise GuaranteeError(
                "no normal distribution has these covariances: their matrix has a negative "
                "eigenvalue.",
                remedy="Check the covariances of a record and of the mean with the public figure.",
            )

    @classmethod
    def given_several(
        cls,
        n: int,
        variance: object,
        public_covariance: Sequence[Sequence[object]],
        with_record: Sequence[object],
        with_mean: Sequence[object],
        diameter: object,
    ) -> ConditionalNormal:
        """The same with several public figures, of covariance T (Example 1 in full).

        With a and b the covariances of a record and of the mean with the figures, they count as
        one: a' T^-1 Z, the best guess of a record from them. The mean moves by
        |(s2 / n - b' T^-1 a) / (s2 - a' T^-1 a)| times the diameter.

        >>> one = ConditionalNormal.given_several(5, 4, [[3, 1], [1, 2]], [1, 1], [1, "0.5"], 2)
        >>> one.coefficient
        Fraction(2, 17)
        """
        s2, m = rational(variance), rational(variance) / n
        a, b = ([rational(v) for v in one] for one in (with_record, with_mean))
        by_a, by_b = _solved(public_covariance, [a, b])
        known, shared = _dot(a, by_a), _dot(b, by_a)
        if (m - _dot(b, by_b)) * (s2 - known) < (m - shared) ** 2:
            raise GuaranteeError(
                "no normal distribution has these covariances: their matrix has a negative "
                "eigenvalue.",
                remedy="Check the covariances of a record and of the mean with the public figures.",
            )
        if not known:
            return cls(n, s2, Fraction(1), Fraction(0), Fraction(0), rational(diameter))
        return cls(n, s2, known, known, shared, rational(diameter))

    @property
    def _left(self) -> Fraction:
        """Determinant of the covariance of (X_1, Z)."""
        return self.variance * self.public_variance - self.with_record**2

    @property
    def _determinant(self) -> Fraction:
        """Determinant of the covariance of (Xbar, X_1, Z); Var Xbar = Cov(Xbar, X_1) = s2 / n."""
        m, a, b = self.variance / self.n, self.with_record, self.with_mean
        inner = m * self.public_variance - a * b
        return m * self._left - m * inner + b * (m * a - self.variance * b)

    @property
    def coefficient(self) -> Fraction:
        """By how much the mean moves with one record, given the public figure."""
        top = self.variance * self.public_variance / self.n - self.with_record * self.with_mean
        return top / self._left

    @property
    def belief(self) -> str:
        """In words."""
        return (
            f"{self.n} records and the public figure are jointly normal (variances "
            f"{self.variance} and {self.public_variance}, covariance {self.with_record} with a "
            f"record and {self.with_mean} with the mean)"
        )

    def conditionals(self, level: Level, query: Query | None = None) -> Iterator[Conditionals]:
        """Two values of one record, as far apart as they can be: a translation."""
        no_query(query, self)
        if level == "database":
            raise GuaranteeError(
                "with normal records all records can differ at once, so databases cannot be "
                "compared.",
                remedy="Use level 'query'.",
            )
        known = abs(self.coefficient) * self.diameter
        yield Conditionals(f"two values {self.diameter} apart", self.kind, known=known)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        names = ("variance", "public_variance", "with_record", "with_mean", "diameter")
        return {"kind": self.kind, "n": self.n} | {name: str(getattr(self, name)) for name in names}


def _dot(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))


def _solved(
    matrix: Sequence[Sequence[object]], sides: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]]:
    """T^-1 v for each v of `sides`, in rationals; refused unless T is positive definite."""
    size = len(matrix)
    rows = [[rational(v) for v in row] for row in matrix]
    square = all(len(row) == size for row in rows) and all(len(v) == size for v in sides)
    if not size or not square or [list(row) for row in zip(*rows, strict=True)] != rows:
        raise GuaranteeError(
            "the covariance of the public figures is not a symmetric matrix with one row per "
            "figure.",
            remedy="Give one row and one column for each figure, and one covariance of each with a "
            "record and with the mean.",
        )
    work = [row + [side[i] for side in sides] for i, row in enumerate(rows)]
    for k in range(size):
        if work[k][k] <= 0:  # a pivot without exchange: its sign is that of a leading minor
            raise GuaranteeError(
                "the covariance of the public figures is not positive definite.",
                remedy="Leave out figures that the others determine, and check the rest.",
            )
        work[k] = [v / work[k][k] for v in work[k]]
        for i in range(size):
            if i != k:
                work[i] = [v - work[i][k] * w for v, w in zip(work[i], work[k], strict=True)]
    return [[work[i][size + j] for i in range(size)] for j in range(len(sides))]
