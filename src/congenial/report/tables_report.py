"""The report of several tables: every table with count, estimate and interval in one row."""

from __future__ import annotations

import numpy as np

from congenial._version import __version__
from congenial.mechanisms.tables_files import file_name
from congenial.mechanisms.tables_release import LEVEL, TablesRelease
from congenial.privacy.semantics import belief_words
from congenial.report.error_bars import error_bars
from congenial.report.page import (
    LARGEST_TABLE,
    PageColumn,
    facts,
    folded_table,
    page,
    section,
    text,
)
from congenial.report.promise_section import promise_section
from congenial.report.table_report import banner, published_section
from congenial.tables.joint_estimator import ends

ACROSS = (
    "<p>This table cuts across the others, so that sums of whole counts would be off here: its "
    "estimates are printed.</p>\n"
)
OTHERS = (
    "Sums over cells that no table shows are best taken from the estimates; `release.count` does "
    "so by itself."
)


def render(release: TablesRelease, promise: str) -> str:
    """The report as one HTML document."""
    lead = f"<p>{text(belief_words(release.guarantee))}</p>"
    return page(
        f"{release.name}: {len(release.tables)} protected tables",
        [
            banner(release),
            _opening(release),
            published_section(release),
            promise_section(release.guarantee, promise, lead=lead),
            _design(release),
            _tables(release),
            f'<footer class="soft">Written by congenial {text(__version__)}. This page loads '
            "nothing from a network and shows released and public values only.</footer>",
        ],
    )


def said(names: tuple[str, ...]) -> str:
    """A table in words."""
    return " × ".join(names) if names else "total"


def _opening(release: TablesRelease) -> str:
    return (
        f'<header><h1>{text(release.name)}</h1>\n<p class="lead">{len(release.tables)} tables of '
        "the same people, measured together and protected with "
        f'<span class="whole">{text(release.guarantee.tradeoff.words)}</span> per person. They '
        "agree with each other and with every published figure.</p></header>"
    )


def _design(release: TablesRelease) -> str:
    told = release.description
    measured = {one.table for one in told.measured}
    columns = [
        PageColumn("table"),
        PageColumn("cells", number=True),
        PageColumn("measured"),
        PageColumn("standard deviation", number=True),
    ]
    rows = [
        [
            said(names),
            deviations.size,
            "yes" if names in measured else "no",
            f"{float(np.max(deviations, initial=0.0)):.2f}",
        ]
        for names, deviations in zip(release.tables, release.deviations, strict=True)
    ]
    blocks: list[tuple[str, object]] = [
        ("Noise", told.measured[0].law),
        ("Shared out", f"aim: {told.design.get('aim', '-')}"),
        ("How near the best", told.design.get("words", "-")),
    ]
    shown = [
        (said(names), float(np.max(one, initial=0.0)))
        for names, one in zip(release.tables, release.deviations, strict=True)
    ]
    picture = (
        f'<figure><img alt="Standard deviation of each table" src="{error_bars(shown)}">'
        "<figcaption>Standard deviation of the estimates of each table (its worst cell), on a "
        "logarithmic scale.</figcaption></figure>"
    )
    return section(
        "design",
        "How precisely each table was measured",
        facts(blocks),
        picture,
        folded_table(columns, rows, len(rows), "release.json"),
    )


def _tables(release: TablesRelease) -> str:
    whole = any(one is not None for one in release.counts)
    intro = (
        "<p>One row per cell: the whole count that is printed, the estimate it was fitted to, and "
        f"the {LEVEL:.0%} interval around the estimate. {text(OTHERS)}</p>"
        if whole
        else f"<p>Estimates with their {LEVEL:.0%} intervals; there are no whole counts.</p>"
    )
    parts = [_table(release, at) for at in range(len(release.tables))]
    return section("values", "The tables", intro, *parts)


def _table(release: TablesRelease, at: int) -> str:
    names = release.tables[at]
    axes = release.schema.axes(names)
    estimates, deviations = release.estimates[at], release.deviations[at]
    low, high = ends(estimates, deviations, LEVEL)
    counts = release.counts[at]
    rows = []
    for cell in list(np.ndindex(*estimates.shape))[:LARGEST_TABLE]:
        labels = [axis.levels[i] for axis, i in zip(axes, cell, strict=True)]
        printed = [] if counts is None else [f"{int(counts[cell]):,}"]
        interval = f"{int(low[cell]):,} to {int(high[cell]):,}"
        rows.append([*labels, *printed, f"{estimates[cell]:,.1f}", interval])
    columns = [
        *(PageColumn(axis.name) for axis in axes),
        *([] if counts is None else [PageColumn("count", number=True)]),
        PageColumn("estimate", number=True),
        PageColumn(f"{LEVEL:.0%} interval", number=True),
    ]
    file = f"{file_name(release.tables, at)}.csv"
    note = ACROSS if counts is None and any(one is not None for one in release.counts) else ""
    return f"<h3>{text(said(names))}</h3>\n{note}" + folded_table(
        columns, rows, estimates.size, file
    )
