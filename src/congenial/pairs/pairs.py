"""Pairs: what must look alike. The one question every promise answers, whatever protects it.

An `Adjacency` relates databases; secret pairs relate what is believed given public information; and
pairs of distributions relate laws of a whole dataset. A guarantee needs no more of any of them than
is stated here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from congenial.data.schema import Schema
from congenial.errors import some_of
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.pairs.differences import Differences

Weighted = tuple[tuple[str, ...], Fraction]  # axes of a released table, weight of its norm
ROWS_OF_ONE_UNIT: Literal["rows of one unit"] = "rows of one unit"  # metric of `SeveralRows`
UNITS_WITH_ROWS: Literal["units with rows"] = "units with rows"  # metric of `TablesOfUnits`


OTHERS = (
    "guesses of people who know less about the others: with exact figures some may learn more than "
    "the limit above, for example somebody who is sure that a whole family answers alike"
)


@dataclass(frozen=True)
class Supremum:
    """A number with its footing: attained by some adjacent pair, or a proved upper bound.

    Sizes of groups that are not published are taken as large, which makes the number a bound. `by`
    says how it was found: "closed form", "enumeration", "Graver bound" or "integer programme".
    """

    value: Fraction
    exact: bool
    by: str = "closed form"

    @property
    def footing(self) -> str:
        """In words: "exact" or "upper bound"."""
        return "exact" if self.exact else "upper bound"

    @property
    def words(self) -> str:
        """Value, footing and how it was found."""
        return f"{self.value} ({self.footing}, by {self.by})"


class Pairs(ABC):
    """Which two states of the world a release must not tell apart.

    Databases (`Adjacency`), laws of a dataset that has or lacks a property (`DistributionPairs`),
    or secrets of a person given public information (`SecretPairs`). `words` is the clause that the
    paragraph of the promise puts after "the protection compares", `guesser` whose guess it bounds,
    and `composes` whether promises over them add up in a ledger; what does not say so does not.
    """

    unit_noun = "person"
    """What is protected, in a word."""
    counted = ""
    """What a budget counts, where that is more than a promise about these pairs is about."""

    schema: Schema

    @property
    @abstractmethod
    def metric(self) -> str:
        """How the two sides of a pair differ, in a word or two."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The pairs that must look alike, as a clause after "the protection compares"."""

    @property
    def guesser(self) -> str:
        """Whose guess between the two sides is bounded, after "someone"; empty if not said.

        This is true of every relation between datasets. A relation says more where more is proved
        (docs/explanation/what-is-promised).
        """
        if self.side != "dataset":
            return ""
        return (
            "has ruled out all but two datasets that are compared with each other, and thinks "
            "these two equally likely"
        )

    @property
    def figures(self) -> Figures:
        """The figures both sides agree with; none unless the relation says so."""
        return Figures(self.schema)

    @property
    def everything(self) -> Figures:
        """All that is published exactly of these data, also what no released table shows."""
        return self.figures

    @property
    def subject(self) -> str:
        """Whose privacy parameter it is, as in "epsilon = 1 per person"."""
        return f"per {self.unit_noun}"

    @property
    def side(self) -> str:
        """What one side of a pair is: a dataset, a scenario, a distribution."""
        return "dataset"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What a promise about these pairs leaves open, beside what every promise does."""
        return ()

    @property
    def composes(self) -> bool:
        """Whether promises about these pairs add up when both are kept."""
        return True

    @classmethod
    def composes_as_written(cls, data: Mapping[str, Any]) -> bool:  # noqa: ARG003 - for subclasses
        """What `composes` says of the pairs that wrote `data`, without working them out.

        A class with a rule of its own for `composes` and none here adds up with nothing.
        """
        return cls.composes is Pairs.composes

    def same(self, other: Pairs) -> bool:
        """Whether `other` relates exactly the same pairs."""
        return self.to_dict() == other.to_dict() and self.figures == other.figures

    def covers(self, other: Pairs) -> bool:
        """Whether every pair of `other` is one of these; by default only when they are the same."""
        return self.same(other)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data for a bundle or a ledger; schema and figures are written beside it."""


class Adjacency(Pairs):
    """A relation between databases; `schema` says what a record is.

    A release under it is priced by suprema over the differences u of adjacent databases: the
    largest ||phi u||_1 for pure epsilon, ||phi u||_2^2 for rho, over all tables phi together. A
    `Supremum` says whether it is exact or an upper bound. `ReplaceOne`, `AddRemove`, `SemiAdjacent`
    (given exact figures) and `SeveralRows` (units with several rows) are the ones there are.
    """

    def __init_subclass__(cls) -> None:
        if "__repr__" not in vars(cls):
            cls.__repr__ = Adjacency.__repr__  # type: ignore[method-assign]  # not the dataclass's

    def __repr__(self) -> str:
        names = some_of(self.schema.names)[:120]
        return f"{type(self).__name__}({names})"

    counts_units = False
    """Whether its tables count units that own several rows, not rows."""
    several_rows = False
    """Whether a unit may own several rows."""
    any_rows = False
    """Whether any rows may be added or removed, whatever the others are."""

    @property
    @abstractmethod
    def records(self) -> int:
        """The largest number of records in which adjacent databases differ (a)."""

    def rows_apart(self, names: Iterable[str]) -> int:  # noqa: ARG002 - for units with several rows
        """The largest number of records in which tables over these axes differ."""
        return self.records

    @property
    def moves(self) -> int | None:
        """Records that are replaced; None where the number of people may change."""
        return self.records if self.metric == "replace-one" else None

    def row_by_row(self, names: Iterable[str]) -> Adjacency | None:  # noqa: ARG002
        """Of units with several rows: pairs of which tables over these axes differ no less, every
        row a person's own. None where the number of rows may change.
        """
        return None

    @abstractmethod
    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i * ||phi_i u||_1`, phi_i tabulating onto release i's axes."""

    @abstractmethod
    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i * ||phi_i u||_2^2`."""

    @abstractmethod
    def differences(self, queries: tuple[Statement, ...]) -> Differences | None:
        """All differences of adjacent tables as some queries see them; None if too many."""

    def covers(self, other: Pairs) -> bool:
        """Whether every pair of `other` is one of these (semi-dp, Definition 20, part 1)."""
        return (
            isinstance(other, Adjacency)
            and self.schema.digest == other.schema.digest
            and self.metric == other.metric
            and other.records <= self.records
            and other.figures.implies(self.figures)
        )

    def to_dict(self) -> dict[str, Any]:
        """Metric, records and words; `reading` where the relation has one."""
        return {
            "metric": self.metric,
            "records": self.records,
            "reading": getattr(self, "reading", None),
            "words": self.words,
        }

    def l1(self, names: Sequence[str]) -> Supremum:
        """Delta_1 of the table over `names`."""
        return self.joint_l1([(tuple(names), Fraction(1))])

    def l2_squared(self, names: Sequence[str]) -> Supremum:
        """Delta_2 squared of the table over `names`."""
        return self.joint_l2_squared([(tuple(names), Fraction(1))])

    @abstractmethod
    def linf(self, names: Sequence[str]) -> Supremum:
        """Delta_inf of the table over `names`."""

    @property
    def nothing_left(self) -> bool:
        """Whether the figures leave a single table, so that nothing is left to protect."""
        return self.l1(self.schema.names).value == 0


class PublishedPairs(Pairs):
    """Pairs of datasets that agree with `published`, which also says what a record is."""

    published: Figures

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """What a record is."""
        return self.published.schema

    @property
    def figures(self) -> Figures:
        """The figures both datasets agree with."""
        return self.published
