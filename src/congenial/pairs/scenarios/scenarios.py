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
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

from congenial.data.arguments import NAMES, TEXT, Rule, check_fields, expect
from congenial.errors import BundleError, GuaranteeError
from congenial.pairs.scenarios.statistic_laws import (
    Law,
    StatedDiscrete,
    StatedLogDiscrete,
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
        known = Fraction(1) if level == "database" else self.sensitivity
        yield Conditionals(SECRET_WORDS[self.secrets], self.kind, known=known)

    def independence(self, blocks: Sequence[Collection[int]]) -> Independence:
        """Always."""
        del blocks
        return "blocks"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        told = None if self.sensitivity is None else str(self.sensitivity)
        return {"kind": self.kind, "secrets": self.secrets, "sensitivity": told}


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
        told = {"told": self.told, "secrets": self.secrets, "facts": list(self.facts)}
        return {"kind": self.kind, "digest": self.digest} | told

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StatedLaws:
        """Inverse of `to_dict`, without the laws."""
        return cls(**{**data, "facts": tuple(data["facts"])})


def _fingerprint(law: Law) -> str:
    if isinstance(law, StatedDiscrete | StatedLogDiscrete):
        masses = law.masses if isinstance(law, StatedDiscrete) else law.logs
        return f"{law.points.tolist()} {masses.tolist()}"
    return repr(law)


def read_scenarios(data: Mapping[str, Any]) -> Scenarios:
    """Inverse of `Scenarios.to_dict`; laws that were not written down stay away."""
    from congenial.pairs.scenarios import count_rules, finite_scenarios

    kinds = (
        IndependentRecords,
        StatedLaws,
        count_rules.BoundedCounts,
        count_rules.DependentCounts,
        count_rules.ConditionalNormal,
        finite_scenarios.FiniteScenarios,
    )
    for kind in kinds:
        if data["kind"] == kind.kind:
            told = {key: value for key, value in data.items() if key != "kind"}
            return kind.from_dict(told)
    raise BundleError(
        f"this version of congenial does not know scenarios of kind {data['kind']!r}.",
        remedy="Use the version of congenial named in the bundle.",
    )


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
