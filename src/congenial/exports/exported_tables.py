"""What is handed over of a bundle: tables with uncertainty, a dictionary, figures, the promise."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from congenial.data.schema import Schema
from congenial.errors import BundleError
from congenial.figures.figures import Figures
from congenial.mechanisms.cell_labels import label_names, words_name
from congenial.mechanisms.parted_release import PartedRelease
from congenial.mechanisms.tables_files import RELIABILITY
from congenial.mechanisms.tables_release import TablesRelease
from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease
from congenial.tables.intervals import interval_names, reliability


def plain_name(text: str) -> str:
    """A name of small letters, digits, points and dashes.

    >>> plain_name("Sex by age (2026)"), plain_name("..."), plain_name("Größe")
    ('sex-by-age-2026', 'table', 'gr-e')
    """
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
    return plain or "table"


def identifier(text: str, capital: bool = True) -> str:
    """An identifier of letters, digits and underscores that begins with a letter or underscore.

    >>> identifier("age group"), identifier("85+", capital=False), identifier("10-14", False)
    ('AGE_GROUP', '_85_', '_10_14')
    """
    letters = re.sub(r"[^A-Za-z0-9_]+", "_", text.upper() if capital else text)
    return letters if letters and not letters[0].isdigit() else f"_{letters}"


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with a number where one occurs again.

    >>> unique_names(["a", "b", "a", "a_2"])
    ['a', 'b', 'a_2', 'a_2_2']
    """
    unique: list[str] = []
    for name in names:
        candidate, number = name, 2
        while candidate in unique:
            candidate, number = f"{name}_{number}", number + 1
        unique.append(candidate)
    return unique


Meaning = Literal["label", "coarser label", "words", "number", "flag"]

RELIABILITIES = ("exact", "good", "caution", "poor")
WHOLE = "whole count; sums of many cells are better taken from `estimate`"
SUM = "sum of numbers that were cut to public bounds; other sums are taken from `estimate`"
BEST = "unbiased estimate from what was drawn, perhaps negative"
DEVIATION = "standard deviation of the error of `estimate`"


@dataclass(frozen=True)
class ExportedColumn:
    """A column: its name, its values, what they mean, and the levels that labels can have.

    `meaning` is "words" for what readers call the codes of the column before it, "flag" for how far
    the numbers of a row can be relied on.
    """

    name: str
    values: Any = field(repr=False)
    meaning: Meaning
    description: str
    levels: tuple[str, ...] = ()

    @property
    def is_label(self) -> bool:
        """Whether it holds text about a cell's place."""
        return self.meaning not in ("number", "flag")


@dataclass(frozen=True)
class ExportedTable:
    """A table with one row for each cell; columns in a fixed order. `basis`: what its intervals
    rest on, nothing where it has none. `unit`: of its numbers, PS for persons (as in SDMX's list of
    units), otherwise the number that is summed.
    """

    name: str
    columns: tuple[ExportedColumn, ...]
    basis: str = ""
    unit: str = "PS"

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Plain values, row by row."""
        return list(zip(*(column.values for column in self.columns), strict=True))


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
    def published(self) -> Figures:
        """The figures published exactly."""
        figures: Figures = self.release.everything
        return figures

    @property
    def promise(self) -> str:
        """The promise, as the bundle states it."""
        return str(self.index.get("promise", ""))

    @property
    def date(self) -> str:
        """The day it was made."""
        return str(self.index.get("created", ""))[:10]

    @property
    def period(self) -> str | None:
        """The reference date of the data, where the plan has one that is a year, month or day."""
        date = self.schema.about.date
        return date if re.fullmatch(r"\d{4}(-\d\d){0,2}", date) else None


def exported_bundle(
    release: Any, index: dict[str, Any], digest: str, level: float, part: str | None = None
) -> ExportedBundle:
    """The tables of a release of any kind that offers some; `part`: those of one part only."""
    if part is not None and not isinstance(release, PartedRelease):
        raise BundleError(
            f"a bundle of kind '{release.kind}' has no parts.", remedy="Leave out part."
        )
    if isinstance(release, TablesRelease):
        tables: tuple[ExportedTable, ...] = tuple(
            printed_table(measure, at, level)
            for measure in release.measures
            for at in range(len(release.tables))
        )
        of = [measure.description.of for measure in release.measures for _ in release.tables]
        if release.description.beside:
            pairs = zip(tables, of, strict=True)
            tables = tuple(
                replace(each_table, name=f"{each_table.name}, {what}") for each_table, what in pairs
            )
        if len(tables) == 1:
            tables = (replace(tables[0], name=release.name),)
    elif isinstance(release, PartedRelease):
        tables = _of_nation(release, level, part)
    elif isinstance(release, TableRecordsRelease):
        tables = tuple(
            printed_table(measured_table, 0, level) for measured_table in release.measured_tables()
        )
    else:
        raise BundleError(
            f"a bundle of kind '{release.kind}' has no table to export.",
            remedy="Use its CSV files directly.",
        )
    return ExportedBundle(release, index, digest, tables, level)


def _of_nation(release: PartedRelease, level: float, part: str | None) -> tuple[ExportedTable, ...]:
    """The tables above the parts, or those of one part."""
    if part is None and not release.upper:
        raise BundleError(
            f"release '{release.name}' has no table above its parts.",
            remedy=f"Name a part, for example {release.parts.labels[0]!r}.",
        )
    piece = release.above if part is None else release.of_part(part)
    tables = [release.tables[at] for at in (release.upper if part is None else release.worst)]
    return tuple(printed_table(piece, piece.tables.index(names), level) for names in tables)


def printed_table(release: TablesRelease, at: int, level: float) -> ExportedTable:
    """A printed table: whole counts where there are any, estimates and their intervals."""
    names, columns = release.tables[at], _printed(release, at, level)
    low, high = interval_names(level)
    meant = {"count": WHOLE, "sum": SUM, "estimate": BEST, "sd": DEVIATION}
    meant |= {low: f"lower {_ends(level)}", high: f"upper {_ends(level)}"}
    numbers = [
        ExportedColumn(name, np.reshape(columns[name], -1).tolist(), "number", what)
        for name, what in meant.items()
        if columns.get(name) is not None
    ]
    if "sd" in columns:
        limits = release.schema.about.reliability
        words = reliability(numbers[0].values, np.reshape(columns["sd"], -1), limits).tolist()
        meaning = f"{limits.words}; exact where nothing was added"
        numbers.append(ExportedColumn(RELIABILITY, words, "flag", meaning, RELIABILITIES))
    labels = _cell_labels(release.schema, names, [number_column.name for number_column in numbers])
    basis = ""
    if release.has_errors:
        cell = np.zeros(release.estimates[at].shape, dtype=np.bool_)
        cell.flat[0] = True
        basis = release.estimator.basis_of_sum(names, cell)
    number = release.description.magnitude
    unit = "PS" if number is None else identifier(number.column)
    return ExportedTable(" by ".join(names) or "total", (*labels, *numbers), basis, unit)


def _printed(release: TablesRelease, at: int, level: float) -> dict[str, Any]:
    """The numbers of one of several tables."""
    if not release.has_errors:
        return {"count": release.counts[at]}
    three = (release.counts[at], release.estimates[at], release.deviations[at])
    of = "count" if release.description.magnitude is None else "sum"
    columns = [
        None if values_of_one is None else release.in_units(values_of_one)
        for values_of_one in (*three, *release.interval_ends(at, level))
    ]
    return dict(zip((of, "estimate", "sd", *interval_names(level)), columns, strict=True))


def _cell_labels(
    schema: Schema, table: tuple[str, ...], numbers: Collection[str]
) -> list[ExportedColumn]:
    """Columns of labels, one row for each cell; one that a column of numbers is called like has
    another name.
    """
    shape = tuple(axis.size for axis in schema.axes(table))
    labels = _all_labels(schema, table, np.indices(shape).reshape(len(shape), math.prod(shape)))
    names = label_names([label.name for label in labels], numbers)
    return [replace(label, name=name) for label, name in zip(labels, names, strict=True)]


def _all_labels(schema: Schema, table: tuple[str, ...], places: Any) -> list[ExportedColumn]:
    labels = []
    for at, axis in enumerate(schema.axes(table)):
        attribute = schema.attribute(axis.base)
        if axis.name == axis.base:
            for coarse, parents in attribute.coarser.items():
                labels.append(_labelled(coarse, parents, places[at], "coarser label", axis.name))
        labels.append(_labelled(axis.name, axis.levels, places[at], "label", ""))
        names_shown = schema.shown_levels(axis.name)
        if names_shown != axis.levels:
            name, words = (
                words_name(schema, axis.name),
                [names_shown[i] for i in places[at].tolist()],
            )
            meaning = f"category of {axis.name} in words"
            labels.append(
                ExportedColumn(name, words, "words", meaning, tuple(dict.fromkeys(names_shown)))
            )
    return labels


def _labelled(name: str, levels: Any, places: Any, meaning: Meaning, of: str) -> ExportedColumn:
    described = f"coarser name of {of}" if of else f"level of {name}"
    values = [levels[i] for i in places.tolist()]
    return ExportedColumn(name, values, meaning, described, tuple(dict.fromkeys(levels)))


def _ends(level: float) -> str:
    return f"end of the interval for the true count, level {level:g}"
