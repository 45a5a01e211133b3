"""Vector statistics over records: means, counts, proportions, quantiles, functions of one's own.

Where the engine can, it computes them: conditions are tabulated as everywhere else, means and
quantiles are one aggregate query. `Statistics.records` fetches the needed columns instead, one row
each, for those who draw subsets of modelling data. A quantile is the smallest value with at least
that share of the records at or below it (percentile_disc in SQL).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from congenial.data.attribute import Attribute, check_name, refuse_repeats
from congenial.data.predicate import parse
from congenial.data.rational import Number, exact, written
from congenial.data.records import (
    Records,
    column_numbers,
    condition_flags,
    fetch,
    not_whole,
    refuses_broken,
    without_number,
)
from congenial.data.schema import Schema
from congenial.data.source import Source
from congenial.data.tabulate import Microdata, no_records
from congenial.errors import DataError, SchemaError

Kind = Literal["mean", "count", "proportion", "quantile", "custom"]
Floats = NDArray[np.float64]


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
        found = []
        for part in self.parts:
            if part.condition:
                found.append(flags[part.condition].astype(np.float64))
            elif part.kind == "custom":
                found.append(np.full(length, np.nan))
            else:
                values = numbers[part.columns[0]]
                low, high = self.bounds(part)
                if part.between is not None:
                    values = np.clip(values, float(low), float(high))
                self._refuse_outside(part, values.min(), values.max())
                found.append(values)
        return np.column_stack(found)

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
