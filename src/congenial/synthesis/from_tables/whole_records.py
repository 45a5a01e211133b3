"""Whole records from a fitted distribution, with as little noise of their own as can be.

Independent draws would add noise of the order sqrt(n p) to every count. Systematic rounding adds
less than one record per cell: the expected counts of the first clique are laid end to end, and a
record is taken at u, u + 1, u + 2, ... for one uniform u. Further down the tree the same is done
within the records that share a cell of the separator, in random order, because given the separator
the rest is independent. Where `strata` are given, their whole numbers are kept exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.synthesis.from_tables.junction_tree import Axes, JunctionTree, Reals
from congenial.synthesis.from_tables.maximum_entropy import Fitted


@dataclass(frozen=True, eq=False)
class Strata:
    """Groups of cells of a table whose numbers of records are known: a group for each cell, and
    the records of each group.
    """

    axes: Axes
    group: Ints
    records: Ints


def draw_records(
    fitted: Fitted, records: int, rng: np.random.Generator, strata: Strata | None = None
) -> dict[str, Ints]:
    """A column of level numbers for each attribute, `records` long.

    The generator need not be secret: this is post-processing of what was measured. The first clique
    of the fit must hold the attributes of `strata`.
    """
    tree = fitted.tree
    groups = strata or Strata((), np.zeros(1, dtype=np.int64), np.array([records]))
    if int(groups.records.sum()) != records:
        raise StructureError(
            f"the groups have {int(groups.records.sum())} records together, not {records}.",
            remedy="Give as many records as the figures count.",
        )
    cells = _first_clique(tree, fitted.beliefs[0], groups, rng)
    columns = dict(zip(tree.cliques[0], _split(cells, tree.shape(tree.cliques[0])), strict=True))
    for i in range(1, len(tree.cliques)):
        columns |= _next_clique(tree, fitted.beliefs[i], i, columns, rng)
    order = rng.permutation(records)
    return {name: columns[name][order] for name in tree.sizes}


def _first_clique(
    tree: JunctionTree, beliefs: Reals, strata: Strata, rng: np.random.Generator
) -> Ints:
    """The first clique's cell of every record."""
    clique = tree.cliques[0]
    spread = tree.spread(strata.group.reshape(tree.shape(strata.axes)), strata.axes, 0)
    group: Ints = np.broadcast_to(spread, beliefs.shape).reshape(-1).astype(np.int64)
    order = np.argsort(group, kind="stable")
    weights = beliefs.reshape(-1)[order]
    number = len(strata.records)
    sums: Reals = np.bincount(group, weights=beliefs.reshape(-1), minlength=number).astype(float)
    _refuse_empty(sums, strata.records, clique)
    owner = np.repeat(np.arange(number), strata.records)
    taken = _systematic(weights, group[order], sums, owner, rng)
    return order[taken]


def _next_clique(
    tree: JunctionTree, beliefs: Reals, i: int, columns: dict[str, Ints], rng: np.random.Generator
) -> dict[str, Ints]:
    """The attributes that a clique adds, given those it shares with its parent."""
    shared = tree.separators[i]
    added = tuple(name for name in tree.cliques[i] if name not in shared)
    table = np.transpose(beliefs, [tree.cliques[i].index(n) for n in (*shared, *added)])
    table = table.reshape(int(np.prod(tree.shape(shared), dtype=np.int64)), -1)
    owner = _joined([columns[name] for name in shared], tree.shape(shared), _length(columns))
    order = np.lexsort((rng.random(len(owner)), owner))
    rows = np.repeat(np.arange(len(table)), table.shape[1])
    taken = _systematic(table.reshape(-1), rows, table.sum(axis=1), owner[order], rng)
    cells = np.empty_like(owner)
    cells[order] = taken % table.shape[1]
    return dict(zip(added, _split(cells, tree.shape(added)), strict=True))


def _systematic(
    weights: Reals, group: Ints, sums: Reals, owner: Ints, rng: np.random.Generator
) -> Ints:
    """For every record a cell of its group: positions (rank + u) / size on the group's weights.

    `group` of each cell and `owner` of each record ascend; u is one uniform for each group.
    """
    size = np.bincount(owner, minlength=len(sums))
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size)
    position = (rank + rng.random(len(sums))[owner]) / size[owner]
    shares = weights / np.where(sums[group] > 0, sums[group], 1.0)
    ends = np.cumsum(shares)
    starts = np.searchsorted(group, np.arange(len(sums)))
    before = np.where(starts > 0, ends[np.maximum(starts - 1, 0)], 0.0)
    last = np.searchsorted(group, np.arange(len(sums)), side="right") - 1
    cell = np.searchsorted(ends, before[owner] + position, side="right")
    cell = np.clip(cell, starts[owner], last[owner])
    return _on_possible(cell, weights, last[owner])


def _on_possible(found: Ints, weights: Reals, last: Ints) -> Ints:
    """Rounding at the end of a group may point at an empty cell: the one before it is meant."""
    stray = np.flatnonzero(weights[found] <= 0)
    possible = np.flatnonzero(weights > 0)
    if len(stray):
        at = np.searchsorted(possible, found[stray], side="right") - 1
        found[stray] = possible[np.maximum(at, 0)]
    return np.minimum(found, last)


def _refuse_empty(sums: Reals, records: Ints, clique: Axes) -> None:
    if np.any((sums <= 0) & (records > 0)):
        raise StructureError(
            f"the fit leaves no room for people whom a figure on {', '.join(clique)} counts.",
            remedy="Check that structural zeros and figures do not contradict each other.",
        )


def _length(columns: dict[str, Ints]) -> int:
    return len(next(iter(columns.values())))


def _joined(columns: Sequence[Ints], shape: tuple[int, ...], records: int) -> Ints:
    """One number for each combination of levels."""
    if not columns:
        return np.zeros(records, dtype=np.int64)
    return np.ravel_multi_index(tuple(columns), shape).astype(np.int64)


def _split(cells: Ints, shape: tuple[int, ...]) -> list[Ints]:
    """Inverse of `_joined`."""
    return [np.asarray(index, dtype=np.int64) for index in np.unravel_index(cells, shape)]
