"""The section of tables in a plan, what it asks for, and what its check says.

Which tables it names, how much each matters and what they sum is read from the section and the
schema alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, model_validator

from congenial.data.magnitude import Magnitude
from congenial.data.schema import Schema
from congenial.data.workload import Workload
from congenial.errors import PlanError, SchemaError
from congenial.kinds.kind import Checked
from congenial.kinds.plan_sections import NamedSection, Positive, Section
from congenial.mechanisms.calibrate import AUTO
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.parted_tables import PartedTables
from congenial.pairs.pairs import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.tables.design import Aim, Even, Keep, Largest, Weighted

Tables = tuple[tuple[str, ...], ...]
_NOT_WITH_SUM = {
    "parts": ": sums of a number are not counted, estimated or fitted part by part; name tables of "
    "all parts at once",
    "units": ": a unit's rows have a number each; cap bounds what they add up to",
    "accuracy": "; state rho or epsilon",
}


class NumberSection(Section):
    """One of several numbers that tables sum."""

    between: list[Any]
    step: Positive = Fraction(1)
    missing: Any = None
    cap: Positive | None = None


class TablesSection(NamedSection):
    """[[release]] with `table` or `tables`: tables of the same people, and one promise for all."""

    tables: list[list[str]] | Literal["auto"] | None = None
    table: list[str] | None = Field(default=None, min_length=1)
    rho: Positive | None = None
    mu: Positive | None = None
    nonnegative: Literal["no", "project", "condition"] | None = None
    basis: Literal["theorem"] | None = None
    aim: Literal["keep", "even", "largest"] | None = None
    weights: dict[str, Positive] | None = None
    accuracy: list[str] | None = Field(default=None, min_length=1)
    find: Literal["rho", "epsilon"] | None = None
    keep: list[str] = []
    units: bool = False
    parts: str | None = None
    workers: int | None = Field(default=None, ge=1, le=1024)
    sum: str | dict[str, NumberSection] | None = None
    between: list[Any] | None = None
    between_by: dict[str, dict[str, list[Any]]] | None = None
    step: Positive | None = None
    missing: Any = None
    cap: Positive | None = None
    counts: bool = False

    @model_validator(mode="after")
    def _one_number(self) -> TablesSection:
        beside = {"between": self.between, "between_by": self.between_by, "step": self.step}
        beside |= {"missing": self.missing, "cap": self.cap}
        stated = [key for key, value in beside.items() if value is not None]
        if self.sum is None:
            for key in (*stated, *(["counts"] if self.counts else [])):
                raise ValueError(f"{key} goes with sum, which names a column to sum")
            return self
        if self.between_by is not None and (self.between is not None or len(self.between_by) != 1):
            raise ValueError(
                "between_by names one attribute with bounds for each of its levels, in place of "
                "between: { size = { small = [0, 1e5], large = [0, 1e7] } }"
            )
        if isinstance(self.sum, str) and self.between is None and self.between_by is None:
            raise ValueError(
                "sum needs between = [lowest, highest]: public bounds that every person's number "
                "is cut to, because they decide how much noise is needed"
            )
        if not isinstance(self.sum, str):
            for key in stated:
                raise ValueError(f"{key}: with several numbers, state it for each of them")
        if not self.sum:
            raise ValueError('sum names no column: sum = "cost" with between = [0, 50000]')
        for key in self.law_asked:
            raise ValueError(f"{key} does not go with sum")
        for key, why in _NOT_WITH_SUM.items():
            if getattr(self, key):
                raise ValueError(f"{key} does not go with sum{why}")
        try:
            numbers = self.numbers
        except SchemaError as reason:
            raise ValueError(f"{reason.what} {reason.remedy}") from None
        if self.nonnegative == "project" and any(number.lowest < 0 for number in numbers):
            raise ValueError(
                "nonnegative = 'project' is for numbers that are 0 or more, and between starts "
                "below 0; leave it out"
            )
        return self

    @property
    def numbers(self) -> tuple[Magnitude, ...]:
        """The numbers that the tables sum; none where they count people."""
        if self.sum is None:
            return ()
        if isinstance(self.sum, str):
            step = 1 if self.step is None else self.step
            if self.between_by is None:
                number = (self.sum, self.between, step, self.missing)
                return (Magnitude.of(*number, cap=self.cap),)
            return tuple(
                Magnitude.of(self.sum, bounds, step, self.missing, (attribute, level), self.cap)
                for attribute, levels in self.between_by.items()
                for level, bounds in levels.items()
            )
        return tuple(
            Magnitude.of(column, one.between, one.step, one.missing, cap=one.cap)
            for column, one in self.sum.items()
        )

    @property
    def measures(self) -> tuple[Magnitude | None, ...]:
        """What is measured of each table: numbers, and before them None where people count.

        Beside counts, numbers are measured from the middle of their bounds, which takes half the
        noise; not under epsilon alone, where errors of both together have no normal shape.
        """
        if not self.counts:
            return self.numbers or (None,)
        gaussian = self.epsilon is None or self.delta is not None
        return (None, *(number.centred if gaussian else number for number in self.numbers))

    @model_validator(mode="after")
    def _some_tables(self) -> TablesSection:
        if self.tables == "auto" and not self.table:
            raise ValueError("tables = 'auto' needs table = [...], from whose sums it chooses")
        if self.tables not in (None, "auto") and self.table is not None:
            raise ValueError("table is only used with tables = 'auto'; add it to tables instead")
        if not self.tables and not self.table:
            raise ValueError("must name a table: table = [...], or tables = [[...], ...]")
        return self

    @model_validator(mode="after")
    def _one_promise(self) -> TablesSection:
        stated = (self.epsilon, self.rho, self.mu, self.accuracy)
        if sum(x is not None for x in stated) != 1:
            raise ValueError(
                "must have exactly one of epsilon, rho, mu, accuracy (which finds the least rho)"
            )
        if self.find is not None and self.accuracy is None:
            raise ValueError("find needs accuracy: it names the parameter to find")
        of_epsilon = self.epsilon is not None or self.find == "epsilon"
        if self.delta is not None and not of_epsilon:
            raise ValueError("delta needs epsilon, or accuracy with find = 'epsilon'")
        if self.delta is not None and self.delta >= 1:
            raise ValueError("delta must be below 1")
        if sum(x is not None for x in (self.aim, self.weights, self.accuracy)) > 1:
            raise ValueError("must have at most one of aim, weights, accuracy")
        return self

    @model_validator(mode="after")
    def _by_parts(self) -> TablesSection:
        if self.parts is None:
            if self.workers is not None:
                raise ValueError("workers goes with parts: it says how many processes draw them")
            return self
        if self.keep:
            raise ValueError("keep: whole counts by parts follow the areas of the tables only")
        if self.accuracy is not None:
            raise ValueError("accuracy: state rho or epsilon for a release by parts")
        if self.law_asked:
            raise ValueError(f"{self.law_asked[0]} does not go with parts")
        if self.nonnegative == "no":
            raise ValueError("nonnegative = 'no' does not go with parts: whole counts are printed")
        if self.units:
            raise ValueError("units = true does not go with parts")
        return self

    @model_validator(mode="after")
    def _for_one_table(self) -> TablesSection:
        if self.nonnegative == "condition" and (self.epsilon is None or self.delta is not None):
            raise ValueError(
                "nonnegative = 'condition' needs epsilon without delta, for which its cost is "
                "proved; use 'project', which is free"
            )
        keys = self.law_asked
        if keys and self.one_table is None:
            raise ValueError(f"{keys[0]} is for one table; leave it out with several tables")
        if keys and self.designed:
            raise ValueError(f"{keys[0]} cannot be used with aim, weights or accuracy")
        return self

    @property
    def law_asked(self) -> list[str]:
        """Keys that ask for a law which only one table can have."""
        asked = {"mechanism": self.mechanism != AUTO, "mu": self.mu, "basis": self.basis}
        asked["nonnegative = 'condition'"] = self.nonnegative == "condition"
        return [key for key, value in asked.items() if value]

    @property
    def one_table(self) -> tuple[str, ...] | None:
        """The only table, if it is drawn at once; None where there are several, or parts."""
        if self.parts is not None:
            return None
        if self.tables is None:
            return tuple(self.table or ())
        listed = self.tables if self.tables != "auto" else []
        return tuple(listed[0]) if len(listed) == 1 else None

    @property
    def designed(self) -> bool:
        """Whether an aim or accuracies say how precisely tables are measured."""
        return not (self.aim is None and self.weights is None and self.accuracy is None)

    @property
    def parameter(self) -> Literal["epsilon", "rho", "mu"]:
        """Which parameter states the promise."""
        if self.rho is not None:
            return "rho"
        return "epsilon" if self.mu is None else "mu"

    def target(self, adjacency: Adjacency) -> Guarantee:
        """The promise over an adjacency."""
        if self.rho is not None:
            return Guarantee.zero_concentrated(self.rho, adjacency)
        if self.mu is not None:
            return Guarantee.gaussian(self.mu, adjacency)
        assert self.epsilon is not None
        if self.delta is not None:
            return Guarantee.approximate(self.epsilon, float(self.delta), adjacency)
        return Guarantee.pure(self.epsilon, adjacency)


@dataclass(frozen=True)
class TablesCheck(Checked):
    """What tables would promise and how accurate each would be."""

    mechanism: MeasuredTables | PartedTables
    wanted: tuple[str, Fraction] | None = None  # a parameter, and the value that a wish needs
    unanswered: str = ""  # why a wish about a sum that the tables show has no answer


# ---- which tables -------------------------------------------------------------------------------


def all_axes(section: TablesSection) -> list[str]:
    """The axes that the tables of a section name."""
    listed = section.tables if isinstance(section.tables, list) else [section.table or []]
    return [name for names in listed for name in names]


def named_tables(schema: Schema, section: TablesSection) -> Tables:
    """The axes of every table of a section."""
    if isinstance(section.tables, list):
        return tuple(tuple(names) for names in section.tables)
    assert section.table is not None
    return (tuple(section.table),) if section.tables is None else automatic(schema, section.table)


def automatic(schema: Schema, table: Sequence[str]) -> Tables:
    """A table and its sums that readers ask for: each attribute, and pairs with geography.

    Geography is the attribute with most levels among those that have coarser names; every one of
    its names is paired with every other attribute, and with the rest of the table.
    """
    axes = schema.axes(tuple(table))
    names = tuple(axis.name for axis in axes)
    layered = [axis for axis in axes if schema.attribute(axis.base).coarser]
    place = max(layered, key=lambda axis: axis.size, default=None)
    rest = [name for name in names if place is None or name != place.name]
    listed: list[tuple[str, ...]] = [names]
    areas = [] if place is None else _areas(schema, place.name)
    for area in areas:
        listed += [(area, *rest), *((area, one) for one in rest), (area,)]
    listed += [(*rest,), *((one,) for one in rest)]
    listed += [(coarser_name,) for name in rest for coarser_name in _coarser(schema, name)]
    distinct = {frozenset(table_axes): table_axes for table_axes in reversed(listed) if table_axes}
    return tuple(
        table_axes
        for table_axes in dict.fromkeys(listed)
        if table_axes and distinct[frozenset(table_axes)] == table_axes
    )


def _areas(schema: Schema, name: str) -> list[str]:
    """An axis and the coarser names that are sums of it, finest first."""
    return [name, *_coarser(schema, name)]


def _coarser(schema: Schema, name: str) -> list[str]:
    axis = schema.axis(name)
    coarser = []
    for other in schema.attribute(axis.base).coarser:
        try:
            schema.axis(other).map_from(axis)
        except SchemaError:
            continue
        if other != name:
            coarser.append(other)
    return sorted(coarser, key=lambda one: -schema.axis(one).size)


# ---- what is made small ------------------------------------------------------------------------


def aim_of(section: TablesSection, workload: Workload) -> Aim:
    """What the noise of several tables makes small: the most detailed table unless a key says."""
    if section.weights is not None:
        return Weighted(_weights(section, workload))
    aims: dict[str, Aim] = {"even": Even(), "largest": Largest(), "keep": Keep()}
    return aims[section.aim or "keep"]


def aim_words(section: TablesSection) -> str:
    """How error was shared, in words."""
    if section.accuracy is not None:
        return "accuracy: " + "; ".join(section.accuracy)
    if section.weights is not None:
        weights_stated = ", ".join(
            f"{name} = {float(value):g}" for name, value in section.weights.items()
        )
        return f"weights: {weights_stated}"
    return section.aim or "keep"


def _weights(section: TablesSection, workload: Workload) -> tuple[float, ...]:
    """One weight per table, named by its axes ("county, sex"); 1 if it is not named."""
    assert section.weights is not None
    stated = {frozenset(axes_of(key)): float(value) for key, value in section.weights.items()}
    table_sets = [frozenset(names) for names in workload.tables]
    for key in section.weights:
        if frozenset(axes_of(key)) not in table_sets:
            raise PlanError(
                f"release '{section.name}': weights name '{key}', which is not one of the tables.",
                remedy='Write a table as its axes: "county, sex" = 2.',
            )
    return tuple(stated.get(names, 1.0) for names in table_sets)


def axes_of(key: str) -> list[str]:
    """The axes that a key such as "county, sex" or "total" names."""
    return [] if key.strip() == "total" else [part.strip() for part in key.split(",")]
