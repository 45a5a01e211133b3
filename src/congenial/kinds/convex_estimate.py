"""A mean, a quantile or a regression: [[release]] with `estimate`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import model_validator

from congenial.kinds.kind import (
    Document,
    Kind,
    NamedSection,
    Offer,
    Positive,
    Screen,
    Setting,
    Tell,
)

if TYPE_CHECKING:
    from congenial.figures.invariants import Invariants
    from congenial.kinds.convex_estimate_offer import EstimateCheck
    from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease, GradientEstimate
    from congenial.report.accuracy import Want
    from congenial.sampling.randomness import Randomness


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


class EstimateKind(Kind[EstimateSection]):
    """A statistic near its best value for the data, by the K-norm gradient mechanism."""

    key = "estimate"
    name = "estimate"
    section = EstimateSection
    instead: ClassVar[str] = "Its law is in release.json: see docs/how-to/estimate-a-statistic."

    def build(
        self, plan: Setting, section: EstimateSection, figures: Invariants
    ) -> GradientEstimate:
        """The mechanism over the databases that agree with the figures."""
        from congenial.kinds.convex_estimate_offer import build

        return build(plan, section, figures)

    def check(
        self,
        plan: Setting,
        section: EstimateSection,
        figures: Invariants,
        wish: Want | None = None,  # noqa: ARG002 - sums are not asked about
    ) -> EstimateCheck:
        """What it promises, from public parameters alone."""
        from congenial.kinds.convex_estimate_offer import check

        return check(plan, section, figures)

    def offer(
        self,
        plan: Setting,
        section: EstimateSection,
        built: GradientEstimate,
        figures: Invariants,
        randomness: Randomness | None,
        progress: Tell,
    ) -> AbstractContextManager[Offer]:
        """Read and check the data; what is left is to draw."""
        from congenial.kinds.convex_estimate_offer import offer

        return offer(plan, section, built, figures, randomness, progress)

    @property
    def release_class(self) -> type[EstimateRelease]:
        """`EstimateRelease`."""
        from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease

        return EstimateRelease

    def report(self, release: EstimateRelease, promise: str) -> str:
        """The report, from what a bundle holds."""
        from congenial.report.estimate_report import render

        return render(release, promise)

    def examine(self, checked: EstimateCheck) -> Document:
        """What is estimated, how far off it is, and the promise."""
        from congenial.kinds.convex_estimate_offer import examine

        return super().examine(checked) | examine(checked)

    def show(self, document: Document, screen: Screen, want: str | None = None) -> None:  # noqa: ARG002
        """The same for people."""
        screen.heading(f"Release '{document['name']}': {', '.join(document['estimates'])}")
        screen.facts(
            {
                "Per record": f"epsilon = {document['per_record']}",
                "Records that may differ": document["records"],
                "Grid": f"{document['points']:,} public points per number",
                "Error": document["accuracy"],
                **({"Units": document["units"]} if document["units"] else {}),
            }
        )
        screen.paragraph("")
        screen.paragraph(document["promise"])


ESTIMATE = EstimateKind()
