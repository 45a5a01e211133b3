"""How a report shows the use of a release: code, and a condition as an example."""

from __future__ import annotations

import numpy as np

from congenial.figures.support import support
from congenial.mechanisms.released import Released
from congenial.mechanisms.tables_release import TablesRelease

RESERVED = {"and", "or", "not", "in", "between"}  # words of the condition language


def example_condition(release: TablesRelease) -> str:
    """The first level of an axis, as an example: of the first whose count is not published exactly,
    or else the first cell.
    """
    table = release.tables[0]
    known = support(release.description.support, table)
    for axis, name in enumerate(table):
        first = np.full([one.size for one in release.schema.axes(table)], -1)
        np.moveaxis(first, axis, 0)[0] = 0
        if not known.fixes(first, 1)[0]:
            return _picks(release, name)
    return " and ".join(_picks(release, name) for name in table)


def _picks(release: TablesRelease, name: str) -> str:
    """A condition for the first level of an axis."""
    level = release.schema.axis(name).levels[0].replace("'", "''")
    quoted = name.replace('"', '""')
    plain = name.isascii() and name.isidentifier() and name.lower() not in RESERVED
    return f"{name} = '{level}'" if plain else f"\"{quoted}\" = '{level}'"


def literal(value: str) -> str:
    """A Python string literal, in double quotes where that needs no escapes."""
    return f'"{value}"' if value.isprintable() and not {'"', "\\"} & set(value) else repr(value)


def python_lines(release: Released) -> str:
    """How a release that is no table is read and used in Python."""
    return "\n".join(
        ["import congenial", 'release = congenial.read("this-folder")', *release.usage]
    )
