"""What is handed over of a bundle: tables with uncertainty, a dictionary, figures, the promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from congenial.data.schema import Schema
from congenial.errors import BundleError
from congenial.figures.invariants import Invariants
from congenial.mechanisms.table_release import Release

Meaning = Literal["label", "coarser label", "number"]

COUNT = "count as published; sums of many cells are better taken from `estimate`"
ESTIMATE = "value as drawn: unbiased, perhaps negative"
DEVIATION = "standard deviation of the error of `estimate`"


@dataclass(frozen=True)
class ExportedColumn:
    """A column: its name, its values, what they mean, and the levels that labels can have."""

    name: str
    values: Any = field(repr=False)
    meaning: Meaning
    description: str
    levels: tuple[str, ...] = ()

    @property
    def is_label(self) -> bool:
        """Whether it holds text."""
        return self.meaning != "number"


@dataclass(frozen=True)
class ExportedTable:
    """A table with one row for each cell; columns in a fixed order."""

    name: str
    columns: tuple[ExportedColumn, ...]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Plain values, row by row."""
        return list(zip(*(one.values for one in self.columns), strict=True))


@dataclass(frozen=True)
class ExportedBundle:
    """Everything a format may want to write."""

    release: Any
    index: dict[str, Any] = field(repr=False)  # release.json
    digest: str
    tables: tuple[ExportedTable, ...]
    level: float

    @property
    def name(self) -> str:
        """The release's name."""
        return str(self.release.name)

    @property
    def schema(self) -> Schema:
        """What the labels mean."""
        schema: Schema = self.release.schema
        return schema

    @property
    def published(self) -> Invariants:
        """The figures published exactly."""
        figures: Invariants = self.release.published
        return figures

    @property
    def promise(self) -> str:
        """The promise, as the bundle states it."""
        return str(self.index.get("promise", ""))

    @property
    def date(self) -> str:
        """The day it was made."""
        return str(self.index.get("created", ""))[:10]


def exported_bundle(
    release: Any, index: dict[str, Any], digest: str, level: float
) -> ExportedBundle:
    """The tables of a release of any kind that offers some."""
    offered = getattr(release, "exported_tables", None)
    if isinstance(release, Release):
        tables: tuple[ExportedTable, ...] = (single_table(release, level),)
    elif callable(offered):
        tables = tuple(offered(level))
    else:
        raise BundleError(
            f"a bundle of kind '{release.kind}' has no table to hand over.",
            remedy="Its CSV files can be used as they are.",
        )
    return ExportedBundle(release, index, digest, tables, level)


def single_table(release: Release, level: float) -> ExportedTable:
    """One row for each cell: labels, coarser labels, counts, and intervals where there are any."""
    shape = tuple(axis.size for axis in release.schema.axes(release.table))
    places = np.indices(shape).reshape(len(shape), -1)
    columns = list(_labels(release, places))
    columns.append(ExportedColumn("count", release.values.reshape(-1).tolist(), "number", COUNT))
    if release.mechanism.additive:
        columns += _with_error(release, level)
    return ExportedTable(release.name, tuple(columns))


def _labels(release: Release, places: Any) -> list[ExportedColumn]:
    found = []
    for at, axis in enumerate(release.schema.axes(release.table)):
        attribute = release.schema.attribute(axis.base)
        if axis.name == axis.base:
            for coarse, parents in attribute.coarser.items():
                found.append(_labelled(coarse, parents, places[at], "coarser label", axis.name))
        found.append(_labelled(axis.name, axis.levels, places[at], "label", ""))
    return found


def _labelled(name: str, levels: Any, places: Any, meaning: Meaning, of: str) -> ExportedColumn:
    described = f"coarser name of {of}" if of else f"level of {name}"
    values = [levels[i] for i in places.tolist()]
    return ExportedColumn(name, values, meaning, described, tuple(dict.fromkeys(levels)))


def _with_error(release: Release, level: float) -> list[ExportedColumn]:
    cells = int(release.values.size)
    index = np.arange(cells).reshape(release.values.shape)
    laws = release.mechanism.error_laws(index, cells)
    intervals = release.intervals(list(release.table), level)
    deviations = [float(law.variance) ** 0.5 for law in laws]
    ends = f"end of the interval that holds the true count with at least {level:g}"
    return [
        ExportedColumn("estimate", intervals["estimate"].to_pylist(), "number", ESTIMATE),
        ExportedColumn("sd", deviations, "number", DEVIATION),
        ExportedColumn("low", intervals["low"].to_pylist(), "number", f"lower {ends}"),
        ExportedColumn("high", intervals["high"].to_pylist(), "number", f"upper {ends}"),
    ]
