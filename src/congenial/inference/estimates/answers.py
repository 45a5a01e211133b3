"""What an analyst gets: estimates with intervals, each with the method that made it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from congenial._notebook import Picture, Row, grid
from congenial.mechanisms.cell_labels import label_names

COLUMNS = ("value", "low", "high", "sd", "method", "note")
NOT_GROUPS = ("of", *COLUMNS, "level", "jointly")  # keys of a row that are no labels


@dataclass(frozen=True)
class Estimate:
    """One estimate: what it is of, for whom, its interval and what that rests on.

    `value` is nan where there is none; `note` then says why. `low` or `high` is infinite where
    nothing bounds it. `sd` is the standard deviation of the error, nan where none is stated.
    """

    of: str
    value: float
    low: float
    high: float
    level: float
    method: str
    group: Mapping[str, str] = field(default_factory=dict)
    sd: float = math.nan
    note: str = ""
    jointly: bool = False

    def _repr_html_(self) -> str:
        return EstimateTable((self,))._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is not a finite number becomes None."""
        numbers = {name: _finite(getattr(self, name)) for name in ("value", "low", "high", "sd")}
        return {
            "of": self.of,
            **_labels(self.group),
            **numbers,
            "level": self.level,
            "jointly": self.jointly,
            "method": self.method,
            "note": self.note,
        }


@dataclass(frozen=True)
class EstimateTable:
    """Estimates in the order they were asked for.

    A sequence of `Estimate`: iterate, index, or take all of it with `to_arrow`, `to_pandas` or
    `to_dicts`. Notebooks show it as a table.
    """

    estimates: tuple[Estimate, ...]

    def __repr__(self) -> str:
        some = "; ".join(
            f"{', '.join(estimate.group.values()) or estimate.of[:60]}: "
            f"{written_number(estimate.value) or '-'} ("
            f"{written_number(estimate.low)} to {written_number(estimate.high)})"
            for estimate in self.estimates[:3]
        )
        more = len(self) - 3
        return f"EstimateTable({some}{f'; {more} more' if more > 0 else ''})"

    def __len__(self) -> int:
        return len(self.estimates)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __getitem__(self, place: int) -> Estimate:
        return self.estimates[place]

    def to_arrow(self) -> Any:
        """One row for each estimate: `of`, the groups' labels, value, low, high, sd, method."""
        import pyarrow as pa

        names = tuple(dict.fromkeys(name for estimate in self for name in estimate.group))
        columns: dict[str, Any] = {"of": pa.array([estimate.of for estimate in self], pa.string())}
        for name, column in zip(names, label_names(names, NOT_GROUPS), strict=True):
            columns[column] = pa.array([estimate.group.get(name) for estimate in self], pa.string())
        for name in COLUMNS:
            kind = pa.float64() if name in ("value", "low", "high", "sd") else pa.string()
            columns[name] = pa.array([getattr(estimate, name) for estimate in self], kind)
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """The same as a pandas frame (extra `frames`)."""
        return self.to_arrow().to_pandas()

    def plot(self) -> Picture:
        """The estimates with their intervals, as a picture that notebooks show."""
        return Picture.of_intervals("estimates with their intervals", self._pictured())

    def _pictured(self) -> list[Row]:
        return [
            (", ".join(estimate.group.values()) or estimate.of, *_numbers(estimate))
            for estimate in self
        ]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Plain values, for JSON."""
        return [estimate.to_dict() for estimate in self]

    def _repr_html_(self) -> str:
        rows = [
            (
                estimate.of,
                ", ".join(estimate.group.values()),
                *map(written_number, _numbers(estimate)),
                estimate.method,
            )
            for estimate in self
        ]
        table = grid("Estimates", ("of", "for", "value", "low", "high", "method"), rows)
        return table + self.plot().svg


def answer_tables(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One table for each question, for `report/words/estimate.txt`: from rows of `to_dicts`."""
    asked = dict.fromkeys(row["of"] for row in rows)
    return [_answer_table(of, [row for row in rows if row["of"] == of]) for of in asked]


def _answer_table(of: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = [name for name in rows[0] if name not in NOT_GROUPS]
    noted = any(row["note"] for row in rows)
    columns = (*names, "value", "low", "high", "note")[: None if noted else -1]
    return {
        "of": of,
        "columns": columns,
        "rows": [[_text(row[column]) for column in columns] for row in rows],
        "methods": dict.fromkeys(row["method"] for row in rows),
    }


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else written_number(value)


def written_number(value: float) -> str:
    """A number with as many digits as anybody reads; nothing where there is none."""
    if math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int_or_nan(value) else f"{value:.4g}"


def int_or_nan(value: float) -> float:
    """The whole number next to a finite one."""
    return float(round(value)) if math.isfinite(value) else math.nan


def _labels(group: Mapping[str, str]) -> dict[str, str]:
    """The labels of a group by column."""
    return dict(zip(label_names(tuple(group), NOT_GROUPS), group.values(), strict=True))


def _numbers(one: Estimate) -> tuple[float, float, float]:
    return one.value, one.low, one.high


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
