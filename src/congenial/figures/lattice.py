"""Exact algebra of figures on merged cells: which sets nest, what the rank is, what the totals
are.

Cells with equal columns in the figure matrix are one *atom*; all algebra runs on atoms, so its
size is that of the figures, not of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import lcm, prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from congenial.data.arrays import Ints
from congenial.figures.integers import echelon, rational_kernel, rational_solution

# ---- connected ----------------------------------------------------------------------------------
#
# Connected parts of a graph: sums that share cells, cells that share sums.


def connected(ends: tuple[Any, Any], nodes: int) -> NDArray[np.int64]:
    """The part of each of the nodes 0, 1, 2, ... of a graph whose edge i joins ends[0][i] and
    ends[1][i]; parts are numbered in the order of their first nodes.

    >>> connected(([0, 3], [2, 4]), 5).tolist()
    [0, 1, 0, 2, 2]
    """
    import scipy.sparse as sp  # where there is something to join, not at every start
    from scipy.sparse.csgraph import connected_components

    edges = sp.coo_matrix((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(nodes, nodes))
    return np.asarray(connected_components(edges, directed=False)[1], dtype=np.int64)


# ---- alike --------------------------------------------------------------------------------------
#
# Parts of figures that say the same: the structure of a thousand counties is that of a few.
#
# Figures on merged cells fall into connected parts, between which no figure runs: the counties,
# where every figure is by county. Parts with the same entries, in the order of their rows and
# columns, are one *kind*. Rank, blocks and solutions are worked out once for each kind. Whether
# two parts are of one kind is decided by comparing all of their entries, never by a digest of
# them.


ROUNDS = 8  # of passing labels along, before components are searched for one by one
KINDS_AT_ONCE = 16  # kinds of one size that are told apart by comparison with their first part
LINES_AT_ONCE = 2**16  # parts that are looked at together: a million would fill the memory


@dataclass(frozen=True, eq=False)
class PartKind:
    """Parts that say the same: one `matrix`, and the rows and columns of every part (one a line).

    Rows and columns are in ascending order. A column that no row touches is a part without rows.
    """

    matrix: sp.csr_matrix = field(repr=False)
    rows: Ints = field(repr=False)
    columns: Ints = field(repr=False)

    @property
    def parts(self) -> int:
        """How many parts are of this kind."""
        return len(self.columns)


@dataclass(frozen=True, eq=False)
class _Numbered:
    """Members (rows, or columns) of parts, part by part: the `order`, and each one's own place."""

    of_part: Ints
    parts: int

    @cached_property
    def order(self) -> Ints | None:
        """Members sorted by part; None where they are so already."""
        if np.all(self.of_part[1:] >= self.of_part[:-1]):
            return None
        return np.argsort(self.of_part, kind="stable")

    @cached_property
    def sizes(self) -> Ints:
        """Members of each part."""
        return np.bincount(self.of_part, minlength=self.parts)

    @cached_property
    def starts(self) -> Ints:
        """Where each part begins in that order."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def places(self) -> Ints:
        """Each member's place inside its part."""
        place = np.arange(len(self.of_part))
        place -= np.repeat(self.starts, self.sizes)
        if self.order is None:
            return place
        places = np.empty_like(place)
        places[self.order] = place
        return places

    def members(self, parts: Ints) -> Ints:
        """The members of parts of one size, one part a line."""
        size = int(self.sizes[parts[0]])
        at = self.starts[parts][:, np.newaxis] + np.arange(size)
        return np.asarray(at if self.order is None else self.order[at])


def kinds(matrix: sp.csr_matrix) -> list[PartKind]:
    """The connected parts of a matrix, those with equal entries together; rows without entries are
    left out.

    >>> found = kinds(sp.csr_matrix([[1, 1, 0, 0, 0], [0, 0, 2, 0, 0], [0, 0, 0, 1, 1]]))
    >>> [(one.matrix.toarray().tolist(), one.columns.tolist()) for one in found]
    [([[1, 1]], [[0, 1], [3, 4]]), ([[2]], [[2]])]
    """
    if not matrix.shape[1]:
        return []
    of_column, of_row = components(matrix)
    parts = int(of_column.max()) + 1
    entries = matrix.tocsc()
    entries.sort_indices()
    columns = _Numbered(of_column, parts)
    touched = np.flatnonzero(of_row >= 0)
    rows = _Numbered(of_row[touched], parts)
    place = np.full(matrix.shape[0], -1, dtype=np.int64)
    place[touched] = rows.places
    listed = []
    for same, said in _said(entries, columns, place, rows):
        taken = touched[rows.members(same)] if len(said) else np.zeros((len(same), 0), np.int64)
        shape = (taken.shape[1], int(columns.sizes[same[0]]))
        shared = sp.csr_matrix((said[:, 2], (said[:, 0], said[:, 1])), shape=shape, dtype=np.int64)
        listed.append(PartKind(shared, taken, columns.members(same)))
    return listed


def _said(
    entries: sp.csc_matrix, columns: _Numbered, place: Ints, rows: _Numbered
) -> Iterator[tuple[Ints, Ints]]:
    """Parts of one kind, and their entries (row, column, weight; one a line)."""
    filled = np.diff(entries.indptr)
    counts = np.bincount(columns.of_part, weights=filled, minlength=columns.parts).astype(np.int64)
    column = np.repeat(np.arange(entries.shape[1], dtype=entries.indices.dtype), filled)
    order = None
    if columns.order is not None:
        order = np.argsort(columns.of_part[column], kind="stable")
    starts = np.cumsum(counts) - counts
    sizes = np.stack([counts, columns.sizes, rows.sizes], axis=1)
    narrow = _narrowest(sizes, entries.data)
    for alike in equal_lines(sizes):
        size = int(counts[alike[0]])
        said = np.empty((len(alike), size, 3), dtype=narrow)
        for some in _stretches(len(alike)):
            at = starts[alike[some]][:, np.newaxis] + np.arange(size)
            at = at if order is None else order[at]
            said[some, :, 0] = place[entries.indices[at]]
            said[some, :, 1] = columns.places[column[at]]
            said[some, :, 2] = entries.data[at]
        for same in equal_lines(said.reshape(len(alike), -1)):
            yield alike[same], said[same[0]].astype(np.int64)


def _narrowest(*numbers: Ints) -> np.dtype[Any]:
    """The type of fewest bytes that holds all numbers."""
    low = min(int(some.min(initial=0)) for some in numbers)
    high = max(int(some.max(initial=0)) for some in numbers)
    return np.min_scalar_type(min(low, -high - 1))


def _stretches(lines: int) -> Iterator[slice]:
    """All lines, some at a time: what is worked out of them takes little memory."""
    return (slice(at, at + LINES_AT_ONCE) for at in range(0, lines, LINES_AT_ONCE))


def equal_lines(lines: Any) -> Iterator[Ints]:
    """Numbers of equal lines, group by group."""
    left = np.arange(len(lines))
    for _ in range(KINDS_AT_ONCE):
        stretches = _stretches(len(left))
        alike = [np.all(lines[left[some]] == lines[left[0]], axis=1) for some in stretches]
        same = np.concatenate(alike)
        yield left[same]
        left = left[~same]
        if not len(left):
            return
    of_line = np.unique(lines[left], axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(of_line, kind="stable")
    yield from np.split(left[order], np.flatnonzero(np.diff(of_line[order])) + 1)


def components(matrix: sp.csr_matrix) -> tuple[Ints, Ints]:
    """Connected part of each column and of each row (-1 for a row without entries), numbered in the
    order of their first columns.
    """
    filled = np.diff(matrix.indptr) > 0
    rows = matrix if filled.all() else matrix[np.flatnonzero(filled)]
    of_row = np.full(matrix.shape[0], -1, dtype=np.int64)
    label = _passed_along(rows)
    if label is None:
        label = _searched(rows)
    is_first = label == np.arange(len(label))
    of_column = (np.cumsum(is_first) - 1)[label]
    of_row[filled] = of_column[rows.indices[rows.indptr[:-1]]]
    return of_column, of_row


def _passed_along(rows: sp.csr_matrix) -> Any:
    """Smallest column of each column's part, by passing it along rows; None if that takes long."""
    label = np.arange(rows.shape[1], dtype=rows.indices.dtype)
    there = np.ones(rows.nnz, dtype=np.int8)  # where entries are, whatever they are
    columns = sp.csr_matrix((there, rows.indices, rows.indptr), shape=rows.shape).tocsc()
    touched = np.flatnonzero(np.diff(columns.indptr))
    for _ in range(ROUNDS):
        least = np.minimum.reduceat(label[rows.indices], rows.indptr[:-1])
        now = label.copy()
        now[touched] = np.minimum.reduceat(least[columns.indices], columns.indptr[touched])
        now = now[now]
        if np.array_equal(now, label):
            return label
        label = now
    return None


def _searched(rows: sp.csr_matrix) -> Ints:
    """Smallest column of each column's part, by searching the graph of rows and columns."""
    count, size = rows.shape
    row = np.repeat(np.arange(count), np.diff(rows.indptr))
    part = connected((row, count + rows.indices), count + size)[count:]
    first = np.full(int(part.max()) + 1, size, dtype=np.int64)
    np.minimum.at(first, part, np.arange(size))
    return np.asarray(first[part])


# ---- nested sets, ranks and solutions --------------------------------------------------------

LARGEST_INVERSE = 2_000_000  # entries of a matrix that solves the figures of one kind of part
_MOST_SUMS = 500  # that are fitted one after the other
_ROUNDS = 8
_ONE_BY_ONE = 20  # parts of a kind whose sums are fitted in a last step each
_FITTED = 1e-9  # of the largest sum: nearer than a linear programme is solved


def laminar(matrix: sp.csr_matrix) -> tuple[Ints, Ints] | None:
    """For nested or disjoint sets: (each row's parent row, each column's innermost row); -1 for
    none.

    Rows are visited from large to small; a row nests if all its columns have the same innermost row
    so far. Returns None when two rows cross or a weight is not 1. Equal rows nest in each other.
    """
    if not _is_zero_one(matrix):
        return None
    matrix = matrix.sorted_indices()
    sizes = np.diff(matrix.indptr)
    innermost = np.full(matrix.shape[1], -1, dtype=np.int64)
    parents = np.full(matrix.shape[0], -1, dtype=np.int64)
    for size in np.unique(sizes[sizes > 0])[::-1]:
        rows = np.flatnonzero(sizes == size)
        atoms = matrix.indices[matrix.indptr[rows][:, np.newaxis] + np.arange(size)]
        if not _nest(rows, atoms, parents, innermost):
            return None
    return parents, innermost


def _nest(rows: Ints, atoms: Ints, parents: Ints, innermost: Ints) -> bool:
    """Enter rows of one size, whose sorted columns are `atoms`, below those entered before; False
    if one crosses another. Two rows of one size are equal, disjoint, or cross.
    """
    owners = innermost[atoms]
    if np.any(owners != owners[:, :1]):
        return False
    order = np.argsort(atoms[:, 0], kind="stable")
    again = np.r_[False, np.diff(atoms[order, 0]) == 0]  # begins as the row before it does
    repeats = np.flatnonzero(again)
    if np.any(atoms[order[repeats]] != atoms[order[repeats - 1]]):
        return False
    distinct = atoms[order[~again]]
    if len(np.unique(distinct)) != distinct.size:
        return False
    parents[rows[order]] = owners[order, 0]
    parents[rows[order[repeats]]] = rows[order[repeats - 1]]
    last = np.r_[~again[1:], True]
    innermost[atoms[order[last]]] = rows[order[last], np.newaxis]
    return True


def rank(matrix: sp.csr_matrix) -> int:
    """Exact rank over the rationals: the ranks of its connected parts, once for each kind of them.

    Combinatorial for nested sets and for two partitions, so that a million cells are no problem;
    exact sparse elimination otherwise. A row of ones over all columns, which would join the parts,
    is looked at by itself: it follows from the others if it does so in every part.
    """
    rows, joined = without_ones(matrix)
    parts = kinds(rows)
    ranks = [_rank(part.matrix) for part in parts]
    total = sum(own * part.parts for own, part in zip(ranks, parts, strict=True))
    more = joined and any(
        _rank(with_ones(part.matrix)) > own for own, part in zip(ranks, parts, strict=True)
    )
    return total + int(more)


def tells_sum(matrix: sp.csr_matrix) -> bool:
    """Whether the sum of all columns follows from the rows: it does if it does so in every part."""
    rows, joined = without_ones(matrix)
    parts = (kind_of_part.matrix for kind_of_part in kinds(rows))
    return joined or all(_rank(with_ones(part)) == _rank(part) for part in parts)


def ranks_of_first(matrix: sp.csr_matrix, ends: Ints) -> Ints:
    """Rank of the rows before each end."""
    ranks = np.zeros(len(ends), dtype=np.int64)
    for part_kind in kinds(matrix):
        part = np.searchsorted(
            ends, part_kind.rows, side="right"
        )  # the part of rows each row is in
        for same in equal_lines(part):
            for k in range(len(ends)):
                rows = part_kind.matrix[np.flatnonzero(part[same[0]] <= k)]
                ranks[k] += len(same) * rank(rows)
    return ranks


def without_ones(matrix: sp.csr_matrix) -> tuple[sp.csr_matrix, bool]:
    """The rows other than those of ones over all columns, and whether there are such rows."""
    size = matrix.shape[1]
    whole = np.flatnonzero(np.diff(matrix.indptr) == size) if size else np.zeros(0, np.int64)
    ones = [i for i in whole if np.all(matrix.data[matrix.indptr[i] : matrix.indptr[i + 1]] == 1)]
    if not ones:
        return matrix, False
    return matrix[np.setdiff1d(np.arange(matrix.shape[0]), ones)], True


def with_ones(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """The rows and one of ones."""
    ones = sp.csr_matrix(np.ones((1, matrix.shape[1]), dtype=np.int64))
    return sp.vstack([matrix, ones], format="csr")


def _rank(matrix: sp.csr_matrix) -> int:
    """Exact rank of one connected part."""
    if matrix.shape[0] == 0:
        return 0
    nested = laminar(matrix)
    if nested is not None:
        # A nested family spans the indicators of "a set without its children", one per innermost
        # row.
        innermost = nested[1]
        return len(np.unique(innermost[innermost >= 0]))
    sides = partitions(matrix)
    if sides is not None and sides.shape[1] == 2:
        # Incidence matrix of a bipartite graph: vertices minus connected components.
        return int(matrix.shape[0] - bipartite_components(sides, matrix.shape[0])[0])
    if sides is not None and is_grid(sides):
        return int(matrix.shape[0] - sides.shape[1] + 1)
    return len(echelon(matrix))


def bipartite_components(sides: Ints, rows: int) -> tuple[int, Ints]:
    """Connected components of the graph whose vertices are the rows, its edges the columns."""
    of_row = connected((sides[:, 0], sides[:, 1]), rows)
    return int(of_row.max(initial=-1)) + 1, of_row


def is_grid(sides: Ints) -> bool:
    """Whether the columns are all combinations of the rows of each side, once each."""
    levels = [len(np.unique(side)) for side in sides.T]
    return len(sides) == prod(levels) and len(np.unique(sides, axis=0)) == len(sides)


def _is_zero_one(matrix: sp.csr_matrix) -> bool:
    return bool(np.all(matrix.data == 1))


def partitions(matrix: sp.csr_matrix) -> Ints | None:
    """If the rows are p partitions of the columns, one after another: each column's row on each
    side.

    Every column is then in exactly one row of each partition. None otherwise.
    """
    columns = matrix.tocsc()
    sizes = np.diff(columns.indptr)
    if not _is_zero_one(matrix) or len(sizes) == 0 or np.any(sizes != sizes[0]) or sizes[0] == 0:
        return None
    sides = columns.indices.reshape(len(sizes), -1).astype(np.int64)
    apart = all(sides[:, k].max() < sides[:, k + 1].min() for k in range(sides.shape[1] - 1))
    return sides if apart else None


def atom_totals(matrix: sp.csr_matrix, values: Ints) -> Ints | None:
    """The unique atom totals x with `matrix @ x = values`, or None when there is no whole solution.

    Needs full column rank. The candidate is verified in integers, so a wrong one cannot pass.
    """
    x = np.zeros(matrix.shape[1], dtype=np.int64)
    for part in kinds(matrix):
        totals = _whole_totals(part.matrix, values[part.rows])
        if totals is None:
            return None
        x[part.columns] = totals
    return x if np.array_equal(matrix @ x, values) else None


def _whole_totals(matrix: sp.csr_matrix, values: Ints) -> Ints | None:
    """Candidates for the atom totals of parts of one kind, whose figures are the lines of values;
    None if some are not whole.
    """
    nested = laminar(matrix)
    if nested is not None:
        parents, innermost = nested
        remaining = values.astype(np.int64).copy()  # a set's total minus what its children hold
        children = np.flatnonzero(parents >= 0)
        np.subtract.at(remaining.T, parents[children], values.T[children])
        return remaining[:, innermost]
    solved = _solved(matrix, values)
    if solved is not None:
        x, divisor = solved
        return None if np.any(x % divisor) else x // divisor
    solutions = [rational_solution(matrix, line) for line in values]
    if any(value.denominator != 1 for line in solutions for value in line):
        return None
    return np.array([[int(value) for value in line] for line in solutions], dtype=np.int64)


def _solved(matrix: sp.csr_matrix, values: Ints) -> tuple[Ints, int] | None:
    """Some solution for each line of values, as whole numbers over one divisor; None if too large.

    Elimination beside an identity matrix gives one matrix that solves every part of a kind. Whether
    a line has a solution at all is for the caller to see.
    """
    rows, columns = matrix.shape
    if rows * columns > LARGEST_INVERSE:
        return None
    beside = sp.hstack([matrix, sp.identity(rows, dtype=np.int64)], format="csr")
    form = {pivot: row for pivot, row in echelon(beside).items() if pivot < columns}
    divisor = lcm(*(value.denominator for row in form.values() for value in row.values()))
    weights = [
        (pivot, column - columns, int(value * divisor))
        for pivot, row in form.items()
        for column, value in row.items()
        if column >= columns
    ]
    largest = max((abs(weight) for _, _, weight in weights), default=0)
    if largest * int(np.abs(values).max(initial=0)) * rows >= 2**62:
        return None
    inverse = np.zeros((columns, rows), dtype=np.int64)
    for pivot, row_number, weight in weights:
        inverse[pivot, row_number] = weight
    return values.astype(np.int64) @ inverse.T, divisor


def solution(matrix: sp.csr_matrix, values: Ints) -> Any:
    """Some real x with `matrix @ x = values`; nothing is promised about its signs."""
    x = np.zeros(matrix.shape[1])
    for part in kinds(matrix):
        x[part.columns] = solution_lines(part.matrix, values[part.rows])
    return x


def solution_lines(matrix: sp.csr_matrix, values: Ints) -> Any:
    """Some real x with `matrix @ x = value` for each line of values, one a line."""
    if not matrix.shape[0]:
        return np.zeros((len(values), matrix.shape[1]))
    sides = partitions(matrix)
    if sides is not None and (sides.shape[1] == 2 or is_grid(sides)):
        people = np.maximum(values[:, np.unique(sides[:, 0])].sum(axis=1, keepdims=True), 1.0)
        share = people * np.prod([values[:, side] / people for side in sides.T], axis=0)
        if np.allclose((matrix @ share.T).T, values, atol=0.1, rtol=0):
            return share  # margins of one table: as if independent
    solved = _solved(matrix, values)
    if solved is not None:
        return solved[0] / solved[1]
    return np.array([[float(x) for x in rational_solution(matrix, line)] for line in values])


def kernel_rows(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Integer vectors, one per row, that span { z : matrix @ z = 0 } over the rationals."""
    rows, columns, data, start = [], [], [], 0
    for part in kinds(matrix):
        moves = rational_kernel(part.matrix).tocoo()
        numbers = start + np.arange(part.parts * moves.shape[0]).reshape(part.parts, -1)
        rows.append(numbers[:, moves.row].reshape(-1))
        columns.append(part.columns[:, moves.col].reshape(-1))
        data.append(np.tile(moves.data, part.parts))
        start += part.parts * moves.shape[0]
    if not rows:
        return sp.csr_matrix((0, matrix.shape[1]), dtype=np.int64)
    at = (np.concatenate(rows), np.concatenate(columns))
    return sp.csr_matrix((np.concatenate(data), at), shape=(start, matrix.shape[1]), dtype=np.int64)


def feasible(matrix: sp.csr_matrix, low: Any, high: Any) -> bool:
    """Whether some real x >= 0 has low <= matrix @ x <= high, by linear programming.

    Connected parts whose exact sums are fitted at once are left out: of a million areas a solver
    would see few, and it takes long to load.
    """
    empty = np.diff(matrix.indptr) == 0
    if np.any(low[empty] > 0) or np.any(high[empty] < 0):
        return False
    rows, columns = _unfitted(matrix, low, high)
    if not len(rows):
        return True
    from scipy.optimize import LinearConstraint, milp

    left = matrix[rows][:, columns].astype(float)
    programme = milp(
        np.zeros(len(columns)), constraints=LinearConstraint(left, low[rows], high[rows])
    )
    return bool(programme.status != 2)  # 2: proved infeasible


def _unfitted(matrix: sp.csr_matrix, low: Any, high: Any) -> tuple[Ints, Ints]:
    """Rows and columns of the connected parts that fitting does not settle."""
    rows, columns = ([np.zeros(0, dtype=np.int64)] for _ in range(2))
    for part in kinds(matrix):
        settled = np.all(low[part.rows] == high[part.rows], axis=1)
        settled[settled] = fitted_lines(part.matrix, high[part.rows[settled]])
        rows.append(part.rows[~settled].reshape(-1))
        columns.append(part.columns[~settled].reshape(-1))
    return np.sort(np.concatenate(rows)), np.sort(np.concatenate(columns))


def fitted_lines(matrix: sp.csr_matrix, sums: Any) -> Any:
    """For each line of sums whether a few rounds of proportional fitting find x >= 0 with them.

    Sets in one another are fitted with what is left of the larger: plain sums that cross, such as
    people, women and voters of an area, then fit in one round. False says nothing: there may be too
    many sums, weights, or slow progress.

    >>> crossing = sp.csr_matrix([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0]])
    >>> fitted_lines(crossing, np.array([[9, 5, 6], [9, 5, 0], [9, 5, 10]])).tolist()
    [True, True, False]
    """
    fitted = np.full(len(sums), not matrix.shape[0])
    if not 0 < matrix.shape[0] <= _MOST_SUMS or np.any(matrix.data != 1):
        return fitted
    sets, totals = _with_rests(matrix, sums)
    left = np.flatnonzero(np.all(totals >= 0, axis=1))
    x = np.ones((len(left), matrix.shape[1]))
    for _ in range(_ROUNDS):
        for place, total in zip(sets, totals[left].T, strict=True):
            now = x[:, place].sum(axis=1)
            x[:, place] *= np.divide(total, now, out=np.zeros(len(x)), where=now > 0)[:, np.newaxis]
        off = np.abs(x @ matrix.T - sums[left]).max(axis=1, initial=0)
        done = off <= _FITTED * (1 + sums[left].max(axis=1, initial=0))
        fitted[left[done]] = True
        left, x = left[~done], x[~done]
    few = left[:_ONE_BY_ONE]
    fitted[few] = [_fitted_last(matrix, *pair) for pair in zip(x, sums[few], strict=False)]
    return fitted


def _with_rests(matrix: sp.csr_matrix, sums: Any) -> tuple[list[Ints], Any]:
    """The columns of each row, and of what each leaves of the smallest row that holds it; with
    their sums, one line for each line of sums.
    """
    sets = np.split(matrix.indices, matrix.indptr[1:-1])
    overlap = (matrix @ matrix.T).toarray()
    size = np.diff(matrix.indptr)
    larger = (overlap == size[:, np.newaxis]) & (size > size[:, np.newaxis])
    inside = np.flatnonzero(larger.any(axis=1))
    holder = np.argmin(np.where(larger, size, size.max(initial=0) + 1), axis=1)[inside]
    rests = [np.setdiff1d(sets[b], sets[a]) for a, b in zip(inside, holder, strict=True)]
    order = [*range(len(sets))]
    for number, row in enumerate(inside):  # a set and its rest come one after the other
        order.insert(order.index(int(row)) + 1, len(sets) + number)
    totals = np.concatenate([sums, sums[:, holder] - sums[:, inside]], axis=1)
    everything = [*sets, *rests]
    return [everything[i] for i in order], totals[:, order]


def _fitted_last(matrix: sp.csr_matrix, x: Any, sums: Any) -> bool:
    """Whether sharing out what is left in proportion to x gives these sums, and nothing below 0."""
    spread = matrix.multiply(x).toarray()
    x = x + np.linalg.lstsq(spread @ matrix.T.toarray(), sums - matrix @ x, rcond=None)[0] @ spread
    off = np.abs(matrix @ x - sums).max()
    return bool(x.min() >= 0 and off <= _FITTED * (1 + sums.max()))
