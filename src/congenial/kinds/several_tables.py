"""Several tables at once: [[release]] with `tables`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, model_validator

from congenial.kinds.kind import Check, Document, Files, NamedSection, Positive, Screen, Setting
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words

if TYPE_CHECKING:
    from congenial.figures.invariants import Invariants
    from congenial.kinds.several_tables_offer import TablesCheck
    from congenial.mechanisms.several_tables_release import TablesRelease
    from congenial.report.accuracy import Want


class TablesSection(NamedSection):
    """[[release]] with `tables`: several tables of the same people, and one promise for all."""

    tables: list[list[str]] | Literal["auto"]
    table: list[str] | None = None
    rho: Positive | None = None
    aim: Literal["keep", "even", "largest"] | None = None
    weights: dict[str, Positive] | None = None
    accuracy: list[str] | None = Field(default=None, min_length=1)
    find: Literal["rho", "epsilon"] | None = None
    keep: list[str] = []
    units: bool = False

    @model_validator(mode="after")
    def _one_promise(self) -> TablesSection:
        given = sum(x is not None for x in (self.epsilon, self.rho, self.accuracy))
        if given != 1:
            raise ValueError(
                "must have exactly one of epsilon, rho, accuracy (which finds the least rho)"
            )
        if self.find is not None and self.accuracy is None:
            raise ValueError("find goes with accuracy: it says which parameter is found")
        of_epsilon = self.epsilon is not None or self.find == "epsilon"
        if self.delta is not None and (not of_epsilon or self.delta >= 1):
            raise ValueError(
                "delta goes with epsilon, or with accuracy and find = 'epsilon', and is below 1"
            )
        if self.mechanism != "auto":
            raise ValueError("mechanism: several tables have noise of their own; leave it out")
        return self

    @model_validator(mode="after")
    def _one_aim(self) -> TablesSection:
        if sum(x is not None for x in (self.aim, self.weights, self.accuracy)) > 1:
            raise ValueError("must have at most one of aim, weights, accuracy")
        return self

    @model_validator(mode="after")
    def _some_tables(self) -> TablesSection:
        if self.tables == "auto" and not self.table:
            raise ValueError("tables = 'auto' needs table = [...], whose sums are then chosen")
        if self.tables != "auto" and self.table is not None:
            raise ValueError("table goes with tables = 'auto'; name it among the tables instead")
        if self.tables != "auto" and not self.tables:
            raise ValueError("tables must name at least one table")
        return self


class SeveralTables(LoadedKind[TablesSection]):
    """Tables measured together under one promise, estimated jointly, printed as whole counts."""

    key = "tables"
    name = "tables"
    section = TablesSection
    instead: ClassVar[str] = ""

    def check(
        self,
        plan: Setting,
        section: TablesSection,
        figures: Invariants,
        wish: Want | None = None,
    ) -> TablesCheck:
        """What it promises and how accurate every table is, from public parameters alone."""
        from congenial.kinds.several_tables_offer import check

        return check(plan, section, figures, wish)

    def offers(self) -> Offers:
        """`several_tables_offer`."""
        from congenial.kinds import several_tables_offer

        return several_tables_offer

    def words(self) -> Words:
        """`several_tables_words`."""
        from congenial.kinds import several_tables_words

        return several_tables_words

    def shown(self, section: TablesSection) -> Sequence[str]:
        """The axes of all tables."""
        tables = [section.table or []] if section.tables == "auto" else section.tables
        return [name for names in tables for name in names]

    def answers(self, checked: TablesCheck) -> bool:
        """Whether the tables show the sum that was asked about."""
        return bool(checked.wanted or checked.unanswered)

    @property
    def release_class(self) -> type[TablesRelease]:
        """`TablesRelease`."""
        from congenial.mechanisms.several_tables_release import TablesRelease

        return TablesRelease

    def report(self, release: TablesRelease, promise: str) -> str:
        """The report: every table with printed count, estimate and interval in one row."""
        from congenial.report.several_tables_report import render

        return render(release, promise)

    def verify(self, files: Files, release: TablesRelease) -> list[Check]:
        """Promise, design, estimates, whole counts and files, all worked out anew."""
        from congenial.kinds.several_tables_verification import verify

        return verify(files, release)

    def show(self, document: Document, screen: Screen, want: str | None = None) -> None:
        """The same for people."""
        from congenial.kinds.several_tables_words import show

        show(document, screen, want)


KIND = SeveralTables()
