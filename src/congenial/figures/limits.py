"""Published bounds on a released table: bounds of single cells, and of sums of cells.

A bound is a row B m >= b over released cells. Exact figures simplify it: the sum over a group of
known total is known, so a row is only needed up to multiples of such sums. What is left may say
nothing, bound a single cell (a *box*), or bound a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import PLAIN_NAMES, takes
from congenial.data.arrays import Ints
from congenial.data.table import cell_index, select
from congenial.errors import BundleError, FigureError, PredicateError, SchemaError
from congenial.figures.figures import Figures
from congenial.figures.people import LARGEST_LIST, list_tables
from congenial.figures.statements import Statement
from congenial.figures.support import FROZEN, LOOSE, Support, TieKind, support

FAR = 1 << 60  # stands for "no bound"
MOST_CELLS = 64  # of a table whose conforming versions are listed


@dataclass(frozen=True, eq=False)
class Limits:
    """low <= m <= high for each cell (flat), and least <= rows @ m <= most; FAR for no bound.

    `low` is never below 0. Bounds that follow from the exact figures are left out.
    """

    low: Ints = field(repr=False)
    high: Ints = field(repr=False)
    rows: sp.csr_matrix = field(repr=False)
    least: Ints = field(repr=False)
    most: Ints = field(repr=False)

    @property
    def boxed(self) -> bool:
        """Whether single cells have bounds other than m >= 0."""
        return bool(np.any(self.low > 0) or np.any(self.high < FAR))

    @property
    def sums(self) -> int:
        """How many sums of several cells are bounded."""
        return int(self.rows.shape[0])

    def hold(self, m: Any) -> Any:
        """Which tables, shape (..., cells), keep every bound and have no negative count."""
        m = np.asarray(m, dtype=np.int64)
        inside = np.all((m >= self.low) & (m <= self.high), axis=-1)
        if self.sums:
            sums = (self.rows @ m.reshape(-1, m.shape[-1]).T).T.reshape(*m.shape[:-1], -1)
            inside &= np.all((sums >= self.least) & (sums <= self.most), axis=-1)
        return inside


def no_limits(cells: int) -> Limits:
    """m >= 0, and no bound."""
    none, rows = np.zeros(0, dtype=np.int64), sp.csr_matrix((0, cells), dtype=np.int64)
    return Limits(np.zeros(cells, np.int64), np.full(cells, FAR), rows, none, none)


def bound_rows(figures: Figures, names: tuple[str, ...]) -> tuple[sp.csr_matrix, Ints, Ints]:
    """Every published bound that the table over `names` can show: rows over its cells, from, to.

    A bound on people the table does not tell apart is not one on its cells; it is left out.
    """
    schema = figures.schema
    shape = tuple(len(schema.axis(name).levels) for name in names)
    cells = int(np.prod(shape, dtype=np.int64))
    rows = [sp.csr_matrix((0, cells), dtype=np.int64)]
    least, most = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for statement in figures.bounds:
        bounded = _on_cells(statement, figures, names, shape)
        if bounded is None:
            continue
        rows.append(bounded)
        bound = np.full(bounded.shape[0], statement.bound, dtype=np.int64)
        below = statement.relation == ">="
        least.append(bound if below else np.full_like(bound, -FAR))
        most.append(np.full_like(bound, FAR) if below else bound)
    return sp.vstack(rows, format="csr"), np.concatenate(least), np.concatenate(most)


def _on_cells(
    statement: Statement, figures: Figures, names: tuple[str, ...], shape: tuple[int, ...]
) -> sp.csr_matrix | None:
    schema = figures.schema
    weight = np.zeros(shape, dtype=np.int64)
    try:
        for condition, times in statement.terms:
            weight += times * select(condition, schema, names)
        index = np.broadcast_to(cell_index(schema, names, statement.by), shape)
    except (BundleError, PredicateError, SchemaError):
        return None
    used = np.flatnonzero(weight.reshape(-1))
    place = (index.reshape(-1)[used], used)
    return sp.csr_matrix(
        (weight.reshape(-1)[used], place), shape=(schema.size(statement.by), weight.size)
    )


@takes(FigureError, figures=Figures, names=PLAIN_NAMES)
@lru_cache(maxsize=64)
def limits(figures: Figures, names: tuple[str, ...]) -> Limits:
    """The bounds of the table over `names`, as simple as the exact figures make them.

    Public bounds (`at_least`, `at_most`) and counts >= 0 are stated of the table's cells: what the
    exact figures say already is left out, and bounds of single cells become a box. An empty
    `Limits` bounds nothing but that counts are not negative.

    >>> from congenial import Schema, Table, at_most, count, publish
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["no", "yes"]}})
    >>> table = Table(schema, ["sex", "ill"], [[5, 2], [4, 1]])
    >>> found = limits(publish(table, at_most(count("ill = 'yes'"), 4)), ("sex", "ill"))
    >>> bool(found.hold([3, 1, 1, 1])), bool(found.hold([0, 5, 0, 0]))
    (True, False)
    """
    rows, least, most = bound_rows(figures, names)
    cells = rows.shape[1]
    if not rows.shape[0]:
        return no_limits(cells)
    low, high = np.zeros(cells, np.int64), np.full(cells, FAR)
    fixed = support(figures, names)
    reduce = _Reduce(fixed)
    sums = []
    for i in range(rows.shape[0]):
        at, weights, first, last = reduce(rows[i], int(least[i]), int(most[i]))
        if len(at) > 1:
            sums.append((at, weights, first, last))
        elif len(at):
            w = int(weights[0])
            ends = (_up(first, w), _down(last, w)) if w > 0 else (_up(last, w), _down(first, w))
            low[at] = np.maximum(low[at], ends[0])
            high[at] = np.minimum(high[at], ends[1])
    cap = most_by_cell(fixed)
    high = np.where(high >= cap, FAR, high)
    box = (low, np.minimum(high, cap))
    needed = [
        bounded for bounded in sums if not _vacuous(bounded[0], bounded[1], bounded[2:], box, fixed)
    ]
    matrix = sp.lil_matrix((len(needed), cells), dtype=np.int64)
    for i, (at, weights, _, _) in enumerate(needed):
        matrix[i, at] = weights
    ends_ = np.array([bounded[2:] for bounded in needed], dtype=np.int64).reshape(-1, 2)
    return Limits(low, high, matrix.tocsr(), ends_[:, 0], ends_[:, 1])


class _Reduce:
    """Takes out of a row what the exact figures fix."""

    def __init__(self, known: Support) -> None:
        self.known, self.labels = known, known.labels.reshape(-1)
        self.order = np.argsort(self.labels, kind="stable")
        self.start = np.searchsorted(self.labels[self.order], np.arange(known.groups + 1))

    def __call__(self, row: sp.csr_matrix, first: int, last: int) -> tuple[Ints, Ints, int, int]:
        possible = self.labels[row.indices] != FROZEN
        at, weights = row.indices[possible].astype(np.int64), row.data[possible]
        for group in np.unique(self.labels[at]).tolist():
            if group == LOOSE or self.known.tied[group]:
                continue
            inside = self.labels[at] == group
            common = self._common(weights[inside], int(self.known.sizes[group]))
            if not common:
                continue
            cells = self.members(group)
            there = np.zeros(len(cells), dtype=np.int64)
            there[np.searchsorted(cells, at[inside])] = weights[inside]
            at = np.concatenate([at[~inside], cells])
            weights = np.concatenate([weights[~inside], there - common])
            if self.known.totals is not None:
                by = common * int(self.known.totals[group])
                first, last = _shifted(first, by), _shifted(last, by)
        at, weights = at[weights != 0], weights[weights != 0]
        if self._fixed_by_tie(dict(zip(at.tolist(), weights.tolist(), strict=True))):
            at, weights = at[:0], weights[:0]
        order = np.argsort(at)
        return at[order], weights[order], first, last

    def members(self, group: int) -> Ints:
        """Cells of a group, in order."""
        return np.sort(self.order[self.start[group] : self.start[group + 1]])

    def _common(self, weights: Ints, size: int) -> int:
        """The commonest weight of a group's cells; 0 where nothing is won or its sum is unknown."""
        values, times = np.unique(weights, return_counts=True)
        best = int(times.max())
        enough = best > size - len(weights) if self.known.totals is not None else best == size
        return int(values[times.argmax()]) if enough else 0

    def _fixed_by_tie(self, weight: dict[int, int]) -> bool:
        """Whether the row is a sum over tied groups that their equations fix."""
        groups = {int(self.labels[c]) for c in weight}
        for tie in self.known.ties:
            if not groups or not groups <= set(tie.groups.tolist()):
                continue
            there = [
                {weight.get(c, 0) for c in self.members(g).tolist()} for g in tie.groups.tolist()
            ]
            if all(len(values) == 1 for values in there):
                return tie.pattern.fixes([values.pop() for values in there])
        return False


def _shifted(bound: int, by: int) -> int:
    return bound if abs(bound) >= FAR else bound - by


def _up(bound: int, weight: int) -> int:
    """The least whole m with weight * m >= bound, or <= bound for a negative weight."""
    return -FAR if abs(bound) >= FAR else -(-bound // weight)


def _down(bound: int, weight: int) -> int:
    return FAR if abs(bound) >= FAR else bound // weight


def most_by_cell(known: Support) -> Ints:
    """The most people each cell can hold, from the exact figures alone."""
    labels = known.labels.reshape(-1)
    most = np.where(labels == FROZEN, 0, FAR)
    if known.totals is None:
        return most
    of_group = np.append(most_by_group(known), FAR)
    return np.where(labels >= 0, of_group[np.maximum(labels, -1)], most)


def most_by_group(known: Support) -> Ints:
    """The most people each group of cells can hold, from the exact figures alone."""
    assert known.totals is not None
    of_group = np.where(known.tied, FAR, known.totals)
    for kind in known.ties.kinds:
        assert kind.values is not None
        for value, row in zip(kind.values.T, kind.pattern.equations, strict=True):
            if np.all(row >= 0):
                inside, most = kind.groups[:, row > 0], value[:, np.newaxis] // row[row > 0]
                of_group[inside] = np.minimum(of_group[inside], most)
    return of_group


def _vacuous(
    at: Ints, weights: Ints, ends: tuple[int, int], box: tuple[Ints, Ints], known: Support
) -> bool:
    """Whether a row holds for every table between the box's ends that has the known totals."""
    return _least(at, weights, box, known) >= ends[0] and (
        -_least(at, -weights, box, known) <= ends[1]
    )


def _least(at: Ints, weights: Ints, box: tuple[Ints, Ints], known: Support) -> int:
    """A lower bound of the row's sum: cell by cell, or by the total of the group."""
    labels, least = known.labels.reshape(-1)[at], 0
    for group in np.unique(labels).tolist():
        inside = labels == group
        w, low, high = weights[inside], box[0][at[inside]], box[1][at[inside]]
        alone = -FAR if np.any(high[w < 0] >= FAR) else int(w @ np.where(w > 0, low, high))
        if group >= 0 and known.totals is not None and not known.tied[group]:
            smallest = int(w.min()) if len(w) == known.sizes[group] else min(int(w.min()), 0)
            alone = max(alone, smallest * int(known.totals[group]))
        least = max(least + alone, -FAR)
    return least


@takes(FigureError, figures=Figures, names=PLAIN_NAMES)
@lru_cache(maxsize=16)
def conforming_tables(figures: Figures, names: tuple[str, ...]) -> Ints | None:
    """All whole tables over `names`, flat, that the figures and bounds leave; None if many.

    Public knowledge only: figures, bounds and the schema. None also before figures are published.
    """
    bounds = limits(figures, names)
    if figures.values is None or bounds.low.size > MOST_CELLS:
        return None
    fixed = support(figures, names)
    most = np.minimum(most_by_cell(fixed), bounds.high)
    if fixed.totals is None or np.any(most > LARGEST_LIST):  # too many, or as good as
        return None
    labels = fixed.labels.reshape(-1)
    groups = (labels[None, :] == np.arange(fixed.groups)[:, None]).astype(np.int64)
    rows, sums = [groups[~fixed.tied]], [fixed.totals[~fixed.tied]]
    for tie in fixed.ties:
        assert tie.values is not None
        rows.append(tie.equations @ groups[tie.groups])
        sums.append(tie.values)
    exact = np.concatenate(sums)
    return list_tables(
        np.vstack([*rows, np.identity(most.size, dtype=np.int64), bounds.rows.toarray()]),
        np.concatenate([exact, bounds.low, bounds.least]),
        np.concatenate([exact, most, bounds.most]),
        most,
    )


# ---- sum ranges ---------------------------------------------------------------------------------
#
# How small and how large a sum of counts can be, given the published figures.
#
# Counts are not negative, so a sum is at most the smallest published sum that contains it, and at
# least the published sums that it contains. Every true table keeps to these ranges: an interval
# for a true count that is cut to them covers it as often as before.


@dataclass(frozen=True)
class SumRanges:
    """least <= truth <= most for each sum; FAR where no published sum contains it.

    >>> ranges = SumRanges(np.array([0, 0, 2]), np.array([5, FAR, 9]))
    >>> [one.tolist() for one in ranges.ends(np.array([30, -4, 8]), np.array([3, 3, 3]))]
    [[2, 0, 5], [5, 3, 9]]
    """

    least: Ints = field(repr=False)
    most: Ints = field(repr=False)

    def ends(self, values: Any, half: Any) -> tuple[Any, Any]:
        """Ends of intervals of `half` to either side, cut to what can be.

        A value that cannot be reaches as far inwards as the nearest one that can: the interval is
        never empty, and holds every possible truth that the uncut one held.
        """
        low = np.maximum(np.minimum(values, self.most) - half, self.least)
        high = np.minimum(np.maximum(values, self.least) + half, self.most)
        return low, high

    def times(self, lowest: int, highest: int) -> SumRanges:
        """The ranges of sums of a number from `lowest` to `highest` of each of so many people.

        >>> people = SumRanges(np.array([2, 0]), np.array([3, FAR]))
        >>> sums = people.times(-1, 10)
        >>> sums.least.tolist() == [-3, -FAR], sums.most.tolist() == [30, FAR]
        (True, True)
        """
        least = self.most if lowest < 0 else self.least
        most = self.most if highest > 0 else self.least
        return SumRanges(_multiplied(least, lowest), _multiplied(most, highest))


def _multiplied(people: Ints, number: int) -> Ints:
    """A product, FAR where it is beyond."""
    beyond = people > (FAR // abs(number) if number else FAR)
    return np.where(beyond, np.sign(number) * FAR, np.where(beyond, 0, people) * number)


def cell_ranges(known: Support) -> SumRanges:
    """The ranges of single cells, flat: one that is a published sum by itself is known."""
    labels, most = known.labels.reshape(-1), most_by_cell(known)
    if known.totals is None or not known.groups:
        return SumRanges(np.zeros(labels.size, dtype=np.int64), most)
    alone = (known.sizes == 1) & ~known.tied
    least = np.append(np.where(alone, known.totals, 0), 0)
    return SumRanges(least[np.where(labels >= 0, labels, -1)], most)


def table_ranges(figures: Figures, names: tuple[str, ...]) -> SumRanges:
    """The ranges of every cell of a table, in its shape."""
    flat = cell_ranges(support(figures, names))
    shape = tuple(axis.size for axis in figures.schema.axes(names))
    return SumRanges(flat.least.reshape(shape), flat.most.reshape(shape))


def indexed_ranges(known: Support, index: Any, sums: int) -> SumRanges:
    """The ranges of disjoint sums: `index` names the sum of each cell, -1 for none."""
    flat = index.reshape(-1)
    inside = np.flatnonzero(flat >= 0)
    cells = (np.ones(len(inside), np.int64), (flat[inside], inside))
    return sum_ranges(known, sp.csr_array(cells, (sums, flat.size)))


def sum_ranges(known: Support, sums: Any) -> SumRanges:
    """The ranges of sums of cells: a sparse matrix, a row for each sum and a column for each cell.

    >>> from congenial import Schema, Table, margin, publish
    >>> from congenial.figures.support import support
    >>> schema = Schema.from_dict({"county": {"levels": ["a", "b"]}, "sex": {"levels": ["f", "m"]}})
    >>> figures = publish(Table(schema, ["county", "sex"], [[3, 1], [5, 2]]), margin("county"))
    >>> known = support(figures, ("county", "sex"))
    >>> found = sum_ranges(known, sp.csr_array([[1, 0, 0, 0], [1, 0, 1, 1]]))
    >>> found.least.tolist(), found.most.tolist()
    ([0, 7], [4, 11])
    """
    labels = known.labels.reshape(-1)
    if known.totals is None or not known.groups:
        return SumRanges(*_nothing_known(sums, labels))
    met = _groups_met(known, sums)
    row, group = np.repeat(np.arange(met.shape[0]), np.diff(met.indptr)), met.indices
    alone = ~known.tied[group]
    whole = alone & (met.data == known.sizes[group])
    least = np.bincount(row[whole], known.totals[group[whole]], met.shape[0])
    most = np.bincount(row[alone], known.totals[group[alone]], met.shape[0])
    each = most_by_group(known)
    for kind in known.ties.kinds:
        most = most + _most_of_tied(kind, each, row, group, met.shape[0])
    most = np.where(_any(sums, labels == LOOSE), FAR, np.minimum(most, FAR))
    return SumRanges(least.astype(np.int64), most.astype(np.int64))


def _nothing_known(sums: Any, labels: Ints) -> tuple[Ints, Ints]:
    """Without published sums: cells known to be empty, and all others."""
    inside = _any(sums, labels == LOOSE) | _any(sums, labels >= 0)
    return np.zeros(sums.shape[0], dtype=np.int64), np.where(inside, FAR, 0)


def _any(sums: Any, cells: Any) -> Any:
    """Which sums have one of the cells."""
    return np.asarray(sums @ cells.astype(np.int64)).reshape(-1) > 0


def _groups_met(known: Support, sums: Any) -> Any:
    """How many cells of each group are in each sum."""
    labels = known.labels.reshape(-1)
    inside = np.flatnonzero(labels >= 0)
    shape = (labels.size, known.groups)
    of_group = sp.csr_array((np.ones(len(inside), np.int64), (inside, labels[inside])), shape)
    return sp.csr_array(sp.csr_array(sums, dtype=np.int64) @ of_group)


def _most_of_tied(kind: TieKind, each: Ints, row: Ints, group: Ints, rows: int) -> Any:
    """For each sum, the most that its part in ties of one kind can be; `each`: of every group.

    Part by part: the smallest published sum that contains the whole part, or what its groups can
    be one by one, whichever is less.
    """
    tie, place = np.full(len(each), -1), np.zeros(len(each), dtype=np.int64)
    ties, width = kind.groups.shape
    tie[kind.groups] = np.arange(ties)[:, np.newaxis]
    place[kind.groups] = np.arange(width)
    inside = tie[group] >= 0
    row, group = row[inside], group[inside]
    part, of_part = np.unique(row * ties + tie[group], return_inverse=True)
    together = _smallest(kind, part % ties, of_part, place[group])
    apart = np.bincount(of_part, each[group], len(part))
    return np.bincount(part // ties, np.minimum(apart, together), rows)


def _smallest(kind: TieKind, tie: Ints, part: Ints, place: Ints) -> Ints:
    """For each part of a tie, the smallest published sum that contains all of its groups."""
    assert kind.values is not None
    usable = np.flatnonzero(np.all(kind.pattern.equations >= 0, axis=1))
    contains = sp.csr_array((kind.pattern.equations[usable] > 0).T.astype(np.int64))
    shape = (len(tie), contains.shape[0])
    taken = sp.csr_array((np.ones(len(part), np.int64), (part, place)), shape)
    shared = sp.coo_array(taken @ contains)
    all_in = shared.data == np.asarray(taken.sum(axis=1)).reshape(-1)[shared.row]
    smallest = np.full(len(tie), FAR)
    row, equation = shared.row[all_in], usable[shared.col[all_in]]
    np.minimum.at(smallest, row, kind.values[tie[row], equation])
    return smallest
