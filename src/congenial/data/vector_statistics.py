"""Vector statistics over records: means, counts, proportions, quantiles, functions of one's own.

Where the engine can, it computes them: conditions are tabulated as everywhere else, means and
quantiles are one aggregate query. `Statistics.records` fetches the needed columns instead, one row
each (`Records`), for those who draw subsets of modelling data and shadow datasets. A quantile is
the smallest value with at least that share of the records at or below it (percentile_disc in SQL).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count, pairwise
from typing import Any, Literal, NoReturn, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from congenial.data.arrays import Floats
from congenial.data.attribute import REFUSE, Attribute, axis_of, check_name, refuse_repeats
from congenial.data.predicate import Predicate, parse
from congenial.data.rational import Number, exact, written
from congenial.data.schema import Schema
from congenial.data.source import Source, guarded
from congenial.data.sql import Refusal, own_labels, rule_code, steps
from congenial.data.tabulate import NO_NUMBER, Microdata, no_records, refuse
from congenial.errors import DataError, SchemaError

Kind = Literal["mean", "count", "proportion", "quantile", "custom"]


@dataclass(frozen=True)
class Statistic:
    """One number about a dataset: a mean, count, proportion, quantile or custom function.

    `between` cuts each value to a range first, which bounds what one record can change. `columns`
    are what a custom function reads: it gets a mapping of column name to numbers.

    >>> Statistic.mean("age", between=(0, 110)).name, Statistic.count("sex = 'f'").name
    ('mean age', "number with sex = 'f'")
    """

    name: str
    kind: Kind
    columns: tuple[str, ...] = ()
    condition: str = ""
    at: Number = 0
    between: tuple[Number, Number] | None = None
    function: Callable[[Mapping[str, Floats]], float] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_name(self.name, "statistic")
        if self.kind == "quantile" and not 0 < self.at <= 1:
            raise SchemaError(
                f"{self.name!r}: the quantile at {written(self.at)} does not exist.",
                remedy="Give 0 < at <= 1; 0.5 is the median.",
            )
        if self.between is not None and not self.between[0] < self.between[1]:
            low, high = map(written, self.between)
            raise SchemaError(
                f"{self.name!r}: between {low} and {high} is not a range.",
                remedy="Give the smaller number first.",
            )

    @classmethod
    def mean(cls, column: str, between: Sequence[Any] | None = None, name: str = "") -> Self:
        """Average of a numeric column."""
        return cls(name or f"mean {column}", "mean", (column,), between=_range(between))

    @classmethod
    def quantile(
        cls, column: str, at: Any, between: Sequence[Any] | None = None, name: str = ""
    ) -> Self:
        """Smallest value with at least a share `at` of the records at or below it."""
        level = exact(at, "at")
        named = name or f"{written(level)} quantile of {column}"
        return cls(named, "quantile", (column,), at=level, between=_range(between))

    @classmethod
    def count(cls, condition: str, name: str = "") -> Self:
        """Number of records that meet a condition."""
        return cls(name or f"number with {condition}", "count", condition=condition)

    @classmethod
    def proportion(cls, condition: str, name: str = "") -> Self:
        """Share of the records that meet a condition."""
        return cls(name or f"proportion with {condition}", "proportion", condition=condition)

    @classmethod
    def custom(
        cls, name: str, columns: Sequence[str], function: Callable[[Mapping[str, Floats]], float]
    ) -> Self:
        """Any function of numeric columns; nothing is known about what one record changes."""
        return cls(name, "custom", tuple(columns), function=function)

    @classmethod
    def read(cls, name: str, spec: Mapping[str, Any]) -> Self:
        """The entry of a plan, such as { mean = "age" } or { quantile = "hours", at = 0.5 }."""
        keys = set(spec)
        if keys <= {"mean", "between"} and "mean" in keys:
            return cls.mean(spec["mean"], spec.get("between"), name)
        if keys <= {"quantile", "at", "between"} and {"quantile", "at"} <= keys:
            return cls.quantile(spec["quantile"], spec["at"], spec.get("between"), name)
        if keys == {"count"}:
            return cls.count(spec["count"], name)
        if keys == {"proportion"}:
            return cls.proportion(spec["proportion"], name)
        raise SchemaError(
            f"statistic {name!r} cannot be read from {', '.join(sorted(keys)) or 'nothing'}.",
            remedy="Give mean, quantile with at, count, or proportion; between for numbers.",
        )

    def to_dict(self) -> dict[str, Any]:
        """What `read` reads; a custom function is described by its columns alone."""
        if self.kind in ("count", "proportion"):
            return {self.kind: self.condition}
        if self.kind == "custom":
            return {"custom": list(self.columns)}
        spec: dict[str, Any] = {self.kind: self.columns[0]}
        if self.kind == "quantile":
            spec["at"] = written(self.at)
        if self.between is not None:
            spec["between"] = [written(end) for end in self.between]
        return spec


def _range(between: Sequence[Any] | None) -> tuple[Number, Number] | None:
    if between is None:
        return None
    if len(between) != 2:
        raise SchemaError("between is not a pair of numbers.", remedy="Give lowest and highest.")
    return exact(between[0], "between"), exact(between[1], "between")


class Vector:
    """CONFIDENTIAL: the values of some statistics on one dataset, and its number of records.

    It prints as its names, and is neither pickled nor copied.
    """

    __slots__ = ("names", "records", "values")

    def __init__(self, names: Sequence[str], values: Any, records: int) -> None:
        self.names = tuple(names)
        self.values: Floats = np.array(values, dtype=np.float64)
        self.records = int(records)
        if self.values.shape != (len(self.names),):
            raise DataError("one value per statistic is needed.", remedy="Compute them again.")
        self.values.flags.writeable = False

    def __repr__(self) -> str:
        return f"Vector({', '.join(self.names)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise DataError(
            "a Vector is confidential and is neither pickled nor copied.",
            remedy="Compute it again where it is needed.",
        )


@dataclass(frozen=True)
class Statistics:
    """A query F: several statistics over one schema, in order.

    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 110]}})
    >>> query = Statistics(schema, (Statistic.mean("age"), Statistic.count("sex = 'f'")))
    >>> query.change(100).tolist(), query.spacing(100).tolist()
    ([1.1, 1.0], [0.01, 1.0])
    """

    schema: Schema
    parts: tuple[Statistic, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise SchemaError("there is no statistic.", remedy="Give at least one.")
        refuse_repeats(self.names, "the statistic")
        for part in self.parts:
            if part.condition:
                parse(part.condition, self.schema)
            for column in part.columns:
                _numeric(self.schema.attribute(column), part.name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the components, in order."""
        return tuple(part.name for part in self.parts)

    def change(self, records: int) -> Floats:
        """How much replacing one of n records moves each component at most; inf if unbounded."""
        widths = [float(high - low) for low, high in map(self.bounds, self.parts)]
        averaged = [part.kind in ("mean", "proportion") for part in self.parts]
        return np.array([w / records if a else w for w, a in zip(widths, averaged, strict=True)])

    def spacing(self, records: int) -> Floats:
        """The grid each component lives on for n records; 0 where it can take any value.

        Means of whole numbers move in steps of 1/n, counts in steps of 1. A column with whole edges
        is taken to hold whole numbers, whether or not the schema says `whole`: the step is used to
        spread values over it (`dithered`), and a step that is too wide only adds noise.
        """
        return np.array([self._step(part, records) for part in self.parts])

    def _step(self, part: Statistic, records: int) -> float:
        if part.kind in ("count", "proportion"):
            return 1.0 if part.kind == "count" else 1 / records
        whole = all(self.schema.attribute(column).whole for column in part.columns)
        cut = part.between or ()
        if part.kind == "custom" or not whole or not all(isinstance(end, int) for end in cut):
            return 0.0
        return 1.0 if part.kind == "quantile" else 1 / records

    def bounds(self, part: Statistic) -> tuple[Number | float, Number | float]:
        """The range of what one record contributes; infinite where nothing bounds it."""
        if part.kind in ("count", "proportion"):
            return 0, 1
        if part.kind == "custom":
            return -math.inf, math.inf
        return part.between or _limits(self.schema.attribute(part.columns[0]))

    def _refuse_outside(self, part: Statistic, least: float, greatest: float) -> None:
        """Refuse a column with numbers that no level of the schema holds, unless they are cut."""
        if part.between is not None:
            return  # cut at the nearest doubles, which may lie beyond the written bounds
        low, high = self.bounds(part)
        whole = self.schema.attribute(part.columns[0]).whole_values
        excluded = not whole and math.isfinite(high)  # the last edge
        if least < low or greatest > high or (excluded and greatest == high):
            raise _outside(part.columns[0])

    # ---- on data -----------------------------------------------------------------------------

    def compute(self, data: Microdata) -> Vector:
        """The statistics of a dataset, computed by its engine; CONFIDENTIAL."""
        if data.schema != self.schema:
            raise DataError(
                "the records were opened with another schema.", remedy="Open them with this one."
            )
        if any(part.kind == "custom" for part in self.parts):
            records = self.records(data)
            index = np.arange(len(records))[None]
            return Vector(self.names, records.vectors(index)[0], len(records))
        data.check_unit()
        n = data.tabulate(()).total
        measured = iter(self._aggregates(data.source))
        values = []
        for part in self.parts:
            if part.condition:
                condition = parse(part.condition, self.schema)
                hits = int(data.tabulate(condition.bases).counts[condition.mask()].sum())
                values.append(hits / n if part.kind == "proportion" else hits)
            else:
                values.append(next(measured))
        return Vector(self.names, values, n)

    def records(self, data: Microdata, conditions: Sequence[str] = ()) -> Records:
        """CONFIDENTIAL: every record's contribution, and whether it meets each condition."""
        data.check_unit()
        needed = [parse(text, self.schema) for text in conditions]
        own = [parse(part.condition, self.schema) for part in self.parts if part.condition]
        columns = {column for part in self.parts for column in part.columns}
        columns |= {base for predicate in (*needed, *own) for base in predicate.bases}
        table, ids = fetch(data, sorted(columns))
        if table.num_rows == 0:
            raise no_records()
        numbers = {
            column: column_numbers(self.schema.attribute(column), table[column])
            for column in sorted({column for part in self.parts for column in part.columns})
        }
        flags = {
            predicate.text: condition_flags(predicate, self.schema, table)
            for predicate in (*needed, *own)
        }
        return Records(self.parts, self._contributions(numbers, flags), numbers, flags, ids)

    def _contributions(
        self, numbers: Mapping[str, Floats], flags: Mapping[str, NDArray[np.bool_]]
    ) -> Floats:
        """One column per statistic: indicator, number, or nothing for a custom function."""
        length = len(next(iter((*numbers.values(), *flags.values()))))
        contributions = []
        for part in self.parts:
            if part.condition:
                contributions.append(flags[part.condition].astype(np.float64))
            elif part.kind == "custom":
                contributions.append(np.full(length, np.nan))
            else:
                values = numbers[part.columns[0]]
                low, high = self.bounds(part)
                if part.between is not None:
                    values = np.clip(values, float(low), float(high))
                self._refuse_outside(part, values.min(), values.max())
                contributions.append(values)
        return np.column_stack(contributions)

    def _aggregates(self, source: Source) -> list[float]:
        """Means and quantiles, in one query."""
        wanted = [part for part in self.parts if part.kind in ("mean", "quantile")]
        if not wanted:
            return []
        rows = source.run(_aggregate_query(wanted, source)).to_pydict()
        values = []
        for at, part in enumerate(wanted):
            if rows[f"k{at}"][0] < rows["n"][0]:
                raise without_number(part.columns[0])
            if rows[f"broken{at}"][0] and refuses_broken(self.schema.attribute(part.columns[0])):
                raise not_whole(part.columns[0])
            self._refuse_outside(part, rows[f"low{at}"][0], rows[f"high{at}"][0])
            values.append(float(rows[f"s{at}"][0]))
        return values


def _numeric(attribute: Attribute, name: str) -> None:
    if attribute.kind == "categorical":
        raise SchemaError(
            f"{name!r} needs numbers, but the categories of {attribute.name!r} are text.",
            remedy="Declare the column with integers or edges.",
        )


def _limits(attribute: Attribute) -> tuple[Number | float, Number | float]:
    """The range the schema allows a number in."""
    low, high = attribute.intervals[0][0], attribute.intervals[-1][1]
    if attribute.other != "refuse":
        return -math.inf, math.inf
    if attribute.whole_values and high is not None:
        high -= 1  # whole numbers below the last edge
    return -math.inf if low is None else low, math.inf if high is None else high


def _aggregate_query(parts: Sequence[Statistic], source: Source) -> str:
    """One row: n, and for each part its value, the number of numbers, the least and greatest, and
    whether some are not whole.
    """
    dialect, inner, outer = source.dialect, [], ["COUNT(*) AS n"]
    double = dialect.types["double"]
    for at, part in enumerate(parts):
        column = f"src.{dialect.identifier(part.columns[0])}"
        stored = source.types[part.columns[0]]
        value = dialect.read_number(column) if stored.kind == "text" else column
        value = f"CAST({value} AS {double})"
        if stored.kind in dialect.with_nan:
            value = f"CASE WHEN {dialect.is_nan(value)} THEN NULL ELSE {value} END"
        inner.append(f"CASE WHEN {value} <> floor({value}) THEN 1 ELSE 0 END AS broken{at}")
        for edge, sign in zip(part.between or (), "<>", strict=False):
            end = f"CAST('{float(edge)!r}' AS {double})"
            value = f"CASE WHEN {value} {sign} {end} THEN {end} ELSE {value} END"
        inner.append(f"{value} AS v{at}")
        value = f"AVG(v{at})"
        if part.kind == "quantile":
            value = f"percentile_disc({float(part.at)!r}) WITHIN GROUP (ORDER BY v{at})"
        outer.append(f"{value} AS s{at}, COUNT(v{at}) AS k{at}")
        outer.append(f"MIN(v{at}) AS low{at}, MAX(v{at}) AS high{at}")
        outer.append(f"MAX(broken{at}) AS broken{at}")
    numbers = f"SELECT {', '.join(inner)} FROM {source.name} AS src"
    return f"SELECT {', '.join(outer)} FROM ({numbers}) AS numbers"


def _outside(column: str) -> DataError:
    return DataError(
        f"column {column!r} has numbers outside the schema's range.",
        remedy="Widen the range in the schema, or limit the values with between.",
    )


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
        blocks = [self._some(index[at : at + step]) for at in range(0, subsets, step)]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.parts)))

    def _some(self, index: Any) -> Floats:
        size = index.shape[1]
        statistics = np.empty((len(index), len(self.parts)))
        for at, part in enumerate(self.parts):
            if part.kind == "custom":
                assert part.function is not None
                statistics[:, at] = [
                    part.function({name: self._columns[name][rows] for name in part.columns})
                    for rows in index
                ]
                continue
            values = self._numbers[index, at]
            if part.kind == "quantile":
                rank = quantile_position(part.at, size)
                statistics[:, at] = np.partition(values, rank, axis=1)[:, rank]
            else:
                statistics[:, at] = values.sum(axis=1)
                if part.kind != "count":
                    statistics[:, at] /= size
        return statistics

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
        level = codes(attribute, table[base])
        refuse(axis, level, schema)
        levels.append(level)
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
        level_codes = pc.fill_null(at, other).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where(text.is_null().to_numpy(zero_copy_only=False), missing, level_codes)
    column, labelled = _labels_apart(attribute, column)
    numbers = _numbers(attribute, column)
    edges, steps_codes = steps(attribute, axis, other)
    levels = np.searchsorted(np.array([float(edge) for edge in edges]), numbers, side="right")
    level_codes = np.array(steps_codes, dtype=np.int64)[levels]
    if attribute.whole_values:
        level_codes = np.where(numbers != np.floor(numbers), other, level_codes)
    return np.where(labelled >= 0, labelled, np.where(np.isnan(numbers), missing, level_codes))


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
