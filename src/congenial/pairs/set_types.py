"""Differences of look-alikes as set partitions of the records that change, without their levels.

Two databases that differ in a records: a records leave (signs +), a enter (signs -). How far a
table of counts moves depends only on which of the 2a records share a cell of it, that is, on a set
partition of the records for every attribute and partition of its levels that occurs. A figure that
counts a margin completely makes the signs cancel in every one of its cells, hence in every cell of
anything coarser: set partitions of counted attributes are *balanced* (as many + as - in each part).

An attribute may be shown more finely than any figure counts it. There it is best for the loss if
those who leave and those who enter never share a cell and nothing else is told apart: with r and s
the counts of both at what is counted, ||T u||^2 = ||r||^2 + ||s||^2, and any other choice is at
most that, because splitting cells shrinks ||r|| and ||s||, and shared cells only subtract. So such
tables are taken at their counted part with the signs apart, and the number of levels of an
attribute never matters.

**Sums of numbers.** A table may sum a number of each record instead of counting it (a count sums
the number 1). Figures are about counts, so the records of a difference stay as they are *before*
those in one cell cancel: who leaves and who enters a cell may have different numbers. Every norm of
T w is convex in each of the 2a numbers, so the largest have every number at an end of its range:
each type is taken with every assignment of ends to its records. With x_r the signed number of
record r, ||T w||^2 = sum_{r,s} x_r x_s [same cell]. Where a table shows more than figures count, it
is best if records of x > 0 and of x < 0 never share a cell, by the argument above. Tables whose
numbers differ in sign (counts beside numbers on both sides of 0) cannot all have their best at
once: then every set partition of what no figure counts is listed, balanced or not.

What is listed here contains every difference there is. Whether a type occurs (blocks with two
levels, groups with enough people) is said by `occurs` where a simple test shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.data.arrays import Ints
from congenial.data.workload import Margin, Partition
from congenial.figures.cells import stretches
from congenial.figures.figures import Figures
from congenial.figures.people import Crossing, people_under
from congenial.pairs.figure_margins import FigureMargins

MOST_RECORDS = 5  # pairs of 2a records fit into the bits of one number
MOST_STATES = 1_000_000  # configurations held at once
MOST_NORMS = 4_000_000  # configurations x assignments of ends x tables

Masks = NDArray[np.uint64]


@dataclass(frozen=True)
class Seen:
    """A table as far as figures count its attributes; `apart`: it also shows more than they do."""

    margin: Margin
    apart: bool


@dataclass(frozen=True, eq=False)
class TypeNorms:
    """Rows are difference types, columns tables: ||T u||_2^2 and ||T u||_1."""

    squares: Ints
    absolutes: Ints


def list_types(
    figures: FigureMargins, tables: Sequence[Margin], a: int, ends: Ints | None = None
) -> TypeNorms | None:
    """Norms of all tables for every difference type of `a` replaced records; None if too many.

    `ends`: the numbers that a record may have, a row for each choice and a column for each table,
    which sums them; None: every table counts.
    """
    if ends is None:
        ends = np.ones((1, len(tables)), dtype=np.int64)
    if a > MOST_RECORDS or len(ends) ** (2 * a) * len(tables) > MOST_NORMS:
        return None
    if not tables:
        return TypeNorms(np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64))
    norms = None
    if _signs_differ(ends):
        norms = _norms_of(figures, [Seen(table, apart=False) for table in tables], a, ends)
    return norms or _norms_of(
        figures, [counted_part(figures, table_axes) for table_axes in tables], a, ends
    )


def _signs_differ(ends: Ints) -> bool:
    """Whether two tables have numbers of one sign for one record and of two for another."""
    signs = np.sign(ends)
    products = signs[:, :, None] * signs[:, None, :]
    return bool(np.any((products > 0).any(axis=0) & (products < 0).any(axis=0)))


def _norms_of(
    figures: FigureMargins, counted: Sequence[Seen], a: int, ends: Ints
) -> TypeNorms | None:
    """Norms of tables that are seen as far as figures count, or completely; None if too many."""
    assignments = len(ends) ** (2 * a)
    margins = list(dict.fromkeys([*figures.margins, *(part.margin for part in counted)]))
    states = _states(figures, margins, a)
    if states is None or len(states) * assignments * len(counted) > MOST_NORMS:
        return None
    norms, chosen = _Norms(a), np.array(list(product(range(len(ends)), repeat=2 * a)))
    columns = [
        norms.of(states[:, margins.index(part.margin)], part.apart, ends[chosen, b])
        for b, part in enumerate(counted)
    ]
    both = np.stack([np.stack(c, axis=2) for c in columns], axis=2)
    both = np.unique(both.reshape(-1, len(counted), 2), axis=0)
    return TypeNorms(both[:, :, 0], both[:, :, 1])


def counted_part(figures: FigureMargins, table: Margin) -> Seen:
    """The coarsening of a table to what figures count of each attribute.

    Of an attribute that is shown more finely, or across, the finest counted partition that the
    table still tells (the only choice where partitions nest; any choice is an upper bound).
    """
    partitions, apart = [], False
    for attribute, partition in enumerate(table.partitions):
        part = partition
        if not figures.cover(attribute, partition):
            apart = True
            counted = {margin.partitions[attribute] for margin in figures.margins}
            coarser = [coarse for coarse in counted if partition.refines(coarse)]
            whole = Partition.whole(len(partition.blocks))
            part = max(coarser, key=lambda coarse: (coarse.size, coarse.blocks), default=whole)
        partitions.append(part)
    return Seen(Margin(tuple(partitions)), apart)


# ---- configurations ------------------------------------------------------------------------------


def _states(figures: FigureMargins, margins: Sequence[Margin], a: int) -> Masks | None:
    """Which pairs of records share a cell of each margin (columns), for every configuration.

    Attributes are added one by one; a figure is imposed as soon as all its attributes are there.
    """
    used = [_used(margins, k) for k in range(len(figures.names))]
    order = sorted(
        (k for k, partitions in enumerate(used) if partitions), key=lambda k: (-len(used[k]), k)
    )
    state = np.full((1, len(margins)), _everything(a), dtype=np.uint64)
    for step, attribute in enumerate(order):
        counted = [figures.cover(attribute, partition) for partition in used[attribute]]
        most = MOST_STATES // len(state)
        options = _assignments(used[attribute], counted, a, first=step == 0, most=most)
        if options is None:
            return None
        table = np.array(options, dtype=np.uint64).reshape(len(options), -1)
        column = np.full((len(options), 1), _everything(a), dtype=np.uint64)
        at = [_position(used[attribute], margin.partitions[attribute]) for margin in margins]
        state = (state[:, None, :] & np.hstack([table, column])[None, :, at]).reshape(
            -1, len(margins)
        )
        done = set(order[: step + 1])
        for k, margin in enumerate(margins):
            if margin in figures.margins and _attributes(margin) <= done:
                state = state[_Norms(a).counted(state[:, k]) == 0]
        state = np.unique(state, axis=0)
    return state


def _used(margins: Sequence[Margin], attribute: int) -> list[Partition]:
    """Partitions of an attribute that occur, finest first; one block is left out."""
    occurring = {margin.partitions[attribute] for margin in margins}
    return sorted(
        (partition for partition in occurring if partition.size > 1),
        key=lambda partition: (-partition.size, partition.blocks),
    )


def _position(used: Sequence[Partition], partition: Partition) -> int:
    return used.index(partition) if partition.size > 1 else len(used)


def _attributes(margin: Margin) -> set[int]:
    return {k for k, partition in enumerate(margin.partitions) if partition.size > 1}


def _assignments(
    used: Sequence[Partition], counted: Sequence[bool], a: int, *, first: bool, most: int
) -> list[tuple[int, ...]] | None:
    """A set partition for each partition of the levels, coarser ones for coarser; balanced where
    figures count these.

    It has no more parts than there are blocks of levels. Records of a sign can be renumbered, so
    the very first set partition has a fixed form.
    """
    assignments: list[tuple[int, ...]] = [()]
    for k, partition in enumerate(used):
        finer = [i for i in range(k) if used[i].refines(partition)]
        possible = representatives(a) if first and not k else balanced_partitions(a)
        if not counted[k]:
            possible = all_partitions(a)
        choices = [mask for mask, parts in possible.items() if parts <= partition.size]
        assignments = [
            (*chosen, mask)
            for chosen in assignments
            for mask in choices
            if all(chosen[i] & mask == chosen[i] for i in finer)
        ]
        if len(assignments) > most:
            return None
    return assignments


# ---- balanced set partitions ---------------------------------------------------------------------


@lru_cache(maxsize=8)
def balanced_partitions(a: int) -> Mapping[int, int]:
    """All set partitions of a + and a - records with as many of both in each part.

    As masks of pairs that share a part, each with its number of parts.

    >>> len(balanced_partitions(2)), len(balanced_partitions(3))
    (3, 16)
    """
    return {
        _mask([*parts, *(parts[i] for i in order)]): max(parts) + 1
        for parts in _growth_strings(a)
        for order in permutations(range(a))
    }


@lru_cache(maxsize=8)
def all_partitions(a: int) -> Mapping[int, int]:
    """All set partitions of 2a records, each with its number of parts.

    >>> len(all_partitions(1)), len(all_partitions(2))
    (2, 15)
    """
    return {_mask(parts): max(parts) + 1 for parts in _growth_strings(2 * a)}


@lru_cache(maxsize=8)
def representatives(a: int) -> Mapping[int, int]:
    """One balanced set partition for each list of sizes of the parts."""
    by_sizes: dict[tuple[int, ...], int] = {}
    for parts in _growth_strings(a):
        sizes = tuple(sorted(np.bincount(parts).tolist()))
        by_sizes.setdefault(sizes, _mask([*parts, *parts]))
    return {mask: len(sizes) for sizes, mask in by_sizes.items()}


def _growth_strings(a: int) -> Iterator[tuple[int, ...]]:
    """Set partitions of a records as part numbers, each new part with the next number."""
    strings: list[tuple[int, ...]] = [()]
    for _ in range(a):
        strings = [(*s, part) for s in strings for part in range(max(s, default=-1) + 2)]
    return iter(strings)


def _pairs(a: int) -> list[tuple[int, int]]:
    return [(i, k) for k in range(2 * a) for i in range(k)]


def _mask(parts: Sequence[int]) -> int:
    """Bits of the pairs of records that share a part."""
    return sum(
        1 << bit for bit, (i, k) in enumerate(_pairs(len(parts) // 2)) if parts[i] == parts[k]
    )


def _everything(a: int) -> int:
    return (1 << len(_pairs(a))) - 1


class _Norms:
    """Norms of T w from the pairs of records that share a cell of T."""

    def __init__(self, a: int) -> None:
        self.a = a
        self.signs = np.repeat([1, -1], a)

    def counted(self, masks: Masks) -> Ints:
        """||T u||_2^2 of the counts, for each mask."""
        return self.of(masks, False, np.ones((1, 2 * self.a), dtype=np.int64))[0][:, 0]

    def of(self, masks: Masks, apart: bool, numbers: Ints) -> tuple[Ints, Ints]:
        """(||T w||_2^2, ||T w||_1) for each mask (rows) and each assignment of numbers to records;
        `apart`: signed numbers above and below 0 never share a cell.
        """
        unique, inverse = np.unique(masks, return_inverse=True)
        together, signed = self._together(unique).astype(np.int64), self.signs * numbers
        if apart:
            sides = (np.maximum(signed, 0), np.maximum(-signed, 0))
            squares = sum(np.einsum("xr,urs,xs->ux", side, together, side) for side in sides)
            absolutes = np.broadcast_to(np.abs(signed).sum(axis=1), squares.shape)
        else:
            net = np.einsum("urs,xs->uxr", together, signed)  # of the cell that each record is in
            squares = np.einsum("uxr,xr->ux", net, signed)
            sizes = together.sum(axis=2)[:, None, :]
            absolutes = np.rint((np.abs(net) / sizes).sum(axis=2)).astype(np.int64)
        inverse = inverse.reshape(-1)
        return np.asarray(squares)[inverse], np.asarray(absolutes)[inverse]

    def _together(self, masks: Masks) -> Any:
        """Which records share a cell, as one symmetric matrix per mask."""
        together = np.zeros((len(masks), 2 * self.a, 2 * self.a), dtype=bool)
        together[:, range(2 * self.a), range(2 * self.a)] = True
        for bit, (i, k) in enumerate(_pairs(self.a)):
            shared = (masks >> np.uint64(bit)) & np.uint64(1) == 1
            together[:, i, k] = together[:, k, i] = shared
        return together


# ---- moved at once ------------------------------------------------------------------------------
#
# Whether a people of one group can make one replacement that moves several tables at once.
#
# Then the difference type (2 a^2, ..., 2 a^2) of these tables occurs between conforming
# databases. The test is sufficient, and linear in the cells that figures mention: in every group
# of cells that the figures cannot tell apart, the first cell is compared with all others;
# attributes outside the figures change at the same time.


def occurs(figures: Figures, names: Sequence[str], tables: Sequence[Margin], a: int) -> bool:
    """Whether `a` people of one group are known to exist whose same replacement moves all tables.

    `tables` are over the attributes `names`, which contain all that the figures mention.
    """
    if figures.structure == "general":
        return False
    outside = [k for k, name in enumerate(names) if name not in figures.bases]
    inside = [k for k, name in enumerate(names) if name in figures.bases]
    together = all(_kept_apart([table.partitions[k] for table in tables]) for k in outside)
    rest = [table for table in tables if not (together and _shows(table, outside))]
    able = _holds(figures) >= a if figures.equalities else np.array([a == 1])
    if not np.any(able):
        return False
    return _changed_inside(figures, able, rest, inside)


def _shows(table: Margin, attributes: Sequence[int]) -> bool:
    return any(table.partitions[k].size > 1 for k in attributes)


def _kept_apart(partitions: Sequence[Partition]) -> bool:
    """Whether the first level and some other one are apart in all partitions of several blocks."""
    apart = [
        partition.array != partition.array[0] for partition in partitions if partition.size > 1
    ]
    return not apart or bool(np.any(np.all(apart, axis=0)))


def _changed_inside(
    figures: Figures,
    able: NDArray[np.bool_],
    tables: Sequence[Margin],
    inside: Sequence[int],
) -> bool:
    """Whether every table tells some cell of an able group apart from the first of its group."""
    atoms = figures.atoms
    first = np.maximum(figures.first_cells, 0)
    for cells in stretches(len(atoms)):
        group = np.maximum(atoms[cells], 0)
        moved = (atoms[cells] >= 0) & able[group]
        for table in tables:
            if not np.any(moved):
                break
            here, there = (_keys(figures, table, inside, at) for at in (cells, first[group]))
            moved &= here != there
        if np.any(moved):
            return True
    return False


def _keys(
    figures: Figures, table: Margin, inside: Sequence[int], cells: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cell of the table that some cells of the figures' attributes belong to."""
    key = np.zeros(len(cells), dtype=np.int64)
    for k, level in zip(inside, figures.cells.places(cells), strict=True):
        partition = table.partitions[k]
        key = key * partition.size + partition.array[level]
    return key


def _holds(figures: Figures) -> NDArray[np.float64]:
    """People that each group is known to be able to hold; 0 where figures do not tell."""
    groups = people_under(figures)
    people = np.where(np.isfinite(groups.people), groups.people, 0.0)
    for crossing in groups.crossings:
        people[crossing.block.atoms] = _holds_crossing(crossing)
    return people


def _holds_crossing(one: Crossing) -> NDArray[np.float64]:
    """An atom of complete one-way margins can hold as many as the smallest of its levels."""
    block = one.block
    if one.totals is None or block.features is None:
        return np.zeros(block.atoms.shape)
    if block.atoms.shape[1] != np.prod(block.levels):
        return np.zeros(block.atoms.shape)
    levels = zip(one.totals, block.features.T, strict=True)
    return np.asarray(np.min([total[:, level] for total, level in levels], axis=0), dtype=float)
