"""What a kind of release is: its section of a plan, and one class with all that the rest of the
house asks about it.

A subclass of `Kind` says which key of a plan tells it, how its section is read, what it builds,
checks and draws, what its bundle holds, and how all that is told to people. Plan, workflow, bundle,
`verify` and the commands know kinds through `registry` only. A kind is looked up whenever a plan or
a bundle is read, so its module is light: what is heavy is imported inside its methods.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from congenial.data.advance import Advance, one_by_one
from congenial.data.tabulate import Microdata
from congenial.data.text_files import same_csv
from congenial.errors import BundleError, CongenialError, GuaranteeError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.kinds.plan_sections import NamedSection
from congenial.kinds.planned_data import PlannedData
from congenial.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from congenial.data.table import Table
    from congenial.figures.figures import Figures
    from congenial.inference.feasibility import Outlook
    from congenial.ledger.ledger import Ledger
    from congenial.mechanisms.released import Released
    from congenial.privacy.descriptions import AnyDescription
    from congenial.privacy.guarantee import Guarantee
    from congenial.report.accuracy import Want
    from congenial.sampling.randomness import Randomness


FOLLOWS = "the promise follows from the description"
PRODUCED = "the data files match what was drawn"
Document = dict[str, Any]  # plain data, as `--json` prints them
Tell = Callable[[str], Any]  # tells the curator how far it is: words, or an `Advance`
S = TypeVar("S", bound=NamedSection)


@dataclass(frozen=True)
class Files:
    """The files of a bundle, compared with what would be written now.

    `index` is what release.json says; `progress` hears how far the checks are.
    """

    content: Mapping[str, bytes]
    index: Mapping[str, Any]
    progress: Tell = lambda _: None

    def __getitem__(self, name: str) -> bytes:
        return self.content[name]

    def same(self, name: str, now: bytes, off: Mapping[str, float] | None = None) -> bool:
        """To the letter, but for numbers in columns of a CSV file that may be `off`
        (`Released.payload`); Parquet files value by value, since their bytes depend on the library
        that wrote them.
        """
        content = self[name]
        if name.endswith(".parquet"):
            from congenial.data.engines.checked_parquet import same_values

            return same_values(name, content, now)
        return content == now or (name.endswith(".csv") and same_csv(content, now, off or {}))


@dataclass(frozen=True)
class Checked:
    """What the check of any section says; kinds add what else theirs do."""

    section: Any
    mechanism: Any  # what would draw; it has a `description`
    guarantee: Guarantee


@dataclass(frozen=True)
class Check:
    """One line of `verify`: what was checked and whether it holds."""

    what: str
    holds: bool
    detail: str = ""


class PartedRun(Protocol):
    """A release that is drawn part by part, in a private folder that outlives a crash."""

    @property
    def fingerprint(self) -> str:
        """What it is drawn from: a run that was interrupted goes on only if this is the same."""

    @property
    def room(self) -> int:
        """Bytes that it needs on disk, about."""

    def secret(self) -> Secret:
        """The secret that all of its noise is drawn from, fresh."""

    def prepare(self, folder: Path, counted: Document | None = None) -> Document:
        """Read and check the data into `folder`, and return what their counts are known by.

        `counted`: what that was when the release was begun. What is there and as it was is not
        counted again; DataError where the records give other counts now.
        """

    def draw(self, folder: Path, secret: Secret) -> Any:
        """Draw what is not drawn yet and give back the release; `folder` has its files."""


@dataclass(frozen=True)
class Secret:
    """256 bits from which noise is drawn, and where they came from."""

    bits: bytes = field(repr=False)
    label: str
    publishable: bool


@dataclass(frozen=True)
class Offer:
    """A release that is ready: its law, its promise, how it is drawn, and its report.

    `guarantee` is the promise as the plan words it, which what is drawn will carry. `rehearsal`
    gives something of the same form that is made up: it is written and thrown away before anything
    is spent, so that what cannot be written is found out in time. `holds` says, once the share of
    the budget is reserved, whether what it rests on still does. `room`: bytes that the files of
    what is drawn may take beyond those of the rehearsal and of a table over the description's axes.
    `run`: how it is drawn part by part, where it is; `draw` is then None.
    """

    name: str
    description: AnyDescription
    guarantee: Guarantee
    draw: Callable[[], Any] | None
    rehearsal: Callable[[], Any]
    report: Callable[[Any, str], str]
    holds: Callable[[Ledger], bool] = lambda _: True
    room: int = 0
    run: PartedRun | None = None


@dataclass(frozen=True)
class Ready:
    """What a kind has once the data are read and checked: how it draws, given the randomness (None:
    by a `run`), and how it makes up a release of the same form.

    `room` as in `Offer`. `report`: where a page says more than a bundle holds. `mechanism`: where
    the data decide which one draws.
    """

    draw: Callable[[Randomness | None], Any] | None
    made_up: Callable[[], Any]
    room: int = 0
    report: Callable[[Any, str], str] | None = None
    mechanism: Any = None


class Kind(ABC, Generic[S]):
    """One kind of release, from its section in a plan to its bundle.

    `key`: the key of a [[release]] that tells it. `name`: how release.json names it. `section`: the
    keys it takes. `given_figures`: whether its promise is given what is published exactly.
    `instead`: what an analyst does where `congenial infer` has no use for it; empty where it has.
    `words`: the template in `report/words` with all that `check --full` says of it.
    """

    key: ClassVar[str]
    name: ClassVar[str]
    section: type[S]
    given_figures: ClassVar[bool] = True
    instead: ClassVar[str] = "Its noise is described in release.json, under description."
    words: ClassVar[str] = "check_kind.txt"

    # ---- from the plan to a draw ---------------------------------------------------------------

    @abstractmethod
    def build(self, plan: PlannedData, section: S, figures: Figures) -> Any:
        """What would draw, from public inputs; refused here is what cannot work."""

    def check(self, plan: PlannedData, section: S, figures: Figures) -> Checked:
        """What it promises and how accurate it is, from public parameters alone."""
        mechanism = self.build(plan, section, figures)
        return Checked(section, mechanism, self.promise(plan, section, mechanism))

    def check_wish(
        self,
        plan: PlannedData,
        section: S,
        figures: Figures,
        wish: Want,  # noqa: ARG002 - only some kinds are asked about sums
    ) -> Checked:
        """The same, and what an accuracy that is asked for needs (`answers`)."""
        return self.check(plan, section, figures)

    @abstractmethod
    def ready(
        self,
        plan: PlannedData,
        section: S,
        built: Any,
        figures: Figures,
        data: Microdata,
        progress: Tell,
    ) -> Ready:
        """Read and check the data; `built` is what `build` made for these figures."""

    def promise(self, plan: PlannedData, section: S, mechanism: Any) -> Guarantee:
        """What a mechanism promises, in the plan's words."""
        return planned(mechanism.guarantee, plan, section.delta)

    def run(
        self,
        plan: PlannedData,  # noqa: ARG002
        section: S,  # noqa: ARG002
        built: Any,  # noqa: ARG002
        randomness: Randomness | None,  # noqa: ARG002
        progress: Tell,  # noqa: ARG002
    ) -> PartedRun | None:
        """How it is read and drawn part by part; None where that is done at once (`ready`)."""
        return None

    @contextmanager
    def offer(
        self,
        plan: PlannedData,
        section: S,
        built: Any,
        figures: Figures,
        randomness: Randomness | None,
        progress: Tell,
    ) -> Iterator[Offer]:
        """A release for which the data are read and checked: what is left is to draw.

        One that is drawn part by part reads and checks them once its folder is claimed.
        """
        run = self.run(plan, section, built, randomness, progress)
        if run is None:
            progress("reading the data")
            numbers = self.summed(section)
            with Microdata.open(plan.source, plan.schema, plan.unit, numbers) as data:
                ready = self.ready(plan, section, built, figures, data, progress)
        else:
            ready = Ready(None, lambda: built.made_up(section.name))
        draw = ready.draw
        mechanism = built if ready.mechanism is None else ready.mechanism
        yield Offer(
            section.name,
            mechanism.description,
            self.promise(plan, section, mechanism),
            draw=None if draw is None else lambda: draw(randomness),
            rehearsal=ready.made_up,
            report=ready.report or self.report,
            holds=lambda ledger: self.holds(plan, section, built, figures, ledger.figures),
            room=ready.room,
            run=run,
        )

    def holds(
        self, plan: PlannedData, section: S, built: Any, figures: Figures, now: Figures
    ) -> bool:
        """Whether what was built for `figures` would be built for those published `now` too."""
        try:
            return now == figures or bool(self.build(plan, section, now) == built)
        except CongenialError:  # nothing can be built now: the next run says why
            return False

    def shown(self, section: S) -> Sequence[str]:  # noqa: ARG002
        """The axes that it shows to everybody, for which the data must fit the schema."""
        return ()

    def summed(self, section: S) -> Sequence[str]:  # noqa: ARG002
        """Columns that it sums, beside those of the schema."""
        return ()

    def answers(self, checked: Any) -> bool:  # noqa: ARG002
        """Whether a check has something to say about the wish it was asked."""
        return False

    # ---- the bundle ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def release_class(self) -> type[Released]:
        """The class of what is released; it reads its part of a bundle."""

    @abstractmethod
    def report(self, release: Any, promise: str) -> str:
        """The report, when it is released and when `verify` writes it again.

        What no bundle holds stands in the head of the page of one that was read (`origin.page`).
        """

    def verify(self, files: Files, release: Any) -> list[Check]:
        """Write the files again from what was drawn and compare, column by column; and what else
        must hold (`checks`).
        """
        again = release.payload()
        other = [name for name in again if not files.same(name, again[name], release.tolerances)]
        try:
            results = self.checks(release)
        except (CongenialError, KeyError, TypeError, ValueError):
            results = {"the description of the release can be interpreted": False}
        return [
            Check(PRODUCED, not other, f"they differ in: {', '.join(other)}" if other else ""),
            *(Check(what, holds) for what, holds in results.items()),
        ]

    def checks(self, release: Any) -> dict[str, bool]:
        """What must hold of a bundle besides its files, which `verify` writes again."""
        return {FOLLOWS: self.follows(release)}

    def follows(self, release: Any) -> bool:
        """Whether a mechanism that may have made it has this description and this promise."""
        description = _as_written(release.description)
        return any(
            _as_written(mechanism.description) == description
            and release.guarantee.follows_from(mechanism.guarantee)
            for mechanism in self.rebuilt(release)
        )

    def rebuilt(self, release: Any) -> Iterable[Any]:  # noqa: ARG002
        """Mechanisms that may have made a release, from its public parts alone."""
        return ()

    def part_file(self, files: Files, part: str) -> str:  # noqa: ARG002
        """The name that the file of a part has in every folder of a bundle."""
        raise BundleError(
            f"a bundle of the kind '{self.name}' has no parts.",
            remedy="Verify it as a whole: leave out --part.",
        )

    def verify_part(self, files: Files, release: Any, part: str) -> list[Check]:
        """What one part of a bundle must satisfy; of a kind with no smaller check, all of it."""
        self.part_file(files, part)
        return self.verify(files, release)

    def further_promise(self, release: Any) -> Guarantee | None:
        """A promise that the report states besides `release.guarantee`: the one about persons, of a
        release that promises something else. None: there is no other.

        What a plan assumes about the data is assumed in both.
        """
        persons: Guarantee | None = release.persons
        if persons is None or persons is release.guarantee:
            return None
        rebuilt = self.rebuilt(release)
        own = {line for mechanism in rebuilt for line in mechanism.guarantee.assumptions}
        of_the_plan = tuple(line for line in release.guarantee.assumptions if line not in own)
        return replace(persons, assumptions=(*persons.assumptions, *of_the_plan))

    # ---- telling people ------------------------------------------------------------------------

    def examine(self, checked: Any) -> Document:
        """A check as plain data: at least these keys, and those that the template `words` shows.

        `errors`: the expected error of each table or statistic. `wanted`: what a wished accuracy
        needs, where one was asked for.
        """
        guarantee = checked.guarantee
        return {
            "name": checked.section.name,
            "kind": self.name,
            "title": self.name,
            "per_person": guarantee.tradeoff.words,
            "whose": guarantee.adjacency.subject,
            "guarantee": guarantee.to_dict(),
            "in_short": guarantee.in_short,
            "promise": guarantee.explain(),
            "errors": [],
            "wanted": None,
        }

    def not_inferred(self, release: Any) -> str:  # noqa: ARG002
        """What an analyst does where `congenial infer` has no use for a release; else empty."""
        return self.instead

    def why_slow(self, release: Any) -> str:  # noqa: ARG002
        """What makes `congenial infer` slow on a release, where that is known."""
        return ""


def planned(guarantee: Guarantee, plan: PlannedData, delta: Any = None) -> Guarantee:
    """A guarantee with what the plan assumes about the data added, stated at the plan's delta."""
    stated = guarantee.stated_delta if delta is None else float(delta)
    assumed = (*guarantee.assumptions, unit_words(plan, guarantee.adjacency.unit_noun))
    return replace(guarantee, assumptions=assumed, stated_delta=stated)


def unit_words(plan: PlannedData, noun: str = "person") -> str:
    """What the plan assumes about who is one person, or one unit."""
    if plan.unit.column is None:
        return "each row of the data is one person (the plan names no column to check this)"
    if plan.unit.truncate:
        return (
            f"of each {noun} ('{plan.unit.column}') only the first {plan.unit.max_rows} rows are "
            "counted, in the order of the columns; exact figures and released tables count only "
            "those rows"
        )
    if plan.unit.max_rows is not None:
        return f"a {noun} has at most {plan.unit.max_rows} rows (checked in '{plan.unit.column}')"
    return f"each person is one row (checked in '{plan.unit.column}')"


def _as_written(description: AnyDescription) -> str:
    """Every letter of it but the order of its keys: 1.0 and true are not 1."""
    return json.dumps(description.to_dict(), sort_keys=True)


def looked_into(looks: Mapping[str, Callable[[], Any]], files: Files) -> list[Check]:
    """A check for each look at a bundle, in order, telling how far they are."""
    listed = one_by_one(list(looks.items()), "computing the report again", files.progress)
    return [Check(what, bool(look())) for what, look in listed]


def units_for(figures: Figures, data: Microdata) -> Table | None:
    """CONFIDENTIAL: the units by what figures about them name; None where there are none."""
    return None if figures.of_units is None else data.tabulate_units(figures.of_units.bases)


def refuse_other_units(figures: Figures, data: Microdata) -> None:
    """FigureError, without a number, where the units do not agree with what is published."""
    if figures.of_units is not None:
        figures.of_units.refuse_other_data(data.tabulate_units(figures.of_units.bases))


def refuse_other_rows(figures: Figures, data: Microdata, progress: Tell) -> None:
    """FigureError, without a number, where the rows do not agree with what is published."""
    rows = tabulate(data, figures.bases, progress)
    figures.of_rows.refuse_other_data(rows)


def tabulate(data: Microdata, names: Sequence[str], progress: Tell) -> Table:
    """Count, telling the curator how far it has come."""
    step = "counting the records"
    with data.source.watched(lambda share: progress(Advance(step, share))):
        return data.tabulate(names)


# ---- what several kinds say alike ----------------------------------------------------------------


def examine_inference(found: Outlook, minutes: float | None = None) -> Document:
    """Whether `congenial infer` will work, as plain data."""
    return {
        "works": found.works,
        "slow": found.slow,
        "minutes": None if minutes is None else float(f"{minutes:.2g}"),
        "why": found.why or None,
        "remedy": found.remedy or None,
    }


def refuse_other_number(figures: Figures, people: int) -> None:
    """Refuse a number of people other than the published one, once it is published."""
    if figures.values is None or not figures.equalities:
        return
    totals = support(figures, ()).totals
    if totals is not None and len(totals) == 1 and int(totals[0]) != people:
        raise GuaranteeError(
            f"scenarios are about {people} people, but {int(totals[0])} are published.",
            remedy="Give the published number.",
        )
