"""Several tables of a nation, drawn and estimated part by part: the law and promise of
`joint_tables`, where no process holds more than one part.

Which noise is drawn: a table above the parts has noise given the figures summed over each part; a
table below them is cut into the parts, and each has noise given its own figures. No figure ties two
parts (`refuse_across`), so the product over parts is the law of the whole table given all figures,
and the promise is the joint one of `MeasuredTables` with the same tables and scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.area_parts import AreaParts
from congenial.data.argument_rules import (
    EXACT,
    NAMES,
    TEXT,
    Rule,
    check_fields,
    listed,
    optional,
    takes,
)
from congenial.data.attribute import Attribute
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.workload import Ints, Workload
from congenial.errors import MandateError, StructureError
from congenial.figures.figures_by_part import (
    above_parts,
    of_part,
    refuse_across,
    refuse_emptier_areas,
)
from congenial.figures.invariants import Invariants
from congenial.figures.summed_out import summed_out
from congenial.figures.support import support
from congenial.mechanisms.measured_tables import CITATION, described
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.composition import joint_loss
from congenial.privacy.description import Family
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.conditioned_noise import ConditionedNoise
from congenial.sampling.discrete import cell_law
from congenial.sampling.randomness import Randomness
from congenial.tables.measurements import Measurements
from congenial.tables.node_order import groups_of
from congenial.tables.noise_variance import noise_variance
from congenial.tables.part_estimator import Below, PartEstimator
from congenial.tables.structure import separate_along
from congenial.tables.upper_estimator import UpperEstimator

Names = tuple[str, ...]
FAMILY = Rule(
    "discrete_gaussian or double_geometric",
    lambda one: isinstance(one, str) and one in ("discrete_gaussian", "double_geometric"),
)


@dataclass(frozen=True, eq=False)
class Share:
    """Tables that are drawn in one place, given figures: one part, or what lies above all parts.

    `tables` are all that have a shape here; `scales` None where another place draws them, or
    nobody. `flat` and `groups` are the nation's. Public parameters only, so it may travel.
    """

    geography: str
    figures: Invariants
    tables: tuple[Names, ...]
    scales: tuple[Fraction | None, ...]
    family: Family
    flat: tuple[int, ...]
    groups: Ints = field(repr=False)

    @property
    def schema(self) -> Schema:
        """The schema of this place."""
        return self.figures.schema

    @cached_property
    def tree(self) -> int:
        """The place of the geography among the attributes of the cells."""
        return self.work.names.index(self.geography)

    @cached_property
    def work(self) -> Measurements:
        """The tables with precisions."""
        return measurements(self.figures, self.tables, self.scales, self.family)

    def law(self, at: int) -> ConditionedNoise:
        """The law of a table's noise; StructureError, by the table's name, if none can be drawn."""
        scale, names = self.scales[at], self.tables[at]
        assert scale is not None
        try:
            return ConditionedNoise(cell_law(self.family, scale), support(self.figures, names))
        except StructureError as reason:
            raise StructureError(
                f"the table over {', '.join(names)} cannot be drawn: {reason.what}",
                remedy=reason.remedy,
            ) from None

    def draw(self, at: int, truth: Any, randomness: Randomness) -> Ints:
        """CONFIDENTIAL truth in, one table with its noise out."""
        drawn = self.law(at).draw_many(randomness, 1)[0]
        return np.asarray(truth + drawn.reshape(np.shape(truth)))

    def check(self, counts: Table) -> None:
        """Refuse counts that do not agree with the figures."""
        if self.figures.statements and not self.figures.holds_for(counts):
            raise MandateError(
                "the data do not agree with the published figures.",
                remedy="Release from the data the figures were computed from.",
            )

    @property
    def drawn(self) -> tuple[int, ...]:
        """The tables that are drawn here."""
        return tuple(at for at, scale in enumerate(self.scales) if scale is not None)

    @cached_property
    def part(self) -> PartEstimator:
        """The estimates of a part."""
        return PartEstimator(self.work, self.tree, self.flat, self.groups)

    def above(self, below: Sequence[Below]) -> UpperEstimator:
        """The estimates above the parts."""
        return UpperEstimator(self.work, self.tree, self.flat, self.groups, below)


def measurements(
    figures: Invariants,
    tables: Sequence[Names],
    scales: Sequence[Fraction | None],
    family: Family,
) -> Measurements:
    """Tables with the precision of their noise given figures; 0 where nothing is drawn."""
    assert family in ("discrete_gaussian", "double_geometric")
    workload = Workload.of(figures.schema, tables)
    seen = summed_out(figures, workload.axes)
    precisions = tuple(
        0.0 if scale is None else 1 / noise_variance(family, scale, support(seen, names)).value
        for names, scale in zip(tables, scales, strict=True)
    )
    return Measurements(workload, precisions, seen)


@dataclass(frozen=True)
class PartedTables:
    """Independent noise on several tables of a nation, given exact figures within its parts.

    Formal guarantee: the joint loss of all measured tables, as one release; it is worked out from
    tables, scales and figures as in `MeasuredTables`, and cutting into parts has no share in it.
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
        family: Family,
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
        told = TablesDescription(tuple(laws), tuple(map(tuple, tables)), (), design or {}, parts)
        return cls(adjacency, told)

    def __post_init__(self) -> None:
        told = {"adjacency": Adjacency, "description": TablesDescription}
        check_fields(self, StructureError, **told)
        self.parts.chain([*self.tables, *(one.by for one in self.figures.equalities)])
        refuse_across(self.figures, self.parts)
        self._refuse_tables()

    def _refuse_tables(self) -> None:
        base = self.parts.attribute.name
        below = [self.tables[at] for at in self.below]
        shown = {self.schema.axis(name).base for names in self.tables for name in names}
        whole = [names for names in below if {self.schema.axis(n).base for n in names} == shown]
        finest = [names for names in whole if base in names]
        if not finest or self.scales[self.tables.index(finest[0])] is None:
            raise StructureError(
                f"no measured table shows {base!r} with all of {', '.join(sorted(shown))}.",
                remedy="Name it among the tables: parts are drawn and estimated from it down.",
            )

    def refuse_undrawable(self) -> None:
        """StructureError where figures cross so that no sampler draws a part, or what lies above.

        Figures by one kind of area tie nothing beyond an area: one part then stands for all.
        """
        if self.figures.structure in ("none", "laminar"):
            return
        areas = {self.parts.geographic(one.by) for one in self.figures.equalities}
        parts = range(1 if len(areas) == 1 else len(self.parts.labels))
        for share in (*map(self.part, parts), self.upper):
            for at in share.drawn:
                share.law(at)

    # ---- what is public ----------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The nation's schema."""
        return self.adjacency.schema

    @property
    def figures(self) -> Invariants:
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
        known = {one.table: one.scale for one in self.description.measured}
        return tuple(known.get(names) for names in self.tables)

    @cached_property
    def below(self) -> tuple[int, ...]:
        """The tables that show areas finer than the parts."""
        return tuple(at for at, one in enumerate(self.tables) if self.parts.is_below(one))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is promised, from public parameters alone."""
        loss = joint_loss([self.description], self.adjacency)
        return Guarantee(self.adjacency, loss.tradeoff, citation=CITATION)

    @cached_property
    def _pattern(self) -> Measurements:
        """The same tables and figures over a small geography with two areas in every area.

        Which attributes separate, and which sums are fitted, is a matter of names and conditions.
        """
        by = [one.by for one in self.figures.equalities]
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
        figures = Invariants(schema, self.figures.statements)
        return measurements(figures, self.tables, self.scales, self.description.family)

    @cached_property
    def _decided(self) -> tuple[tuple[int, ...], Ints]:
        """The attributes that separate, and the sums of cells that are fitted beside cells."""
        work = self._pattern
        tree = work.names.index(self.parts.attribute.name)
        return separate_along(work, tree).flat, groups_of(work, tree)

    # ---- places ------------------------------------------------------------------------------

    def part(self, number: int) -> Share:
        """What is drawn and estimated in one part."""
        figures = of_part(self.figures, self.parts, number)
        refuse_emptier_areas(figures, number, self.parts)
        scales = [scale if at in self.below else None for at, scale in enumerate(self.scales)]
        return self._share(self.parts.attribute.name, figures, self.tables, scales)

    @cached_property
    def upper(self) -> Share:
        """What is drawn and estimated above the parts: tables below them are summed to parts."""
        scales: dict[Names, Fraction | None] = {}
        for at, (names, scale) in enumerate(zip(self.tables, self.scales, strict=True)):
            if at in self.below:
                scales.setdefault(self.summed(names))
            else:
                scales[names] = scale
        figures = above_parts(self.figures, self.parts)
        return self._share(self.parts.parts, figures, tuple(scales), list(scales.values()))

    @property
    def counted(self) -> Names:
        """The attributes over which records are counted, in the order of the schema."""
        seen = {*self.figures.bases}
        seen |= {self.schema.axis(name).base for names in self.tables for name in names}
        return tuple(name for name in self.schema.names if name in seen)

    def summed(self, names: Names) -> Names:
        """A table below the parts, summed to the parts."""
        area = self.parts.geographic(names)
        return tuple(self.parts.parts if name == area else name for name in names)

    def _share(
        self,
        geography: str,
        figures: Invariants,
        tables: Sequence[Names],
        scales: Sequence[Fraction | None],
    ) -> Share:
        family = self.description.family
        flat, groups = self._decided
        return Share(geography, figures, tuple(tables), tuple(scales), family, flat, groups)
