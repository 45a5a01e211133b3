"""Several tables of a nation, drawn and estimated part by part: the law and promise of
`measured_tables`, where no process holds more than one part.

Which noise is drawn: a table above the parts has noise given the figures summed over each part; a
table below them is cut into the parts, and each has noise given its own figures. No figure ties two
parts (`refuse_across`), so the product over parts is the law of the whole table given all figures,
and the promise is the joint one of `MeasuredTables` with the same tables and scales.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.area_parts import AreaParts
from congenial.data.arguments import (
    EXACT,
    NAMES,
    TEXT,
    Rule,
    check_fields,
    listed,
    optional,
    takes,
)
from congenial.data.arrays import Ints
from congenial.data.attribute import Attribute
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.workload import Workload
from congenial.errors import FigureError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.limits import table_ranges
from congenial.figures.restricted_figures import (
    above_parts,
    of_part,
    refuse_across,
    refuse_emptier_areas,
    summed_out,
)
from congenial.figures.support import support
from congenial.mechanisms.measured_tables import cannot_be_drawn, described, joint_guarantee
from congenial.mechanisms.parted_release import PartedRelease
from congenial.mechanisms.released import PartFile
from congenial.mechanisms.tables_files import TableFile, estimated_columns, with_ends
from congenial.pairs.pairs import Adjacency
from congenial.privacy.description import Family as AnyFamily
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.conditioned import ConditionedNoise
from congenial.sampling.discrete import cell_law
from congenial.sampling.randomness import KeyedRandomness
from congenial.tables.estimates_by_parts import Below, PartEstimator, Settled, UpperEstimator
from congenial.tables.intervals import COUNTS
from congenial.tables.joint_estimator import JointEstimator
from congenial.tables.measurements import Measurements
from congenial.tables.node_order import groups_of
from congenial.tables.noise_variance import Family
from congenial.tables.structure import separate_along

Names = tuple[str, ...]
FAMILY = Rule(
    "discrete_gaussian or double_geometric",
    lambda one: isinstance(one, str) and one in ("discrete_gaussian", "double_geometric"),
)


@dataclass(frozen=True, eq=False)
class TablesPiece:
    """Tables that are drawn in one place, given figures: one part, or what lies above all parts.

    `tables` are all that have a shape here; `scales` None where another place draws them, or
    nobody. `flat` and `groups` are the nation's. Public parameters only, so it may travel.
    """

    geography: str
    figures: Figures
    tables: tuple[Names, ...]
    scales: tuple[Fraction | None, ...]
    family: Family
    flat: tuple[int, ...]
    groups: Ints = field(repr=False)

    @property
    def schema(self) -> Schema:
        """The schema of this place."""
        return self.figures.schema

    @property
    def drawn(self) -> tuple[int, ...]:
        """The tables that are drawn here."""
        return tuple(at for at, scale in enumerate(self.scales) if scale is not None)

    # ---- drawing -----------------------------------------------------------------------------

    def check(self, counts: Table) -> None:
        """Refuse counts that do not agree with the figures."""
        if self.figures.statements and not self.figures.holds_for(counts):
            raise FigureError(
                "the data do not agree with the published figures.",
                remedy="Use the data from which the figures were computed.",
            )

    def law(self, at: int) -> ConditionedNoise:
        """The law of a table's noise; StructureError, by the table's name, if none can be drawn."""
        scale, names = self.scales[at], self.tables[at]
        assert scale is not None
        try:
            return ConditionedNoise(cell_law(self.family, scale), support(self.figures, names))
        except StructureError as reason:
            raise cannot_be_drawn(names, reason) from None

    def draw(self, counts: Table, keys: Mapping[int, bytes]) -> list[Any]:
        """CONFIDENTIAL counts in, tables with their noise out; None for those of other places.

        `keys`: one for each table that is drawn here.
        """
        values: list[Any] = [None] * len(self.tables)
        for at in self.drawn:
            truth = counts.marginal(self.tables[at]).counts
            noise = self.law(at).draw_many(KeyedRandomness(keys[at]), 1)[0]
            values[at] = np.asarray(truth + noise.reshape(truth.shape))
        return values

    def keeps(self, values: Sequence[Any]) -> bool:
        """Whether tables as drawn keep the figures they were drawn given."""
        pairs = ((support(self.figures, self.tables[at]), values[at]) for at in self.drawn)
        return all(structure.agrees(drawn) for structure, drawn in pairs)

    # ---- estimates ---------------------------------------------------------------------------

    @cached_property
    def work(self) -> Measurements:
        """The tables with precisions."""
        return measurements(self.figures, self.tables, self.scales, self.family)

    @property
    def _tree(self) -> tuple[Measurements, int, tuple[int, ...], Ints]:
        """The tables, the place of the geography among the attributes, and what the nation says."""
        return self.work, self.work.names.index(self.geography), self.flat, self.groups

    @cached_property
    def estimator(self) -> PartEstimator:
        """The estimates of a part."""
        return PartEstimator(*self._tree)

    def above(self, below: Sequence[Below]) -> UpperEstimator:
        """The estimates above the parts."""
        return UpperEstimator(*self._tree, below)

    # ---- files -------------------------------------------------------------------------------

    def file(self, at: int) -> TableFile:
        """The form of a table's file here."""
        return TableFile(self.schema, self.tables, at, True, at in self.drawn)

    def columns(
        self, at: int, settled: Settled, drawn: Any, deviations: Any = None
    ) -> dict[str, Any]:
        """What is printed of a table, but for intervals; `deviations`: if known otherwise."""
        names = self.tables[at]
        deviations = settled.deviations(names) if deviations is None else deviations
        estimates, counts = settled.estimates.table(names), settled.whole.table(names)
        return estimated_columns(estimates, deviations, counts, drawn)

    def with_ends(self, at: int, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The same with the ends of intervals, cut to what the figures allow."""
        return with_ends(columns, table_ranges(self.figures, self.tables[at]))


def measurements(
    figures: Figures,
    tables: Sequence[Names],
    scales: Sequence[Fraction | None],
    family: Family,
) -> Measurements:
    """Tables with the precision of their noise given figures; 0 where nothing is drawn."""
    workload = Workload.of(figures.schema, tables)
    summed = summed_out(figures, workload.axes)
    if any(scale is not None for scale in scales):
        return JointEstimator(workload, family, tuple(scales), summed).measurements
    every = Measurements(workload, (1.0,) * len(tables), summed)  # refuses where all are 0
    return every.over(every.margins, (0.0,) * len(tables))


@dataclass(frozen=True)
class PartedTables:
    """Independent noise on several tables of a nation, given exact figures within its parts.

    Formal guarantee: the joint loss of all measured tables, as one release; it is worked out from
    tables, scales and figures as in `MeasuredTables`, and does not depend on how they are cut.
    """

    adjacency: Adjacency
    description: TablesDescription

    @classmethod
    @takes(
        StructureError,
        adjacency=Adjacency,
        tables=listed(NAMES),
        family=FAMILY,
        scales=listed(optional(EXACT)),
        parts=TEXT,
        design=optional(dict),
    )
    def of(
        cls,
        adjacency: Adjacency,
        tables: Sequence[Names],
        family: AnyFamily,
        scales: Sequence[Fraction | None],
        parts: str,
        design: dict[str, Any] | None = None,
    ) -> PartedTables:
        """Tables with the scale of each one's noise (sigma^2, or eps per cell); None: no draw."""
        if len(tables) != len(scales) or all(scale is None for scale in scales):
            raise StructureError(
                f"{len(scales)} scales for {len(tables)} tables, or none that is drawn.",
                remedy="Give one scale per table, None where nothing is drawn.",
            )
        laws = [
            described(adjacency.figures, tuple(names), family, scale)
            for names, scale in zip(tables, scales, strict=True)
            if scale is not None
        ]
        named = tuple(map(tuple, tables))
        return cls(adjacency, TablesDescription(tuple(laws), named, (), design or {}, parts))

    def __post_init__(self) -> None:
        fields = {"adjacency": Adjacency, "description": TablesDescription}
        check_fields(self, StructureError, **fields)
        self.parts.chain([*self.tables, *(statement.by for statement in self.figures.equalities)])
        refuse_across(self.figures, self.parts)
        self._refuse_tables()

    def _refuse_tables(self) -> None:
        base = self.parts.attribute.name
        below = [self.tables[at] for at in self.below]
        bases = {self.schema.axis(name).base for names in self.tables for name in names}
        whole = [names for names in below if {self.schema.axis(n).base for n in names} == bases]
        finest = [names for names in whole if base in names]
        if not finest or self.scales[self.tables.index(finest[0])] is None:
            raise StructureError(
                f"no measured table shows {base!r} with all of {', '.join(sorted(bases))}.",
                remedy="Name it among the tables: parts are drawn and estimated from it down.",
            )

    def refuse_undrawable(self) -> None:
        """StructureError where figures cross so that no sampler draws a part, or what lies above.

        Figures by one kind of area tie nothing beyond an area: one part then stands for all.
        """
        if self.figures.structure in ("none", "laminar"):
            return
        areas = {self.parts.geographic(statement.by) for statement in self.figures.equalities}
        parts = range(1 if len(areas) == 1 else len(self.parts.labels))
        for piece in (*map(self.part, parts), self.upper):
            for at in piece.drawn:
                piece.law(at)

    # ---- what is public ----------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The nation's schema."""
        return self.adjacency.schema

    @property
    def figures(self) -> Figures:
        """The figures published exactly."""
        return self.description.support

    @property
    def tables(self) -> tuple[Names, ...]:
        """Axes of every printed table."""
        return self.description.tables

    @cached_property
    def parts(self) -> AreaParts:
        """How the geography is cut."""
        return AreaParts(self.schema, self.description.parts)

    @cached_property
    def scales(self) -> tuple[Fraction | None, ...]:
        """The scale of each table's noise; None where nothing is drawn."""
        scale_of = {law.table: law.scale for law in self.description.measured}
        return tuple(scale_of.get(names) for names in self.tables)

    @cached_property
    def below(self) -> tuple[int, ...]:
        """The tables that show areas finer than the parts."""
        return tuple(at for at, names in enumerate(self.tables) if self.parts.is_below(names))

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(self.schema.size(names) for names in self.tables)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is promised, from public parameters alone."""
        return joint_guarantee(self.description, self.adjacency)

    @cached_property
    def _pattern(self) -> Measurements:
        """The same tables and figures over a small geography with two areas in every area.

        Which attributes separate, and which sums are fitted, is a matter of names and conditions.
        """
        by = [statement.by for statement in self.figures.equalities]
        chain = self.parts.chain([*self.tables, *by])
        areas = range(2 ** len(chain))
        coarser = {
            name: tuple(f"{at >> level}" for at in areas)
            for level, name in enumerate(chain)
            if level
        }
        levels = tuple(map(str, areas))
        geography = Attribute(chain[0], "categorical", levels=levels, coarser=coarser)
        schema = Schema(
            tuple(geography if a.name == chain[0] else a for a in self.schema.attributes)
        )
        figures = Figures(schema, self.figures.statements)
        return measurements(figures, self.tables, self.scales, self._family)

    @property
    def _family(self) -> Family:
        family = self.description.family
        assert family in ("discrete_gaussian", "double_geometric")  # as descriptions by parts have
        return family

    @cached_property
    def _decided(self) -> tuple[tuple[int, ...], Ints]:
        """The attributes that separate, and the sums of cells that are fitted beside cells."""
        work = self._pattern
        tree = work.names.index(self.parts.attribute.name)
        return separate_along(work, tree).flat, groups_of(work, tree)

    # ---- places ------------------------------------------------------------------------------

    def part(self, number: int) -> TablesPiece:
        """What is drawn and estimated in one part."""
        figures = of_part(self.figures, self.parts, number)
        refuse_emptier_areas(figures, number, self.parts)
        scales = [scale if at in self.below else None for at, scale in enumerate(self.scales)]
        return self._piece(self.parts.attribute.name, figures, self.tables, scales)

    @cached_property
    def upper(self) -> TablesPiece:
        """What is drawn and estimated above the parts: tables below them are summed to parts."""
        scales: dict[Names, Fraction | None] = {}
        for at, (names, scale) in enumerate(zip(self.tables, self.scales, strict=True)):
            if at in self.below:
                scales.setdefault(self.summed(names))
            else:
                scales[names] = scale
        figures = above_parts(self.figures, self.parts)
        return self._piece(self.parts.parts, figures, tuple(scales), list(scales.values()))

    @property
    def counted(self) -> Names:
        """The attributes over which records are counted, in the order of the schema."""
        bases = {*self.figures.bases}
        bases |= {self.schema.axis(name).base for names in self.tables for name in names}
        return tuple(name for name in self.schema.names if name in bases)

    def summed(self, names: Names) -> Names:
        """A table below the parts, summed to the parts."""
        area = self.parts.geographic(names)
        return tuple(self.parts.parts if name == area else name for name in names)

    # ---- what is released --------------------------------------------------------------------

    def upper_columns(self, settled: Settled, drawn: Sequence[Any]) -> dict[int, dict[str, Any]]:
        """What is printed of every table above the parts, by its place among all tables."""
        places = {at: self.upper.tables.index(self.tables[at]) for at in self._above}
        return {
            at: self.upper.with_ends(place, self.upper.columns(place, settled, drawn[place]))
            for at, place in places.items()
        }

    def released(
        self,
        name: str,
        source: tuple[str, bool],
        upper: Mapping[int, Mapping[str, Any]],
        worst: Mapping[int, float],
        files: Mapping[str, PartFile],
    ) -> PartedRelease:
        """What was drawn; `source`: where the noise came from, and whether it may be published."""
        common = name, self.description, self.guarantee, *source
        return PartedRelease(*common, upper, worst, files)

    def made_up(self, name: str = "rehearsal") -> PartedRelease:
        """A release of the same form about nobody: empty tables above the parts, and no files."""
        empty = {}
        for at in self._above:
            counts = np.zeros(
                [axis.size for axis in self.schema.axes(self.tables[at])], dtype=np.int64
            )
            drawn = None if self.scales[at] is None else counts
            nothing = estimated_columns(0.0 * counts, 0.0 * counts, counts, drawn)
            empty[at] = with_ends(nothing, COUNTS)
        source = KeyedRandomness.label, True
        return self.released(name, source, empty, dict.fromkeys(self.below, 0.0), {})

    @property
    def _above(self) -> list[int]:
        return [at for at in range(len(self.tables)) if at not in self.below]

    def _piece(
        self,
        geography: str,
        figures: Figures,
        tables: Sequence[Names],
        scales: Sequence[Fraction | None],
    ) -> TablesPiece:
        flat, groups = self._decided
        return TablesPiece(
            geography, figures, tuple(tables), tuple(scales), self._family, flat, groups
        )
