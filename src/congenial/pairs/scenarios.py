"""Scenarios: what somebody who knows the public figures may believe about the data (Theta_z).

A class of laws of the database given the public figures z. For each secret pair it yields the two
conditional laws a release must not tell apart: of the statistic (level "query") or of the whole
database (level "database", compared by the number of records that differ). An infinite class yields
the extreme pairs that decide its supremum, or the supremum itself where a proof gives it.

partially-private-data, Definition 3, equations 7 to 10, examples 1 and 2, section 4.4, with the
corrections of docs/errata: a pair of probability 0 or 1 is left out for that scenario only.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from congenial.data.arguments import COUNT, FLAG, NAMES, TEXT, Rule, check_fields, expect
from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.pairs.stated_laws import (
    Law,
    StatedBinomial,
    StatedDiscrete,
    StatedLogDiscrete,
    probability,
    rational,
)

Level = Literal["query", "database"]
LEVELS: tuple[Level, ...] = ("query", "database")
Secrets = Literal["replace-one", "presence"]
Independence = Literal["blocks", "given the secret", "none"]
Query = Callable[[tuple[int, ...]], Any]

SECRET_WORDS: dict[Secrets, str] = {
    "replace-one": "any two answers that one person may have given",
    "presence": "the absence of one person and the person's presence with any one record",
}


@dataclass(frozen=True, eq=False)
class Conditionals:
    """The two laws given either secret, or their distance where a proof gives it without them.

    `databases`: the laws are laws of databases, compared by the number of records that differ.
    """

    secret: str
    scenario: str
    left: Law | None = None
    right: Law | None = None
    known: Fraction | None = None
    databases: bool = False


class Scenarios(ABC):
    """A class of beliefs about the data given the public figures.

    The promise is about every belief of the class: for each pair of secrets, the law of the data
    given one and given the other must look alike in what is released. A belief outside the class
    is not covered, and the promise says so; `independence` says when losses add up.
    """

    kind: ClassVar[str]
    conditioned: ClassVar[bool] = False  # whether the laws are stated given everything public
    secrets: Secrets = "replace-one"
    facts: tuple[str, ...] = ()  # the public figures the class is conditioned on, in words

    @property
    @abstractmethod
    def belief(self) -> str:
        """The belief, as a clause after "believes that"."""

    @abstractmethod
    def conditionals(self, level: Level, query: Query | None = None) -> Iterator[Conditionals]:
        """The pairs of laws that decide the supremum over the class; none if it is vacuous."""

    @property
    def excluded(self) -> tuple[str, ...]:
        """Pairs left out because the scenario gives one of the secrets probability 0 or 1."""
        return ()

    def independence(self, blocks: Sequence[Collection[int]]) -> Independence:
        """Whether disjoint blocks of people are independent, of each other and of the rest.

        "blocks": given the public figures; "given the secret": once any one secret is known too.
        """
        del blocks
        return "none"

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data, with `kind`."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`, without the kind."""
        return cls(**data)


@dataclass(frozen=True)
class IndependentRecords(Scenarios):
    """All laws under which records are independent (equations 7 to 9).

    No public figures, but for the number of records where replaced records are the secret: given
    any other figure the records are not independent, and `SecretPairs` refuses them together.

    Two databases that differ in one record are then the worst there is: Delta is 1 database-wise,
    and the ordinary `sensitivity` of the statistic query-wise. A promise over this class is
    ordinary differential privacy: bounded for replace-one secrets, add-or-remove for presence ones.
    """

    belief = "the records of different people are independent"

    secrets: Secrets = "presence"
    sensitivity: Fraction | None = None

    kind: ClassVar[str] = "independent records"

    def __post_init__(self) -> None:
        check_secrets(self.secrets)
        if self.sensitivity is not None:
            object.__setattr__(self, "sensitivity", rational(self.sensitivity))

    def conditionals(self, level: Level, query: Query | None = None) -> Iterator[Conditionals]:
        """One pair: the record of one person changes, every other stays."""
        no_query(query, self)
        if level == "query" and self.sensitivity is None:
            raise GuaranteeError(
                "the ordinary sensitivity of the statistic is not stated.",
                remedy="Give IndependentRecords(sensitivity=...), or use level 'database'.",
            )
        distance = Fraction(1) if level == "database" else self.sensitivity
        yield Conditionals(SECRET_WORDS[self.secrets], self.kind, known=distance)

    def independence(self, blocks: Sequence[Collection[int]]) -> Independence:
        """Always."""
        del blocks
        return "blocks"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        sensitivity = None if self.sensitivity is None else str(self.sensitivity)
        return {"kind": self.kind, "secrets": self.secrets, "sensitivity": sensitivity}


def _stated(value: Any) -> bool:
    """Whether it is a label with a pair of laws."""
    if not isinstance(value, tuple) or len(value) != 3:
        return False
    label, left, right = value
    return isinstance(label, str) and isinstance(left, Law) and isinstance(right, Law)


STATED = Rule(
    "a tuple of stated pairs, each a label and two laws",
    lambda one: isinstance(one, tuple) and all(map(_stated, one)),
)


@dataclass(frozen=True)
class StatedLaws(Scenarios):
    """Pairs of laws of the statistic, stated by the user: pmfs, normal laws, or samples.

    `told` says in words what is believed, `facts` what is public. Samples make every conclusion an
    estimate. A bundle keeps the words and a digest of the laws.
    """

    told: str
    pairs: tuple[tuple[str, Law, Law], ...] = field(compare=False, repr=False, default=())
    secrets: Secrets = "replace-one"
    facts: tuple[str, ...] = ()
    digest: str = ""

    kind: ClassVar[str] = "stated laws"
    conditioned: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, told=TEXT, pairs=STATED, facts=NAMES, digest=TEXT)
        check_secrets(self.secrets)
        if self.pairs:
            text = "".join(_fingerprint(law) for _, *laws in self.pairs for law in laws)
            object.__setattr__(self, "digest", hashlib.sha256(text.encode()).hexdigest())

    @property
    def belief(self) -> str:
        """In words."""
        return self.told

    def conditionals(self, level: Level, query: Query | None = None) -> Iterator[Conditionals]:
        """The pairs as stated."""
        no_query(query, self)
        if level == "database":
            raise GuaranteeError(
                "the stated distributions are of a statistic, not of databases.",
                remedy="Use level 'query', or give a finite table of databases.",
            )
        if not self.pairs:
            raise GuaranteeError(
                "the file describes these scenarios in words only, without their distributions.",
                remedy="State them again.",
            )
        for label, left, right in self.pairs:
            yield Conditionals(label, self.told, left, right)

    def to_dict(self) -> dict[str, Any]:
        """Words and a digest: the laws themselves are not written down."""
        stated = {"told": self.told, "secrets": self.secrets, "facts": list(self.facts)}
        return {"kind": self.kind, "digest": self.digest} | stated

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StatedLaws:
        """Inverse of `to_dict`, without the laws."""
        return cls(**{**data, "facts": tuple(data["facts"])})


def _fingerprint(law: Law) -> str:
    if isinstance(law, StatedDiscrete | StatedLogDiscrete):
        masses = law.masses if isinstance(law, StatedDiscrete) else law.logs
        return f"{law.points.tolist()} {masses.tolist()}"
    return repr(law)


def check_secrets(secrets: str) -> None:
    """Refuse secrets of an unknown kind."""
    expect(secrets, str, "secrets", f"Use {' or '.join(SECRET_WORDS)}.", GuaranteeError)
    if secrets not in SECRET_WORDS:
        raise GuaranteeError(
            f"secrets = '{secrets}' is not known.", remedy=f"Use {' or '.join(SECRET_WORDS)}."
        )


def no_query(query: Query | None, scenarios: Scenarios) -> None:
    """Refuse a query where the scenarios are about one statistic of their own."""
    if query is not None:
        raise GuaranteeError(
            f"scenarios of kind '{scenarios.kind}' state the distribution of their own statistic.",
            remedy="Leave out the query, or give a finite table of databases.",
        )


# ---- count rules --------------------------------------------------------------------------------
#
# Scenarios of a count or of a mean: disclosure rules, dependence bounds, and normal records.
#
# partially-private-data, examples 1 and 2 and section 4.4, corrected (docs/errata).


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
        return low <= sum(answer == 1 for answer in database) <= high


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
            distance = 0 if low == high else 1
        else:
            distance = 1 if (low, high) == (0, self.n) else 2
        yield Conditionals("one person's answer", self.kind, known=Fraction(distance))

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
        stated = {"kind": self.kind, "n": self.n, "z0": str(self.z0), "z1": str(self.z1)}
        return stated | ({"alike": True} if self.alike else {})


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
        a, b = ([rational(v) for v in covariances] for covariances in (with_record, with_mean))
        by_a, by_b = _solved(public_covariance, [a, b])
        explained, shared = _dot(a, by_a), _dot(b, by_a)
        if (m - _dot(b, by_b)) * (s2 - explained) < (m - shared) ** 2:
            raise GuaranteeError(
                "no normal distribution has these covariances: their matrix has a negative "
                "eigenvalue.",
                remedy="Check the covariances of a record and of the mean with the public figures.",
            )
        if not explained:
            return cls(n, s2, Fraction(1), Fraction(0), Fraction(0), rational(diameter))
        return cls(n, s2, explained, explained, shared, rational(diameter))

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
        distance = abs(self.coefficient) * self.diameter
        yield Conditionals(f"two values {self.diameter} apart", self.kind, known=distance)

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


# ---- group means --------------------------------------------------------------------------------
#
# Normal records of which means are public: who is in which of them decides how far a mean moves.
#
# partially-private-data, Example 1, with the public figures a curator has: means of everybody or
# of groups, each known with a normal error. Records are independent with one variance s2, so with
# m_j people in group j and v_j the variance of its error
#
#     Cov(X_i, Z_j) = s2 / m_j for a member i, else 0;  Cov(Xbar, Z_j) = s2 / n;
#     Cov(Z_j, Z_k) = s2 |j and k| / (m_j m_k) + v_j [j = k].
#
# People of the same groups are alike: one `ConditionalNormal` for each kind of person.


@dataclass(frozen=True)
class PublicMean:
    """The mean of `people` of the records, public with an error of this variance."""

    label: str
    people: int
    variance: Fraction

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, label=TEXT, people=COUNT)
        object.__setattr__(self, "variance", rational(self.variance))
        if self.people < 1 or self.variance <= 0:
            raise GuaranteeError(
                f"'{self.label}' is a mean of {self.people} people with an error of variance "
                f"{self.variance}.",
                remedy="Give 1 or more people and a positive variance.",
            )


def given_means(
    n: int, variance: object, diameter: object, means: Sequence[PublicMean] = ()
) -> tuple[ConditionalNormal, ...]:
    """What is believed of each kind of person, by the public means that person is part of.

    Means are of everybody, or of groups with nobody in common.

    >>> everybody = PublicMean("last year", 4, 1)
    >>> [one.coefficient for one in given_means(4, 4, 1, [everybody])]
    [Fraction(1, 7)]
    """
    groups = [mean for mean in means if mean.people != n]
    outside = n - sum(mean.people for mean in groups)
    if outside < 0:
        raise GuaranteeError(
            f"the public means are of {n - outside} people in separate groups, but there are {n} "
            "people.",
            remedy="Name means of everybody, or of groups with nobody in common.",
        )
    members: list[PublicMean | None] = [*groups, *([None] if outside else [])]
    s2 = rational(variance)
    return tuple(dict.fromkeys(_one_kind(n, s2, rational(diameter), means, own) for own in members))


def _one_kind(
    n: int,
    s2: Fraction,
    diameter: Fraction,
    means: Sequence[PublicMean],
    own: PublicMean | None,
) -> ConditionalNormal:
    """The belief about a person who is in the group `own`, and in every mean of all."""
    if not means:
        return ConditionalNormal(n, s2, Fraction(1), Fraction(0), Fraction(0), diameter)
    with_record = [s2 / mean.people if mean.people == n or mean is own else 0 for mean in means]
    covariance = [[_covariance(n, s2, a, b) for b in means] for a in means]
    return ConditionalNormal.given_several(
        n, s2, covariance, with_record, [s2 / n] * len(means), diameter
    )


def _covariance(n: int, s2: Fraction, one: PublicMean, other: PublicMean) -> Fraction:
    """Of two public means: by the people who are in both, and the error of one with itself."""
    if one is other or n in (one.people, other.people):
        shared = s2 / max(one.people, other.people)
        return shared + (one.variance if one is other else 0)
    return Fraction(0)
