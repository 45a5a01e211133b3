"""Synthetic records from measured tables: [[release]] with `synthesise`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, model_validator

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
    from congenial.kinds.records_from_tables_offer import RecordsCheck
    from congenial.report.accuracy import Want
    from congenial.sampling.randomness import Randomness
    from congenial.synthesis.from_tables.records_release import TableRecordsRelease
    from congenial.synthesis.from_tables.table_records import TableRecords


class TableRecordsSection(NamedSection):
    """[[release]] with `synthesise`: records over these columns, made from measured tables.

    `rho`, or `epsilon` with `delta`, states the promise. `rounds`: how many pairs of columns are
    measured; by default two a column, or all pairs where there are fewer.
    """

    synthesise: list[str] = Field(min_length=1)
    rho: Positive | None = None
    rounds: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _one_promise(self) -> TableRecordsSection:
        if (self.rho is None) == (self.epsilon is None):
            raise ValueError("must have rho, or epsilon with delta")
        if self.epsilon is not None and self.delta is None:
            raise ValueError(
                "epsilon needs delta here: many tables are measured, and a pure promise for all of "
                "them would be mostly noise"
            )
        if self.delta is not None and (self.epsilon is None or self.delta >= 1):
            raise ValueError("delta goes with epsilon, and is below 1")
        if len(set(self.synthesise)) != len(self.synthesise):
            raise ValueError("synthesise names a column twice")
        if self.mechanism != "auto":
            raise ValueError("records from tables have one mechanism; leave `mechanism` out")
        return self


class RecordsFromTables(Kind[TableRecordsSection]):
    """Records that keep every exact figure, fitted to tables measured with exact noise."""

    key = "synthesise"
    name = "records from tables"
    section = TableRecordsSection
    instead: ClassVar[str] = (
        "Its measured tables are in measurements.json: see docs/how-to/records-from-tables."
    )

    def build(
        self, plan: Setting, section: TableRecordsSection, figures: Invariants
    ) -> TableRecords:
        """The mechanism over the databases that agree with the figures."""
        from congenial.kinds.records_from_tables_offer import build

        return build(plan, section, figures)

    def check(
        self,
        plan: Setting,
        section: TableRecordsSection,
        figures: Invariants,
        wish: Want | None = None,  # noqa: ARG002 - sums are not asked about
    ) -> RecordsCheck:
        """What it promises, from public parameters alone."""
        from congenial.kinds.records_from_tables_offer import check

        return check(plan, section, figures)

    def offer(
        self,
        plan: Setting,
        section: TableRecordsSection,
        built: TableRecords,
        figures: Invariants,
        randomness: Randomness | None,
        progress: Tell,
    ) -> AbstractContextManager[Offer]:
        """Read and count the data; what is left is to choose, measure and fit."""
        from congenial.kinds.records_from_tables_offer import offer

        return offer(plan, section, built, figures, randomness, progress)

    def shown(self, section: TableRecordsSection) -> Sequence[str]:
        """The columns of a record."""
        return section.synthesise

    @property
    def release_class(self) -> type[TableRecordsRelease]:
        """`TableRecordsRelease`."""
        from congenial.synthesis.from_tables.records_release import TableRecordsRelease

        return TableRecordsRelease

    def report(self, release: TableRecordsRelease, promise: str) -> str:
        """The report of the records and what was measured."""
        from congenial.report.table_records_report import render

        return render(release, promise)

    def examine(self, checked: RecordsCheck) -> Document:
        """Columns, noise of tables, the promise, and what the ledger counts."""
        from congenial.kinds.records_from_tables_words import examine

        return examine(checked)

    def show(self, document: Document, screen: Screen, want: str | None = None) -> None:  # noqa: ARG002
        """The same for people."""
        from congenial.kinds.records_from_tables_words import show

        show(document, screen)


TABLE_RECORDS = RecordsFromTables()
