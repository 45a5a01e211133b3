"""Protected tables, one or several: [[release]] with `table` or `tables`.

`table = X` is the short form of `tables = [X]`. Where one table is measured, its noise may have any
law (`mechanism`, `mu`, `nonnegative = "condition"`); several are measured with one family of whole
numbers, and how precisely each is measured is worked out from an aim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from congenial.data.schema import Schema
from congenial.data.table import Table, cell_index
from congenial.data.tabulate import Microdata
from congenial.data.workload import Workload
from congenial.errors import (
    GuaranteeError,
    MandateError,
    PlanError,
    SchemaError,
    StructureError,
)
from congenial.figures.invariants import Invariants
from congenial.figures.limits import limits
from congenial.figures.support import support
from congenial.kinds.counted_pairs import pairs_of
from congenial.kinds.kind import (
    Check,
    Document,
    Files,
    Kind,
    NamedSection,
    Positive,
    Ready,
    Setting,
    Tell,
    looked_into,
    refuse_other_rows,
    refuse_other_units,
    tabulate,
)
from congenial.mechanisms.calibrate import AUTO, calibrate
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.one_table import OneTable
from congenial.mechanisms.record_release import FOLLOWS
from congenial.mechanisms.released import Released
from congenial.mechanisms.tables_calibration import TablesProblem
from congenial.mechanisms.tables_release import TablesEstimator, TablesRelease, by_table
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.tables.design import Aim, Design, Even, Keep, Largest, Weighted, design
from congenial.tables.design_for_cells import design_for_cells
from congenial.tables.joint_estimator import NOT_YET, Answer, JointEstimator
from congenial.tables.promise import Law, law_and_promise

if TYPE_CHECKING:
    from congenial.report.accuracy import Want
    from congenial.tables.design_document import DesignChecks

Tables = tuple[tuple[str, ...], ...]
TOGETHER = 2**26  # common cells up to which all tables are counted at once
RESIDUAL = 1e-6  # of a standard deviation, by which recomputed estimates may differ
AIM = "the stated priority and accuracy of the design are right"
FITTED = "estimates follow from the drawn tables"


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
    def _for_one_table(self) -> TablesSection:
        if self.nonnegative == "condition" and (self.epsilon is None or self.delta is not None):
            raise ValueError(
                "nonnegative = 'condition' needs epsilon without delta, for which its cost is "
                "proved; use 'project', which is free"
            )
        given = self.law_asked
        if given and self.one_table is None:
            raise ValueError(f"{given[0]} is for one table; leave it out with several tables")
        if given and self.designed:
            raise ValueError(f"{given[0]} cannot be used with aim, weights or accuracy")
        return self

    @property
    def law_asked(self) -> list[str]:
        """Keys that ask for a law which only one table can have."""
        asked = {"mechanism": self.mechanism != AUTO, "mu": self.mu, "basis": self.basis}
        asked["nonnegative = 'condition'"] = self.nonnegative == "condition"
        return [key for key, value in asked.items() if value]

    @property
    def one_table(self) -> tuple[str, ...] | None:
        """The only table; None where there are several."""
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
class TablesCheck:
    """What tables would promise and how accurate each would be."""

    section: TablesSection
    mechanism: MeasuredTables
    guarantee: Guarantee
    wanted: tuple[str, Fraction] | None = None  # a parameter, and the value that a wish needs
    unanswered: str = ""  # why a wish about a sum that the tables show has no answer


class TablesKind(Kind[TablesSection]):
    """Tables measured under one promise, estimated together, printed as whole counts."""

    key = "tables"
    name = "tables"
    section = TablesSection
    words = "check_tables.txt"
    instead: ClassVar[str] = ""

    @property
    def release_class(self) -> type[TablesRelease]:
        """`TablesRelease`."""
        return TablesRelease

    def shown(self, section: TablesSection) -> Sequence[str]:
        """The axes of all tables."""
        return all_axes(section)

    # ---- from the plan to a draw -------------------------------------------------------------

    def build(self, plan: Setting, section: TablesSection, figures: Invariants) -> MeasuredTables:
        """The mechanism of one section over the databases that agree with `figures`."""
        one = section.one_table
        if one is not None and not section.designed:
            return _one_table(plan, section, one, figures)
        tables = named_tables(plan.schema, section)
        adjacency = pairs_of(plan, section, figures)
        try:
            asked = TablesProblem(adjacency, tables)
            found, whole = designed(section, asked), section.nonnegative != "no"
            made = asked.mechanism(found, aim_words(section), section.keep, whole)
            _refuse_unkept(section, made)
            _refuse_unkept_bounds(section, made, figures)
            return made
        except StructureError as reason:
            what = f"release '{section.name}': {reason.what}"
            raise StructureError(what, remedy=reason.remedy) from None

    def check(
        self,
        plan: Setting,
        section: TablesSection,
        figures: Invariants,
        wish: Want | None = None,
    ) -> TablesCheck:
        """What it promises and how accurate every table is, from public parameters alone."""
        from congenial.kinds.tables_accuracy import needed, needed_of_one

        made = self.build(plan, section, figures)
        wanted, unanswered = None, ""
        for name in (wish and wish.margin) or ():
            plan.schema.axis(name)  # raises when it is unknown
        if wish is not None and made.only is not None and not section.designed:
            key = section.parameter

            def with_parameter(value: Fraction) -> Mechanism:
                changed = section.model_copy(update={key: value})
                only = self.build(plan, changed, figures).only
                assert only is not None
                return only

            wanted, unanswered = needed_of_one(wish, key, with_parameter)
        elif wish is not None:
            wanted, unanswered = needed(section, made, wish)
        return TablesCheck(section, made, self.promise(plan, section, made), wanted, unanswered)

    def answers(self, checked: TablesCheck) -> bool:
        """Whether the tables show the sum that was asked about."""
        return bool(checked.wanted or checked.unanswered)

    def ready(
        self,
        plan: Setting,
        section: TablesSection,
        built: MeasuredTables,
        figures: Invariants,  # noqa: ARG002 - they are in what was built
        data: Microdata,
        progress: Tell,
    ) -> Ready:
        """Count and check every measured table; what is left is to draw."""
        if section.nonnegative == "project" and built.estimator.why_no_counts:
            raise StructureError(
                f"release '{section.name}': {built.estimator.why_no_counts}.",
                remedy="Use nonnegative = 'no', which prints the drawn values.",
            )
        guarantee = self.promise(plan, section, built)
        tables = counted(plan, data, built, progress)

        def promised(release: TablesRelease) -> TablesRelease:
            made = replace(release, guarantee=guarantee)
            vars(made)["estimator"] = built.estimator  # as the cached property would keep it
            return made

        return Ready(
            lambda randomness: promised(built.release_each(tables, randomness, section.name)),
            lambda: promised(built.made_up(section.name)),
        )

    # ---- the bundle --------------------------------------------------------------------------

    def report(self, release: TablesRelease, promise: str) -> str:
        """The report: every table with count, estimate and interval."""
        from congenial.report.tables_report import render

        return render(release, promise)

    def verify(self, files: Files, release: TablesRelease) -> list[Check]:
        """Produce everything again from what was drawn, and compare."""
        return verify(files, release)

    def why_slow(self, release: TablesRelease) -> str:
        """What makes chains slow for the law of one table."""
        from congenial.inference.feasibility import outlook

        return "" if len(release.drawn) > 1 else outlook(release.only.mechanism).why

    # ---- telling people ----------------------------------------------------------------------

    def examine(self, checked: TablesCheck) -> Document:
        """What the tables would promise and how accurate each would be, as plain data."""
        from congenial.kinds.tables_document import examine

        return super().examine(checked) | examine(checked)


KIND = TablesKind()


# ---- one table -----------------------------------------------------------------------------------


def _one_table(
    plan: Setting, section: TablesSection, table: tuple[str, ...], figures: Invariants
) -> MeasuredTables:
    """One table with the noise that a section asks for."""
    target = section.target(pairs_of(plan, section, figures))
    mechanism = calibrate(_asked(section), target, table)
    figures = mechanism.adjacency.figures
    if figures.equalities and not mechanism.conditions:
        raise MandateError(
            f"mechanism = '{section.mechanism}' does not keep the exact figures.",
            remedy="Use mechanism = 'auto'.",
        )
    if isinstance(mechanism, CongenialCounts):
        from congenial.mechanisms.acceptance_pilot import refuse_hopeless

        refuse_hopeless(mechanism)
    if section.nonnegative == "project" and mechanism.description.continuous:
        raise PlanError(
            f"release '{section.name}': nonnegative = 'project' is for whole counts, "
            f"and '{mechanism.name}' draws real numbers.",
            remedy="Use nonnegative = 'no', or mechanism = 'auto'.",
        )
    if section.basis is not None and mechanism.guarantee.basis != section.basis:
        raise GuaranteeError(
            f"release '{section.name}' asks for basis = '{section.basis}'; "
            f"'{mechanism.name}' offers '{mechanism.guarantee.basis}'."
        )
    made = MeasuredTables.of_one(mechanism, section.nonnegative != "no", section.keep)
    _refuse_unkept(section, made)
    _refuse_unkept_bounds(section, made, figures)
    return made


def _refuse_unkept(section: TablesSection, made: MeasuredTables) -> None:
    """Refuse partitions to keep that cut the cells of the tables, or that no counts follow."""
    for axis in section.keep:
        if isinstance(made.estimator, JointEstimator):
            made.estimator.measurements.margin([axis])
        elif made.only is not None:
            cell_index(made.adjacency.schema, made.only.description.table, (axis,))
    if not section.keep or made.estimator.why_no_counts == NOT_YET:
        return
    if not _follows_keep(made.estimator):
        raise PlanError(
            f"release '{section.name}': keep = {section.keep} names sums that the whole counts "
            "should match, but no counts are fitted here.",
            remedy="Leave out keep.",
        )


def _follows_keep(estimator: TablesEstimator) -> bool:
    """Whether whole counts follow the partitions that `keep` names."""
    if not estimator.keep or not isinstance(estimator, OneTable):
        return not estimator.keep or estimator.has_counts
    fitted = estimator.has_counts and not estimator.mechanism.nonnegative
    return fitted and estimator.order is not None


def _asked(section: TablesSection) -> str:
    """The mechanism a section asks for: conditioning on signs is a law of its own."""
    if section.nonnegative != "condition":
        return section.mechanism
    if section.mechanism not in (AUTO, CongenialCounts.name):
        raise PlanError(
            f"release '{section.name}': nonnegative = 'condition' cannot be used with mechanism = "
            f"'{section.mechanism}'.",
            remedy="Use mechanism = 'auto', or nonnegative = 'project'.",
        )
    return CongenialCounts.name


def _refuse_unkept_bounds(
    section: TablesSection, made: MeasuredTables, figures: Invariants
) -> None:
    """Only whole counts keep public bounds: without them, what is printed could contradict one."""
    if not figures.bounds:
        return
    why = "nonnegative = 'no' prints none"
    if section.nonnegative != "no":
        why = made.estimator.why_no_counts
    if why and why != NOT_YET:
        raise PlanError(
            f"release '{section.name}': '{figures.bounds[0].label}' is a bound, and only whole "
            f"counts keep bounds: {why}.",
            remedy=(
                "Use nonnegative = 'project', name fewer or smaller tables, or leave out the bound."
            ),
        )


# ---- several tables --------------------------------------------------------------------------


def designed(section: TablesSection, asked: TablesProblem) -> Design:
    """How precisely each table is measured."""
    from congenial.kinds.tables_accuracy import finds_pure, limits_of, refuse_beyond

    workload, types, model = asked.workload, asked.types, asked.model
    if section.accuracy is not None:
        allowed, figures = limits_of(section, workload, types), asked.adjacency.figures
        kept_by: Law = "geometric" if finds_pure(section) else "gaussian"
        found = design_for_cells(workload, types, model, allowed, figures, kept_by)
        return refuse_beyond(section, found)
    law, promise = law_and_promise(rho=section.rho, epsilon=section.epsilon, delta=section.delta)
    return design(workload, types, model, promise, _aim(section, workload), law)


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
                f"release '{section.name}': weights name '{key}', which is not one of the tables.",
                remedy='Write a table as its axes: "county, sex" = 2.',
            )
    return tuple(given.get(names, 1.0) for names in known)


def axes_of(key: str) -> list[str]:
    """The axes that a key such as "county, sex" or "total" names."""
    return [] if key.strip() == "total" else [part.strip() for part in key.split(",")]


# ---- the data ------------------------------------------------------------------------------------


def counted(
    plan: Setting, data: Microdata, mechanism: MeasuredTables, progress: Tell
) -> list[Table]:
    """CONFIDENTIAL: the counts of every measured table, checked against the figures.

    All at once where their common cells are few enough, otherwise table by table.
    """
    schema, figures = plan.schema, mechanism.adjacency.figures.bases
    shown = [schema.axes(one.description.table) for one in mechanism.mechanisms]
    bases = [{axis.base for axis in axes} for axes in shown]
    everything = in_order(plan, {*figures}.union(*bases))
    refuse_other_units(mechanism.adjacency.everything, data)

    def count(names: set[str]) -> Table:
        if mechanism.adjacency.counts_units:
            return data.tabulate_units(in_order(plan, names))
        return tabulate(data, in_order(plan, names), progress)

    if mechanism.adjacency.counts_units:
        refuse_other_rows(mechanism.adjacency.everything, data, progress)
    if schema.size(everything) <= TOGETHER:
        table = count({*everything})
        mechanism.check(table)
        return [table] * len(bases)
    mechanism.check(count({*figures}))
    return [count(names) for names in bases]


def in_order(plan: Setting, names: set[str]) -> list[str]:
    """Attributes in the order of the schema."""
    return [name for name in plan.schema.names if name in names]


# ---- verify --------------------------------------------------------------------------------------


def verify(files: Files, release: TablesRelease) -> list[Check]:
    """What tables must satisfy: everything is produced again from what was drawn, and compared."""
    adjacency = release.guarantee.adjacency
    assert isinstance(adjacency, Adjacency)
    made = MeasuredTables(adjacency, release.description)
    vars(release)["estimator"] = made.estimator  # public, and slow to make ready twice
    drawn = by_table(release.description, release.drawn)
    again = cache(lambda: made.estimator.answer(drawn))
    looks: dict[str, Callable[[], Any]] = {
        "every table can be read as written": lambda: all(
            files.same(name, content) for name, content in release.payload().items()
        ),
        FOLLOWS: lambda: _follows(made, release),
        **_design_looks(release, adjacency),
        "drawn tables agree with the exact figures": lambda: _drawn_given(made, release),
        "drawn values lie on the grid of the noise": lambda: _on_grid(release),
        FITTED: lambda: _close(release, release.estimates, again().estimates),
        "printed counts follow from the drawn tables": lambda: (
            (_same_counts(release, again()) or made.estimator.as_near(drawn, release.counts))
            and _follows_keep(made.estimator)
        ),
        "printed counts keep every published bound": lambda: _bounded(release),
    }
    if release.has_errors:
        looks["standard deviations follow from the noise"] = lambda: _deviations(made, release)
    checks = looked_into(looks, files)
    detail = f"within {RESIDUAL:g} standard deviations, by "
    return [
        replace(one, detail=detail + again().fitted.method)
        if one.what == FITTED and release.description.only_law is None
        else one
        for one in checks
    ]


def _follows(made: MeasuredTables, release: TablesRelease) -> bool:
    """The promise is that of the laws, which state what their samplers cost."""
    stated = all(one.priced == one.description for one in made.mechanisms)
    return stated and release.guarantee.follows_from(made.guarantee)


def _design_looks(release: TablesRelease, adjacency: Adjacency) -> dict[str, Callable[[], Any]]:
    """How the noise was shared out, worked out anew; one table whose noise just meets its promise
    has no design.
    """
    if release.description.only_law is not None and not release.description.design:
        return {}
    from congenial.kinds.stated_aims import aim_holds

    found = cache(lambda: design_checks(release, adjacency))
    return {
        "the noise keeps the promise of the design": lambda: found().feasible,
        "the design fits the exact figures": lambda: found().types,
        "the design is as close to the best as stated": lambda: found().gap,
        AIM: lambda: aim_holds(
            str(release.description.design.get("aim")),
            release.tables,
            [float(one.max(initial=0.0)) for one in release.deviations],
        ),
    }


def design_checks(release: Released, adjacency: Adjacency) -> DesignChecks:
    """The design of a release of tables, worked out anew."""
    from congenial.tables.design_document import recheck

    told = release.description
    assert isinstance(told, TablesDescription)
    workload = Workload.of(release.schema, told.tables)
    scales = {one.table: one.scale for one in told.measured}
    gaussian = told.family == "discrete_gaussian"
    parameters = [
        Fraction(0) if names not in scales else 1 / scales[names] if gaussian else scales[names]
        for names in told.tables
    ]
    return recheck(told.design, workload, adjacency, parameters)


def _drawn_given(made: MeasuredTables, release: TablesRelease) -> bool:
    """Known sums are as published, and cells known to be empty are.

    Noise that does not keep the figures does not claim to; noise that does says what they are.
    """
    for one, values in zip(made.mechanisms, release.drawn, strict=True):
        known = support(one.description.support, one.description.table)
        if known.groups and known.totals is None:
            return False
        if not known.agrees(values):
            return False
    return True


def _on_grid(release: TablesRelease) -> bool:
    """Whole numbers, or multiples of the step that real values are rounded to."""
    pairs = zip(release.description.measured, release.drawn, strict=True)
    return all(not np.mod(values, one.grid or 1).any() for one, values in pairs)


def _bounded(release: TablesRelease) -> bool:
    """Counts are not negative, and bounds that a table can show hold."""
    return all(
        counts is None
        or (
            counts.min(initial=0) >= 0
            and bool(limits(release.published, names).hold(counts.reshape(-1)))
        )
        for names, counts in zip(release.tables, release.counts, strict=True)
    )


def _close(release: TablesRelease, told: Any, again: Any) -> bool:
    if release.description.only_law is not None and not isinstance(again[0].flat[0], np.floating):
        return all(np.array_equal(a, b) for a, b in zip(told, again, strict=True))
    return all(
        bool(np.all(np.abs(a - b) <= RESIDUAL * sd + 1e-9 * (1 + np.abs(b))))
        for a, b, sd in zip(told, again, release.deviations, strict=True)
    )


def _deviations(made: MeasuredTables, release: TablesRelease) -> bool:
    return all(
        bool(np.allclose(made.estimator.deviations(names).values, told, rtol=RESIDUAL, atol=1e-9))
        for names, told in zip(release.tables, release.deviations, strict=True)
    )


def _same_counts(release: TablesRelease, again: Answer) -> bool:
    return all(
        a is None if b is None else a is not None and bool(np.array_equal(a, b))
        for a, b in zip(release.counts, again.counts, strict=True)
    )
