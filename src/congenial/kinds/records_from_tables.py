"""Synthetic records from measured tables: [[release]] with `synthesise`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from congenial.data.rational import fraction
from congenial.kinds.kind import NamedSection, Positive, Section
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words

if TYPE_CHECKING:
    from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease


def _number(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise ValueError("must be a number; write 250000 or -1.5")
    return fraction(value)


def _as_text(value: Any) -> Any:
    """Days as text, as TOML may write them without quotes."""
    days = value if isinstance(value, list) else []
    return [str(one) for one in days] if any(isinstance(one, date) for one in days) else value


Mean = Annotated[Fraction, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
MadeUp = Annotated[str | list[str], BeforeValidator(_as_text)]


class Tail(Section):
    """The stated mean of numbers beyond the end of an open level."""

    top: Mean | None = None
    bottom: Mean | None = None


class TableRecordsSection(NamedSection):
    """[[release]] with `synthesise`: records over these columns, made from measured tables.

    `rho`, `epsilon`, or `epsilon` with `delta`, states the promise. `rounds`: how many pairs of
    columns are measured; by default two a column (one, for epsilon without delta), or all pairs
    where there are fewer. `weights`: columns that matter more than others, whose weight is 1.
    `coarse`: columns that are counted by a coarser name in pairs, level by level alone.
    `quantiles`: numeric columns that are cut at private quantiles, into so many bins (alone; a
    second number: in pairs), with `spikes` as bins of their own. `tails`: the stated mean of
    numbers in an open level. `made_up`: identifiers and dates that say nothing. `copies` sets of
    `records` records are written, by default one with as many as there are people. `public`:
    further columns that everybody may know of everybody, whose table is published.
    """

    synthesise: list[str] = Field(min_length=1)
    rho: Positive | None = None
    rounds: int | None = Field(default=None, ge=0)
    weights: dict[str, Positive] = {}
    coarse: dict[str, str] = {}
    quantiles: dict[str, int | Annotated[list[int], Field(min_length=2, max_length=2)]] = {}
    spikes: dict[str, list[int]] = {}
    tails: dict[str, Tail] = {}
    made_up: dict[str, MadeUp] = {}
    public: list[str] = []
    copies: int = Field(default=1, ge=1, le=100)
    records: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_promise(self) -> TableRecordsSection:
        if (self.rho is None) == (self.epsilon is None):
            raise ValueError("must have rho, epsilon, or epsilon with delta")
        if self.delta is not None and (self.epsilon is None or self.delta >= 1):
            raise ValueError("delta goes with epsilon, and is below 1")
        for key in ("weights", "coarse", "quantiles", "spikes", "tails"):
            for name in getattr(self, key):
                if name not in self.synthesise:
                    raise ValueError(f"{key} names {name!r}, which is not synthesised")
        if len({*self.synthesise, *self.public}) != len(self.synthesise) + len(self.public):
            raise ValueError("synthesise and public name a column twice")
        if self.mechanism != "auto":
            raise ValueError("records from tables have one mechanism; leave `mechanism` out")
        return self


class RecordsFromTables(LoadedKind[TableRecordsSection]):
    """Records that keep every exact figure, fitted to tables measured with exact noise."""

    key = "synthesise"
    name = "records from tables"
    section = TableRecordsSection
    instead: ClassVar[str] = (
        "Use `congenial estimate`, which answers from the measured tables, with intervals: "
        "docs/how-to/records-from-tables."
    )

    def offers(self) -> Offers:
        """`records_from_tables_offer`."""
        from congenial.kinds import records_from_tables_offer

        return records_from_tables_offer

    def words(self) -> Words:
        """`records_from_tables_words`."""
        from congenial.kinds import records_from_tables_words

        return records_from_tables_words

    def shown(self, section: TableRecordsSection) -> Sequence[str]:
        """The columns of a record."""
        return [*section.synthesise, *section.public]

    @property
    def release_class(self) -> type[TableRecordsRelease]:
        """`TableRecordsRelease`."""
        from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease

        return TableRecordsRelease

    def report(self, release: TableRecordsRelease, promise: str) -> str:
        """The report of the records and what was measured."""
        from congenial.report.records_from_tables_report import render

        return render(release, promise)


KIND = RecordsFromTables()
