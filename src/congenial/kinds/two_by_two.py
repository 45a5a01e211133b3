"""A test of the odds ratio of a 2 x 2 table: [[release]] with `test`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, cast

from pydantic import BeforeValidator, model_validator

from congenial.data.tabulate import Microdata
from congenial.errors import CongenialError, GuaranteeError
from congenial.figures.figures import Figures
from congenial.inference.odds_ratio import Alternative, OddsRatioQuestion, shown
from congenial.inference.odds_ratio_release import OddsRatioMechanism, OddsRatioRelease, compared
from congenial.kinds.kind import (
    Checked,
    Document,
    Kind,
    Ready,
    Tell,
    tabulate,
)
from congenial.kinds.plan_sections import NamedSection, Positive, exact
from congenial.kinds.planned_data import PlannedData
from congenial.mechanisms.calibrate import rebuild
from congenial.mechanisms.congenial import Congenial
from congenial.pairs.pairs import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.report.page import PageColumn, PageTable, table
from congenial.report.release_page import Facts, Headline, release_page
from congenial.sampling.randomness import SeededRandomness

FORM = (
    "must be { odds_ratio = ['smoker', 'ill'] }; null_value = 1, alternative = 'greater' (or "
    "'less', 'two-sided'), alpha = 0.05, level = 0.95 and power_at = [2, 3] may be added"
)
SIDES = ("greater", "less", "two-sided")
NUMBERS = {"null_value", "alpha", "level"}
LATER = "known once the exact figures are published: run `congenial publish`, then check again"


@dataclass(frozen=True)
class AskedTest:
    """`test`: the two axes, and what is asked about their odds ratio."""

    odds_ratio: tuple[str, ...]
    null_value: Fraction = Fraction(1)
    alternative: str = "greater"
    alpha: Fraction = Fraction(1, 20)
    level: Fraction = Fraction(19, 20)
    power_at: tuple[Fraction, ...] = ()


def _asked(value: Any) -> Any:
    entries = dict(value) if isinstance(value, dict) else {}
    axes, points = entries.pop("odds_ratio", None), entries.pop("power_at", [])
    side = entries.pop("alternative", AskedTest.alternative)
    pair = isinstance(axes, list) and len(axes) == 2 and all(isinstance(axis, str) for axis in axes)
    if not pair or side not in SIDES or not isinstance(points, list) or not set(entries) <= NUMBERS:
        raise ValueError(FORM)
    numbers = {name: exact(number) for name, number in entries.items()}
    asked = AskedTest(tuple(axes), alternative=side, power_at=tuple(map(exact, points)), **numbers)
    if asked.alpha >= 1 or asked.level >= 1:
        raise ValueError("alpha and level must be between 0 and 1")
    return asked


class OddsRatioSection(NamedSection):
    """[[release]] with `test`: a private test of an odds ratio, given both margins."""

    test: Annotated[AskedTest, BeforeValidator(_asked)]
    epsilon: Positive

    @model_validator(mode="after")
    def _possible(self) -> OddsRatioSection:
        if self.delta is not None:
            raise ValueError("a test promises epsilon without delta; leave delta out")
        if self.mechanism != "auto":
            raise ValueError("a test has one mechanism; leave mechanism out")
        return self


@dataclass(frozen=True)
class OddsRatioCheck(Checked):
    """What a test would promise, and its power where the margins are known."""

    mechanism: OddsRatioMechanism
    power: dict[float, float] | None


class TwoByTwo(Kind[OddsRatioSection]):
    """The noisy count behind a test of the odds ratio, with p-value, decision and interval."""

    key = "test"
    name = "odds ratio test"
    section = OddsRatioSection
    words = "check_odds_ratio.txt"
    release_class = OddsRatioRelease
    instead: ClassVar[str] = (
        "In Python it has p_value(), odds_interval() and power(): see "
        "docs/how-to/test-an-odds-ratio."
    )

    # ---- from the plan to a draw ---------------------------------------------------------------

    def build(
        self, plan: PlannedData, section: OddsRatioSection, figures: Figures
    ) -> OddsRatioMechanism:
        """The mechanism of one section given figures, with or without their values."""
        if plan.unit.max_rows is not None:
            raise GuaranteeError(
                f"release '{section.name}': the test of an odds ratio needs one record per person.",
                remedy="Leave out max_rows, or release a table instead.",
            )
        asked = section.test
        question = OddsRatioQuestion(
            asked.null_value,
            cast(Alternative, asked.alternative),
            asked.alpha,
            asked.level,
            asked.power_at,
        )
        target = Guarantee.pure(section.epsilon, plan.adjacency(figures))
        try:
            mechanism = OddsRatioMechanism.calibrate(target, asked.odds_ratio, question)
            _ = mechanism.test  # refuses margins that leave too much to weigh
        except CongenialError as reason:
            raise type(reason)(
                f"release '{section.name}': {reason.what}", remedy=reason.remedy
            ) from None
        return mechanism

    def check(
        self,
        plan: PlannedData,
        section: OddsRatioSection,
        figures: Figures,
    ) -> OddsRatioCheck:
        """What it promises, from public parameters alone."""
        mechanism = self.build(plan, section, figures)
        power = None if mechanism.test is None else mechanism.power()
        return OddsRatioCheck(section, mechanism, self.promise(plan, section, mechanism), power)

    def ready(
        self,
        plan: PlannedData,
        section: OddsRatioSection,
        built: OddsRatioMechanism,
        figures: Figures,
        data: Microdata,
        progress: Tell,
    ) -> Ready:
        """The counts of the table, which agree with the margins."""
        axes = {plan.schema.axis(name).base for name in section.test.odds_ratio}
        names = [name for name in plan.schema.names if name in axes or name in figures.bases]
        counts = tabulate(data, names, progress)
        built.counts.check(counts)
        return Ready(
            draw=lambda randomness: built.release(counts, randomness, section.name),
            made_up=lambda: built.around(0, 0.5, SeededRandomness(0), section.name),
        )

    def shown(self, section: OddsRatioSection) -> Sequence[str]:
        """The axes of the table."""
        return section.test.odds_ratio

    # ---- the bundle ----------------------------------------------------------------------------

    def report(self, release: OddsRatioRelease, promise: str) -> str:
        """What was asked, what was found, the promise, the use, as one HTML document."""
        return release_page(
            "two_by_two.html",
            release,
            promise,
            headlines=_headlines(release),
            asked=compared(release.schema, release.description.table),
            found=_results(release),
            power=_power(release),
        )

    def follows(self, release: OddsRatioRelease) -> bool:
        """Whether the promise follows from the law of the noisy table."""
        pairs = release.guarantee.adjacency
        if not isinstance(pairs, Adjacency):
            return False
        mechanism = rebuild(release.description, pairs)
        return (
            isinstance(mechanism, Congenial)
            and mechanism.priced == release.description
            and release.guarantee.follows_from(
                OddsRatioMechanism(mechanism, release.question).guarantee
            )
        )

    # ---- what `congenial check` says -----------------------------------------------------------

    def examine(self, checked: OddsRatioCheck) -> Document:
        """The check of one section as plain data; from public parameters alone."""
        description, question = checked.mechanism.description, checked.mechanism.question
        power = None
        if checked.power is not None:
            power = [{"odds_ratio": at, "power": p} for at, p in checked.power.items()]
        return {
            **super().examine(checked),
            "table": list(description.table),
            "compares": compared(description.support.schema, description.table),
            "hypothesis": question.hypothesis,
            "alternative": question.alternative,
            "alpha": float(question.alpha),
            "level": float(question.level),
            "title": f"test of the odds ratio, {' x '.join(description.table)}",
            "power": power,
            "power_later": LATER,
            "noise": float(4 * description.scale),
        }


def _headlines(release: OddsRatioRelease) -> list[Headline]:
    question, results = release.question, release.found
    low, high = (_end(end) for end in results["interval"])
    verdict = "rejected" if results["rejected"] else "not rejected"
    return [
        Headline(question.hypothesis, verdict, f"at {shown(question.alpha)}"),
        Headline("P-value", f"{results['p_value']:.2g}", "accounts for the noise"),
        Headline("Odds ratio", f"{low} to {high}", f"{shown(question.level)} interval"),
    ]


def _results(release: OddsRatioRelease) -> Facts:
    question, results, test = release.question, release.found, release.test
    verdict = "rejected" if results["rejected"] else "not rejected"
    low, high = (_end(end) for end in results["interval"])
    return [
        ("Hypothesis", f"{question.hypothesis}: {verdict} at {shown(question.alpha)}"),
        ("P-value", f"{results['p_value']:g} ({question.alternative})"),
        (f"Interval at {shown(question.level)}", f"{low} to {high}"),
        ("Noisy count of the first cell", f"{release.count:,}"),
        ("Uniform number added, less one half", repr(release.uniform)),
        ("Published margins", f"{_pair(test.rows)}; {_pair(test.columns)}"),
    ]


def _end(value: float | None) -> str:
    return "infinity" if value is None else f"{value:g}"


def _pair(counts: tuple[int, int]) -> str:
    return f"{counts[0]:,} and {counts[1]:,}"


def _power(release: OddsRatioRelease) -> PageTable:
    columns = [
        PageColumn("if the odds ratio is", number=True),
        PageColumn("probability of rejecting", number=True),
    ]
    rows = [[f"{row['odds_ratio']:g}", f"{row['power']:.3f}"] for row in release.found["power"]]
    return table(columns, rows)


KIND = TwoByTwo()
