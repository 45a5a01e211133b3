"""What is estimated: a mean, sum, quantile or regression of columns, with public bounds.

    { mean = "age", between = [0, 110] }
    { sum = "age", between = [0, 110] }
    { quantile = "age", at = 0.5, between = [0, 110] }
    { regression = "linear", response = "hours", between = [0, 99], features = { age = [0, 110] },
      coefficients = [-4, 4] }
    { regression = "logistic", response = "income = '>50K'", features = { age = [17, 90] },
      coefficients = [-4, 4] }

Numbers beyond their bounds are cut. A regression has an intercept; its numbers are rescaled from
their bounds to -1 .. 1, so that coefficients are in these units. All bounds are public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from congenial.data.arguments import FINITE, RANGE, TEXT, Rule, check_fields, optional
from congenial.data.arrays import Floats
from congenial.data.schema import Schema
from congenial.data.vector_statistics import Statistic, Statistics
from congenial.errors import GuaranteeError, SchemaError
from congenial.mechanisms.wasserstein.convex_statistics import (
    Box,
    ConvexStatistic,
    Mean,
    Quantile,
    Regression,
)

Bounds = tuple[float, float]
What = Literal["mean", "sum", "quantile", "linear", "logistic"]
MOST_FEATURES = 2
POINTS = {1: 1 << 14, 2: 512, 3: 64}  # of a grid per coordinate, by the number of coordinates
_ROOM = 1 + 2.0**-40  # for the rounding of a norm
REMEDY = (
    "Give mean, sum or quantile (with at) and between = [low, high]; or regression = 'linear' or "
    "'logistic' with response, features = { column = [low, high] } and coefficients = [low, high]; "
    "a linear one also has between, the bounds of its response."
)


def _named_ranges(value: Any) -> bool:
    """Whether it is ((column, (low, high)), ...)."""
    if not isinstance(value, list | tuple):
        return False
    pairs = [tuple(item) for item in value if isinstance(item, list | tuple)]
    return len(pairs) == len(value) and all(
        len(pair) == 2 and TEXT.holds(pair[0]) and RANGE.holds(pair[1]) for pair in pairs
    )


@dataclass(frozen=True)
class EstimateSpec:
    """One estimate: what it is, of which columns, within which public bounds.

    response: the column of a mean, sum, quantile or linear regression, or the condition of a
    logistic one. between: its bounds; None for a condition. features: columns with their bounds.
    """

    what: What
    response: str
    between: Bounds | None
    at: float = 0.5
    features: tuple[tuple[str, Bounds], ...] = ()
    coefficients: Bounds = field(default=(-4.0, 4.0))

    def __post_init__(self) -> None:
        named = Rule("pairs of a column and its range", _named_ranges)
        check_fields(
            self,
            SchemaError,
            what=TEXT,
            response=TEXT,
            between=optional(RANGE),
            at=FINITE,
            features=named,
            coefficients=RANGE,
        )
        ranges = [self.between, self.coefficients, *(ends for _, ends in self.features)]
        for low, high in filter(None, ranges):
            if not -math.inf < low < high < math.inf:
                raise SchemaError(
                    f"estimate: {low:g} to {high:g} is not a range.", remedy="Give [low, high]."
                )
        if self.regression and not 1 <= len(self.features) <= MOST_FEATURES:
            raise SchemaError(
                f"estimate: a regression on {len(self.features)} features.",
                remedy=f"Give one to {MOST_FEATURES}; an intercept is added.",
            )

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> EstimateSpec:
        """The entry of a plan or of a bundle."""
        keys = set(data)
        try:
            if keys in ({"mean", "between"}, {"sum", "between"}):
                what: What = "mean" if "mean" in keys else "sum"
                return cls(what, _text(data[what]), _bounds(data["between"]))
            if keys == {"quantile", "at", "between"}:
                column, at = _text(data["quantile"]), float(data["at"])
                return cls("quantile", column, _bounds(data["between"]), at)
            return cls._regression(data)
        except (KeyError, TypeError, ValueError, AttributeError):
            named = ", ".join(sorted(map(str, keys))) or "nothing"
            raise SchemaError(f"estimate cannot be read from {named}.", remedy=REMEDY) from None

    @classmethod
    def _regression(cls, data: Mapping[str, Any]) -> EstimateSpec:
        kind, linear = data["regression"], data["regression"] == "linear"
        needed = {"regression", "response", "features", "coefficients"}
        if kind not in ("linear", "logistic") or set(data) != needed | ({"between"} & {*data}):
            raise ValueError
        return cls(
            kind,
            _text(data["response"]),
            _bounds(data["between"]) if linear else None,
            features=tuple((_text(k), _bounds(v)) for k, v in data["features"].items()),
            coefficients=_bounds(data["coefficients"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Inverse of `read`."""
        between = {} if self.between is None else {"between": list(self.between)}
        if self.adds_up:
            return {self.what: self.response} | between
        if self.what == "quantile":
            return {"quantile": self.response, "at": self.at} | between
        features = {name: list(ends) for name, ends in self.features}
        plain = {"regression": self.what, "response": self.response, "features": features}
        return plain | between | {"coefficients": list(self.coefficients)}

    @property
    def adds_up(self) -> bool:
        """Whether it adds up what the records have: a mean, or a sum."""
        return self.what in ("mean", "sum")

    @property
    def regression(self) -> bool:
        """Whether it has features."""
        return self.what in ("linear", "logistic")

    @property
    def names(self) -> tuple[str, ...]:
        """What the released numbers are."""
        if self.adds_up:
            return (f"{self.what} of {self.response}",)
        if self.what == "quantile":
            return (f"{self.at:g} quantile of {self.response}",)
        return ("intercept", *(f"coefficient of {name}" for name, _ in self.features))

    @property
    def units(self) -> str:
        """What a coefficient is about, in words; empty without one."""
        if not self.regression:
            return ""
        scaled = ", ".join(f"{name} ({low:g} to {high:g})" for name, (low, high) in self.features)
        own = "" if self.between is None else f", and {self.response} likewise"
        return f"coefficients are for numbers rescaled to -1 .. 1 from their bounds: {scaled}{own}"

    @property
    def statistic(self) -> ConvexStatistic:
        """The convex loss with its gradient and what one record can change it by; not of a sum."""
        if self.what == "sum":
            raise GuaranteeError(
                "a sum has public bounds only where the number of records is public.",
                remedy="Add scenarios = { believe = 'independent records', people = 400 } with the "
                "public number, or estimate a mean.",
            )
        if self.regression:
            d = 1 + len(self.features)
            box = Box((self.coefficients[0],) * d, (self.coefficients[1],) * d)
            kind: Any = self.what
            return Regression(box, math.sqrt(d) * _ROOM, kind=kind)
        assert self.between is not None
        box = Box(self.between[:1], self.between[1:])
        return Mean(box) if self.what == "mean" else Quantile(box, self.at)

    @property
    def points(self) -> int:
        """Of the public grid, per coordinate."""
        return POINTS[len(self.names)]

    def query(self, schema: Schema, cut: bool = True) -> Statistics:
        """The columns it needs, as statistics of the schema; refused where they are no numbers.

        cut: whether numbers beyond `between` are cut; otherwise those beyond the schema are refused
        where data are read.
        """
        parts = [Statistic.mean(name, ends) for name, ends in self.features]
        if self.between is None:
            parts.append(Statistic.proportion(self.response))
        else:
            parts.append(Statistic.mean(self.response, self.between if cut else None))
        return Statistics(schema, tuple(parts))

    def data(self, numbers: Floats) -> Floats:
        """What the statistic takes, from each record's numbers in the order of `query`."""
        if not self.regression:
            return np.asarray(numbers)
        ends = [between for _, between in self.features] + ([self.between] if self.between else [])
        columns = [np.ones(len(numbers))]
        columns += [_rescaled(numbers[:, at], *between) for at, between in enumerate(ends)]
        if self.between is None:
            columns.append(numbers[:, -1])
        return np.column_stack(columns)


def _rescaled(values: Floats, low: float, high: float) -> Floats:
    """From low .. high to -1 .. 1."""
    return np.asarray(np.clip(2 * (values - low) / (high - low) - 1, -1, 1))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _bounds(value: Any) -> Bounds:
    low, high = value
    return float(low), float(high)
