"""The report of a nation by parts: tables above the parts in full, what there is of the others."""

from __future__ import annotations

import numpy as np

from congenial.mechanisms.parted_steps import LEVEL, part_folder
from congenial.mechanisms.tables_by_parts_release import PartedRelease
from congenial.report.page import PageTable, Picture
from congenial.report.release_page import Facts, release_page
from congenial.report.tables_report import (
    measured_tables,
    table_rows,
    table_words,
    worst_errors,
)


def render(release: PartedRelease, promise: str) -> str:
    """The report as one HTML document."""
    return release_page(
        "tables_by_parts.html",
        release,
        promise,
        design=_design(release),
        picture=worst_errors(_worst(release)),
        measured=measured_tables(release, _worst(release), _files(release)),
        level=f"{LEVEL:.0%}",
        cut=release.description.parts,
        many=len(release.parts.labels),
        folders=[part_folder(release.tables, at) for at in sorted(release.worst)],
        tables=[
            (
                table_words(release.schema, release.tables[at]),
                _maps(release, at),
                _table(release, at),
            )
            for at in sorted(release.upper)
        ],
    )


def _design(release: PartedRelease) -> Facts:
    told = release.description
    return [
        ("Noise", told.measured[0].law),
        ("Shared out", f"aim: {told.design.get('aim', '-')}"),
        ("How near the best", told.design.get("words", "-")),
        ("Parts", f"{len(release.parts.labels):,}, by {told.parts}"),
    ]


def _worst(release: PartedRelease) -> list[tuple[str, float]]:
    words = (table_words(release.schema, names) for names in release.tables)
    return list(zip(words, release.largest_sds, strict=True))


def _files(release: PartedRelease) -> list[str]:
    marks = ("/" if at in release.worst else ".csv" for at in range(len(release.tables)))
    return [f"{part_folder(release.tables, at)}{mark}" for at, mark in enumerate(marks)]


def _maps(release: PartedRelease, at: int) -> tuple[Picture, ...]:
    """Maps of a table above the parts, where the plan names outlines of its areas."""
    if release.schema.about.map is None:
        return ()
    from congenial.report.map_section import maps_of

    columns = release.upper[at]
    counts, exact = columns["count"], columns["sd"] == 0
    values = columns["estimate"] if counts is None else counts
    low, high = (np.where(exact, values, columns[end]) for end in ("low", "high"))
    return maps_of(release.schema, release.tables[at], values, low, high, f"{LEVEL:.0%}")


def _table(release: PartedRelease, at: int) -> PageTable:
    file = f"{part_folder(release.tables, at)}.csv"
    return table_rows(release.schema, release.tables[at], release.upper[at], file)
