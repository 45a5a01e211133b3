"""A release of any kind, as its reader gets it: one interface for tables, statistics and records.

A kind of release adds what only it has (margins of a table, copies of synthetic records). What its
law does not allow it refuses with an `UnansweredError`, whose remedy says what can be asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from congenial._exports import public
from congenial.data.arguments import NUMBER, expect, texts
from congenial.errors import InferenceError, UnansweredError

if TYPE_CHECKING:
    from congenial.data.schema import Schema
    from congenial.figures.figures import Figures
    from congenial.ledger.ledger import Ledger
    from congenial.privacy.descriptions import AnyDescription, RecordDescription
    from congenial.privacy.guarantee import Guarantee

EXACT_LAW = "exact: the noise does not depend on the confidential data"
LEVEL = 0.9  # of an interval, where no other is asked for


BEHIND = frozenset(  # what the house calls, hidden from completion
    [
        *("counted", "counts_words", "drawn_beside", "file_end", "measure", "measures"),
        "by_table",
        "cell_errors",
        "contents",
        "deviation",
        "estimated_count",
        "estimator",
        "everything",
        "fitted",
        "from_payload",
        "has_errors",
        "in_units",
        "instead",
        "interval_ends",
        "largest_sds",
        "measured_tables",
        "of_one",
        "offset",
        "only",
        "origin",
        "own_estimates_of",
        "part_files",
        "payload",
        "prints",
        "tolerances",
        "usage",
    ]
)


@dataclass(frozen=True)
class Interval:
    """A confidence interval for one true value, with its footing.

    The probability that [low, high] covers the true value is at least `level`, over the noise, with
    the data held fixed: it says nothing about a population the data may be a sample of. Where
    nothing was added (`exact`) it has no width. `basis` says what the coverage rests on.

    >>> Interval(estimate=12, low=2, high=22, level=0.9, exact=False).basis
    'exact: the noise does not depend on the confidential data'
    """

    estimate: float
    low: float
    high: float
    level: float
    exact: bool  # published exactly: nothing was added to this value
    basis: str = EXACT_LAW


@dataclass(frozen=True)
class PartFile:
    """A file of a bundle that is written apart, since it may be large: where it is, its digest."""

    path: Path
    digest: str


@dataclass(frozen=True)
class ReadFrom:
    """The bundle that a release was read from: its folder, its promise in words, its date.

    `page` reads its report, which may say what no other file of a bundle holds.
    """

    folder: Path
    promise: str
    created: str
    page: Callable[[], str] = field(repr=False, compare=False)


class OfPopulation:
    """What is drawn from a population: a release, or one table of it. Whom it is about, and what is
    known of them exactly, is in its guarantee.
    """

    if TYPE_CHECKING:

        @property
        def guarantee(self) -> Guarantee:
            """What is promised."""

    @property
    def schema(self) -> Schema:
        """What a record is."""
        return self.guarantee.adjacency.schema

    @property
    def published(self) -> Figures:
        """The figures published exactly, with their values."""
        return self.guarantee.adjacency.figures


class Released(OfPopulation, ABC):
    """What was released, its law, what is promised, and how it leaves for other tools.

    `congenial.read` returns one. Fields and methods are the same for every kind:

    | name | what it is |
    |---|---|
    | `name`, `kind` | what the curator calls it; how release.json names its kind |
    | `schema`, `published` | what a record is; the figures that were published exactly |
    | `description`, `guarantee` | the law of what was drawn; what is promised |
    | `persons` | what is promised to single persons, or None |
    | `explain()` | all of its promises in words |
    | `estimate(what)`, `interval(what, level)` | answers with a known law, or `UnansweredError` |
    | `to_arrow()`, `to_pandas()`, `to_polars()` | what was released, as a table |
    | `save(folder, ledger)` | the bundle that `congenial release` would write |
    """

    kind: ClassVar[str]
    tolerances: ClassVar[Mapping[str, float]] = {}  # by column of its CSV files: see `payload`
    origin: ClassVar[ReadFrom | None] = None  # of one that was read: set by `congenial.read`

    if TYPE_CHECKING:

        @property
        def name(self) -> str:
            """What the curator calls it."""

        @property
        def description(self) -> AnyDescription:
            """The law of what was drawn."""

        @property
        def randomness(self) -> str:
            """Where the noise came from."""

        @property
        def publishable(self) -> bool:
            """Whether that was the system's generator."""

        @property
        def contents(self) -> tuple[tuple[str, str], ...]:
            """Files and what they hold."""

        @property
        def usage(self) -> tuple[str, ...]:
            """How to begin, as lines of code."""

    @property
    def everything(self) -> Figures:
        """All figures published exactly, also those that count what no table here does."""
        return self.guarantee.adjacency.everything

    @property
    def part_files(self) -> Mapping[str, PartFile]:
        """Files in folders of the bundle, by `folder/name`; none for most kinds."""
        return {}

    # ---- what is promised ----------------------------------------------------------------------

    @property
    def persons(self) -> Guarantee | None:
        """What is promised to single persons; None where nothing is.

        The promise itself, unless that is about something else: a dataset as a whole, or what
        somebody with given beliefs can learn.
        """
        return self.guarantee

    def explain(self) -> str:
        """All of its promises in words, one paragraph each."""
        return self.guarantee.explain()

    def _repr_html_(self) -> str:
        from congenial._notebook import facts  # for notebooks alone

        promise, warning = self.guarantee, "" if self.publishable else self.randomness
        return facts(self._title(), promise.summary(), promise.explain(), warning)

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in BEHIND]

    def _title(self) -> str:
        """Heading of its view in a notebook."""
        return f"{self.kind.capitalize()} '{self.name}'"

    # ---- what can be asked ---------------------------------------------------------------------

    def estimate(self, what: Any, /) -> Any:
        """Estimates: of a table, any expression of its counts, with intervals and methods (an
        `EstimateTable`, see `congenial.estimate`); of statistics, the value that `interval` is
        around.
        """
        raise self._unanswered(what)

    def interval(self, what: str, /, level: float = LEVEL) -> Interval:
        """Confidence interval for a true value, with coverage of at least `level`.

        what: a condition on the axes of a table, or the name of a statistic. The coverage does not
        depend on the data; `basis` of what is returned says what it rests on, and names what is an
        approximation.
        """
        del level
        raise self._unanswered(what)

    def _unanswered(self, what: str) -> UnansweredError:
        """The refusal, with what can be asked instead."""
        return UnansweredError(
            f"release '{self.name}' ({self.kind}) has no known error for {what!r}.",
            remedy=self.instead(),
        )

    def instead(self) -> str:
        """What can be asked of a release without intervals."""
        return "Use to_arrow() for the released values; release.description describes the noise."

    # ---- leaving for other tools ---------------------------------------------------------------

    @abstractmethod
    def to_arrow(self) -> Any:
        """What was released as an Arrow table."""

    def to_pandas(self) -> Any:
        """The same as a pandas frame (extra `frames`)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The same as a Polars frame (extra `frames`)."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def save(self, folder: str | Path, ledger: Ledger | None = None) -> str:
        """Write its bundle to a new folder, and return the digest: `congenial.save(self, ...)`."""
        digest: str = public("save")(self, folder, ledger)
        return digest

    @abstractmethod
    def payload(self) -> dict[str, bytes]:
        """The files of a bundle that hold what was released, written from what was drawn.

        `verify` reads what was drawn from a bundle, writes these files again and compares: to the
        letter, but for columns in `tolerances`, whose numbers may be off by that many standard
        deviations (the column `sd`), since another machine may round otherwise.
        """

    @classmethod
    @abstractmethod
    def from_payload(
        cls,
        *,
        name: str,
        description: Any,
        guarantee: Guarantee,
        randomness: str,
        publishable: bool,
        payload: Mapping[str, bytes],
    ) -> Self:
        """Inverse of `payload`, given what all kinds have in common."""


@dataclass(frozen=True)
class RecordRelease(Released):
    """What every release that is no table has in common: the ledger knows it by what one record
    does to it.

    Subclasses add what was released, how it becomes files (`payload`) and how it is read back
    (`from_payload`, which takes these common parts by name).
    """

    name: str
    description: RecordDescription
    guarantee: Guarantee
    randomness: str
    publishable: bool


def check_level(level: float) -> None:
    """Refuse a level that is no probability strictly between 0 and 1."""
    expect(level, NUMBER, "the level", "Use 0.9 or 0.95.", InferenceError)
    if not 0 < level < 1:
        raise InferenceError(f"level {level} is not between 0 and 1.", remedy="Use 0.9 or 0.95.")


def axis_names(names: Sequence[str | Sequence[str]]) -> tuple[str, ...]:
    """Axis names, whether they were given one by one or as a list."""
    return tuple(name for item in names for name in texts(item, "the list of axes", InferenceError))
