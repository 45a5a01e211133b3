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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from congenial.data.arguments import takes
from congenial.data.workload import Margin, Partition, Workload
from congenial.figures.statements import total
from congenial.pairs.adjacency import AddRemove, Adjacency, SemiAdjacent
from congenial.pairs.differences import LARGEST_DOMAIN, Differences, product
from congenial.pairs.figure_margins import FigureMargins, figure_margins
from congenial.pairs.moved_at_once import occurs
from congenial.pairs.set_types import Ints, TypeNorms, list_types
from congenial.pairs.several_rows import SeveralRows

Method = Literal["set partitions", "listing", "bound"]
CHUNK = 20_000  # differences whose norms are worked out at a time


@dataclass(frozen=True)
class DifferenceTypes:
    """Maximal vectors of norms, one entry per table of the workload, with their footing.

    `squares` bound ||T_b u||_2^2 and `absolutes` ||T_b u||_1. `exact`: every vector occurs between
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
        known = sum(self.occurs(one) for one in self.squares)
        footing = self.footing
        if not self.exact and known:
            footing = f"{known} known to occur, {len(self.squares) - known} upper bounds"
        return f"{kinds} of {self.listed} ({footing}, by {self.method}): {self.reason}"


@takes(adjacency=Adjacency, workload=Workload)
def difference_types(adjacency: Adjacency, workload: Workload) -> DifferenceTypes:
    """The maximal difference types of a workload's tables under an adjacency.

    >>> from congenial.data.schema import Schema
    >>> from congenial.pairs.adjacency import ReplaceOne
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["0", "1"]}})
    >>> work = Workload.of(schema, [["sex", "ill"], ["ill"], []])
    >>> difference_types(ReplaceOne(schema), work).squares
    ((2, 2, 0),)
    """
    if isinstance(adjacency, SeveralRows):
        return _several_rows(adjacency, workload)
    moves = _moves(adjacency)
    if moves is None:
        return _rows(adjacency, workload)
    names = _domain(adjacency, workload)
    figures = figure_margins(adjacency.figures, names, people_kept=True)
    tables = [widened(margin, workload.axes, names, workload) for margin in workload.margins]
    norms = list_types(figures, tables, moves)
    if norms is not None:
        reason = _doubt(adjacency, figures, norms, tables, moves)
        if not reason:
            why = f"{moves} people of one group make one replacement that moves every open table"
            if not norms.squares.any():
                why = "the exact figures already give every table"
            return _result(adjacency, workload, norms, True, "set partitions", why)
    listed = _listed(adjacency, workload)
    if listed is not None:
        return listed
    if norms is not None:
        found = _result(adjacency, workload, norms, False, "set partitions", reason)
        return replace(found, occurring=_occurring(adjacency, figures, found, tables))
    most = [0 if figures.settle(table) else 1 for table in tables]
    why = f"too many difference types at {moves} records: 2 a^2 for every table left open"
    return _uniform(adjacency, workload, (2 * moves**2, 2 * moves), most, why)


def _moves(adjacency: Adjacency) -> int | None:
    """Records that are replaced; None where the number of people may change."""
    if adjacency.metric == "replace-one":
        return adjacency.records
    kept = isinstance(adjacency, SemiAdjacent) and adjacency.people_kept
    return adjacency.records // 2 if kept else None


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


def _rows(adjacency: Adjacency, workload: Workload) -> DifferenceTypes:
    """People may come and go: all rows may enter one cell, ||T_b u|| = a for every table."""
    a = adjacency.records
    most = [1] * len(workload.tables)
    if isinstance(adjacency, AddRemove):
        why = f"{a} row{'s' * (a != 1)} in one cell of every table"
        return _uniform(adjacency, workload, (a**2, a), most, why, exact=True)
    listed = _listed(adjacency, workload)
    if listed is not None:
        return listed
    why = "rows that no figure counts may all be in one cell of every table"
    return _uniform(adjacency, workload, (a**2, a), most, why)


def _several_rows(adjacency: SeveralRows, workload: Workload) -> DifferenceTypes:
    """Units with several rows: as if each of `records` rows were a person's, some at a time."""
    names = {name for table in workload.tables for name in table}
    if adjacency.people_kept:
        found = difference_types(adjacency.replaced_rows(names), workload)
        why = f"as if every row were a person's own; {found.reason}"
        return replace(found, exact=False, reason=why)
    c = adjacency.rows_apart(names)
    why = f"{c} rows may leave one cell of every table and as many enter another"
    return _uniform(adjacency, workload, (2 * c**2, 2 * c), [1] * len(workload.tables), why)


def _uniform(
    adjacency: Adjacency,
    workload: Workload,
    largest: tuple[int, int],
    most: Sequence[int],
    why: str,
    *,
    exact: bool = False,
) -> DifferenceTypes:
    """One vector: the largest norms, for every table that can move."""
    open_ = np.array([most], dtype=np.int64)
    norms = TypeNorms(largest[0] * open_, largest[1] * open_)
    return _result(adjacency, workload, norms, exact, "bound" if not exact else "listing", why)


def _doubt(
    adjacency: Adjacency,
    margins: FigureMargins,
    norms: TypeNorms,
    tables: Sequence[Margin],
    a: int,
) -> str:
    """Why a listed type may not occur between conforming databases; empty if all do."""
    figures = adjacency.figures
    if figures.bounds:
        return "published bounds leave fewer pairs than listed"
    if getattr(adjacency, "reading", "robust") == "existential":
        return "the stored rule selects fewer pairs than listed"
    top = maximal(norms.squares)
    if len(top) == 1 and set(top[0]) <= {0, 2 * a * a}:
        open_ = [table for table, square in zip(tables, top[0], strict=True) if square]
        if not open_ or occurs(figures, margins.names, open_, a):
            return ""
    if margins.others:
        named = ", ".join(repr(label) for label in margins.others)
        return f"{named}: no full margin, left out of the list of types"
    return "groups of known size and levels enough for every type were not found"


def _occurring(
    adjacency: Adjacency, figures: FigureMargins, found: DifferenceTypes, tables: Sequence[Margin]
) -> frozenset[tuple[int, ...]]:
    """Maximal vectors of one replacement that several people of one group make."""
    if adjacency.figures.bounds or getattr(adjacency, "reading", "robust") == "existential":
        return frozenset()
    a, known = _moves(adjacency) or 0, set()
    for top, vectors in ((2 * a * a, found.squares), (2 * a, found.absolutes)):
        for norms in vectors:
            moved = [table for table, norm in zip(tables, norms, strict=True) if norm]
            same = set(norms) <= {0, top} and any(norms)
            if same and occurs(adjacency.figures, figures.names, moved, a):
                known.add(norms)
    return frozenset(known)


def _listed(adjacency: Adjacency, workload: Workload) -> DifferenceTypes | None:
    """By listing all differences with their levels, where these are few."""
    if workload.schema.size(_domain(adjacency, workload)) > LARGEST_DOMAIN:
        return None
    queries = tuple(dict.fromkeys(total(by=names) for names in workload.tables))
    found = adjacency.differences(queries)
    if found is None:
        return None
    norms = _norms_of(found, [queries.index(total(by=names)) for names in workload.tables])
    why = "every difference of conforming tables was listed"
    if not found.exact:
        why = "every difference was listed, but sizes of groups or the pairs selected are not known"
    return _result(adjacency, workload, norms, found.exact, "listing", why)


def _norms_of(found: Differences, columns: Sequence[int]) -> TypeNorms:
    """Distinct rows of norms of listed differences."""
    rows = np.zeros((1, len(columns), 2), dtype=np.int64)
    for start in range(0, len(found.rows), CHUNK):
        part = found.rows[start : start + CHUNK]
        seen = [product(part, found.maps[k].T) for k in columns]
        norms = [np.stack([(y * y).sum(axis=1), np.abs(y).sum(axis=1)], axis=1) for y in seen]
        rows = np.unique(np.concatenate([rows, np.stack(norms, axis=1)]), axis=0)
    return TypeNorms(rows[:, :, 0], rows[:, :, 1])


def _result(
    adjacency: Adjacency,
    workload: Workload,
    norms: TypeNorms,
    exact: bool,
    method: Method,
    reason: str,
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
    )


def maximal(rows: Ints) -> tuple[tuple[int, ...], ...]:
    """Rows that no other row exceeds or equals in every entry, largest sum first.

    >>> maximal(np.array([[2, 0], [1, 1], [1, 0]]))
    ((2, 0), (1, 1))
    """
    left = np.unique(rows, axis=0)
    left = left[np.lexsort((*(-left.T[::-1]), -left.sum(axis=1)))]
    found = []
    while len(left):
        best = left[0]
        found.append(tuple(int(value) for value in best))
        left = left[np.any(left > best, axis=1)]
    return tuple(found)
