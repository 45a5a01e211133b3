"""A test of the odds ratio of a 2 x 2 table: [[release]] with `test`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, model_validator

from congenial.kinds.kind import (
    Check,
    Document,
    Files,
    Kind,
    NamedSection,
    Offer,
    Positive,
    Screen,
    Setting,
    Tell,
    exact,
)

if TYPE_CHECKING:
    from congenial.figures.invariants import Invariants
    from congenial.inference.odds_ratio_release import OddsRatioMechanism, OddsRatioRelease
    from congenial.kinds.two_by_two_offer import OddsRatioCheck
    from congenial.report.accuracy import Want
    from congenial.sampling.randomness import Randomness

FORM = (
    "must be { odds_ratio = ['smoker', 'ill'] }; null_value = 1, alternative = 'greater' (or "
    "'less', 'two-sided'), alpha = 0.05, level = 0.95 and power_at = [2, 3] may be added"
)
SIDES = ("greater", "less", "two-sided")
NUMBERS = {"null_value", "alpha", "level"}


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
    told = dict(value) if isinstance(value, dict) else {}
    axes, points = told.pop("odds_ratio", None), told.pop("power_at", [])
    side = told.pop("alternative", AskedTest.alternative)
    pair = isinstance(axes, list) and len(axes) == 2 and all(isinstance(one, str) for one in axes)
    if not pair or side not in SIDES or not isinstance(points, list) or not set(told) <= NUMBERS:
        raise ValueError(FORM)
    numbers = {name: exact(one) for name, one in told.items()}
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


class TwoByTwo(Kind[OddsRatioSection]):
    """The noisy count behind a test of the odds ratio, with p-value, decision and interval."""

    key = "test"
    name = "odds ratio test"
    section = OddsRatioSection
    instead: ClassVar[str] = (
        "It has p_value(), odds_interval() and power() in Python: see "
        "docs/how-to/test-an-odds-ratio."
    )

    def build(
        self, plan: Setting, section: OddsRatioSection, figures: Invariants
    ) -> OddsRatioMechanism:
        """The mechanism over the databases that agree with the figures."""
        from congenial.kinds.two_by_two_offer import build

        return build(plan, section, figures)

    def check(
        self,
        plan: Setting,
        section: OddsRatioSection,
        figures: Invariants,
        wish: Want | None = None,  # noqa: ARG002 - sums are not asked about
    ) -> OddsRatioCheck:
        """What it promises, and its power where the margins are published."""
        from congenial.kinds.two_by_two_offer import check

        return check(plan, section, figures)

    def offer(
        self,
        plan: Setting,
        section: OddsRatioSection,
        built: OddsRatioMechanism,
        figures: Invariants,
        randomness: Randomness | None,
        progress: Tell,
    ) -> AbstractContextManager[Offer]:
        """Read and check the data; what is left is to draw."""
        from congenial.kinds.two_by_two_offer import offer

        return offer(plan, section, built, figures, randomness, progress)

    def shown(self, section: OddsRatioSection) -> Sequence[str]:
        """The axes of the table."""
        return section.test.odds_ratio

    @property
    def release_class(self) -> type[OddsRatioRelease]:
        """`OddsRatioRelease`."""
        from congenial.inference.odds_ratio_release import OddsRatioRelease

        return OddsRatioRelease

    def report(self, release: OddsRatioRelease, promise: str) -> str:
        """The report of a test."""
        from congenial.report.two_by_two_report import render

        return render(release, promise)

    def verify(self, files: Files, release: OddsRatioRelease) -> list[Check]:
        """P-value, decision, interval and power are worked out again."""
        same = all(files.same(name, now) for name, now in release.payload().items())
        what = "p-value, decision, interval and power follow from the noisy count"
        return [Check(what, same), *(Check(*one) for one in release.checks().items())]

    def examine(self, checked: OddsRatioCheck) -> Document:
        """What is tested, the promise, and the power."""
        from congenial.kinds.two_by_two_words import examine

        return examine(checked)

    def show(self, document: Document, screen: Screen, want: str | None = None) -> None:  # noqa: ARG002
        """The same for people."""
        from congenial.kinds.two_by_two_words import show

        show(document, screen)


TWO_BY_TWO = TwoByTwo()
