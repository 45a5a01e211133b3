"""Statistics that hide what the whole dataset is like: [[release]] with `statistics`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from congenial.kinds.kind import Document, Kind, Offer, Screen, Setting, Tell
from congenial.kinds.sections import NamedSection, Positive, exact
from congenial.privacy.tradeoff import Approximate, Gaussian, Tradeoff

if TYPE_CHECKING:
    from congenial.figures.invariants import Invariants
    from congenial.kinds.statistics_offer import Asked, StatisticsCheck
    from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
    from congenial.privacy.guarantee import Guarantee
    from congenial.report.accuracy import Want
    from congenial.sampling.randomness import Randomness


NOT_PROTECTED = "not protected"  # what `persons` says of a release that promises them nothing


def _persons(value: Any) -> Any:
    """`persons`: in so many words not protected, or what the noise must promise to them too."""
    if value == NOT_PROTECTED:
        return value
    if not isinstance(value, dict) or set(value) not in ({"epsilon", "delta"}, {"mu"}):
        raise ValueError(
            f"must be '{NOT_PROTECTED}', or a promise: {{ epsilon = 1, delta = 1e-6 }} or "
            "{ mu = 0.5 }"
        )
    numbers = {name: exact(number) for name, number in value.items()}
    if "mu" in numbers:
        return Gaussian(numbers["mu"])
    if numbers["delta"] >= 1:
        raise ValueError("delta must be below 1")
    return Approximate(numbers["epsilon"], float(numbers["delta"]))


class StatisticsSection(NamedSection):
    """[[release]] with `statistics`: numbers about the records that hide what the whole dataset is
    like.
    """

    alone: ClassVar[bool] = True

    statistics: dict[str, dict[str, Any]] = Field(min_length=1)
    protect: dict[str, Any] | list[dict[str, Any]]
    modelling: str | Positive
    records: int = Field(ge=2)
    replications: int = Field(default=1000, ge=2)
    epsilon: Positive
    confidence: Positive | Literal["off"] | None = None  # None: 0.95
    weights: dict[str, Positive] = {}
    persons: Annotated[str | Tradeoff | None, BeforeValidator(_persons)] = None

    @model_validator(mode="after")
    def _possible(self) -> StatisticsSection:
        for name in ("delta", "confidence"):
            value = getattr(self, name)
            if isinstance(value, Fraction) and value >= 1:
                raise ValueError(f"{name} must be below 1")
        if not set(self.weights) <= set(self.statistics):
            raise ValueError("weights must name statistics of the release")
        if isinstance(self.modelling, Fraction):
            if self.modelling >= 1:
                raise ValueError("modelling, as a share of the data, must be below 1")
            if self.persons != NOT_PROTECTED:
                raise ValueError(
                    "modelling as a share of the data publishes laws fitted to people of these "
                    "data: write persons = 'not protected', or give other people's data"
                )
        return self


class StatisticsKind(Kind[StatisticsSection]):
    """Numbers about the records, with noise that hides what the whole dataset is like."""

    key = "statistics"
    name = "statistics"
    section = StatisticsSection
    given_figures = False
    instead: ClassVar[str] = "Their law is in release.json: see docs/how-to/hide-a-property."

    def build(self, plan: Setting, section: StatisticsSection, figures: Invariants) -> Asked:
        """What is asked; refused beside exact figures, which the promise leaves out of account."""
        from congenial.kinds.statistics_offer import build

        return build(plan, section, figures)

    def check(
        self,
        plan: Setting,
        section: StatisticsSection,
        figures: Invariants,
        wish: Want | None = None,  # noqa: ARG002 - sums are not asked about
    ) -> StatisticsCheck:
        """Fit and calibrate, from modelling data alone."""
        from congenial.kinds.statistics_offer import check

        return check(plan, section, figures)

    def offer(
        self,
        plan: Setting,
        section: StatisticsSection,
        built: Asked,
        figures: Invariants,
        randomness: Randomness | None,
        progress: Tell,
    ) -> AbstractContextManager[Offer]:
        """Read the data, fit, calibrate and compute; what is left is to draw."""
        from congenial.kinds.statistics_offer import offer

        return offer(plan, section, built, figures, randomness, progress)

    @property
    def release_class(self) -> type[StatisticsRelease]:
        """`StatisticsRelease`."""
        from congenial.mechanisms.distribution.statistics_release import StatisticsRelease

        return StatisticsRelease

    def report(self, release: StatisticsRelease, promise: str) -> str:
        """The report, without what was fitted and tried, which no bundle holds."""
        from congenial.kinds.statistics_verification import report

        return report(release, promise)

    def expected_report(self, release: StatisticsRelease, promise: str, page: str) -> str:
        """The report that `page` should be, with its pictures left empty."""
        from congenial.kinds.statistics_verification import expected_report

        return expected_report(release, promise, page)

    def persons(self, release: StatisticsRelease) -> Guarantee | None:
        """What is promised to single persons, where anything is."""
        return release.person_guarantee

    def examine(self, checked: StatisticsCheck) -> Document:
        """Every mechanism that was tried, the fit, and both promises."""
        from congenial.kinds.statistics_words import examine

        return examine(checked)

    def show(self, document: Document, screen: Screen, want: str | None = None) -> None:  # noqa: ARG002
        """The same for people."""
        from congenial.kinds.statistics_words import show

        show(document, screen)


STATISTICS = StatisticsKind()
