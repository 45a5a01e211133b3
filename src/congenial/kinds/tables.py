"""Protected tables, one or several, at once or by parts: [[release]] with `table` or `tables`.

`table = X` is the short form of `tables = [X]`. Where one table is measured, its noise may have any
law (`mechanism`, `mu`, `nonnegative = "condition"`); several are measured with one family of whole
numbers, and how precisely each is measured is worked out from an aim. With `parts` the same tables
are drawn, estimated and written part by part: a nation, of which no process holds more than a part.
With `sum` the tables sum a number of each person, cut to public bounds, instead of counting people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from congenial.data.derive import needed as made_from
from congenial.data.magnitude import Magnitude
from congenial.data.source import POSTGRES_SCHEMES
from congenial.data.table import Table, cell_index
from congenial.data.tabulate import Microdata
from congenial.errors import (
    FigureError,
    GuaranteeError,
    PlanError,
    StructureError,
)
from congenial.figures.figures import Figures
from congenial.inference.feasibility import outlook
from congenial.kinds.kind import (
    Check,
    Document,
    Files,
    Kind,
    Ready,
    Tell,
    refuse_other_rows,
    refuse_other_units,
    tabulate,
)
from congenial.kinds.planned_data import PlannedData
from congenial.kinds.tables_accuracy import (
    finds_pure,
    limits_of,
    needed,
    needed_of_one,
    refuse_beyond,
)
from congenial.kinds.tables_document import examine
from congenial.kinds.tables_section import (
    Tables,
    TablesCheck,
    TablesSection,
    aim_of,
    aim_words,
    all_axes,
    named_tables,
)
from congenial.mechanisms.acceptance_pilot import refuse_hopeless
from congenial.mechanisms.calibrate import AUTO, calibrate
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.measured_tables import MeasuredTables, whose_number
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.parted_tables import PartedTables
from congenial.mechanisms.tables_calibration import TablesProblem
from congenial.mechanisms.tables_release import TablesRelease
from congenial.pairs.pairs import Adjacency
from congenial.pairs.several_rows import SeveralRows
from congenial.tables.design import (
    Design,
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

TOGETHER = 2**26  # common cells up to which all tables are counted at once


SUMS_NOT_INFERRED = "Its tables are sums of a number, and the models are for counts of people."
NOT_INFERRED = "Ask one part of it with --part: docs/how-to/from-a-county-to-a-nation."

ORIGIN = 16  # digits of the digest of how a column is derived


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
        self, plan: PlannedData, section: TablesSection, figures: Figures
    ) -> MeasuredTables | PartedTables:
        """The mechanism of one section over the databases that agree with `figures`."""
        table = section.one_table
        if table is not None and not section.designed and section.sum is None:
            return _one_table(plan, section, table, figures)
        if section.parts is not None:
            _refuse_parts(plan, section, figures)
        adjacency = _pairs_of(plan, section, figures)
        try:
            named = named_tables(plan.schema, section)
            _refuse_own_axis(plan, section, named, figures)
            _refuse_classes(plan, section, named)
            _refuse_cap(section, adjacency)
            asked = TablesProblem(adjacency, named, _measures(plan, section))
            found_design, aim = designed(section, asked), aim_words(section)
            if section.parts is not None:
                return _drawable(section, asked.parted(found_design, aim, section.parts))
            mechanism = asked.mechanism(
                found_design, aim, section.keep, section.nonnegative != "no"
            )
            _refuse_unkept(section, mechanism)
            _refuse_unkept_bounds(section, mechanism, figures)
            return mechanism
        except StructureError as reason:
            what = f"release '{section.name}': {reason.what}"
            raise StructureError(what, remedy=reason.remedy) from None

    def check(self, plan: PlannedData, section: TablesSection, figures: Figures) -> TablesCheck:
        """What it promises and how accurate every table is, from public parameters alone."""
        mechanism = self.build(plan, section, figures)
        return TablesCheck(section, mechanism, self.promise(plan, section, mechanism))

    def check_wish(
        self, plan: PlannedData, section: TablesSection, figures: Figures, wish: Want
    ) -> TablesCheck:
        """The same, and the parameter that gives a sum the accuracy that is asked for."""
        checked = self.check(plan, section, figures)
        mechanism = checked.mechanism
        for name in wish.margin or ():
            plan.schema.axis(name)  # raises when it is unknown
        if isinstance(mechanism, PartedTables):  # of which no sums are asked
            return checked
        if mechanism.only is not None and not section.designed and section.sum is None:
            key = section.parameter

            def with_parameter(value: Fraction) -> Mechanism:
                changed = self.build(plan, section.model_copy(update={key: value}), figures)
                assert isinstance(changed, MeasuredTables)
                assert changed.only is not None
                return changed.only

            wanted, unanswered = needed_of_one(wish, key, with_parameter)
        else:
            wanted, unanswered = needed(section, mechanism, wish)
        return replace(checked, wanted=wanted, unanswered=unanswered)

    def answers(self, checked: TablesCheck) -> bool:
        """Whether the tables show the sum that was asked about."""
        return bool(checked.wanted or checked.unanswered)

    def ready(
        self,
        plan: PlannedData,
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
            released = replace(release, guarantee=guarantee)
            built.lend(released)
            return released

        return Ready(
            lambda randomness: promised(built.release_each(tables, randomness, section.name)),
            lambda: promised(built.made_up(section.name)),
        )

    def run(
        self,
        plan: PlannedData,
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
        return "" if len(release.drawn) > 1 else outlook(release.only.mechanism).why

    # ---- telling people ----------------------------------------------------------------------

    def examine(self, checked: TablesCheck) -> Document:
        """What the tables would promise and how accurate each would be, as plain data."""
        return super().examine(checked) | examine(checked)


KIND = TablesKind()


# ---- one table -----------------------------------------------------------------------------------


def _one_table(
    plan: PlannedData, section: TablesSection, table: tuple[str, ...], figures: Figures
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
    measured = MeasuredTables.of_one(mechanism, section.nonnegative != "no", section.keep)
    _refuse_unkept(section, measured)
    _refuse_unkept_bounds(section, measured, figures)
    return measured


def _pairs_of(plan: PlannedData, section: TablesSection, figures: Figures) -> Adjacency:
    """The pairs of tables of rows, or, for units that own several rows, of tables of units."""
    pairs = plan.adjacency(figures)
    if not section.units:
        return pairs
    if not isinstance(pairs, SeveralRows):
        raise PlanError(
            f"release '{section.name}': units = true is for units with several rows and exact "
            "figures.",
            remedy=(
                "Give data.unit, data.max_rows and a figure with units = true, or leave out units."
            ),
        )
    return pairs.tables_of_units


def _measures(plan: PlannedData, section: TablesSection) -> list[Magnitude | None]:
    """What is measured, with how the summed columns are derived: a ledger must not take two numbers
    of one name for one.
    """
    found: list[Magnitude | None] = []
    for number in section.measures:
        if number is not None:
            names, steps = {number.column}, []
            for derivation in reversed(plan.source.derivations):
                if derivation.name in names:
                    steps.append(repr(derivation))
                    names |= {*derivation.inputs}
            origin = hashlib.sha256("; ".join(steps).encode()).hexdigest() if steps else ""
            found.append(replace(number, origin=origin[:ORIGIN]))
        else:
            found.append(None)
    return found


def _refuse_own_axis(
    plan: PlannedData, section: TablesSection, tables: Tables, figures: Figures
) -> None:
    """Refuse tables and figures by classes of the number that is summed, derived ones included."""
    derivations = plan.source.derivations
    bases_shown = {axis.base for names in tables for axis in plan.schema.axes(names)}
    for column in (number.column for number in section.numbers):
        summed = {column, *made_from([column], derivations)}
        for what, bases in (("table", bases_shown), ("figure", {*figures.bases})):
            for base in sorted(bases):
                if summed & {base, *made_from([base], derivations)}:
                    raise PlanError(
                        f"release '{section.name}': a {what} counts people by '{base}', which is "
                        f"made from '{column}', and that is summed: no price is proved.",
                        remedy=f"Leave out '{base}', or count people by it in another plan.",
                    )


def _refuse_classes(plan: PlannedData, section: TablesSection, tables: Tables) -> None:
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
        if any(
            plan.schema.axis(axis_name).base == axis.base for names in tables for axis_name in names
        ):
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


def _refuse_parts(plan: PlannedData, section: TablesSection, figures: Figures) -> None:
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
    axes_shown = [*made.tables, *(equality.by for equality in made.figures.equalities)]
    if not any(made.parts.parts in names for names in axes_shown):
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
    workload, types, model = asked.workload, asked.types, asked.model
    if section.accuracy is not None:
        assert isinstance(model, Information)  # of one measure
        allowed, figures = limits_of(section, workload, types), asked.adjacency.figures
        kept_by: Law = "geometric" if finds_pure(section) else "gaussian"
        noise_design = design_for_cells(workload, types, model, allowed, figures, kept_by)
        return refuse_beyond(section, noise_design)
    law, promise = law_and_promise(rho=section.rho, epsilon=section.epsilon, delta=section.delta)
    return design(workload, types, model, promise, aim_of(section, workload), law)


# ---- the data ------------------------------------------------------------------------------------


def counted(
    plan: PlannedData, data: Microdata, mechanism: MeasuredTables, progress: Tell
) -> list[Table]:
    """CONFIDENTIAL: every measured table, measure by measure; people have the figures."""
    tables: list[Table] = []
    for measure in mechanism.measures:
        tables += _counted(plan, data, measure, progress, checked=bool(tables))
    return tables


def _counted(
    plan: PlannedData, data: Microdata, mechanism: MeasuredTables, progress: Tell, *, checked: bool
) -> list[Table]:
    """CONFIDENTIAL: the tables of one measure.

    Counts all at once where their common cells are few enough, otherwise table by table.
    """
    schema, figures = plan.schema, mechanism.adjacency.figures.bases
    axes_of_each = [
        schema.axes(each_mechanism.description.table) for each_mechanism in mechanism.mechanisms
    ]
    bases = [{axis.base for axis in axes} for axes in axes_of_each]
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


def in_order(plan: PlannedData, names: set[str]) -> list[str]:
    """Attributes in the order of the schema."""
    return [name for name in plan.schema.names if name in names]
