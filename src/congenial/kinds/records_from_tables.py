"""Synthetic records from measured tables: [[release]] with `synthesise`.

Everything that `check` says is from public parameters, and everything in the report is public: what
was measured, and the records made of it. What loads scipy's optimisers is imported where it is
used: a bundle is read without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from congenial.data.rational import fraction
from congenial.data.tabulate import Microdata
from congenial.errors import GuaranteeError, SchemaError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.kinds.kind import (
    Checked,
    Document,
    Kind,
    Ready,
    Tell,
    refuse_other_units,
)
from congenial.kinds.plan_sections import NamedSection, Positive, Section
from congenial.kinds.planned_data import PlannedData
from congenial.pairs.sensitive_values import refuse_unpublished, values_given_public
from congenial.privacy.composition import joint_loss
from congenial.privacy.numbers import number
from congenial.report.page import PageColumn, PageTable, counted, folded_table
from congenial.report.release_page import Headline, promise_facts, release_page
from congenial.synthesis.from_tables.column_rules import ColumnRules
from congenial.synthesis.from_tables.measuring_budget import FAMILY
from congenial.synthesis.from_tables.pair_axes import LARGEST_CLIQUE
from congenial.synthesis.from_tables.records_from_tables_release import (
    MEASUREMENTS,
    TableRecordsRelease,
    files_of_records,
)
from congenial.synthesis.from_tables.table_records import RecordsProcedure, rows_apart
from congenial.synthesis.record_files import (
    DICTIONARY,
    DICTIONARY_TITLES,
    checks_of_records,
    read_in_pandas,
    read_in_r,
)
from congenial.tables.promise import law_and_promise

if TYPE_CHECKING:
    from congenial.synthesis.from_tables.records_run import TableRecords

SHOWN_PAIRS = 5  # of the pairs, those with the largest error


def _number(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise ValueError("must be a number such as 250000 or -1.5")
    return fraction(value)


def _as_text(value: Any) -> Any:
    """Days as text, as TOML may write them without quotes."""
    days = value if isinstance(value, list) else []
    return [str(day) for day in days] if any(isinstance(day, date) for day in days) else value


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
            raise ValueError("delta needs epsilon, and must be below 1")
        for key in ("weights", "coarse", "quantiles", "spikes", "tails"):
            for name in getattr(self, key):
                if name not in self.synthesise:
                    raise ValueError(f"{key} has {name!r}, which is not under synthesise")
        if len({*self.synthesise, *self.public}) != len(self.synthesise) + len(self.public):
            raise ValueError("a column is listed twice under synthesise and public")
        if self.mechanism != "auto":
            raise ValueError("records from tables have one mechanism; leave `mechanism` out")
        return self


@dataclass(frozen=True)
class RecordsCheck(Checked):
    """What records from tables would promise."""

    mechanism: TableRecords
    counted: str

    @property
    def pure_is_better(self) -> bool:
        """Whether epsilon without the delta of the plan would have less noise in every table."""
        if self.section.delta is None:
            return False
        records, budget = self.mechanism, self.mechanism.budget
        amount = Fraction(self.section.epsilon or 0) / rows_apart(records.adjacency, records.names)
        pure = replace(budget, law="geometric", amount=amount)
        scales = [*zip(pure.column_scales, budget.column_scales, strict=True)]
        if budget.rounds:
            scales.append((pure.pair_scale, budget.pair_scale))
        return all(
            pure.deviation(without_delta) < budget.deviation(with_delta)
            for without_delta, with_delta in scales
            if without_delta and with_delta
        )


class RecordsFromTables(Kind[TableRecordsSection]):
    """Records that keep every exact figure, fitted to tables measured with exact noise."""

    key = "synthesise"
    name = "records from tables"
    section = TableRecordsSection
    words = "check_records_from_tables.txt"
    release_class = TableRecordsRelease
    instead: ClassVar[str] = (
        "Use `congenial estimate`, which answers from the measured tables, with intervals: "
        "docs/how-to/synthetic-records."
    )

    # ---- from the plan to a draw ---------------------------------------------------------------

    def build(
        self, plan: PlannedData, section: TableRecordsSection, figures: Figures
    ) -> TableRecords:
        """The mechanism of one section over the databases that agree with `figures`.

        What must look alike: the plan's pairs; where figures are about public columns only, one
        person's other values.
        """
        from congenial.synthesis.from_tables.figure_targets import KeptFigures
        from congenial.synthesis.from_tables.records_run import TableRecords

        law, amount = law_and_promise(rho=section.rho, epsilon=section.epsilon, delta=section.delta)
        names = [*section.synthesise, *section.public]
        for name in names:
            plan.schema.attribute(name)  # raises when it is unknown
        refuse_unpublished(figures, tuple(section.public))
        try:
            # refuses what is too large before look-alikes are
            KeptFigures(figures.of_rows, tuple(names))
            pairs = None
            if plan.unit.max_rows is None:
                pairs = values_given_public(figures, section.public, section.synthesise)
            records = TableRecords.calibrate(
                plan.adjacency(figures) if pairs is None else pairs,
                names,
                amount if law == "gaussian" else None,
                section.rounds,
                epsilon=amount if law == "geometric" else None,
                weights=section.weights,
                rules=_rules(section),
            )
            return replace(records, copies=section.copies, records=section.records)
        except (GuaranteeError, SchemaError, StructureError) as reason:
            what = f"release '{section.name}': {reason.what}"
            raise type(reason)(what, remedy=reason.remedy) from None

    def check(
        self,
        plan: PlannedData,
        section: TableRecordsSection,
        figures: Figures,
    ) -> RecordsCheck:
        """What it promises, from public parameters alone."""
        records = self.build(plan, section, figures)
        for name in records.names:
            records.law((name,))  # refused here is what no exact sampler draws
        price = joint_loss([records.description], plan.adjacency(figures)).tradeoff.words
        return RecordsCheck(section, records, self.promise(plan, section, records), price)

    def ready(
        self,
        plan: PlannedData,  # noqa: ARG002 - all that matters is in what was built
        section: TableRecordsSection,
        built: TableRecords,
        figures: Figures,
        data: Microdata,
        progress: Tell,
    ) -> Ready:
        """The counts of the data; a fit to tables of nobody is rehearsed."""
        refuse_other_units(figures, data)
        counts, n = built.fetch(data)
        progress("trying the fit")
        built.rehearse(n)
        return Ready(
            draw=lambda randomness: built.release((counts, n), randomness, section.name, progress),
            made_up=lambda: built.made_up(n, section.name),
        )

    def shown(self, section: TableRecordsSection) -> Sequence[str]:
        """The columns of a record."""
        return [*section.synthesise, *section.public]

    # ---- the bundle ----------------------------------------------------------------------------

    def report(self, release: TableRecordsRelease, promise: str) -> str:
        """The promise, what was measured, the columns and how to use them, as one HTML document."""
        law, file = release.description.law, f"{files_of_records(len(release.copies))[0]}.csv"
        facts = promise_facts(
            release.guarantee,
            ("Per replaced record, all tables", _per_record(release)),
            ("Choice of a pair, per record", f"epsilon = {law['choice_epsilon']}"),
            *_cuts(law),
            *_units(release),
            ("Numerics", "none: choices and noise are drawn exactly"),
        )
        rows = release.dictionary_rows
        titles = [PageColumn(title) for title in DICTIONARY_TITLES]
        return release_page(
            "records_from_tables.html",
            release,
            promise,
            headlines=[
                Headline("Synthetic records", f"{release.copies[0].num_rows:,}", "no real person"),
                Headline("Columns", f"{len(release.names):,}"),
                Headline("Copies", f"{len(release.copies):,}"),
            ],
            rows=_rows(release),
            promise_facts=facts,
            measured=_measured_tables(release),
            pairs=_relations(release),
            moved=counted(release.moved, "record"),
            columns=folded_table(titles, rows, len(rows), DICTIONARY),
            in_r=read_in_r(release, file),
            in_pandas=read_in_pandas(release, file),
        )

    def rebuilt(self, release: TableRecordsRelease) -> Iterable[RecordsProcedure]:
        """The mechanism of this law over these pairs."""
        return [release.procedure]

    def checks(self, release: TableRecordsRelease) -> dict[str, bool]:
        """The promise, what was measured, and what records must be like."""
        mechanism, measured, copies = release.procedure, release.measured, release.copies
        pairs = [table for table in measured if len(table.axes) == 2]
        singles = [(name,) for name in mechanism.names if mechanism.law((name,)) is not None]
        axes, family = [table.axes for table in measured], FAMILY[mechanism.budget.law]
        rows = {copy.num_rows for copy in copies}
        return super().checks(release) | {
            "every copy has the expected columns and number of records": (
                all(tuple(copy.column_names) == mechanism.names for copy in copies)
                and len(copies) == mechanism.copies
                and (rows == {mechanism.records} if mechanism.records else len(rows) == 1)
            ),
            "every measured table belongs to the procedure, once, with the stated noise": (
                len(set(axes)) == len(axes)
                and set(singles) <= set(axes)
                and len(pairs) <= mechanism.budget.rounds
                and mechanism.budget.pairs == len(replace(mechanism, cuts=()).open_pairs)
                and all(mechanism.scales.get(table.axes) == table.scale for table in measured)
                and all(table.family == family for table in measured)
            ),
            "every measured table agrees with the exact figures": all(
                support(mechanism.figures, table.axes).agrees(table.values) for table in measured
            ),
            "no more records were changed than there are": (
                0 <= release.moved <= sum(copy.num_rows for copy in copies)
            ),
            **checks_of_records(
                release.published, release.schema, copies, figures=mechanism.records is None
            ),
        }

    # ---- what `congenial check` says -----------------------------------------------------------

    def examine(self, checked: RecordsCheck) -> Document:
        """The check of one section as plain data; from public parameters alone."""
        from congenial.synthesis.from_tables.table_records import (
            needed_people,
            predicted_errors,
        )

        records, budget = checked.mechanism, checked.mechanism.budget
        pair_axes, errors = records.pair_axes, predicted_errors(records)
        document = {
            **super().examine(checked),
            "title": "synthetic records that follow measured tables",
            "columns": [{"name": name, "levels": size} for name, size in records.sizes.items()],
            "rounds": budget.rounds,
            "pairs": budget.pairs,
            "chosen": budget.chooses,
            "coarsened": [
                {"pair": list(pair), "by": list(axes)} for pair, axes in pair_axes.coarsened.items()
            ],
            "most_cells": LARGEST_CLIQUE,
            "too_large": [
                {"pair": list(pair), "cells": records.schema.size(pair)}
                for pair in pair_axes.too_large
            ],
            "copies": records.copies,
            "records": records.records,
            "tables": [error.to_dict() for error in errors],
            "noun": "rows" if records.several_rows else "people",
            "people": records.kept.seen.known_total,
            "needed_people": needed_people(errors),
            "needed_alone": {
                error.axes[0]: error.needed for error in errors if len(error.axes) == 1
            },
            "pure_is_better": checked.pure_is_better,
            "kept": [statement.label for statement in records.kept.statements],
            "not_kept": records.not_kept,
            "public": checked.section.public,
            "quantiles": {cut.name: cut.to_dict() for cut in records.rules.quantiles},
            "made_up": [column.name for column in records.rules.made_up],
            "counted": checked.counted,
            "ends_only": _ends_only(records),
            "mechanism": records.name,
        }
        return document | _words(document)


KIND = RecordsFromTables()


def _rules(section: TableRecordsSection) -> ColumnRules:
    tails = {name: tail.model_dump(exclude_none=True) for name, tail in section.tails.items()}
    return ColumnRules.of(section.coarse, section.quantiles, section.spikes, tails, section.made_up)


# ---- the report --------------------------------------------------------------------------------


def _cuts(law: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What drawing the bins of columns costs, where some were drawn."""
    if "quantile_steps" not in law:
        return []
    steps, columns = law["quantile_steps"], ", ".join(law["quantiles"])
    cost = f"{steps} steps with epsilon = {law['quantile_epsilon']} each"
    return [(f"Private quantiles of {columns}, per record", cost)]


def _units(release: TableRecordsRelease) -> list[tuple[str, str]]:
    """What a record is, where units own several rows."""
    if release.description.shown is None:
        return []
    return [("A record", "one row; the records do not show which rows belong to one unit")]


def _per_record(release: TableRecordsRelease) -> str:
    """What all tables and choices cost one record."""
    description = release.description
    if description.rho:
        return f"rho = {number(description.rho)}"
    return f"epsilon = {number(description.epsilon)}"


def _rows(release: TableRecordsRelease) -> str:
    """How many records there are, and in how many files."""
    rows = counted(release.copies[0].num_rows, "synthetic record")
    copies = len(release.copies)
    return f"{rows} in one file" if copies == 1 else f"{rows} in each of {copies} files"


def _measured_tables(release: TableRecordsRelease) -> PageTable:
    rows = [
        [" x ".join(table.axes), str(table.values.size), number(table.deviation)]
        for table in release.measured
    ]
    titles = [
        PageColumn("table"),
        PageColumn("cells", number=True),
        PageColumn("standard deviation of the noise", number=True),
    ]
    return folded_table(titles, rows, len(rows), MEASUREMENTS)


def _relations(release: TableRecordsRelease) -> PageTable:
    """How the records know each pair of columns."""
    pairs = combinations(release.names, 2)
    rows = [[first, second, release.known(first, second)] for first, second in pairs]
    titles = [PageColumn("column"), PageColumn("and"), PageColumn("their relation is")]
    return folded_table(titles, rows, len(rows), MEASUREMENTS)


# ---- what `congenial check` says ---------------------------------------------------------------


def _ends_only(records: TableRecords) -> list[str]:
    """Columns with an open level whose mean no tail states."""
    stated = {(tail.name, side) for tail in records.rules.tails for side in tail.to_dict()}
    columns = [records.schema.attribute(name) for name in records.names]
    open_ends = [
        (column.name, side)
        for column in columns
        for side, level in (("top", column.top), ("bottom", column.bottom))
        if level is not None
    ]
    return list(dict.fromkeys(name for name, side in open_ends if (name, side) not in stated))


def _words(document: Document) -> Document:
    """What follows from the numbers, for people."""
    singles = [table for table in document["tables"] if len(table["table"]) == 1]
    pairs = [table for table in document["tables"] if len(table["table"]) == 2]
    return {
        "measured_words": _measured(document),
        "written_words": _written(document),
        "quantile_words": _quantiles(document),
        "shown_tables": [
            *singles,
            *sorted(pairs, key=lambda pair: -pair["misplaced"])[:SHOWN_PAIRS],
        ],
        "advice": _advice(document),
    }


def _measured(document: Document) -> str:
    rounds, pairs = document["rounds"], document["pairs"]
    if not rounds:
        return "one-way tables only: columns are independent in the records"
    if not document["chosen"]:
        these = "the pair" if pairs == 1 else f"all {pairs} pairs"
        return f"all one-way tables and {these} of columns that can be fitted"
    return (
        f"all one-way tables and {rounds} of {pairs} pairs of columns, chosen one after another "
        "within the same promise"
    )


def _written(document: Document) -> str:
    records = f"as many records as {document['noun']}"
    if document["records"] is not None:
        records = f"{document['records']:,} records"
    if document["noun"] == "rows":
        records += "; they do not show which rows belong to one unit"
    return records if document["copies"] == 1 else f"{document['copies']} copies of {records}"


def _quantiles(document: Document) -> str:
    """Which columns are cut at private quantiles."""
    columns = [
        f"{name} at private quantiles, {cut['bins']} bins"
        + (f" ({cut['in_pairs']} in pairs)" if cut["in_pairs"] != cut["bins"] else "")
        for name, cut in document["quantiles"].items()
    ]
    return "; ".join(columns) + "; the noise below is for that many"


def _advice(document: Document) -> list[str]:
    """Where records would be of little use, and what would be better."""
    advice, noun = [], document["noun"]
    needed, people = document["needed_people"], document["people"]
    if needed is not None and people is not None and people < needed:
        advice.append(
            f"Warning: with {people:,} {noun} the noise of a typical pair misplaces more than a "
            f"tenth of them (about {needed:,} {noun} would be enough), so relations between "
            "columns will be lost in the records. Synthesise fewer columns, use fewer categories "
            "or rounds, or a larger budget."
        )
    elif needed is not None:
        advice.append(
            f"Relations between columns need many {noun}: with fewer than about {needed:,} the "
            "noise of a typical pair misplaces more than a tenth of all of them, and the "
            "relations in the records will be weak."
        )
    advice += _weak_columns(document)
    if document["ends_only"]:
        advice.append(
            f"Open classes of {', '.join(document['ends_only'])} are written as their limits: "
            "larger and smaller numbers are lost. Give their mean (`tails`), or wider edges."
        )
    if too_large := document["too_large"]:
        most = max(pair["cells"] for pair in too_large)
        pairs = "; ".join(" x ".join(pair["pair"]) for pair in too_large)
        advice.append(
            f"Not measured, because a fit can use tables of at most {document['most_cells']:,} "
            f"cells: {pairs} ({most:,} cells). How these columns relate is lost in the records. "
            "Give one column of each pair a coarser name (`within` in the schema) or fewer "
            "categories."
        )
    if constant := [column["name"] for column in document["columns"] if column["levels"] == 1]:
        advice.append(
            f"{', '.join(constant)}: one category only, the same in every record. Give it edges "
            "or levels, or leave it out."
        )
    if document["pure_is_better"]:
        advice.append(
            "With so few tables, the same epsilon without delta needs less noise: leave out "
            "delta for a stronger promise and better records."
        )
    return advice


def _weak_columns(document: Document) -> list[str]:
    """Columns with so many levels that even alone they take more people than there may be."""
    people, alone, noun = document["people"], document["needed_alone"], document["noun"]
    enough = (document["needed_people"] or 0) if people is None else people
    weak = [f"{name} (about {needed:,})" for name, needed in alone.items() if needed > enough]
    if not weak:
        return []
    some = "Some columns" if people is None else f"Warning: with {people:,} {noun} some columns"
    return [
        f"{some} are mostly noise even alone, unless there are more {noun} than this: "
        f"{', '.join(weak)}. Give them fewer categories (edges), or quantiles, or a larger budget."
    ]
