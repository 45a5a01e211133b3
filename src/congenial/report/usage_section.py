"""The report's section on how to use a release: code, files, expected error."""

from __future__ import annotations

import numpy as np

from congenial.figures.support import support
from congenial.mechanisms.bundled import Bundled
from congenial.mechanisms.table_release import Release
from congenial.report.accuracy import error_rows
from congenial.report.page import PageColumn, section, table, text

RESERVED = {"and", "or", "not", "in", "between"}  # words of the condition language

SNIPPET = """import congenial

release = congenial.read("this-folder")

# one row per cell
release.to_pandas()

# sums onto any axes{also}
release.margin({axis}){interval}"""
INTERVAL = "\nrelease.interval({condition}, 0.90)"


def example_condition(release: Release) -> str:
    """The first level of an axis, as an example: of the first whose count is not published exactly,
    or else the first cell.
    """
    known = support(release.description.support, release.table)
    for axis, name in enumerate(release.table):
        first = np.full(release.values.shape, -1)
        np.moveaxis(first, axis, 0)[0] = 0
        if not known.fixes(first, 1)[0]:
            return _picks(release, name)
    return " and ".join(_picks(release, name) for name in release.table)


def _picks(release: Release, name: str) -> str:
    """A condition for the first level of an axis."""
    level = release.schema.axis(name).levels[0].replace("'", "''")
    quoted = name.replace('"', '""')
    plain = name.isascii() and name.isidentifier() and name.lower() not in RESERVED
    return f"{name} = '{level}'" if plain else f"\"{quoted}\" = '{level}'"


def _literal(value: str) -> str:
    """A Python string literal, in double quotes where that needs no escapes."""
    return f'"{value}"' if value.isprintable() and not {'"', "\\"} & set(value) else repr(value)


def python_lines(release: Bundled) -> str:
    """How a release that is no table is read and used in Python."""
    return "\n".join(
        ["import congenial", 'release = congenial.read("this-folder")', *release.usage]
    )


def usage_section(release: Release) -> str:
    """Code, files, the check of the folder, what projected values mean, and the expected error."""
    axis = _literal(release.table[0]) if release.table else ""
    also, interval = "", ""
    if release.mechanism.additive:
        also = ", and an interval for any sum of cells"
        interval = INTERVAL.format(condition=_literal(example_condition(release)))
    code = SNIPPET.format(axis=axis, also=also, interval=interval)
    return section(
        "use",
        "How to use it",
        f"<pre><code>{text(code)}</code></pre>",
        "<p>Without Python: <code>table.csv</code> holds one row per cell, with its labels and the "
        "column <code>count</code>; <code>table.parquet</code> is the same, "
        "<code>published.csv</code> has the exact figures, and the law of the noise is in "
        "<code>release.json</code> under <code>description</code>.</p>",
        "<p>Check the folder against the digest its publisher announced:</p>",
        "<pre><code>congenial verify this-folder --digest DIGEST</code></pre>",
        _counts(release),
        _errors(release),
    )


def _counts(release: Release) -> str:
    """What the counts are: drawn as they stand, projected, or drawn given that none is negative."""
    if release.description.nonnegative:
        return (
            "<h3>Counts that cannot be negative</h3>\n<p>The counts were drawn given that none is "
            "negative, so no value had to be changed afterwards. Small counts are therefore too "
            "large on average. How much depends on the confidential table: there is no interval "
            "that holds for every table, except for sums that are published exactly. "
            + _inference(release)
        )
    if release.raw is None:
        return (
            "<h3>Negative counts</h3>\n<p>Counts are shown as drawn and may be negative. Do not "
            "cut them at zero before summing: that would add people on average.</p>"
        )
    return (
        f"<h3>count and count_as_drawn</h3>\n<p>{_printed(release)} "
        "<code>count_as_drawn</code> is what the mechanism drew: its noise has mean zero and a "
        "known law, so use it for estimates, all other sums and tests, as "
        "<code>release.margin</code> and <code>release.count</code> do by themselves. The "
        "intervals on this page and those of <code>release.interval</code> rest on it.</p>"
    )


def _printed(release: Release) -> str:
    """What printed counts are good for."""
    if release.description.fit == "cells":
        return (
            "<code>count</code> was moved to the nearest whole, nonnegative counts with the same "
            "published sums: use it cell by cell, where plausible counts are needed. Added up over "
            "many small counts it is too large."
        )
    tables = ", then ".join(" × ".join(names) or "total" for names in release.printed_tables)
    return (
        "<code>count</code> holds whole, nonnegative counts with the same published sums, fitted "
        f"to the draw from coarse to fine: {text(tables)}. Use it for cells and for these sums."
    )


def _inference(release: Release) -> str:
    """How to infer from the law of the draw, or why that cannot be done."""
    from congenial.inference.feasibility import outlook  # only such counts need to know

    found = outlook(release.mechanism)
    if not found.works:
        return (
            f"<code>congenial infer</code> does not work on this release either: {text(found.why)}."
            " The law of the draw is stated in <code>release.json</code>.</p>"
        )
    slowly = f" This takes minutes or more: {text(found.why)}." if found.slow else ""
    return (
        f"To infer, use the law of the draw itself.{slowly}</p>\n<pre><code>congenial infer "
        f"this-folder --model {found.model}</code></pre>"
    )


def _errors(release: Release) -> str:
    rows = error_rows(release.mechanism)
    if not rows:
        return ""
    columns = [
        PageColumn("sum"),
        PageColumn("how many", number=True),
        PageColumn("standard deviation", number=True),
        PageColumn("within, at 95%", number=True),
    ]
    return "<h3>Expected error</h3>\n" + table(
        columns,
        [
            [
                f"each {row.what}" if row.sums > 1 else row.what,
                row.sums,
                float(round(row.standard_deviation, 2)),
                "exact" if row.standard_deviation == 0 else float(row.within),
            ]
            for row in rows
        ],
        "Largest error of the counts as drawn, over the sums of each kind; from public parameters.",
    )
