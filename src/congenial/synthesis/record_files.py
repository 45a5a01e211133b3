"""Files of synthetic records, whatever they are drawn from: in the schema's types, as Parquet and
CSV, with a data dictionary; and whether records agree with what is published.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from congenial.data.arguments import WHOLE, expect
from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Attribute
from congenial.data.engines.checked_parquet import Expected
from congenial.data.rational import written
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.text_files import neutral, rows_csv
from congenial.data.vector_statistics import codes
from congenial.errors import BundleError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.mechanisms.released import RecordRelease
from congenial.synthesis.columns import shown
from congenial.synthesis.models.level_columns import values_within

DICTIONARY = "dictionary.csv"
DICTIONARY_TITLES = ("column", "type", "level", "from", "below", "written")  # on a page
UNIFORM = "a value uniform in the interval"
Values = Callable[[Attribute, Ints, np.random.Generator], Floats]


@dataclass(frozen=True)
class RecordCopies(RecordRelease):
    """Sets of synthetic records as Arrow tables, counted from 1."""

    copies: tuple[Any, ...] = field(repr=False)

    def to_arrow(self, copy: int = 1) -> Any:
        """One copy as an Arrow table; copies are counted from 1."""
        expect(copy, WHOLE, "the copy", "Give its number, from 1.", BundleError)
        if not 1 <= copy <= len(self.copies):
            raise BundleError(
                f"there is no copy {copy}.", remedy=f"There are {len(self.copies)} of them."
            )
        return self.copies[copy - 1]

    def to_pandas(self, copy: int = 1) -> Any:
        """One copy as a pandas frame (extra `frames`)."""
        return self.to_arrow(copy).to_pandas()

    def to_polars(self, copy: int = 1) -> Any:
        """One copy as a Polars frame (extra `frames`)."""
        import polars as pl

        return pl.from_arrow(self.to_arrow(copy))


def level_numbers(schema: Schema, records: Any) -> dict[str, Ints]:
    """Level numbers of records; negative where the schema knows none."""
    sums = {}
    for name in records.column_names:
        attribute, column = schema.attribute(name), records[name].combine_chunks()
        levels = codes(attribute, column)
        unknown = _without_number(attribute)
        if unknown:
            empty = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
            levels = np.where(empty, unknown[0], levels)
        sums[name] = levels
    return sums


def checks_of_records(
    published: Figures, schema: Schema, copies: Sequence[Any], *, figures: bool
) -> dict[str, bool]:
    """What records must be like, whatever they were drawn from; `figures` as in `agrees`."""
    levels = [level_numbers(schema, copy) for copy in copies]
    return {
        "every value is allowed by the schema": all(
            (codes >= 0).all() for each in levels for codes in each.values()
        ),
        "the records agree with every exact figure and rule about their columns": all(
            agrees(published, each, copy.num_rows, figures=figures)
            for each, copy in zip(levels, copies, strict=True)
        ),
    }


def agrees(published: Figures, levels: Mapping[str, Ints], records: int, *, figures: bool) -> bool:
    """Whether records keep the rules, and the figures if they are of all people, that they show.

    Statements about their columns, told apart as far as their values tell them.
    """
    schema = published.schema
    if any((codes < 0).any() for codes in levels.values()):
        return False
    clear = {name for name in levels if len(_without_number(schema.attribute(name))) < 2}
    rules = [s for s in published.zeros if set(Cells(schema, (s,)).bases) <= clear]
    statements: list[tuple[Statement, Ints | None]] = [(rule, None) for rule in rules]
    if figures:
        visible = shown(published, clear)
        statements += zip(
            visible.statements, visible.values or (None,) * len(visible.statements), strict=True
        )
    for statement, figure in statements:
        bases = Cells(schema, (statement,)).bases
        counts = np.zeros([schema.attribute(name).size for name in bases], dtype=np.int64)
        np.add.at(counts, tuple(levels[name] for name in bases), 1)
        if not bases:
            counts[...] = records
        if not Figures(schema, (statement,), (figure,)).holds_for(Table(schema, bases, counts)):
            return False
    return True


def _without_number(attribute: Attribute) -> list[int]:
    """Levels of a numeric attribute that have no number, so that a record of theirs is empty."""
    if attribute.kind == "categorical":
        return []
    return list(range(len(attribute.intervals), attribute.size))


def records_table(
    schema: Schema,
    names: Sequence[str],
    codes: Mapping[str, Ints],
    generator: np.random.Generator,
    values: Values = values_within,
) -> Any:
    """Level numbers as an Arrow table in the schema's types.

    Categories are text, whole numbers int64, other numbers float64. `values` writes the numbers of
    levels: by default uniform in a bin (its end, where it is open). A level without a number is
    null.
    """
    import pyarrow as pa

    each = {name: (schema.attribute(name), codes[name]) for name in names}
    return pa.table({name: _column(*column, generator, values) for name, column in each.items()})


def expected_copy(file: str, schema: Schema, names: Sequence[str], records: int | None) -> Expected:
    """What the file of one copy must hold; None records: as many as it has."""
    import pyarrow as pa

    attributes = [schema.attribute(name) for name in names]
    columns = pa.schema([(attribute.name, _arrow_type(attribute)) for attribute in attributes])
    labels = (label for attribute in attributes for label in attribute.levels)
    return Expected(
        file, columns, records, max((len(label.encode()) for label in labels), default=0)
    )


def _arrow_type(attribute: Attribute) -> Any:
    """Categories are text, whole numbers int64, other numbers float64."""
    import pyarrow as pa

    if attribute.kind == "categorical":
        return pa.string()
    return pa.int64() if attribute.whole else pa.float64()


def _column(
    attribute: Attribute, codes: Ints, generator: np.random.Generator, values: Values
) -> Any:
    import pyarrow as pa

    if attribute.kind == "categorical":
        labels = np.asarray(attribute.levels, dtype=object)
        return pa.array(labels[codes], type=pa.string())
    drawn = values(attribute, codes, generator)
    missing = np.isnan(drawn)
    return pa.array(np.where(missing, 0, drawn), mask=missing).cast(_arrow_type(attribute))


def dictionary(rows: Sequence[Sequence[str]], schema: Schema) -> bytes:
    """The data dictionary as CSV: one row per level, its type, interval and how it is written; what
    readers call it, where the schema has labels.
    """
    header = ["column", "type", "level", "from", "below", "written_as"]
    labels = {a.name: a.labels for a in schema.attributes if a.labels}
    words = [labels.get(column, {}).get(level, level) for column, _, level, *_ in rows]
    if any(row[2] != word for row, word in zip(rows, words, strict=True)):
        header.append("label")
        rows = [[*row, word] for row, word in zip(rows, words, strict=True)]
    return rows_csv([header, *rows]).encode()


def dictionary_rows(
    schema: Schema,
    names: Sequence[str],
    inside: str = UNIFORM,
    beyond: Mapping[tuple[str, str], str] | None = None,
) -> list[list[str]]:
    """The rows of the data dictionary: `inside` is how a value of a bin is written, `beyond` how
    one of an open level is, by column and "top" or "bottom", where that is not its end.
    """
    return [
        [name, type_of(attribute), level, *_meaning(attribute, at, inside, beyond or {})]
        for name in names
        for attribute in (schema.attribute(name),)
        for at, level in enumerate(attribute.levels)
    ]


def type_of(attribute: Attribute) -> str:
    """What a column of a synthetic file holds: text, whole number or number."""
    if attribute.kind == "categorical":
        return "text"
    return "whole number" if attribute.whole else "number"


def read_in_r(release: RecordCopies, file: str) -> str:
    """How R reads a copy without surprises: every column's class, and only empty is missing."""
    kinds = {"text": "character", "whole number": "numeric", "number": "numeric"}
    classes = ", ".join(
        f'{json.dumps(neutral(name), ensure_ascii=False)} = "{kinds[kind]}"'
        for name, kind in _types(release).items()
    )
    return (
        f'read.csv("{file}", colClasses = c({classes}), na.strings = "", '
        'check.names = FALSE, encoding = "UTF-8")'
    )


def read_in_pandas(release: RecordCopies, file: str) -> str:
    """The same for pandas, where whole numbers with missing values need a type that has them."""
    kinds = {"text": "str", "whole number": "Int64", "number": "float64"}
    types = {neutral(name): kinds[kind] for name, kind in _types(release).items()}
    return f'pandas.read_csv("{file}", dtype={types!r}, keep_default_na=False, na_values=[""])'


def _types(release: RecordCopies) -> dict[str, str]:
    """What every column of a copy holds."""
    names = release.copies[0].column_names
    return {name: type_of(release.schema.attribute(name)) for name in names}


def _meaning(
    attribute: Attribute, at: int, inside: str, beyond: Mapping[tuple[str, str], str]
) -> tuple[str, str, str]:
    """From, below, and how a record of this level is written."""
    if attribute.kind == "categorical":
        return "", "", "its label"
    if at >= len(attribute.intervals):
        return "", "", "missing (empty in CSV, null in Parquet)"
    low, high = attribute.intervals[at]
    first, below = ("" if end is None else written(end) for end in (low, high))
    if low is None:
        last = "the last number below the end of the interval"
        return first, below, beyond.get((attribute.name, "bottom"), last)
    if high is None:
        end = "the finite end of the interval"
        return first, below, beyond.get((attribute.name, "top"), end)
    alone = attribute.kind == "integers" or (attribute.whole and high - low == 1)
    return first, below, "its value" if alone else inside
