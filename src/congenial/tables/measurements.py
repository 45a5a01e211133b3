"""Which tables were measured, how precisely, and given which exact figures.

y_b = T_b x + noise, for tables b of the finest cells x. The noise of table b is drawn given the
figures that T_b shows, so its covariance is (1/p_b) times the projection on T_b(ker A); p_b is the
precision of the table. Then the best linear unbiased estimate minimises sum_b p_b |y_b - T_b x|^2
subject to A x = t, and its covariance is the inverse of sum_b p_b T_b' T_b on ker A.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import NUMBERS, check_fields
from congenial.data.arrays import Floats, Ints
from congenial.data.predicate import parse
from congenial.data.workload import Margin, Partition, Workload
from congenial.errors import FigureError, PlanError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.tables.row_space import RowSpace


@dataclass(frozen=True)
class FigureRows:
    """The rows of one exact figure over the cells: weight(x) where x falls into a cell of `by`.

    `mentions` are the places of the attributes in its condition; `weight` an array over them.
    """

    by: Margin
    mentions: tuple[int, ...]
    weight: Floats = field(repr=False)


@dataclass(frozen=True)
class Measurements:
    """Tables of a workload with their precisions, given exact figures.

    `precisions[b]` is 1/sigma^2 of table b's noise; 0 for a table that is printed, not measured.
    The cells are those of the coarsest common refinement of all tables and figures.
    """

    workload: Workload
    precisions: tuple[float, ...]
    figures: Figures

    def __post_init__(self) -> None:
        check_fields(self, PlanError, workload=Workload, precisions=NUMBERS, figures=Figures)
        tables = self.workload.tables
        if len(self.precisions) != len(tables):
            raise PlanError(
                f"{len(self.precisions)} precisions for {len(tables)} tables.",
                remedy="Give one per table; 0 for a table that is not measured.",
            )
        for names, precision in zip(tables, self.precisions, strict=True):
            if not (np.isfinite(precision) and precision >= 0):
                raise PlanError(
                    f"table {list(names)} has precision {precision}.",
                    remedy="A precision is 1/sigma^2, a finite number that is at least 0.",
                )
        if not any(self.precisions):
            raise PlanError("no table is measured.", remedy="Give some table a precision above 0.")
        if self.figures.schema.digest != self.workload.schema.digest:
            raise FigureError(
                "the figures are about another schema than the tables.", remedy="Use one schema."
            )

    # ---- the cells ---------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Attributes of the cells: those of the tables and those of the figures."""
        used = {*self.workload.axes, *self.figures.bases}
        return tuple(name for name in self.workload.schema.names if name in used)

    @cached_property
    def _domain(self) -> Workload:
        return Workload(self.workload.schema, self.names, self.workload.tables)

    @cached_property
    def cells(self) -> tuple[Partition, ...]:
        """Per attribute, the levels that some table or figure tells apart."""
        full = self._domain.finest
        partitions: list[list[Partition]] = [[Partition.whole(levels)] for levels in full]
        for margin in self._domain.margins:
            for listed, partition in zip(partitions, margin.partitions, strict=True):
                listed.append(partition)
        for statement in self.figures.statements:
            for listed, partition in zip(partitions, self._seen_by(statement), strict=True):
                listed.append(partition)
        return tuple(common_refinement(listed) for listed in partitions)

    def _seen_by(self, statement: Statement) -> list[Partition]:
        """What a figure tells apart: its axes, and all levels of attributes in its conditions."""
        partitions = list(self._domain.margin(statement.by).partitions)
        for condition, _ in statement.terms:
            for name in parse(condition, self.workload.schema).bases if condition else ():
                at = self.names.index(name)
                partitions[at] = Partition.levels(self._domain.finest[at])
        return partitions

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Levels per attribute of the cells."""
        return tuple(partition.size for partition in self.cells)

    @property
    def size(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    def margin(self, names: Sequence[str]) -> Margin:
        """The linear map of a table over the cells, whether the workload names it or not."""
        margin = self._domain.margin(names)
        for cells, wanted in zip(self.cells, margin.partitions, strict=True):
            if not cells.refines(wanted):
                raise StructureError(
                    f"the table over {', '.join(names)} cuts the finest cells of the tables.",
                    remedy="Name it among the tables, or a table that it is a sum of.",
                )
        return self._on_cells(margin)

    def _on_cells(self, margin: Margin) -> Margin:
        pairs = zip(margin.partitions, self.cells, strict=True)
        return Margin(tuple(relative(coarse, fine) for coarse, fine in pairs))

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        """The linear map of each table over the cells."""
        return tuple(self._on_cells(margin) for margin in self._domain.margins)

    @cached_property
    def measured(self) -> tuple[int, ...]:
        """The tables with a precision above 0."""
        return tuple(i for i, precision in enumerate(self.precisions) if precision > 0)

    def over(self, margins: Sequence[Margin], precisions: Sequence[float]) -> Measurements:
        """The same cells and figures, measured by other tables over these cells."""
        copied = copy(self)
        vars(copied).update(margins=tuple(margins), precisions=tuple(precisions))
        vars(copied).pop("measured", None)
        return copied

    # ---- the figures -------------------------------------------------------------------------

    @cached_property
    def figure_rows(self) -> tuple[FigureRows, ...]:
        """Exact figures and structural zeros as rows over the cells."""
        rows = [self.rows_of(s) for s in self.figures.equalities]
        rows += [self._zero_rows(s) for s in self.figures.zeros]
        return tuple(rows)

    def rows_of(self, statement: Statement) -> FigureRows:
        """A statement's rows over the cells."""
        by = self._on_cells(self._domain.margin(statement.by))
        mentions, weight = self._weight(statement)
        return FigureRows(by, mentions, weight)

    def _weight(self, statement: Statement) -> tuple[tuple[int, ...], Floats]:
        parsed = [(parse(c, self.workload.schema) if c else None, w) for c, w in statement.terms]
        bases = {name for predicate, _ in parsed if predicate for name in predicate.bases}
        names = tuple(name for name in self.names if name in bases)
        sizes = {name: self.workload.schema.attribute(name).size for name in names}
        weight = np.zeros(tuple(sizes.values()))
        for predicate, factor in parsed:
            if predicate is None:
                weight += factor
            else:
                inside = [sizes[n] if n in predicate.bases else 1 for n in names]
                weight += factor * predicate.mask().reshape(inside)
        return tuple(self.names.index(name) for name in names), weight

    def _zero_rows(self, statement: Statement) -> FigureRows:
        """One row per impossible cell."""
        mentions, weight = self._weight(statement)
        by = Margin(tuple(Partition.levels(levels) for levels in self.shape))
        return FigureRows(by, mentions, (weight != 0).astype(float))

    def published(self, i: int) -> Ints:
        """The i-th exact figure's values, with one axis per attribute of the cells."""
        figures = self.figures
        if figures.values is None:
            raise FigureError("the figures have no values yet.", remedy="Publish them first.")
        statement = figures.equalities[i]
        values = figures.values[figures.statements.index(statement)]
        assert values is not None
        schema = self.workload.schema
        places = [self.names.index(schema.axis(name).base) for name in statement.by]
        order = sorted(range(len(places)), key=places.__getitem__)
        return np.asarray(values.transpose(order).reshape(self.figure_rows[i].by.shape))

    # ---- a table that has the figures --------------------------------------------------------

    @cached_property
    def start(self) -> Floats:
        """Real cells over the figures' attributes (`figures.bases`) that have every figure."""
        figures = self.figures
        if not figures.equalities:
            return np.zeros((1,) * len(figures.bases))
        if figures.values is None:
            raise FigureError("the figures have no values yet.", remedy="Publish them first.")
        atoms = figures.atoms
        sizes = np.bincount(atoms[atoms > 0], minlength=int(atoms.max(initial=0)) + 1)[1:]
        scale = sp.diags(np.sqrt(sizes))
        inside = RowSpace(figures.matrix @ scale).solution(figures.flat_values.astype(float))
        per_cell = np.concatenate([[0.0], inside / np.sqrt(np.maximum(sizes, 1))])
        return per_cell[np.maximum(atoms, 0)].reshape(figures.cells.shape)

    def start_totals(self, margin: Margin) -> Floats:
        """T x of some real cells x that have every exact figure."""
        if not self.figures.equalities:
            return np.zeros(margin.shape)
        totals = self.start
        for at, name in enumerate(self.names):
            of_level = margin.partitions[at].array[self.cells[at].array]
            if name in self.figures.bases:
                totals = _sum_axis(totals, Partition.of(of_level), at)
            else:  # the figures do not see it: evenly over its levels
                share = np.bincount(of_level) / len(of_level)
                after = (1,) * (totals.ndim - at)
                totals = np.expand_dims(totals, at) * share.reshape(-1, *after)
        return np.asarray(totals, dtype=float)


def _sum_axis(values: Floats, partition: Partition, axis: int) -> Floats:
    shape = [Partition.levels(levels) for levels in values.shape]
    shape[axis] = partition
    return np.asarray(Margin(tuple(shape)).totals(values))


def common_refinement(partitions: Sequence[Partition]) -> Partition:
    """The coarsest partition that refines all; blocks in the order of their first level.

    >>> common_refinement([Partition.of([0, 0, 1, 1]), Partition.of([1, 0, 0, 0])]).blocks
    (0, 1, 2, 2)
    """
    number_of = np.zeros(len(partitions[0].blocks), dtype=np.int64)
    for partition in partitions:
        pairs = number_of * partition.size + partition.array
        _, first, number = np.unique(pairs, return_index=True, return_inverse=True)
        number_of = np.argsort(np.argsort(first))[number.reshape(-1)]
    return Partition.of(number_of)


def relative(coarse: Partition, fine: Partition) -> Partition:
    """The blocks of `coarse` over the blocks of a refinement."""
    first = np.unique(fine.array, return_index=True)[1]
    return Partition.of(coarse.array[first])
