"""A test of the odds ratio of a 2 x 2 table: [[release]] with `test`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, model_validator

from congenial.kinds.kind import Check, Files, NamedSection, Positive, exact
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words

if TYPE_CHECKING:
    from congenial.inference.odds_ratio_release import OddsRatioRelease

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


class TwoByTwo(LoadedKind[OddsRatioSection]):
    """The noisy count behind a test of the odds ratio, with p-value, decision and interval."""

    key = "test"
    name = "odds ratio test"
    section = OddsRatioSection
    instead: ClassVar[str] = (
        "It has p_value(), odds_interval() and power() in Python: see "
        "docs/how-to/test-an-odds-ratio."
    )

    def offers(self) -> Offers:
        """`two_by_two_offer`."""
        from congenial.kinds import two_by_two_offer

        return two_by_two_offer

    def words(self) -> Words:
        """`two_by_two_words`."""
        from congenial.kinds import two_by_two_words

        return two_by_two_words

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


KIND = TwoByTwo()
