"""Statistics that hide what the whole dataset is like: [[release]] with `statistics`."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    model_validator,
)

from congenial.kinds.kind import NamedSection, Positive, Section, exact
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words
from congenial.privacy.tradeoff import Approximate, Gaussian, Tradeoff

if TYPE_CHECKING:
    from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
    from congenial.privacy.guarantee import Guarantee


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


def _real(value: Any) -> Any:
    """A finite number as a double."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction | float):
        raise ValueError("must be a number")
    if not math.isfinite(value):
        raise ValueError("must be finite")
    return float(value)


Real = Annotated[float, BeforeValidator(_real)]


class LawSection(Section):
    """One entry of `laws`: a Gaussian law of the statistics that an expert states."""

    name: str = Field(min_length=1)
    mean: list[Real] = Field(min_length=1)
    covariance: list[list[Real]] = Field(min_length=1)


class StatisticsSection(NamedSection):
    """[[release]] with `statistics`: numbers about the records that hide what the whole dataset is
    like.
    """

    alone: ClassVar[bool] = True

    statistics: dict[str, dict[str, Any]] = Field(min_length=1)
    protect: dict[str, Any] | list[dict[str, Any]] | None = None
    modelling: str | Positive | None = None
    laws: list[LawSection] | None = Field(default=None, min_length=2)
    apart: list[list[str]] | None = Field(default=None, min_length=1)
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
        self._one_source_of_laws()
        if isinstance(self.modelling, Fraction):
            if self.modelling >= 1:
                raise ValueError("modelling, as a share of the data, must be below 1")
            if self.persons != NOT_PROTECTED:
                raise ValueError(
                    "modelling as a share of the data publishes laws fitted to people of these "
                    "data: write persons = 'not protected', or give other people's data"
                )
        return self

    def _one_source_of_laws(self) -> None:
        """Laws are fitted (`protect` and `modelling`), or stated (`laws`); not both."""
        fitting = (self.protect, self.modelling)
        if self.laws is None and (None in fitting or self.apart is not None):
            raise ValueError(
                "give protect and modelling, from which laws are learnt; or laws, stated by an "
                "expert, with apart = [['one', 'other']] to name the pairs"
            )
        if self.laws is None:
            return
        if fitting != (None, None) or self.confidence is not None:
            raise ValueError(
                "laws are stated: leave out protect, modelling and confidence, which are about "
                "fitted ones"
            )
        if any(len(pair) != 2 for pair in self.apart or ()):
            raise ValueError("apart must be a list of pairs of names of laws")


class StatisticsKind(LoadedKind[StatisticsSection]):
    """Numbers about the records, with noise that hides what the whole dataset is like."""

    key = "statistics"
    name = "statistics"
    section = StatisticsSection
    given_figures = False
    instead: ClassVar[str] = "Their law is in release.json: see docs/how-to/hide-a-property."

    def offers(self) -> Offers:
        """`statistics_offer`."""
        from congenial.kinds import statistics_offer

        return statistics_offer

    def words(self) -> Words:
        """`statistics_words`."""
        from congenial.kinds import statistics_words

        return statistics_words

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

    def further_promise(self, release: StatisticsRelease) -> Guarantee | None:
        """What is promised to single persons, where anything is."""
        return release.person_guarantee


KIND = StatisticsKind()
