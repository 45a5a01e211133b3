"""The report of records from tables: the promise, what was measured, the columns, how to use them.

Everything on the page is public: what was measured, and the records made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from congenial.privacy.numbers import number
from congenial.report.page import PageColumn, PageTable, counted, folded_table
from congenial.report.release_page import promise_facts, release_page
from congenial.synthesis.from_tables.records_from_tables_release import (
    MEASUREMENTS,
    TableRecordsRelease,
    files_of_records,
)
from congenial.synthesis.records_from_models_release import DICTIONARY, read_in_pandas, read_in_r


def render(release: TableRecordsRelease, promise: str) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time."""
    law, file = release.description.law, f"{files_of_records(len(release.copies))[0]}.csv"
    facts = promise_facts(
        release.guarantee,
        ("Per replaced record, all tables", _per_record(release)),
        ("Choice of a pair, per record", f"epsilon = {law['choice_epsilon']}"),
        *_cuts(law),
        *_units(release),
        ("Numerics", "none to add: choices and noise are drawn exactly"),
    )
    return release_page(
        "records_from_tables.html",
        release,
        promise,
        rows=_rows(release),
        promise_facts=facts,
        measured=_measured(release),
        pairs=_pairs(release),
        moved=counted(release.moved, "record"),
        columns=_columns(release),
        in_r=read_in_r(release, file),
        in_pandas=read_in_pandas(release, file),
    )


def _cuts(law: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What drawing the bins of columns costs, where some were drawn."""
    if "quantile_steps" not in law:
        return []
    steps, columns = law["quantile_steps"], ", ".join(law["quantiles"])
    told = f"{steps} steps with epsilon = {law['quantile_epsilon']} each"
    return [(f"Private quantiles of {columns}, per record", told)]


def _units(release: TableRecordsRelease) -> list[tuple[str, str]]:
    """What a record is, where units own several rows."""
    if release.description.shown is None:
        return []
    return [("A record", "one row; which rows belong to one unit is not told")]


def _per_record(release: TableRecordsRelease) -> str:
    """What all tables and choices cost one record."""
    told = release.description
    name, amount = ("rho", told.rho) if told.rho else ("epsilon", told.epsilon)
    return f"{name} = {number(amount)}"


def _rows(release: TableRecordsRelease) -> str:
    """How many records there are, and in how many files."""
    rows = counted(release.copies[0].num_rows, "synthetic record")
    copies = len(release.copies)
    return f"{rows} in one file" if copies == 1 else f"{rows} in each of {copies} files"


def _measured(release: TableRecordsRelease) -> PageTable:
    rows = [
        [
            " x ".join(one.axes),
            str(one.values.size),
            number(one.deviation),
        ]
        for one in release.measured
    ]
    columns = [
        PageColumn("table"),
        PageColumn("cells", number=True),
        PageColumn("standard deviation of the noise", number=True),
    ]
    return folded_table(columns, rows, len(rows), MEASUREMENTS)


def _pairs(release: TableRecordsRelease) -> PageTable:
    """How the records know each pair of columns."""
    pairs = combinations(release.names, 2)
    rows = [[one, other, release.known(one, other)] for one, other in pairs]
    columns = [PageColumn("column"), PageColumn("and"), PageColumn("their relation is")]
    return folded_table(columns, rows, len(rows), MEASUREMENTS)


def _columns(release: TableRecordsRelease) -> PageTable:
    rows = release.dictionary_rows
    columns = [
        PageColumn(title) for title in ("column", "type", "level", "from", "below", "written")
    ]
    return folded_table(columns, rows, len(rows), DICTIONARY)
