"""CONFIDENTIAL records in memory: what each contributes to some statistics, and who it belongs to.

Only modelling data and shadow datasets are read record by record; a release is computed by the
engine that holds the data (`Statistics.compute`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from congenial.data.attribute import REFUSE, Attribute, axis_of
from congenial.data.predicate import Predicate
from congenial.data.rational import Number
from congenial.data.schema import Schema
from congenial.data.source import guarded
from congenial.data.sql import Refusal, own_labels, rule_code, steps
from congenial.data.tabulate import NO_NUMBER, Microdata, refuse
from congenial.errors import DataError

if TYPE_CHECKING:
    from congenial.data.vector_statistics import Statistic

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_CHUNK = 2**22  # numbers gathered at once

_origins = count()


class Records:
    """CONFIDENTIAL: one row per record; prints as the names of its statistics, is never copied.

    `flags` says for each condition which records meet it. `take` and `split` keep track of where a
    part came from, so that two parts of one source are known to overlap or not; parts of different
    sources are compared by the unit column.
    """

    __slots__ = ("_columns", "_ids", "_numbers", "_origin", "_rows", "flags", "parts")

    def __init__(
        self,
        parts: tuple[Statistic, ...],
        numbers: Floats,
        columns: Mapping[str, Floats],
        flags: Mapping[str, Flags],
        ids: Any = None,
        origin: tuple[int, NDArray[np.int64]] | None = None,
    ) -> None:
        self.parts = parts
        self.flags = dict(flags)
        self._numbers = numbers
        self._columns = dict(columns)
        self._ids = ids
        self._origin, self._rows = origin or (next(_origins), np.arange(len(numbers)))

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def numbers(self) -> Floats:
        """CONFIDENTIAL: each record's contribution to each statistic."""
        return self._numbers

    def take(self, rows: Any) -> Records:
        """The records at these positions."""
        at = np.asarray(rows)
        return Records(
            self.parts,
            self._numbers[at],
            {name: values[at] for name, values in self._columns.items()},
            {text: flags[at] for text, flags in self.flags.items()},
            None if self._ids is None else self._ids.take(pa.array(at)),
            (self._origin, self._rows[at]),
        )

    def split(self, sizes: Sequence[int], order: Any) -> list[Records]:
        """Parts of these sizes without a record in common, and the rest.

        `order` is a random permutation of the positions.
        """
        if sum(sizes) > len(self) or min(sizes, default=0) < 0:
            raise DataError("there are too few records for this split.", remedy="Use fewer.")
        cuts = np.cumsum([0, *sizes, len(self) - sum(sizes)])
        return [self.take(np.asarray(order)[a:b]) for a, b in pairwise(cuts)]

    def overlaps(self, other: Records) -> bool | None:
        """Whether some record is in both; None where neither origin nor a unit column can tell."""
        if self._origin == other._origin:
            return bool(np.intersect1d(self._rows, other._rows).size)
        if self._ids is None or other._ids is None:
            return None
        return bool(pc.any(pc.is_in(self._ids, value_set=other._ids)).as_py())

    def vectors(self, index: Any) -> Floats:
        """The statistics of many subsets: one row per row of `index`, which lists positions."""
        index = np.asarray(index)
        subsets, size = index.shape
        step = max(1, _CHUNK // max(1, size * len(self.parts)))
        found = [self._some(index[at : at + step]) for at in range(0, subsets, step)]
        return np.concatenate(found) if found else np.empty((0, len(self.parts)))

    def _some(self, index: Any) -> Floats:
        size = index.shape[1]
        found = np.empty((len(index), len(self.parts)))
        for at, part in enumerate(self.parts):
            if part.kind == "custom":
                assert part.function is not None
                found[:, at] = [
                    part.function({name: self._columns[name][rows] for name in part.columns})
                    for rows in index
                ]
                continue
            values = self._numbers[index, at]
            if part.kind == "quantile":
                rank = quantile_position(part.at, size)
                found[:, at] = np.partition(values, rank, axis=1)[:, rank]
            else:
                found[:, at] = values.sum(axis=1)
                if part.kind != "count":
                    found[:, at] /= size
        return found

    def __repr__(self) -> str:
        return f"Records({', '.join(part.name for part in self.parts)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise DataError(
            "Records are confidential and are neither pickled nor copied.",
            remedy="Read the source again where they are needed.",
        )


def quantile_position(at: Number, records: int) -> int:
    """Rank, from 0, of the quantile among n sorted values: ceil(n at) - 1."""
    return max(0, math.ceil(Fraction(at) * records) - 1)


def fetch(data: Microdata, columns: Sequence[str]) -> tuple[Any, Any]:
    """The needed columns as an Arrow table, and the unit column (None without one) beside it."""
    source, unit = data.source, data.unit.column
    names = [*columns, *([unit] if unit is not None and unit not in columns else [])]
    listed = ", ".join(source.dialect.identifier(name) for name in names)
    table = source.run(f"SELECT {listed} FROM {source.name} AS src")
    ids = None
    if unit is not None:
        ids = guarded(lambda: _text(table[unit]), "the unit column cannot be compared as text.")
    return table, ids


def _text(column: Any) -> Any:
    combined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(combined.type):
        combined = combined.dictionary_decode()
    return combined.cast(pa.large_string())


def column_numbers(attribute: Attribute, column: Any) -> Floats:
    """The numbers of a column; refused where one is absent."""
    numbers = _numbers(attribute, column)
    if np.isnan(numbers).any():
        raise without_number(attribute.name)
    if refuses_broken(attribute) and (numbers != np.floor(numbers)).any():
        raise not_whole(attribute.name)
    return numbers


def refuses_broken(attribute: Attribute) -> bool:
    """Whether a number that is not whole has no place in a column."""
    return attribute.whole_values and attribute.other == REFUSE


def not_whole(column: str) -> DataError:
    """The error for a column of whole numbers that has others."""
    return DataError(
        f"column {column!r} has numbers that are not whole, but the schema says whole = true.",
        remedy="Correct the data, or leave out whole = true.",
    )


def without_number(column: str) -> DataError:
    """The error for a column in which a mean or quantile finds no number."""
    return DataError(
        f"column {column!r} has no number in some records.",
        remedy="A mean or quantile needs a number in every record: correct the data, or select "
        "records first.",
    )


def _numbers(attribute: Attribute, column: Any) -> Floats:
    cast = guarded(
        lambda: column.cast(pa.float64(), safe=False),
        f"column {attribute.name!r} holds text that is not a number.",
        NO_NUMBER,
    )
    filled: Floats = pc.fill_null(cast, np.nan).to_numpy()
    return filled


def condition_flags(predicate: Predicate, schema: Schema, table: Any) -> Flags:
    """Which records meet a condition, decided level by level as in a tabulation."""
    levels = []
    for base in predicate.bases:
        attribute = schema.attribute(base)
        axis = axis_of(attribute, base)
        found = codes(attribute, table[base])
        refuse(axis, found, schema)
        levels.append(found)
    flags: Flags = predicate.mask()[tuple(levels)]
    return flags


def codes(attribute: Attribute, column: Any) -> NDArray[np.int64]:
    """Level of each value; negative where the schema refuses it (`Refusal`)."""
    axis = axis_of(attribute, attribute.name)
    missing = rule_code(attribute.missing, attribute, axis, Refusal.MISSING)
    other = rule_code(attribute.other, attribute, axis, Refusal.OUTSIDE)
    if attribute.kind == "categorical":
        text = _text(column)
        at = pc.index_in(text, value_set=pa.array(attribute.levels, pa.large_string()))
        found = pc.fill_null(at, other).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where(text.is_null().to_numpy(zero_copy_only=False), missing, found)
    column, labelled = _labels_apart(attribute, column)
    numbers = _numbers(attribute, column)
    edges, steps_codes = steps(attribute, axis, other)
    levels = np.searchsorted(np.array([float(edge) for edge in edges]), numbers, side="right")
    found = np.array(steps_codes, dtype=np.int64)[levels]
    if attribute.whole_values:
        found = np.where(numbers != np.floor(numbers), other, found)
    return np.where(labelled >= 0, labelled, np.where(np.isnan(numbers), missing, found))


def _labels_apart(attribute: Attribute, column: Any) -> tuple[Any, NDArray[np.int64]]:
    """A column of numbers without the texts that are labels ("90+"), and the levels of these.

    As in `sql`: a label that is itself a number stays.
    """
    if pa.types.is_primitive(column.type):
        return column, np.full(len(column), -1)
    text, labels = _text(column), own_labels(attribute)
    at = pc.index_in(text, value_set=pa.array(labels, pa.large_string()))
    places = pc.fill_null(at, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    levels = np.array([*labels.values(), -1], dtype=np.int64)[places]
    numbers = pc.if_else(pc.is_null(at), pc.utf8_trim_whitespace(text), None)
    return numbers, levels
