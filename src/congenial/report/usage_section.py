"""The report's section on how to use a release: code, files, expected error."""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.figures.support import support
from congenial.mechanisms.released import Released
from congenial.mechanisms.single_table_release import Release
from congenial.report.accuracy import error_rows
from congenial.report.page import PageColumn, PageTable, table

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


def python_lines(release: Released) -> str:
    """How a release that is no table is read and used in Python."""
    return "\n".join(
        ["import congenial", 'release = congenial.read("this-folder")', *release.usage]
    )


def usage_section(release: Release) -> dict[str, Any]:
    """Code, what can be inferred from counts that are not negative, and the expected error."""
    axis = _literal(release.table[0]) if release.table else ""
    also, interval = "", ""
    if release.mechanism.additive:
        also = ", and an interval for any sum of cells"
        interval = INTERVAL.format(condition=_literal(example_condition(release)))
    code = SNIPPET.format(axis=axis, also=also, interval=interval)
    return {
        "code": code,
        "errors": _errors(release),
        "outlook": _outlook(release),
        "fitted_tables": fitted_tables(release),
    }


def fitted_tables(release: Release) -> str:
    """The tables that printed counts were fitted to, from coarse to fine; "" for others."""
    if release.raw is None or release.description.fit != "nodes":
        return ""
    return ", then ".join(" × ".join(names) or "total" for names in release.printed_tables)


def _outlook(release: Release) -> Any:
    """How to infer from the law of the draw, or why that cannot be done."""
    if not release.description.nonnegative:
        return None
    from congenial.inference.feasibility import outlook  # only such counts need to know

    return outlook(release.mechanism)


def _errors(release: Release) -> PageTable | None:
    rows = error_rows(release.mechanism)
    if not rows:
        return None
    columns = [
        PageColumn("sum"),
        PageColumn("how many", number=True),
        PageColumn("standard deviation", number=True),
        PageColumn("within, at 95%", number=True),
    ]
    return table(
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
