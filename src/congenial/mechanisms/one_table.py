"""What one measured table says: its values as drawn, the exact law of every sum's error, and whole
counts near them.

The draw is unbiased and its law is public, so it is the estimate, and a sum of its cells has an
interval that holds exactly. Whole counts >= 0 are fitted to the draw afterwards, which costs no
privacy because it sees the draw and the published figures only (semi-dp, Proposition 23).

**From coarse to fine** where the figures allow. Made nonnegative cell by cell, a table of many
small counts has sums that are far too large: every negative cell is raised, and nothing says so to
the sums. So sums are settled before their parts: the table summed over its longest axis first, then
along that axis' coarser names, then the cells. Sums at these nodes are as near to the draw as whole
counts can be.

**Cell by cell** where figures have no place in such an order (public bounds, figures finer than the
table or about other attributes, sums that cross in other ways): the nearest table in least squares
with the published sums and bounds. Ties are broken by random numbers that the draw seeds, so that
no cell is favoured and everybody gets the same counts from the same draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Floats, Ints
from congenial.data.table import cell_index
from congenial.data.workload import Workload
from congenial.errors import FigureError, StructureError
from congenial.figures import lattice
from congenial.figures.figures import Figures
from congenial.figures.limits import bound_rows, limits
from congenial.figures.support import LOOSE, Pattern, Support, support
from congenial.mechanisms.mechanism import ErrorLaw, Mechanism
from congenial.mechanisms.released import EXACT_LAW
from congenial.sampling.randomness import Randomness, SeededRandomness
from congenial.tables.conforming_tables import ConformingTables
from congenial.tables.covariance import Deviations
from congenial.tables.general_fit import nearest_in
from congenial.tables.joint_estimator import NOT_YET, Answer
from congenial.tables.measurements import Measurements
from congenial.tables.node_order import NodeOrder
from congenial.tables.sparse_tables import sparse_cells, sparse_tables
from congenial.tables.whole_counts import (
    LevelTargets,
    as_near,
    fit_to_targets,
    level_targets,
    rehearse_order,
)

MOST_WORK = 2_000_000_000  # nodes of a level x squared cells of a node, where their sums are known
MADE_UP = 20200401  # the public seed of draws that are made up


@dataclass(frozen=True, eq=False)
class TableSums:
    """A table, and every table that is a sum of it."""

    mechanism: Mechanism
    values: Any = field(repr=False)
    method = "the values as drawn"

    def table(self, names: Sequence[str]) -> Any:
        """The sums onto some axes, shaped by them in the order they are named."""
        axes = self.mechanism.adjacency.schema.axes(tuple(names))
        index = sums_index(self.mechanism, tuple(names)).reshape(-1)
        sums = np.zeros(math.prod(axis.size for axis in axes), dtype=self.values.dtype)
        np.add.at(sums, index, self.values.reshape(-1))
        return sums.reshape([axis.size for axis in axes])


def sums_index(mechanism: Mechanism, names: tuple[str, ...]) -> Any:
    """For each cell of a mechanism's table, the cell of the table over `names` it belongs to."""
    index = cell_index(mechanism.adjacency.schema, mechanism.description.table, names)
    return np.broadcast_to(index, mechanism.shape)


@dataclass(frozen=True, eq=False)
class OneTable:
    """A measured table, the tables printed from it (itself and sums of it), and kept partitions.

    It answers as `JointEstimator` does for several tables, with exact laws in place of a normal
    shape. `printed`: whether whole counts are printed.
    """

    mechanism: Mechanism
    workload: Workload
    keep: tuple[str, ...] = ()
    printed: bool = True

    @property
    def table(self) -> tuple[str, ...]:
        """The axes of the measured table."""
        return self.mechanism.description.table

    @property
    def figures(self) -> Figures:
        """The figures published exactly."""
        return self.mechanism.figures

    @property
    def size(self) -> int:
        """Cells of the measured table."""
        return math.prod(self.mechanism.shape)

    # ---- errors: the exact law of every sum ----------------------------------------------------

    def _laws(self, names: tuple[str, ...]) -> tuple[list[ErrorLaw], Any]:
        if names not in self._known:
            sums = self.mechanism.adjacency.schema.size(names)
            index = sums_index(self.mechanism, names)
            self._known[names] = self.mechanism.different_error_laws(index, sums)
        return self._known[names]

    @cached_property
    def _known(self) -> dict[tuple[str, ...], tuple[list[ErrorLaw], Any]]:
        return {}

    def _shaped(self, names: tuple[str, ...], of_law: list[Any]) -> Any:
        axes = self.mechanism.adjacency.schema.axes(names)
        each = np.array(of_law)[self._laws(names)[1]]
        return each.reshape([axis.size for axis in axes])

    def deviations(self, names: Sequence[str]) -> Deviations:
        """Standard deviation of every cell of a table; 0 where figures tell it."""
        laws, _ = self._laws(tuple(names))
        values = self._shaped(tuple(names), [math.sqrt(float(law.variance)) for law in laws])
        simulated = any(hasattr(law, "basis") for law in laws)
        return Deviations(np.asarray(values, dtype=float), "simulated" if simulated else "exact")

    def reach(self, names: Sequence[str], level: float) -> Floats:
        """h with P(|error| <= h) >= level, for every cell of a table."""
        laws, _ = self._laws(tuple(names))
        values = self._shaped(tuple(names), [float(law.interval(level)) for law in laws])
        return np.asarray(values, dtype=float)

    def error_of_sum(self, names: Sequence[str], cells: Any) -> ErrorLaw:
        """The law of the error of a sum over some cells (a boolean array) of a table."""
        chosen = np.asarray(cells, dtype=bool).reshape(-1)
        return self.mechanism.error_law(chosen[sums_index(self.mechanism, tuple(names))])

    def deviation_of_sum(self, names: Sequence[str], cells: Any) -> float:
        """Its standard deviation."""
        return math.sqrt(float(self.error_of_sum(names, cells).variance))

    def reach_of_sum(self, names: Sequence[str], cells: Any, level: float) -> float:
        """h with P(|error of the sum| <= h) >= level."""
        return float(self.error_of_sum(names, cells).interval(level))

    def basis_of_sum(self, names: Sequence[str], cells: Any) -> str:
        """What the interval of a sum rests on."""
        return str(getattr(self.error_of_sum(names, cells), "basis", EXACT_LAW))

    # ---- estimates and whole counts ------------------------------------------------------------

    def fitted(self, drawn: Sequence[Any]) -> TableSums:
        """Estimates of everything: the table as drawn, and its sums."""
        return TableSums(self.mechanism, next(values for values in drawn if values is not None))

    def answer(self, drawn: Sequence[Any]) -> Answer:
        """Estimates and whole counts of every printed table, from the table as drawn."""
        fitted = self.fitted(drawn)
        values = fitted.values
        counts = TableSums(self.mechanism, self.counts(values)) if self.has_counts else None
        tables = self.workload.tables
        return Answer(
            fitted,
            tuple(fitted.table(names) for names in tables),
            tuple(
                counts.table(names) if counts and self.prints(names) else None for names in tables
            ),
        )

    @property
    def has_counts(self) -> bool:
        """Whether whole counts are printed; those drawn given their signs always are."""
        return self.mechanism.nonnegative or (self.printed and not self.why_no_counts)

    @property
    def follows_keep(self) -> bool:
        """Whether whole counts follow the partitions that `keep` names."""
        fitted = self.has_counts and not self.mechanism.nonnegative
        return not self.keep or (fitted and self.order is not None)

    @cached_property
    def why_no_counts(self) -> str:
        """Why no whole counts can be fitted; empty where they can. From public figures alone.

        Raises FigureError where no whole counts have the figures at all.
        """
        if self.mechanism.nonnegative:
            return ""
        if self.mechanism.description.continuous:
            return f"'{self.mechanism.name}' draws real numbers"
        if self.figures.statements and self.figures.values is None:
            return NOT_YET
        if self.keep and self.order is None:
            return f"keep = {list(self.keep)} cannot be used in a fit from coarse to fine"
        try:
            self._rehearse()
        except StructureError as reason:
            return reason.what.rstrip(".")
        return ""

    def counts(self, drawn: Ints) -> Ints:
        """Whole nonnegative counts near the table as drawn, with every published sum and bound."""
        if self.mechanism.nonnegative:
            return drawn  # drawn given that none is negative
        if self.order is not None:
            return self._counts(self.order, self._targets(self.order, drawn))
        return nearest_counts(self.mechanism, drawn, _ties(drawn))

    def as_near(self, drawn: Sequence[Any], counts: Sequence[Ints | None]) -> bool:
        """Whether printed counts differ from a fit by ties only, which other versions of a solver
        may break another way; False where the measured table is not printed itself.
        """
        values = next(table for table in drawn if table is not None)
        tables = self.workload.tables
        own = counts[tables.index(self.table)] if self.table in tables else None
        if own is None or not self.has_counts:
            return False
        sums = TableSums(self.mechanism, own)
        if not all(
            (table is not None) == self.prints(names)
            and (table is None or np.array_equal(sums.table(names), table))
            for names, table in zip(tables, counts, strict=True)
        ) or not self._keeps_figures(own):
            return False
        if self.order is not None:
            return as_near(self.order, self._targets(self.order, values), self._cells(own))
        return _squares(own - values) == _squares(self.counts(values) - values)

    def _keeps_figures(self, counts: Ints) -> bool:
        """Whether counts are nonnegative, with every published sum and bound."""
        structure = support(self.mechanism.description.support, self.table)
        bounds = limits(self.figures, self.table)
        return structure.agrees(counts) and bool(bounds.hold(counts.reshape(-1)))

    @cached_property
    def order(self) -> NodeOrder | None:
        """The order of the fit from coarse to fine; None where counts are fitted cell by cell."""
        if self.figures.bounds:
            return None
        others = tuple(names for names in self.workload.tables if names != self.table)
        order = _node_order(self.mechanism.description.support, self.table, self.keep, others)
        return order if order is not None and self._fits(order) else None

    def prints(self, names: Sequence[str]) -> bool:
        """Whether sums onto some axes are printed counts: the table, nodes of the fit, printed
        tables that are sums of nodes, and sums that are published exactly.
        """
        if not self.has_counts or self.mechanism.nonnegative or set(names) == set(self.table):
            return self.has_counts
        listed = frozenset(names) in map(frozenset, self.workload.tables)
        role = "sum" if self.order is None else _role(self.order, names)
        if role == "node" or (listed and role != "sum"):
            return True
        structure = support(self.mechanism.description.support, self.table)
        index = sums_index(self.mechanism, tuple(names))
        return bool(
            structure.fixes(index, self.mechanism.adjacency.schema.size(tuple(names))).all()
        )

    def prints_sum(self, names: Sequence[str], cells: Any) -> bool:
        """The same for the sum over some cells (a boolean array) of a table."""
        if not self.has_counts or self.mechanism.nonnegative:
            return self.has_counts
        chosen = np.asarray(cells, dtype=bool).reshape(-1)
        marked = chosen[sums_index(self.mechanism, tuple(names))]
        if np.count_nonzero(marked) == 1 or (np.count_nonzero(chosen) == 1 and self.prints(names)):
            return True
        return self.order is not None and _is_node_cell(self.order, self._cells(marked))

    @property
    def fitted_tables(self) -> tuple[tuple[str, ...], ...]:
        """Tables whose sums are printed counts, from coarse to fine; the last is the table."""
        return (self.table,) if self.order is None else _node_tables(self.order, self.table)

    # ---- made up from public figures -----------------------------------------------------------

    @property
    def made_up(self) -> list[Any]:
        """Printed tables of nobody, which have every figure where they are printed as counts."""
        people = made_up_table(self.mechanism, SeededRandomness(0), 0) if self.has_counts else None
        if people is None:
            people = np.zeros(self.mechanism.shape, dtype=np.int64)
        sums = TableSums(self.mechanism, people)
        return [sums.table(names) for names in self.workload.tables]

    @property
    def rehearsal(self) -> TableSums | str:
        """Whole counts of made-up people, or why there are none."""
        why = self.why_no_counts if self.printed else "no whole counts were asked for"
        if not why and (self.figures.bounds or self.mechanism.nonnegative):
            why = "draws or fits take long"
        if not why and self.mechanism.description.norm not in ("l1", "l2"):
            why = "draws take long"
        if why:
            return why
        return TableSums(self.mechanism, made_up_table(self.mechanism, SeededRandomness(0), 0))

    def _rehearse(self) -> None:
        """Fit a made-up draw, so that what cannot be done is known before anything is spent.

        The noise is thrown away and the table is made up from the published figures alone: nothing
        here depends on the data.
        """
        mechanism, randomness = self.mechanism, SeededRandomness(MADE_UP)
        groups = support(mechanism.description.support, self.table)
        if self.order is None and (groups.ties or self.figures.bounds):
            drawn = made_up_table(mechanism, randomness) + mechanism.noise(randomness, 1)[0]
            nearest_in(drawn, _conforming(self.figures, groups), randomness, every=True)

    def _fits(self, order: NodeOrder) -> bool:
        """Whether noise around a table that agrees with the figures can be fitted.

        Sums that nest can always be (`whole_counts.rehearse`). Where groups are tied it is tried:
        on a table that is made up if ties are margins, which is quick, otherwise a fit to zeros.
        """
        mechanism, randomness = self.mechanism, SeededRandomness(MADE_UP)
        groups = support(mechanism.description.support, self.table)
        if not groups.ties:
            return True
        margins = all(kind.pattern.features is not None for kind in groups.ties.kinds)
        try:
            if groups.totals is not None and margins:
                agreeing = made_up_table(mechanism, randomness)
            else:
                agreeing = self._near(order, np.zeros(mechanism.shape, dtype=np.int64))
            self._near(order, agreeing + mechanism.noise(randomness, 1)[0])
        except (StructureError, FigureError):
            return False
        return True

    # ---- the fit from coarse to fine -----------------------------------------------------------

    def _counts(self, order: NodeOrder, targets: list[LevelTargets]) -> Ints:
        return fit_to_targets(order, targets).table(self.table).reshape(self.mechanism.shape)

    def _near(self, order: NodeOrder, drawn: Ints) -> Ints:
        """Counts near the draw itself, in a rehearsal."""
        return self._counts(order, level_targets(order, self._cells(drawn, order).astype(float)))

    def _targets(self, order: NodeOrder, drawn: Ints) -> list[LevelTargets]:
        cells = self._cells(drawn, order).astype(float)
        sparse = sparse_cells(order.measurements, cells, self.sparse) if self.sparse else None
        return level_targets(order, cells if sparse is None else sparse)

    @cached_property
    def sparse(self) -> dict[tuple[str, ...], Floats]:
        """Standard deviations of all tables where printed counts of some are posterior means."""
        counts = self.has_counts and self.mechanism.description.magnitude is None
        if not counts or self.mechanism.nonnegative or self.order is None:
            return {}
        return sparse_tables(
            self.order.measurements,
            (self.table, *self.workload.tables, *self.fitted_tables),
            lambda names: self.deviations(names).values,
        )

    def _cells(self, table: Any, order: NodeOrder | None = None) -> Ints:
        """A table shaped by its axes, with one axis per attribute of the cells instead."""
        work = (order or self.order).measurements  # type: ignore[union-attr]
        places = [work.names.index(work.workload.schema.axis(name).base) for name in self.table]
        turned = np.transpose(table, np.argsort(places))
        return np.asarray(turned.reshape(work.shape), dtype=np.int64)


@lru_cache(maxsize=16)
def _node_order(
    figures: Figures,
    names: tuple[str, ...],
    keep: tuple[str, ...] = (),
    others: tuple[tuple[str, ...], ...] = (),
) -> NodeOrder | None:
    """The order in which a table's counts are fitted given exact figures; None if there is none.

    `others`: sums of it that are printed too.
    """
    if figures.bounds or (figures.equalities and figures.values is None):
        return None
    tables = (names, *dict.fromkeys((*others, *_coarser_tables(figures, names))))
    work = Workload.of(figures.schema, tables)
    measured = Measurements(work, (1.0, *(0.0,) * (len(tables) - 1)), figures)
    if measured.margins[0].size != measured.size:
        return None  # figures tell finer cells apart than the table does
    try:
        order = rehearse_order(measured, keep)
    except StructureError:
        return None
    return order if _affordable(order) else None


def _coarser_tables(figures: Figures, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The table with one axis replaced by a coarser name of it, or left out."""
    schema, tables = figures.schema, []
    for at, name in enumerate(names):
        axis = schema.axis(name)
        coarser = [other for other in schema.attribute(axis.base).coarser if other != name]
        for other in coarser:
            pairs = {*zip(axis.of_base, schema.axis(other).of_base, strict=True)}
            if len(pairs) == axis.size:  # every level lies in one level of the coarser name
                tables.append((*names[:at], other, *names[at + 1 :]))
    return tables


def _affordable(order: NodeOrder) -> bool:
    """Whether every level can be fitted in a moment; levels without known sums always can."""
    levels = zip(order.chain, order.atoms, strict=True)
    return all(
        level.size * order.cells**2 <= MOST_WORK for level, atoms in levels if atoms.sums.size
    )


def _role(order: NodeOrder, names: Sequence[str]) -> str:
    """What sums over some axes are in the fit, as `NodeOrder.roles` has it."""
    try:
        return order.role(order.measurements.margin(names))
    except StructureError:
        return "sum"


def _node_tables(order: NodeOrder, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Tables whose sums are nodes of the fit, from coarse to fine; the last is the table itself."""
    schema = order.measurements.workload.schema
    tree = order.measurements.names[order.tree]
    top = tuple(name for name in names if schema.axis(name).base != tree)
    tables = [top, *order.measurements.workload.tables]
    nodes = [table for table in dict.fromkeys(tables) if _role(order, table) == "node"]
    return tuple(sorted(nodes, key=lambda one: schema.size(one)))


def _is_node_cell(order: NodeOrder, marked: Ints) -> bool:
    """Whether the marked cells of a table add up to one cell of a node."""
    for level in range(len(order.chain)):
        margin = order.level_margin(level)
        inside, all_ = margin.totals(marked), margin.totals(np.ones_like(marked))
        if np.count_nonzero(inside) == 1 and np.array_equal(inside[inside > 0], all_[inside > 0]):
            return True
    return False


# ---- the nearest table, cell by cell -----------------------------------------------------------


def nearest_counts(mechanism: Mechanism, drawn_table: Ints, randomness: Randomness) -> Ints:
    """The nearest nonnegative whole table (least squares) with the published sums and bounds.

    Cells of a group keep their published total, tied groups keep what is published about them
    together, and cells of no group are cut at zero. Ties are broken at random so that no cell is
    favoured.
    """
    groups = support(mechanism.description.support, mechanism.description.table)
    allowed = _conforming(mechanism.figures, groups)
    return nearest_in(drawn_table, allowed, randomness).reshape(drawn_table.shape)


def _ties(drawn: Ints) -> Randomness:
    """The stream that breaks ties: the same for everybody, another for each draw."""
    digest = sha256(drawn.astype("<i8").tobytes()).digest()
    return SeededRandomness(int.from_bytes(digest[:8]))


def _squares(off: Any) -> int:
    """The sum of squares, exactly."""
    sizes, times = np.unique(np.abs(off), return_counts=True)
    return sum(int(value) ** 2 * int(n) for value, n in zip(sizes, times, strict=True))


def made_up_table(mechanism: Mechanism, randomness: Randomness, loose: int | None = None) -> Any:
    """Some nonnegative table that agrees with every published figure and bound.

    Everybody of a known sum in one of its cells and nobody elsewhere; with `loose`, known sums are
    spread evenly, and cells of none have this count.
    """
    figures = mechanism.figures
    groups = support(mechanism.description.support, mechanism.description.table)
    labels = groups.labels.reshape(-1)
    order, start = _by_group(labels, groups.groups)
    table = np.where(labels == LOOSE, loose or 0, 0).astype(np.int64)
    if groups.totals is None:
        return table.reshape(mechanism.shape)
    settled, even = ~groups.tied, np.full(groups.groups, loose is not None)
    totals = np.maximum(groups.totals, 0)
    for kind in groups.ties.kinds if loose is None else ():
        if kind.values is not None and kind.pattern.features is not None:
            totals[kind.groups] = totals_with_margins(kind.pattern, kind.values)
            settled[kind.groups] = even[kind.groups] = True
    settled_groups = np.flatnonzero(settled & ~even)
    table[order[start[settled_groups]]] = totals[settled_groups]
    cells = order[labels[order] >= 0]
    cells = cells[even[labels[cells]]]
    place = np.argsort(order, kind="stable")[cells] - start[labels[cells]]
    share, rest = np.divmod(totals, np.maximum(groups.sizes, 1))
    table[cells] = share[labels[cells]] + (place < rest[labels[cells]])
    if groups.ties or figures.bounds:
        table = nearest_in(table, _conforming(figures, groups), randomness)
    return table.reshape(mechanism.shape)


def totals_with_margins(pattern: Pattern, values: Any) -> Any:
    """Some whole totals >= 0 of groups (one tie a line) that have the margins of each tie.

    As if two features were independent, where that rounds. Otherwise people are lined up by their
    levels of every feature at once; a group gets those who stand in all of its levels.
    """
    assert pattern.features is not None
    x = lattice.solution_lines(sp.csr_matrix(pattern.equations), values)
    first, last = np.zeros((len(x), x.shape[1])), np.full((len(x), x.shape[1]), np.inf)
    for level in pattern.features.T:
        people = np.rint(x @ (level[:, np.newaxis] == np.arange(level.max() + 1)))
        ends = np.cumsum(people, axis=1)
        first = np.maximum(first, (ends - people)[:, level])
        last = np.minimum(last, ends[:, level])
    lined_up = np.maximum(last - first, 0).astype(np.int64)
    if pattern.features.shape[1] != 2:
        return lined_up
    independent = _independent(pattern.features, x)
    return np.where(np.any(independent < 0, axis=1)[:, np.newaxis], lined_up, independent)


def _independent(features: Any, x: Any) -> Any:
    """Differences of rounded products of cumulated margins: the margins are right, and totals of
    more than two levels may be -1.
    """
    shape = tuple(int(level.max()) + 1 for level in features.T)
    counts = np.zeros((len(x), *shape))
    counts[:, features[:, 0], features[:, 1]] = x
    ends = [np.cumsum(np.rint(counts.sum(axis=3 - k)), axis=1) for k in (1, 2)]
    people = np.maximum(ends[0][:, -1:, np.newaxis], 1)
    below = np.rint(ends[0][:, :, np.newaxis] * ends[1][:, np.newaxis, :] / people)
    totals = np.diff(np.diff(below, axis=1, prepend=0), axis=2, prepend=0)
    return totals[:, features[:, 0], features[:, 1]].astype(np.int64)


def _by_group(labels: Any, groups: int) -> tuple[Any, Any]:
    """Cells in the order of their groups, and where each group starts."""
    order = np.argsort(labels, kind="stable")
    return order, np.searchsorted(labels[order], np.arange(groups + 1))


def _conforming(figures: Figures, groups: Support) -> ConformingTables:
    """The nonnegative tables with every published sum and bound that the table can show."""
    return ConformingTables.given(groups).plus(*bound_rows(figures, groups.names))
