"""A protected table: [[release]] with `table`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from congenial.kinds.kind import Check, Document, Files, NamedSection, Positive, Screen, Setting
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from congenial.figures.invariants import Invariants
    from congenial.kinds.single_table_offer import ReleaseCheck
    from congenial.mechanisms.single_table_release import Release
    from congenial.report.accuracy import Want


class ReleaseSection(NamedSection):
    """[[release]] with `table`: a protected table and the promise it must meet."""

    table: list[str] = Field(min_length=1)
    rho: Positive | None = None
    mu: Positive | None = None
    nonnegative: Literal["no", "project", "condition"] = "no"
    basis: Literal["theorem"] | None = None
    units: bool = False

    @model_validator(mode="after")
    def _one_promise(self) -> ReleaseSection:
        if sum(x is not None for x in (self.epsilon, self.rho, self.mu)) != 1:
            raise ValueError("must have exactly one of epsilon, rho, mu")
        if self.delta is not None and self.epsilon is None:
            raise ValueError("delta goes with epsilon")
        if self.delta is not None and self.delta >= 1:
            raise ValueError("delta must be below 1")
        if self.nonnegative == "condition" and (self.epsilon is None or self.delta is not None):
            raise ValueError(
                "nonnegative = 'condition' needs epsilon without delta: its price is proved for "
                "pure promises only; use 'project', which is free"
            )
        return self

    @property
    def kind(self) -> Literal["epsilon", "rho", "mu"]:
        """Which parameter states the promise."""
        if self.rho is not None:
            return "rho"
        return "epsilon" if self.mu is None else "mu"

    def target(self, adjacency: Adjacency) -> Guarantee:
        """The promise over an adjacency."""
        if self.rho is not None:
            return Guarantee.zero_concentrated(self.rho, adjacency)
        if self.mu is not None:
            return Guarantee.gaussian(self.mu, adjacency)
        assert self.epsilon is not None
        if self.delta is not None:
            return Guarantee.approximate(self.epsilon, float(self.delta), adjacency)
        return Guarantee.pure(self.epsilon, adjacency)


class SingleTable(LoadedKind[ReleaseSection]):
    """Counts with noise of a known law, conditioned on what is published exactly."""

    key = "table"
    name = "table"
    section = ReleaseSection
    instead: ClassVar[str] = ""

    def offers(self) -> Offers:
        """`single_table_offer`."""
        from congenial.kinds import single_table_offer

        return single_table_offer

    def words(self) -> Words:
        """`single_table_words`."""
        from congenial.kinds import single_table_words

        return single_table_words

    def check(
        self,
        plan: Setting,
        section: ReleaseSection,
        figures: Invariants,
        wish: Want | None = None,
    ) -> ReleaseCheck:
        """What it promises and how accurate it is, from public parameters alone."""
        from congenial.kinds.single_table_offer import check

        return check(plan, section, figures, wish)

    def shown(self, section: ReleaseSection) -> Sequence[str]:
        """The axes of the table."""
        return section.table

    def answers(self, checked: ReleaseCheck) -> bool:
        """Whether the table shows the sum that was asked about."""
        return bool(checked.wanted or checked.unanswered)

    @property
    def release_class(self) -> type[Release]:
        """`Release`."""
        from congenial.mechanisms.single_table_release import Release

        return Release

    def report(self, release: Release, promise: str) -> str:
        """The report of a table, with pictures where they can be drawn."""
        from congenial.report.single_table_report import render

        return render(release, promise)

    def verify(self, files: Files, release: Release) -> list[Check]:
        """Labels, sums, bounds, the grid, and the promise."""
        from congenial.kinds.single_table_verification import verify

        return verify(files, release)

    def expected_report(self, release: Release, promise: str, page: str) -> str:
        """The report that `page` should be, with its pictures left empty."""
        from congenial.kinds.single_table_verification import expected_report

        return expected_report(release, promise, page)

    def show(self, document: Document, screen: Screen, want: str | None = None) -> None:
        """The same for people."""
        from congenial.kinds.single_table_words import show

        show(document, screen, want)

    def why_slow(self, release: Any) -> str:
        """What makes chains slow for this law."""
        from congenial.inference.feasibility import outlook

        return outlook(release.mechanism).why


KIND = SingleTable()
