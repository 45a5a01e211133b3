"""Protected tables, one or several, at once or by parts: [[release]] with `table` or `tables`.

`table = X` is the short form of `tables = [X]`. Where one table is measured, its noise may have any
law (`mechanism`, `mu`, `nonnegative = "condition"`); several are measured with one family of whole
numbers, and how precisely each is measured is worked out from an aim. With `parts` the same tables
are drawn, estimated and written part by part: a nation, of which no process holds more than a part.
With `sum` the tables sum a number of each person, cut to public bounds, instead of counting people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from congenial.data.derive import needed as made_from
from congenial.data.magnitude import Magnitude
from congenial.data.schema import Schema
from congenial.data.source import POSTGRES_SCHEMES
from congenial.data.table import Table, cell_index
from congenial.data.tabulate import Microdata
from congenial.data.workload import Workload
from congenial.errors import (
    FigureError,
    GuaranteeError,
    PlanError,
    SchemaError,
    StructureError,
)
from congenial.figures.figures import Figures
from congenial.kinds.kind import (
    Check,
    Document,
    Files,
    Kind,
    NamedSection,
    Positive,
    Ready,
    Section,
    Setting,
    Tell,
    refuse_other_rows,
    refuse_other_units,
    tabulate,
)
from congenial.mechanisms.calibrate import AUTO, calibrate
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.measured_tables import MeasuredTables, whose_number
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.parted_tables import PartedTables
from congenial.mechanisms.tables_calibration import TablesProblem
from congenial.mechanisms.tables_release import TablesRelease
from congenial.pairs.pairs import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.tables.design import (
    Aim,
    Design,
    Even,
    Keep,
    Largest,
    Weighted,
    design,
    design_for_cells,
)
from congenial.tables.information import Information
from congenial.tables.joint_estimator import NOT_YET, JointEstimator
from congenial.tables.promise import Law, law_and_promise

if TYPE_CHECKING:
    from congenial.kinds.parted_run import NationRun
    from congenial.mechanisms.parted_release import PartedRelease
    from congenial.report.accuracy import Want
    from congenial.sampling.randomness import Randomness

Tables = tuple[tuple[str, ...], ...]
_NOT_WITH_SUM = {
    "parts": ": sums of a number are not counted, estimated or fitted part by part; name tables of "
    "all parts at once",
    "units": ": a unit's rows have a number each; cap bounds what they add up to",
    "accuracy": "; state rho or epsilon",
}
TOGETHER = 2**26  # common cells up to which all tables are counted at once


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
        return (None, *(one.centred if gaussian else one for one in self.numbers))

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
class TablesCheck:
    """What tables would promise and how accurate each would be."""

    section: TablesSection
    mechanism: MeasuredTables | PartedTables
    guarantee: Guarantee
    wanted: tuple[str, Fraction] | None = None  # a parameter, and the value that a wish needs
    unanswered: str = ""  # why a wish about a sum that the tables show has no answer


SUMS_NOT_INFERRED = "Its tables are sums of a number, and the models are for counts of people."
NOT_INFERRED = "Ask one part of it with --part: docs/how-to/from-a-county-to-a-nation."


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

    def summed(self, section: TablesSection) -> Sequence[str]:
        """The columns that `sum` names."""
        return list(dict.fromkeys(number.column for number in section.numbers))

    # ---- from the plan to a draw -------------------------------------------------------------

    def build(
        self, plan: Setting, section: TablesSection, figures: Figures
    ) -> MeasuredTables | PartedTables:
        """The mechanism of one section over the databases that agree with `figures`."""
        one = section.one_table
        if one is not None and not section.designed and section.sum is None:
            return _one_table(plan, section, one, figures)
        if section.parts is not None:
            _refuse_parts(plan, section, figures)
        adjacency = _pairs_of(plan, section, figures)
        try:
            named = named_tables(plan.schema, section)
            _refuse_own_axis(plan, section, named, figures)
            _refuse_classes(plan, section, named)
            _refuse_cap(section, adjacency)
            asked = TablesProblem(adjacency, named, section.measures)
            found, aim = designed(section, asked), aim_words(section)
            if section.parts is not None:
                return _drawable(section, asked.parted(found, aim, section.parts))
            made = asked.mechanism(found, aim, section.keep, section.nonnegative != "no")
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
        figures: Figures,
        wish: Want | None = None,
    ) -> TablesCheck:
        """What it promises and how accurate every table is, from public parameters alone."""
        from congenial.kinds.tables_accuracy import needed, needed_of_one

        made = self.build(plan, section, figures)
        wanted, unanswered = None, ""
        for name in (wish and wish.margin) or ():
            plan.schema.axis(name)  # raises when it is unknown
        if wish is None or isinstance(made, PartedTables):  # of which no sums are asked
            return TablesCheck(section, made, self.promise(plan, section, made))
        if made.only is not None and not section.designed and section.sum is None:
            key = section.parameter

            def with_parameter(value: Fraction) -> Mechanism:
                changed = self.build(plan, section.model_copy(update={key: value}), figures)
                assert isinstance(changed, MeasuredTables)
                assert changed.only is not None
                return changed.only

            wanted, unanswered = needed_of_one(wish, key, with_parameter)
        else:
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
        figures: Figures,  # noqa: ARG002 - they are in what was built
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
            built.lend(made)
            return made

        return Ready(
            lambda randomness: promised(built.release_each(tables, randomness, section.name)),
            lambda: promised(built.made_up(section.name)),
        )

    def run(
        self,
        plan: Setting,
        section: TablesSection,
        built: MeasuredTables | PartedTables,
        randomness: Randomness | None,
        progress: Tell,
    ) -> NationRun | None:
        """How a nation is read, checked and drawn part by part."""
        if isinstance(built, MeasuredTables):
            return None
        from congenial.kinds.parted_run import NationRun

        return NationRun(plan, built, section.name, randomness, progress, section.workers)

    # ---- the bundle --------------------------------------------------------------------------

    def report(self, release: TablesRelease | PartedRelease, promise: str) -> str:
        """The report: every table with count, estimate and interval."""
        from congenial.report.tables_report import render

        return render(release, promise)

    def verify(self, files: Files, release: TablesRelease | PartedRelease) -> list[Check]:
        """Produce everything again from what was drawn, and compare."""
        from congenial.kinds.tables_verification import verify, verify_by_parts

        if isinstance(release, TablesRelease):
            return verify(files, release)
        return verify_by_parts(files, release)

    def part_file(self, files: Files, part: str) -> str:
        """The name of a part's file in the folder of every table."""
        if not files.index["description"].get("parts"):
            return super().part_file(files, part)
        from congenial.kinds.tables_verification import part_file

        return part_file(files, part)

    def verify_part(self, files: Files, release: Any, part: str) -> list[Check]:
        """The same for one part, given what is printed of its top."""
        if isinstance(release, TablesRelease):
            return super().verify_part(files, release, part)
        from congenial.kinds.tables_verification import verify_part

        return verify_part(files, release, part)

    def not_inferred(self, release: Any) -> str:
        """A nation is asked part by part, and models of counts do not fit sums."""
        if isinstance(release, TablesRelease):
            return "" if release.description.magnitude is None else SUMS_NOT_INFERRED
        return NOT_INFERRED

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
    plan: Setting, section: TablesSection, table: tuple[str, ...], figures: Figures
) -> MeasuredTables:
    """One table with the noise that a section asks for."""
    target = section.target(_pairs_of(plan, section, figures))
    mechanism = calibrate(_asked(section), target, table)
    figures = mechanism.adjacency.figures
    if figures.equalities and not mechanism.conditions:
        raise FigureError(
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


def _pairs_of(plan: Setting, section: TablesSection, figures: Figures) -> Adjacency:
    """The pairs of tables of rows, or, for units that own several rows, of tables of units."""
    pairs = plan.adjacency(figures)
    if not section.units:
        return pairs
    from congenial.pairs.several_rows import SeveralRows

    if not isinstance(pairs, SeveralRows):
        raise PlanError(
            f"release '{section.name}': units = true is for units with several rows and exact "
            "figures.",
            remedy=(
                "Give data.unit, data.max_rows and a figure with units = true, or leave out units."
            ),
        )
    return pairs.tables_of_units


def _refuse_own_axis(
    plan: Setting, section: TablesSection, tables: Tables, figures: Figures
) -> None:
    """Refuse tables and figures by classes of the number that is summed, derived ones included."""
    derivations = plan.source.derivations
    shown = {axis.base for names in tables for axis in plan.schema.axes(names)}
    for column in (number.column for number in section.numbers):
        summed = {column, *made_from([column], derivations)}
        for what, bases in (("table", shown), ("figure", {*figures.bases})):
            for base in sorted(bases):
                if summed & {base, *made_from([base], derivations)}:
                    raise PlanError(
                        f"release '{section.name}': a {what} counts people by '{base}', which is "
                        f"made from '{column}', and that is summed: no price is proved.",
                        remedy=f"Leave out '{base}', or count people by it in another plan.",
                    )


def _refuse_classes(plan: Setting, section: TablesSection, tables: Tables) -> None:
    """Bounds by class are those of all levels of an attribute that no table of the release shows:
    sums of each class are tables of their own.
    """
    if section.between_by is None:
        return
    for name, bounds in section.between_by.items():
        axis, release = plan.schema.axis(name), f"release '{section.name}'"
        missing = [level for level in axis.levels if level not in bounds]
        unknown = [level for level in bounds if level not in axis.levels]
        if missing or unknown:
            wrong = f"no bounds for {missing[0]!r}" if missing else f"no category {unknown[0]!r}"
            raise PlanError(
                f"{release}: between_by has {wrong} of '{name}'.",
                remedy=f"Give bounds for each of {', '.join(map(repr, axis.levels))}.",
            )
        if any(plan.schema.axis(one).base == axis.base for names in tables for one in names):
            raise PlanError(
                f"{release}: a table shows '{name}', and the bounds are by it.",
                remedy=f"Leave '{name}' out of the tables: each of its classes has tables of its "
                "own.",
            )


def _refuse_cap(section: TablesSection, adjacency: Adjacency) -> None:
    """A cap is for all rows of a unit: refused where every unit has one."""
    if any(number.cap for number in section.numbers) and whose_number(adjacency) == "person":
        raise PlanError(
            f"release '{section.name}': cap limits what the rows of one unit add up to, and here "
            "every person has one row.",
            remedy="Leave out cap: between is the bound. Or state data.unit and data.max_rows.",
        )


def _refuse_unkept(section: TablesSection, made: MeasuredTables) -> None:
    """Refuse partitions to keep that cut the cells of the tables, or that no counts follow."""
    for axis in section.keep:
        if isinstance(made.estimator, JointEstimator):
            made.estimator.measurements.margin([axis])
        elif made.only is not None:
            cell_index(made.adjacency.schema, made.only.description.table, (axis,))
    if not section.keep or made.estimator.why_no_counts == NOT_YET:
        return
    if not made.estimator.follows_keep:
        raise PlanError(
            f"release '{section.name}': keep = {section.keep} names sums that the whole counts "
            "should match, but no counts are fitted here.",
            remedy="Leave out keep.",
        )


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


def _refuse_unkept_bounds(section: TablesSection, made: MeasuredTables, figures: Figures) -> None:
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


# ---- by parts ------------------------------------------------------------------------------------


def _refuse_parts(plan: Setting, section: TablesSection, figures: Figures) -> None:
    """Refuse bounds, which tables by parts do not keep, and PostgreSQL: parts are counted into
    files beside the bundle, which its server does not write.
    """
    if str(plan.source.address).startswith(POSTGRES_SCHEMES):
        raise PlanError(
            f"release '{section.name}': parts are not counted by PostgreSQL.",
            remedy="Export the records to Parquet files, or leave out parts.",
        )
    if figures.bounds:
        raise PlanError(
            f"release '{section.name}': '{figures.bounds[0].label}' bounds a statistic, and "
            "tables by parts keep no bounds.",
            remedy="Leave out parts: several tables in memory keep bounds.",
        )


def _drawable(section: TablesSection, made: PartedTables) -> PartedTables:
    """Refuse parts that no table or figure shows, since whole counts are settled there first, and
    figures that no sampler draws given.
    """
    shown = [*made.tables, *(one.by for one in made.figures.equalities)]
    if not any(made.parts.parts in names for names in shown):
        raise PlanError(
            f"release '{section.name}': parts = '{section.parts}', which no table and no figure "
            "shows.",
            remedy=f"Add a table over {section.parts}, such as "
            f"{list(made.summed(made.tables[made.below[0]]))}.",
        )
    made.refuse_undrawable()
    return made


# ---- several tables --------------------------------------------------------------------------


def designed(section: TablesSection, asked: TablesProblem) -> Design:
    """How precisely each table is measured."""
    from congenial.kinds.tables_accuracy import finds_pure, limits_of, refuse_beyond

    workload, types, model = asked.workload, asked.types, asked.model
    if section.accuracy is not None:
        assert isinstance(model, Information)  # of one measure
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
    """CONFIDENTIAL: every measured table, measure by measure; people have the figures."""
    found: list[Table] = []
    for measure in mechanism.measures:
        found += _counted(plan, data, measure, progress, checked=bool(found))
    return found


def _counted(
    plan: Setting, data: Microdata, mechanism: MeasuredTables, progress: Tell, *, checked: bool
) -> list[Table]:
    """CONFIDENTIAL: the tables of one measure.

    Counts all at once where their common cells are few enough, otherwise table by table.
    """
    schema, figures = plan.schema, mechanism.adjacency.figures.bases
    shown = [schema.axes(one.description.table) for one in mechanism.mechanisms]
    bases = [{axis.base for axis in axes} for axes in shown]
    everything = in_order(plan, {*figures}.union(*bases))
    refuse_other_units(mechanism.adjacency.everything, data)

    number = mechanism.description.magnitude
    if number is not None:
        if not checked:
            mechanism.check(tabulate(data, in_order(plan, {*figures}), progress))
        return [data.tabulate_sums(in_order(plan, names), number) for names in bases]

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
