"""The report of several tables: every table with count, estimate and interval in one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.mechanisms.released import FILE_LEVEL
from congenial.mechanisms.several_tables_release import TablesRelease
from congenial.mechanisms.tables_files import file_name
from congenial.report.error_bars import error_bars
from congenial.report.interval_rows import IntervalRow, interval_rows
from congenial.report.page import LARGEST_TABLE, PageColumn, PageTable, Picture, folded_table
from congenial.report.release_page import Facts, release_page


def render(release: TablesRelease, promise: str) -> str:
    """The report as one HTML document."""
    return release_page(
        "several_tables.html",
        release,
        promise,
        design=_design(release),
        picture=worst_errors(_worst(release)),
        measured=measured_tables(release, _worst(release)),
        whole=any(one is not None for one in release.counts),
        level=f"{FILE_LEVEL:.0%}",
        tables=[
            (
                table_words(release.schema, names),
                release.counts[at] is not None,
                _values(release, at),
                _maps(release, at),
                _table(release, at),
            )
            for at, names in enumerate(release.tables)
        ],
    )


MOST_ROWS = 40  # cells of a table that are drawn


def table_words(schema: Schema, names: Sequence[str]) -> str:
    """A table in words: the labels of its columns, or their names where they have none."""
    return " × ".join(map(schema.shown, names)) or "total"


def _design(release: TablesRelease) -> Facts:
    told = release.description
    return [
        ("Noise", told.measured[0].law),
        ("Shared out", f"aim: {told.design.get('aim', '-')}"),
        ("How near the best", told.design.get("words", "-")),
    ]


def worst_errors(worst: Sequence[tuple[str, float]]) -> Picture:
    """The standard deviation of the worst cell of each table."""
    return Picture(
        error_bars(worst),
        "Standard deviation of each table",
        "Standard deviation of the estimates of each table (its worst cell), on a logarithmic "
        "scale.",
    )


def measured_tables(
    release: Any, worst: Sequence[tuple[str, float]], files: Sequence[str] = ()
) -> PageTable:
    """Cells, whether measured, worst standard deviation and, if told, files of each table."""
    measured = {one.table for one in release.description.measured}
    columns = [
        PageColumn("table"),
        PageColumn("cells", number=True),
        PageColumn("measured"),
        PageColumn("standard deviation", number=True),
        *([PageColumn("files")] if files else []),
    ]
    rows = [
        [
            name,
            release.schema.size(names),
            "yes" if names in measured else "no",
            f"{deviation:.2f}",
            *files[at : at + 1],
        ]
        for at, (names, (name, deviation)) in enumerate(zip(release.tables, worst, strict=True))
    ]
    return folded_table(columns, rows, len(rows), "release.json")


def _worst(release: TablesRelease) -> list[tuple[str, float]]:
    return [
        (table_words(release.schema, names), float(np.max(one, initial=0.0)))
        for names, one in zip(release.tables, release.deviations, strict=True)
    ]


def _values(release: TablesRelease, at: int) -> Picture | None:
    """Values of a small table with their intervals."""
    estimates, counts = release.estimates[at], release.counts[at]
    if estimates.size > MOST_ROWS:
        return None
    values, low, high = _printed(release, at)
    exact = release.deviations[at] == 0
    rows = [
        IntervalRow(label, float(values[cell]), float(low[cell]), float(high[cell]))
        for label, cell in zip(_labels(release, at), np.ndindex(*values.shape), strict=True)
    ]
    what = "estimates" if counts is None else "printed counts"
    marked = " Hollow diamonds are exact: published figures tell them." if exact.any() else ""
    return Picture(
        interval_rows(rows),
        f"Values of {table_words(release.schema, release.tables[at])} with {FILE_LEVEL:.0%} "
        f"intervals, {len(rows)} cells; the numbers are in the table below.",
        f"People: points are {what}, bars {FILE_LEVEL:.0%} intervals.{marked} The axis need not "
        "start at zero.",
    )


def _maps(release: TablesRelease, at: int) -> tuple[Picture, ...]:
    """Maps of a table, where the plan names outlines of its areas."""
    if release.schema.about.map is None:
        return ()
    from congenial.report.map_section import maps_of

    values, low, high = _printed(release, at)
    return maps_of(release.schema, release.tables[at], values, low, high, f"{FILE_LEVEL:.0%}")


def _printed(release: TablesRelease, at: int) -> tuple[Any, Any, Any]:
    """What is printed of a table, and both ends of its intervals."""
    estimates, counts = release.estimates[at], release.counts[at]
    values = estimates if counts is None else counts
    exact = release.deviations[at] == 0
    low, high = release.interval_ends(at, FILE_LEVEL)
    return values, np.where(exact, values, low), np.where(exact, values, high)


def _labels(release: TablesRelease, at: int) -> list[str]:
    """Levels of every cell, in one line each."""
    shown = [release.schema.shown_levels(name) for name in release.tables[at]]
    shape = release.estimates[at].shape
    return [
        ", ".join(levels[i] for levels, i in zip(shown, cell, strict=True)) or "total"
        for cell in np.ndindex(*shape)
    ]


def _table(release: TablesRelease, at: int) -> PageTable:
    numbers = {"count": release.counts[at], "estimate": release.estimates[at]}
    numbers["low"], numbers["high"] = release.interval_ends(at, FILE_LEVEL)
    file = f"{file_name(release.tables, at)}.csv"
    return table_rows(release.schema, release.tables[at], numbers, file)


def table_rows(
    schema: Schema, names: Sequence[str], numbers: Mapping[str, Any], file: str
) -> PageTable:
    """One row per cell: labels, printed count if there is one, estimate and interval."""
    levels = [schema.shown_levels(name) for name in names]
    counts, estimates, low, high = (numbers[key] for key in ("count", "estimate", "low", "high"))
    rows = []
    for cell in islice(np.ndindex(*estimates.shape), LARGEST_TABLE):
        labels = [shown[i] for shown, i in zip(levels, cell, strict=True)]
        printed = [] if counts is None else [f"{int(counts[cell]):,}"]
        interval = f"{int(low[cell]):,} to {int(high[cell]):,}"
        rows.append([*labels, *printed, f"{estimates[cell]:,.1f}", interval])
    columns = [
        *(PageColumn(schema.shown(name)) for name in names),
        *([] if counts is None else [PageColumn("count", number=True)]),
        PageColumn("estimate", number=True),
        PageColumn(f"{FILE_LEVEL:.0%} interval", number=True),
    ]
    return folded_table(columns, rows, estimates.size, file)
