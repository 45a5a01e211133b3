"""The report of a nation by parts: tables above the parts in full, what there is of the others."""

from __future__ import annotations

import numpy as np

from congenial.mechanisms.parted_release import PartedRelease
from congenial.mechanisms.parted_steps import LEVEL, part_folder
from congenial.privacy.semantics import belief_words
from congenial.report.error_bars import error_bars
from congenial.report.exact_section import exact_section
from congenial.report.page import PageColumn, PageTable, Picture, folded_table
from congenial.report.promise_section import Facts, promise_facts
from congenial.report.render import page
from congenial.report.tables_report import said, table_rows
from congenial.report.usage_section import python_lines


def render(release: PartedRelease, promise: str) -> str:
    """The report as one HTML document."""
    return page(
        "parted.html",
        release=release,
        promise=promise,
        exact=exact_section(release),
        belief=belief_words(release.guarantee),
        promise_facts=promise_facts(release.guarantee),
        design=_design(release),
        picture=_picture(release),
        measured=_measured(release),
        level=f"{LEVEL:.0%}",
        cut=release.description.parts,
        many=len(release.parts.labels),
        folders=[part_folder(release.tables, at) for at in sorted(release.worst)],
        tables=[(said(release.tables[at]), _table(release, at)) for at in sorted(release.upper)],
        code=python_lines(release),
    )


def _design(release: PartedRelease) -> Facts:
    told = release.description
    return [
        ("Noise", told.measured[0].law),
        ("Shared out", f"aim: {told.design.get('aim', '-')}"),
        ("How near the best", told.design.get("words", "-")),
        ("Parts", f"{len(release.parts.labels):,}, by {told.parts}"),
    ]


def _worst(release: PartedRelease, at: int) -> float:
    if at in release.worst:
        return release.worst[at]
    return float(np.max(release.upper[at]["sd"], initial=0.0))


def _picture(release: PartedRelease) -> Picture:
    shown = [(said(names), _worst(release, at)) for at, names in enumerate(release.tables)]
    return Picture(
        error_bars(shown),
        "Standard deviation of each table",
        "Standard deviation of the estimates of each table (its worst cell), on a logarithmic "
        "scale.",
    )


def _measured(release: PartedRelease) -> PageTable:
    measured = {one.table for one in release.description.measured}
    columns = [
        PageColumn("table"),
        PageColumn("cells", number=True),
        PageColumn("measured"),
        PageColumn("standard deviation", number=True),
        PageColumn("files"),
    ]
    rows = [
        [
            said(names),
            release.schema.size(names),
            "yes" if names in measured else "no",
            f"{_worst(release, at):.2f}",
            f"{part_folder(release.tables, at)}{'/' if at in release.worst else '.csv'}",
        ]
        for at, names in enumerate(release.tables)
    ]
    return folded_table(columns, rows, len(rows), "release.json")


def _table(release: PartedRelease, at: int) -> PageTable:
    columns = release.upper[at]
    file = f"{part_folder(release.tables, at)}.csv"
    numbers = (columns["estimate"], columns["sd"], columns["count"])
    return table_rows(release.schema, release.tables[at], *numbers, file)
