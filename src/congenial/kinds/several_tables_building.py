"""From a section with `tables` to which tables are measured, and how precisely."""

from __future__ import annotations

from collections.abc import Sequence

from congenial.data.schema import Schema
from congenial.data.workload import Workload
from congenial.errors import PlanError, SchemaError, StructureError
from congenial.figures.invariants import Invariants
from congenial.kinds.counted_pairs import pairs_of
from congenial.kinds.kind import Setting
from congenial.kinds.several_tables import TablesSection
from congenial.kinds.several_tables_accuracy import finds_pure, limits_of, refuse_beyond
from congenial.mechanisms.joint_tables import JointTables
from congenial.mechanisms.tables_calibration import TablesProblem
from congenial.tables.design import Aim, Design, Even, Keep, Largest, Weighted, design
from congenial.tables.design_for_cells import design_for_cells
from congenial.tables.joint_estimator import NOT_YET
from congenial.tables.promise import Law, law_and_promise
from congenial.tables.whole_general import LARGEST

Tables = tuple[tuple[str, ...], ...]


def build(plan: Setting, section: TablesSection, figures: Invariants) -> JointTables:
    """The mechanism of one section over the databases that agree with `figures`."""
    tables = named_tables(plan.schema, section)
    adjacency = pairs_of(plan, section, figures)
    try:
        asked = TablesProblem(adjacency, tables)
        made = asked.mechanism(designed(section, asked), aim_words(section), section.keep)
        for axis in section.keep:
            made.estimator.measurements.margin([axis])  # refuses what cuts the cells
        _refuse_unkept_bounds(section, made, figures)
        return made
    except StructureError as reason:
        what = f"release '{section.name}': {reason.what}"
        raise StructureError(what, remedy=reason.remedy) from None


def designed(section: TablesSection, asked: TablesProblem) -> Design:
    """How precisely each table is measured."""
    workload, types, model = asked.workload, asked.types, asked.model
    if section.accuracy is not None:
        limits, figures = limits_of(section, workload, types), asked.adjacency.figures
        kept_by: Law = "geometric" if finds_pure(section) else "gaussian"
        found = design_for_cells(workload, types, model, limits, figures, kept_by)
        return refuse_beyond(section, found)
    law, promise = law_and_promise(rho=section.rho, epsilon=section.epsilon, delta=section.delta)
    return design(workload, types, model, promise, _aim(section, workload), law)


def _refuse_unkept_bounds(section: TablesSection, made: JointTables, figures: Invariants) -> None:
    """Only whole counts keep public bounds: without them, what is printed could contradict one."""
    if not figures.bounds:
        return
    why = made.estimator.why_no_counts
    if why and why != NOT_YET:
        raise PlanError(
            f"release '{section.name}': '{figures.bounds[0].label}' bounds a statistic, and only "
            f"whole counts keep bounds: {why}.",
            remedy=f"Name tables of at most {LARGEST:,} cells together, leave the bound out, or "
            "release one table with nonnegative = 'project', which keeps it.",
        )


# ---- which tables ------------------------------------------------------------------------------


def named_tables(schema: Schema, section: TablesSection) -> Tables:
    """The axes of every table of a section."""
    if section.tables == "auto":
        assert section.table is not None
        return automatic(schema, section.table)
    return tuple(tuple(names) for names in section.tables)


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
    found: list[tuple[str, ...]] = [names]
    areas = [] if place is None else _areas(schema, place.name)
    for area in areas:
        found += [(area, *rest), *((area, one) for one in rest), (area,)]
    found += [(*rest,), *((one,) for one in rest)]
    found += [(one,) for name in rest for one in _coarser(schema, name)]
    distinct = {frozenset(one): one for one in reversed(found) if one}
    return tuple(one for one in dict.fromkeys(found) if one and distinct[frozenset(one)] == one)


def _areas(schema: Schema, name: str) -> list[str]:
    """An axis and the coarser names that are sums of it, finest first."""
    return [name, *_coarser(schema, name)]


def _coarser(schema: Schema, name: str) -> list[str]:
    axis = schema.axis(name)
    found = []
    for other in schema.attribute(axis.base).coarser:
        try:
            schema.axis(other).map_from(axis)
        except SchemaError:
            continue
        if other != name:
            found.append(other)
    return sorted(found, key=lambda one: -schema.axis(one).size)


# ---- what is made small ------------------------------------------------------------------------


def _aim(section: TablesSection, workload: Workload) -> Aim:
    if section.weights is not None:
        return Weighted(_weights(section, workload))
    aims: dict[str, Aim] = {"even": Even(), "largest": Largest(), "keep": Keep()}
    return aims[section.aim or "keep"]


def aim_words(section: TablesSection) -> str:
    """How error was shared, in words."""
    if section.accuracy is not None:
        return "accuracy: " + "; ".join(section.accuracy)
    if section.weights is not None:
        told = ", ".join(f"{name} = {float(value):g}" for name, value in section.weights.items())
        return f"weights: {told}"
    return section.aim or "keep"


def _weights(section: TablesSection, workload: Workload) -> tuple[float, ...]:
    """One weight per table, named by its axes ("county, sex"); 1 if it is not named."""
    assert section.weights is not None
    given = {frozenset(axes_of(key)): float(value) for key, value in section.weights.items()}
    known = [frozenset(names) for names in workload.tables]
    for key in section.weights:
        if frozenset(axes_of(key)) not in known:
            raise PlanError(
                f"release '{section.name}': weights name '{key}', which is none of the tables.",
                remedy='Write a table as its axes: "county, sex" = 2.',
            )
    return tuple(given.get(names, 1.0) for names in known)


def axes_of(key: str) -> list[str]:
    """The axes that a key such as "county, sex" or "total" names."""
    return [] if key.strip() == "total" else [part.strip() for part in key.split(",")]
