"""How far several tables can move at once between look-alike databases: maximal difference types.

The joint loss of independent noise on several tables is linear in what the noise is: zCDP
rho = (1/2) sup_u sum_b p_b ||T_b u||_2^2, pure epsilon = sup_u sum_b eps_b ||T_b u||_1. So all that
the pairs of look-alikes contribute is the set of vectors (||T_b u||^2)_b, and of those only the
maximal ones. Three ways to find them, the first that succeeds is taken:

1. *set partitions* (`set_types`): figures that are full margins; cost independent of the levels.
   Exact where one replacement moves every table and some group has enough people for it.
2. *listing* of every difference with its levels (`public.differences`), for small domains: figures
   of any kind, bounds, structural zeros, groups of known size.
3. *bound*: ||T_b u||^2 <= 2 a^2, for T_b u = r - s with r, s >= 0 of sum a; 0 for tables that the
   figures tell. The supremum over single replacements that the figures *allow*, times a^2, is no
   bound: two margins of a 2 x 2 table allow no single replacement, but two at a time.

A table may sum a number v in [L, U] of every person instead of counting people. Exact figures are
about counts, and restrict no sum. The first way then takes every type with every number at L or U,
and the bounds are, with M = max(|L|, |U|) and a >= 1 even where the figures leave one table,

    ||T_b w||_1 <= 2 a M,      ||T_b w||_2^2 <= a^2 max(2 M^2, (U - L)^2),

since r and s are sums of a numbers, and one person's numbers in one cell differ by up to U - L
(more than sqrt 2 M where L < 0 < U). A table whose *counts* the figures tell moves less, a (U - L)
and a^2 (U - L)^2: nobody enters or leaves a cell, so every difference is one of numbers.

Where the numbers of a unit with several rows are scaled down to a cap V in all, a unit adds sums s
with ||s||_1 <= V. With a units that differ, 2 a V and a^2 max(2 V^2, R^2), R = V for numbers on one
side of 0 and 2 V otherwise, whatever the figures; never by the rows b that differ, because one more
row of a unit scales all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from itertools import product as all_of
from math import gcd
from typing import Literal

import numpy as np

from congenial.data.arguments import takes
from congenial.data.arrays import Ints
from congenial.data.magnitude import Magnitude
from congenial.data.rational import Number
from congenial.data.workload import Margin, Partition, Workload
from congenial.errors import GuaranteeError
from congenial.figures.statements import total
from congenial.pairs.differences import LARGEST_DOMAIN, Differences, product
from congenial.pairs.figure_margins import FigureMargins, figure_margins
from congenial.pairs.pairs import Adjacency, Supremum
from congenial.pairs.set_types import TypeNorms, list_types, occurs

Method = Literal["set partitions", "listing", "bound"]
Vector = tuple[int, ...]  # one norm per table
CHUNK = 20_000  # differences whose norms are worked out at a time


@dataclass(frozen=True)
class DifferenceTypes:
    """Maximal vectors of norms, one entry per table of the workload, with their footing.

    `squares` bound ||T_b u||_2^2 and `absolutes` ||T_b u||_1, of tables of sums in units of
    `units[b]` steps of the number. `exact`: every vector occurs between
    two conforming databases; otherwise no pair exceeds them, and `reason` says why some may not
    occur. `listed`: distinct types among which the maximal ones were found. `occurring`: some
    maximal vectors that are known to occur even where others are not (those with only 0 and the
    largest norms): a loss that one of them attains is exact.
    """

    tables: tuple[tuple[str, ...], ...]
    records: int
    squares: tuple[tuple[int, ...], ...]
    absolutes: tuple[tuple[int, ...], ...]
    exact: bool
    method: Method
    reason: str
    listed: int
    occurring: frozenset[tuple[int, ...]] = frozenset()
    units: tuple[int, ...] = ()

    def occurs(self, norms: tuple[int, ...]) -> bool:
        """Whether a maximal vector is known to be that of a pair of look-alikes."""
        return self.exact or norms in self.occurring

    @property
    def footing(self) -> str:
        """In words: "exact" or "upper bound"."""
        return "exact" if self.exact else "upper bound"

    @property
    def words(self) -> str:
        """Number of maximal types, footing, method and reason."""
        kinds = f"{len(self.squares)} maximal difference type{'s' * (len(self.squares) != 1)}"
        occurring = sum(self.occurs(norms) for norms in self.squares)
        footing = self.footing
        if not self.exact and occurring:
            footing = f"{occurring} known to occur, {len(self.squares) - occurring} upper bounds"
        return f"{kinds} of {self.listed} ({footing}, by {self.method}): {self.reason}"


class NumberEnds:
    """The numbers that one record may add to each table: 1 where it counts, and the ends of a
    number's range where it sums one.

    One column that two tables cut at different bounds has all their ends. Rounded to different
    steps, derived in another way, or with another number for those who have none (which may lie
    anywhere within the bounds), it is taken as two numbers, which is an upper bound (`split`). Of
    bounds by class (`Magnitude.within`) a
    record has one class, and is 0 in the sums of all others. A public shift is taken off each
    number (`Magnitude.shift`). Numbers are divided by what those of a table have in common
    (`units`), so that norms are small whole numbers.
    """

    def __init__(self, numbers: Sequence[Magnitude | None]) -> None:
        grids = dict.fromkeys(_grid(number) for number in numbers if number is not None)
        choices = []
        for grid in grids:
            same = [number for number in numbers if number is not None and _grid(number) == grid]
            ends = {
                (number.within, end) for number in same for end in (number.lowest, number.highest)
            }
            choices.append(sorted(ends, key=str))
        rows = []
        for chosen in all_of(*choices):
            at = dict(zip(grids, chosen, strict=True))
            rows.append([1 if number is None else _cut(at, number) for number in numbers])
        self.split = len(grids) > len({grid[0] for grid in grids})
        self.by_class = any(number.within for number in numbers if number is not None)
        caps = [
            None if number is None or number.cap is None else int(number.cap / number.step)
            for number in numbers
        ]
        columns = zip(zip(*rows, strict=True), caps, strict=True)
        self.units = tuple(gcd(*column, cap or 0) or 1 for column, cap in columns)
        self.caps = [cap and cap // unit for cap, unit in zip(caps, self.units, strict=True)]
        self.rows = [
            [value // unit for value, unit in zip(row, self.units, strict=True)] for row in rows
        ]

    @property
    def array(self) -> Ints | None:
        """A row for each choice; None where squares of sums would not fit into 64 bits."""
        if max((abs(value) for row in self.rows for value in row), default=0) > 2**27:
            return None
        return np.array(self.rows, dtype=np.int64)

    @property
    def counts(self) -> bool:
        """Whether every table counts."""
        return all(value == 1 for row in self.rows for value in row) and len(self.rows) == 1

    def largest(
        self, a: int, settled: Sequence[bool], differ: int = 0
    ) -> tuple[list[int], list[int]]:
        """Bounds of both norms of each table if `a` records are replaced; `settled`: whether the
        figures tell the table's counts; `differ`: the units that differ, for numbers with a cap.
        """
        squares, absolutes = [], []
        columns = zip(zip(*self.rows, strict=True), settled, self.caps, strict=True)
        for column, fixed, cap in columns:
            spread, most = max(column) - min(column), max(map(abs, column))
            if cap is not None:
                signed = min(column) < 0 < max(column)
                squares.append((4 if signed else 2) * (differ * cap) ** 2)
                absolutes.append(2 * differ * cap)
                continue
            squares.append(a * a * (spread**2 if fixed else max(2 * most**2, spread**2)))
            absolutes.append(a * spread if fixed else 2 * a * most)
        return squares, absolutes

    def entering(self, rows: int) -> tuple[list[int], list[int]]:
        """The same if so many records are added or removed."""
        columns = zip(zip(*self.rows, strict=True), self.caps, strict=True)
        all_rows = [(rows * max(map(abs, column)), cap) for column, cap in columns]
        most = [number if cap is None else min(number, cap) for number, cap in all_rows]
        return [number**2 for number in most], most


Grid = tuple[str, Number, str, Number | None, str]
End = tuple[tuple[str, str] | None, int]  # of a number of that class


def _grid(number: Magnitude) -> Grid:
    """What numbers have in common of which a record has one: column, step, what its class is by,
    what it is where there is none, how it is derived.
    """
    by = "" if number.within is None else number.within[0]
    return number.column, number.step, by, number.missing, number.origin


def _without_idle_cap(adjacency: Adjacency, number: Magnitude | None) -> Magnitude | None:
    """A number whose cap cuts no unit is one without a cap: its price is that of rows."""
    most_rows = getattr(adjacency, "max_rows", None)
    if number is None or number.cap is None or most_rows is None:
        return number
    largest = max(abs(number.lowest), abs(number.highest)) * number.step
    idle = number.cap >= most_rows * largest
    return replace(number, cap=None) if idle else number


def _cut(at: dict[Grid, End], one: Magnitude) -> int:
    within, end = at[_grid(one)]
    return min(max(end, one.lowest), one.highest) - one.offset if within == one.within else 0


@takes(adjacency=Adjacency, workload=Workload)
def difference_types(
    adjacency: Adjacency, workload: Workload, numbers: Sequence[Magnitude | None] | None = None
) -> DifferenceTypes:
    """The maximal difference types of a workload's tables under an adjacency.

    `numbers`: what each table sums, None for one that counts; without it, all of them count.

    >>> from congenial.data.schema import Schema
    >>> from congenial.pairs.adjacency import ReplaceOne
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["0", "1"]}})
    >>> work = Workload.of(schema, [["sex", "ill"], ["ill"], []])
    >>> difference_types(ReplaceOne(schema), work).squares
    ((2, 2, 0),)
    >>> cost = Magnitude.of("cost", [-50, 100])
    >>> difference_types(ReplaceOne(schema), work, [cost] * 3).squares  # in units of 50 squared
    ((9, 9, 9),)
    """
    asked = numbers or [None] * len(workload.tables)
    ends = NumberEnds([_without_idle_cap(adjacency, number) for number in asked])
    types = _types(adjacency, workload, ends)
    return replace(types, exact=False, occurring=frozenset()) if ends.split else types


def _types(adjacency: Adjacency, workload: Workload, ends: NumberEnds) -> DifferenceTypes:
    if adjacency.several_rows:
        return _several_rows(adjacency, workload, ends)
    if any(ends.caps) and not adjacency.any_rows:
        raise GuaranteeError(
            "numbers with a cap for all rows of a unit are priced for units with several rows.",
            remedy="Leave out cap: every person has one number.",
        )
    moves = adjacency.moves
    if moves is None:
        return _rows(adjacency, workload, ends)
    names = _domain(adjacency, workload)
    figures = figure_margins(adjacency.figures, names, people_kept=True)
    tables = [widened(margin, workload.axes, names, workload) for margin in workload.margins]
    array = ends.array
    norms = None if array is None else list_types(figures, tables, moves, array)
    if norms is not None:
        occurring = _occurring(adjacency, figures, norms, tables, ends)
        reason = _doubt(adjacency, figures, norms, occurring)
        if not reason:
            why = f"{moves} people of one group make one replacement that moves every open table"
            if not ends.counts:
                why += ", or all change their number in one cell"
            if not norms.squares.any():
                why = "the exact figures already give every table"
            return _result(workload, norms, True, "set partitions", why, adjacency, ends)
    listed = _listed(adjacency, workload, ends) if ends.counts else None
    if listed is not None:
        return listed
    if norms is not None:
        bounded = _result(workload, norms, False, "set partitions", reason, adjacency, ends)
        return replace(bounded, occurring=occurring)
    settled = [figures.settle(table) for table in tables]
    norm = "2 a^2" if ends.counts else "the largest norm"
    why = f"too many difference types at {moves} records: {norm} for every table left open"
    return _uniform(adjacency, workload, ends.largest(moves, settled), why, ends)


Measured = tuple[tuple[str, ...], Fraction, Magnitude | None]  # axes, weight, what is summed


def joint_norm(adjacency: Adjacency, tables: Sequence[Measured], *, square: bool) -> Supremum:
    """sup over pairs of `sum_i w_i ||T_i w||_2^2` (`square`), or of l1 norms, where tables count
    people or sum a number, in steps of it.

    Counts and sums of one population move together: the supremum is over both at once, and never
    above those of the counts and of the sums, added.
    """
    counts = [(names, weight) for names, weight, number in tables if number is None]
    sums = [table for table in tables if table[2] is not None]
    of_counts = adjacency.joint_l2_squared if square else adjacency.joint_l1
    if not sums:
        return of_counts(counts)
    together = over_types(adjacency, tables, square)
    if not counts:
        return together
    apart = of_counts(counts).value + over_types(adjacency, sums, square).value
    return together if together.value <= apart else replace(together, value=apart, exact=False)


def over_types(adjacency: Adjacency, tables: Sequence[Measured], square: bool) -> Supremum:
    """The largest loss of a maximal type; exact if that type is known to occur."""
    types = _cached(adjacency, tuple((names, number) for names, _, number in tables))
    by = "closed form" if types.method == "bound" else "enumeration"
    power = 2 if square else 1
    weights = [
        weight * unit**power for (_, weight, _), unit in zip(tables, types.units, strict=True)
    ]

    def loss(vector: Vector) -> Fraction:
        return sum((w * norm for w, norm in zip(weights, vector, strict=True)), Fraction(0))

    worst = max(types.squares if square else types.absolutes, key=loss)
    return Supremum(loss(worst), types.occurs(worst), by)


@lru_cache(maxsize=64)
def _cached(
    adjacency: Adjacency, tables: tuple[tuple[tuple[str, ...], Magnitude | None], ...]
) -> DifferenceTypes:
    """Prices ask for the same tables again and again."""
    names, numbers = zip(*tables, strict=True)
    return difference_types(adjacency, Workload.of(adjacency.schema, names), numbers)


def _domain(adjacency: Adjacency, workload: Workload) -> tuple[str, ...]:
    """Attributes that tables or figures mention, in schema order."""
    mentioned = {*workload.axes, *adjacency.figures.bases}
    return tuple(name for name in workload.schema.names if name in mentioned)


def widened(
    margin: Margin, axes: Sequence[str], names: Sequence[str], workload: Workload
) -> Margin:
    """A table over `axes` as one over more attributes, which it sums over."""
    at = dict(zip(axes, margin.partitions, strict=True))
    size = {name: workload.schema.attribute(name).size for name in names}
    return Margin(tuple(at.get(name, Partition.whole(size[name])) for name in names))


def _rows(adjacency: Adjacency, workload: Workload, ends: NumberEnds) -> DifferenceTypes:
    """People may come and go: all rows may enter one cell, ||T_b u|| = a for every table."""
    a = adjacency.records
    largest = ends.entering(a)
    if adjacency.any_rows:
        why = f"{a} row{'s' * (a != 1)} in one cell of every table"
        one_number = len(ends.rows) <= 2 and not any(ends.caps)  # all rows may have its larger end
        return _uniform(adjacency, workload, largest, why, ends, exact=one_number)
    listed = _listed(adjacency, workload, ends) if ends.counts else None
    if listed is not None:
        return listed
    why = "rows that no figure counts may all be in one cell of every table"
    return _uniform(adjacency, workload, largest, why, ends)


def _several_rows(adjacency: Adjacency, workload: Workload, ends: NumberEnds) -> DifferenceTypes:
    """Units with several rows: as if each of `records` rows were a person's, some at a time."""
    names = {name for table in workload.tables for name in table}
    if not ends.counts:
        return _numbers_of_rows(adjacency, workload, ends, names)
    row_by_row = adjacency.row_by_row(names)
    if row_by_row is not None:
        types = difference_types(row_by_row, workload)
        why = f"as if every row were a person's own; {types.reason}"
        return replace(types, exact=False, reason=why)
    c = adjacency.rows_apart(names)
    why = f"{c} rows may leave one cell of every table and as many enter another"
    settled = [False] * len(workload.tables)
    return _uniform(adjacency, workload, ends.largest(c, settled), why, ends)


def _numbers_of_rows(
    adjacency: Adjacency, workload: Workload, ends: NumberEnds, names: set[str]
) -> DifferenceTypes:
    """Rows with a number each: b slots change, whatever cells and numbers they had.

    At most b rows leave and b enter. Those that stay cancel with their numbers; in a table whose
    rows the figures count, as many enter a cell as leave it.
    """
    b = max(adjacency.slots, adjacency.rows_apart(names))  # type: ignore[attr-defined]
    domain = _domain(adjacency, workload)
    rows_kept = bool(adjacency.people_kept)  # type: ignore[attr-defined]
    figures = figure_margins(adjacency.figures, domain, people_kept=rows_kept)
    tables = [widened(margin, workload.axes, domain, workload) for margin in workload.margins]
    settled = [figures.settle(table) for table in tables]
    why = f"{b} rows of units may be other rows, each with another number"
    largest = ends.largest(b, settled, adjacency.units)  # type: ignore[attr-defined]
    return _uniform(adjacency, workload, largest, why, ends)


def _uniform(
    adjacency: Adjacency,
    workload: Workload,
    largest: tuple[list[int], list[int]],
    why: str,
    ends: NumberEnds,
    *,
    exact: bool = False,
) -> DifferenceTypes:
    """One vector: the largest norms of every table."""
    squares, absolutes = (tuple(norms) for norms in largest)
    method: Method = "listing" if exact else "bound"
    return DifferenceTypes(
        workload.tables,
        adjacency.records,
        (squares,),
        (absolutes,),
        exact,
        method,
        why,
        1,
        units=ends.units,
    )


def _doubt(
    adjacency: Adjacency, margins: FigureMargins, norms: TypeNorms, known: frozenset[Vector]
) -> str:
    """Why a listed type may not occur between conforming databases; empty if all do."""
    if adjacency.figures.bounds:
        return "published bounds leave fewer pairs than listed"
    if getattr(adjacency, "reading", "robust") == "existential":
        return "the stored rule selects fewer pairs than listed"
    if {*maximal(norms.squares), *maximal(norms.absolutes)} <= known:
        return ""
    if margins.others:
        named = ", ".join(repr(label) for label in margins.others)
        return f"{named}: no full margin, left out of the list of types"
    return "groups may be too small, or have too few categories, for every listed type"


def _occurring(
    adjacency: Adjacency,
    figures: FigureMargins,
    norms: TypeNorms,
    tables: Sequence[Margin],
    ends: NumberEnds,
) -> frozenset[Vector]:
    """Maximal vectors that are known to be those of a people of one group who all do the same: one
    replacement, with their numbers kept or changed, or other numbers in the same cell.

    With numbers f before and l after, a table in which they move has a^2 (f^2 + l^2), another one
    a^2 (f - l)^2, which is less unless f and l differ in sign: if it moves after all, the vector is
    not maximal. Where they differ in sign the figures must settle the table.
    """
    if adjacency.figures.bounds or getattr(adjacency, "reading", "robust") == "existential":
        return frozenset()
    a = adjacency.moves or 0

    @lru_cache
    def possible(moved: tuple[Margin, ...]) -> bool:
        return occurs(adjacency.figures, figures.names, moved, a)

    same = [(row, row) for row in ends.rows]
    changes = same if ends.by_class else [*combinations_with_replacement(ends.rows, 2)]
    settled = [figures.settle(table) for table in tables]
    occurring = set()
    for power, vectors in ((2, maximal(norms.squares)), (1, maximal(norms.absolutes))):
        for vector, (before, after) in all_of(vectors, changes):
            numbers = [*zip(before, after, strict=True)]
            stay = [(a * abs(first - last)) ** power for first, last in numbers]
            move = [
                a**power * (abs(first) ** power + abs(last) ** power) for first, last in numbers
            ]
            free = [
                norm == most and (fixed or first * last >= 0)
                for norm, most, fixed, (first, last) in zip(
                    vector, stay, settled, numbers, strict=True
                )
            ]
            moved = tuple(table for table, kept in zip(tables, free, strict=True) if not kept)
            fits = all(
                kept or norm == most for kept, norm, most in zip(free, vector, move, strict=True)
            )
            nobody = before == after and not moved
            if nobody or (fits and possible(moved)) or (stay == [*vector] and possible(())):
                occurring.add(vector)
    return frozenset(occurring)


def _listed(adjacency: Adjacency, workload: Workload, ends: NumberEnds) -> DifferenceTypes | None:
    """By listing all differences with their levels, where these are few."""
    if workload.schema.size(_domain(adjacency, workload)) > LARGEST_DOMAIN:
        return None
    queries = tuple(dict.fromkeys(total(by=names) for names in workload.tables))
    differences = adjacency.differences(queries)
    if differences is None:
        return None
    norms = _norms_of(differences, [queries.index(total(by=names)) for names in workload.tables])
    why = "every difference of conforming tables was listed"
    if not differences.exact:
        why = "every difference was listed, but sizes of groups or the pairs selected are not known"
    return _result(workload, norms, differences.exact, "listing", why, adjacency, ends)


def _norms_of(found: Differences, columns: Sequence[int]) -> TypeNorms:
    """Distinct rows of norms of listed differences."""
    rows = np.zeros((1, len(columns), 2), dtype=np.int64)
    for start in range(0, len(found.rows), CHUNK):
        part = found.rows[start : start + CHUNK]
        moved = [product(part, found.maps[k].T) for k in columns]
        norms = [np.stack([(y * y).sum(axis=1), np.abs(y).sum(axis=1)], axis=1) for y in moved]
        rows = np.unique(np.concatenate([rows, np.stack(norms, axis=1)]), axis=0)
    return TypeNorms(rows[:, :, 0], rows[:, :, 1])


def _result(
    workload: Workload,
    norms: TypeNorms,
    exact: bool,
    method: Method,
    reason: str,
    adjacency: Adjacency,
    ends: NumberEnds,
) -> DifferenceTypes:
    return DifferenceTypes(
        workload.tables,
        adjacency.records,
        maximal(norms.squares),
        maximal(norms.absolutes),
        exact,
        method,
        reason,
        len(norms.squares),
        units=ends.units,
    )


def maximal(rows: Ints) -> tuple[tuple[int, ...], ...]:
    """Rows that no other row exceeds or equals in every entry, largest sum first.

    >>> maximal(np.array([[2, 0], [1, 1], [1, 0]]))
    ((2, 0), (1, 1))
    """
    left = np.unique(rows, axis=0)
    left = left[np.lexsort((*(-left.T[::-1]), -left.sum(axis=1)))]
    largest = []
    while len(left):
        best = left[0]
        largest.append(tuple(int(value) for value in best))
        left = left[np.any(left > best, axis=1)]
    return tuple(largest)
