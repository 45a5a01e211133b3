"""From confidential records to a confidential table of counts.

One pass over the data per table, inside the engine that holds them; what comes back has at most
one row per cell.
No message carries a value, a count or a level found in the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from congenial.data.arguments import expect
from congenial.data.attribute import Attribute, Axis
from congenial.data.derive import RowsOfUnit, derived
from congenial.data.engines import open_source
from congenial.data.magnitude import Magnitude
from congenial.data.schema import Schema, Unit
from congenial.data.source import Source
from congenial.data.sql import (
    Refusal,
    check_number,
    check_type,
    coded,
    rows_per_unit,
    summation,
    tabulation,
    units_per_class,
)
from congenial.data.table import SumsTable, Table
from congenial.errors import CongenialError, DataError

MAX_CELLS = 2**30
LARGEST_SUM = 2**52  # in steps: doubles tell such numbers apart, with room for the noise
SPILT = 10_000_000  # cells of a table above which a query's groups may go to disk
UnitClasses = tuple[tuple[str, ...], tuple[Any, ...], NDArray[np.int64]]
NO_NUMBER = (
    "`congenial data` lists it. Labels of the schema, such as the one in top, are allowed; "
    "recode other text in [derive]."
)


class Microdata:
    """CONFIDENTIAL records, one row each, with the columns of a schema.

    It prints as its column names, refuses to be pickled or copied, and gives out tables only.
    Use `Microdata.open`; as a context manager it lets go of the source at the end.
    """

    __slots__ = ("_classes", "_source", "_unit_is_checked", "_whole", "schema", "unit")

    def __init__(self, source: Source, schema: Schema, unit: Unit) -> None:
        self._whole: Source | None = source  # also what units with too many rows leave out
        self._source: Source | None = source
        if unit.truncate:
            self._source = truncated(source, schema, str(unit.column), unit.rows)
        self._unit_is_checked = False
        # attributes that units share, combinations of their levels, and how many units have each
        self._classes: UnitClasses = ((), (), np.zeros(0, dtype=np.int64))
        self.schema = schema
        self.unit = unit

    @classmethod
    def open(
        cls,
        source: object,
        schema: Schema,
        unit: Unit | None = None,
        numbers: Sequence[str] = (),
    ) -> Microdata:
        """Open a source of records and check that it has the schema's columns, of usable types.

        `source` is a CSV or Parquet file or a flat folder of one kind, an Arrow table, batch,
        reader or dataset, a pandas frame, a Polars frame (lazy too), a DuckDB relation, or
        (DuckDB connection, table name). A one-pass reader and a lazy frame are run once and
        their needed columns kept in memory, so that several tables can be made; files, datasets,
        relations and tables in a database are read anew each time.

        Two kinds of text are addresses, and one kind of frame lives elsewhere; the counting then
        happens there: "postgresql://user@host/database?table=people" (see `postgres_source`),
        "spark:/data/people", "spark:database.people" and a Spark DataFrame (see `spark_source`).

        CSV files need a header row and UTF-8; empty fields are missing values; numbers are read
        as double precision. Elsewhere numbers must be stored as numbers. A categorical column
        is compared by its text form: integers as "1", truth values as "true", dates as
        "2020-04-01"; floating-point columns are refused because their text form is not unique.
        Nothing else is fetched from a network. `numbers`: further columns, to be summed.
        """
        expect(schema, Schema, "the schema", "Give a Schema.", DataError)
        expect(unit, (Unit, type(None)), "the unit", 'Give for example Unit("id").', DataError)
        unit = unit or Unit()
        columns = [*schema.columns]
        beside = [*numbers] if unit.column is None else [unit.column, *numbers]
        columns += [name for name in dict.fromkeys(beside) if name not in columns]
        _refuse_sizes_of_nobody(schema, unit)
        opened = open_source(source, columns)
        try:
            for name in schema.columns:
                check_type(schema.attribute(name), opened.types[name])
            for name in numbers:
                check_number(name, opened.types[name])
        except DataError:
            opened.close()
            raise
        return cls(opened, schema, unit)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in use: the schema's, and the unit's."""
        return tuple(self.source.types)

    @property
    def source(self) -> Source:
        """CONFIDENTIAL: the opened source, for those who work where the data are."""
        return _open(self._source)

    def tabulate(self, names: Sequence[str] | None = None) -> Table:
        """Count the records over the axes `names` (all attributes if None; () is the total).

        The unit of protection is checked first, once. Raises DataError for empty data, and for
        missing values or values outside the schema where the schema refuses them.
        """
        axes = self.schema.axes(self.schema.names if names is None else names)
        shape = tuple(axis.size for axis in axes)
        cells = math.prod(shape)
        if cells > MAX_CELLS:
            raise DataError(
                f"the table over {', '.join(axis.name for axis in axes)} has {cells} cells, "
                f"more than {MAX_CELLS}.",
                remedy="Use fewer or coarser axes.",
            )
        self.check_unit()
        flat = self._counted(axes, shape)
        return Table(self.schema, tuple(axis.name for axis in axes), flat.reshape(shape))

    def tabulate_sums(self, names: Sequence[str], magnitude: Magnitude) -> SumsTable:
        """Sum a number over the axes `names`, in steps of it: cut to its bounds, and rounded.

        Raises DataError as `tabulate` does, and where a person has no number that can be summed.
        """
        if magnitude.within is not None:
            name, level = magnitude.within
            everybody = replace(magnitude, within=None)
            by_class = self.tabulate_sums([*names, name], everybody)
            of_class = by_class.counts[..., self.schema.axis(name).levels.index(level)]
            return SumsTable(self.schema, names, of_class)
        axes = self.schema.axes(names)
        shape = tuple(axis.size for axis in axes)
        self.check_unit()
        source = self.source_for(axes)
        if magnitude.cap is not None and self.unit.column is None:
            raise DataError(
                f"the sum of {magnitude.column!r} has a cap for each unit, and the data have no "
                "unit column.",
                remedy="Name it (data.unit), or leave out cap.",
            )
        query = summation(source, axes, self.schema, magnitude, self.unit.column)
        rows = source.run(query)
        if not rows.num_rows or (not axes and rows["n"][0].as_py() == 0):
            raise no_records()
        codes = tuple(rows[f"c{at}"].to_numpy() for at in range(len(axes)))
        for axis, code in zip(axes, codes, strict=True):
            refuse(axis, code, self.schema)
        refuse_number(magnitude.column, rows["why"].to_numpy())
        sums = [int(value) for value in rows["s"].to_pylist()]
        if any(abs(value) > LARGEST_SUM for value in sums):
            raise DataError(
                f"sums of {magnitude.column!r} may exceed 2^52 steps.", remedy="Use a larger step."
            )
        flat = np.zeros(math.prod(shape), dtype=np.int64)
        flat[np.ravel_multi_index(codes, shape) if axes else slice(None)] = sums
        return SumsTable(self.schema, tuple(axis.name for axis in axes), flat.reshape(shape))

    def source_for(self, axes: Sequence[Axis]) -> Source:
        """CONFIDENTIAL: the records, with the number of rows of a unit where an axis is that."""
        wanted = [axis.base for axis in axes if axis.base in self.schema.sizes]
        if not wanted:
            return self.source
        source, unit = self.source, str(self.unit.column)
        steps = [RowsOfUnit(name, unit) for name in wanted]
        return source.under(*derived(source.name, source.types, steps, source.dialect))

    def _counted(self, axes: tuple[Axis, ...], shape: tuple[int, ...]) -> NDArray[Any]:
        source = self.source_for(axes)
        if math.prod(shape) > SPILT:
            source.spill()
        rows = source.run(tabulation(source, axes, self.schema))
        if not rows.num_rows or (not axes and rows["n"][0].as_py() == 0):
            raise no_records()
        for at, axis in enumerate(axes):
            refuse(axis, rows[f"c{at}"].to_numpy(), self.schema)
        # Some at a time, and as few bytes a cell as do: a table of a nation is large.
        largest = max(int(chunk.to_numpy().max(initial=0)) for chunk in rows["n"].chunks)
        flat = np.zeros(math.prod(shape), dtype=np.min_scalar_type(largest))
        for some in rows.to_batches():
            codes = tuple(some[f"c{at}"].to_numpy() for at in range(len(axes)))
            # Each combination of codes is one row, so assignment loses nothing.
            flat[np.ravel_multi_index(codes, shape) if axes else slice(None)] = some["n"].to_numpy()
        return flat

    def check_unit(self) -> None:
        """Check the unit of protection; without a unit column there is nothing to check.

        Where all rows of a unit share attributes, the pass that checks them counts the units, too.
        """
        if self.unit.column is None or self._unit_is_checked:
            return
        whole = _open(self._whole)
        whole.spill()  # as many groups as units
        shared = [name for name in self.schema.of_units if name not in self.schema.sizes]
        if shared and self.unit.rows > 1:
            axes = self.schema.axes(shared)
            self._classes = (tuple(shared), *self._coded_units(axes, whole))
        else:
            self._refuse_rows_of_units(whole.run(rows_per_unit(whole, self.unit.column)))
        self._unit_is_checked = True

    def _refuse_rows_of_units(self, per_unit: Any) -> None:
        """DataError for rows without a unit, and for units with more rows than they may have."""
        column, limit = self.unit.column, self.unit.rows
        if per_unit["missing"].to_numpy().any():
            raise DataError(
                f"unit column {column!r} has missing values.",
                remedy="Every record needs a value that identifies its unit.",
            )
        if not self.unit.truncate and (per_unit["largest"].to_numpy() > limit).any():
            raise DataError(
                f"in unit column {column!r} a value occurs in more than "
                f"{f'{limit} rows' if limit > 1 else 'one row'}.",
                remedy=self.unit.remedy,
            )

    def tabulate_units(self, names: Sequence[str] = ()) -> Table:
        """Count the units, not their rows, over axes that all rows of a unit share.

        Raises DataError as `tabulate` does, and where rows of one unit differ in such an axis.
        """
        axes = self.schema.axes(names)
        self._refuse_axes_of_rows(axes)
        self.check_unit()
        shape = tuple(axis.size for axis in axes)
        codes, units = self._counted_units(axes)
        flat = np.zeros(math.prod(shape), dtype=np.int64)
        if axes:
            np.add.at(flat, np.ravel_multi_index(codes, shape), units)
        else:
            flat[:] = units.sum()
        return Table(self.schema, tuple(axis.name for axis in axes), flat.reshape(shape))

    def _counted_units(self, axes: Sequence[Axis]) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
        """CONFIDENTIAL: combinations of levels and their units, as the check counted them."""
        names, codes, units = self._classes
        if not names or not {axis.base for axis in axes} <= set(names):
            return self._coded_units(axes, self.source_for(axes))
        return tuple(axis.of_base[codes[names.index(axis.base)]] for axis in axes), units

    def _refuse_axes_of_rows(self, axes: Sequence[Axis]) -> None:
        if self.unit.column is None:
            raise DataError(
                "no column identifies the unit of a row.",
                remedy='Name it, for example Unit("household", max_rows=8).',
            )
        for axis in axes:
            if axis.base not in self.schema.of_units:
                raise DataError(
                    f"units cannot be counted by {axis.name!r}, because the rows of a unit may "
                    "differ in it.",
                    remedy='Write of = "unit" in the schema if all rows of a unit share it, or '
                    "count rows.",
                )

    def _coded_units(
        self, axes: Sequence[Axis], source: Source
    ) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
        """CONFIDENTIAL: combinations of levels and their units; checks that a unit's rows agree."""
        column = str(self.unit.column)
        classes = source.run(units_per_class(source, column, axes, self.schema))
        self._refuse_rows_of_units(classes)
        codes = tuple(classes[f"c{at}"].to_numpy() for at in range(len(axes)))
        for at, axis in enumerate(axes):
            refuse(axis, codes[at], self.schema)
            if classes[f"d{at}"].to_numpy().any():
                raise DataError(
                    f"column {axis.base!r} differs between rows of one unit, but the schema says "
                    'of = "unit".',
                    remedy='Correct the file, or leave of = "unit" out.',
                )
        return codes, classes["n"].to_numpy()

    def close(self) -> None:
        """Let go of the source; a connection of the caller stays open."""
        if self._whole is not None:
            self._whole.close()
        self._source = self._whole = None

    def __enter__(self) -> Microdata:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(CongenialError):  # the first error is the one to see, and work stays done
            self.close()

    def __repr__(self) -> str:
        listed = "closed" if self._source is None else ", ".join(self._source.types)
        return f"Microdata({listed})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise DataError(
            "Microdata are confidential and are neither pickled nor copied.",
            remedy="Open the source again where it is needed.",
        )


def _refuse_sizes_of_nobody(schema: Schema, unit: Unit) -> None:
    if schema.sizes and unit.column is None:
        raise DataError(
            f"{schema.sizes[0]!r} is the number of rows of a unit, but no column identifies the "
            "unit.",
            remedy='Name it, for example Unit("household", max_rows=8).',
        )


def _open(source: Source | None) -> Source:
    if source is None:
        raise DataError("the records were closed.", remedy="Open them again.")
    return source


def tabulate(
    data: object, schema: Schema, by: Sequence[str] | None = None, unit: Unit | None = None
) -> Table:
    """Count records over the axes `by` (all attributes if None); see `Microdata.open` for `data`.

    >>> import pyarrow
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> tabulate(pyarrow.table({"sex": ["f", "m", "f"]}), schema)
    Table(sex: 2)
    """
    if isinstance(data, Microdata):
        if schema != data.schema or unit not in (None, data.unit):
            raise DataError(
                "the records were opened with another schema or unit.",
                remedy="Open them again with this one.",
            )
        return data.tabulate(by)
    with Microdata.open(data, schema, unit) as records:
        return records.tabulate(by)


def no_records() -> DataError:
    """The error for a source without rows."""
    return DataError("the data have no records.", remedy="Check the source.")


def refuse(axis: Axis, codes: NDArray[Any], schema: Schema) -> None:
    """Raise DataError if some row has no level on this axis."""
    if (codes >= axis.size).any():  # the engine trusts what a file says of its own values
        raise DataError(
            f"column {axis.base!r} cannot be counted: the file's own statistics of it are wrong.",
            remedy="The file is damaged: export it again from its source.",
        )
    if not (codes < 0).any():
        return
    name = axis.base
    if (codes == Refusal.NOT_A_NUMBER).any():
        raise DataError(
            f"column {name!r} holds text that is not a number.",
            remedy=NO_NUMBER,
        )
    if (codes == Refusal.MISSING).any():
        raise DataError(
            f"column {name!r} has missing values, and the schema has no category for them.",
            remedy='Add a category for them in the schema, for example missing = "unknown".',
        )
    raise DataError(
        f"column {name!r} has {_strangers(schema.attribute(name))} that are not in the schema.",
        remedy=(
            'Add them to the schema, or put them into one category, for example other = "other".'
        ),
    )


def refuse_number(column: str, reasons: NDArray[Any]) -> None:
    """Raise DataError if some person has no number that can be summed."""
    if (reasons == Refusal.NOT_A_NUMBER).any():
        raise DataError(
            f"column {column!r} holds text that is not a number, and cannot be summed.",
            remedy="Correct it, or recode it in [derive].",
        )
    if (reasons == Refusal.INFINITE).any():
        raise DataError(
            f"column {column!r} holds an infinite number, and cannot be summed.",
            remedy="Correct the data.",
        )
    if (reasons == Refusal.MISSING).any():
        raise DataError(
            f"column {column!r} has no number for some people, and the plan does not say what "
            "they count as.",
            remedy="Say so in the release, for example missing = 0.",
        )


def _strangers(attribute: Attribute) -> str:
    """What a column may hold that has no level."""
    if attribute.kind == "bins" and attribute.whole_values:
        return "numbers that are not whole, or lie beyond its edges,"
    return "values between or beyond its numbers" if attribute.intervals else "values"


def truncated(source: Source, schema: Schema, column: str, most: int) -> Source:
    """The same records, of each unit of `column` the first `most` in the schema's order.

    The order is public and total over rows: by the level of the schema's first column, then of its
    second, and so on; rows with a value that the schema refuses come before all others, so that
    they are still found. What a unit keeps depends on its own rows only. So the truncated units are
    units with at most k rows, everything is counted from them, and every promise about such units
    holds for them word for word.

    It holds for the whole data, too. Let d be the slot distance of two units: max(|x - y|, |y - x|)
    as multisets, the rows added, removed or changed. With t(x) the k first rows of x,

        d(t(x), t(y)) <= d(x, y).

    Proof: it is enough that one row is changed, added or removed. Let w be the rows of both, and e
    the row that only x has. If w has fewer than k rows, then t(x) = w + e. Otherwise, with z the
    k-th row of w, t(x) is t(w), or t(w) - z + e where e comes before z. In the same way for y. So
    t(x) and t(y) have all rows of t(w) but perhaps z in common, and at most one more each: they
    differ in one slot.

    So two datasets that differ in at most a units and b slots still do after truncation; what has
    to agree is the figures of the truncated data, which is why those are the ones that are
    published.
    """
    dialect = source.dialect
    names = [*source.types]
    own = [f"src.{dialect.identifier(name)} AS b{at}" for at, name in enumerate(names)]
    axes = schema.axes(schema.columns)
    rows = coded(source, axes, schema, own)
    codes = [f"c{at}" for at in range(len(axes))]
    refused = " OR ".join(f"{code} < 0" for code in codes) or "1 = 0"
    # Rows of one cell are interchangeable; their values only settle which of them is named.
    ties = [f"b{at}" for at, name in enumerate(names) if name != column]
    order = ", ".join([f"CASE WHEN {refused} THEN 0 ELSE 1 END", *codes, *ties])
    place = f"ROW_NUMBER() OVER (PARTITION BY b{names.index(column)} ORDER BY {order}) AS place"
    listed = ", ".join(f"b{at} AS {dialect.identifier(name)}" for at, name in enumerate(names))
    placed = f"SELECT *, {place} FROM ({rows}) AS coded"
    first = f"(SELECT {listed} FROM ({placed}) AS placed WHERE place <= {most})"
    return source.under(first, source.types)
