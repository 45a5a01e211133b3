"""Counting large Parquet files without SQL: Arrow batches, one level code per column, one count.

A row's cell is a number in mixed radix, built column by column from small tables (text through the
file's own dictionaries, whole numbers by position, others by binary search), and counted directly.
That takes a few nanoseconds a row where a hash table of cells takes tens. Results and refusals
equal those of `sql.tabulation`. Memory: a batch and one array of counts per thread, whatever the
size of the files.
"""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from congenial.data.attribute import Attribute, Axis
from congenial.data.schema import Schema
from congenial.data.sql import ColumnType, Refusal, rule_code, steps

MIN_ROWS = 2_000_000  # below this DuckDB is done before the compiled loops are loaded
MAX_CELLS = 2**24
_MOST_COUNTS = 2**26  # all threads' counts together stay within 512 MiB
BATCH = 1 << 17
_WIDEST_TABLE = 1 << 20
_ANY_NUMBER = -9  # the column's numbers need not be whole

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Progress:
    """How far a count has come. The number of rows may be confidential: show it to the curator."""

    rows: int
    total: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        """Average speed so far."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Counted:
    """CONFIDENTIAL: counts per cell (flat), and for each axis the refusals that occurred."""

    counts: Ints
    refusals: list[Ints]


@dataclass(frozen=True)
class Coder:
    """How one column's values become level codes of one axis."""

    axis: Axis
    missing: int
    other: int
    labels: pa.Array | None = None  # text: code by the level's label
    table: Any = None  # whole numbers: code by position from `low`
    low: int = 0
    edges: Any = None  # other numbers: code by step
    codes: Any = None
    broken: int = _ANY_NUMBER
    coded: dict[int, tuple[Any, Any]] = field(default_factory=dict, compare=False, repr=False)

    def extend(self, cells: Any, column: Any, found: Any) -> None:
        """Extend each row's cell number by this axis."""
        from congenial.data.engines import (
            counting_kernels as kernels,  # numba only when rows are counted
        )

        size, low, table = self.axis.size, self.low, self.table
        if self.labels is not None:
            column, table = self._by_dictionary(column)
        elif pa.types.is_boolean(column.type):
            column = column.cast(pa.uint8())
        valid = np.empty(0, dtype=np.bool_)
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            column = column.fill_null(0)
        values = column.to_numpy(zero_copy_only=False)
        if table is not None:
            kernels.by_table(cells, size, values, valid, low, table, self.missing, found)
        else:
            kernels.by_steps(
                cells,
                size,
                values,
                valid,
                self.edges,
                self.codes,
                self.missing,
                self.broken,
                found,
            )

    def _by_dictionary(self, column: Any) -> tuple[Any, Any]:
        """Positions in the batch's dictionary, and the code of each position."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        thread = threading.get_ident()
        words, codes = self.coded.get(thread, (None, None))
        if words is None or not words.equals(column.dictionary):
            words, codes = column.dictionary, self._codes_of(column.dictionary)
            self.coded[thread] = (words, codes)  # batches of a row group have one dictionary
        return column.indices, codes

    def _codes_of(self, dictionary: Any) -> Any:
        """The code of each position: a search of all labels, of which there may be a million."""
        words = dictionary.cast(pa.large_string())
        at = pc.index_in(words, value_set=self.labels)
        known = at.is_valid().to_numpy(zero_copy_only=False)
        codes = np.where(known, self.axis.of_base[at.fill_null(0).to_numpy()], self.other)
        codes = np.where(words.is_null().to_numpy(zero_copy_only=False), self.missing, codes)
        return np.concatenate([[self.other], codes, [self.other]]).astype(np.int32)


def _coder(attribute: Attribute, axis: Axis, kind: str, stored: Any) -> Coder | None:
    """The coder of a column, or None where SQL must do it."""
    missing = rule_code(attribute.missing, attribute, axis, Refusal.MISSING)
    other = rule_code(attribute.other, attribute, axis, Refusal.OUTSIDE)
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    is_text = pa.types.is_string(stored) or pa.types.is_large_string(stored)
    is_whole = pa.types.is_integer(stored) and not pa.types.is_uint64(stored)
    if attribute.kind == "categorical":
        if kind == "text" and is_text:
            return Coder(axis, missing, other, labels=pa.array(attribute.levels, pa.large_string()))
        if kind == "boolean" and pa.types.is_boolean(stored):
            return _by_number(axis, missing, other, _codes({"false": 0, "true": 1}, attribute))
        if kind == "whole" and is_whole:
            whole = {one: int(one) for one in attribute.levels if re.fullmatch(_WHOLE, one)}
            return _by_number(axis, missing, other, _codes(whole, attribute))
        return None
    edges, codes = steps(attribute, axis, other)
    if kind == "whole" and is_whole:
        return _by_whole_steps(axis, missing, other, [math.ceil(edge) for edge in edges], codes)
    width = {"float": pa.types.is_float32, "double": pa.types.is_float64}.get(kind)
    if width is None or not width(stored):
        return None
    return Coder(
        axis,
        missing,
        other,
        edges=np.array([float(edge) for edge in edges], dtype=stored.to_pandas_dtype()),
        codes=np.array(codes, dtype=np.int32),
        broken=other if attribute.whole_values else _ANY_NUMBER,
    )


_WHOLE = r"0|-?[1-9][0-9]{0,17}"


def _codes(numbers: Mapping[str, int], attribute: Attribute) -> dict[int, int]:
    """Level of each number whose text form is a label."""
    at = {label: code for code, label in enumerate(attribute.levels)}
    return {number: at[label] for label, number in numbers.items() if label in at}


def _by_number(axis: Axis, missing: int, other: int, level: Mapping[int, int]) -> Coder | None:
    low, high = min(level, default=0), max(level, default=0)
    if high - low >= _WIDEST_TABLE:
        return None
    table = np.full(high - low + 3, other, dtype=np.int32)
    for number, code in level.items():
        table[number - low + 1] = axis.of_base[code]
    return Coder(axis, missing, other, table=table, low=low)


def _by_whole_steps(
    axis: Axis, missing: int, other: int, edges: Sequence[int], codes: Sequence[int]
) -> Coder | None:
    if not edges or max(map(abs, edges)) >= 2**62:
        return None
    low, high = edges[0], edges[-1]
    if high - low >= _WIDEST_TABLE:
        whole = np.array(edges, dtype=np.int64)
        return Coder(axis, missing, other, edges=whole, codes=np.array(codes, dtype=np.int32))
    values = np.arange(low - 1, high + 1)
    table = np.array(codes, dtype=np.int32)[np.searchsorted(edges, values, side="right")]
    return Coder(axis, missing, other, table=table, low=low)


@dataclass(frozen=True)
class ParquetCount:
    """A count ready to run: the files, and how to read each."""

    files: tuple[Path, ...]
    axes: tuple[Axis, ...]
    metadata: tuple[Any, ...]
    coders: tuple[tuple[Coder, ...], ...]

    @classmethod
    def plan(
        cls,
        files: Sequence[Path],
        axes: tuple[Axis, ...],
        schema: Schema,
        types: Mapping[str, ColumnType],
    ) -> ParquetCount | None:
        """None where some file has a column of a kind that only SQL handles."""
        if not axes or math.prod(axis.size for axis in axes) > MAX_CELLS:
            return None
        metadata, coders = [], []
        known: dict[tuple[str, Any], Coder | None] = {}  # files of one kind share them: labels
        for file in files:  # of a million areas, for each of fifty states, would fill the memory
            footer = pq.read_metadata(file)
            stored = footer.schema.to_arrow_schema()
            there = [a for a in axes if stored.get_field_index(a.base) >= 0]
            found = []
            for axis in there:
                key = (axis.name, stored.field(axis.base).type)
                if key not in known:
                    kind = types[axis.base].kind
                    known[key] = _coder(schema.attribute(axis.base), axis, kind, key[1])
                found.append(known[key])
            complete = [coder for coder in found if coder is not None]
            if len(complete) != len(axes):
                return None
            metadata.append(footer)
            coders.append(tuple(complete))
        return cls(tuple(files), axes, tuple(metadata), tuple(coders))

    @property
    def rows(self) -> int:
        """Number of rows in all files, from their footers."""
        return sum(one.num_rows for one in self.metadata)

    def run(self, progress: Callable[[Progress], object] | None = None) -> Counted:
        """Count every file."""
        cells = math.prod(axis.size for axis in self.axes)
        counts = np.zeros(cells, dtype=np.int64)
        found = np.zeros((len(self.axes), 4), dtype=np.int64)
        report = _Reporter(self.rows, progress)
        self._count(counts, found, report)
        return Counted(counts, [-np.flatnonzero(flags) for flags in found])

    def _count(self, counts: Ints, found: Any, report: _Reporter) -> None:
        files = range(len(self.files))
        tasks = [(i, g) for i in files for g in range(self.metadata[i].num_row_groups)]
        own = threading.local()
        each: list[tuple[Any, Any]] = []

        def work(task: tuple[int, int]) -> int:
            if not hasattr(own, "part"):
                own.part = np.zeros_like(counts), np.zeros_like(found)
                each.append(own.part)
            return self._row_group(*task, *own.part)

        threads = max(1, min(os.cpu_count() or 1, _MOST_COUNTS // counts.size))
        with ThreadPoolExecutor(threads) as pool:
            futures = [pool.submit(work, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    report.add(future.result())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        for its_counts, its_found in each:
            counts += its_counts
            found |= its_found

    def _row_group(self, file: int, group: int, counts: Any, found: Any) -> int:
        from congenial.data.engines import counting_kernels as kernels

        coders = self.coders[file]
        for batch in self.batches(file, group):
            cells = np.zeros(batch.num_rows, dtype=np.int32)
            for at, coder in enumerate(coders):
                coder.extend(cells, batch.column(coder.axis.base), found[at])
            kernels.tally(cells, counts)
        return int(self.metadata[file].row_group(group).num_rows)

    def batches(self, file: int, group: int, beside: Sequence[str] = ()) -> Iterator[Any]:
        """The rows of a row group piece by piece: columns of the axes, and those `beside` them."""
        texts = [coder.axis.base for coder in self.coders[file] if coder.labels is not None]
        with pq.ParquetFile(
            self.files[file],
            metadata=self.metadata[file],
            read_dictionary=texts,
            buffer_size=1 << 20,  # a column is read piece by piece, not a whole row group at once
        ) as opened:
            names = [*(axis.base for axis in self.axes), *beside]
            yield from opened.iter_batches(
                BATCH, row_groups=[group], columns=names, use_threads=False
            )


class _Reporter:
    """Adds up rows and tells the caller."""

    def __init__(self, total: int, tell: Callable[[Progress], object] | None) -> None:
        self.rows, self.total, self.tell = 0, total, tell
        self.start = time.perf_counter()

    def add(self, rows: int) -> None:
        self.rows += rows
        if self.tell is not None:
            self.tell(Progress(self.rows, self.total, time.perf_counter() - self.start))
