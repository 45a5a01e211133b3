"""A mean, a quantile or a regression: [[release]] with `estimate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import model_validator

from congenial.kinds.kind import NamedSection, Positive
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words

if TYPE_CHECKING:
    from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease


class EstimateSection(NamedSection):
    """[[release]] with `estimate`: a statistic that minimises a convex loss, drawn near it."""

    estimate: dict[str, Any]
    epsilon: Positive

    @model_validator(mode="after")
    def _possible(self) -> EstimateSection:
        if self.delta is not None:
            raise ValueError("an estimate promises epsilon without delta; leave delta out")
        if self.mechanism not in ("auto", "k_norm_gradient"):
            raise ValueError(f"mechanism = {self.mechanism!r} makes no estimate; write 'auto'")
        return self


class EstimateKind(LoadedKind[EstimateSection]):
    """A statistic near its best value for the data, by the K-norm gradient mechanism."""

    key = "estimate"
    name = "estimate"
    section = EstimateSection
    instead: ClassVar[str] = "Its law is in release.json: see docs/how-to/estimate-a-statistic."

    def offers(self) -> Offers:
        """`convex_estimate_offer`."""
        from congenial.kinds import convex_estimate_offer

        return convex_estimate_offer

    def words(self) -> Words:
        """`convex_estimate_words`."""
        from congenial.kinds import convex_estimate_words

        return convex_estimate_words

    @property
    def release_class(self) -> type[EstimateRelease]:
        """`EstimateRelease`."""
        from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease

        return EstimateRelease

    def report(self, release: EstimateRelease, promise: str) -> str:
        """The report, from what a bundle holds."""
        from congenial.report.convex_estimate_report import render

        return render(release, promise)


ESTIMATE = EstimateKind()
