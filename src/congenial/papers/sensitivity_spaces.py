"""The sensitivity space of a linear query under an adjacency: its norms, rank, elements and hull.

S_phi = { phi(X) - phi(X') : X, X' adjacent } (semi-dp, Definition 4). A query is a table, named by
its axes, or statements such as `count("age >= 18", by="county")`. Small spaces are listed, and then
every number is exact as far as group sizes are published; large ones are bounded, and say so.

The hull K of a finite set S = -S is a norm ball in span(S) (Lemma 29), and the smallest one that
contains S: no K-norm mechanism needs less noise (Definition 8, Theorem 31). Linear programmes are
solved in doubles; `sampling.knorm_noise` has certified ones for two-way tables.

No mechanism rests on these numbers: `Adjacency.l1`, `l2_squared` and `linf` price the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import expect
from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures import lattice
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.integers import hermite
from congenial.figures.statements import Statement, total
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.differences import product
from congenial.pairs.pairs import Adjacency, Supremum

Query = Sequence[str] | Statement | Sequence[Statement]
Ball = Literal["hull", "l1", "l2", "linf"]

LARGEST_HULL = 5_000  # points
_SMALL = 1e-7


@dataclass(frozen=True, eq=False)
class Hull:
    """The hull of points (rows) that come with their opposites."""

    points: Ints = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.points) > LARGEST_HULL:
            raise StructureError(
                f"a hull of {len(self.points)} differences is too large.",
                remedy="Use a norm: its sensitivity is known without the hull.",
            )

    @property
    def dimension(self) -> int:
        """Of the space the points are in."""
        return int(self.points.shape[1])

    @cached_property
    def _axes(self) -> list[int]:
        """Coordinates that determine the others in the span of the points."""
        form = hermite(self.points.T @ self.points)
        return [int(pivot) for pivot in (form != 0).argmax(axis=1)]

    @property
    def rank(self) -> int:
        """Dimension of the span."""
        return len(self._axes)

    @cached_property
    def vertices(self) -> Ints:
        """The points that are no mixture of others.

        A longest point is a vertex; for another one a linear programme looks for a direction in
        which it is farther than all others.
        """
        points = np.unique(self.points, axis=0)
        points = points[np.any(points, axis=1)]
        if not len(points):
            return self.points[:1]  # S = {0}
        squares = np.square(points).sum(axis=1)
        farthest = squares == squares.max()
        number = {point.tobytes(): k for k, point in enumerate(points)}
        shadow = points[:, self._axes].astype(float)
        for k in np.flatnonzero(~farthest):
            opposite = number[(-points[k]).tobytes()]
            farthest[k] = farthest[opposite] if opposite < k else self._extreme(shadow, int(k))
        return np.asarray(points[farthest])

    @staticmethod
    def _extreme(points: Any, k: int) -> bool:
        """Whether some direction has its only maximum at point k."""
        from scipy.optimize import linprog

        others = np.delete(points, k, axis=0)
        size = points.shape[1]
        solution = linprog(
            np.append(np.zeros(size), -1.0),  # largest lead over all others
            A_ub=np.column_stack([others - points[k], np.ones(len(others))]),
            b_ub=np.zeros(len(others)),
            bounds=[(-1, 1)] * size + [(0, None)],
        )
        return bool(solution.status == 0 and -solution.fun > _SMALL)

    def gauge(self, vector: Any) -> float:
        """inf { c >= 0 : vector in c K }; infinite outside the span.

        min sum of weights with sum of weights * vertices = vector.
        """
        from scipy.optimize import linprog

        wanted = np.asarray(vector, dtype=float).reshape(-1)
        corners = self.vertices.astype(float)
        if not np.any(wanted):
            return 0.0
        solution = linprog(np.ones(len(corners)), A_eq=corners.T, b_eq=wanted)
        return float(solution.fun) if solution.status == 0 else inf


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How far a query can move between adjacent databases.

    `l1`, `l2_squared` and `linf` are Delta_1, Delta_2^2 and Delta_inf; `rank` is the dimension of
    the span of S; `elements` are the distinct values of phi(X) - phi(X'), flattened, zero included,
    or None where they are too many to list.
    """

    query: tuple[Statement, ...]
    dimension: int
    l1: Supremum
    l2_squared: Supremum
    linf: Supremum
    rank: Supremum
    elements: Ints | None = field(repr=False)

    @property
    def size(self) -> int | None:
        """Number of elements of S, the zero included, where they are listed."""
        return None if self.elements is None else len(self.elements)

    @cached_property
    def hull(self) -> Hull:
        """The convex hull of S; refused where S is not listed."""
        if self.elements is None:
            raise StructureError(
                f"the sensitivity space of a query with {self.dimension} values is too large to be "
                "listed, so its hull is not known.",
                remedy="Use a norm: Delta_1, Delta_2 and Delta_inf are known without the hull.",
            )
        return Hull(self.elements)

    @property
    def vertices(self) -> Ints:
        """The corners of the hull."""
        return self.hull.vertices

    def contains(self, larger: Ball, smaller: Ball) -> bool | None:
        """Whether the ball of one norm, scaled to its sensitivity, holds that of another
        (Definition 8); None where that is not decided.

        If `larger` holds `smaller`, noise in the norm of `smaller` is preferred: less entropy,
        smaller variance in every direction.
        """
        if larger == smaller or smaller == "hull":
            return True
        if larger == "hull":
            return self._inside_hull(smaller)
        d = self.dimension
        spread = {("l2", "linf"): d, ("l1", "linf"): d**2, ("l1", "l2"): d}
        # Squares of: farthest point of the smaller ball in the larger one's norm, radius of that.
        farthest = self._radii[smaller] * spread.get((larger, smaller), 1)
        return bool(farthest <= self._radii[larger])

    @property
    def _radii(self) -> dict[Ball, Fraction]:
        """Radii of the balls, squared."""
        return {"l1": self.l1.value**2, "l2": self.l2_squared.value, "linf": self.linf.value**2}

    def _inside_hull(self, ball: Ball) -> bool | None:
        """Whether a ball lies in the hull: never when the hull is flat."""
        size = self.dimension
        if self.hull.rank < size:
            return False
        if ball == "linf" and size > 12:
            return None
        corners = np.eye(size)
        if ball == "linf":
            corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * size)).reshape(size, -1).T
        radius = float(self._radii[ball]) ** 0.5
        inside = all(self.hull.gauge(radius * corner) <= 1 + _SMALL for corner in corners)
        return None if ball == "l2" and inside else inside


@dataclass(frozen=True)
class Spaces:
    """S_DP (one record, no figures), S_Group (a records, no figures) and S_Semi side by side.

    Proposition 24: S_Semi is part of S_Group, and the hull of S_Group part of a times that of S_DP.
    """

    records: int
    dp: Sensitivity
    group: Sensitivity
    semi: Sensitivity

    def rows(self) -> list[dict[str, Any]]:
        """One row per space, for a report; the first as a times S_DP."""
        a = self.records
        named = (("a * S_DP", self.dp, a), ("S_Group", self.group, 1), ("S_Semi", self.semi, 1))
        return [
            {
                "space": name,
                "elements": value.size,
                "rank": int(value.rank.value),
                "Delta_1": times * value.l1.value,
                "Delta_2^2": times**2 * value.l2_squared.value,
                "Delta_inf": times * value.linf.value,
            }
            for name, value, times in named
        ]


def sensitivity(adjacency: Adjacency, query: Query) -> Sensitivity:
    """The sensitivity space of a query, listed where it is small, bounded otherwise.

    >>> from congenial import Schema, margin
    >>> schema = Schema.from_dict({"r": {"integers": [1, 3]}, "c": {"integers": [1, 4]}})
    >>> both = Figures(schema, (margin("r"), margin("c")))
    >>> found = sensitivity(SemiAdjacent(both), ("r", "c"))
    >>> found.size, found.l1.value, found.l2_squared.value, found.rank.value
    (85, Fraction(6, 1), Fraction(6, 1), Fraction(6, 1))
    """
    expect(adjacency, Adjacency, "the adjacency", "Give for example ReplaceOne(schema).")
    statements = _statements(query)
    dimension = sum(adjacency.schema.size(statement.by) for statement in statements)
    listed = adjacency.differences(statements)
    if listed is None:
        return _bounded(adjacency, statements, dimension)
    visible = np.concatenate([listed.seen(i) for i in range(len(statements))], axis=1)
    elements = np.unique(visible, axis=0)
    exact, by = listed.exact, "enumeration"
    rank = lattice.rank(sp.csr_matrix(product(elements.T, elements)))  # the same, and small
    norms = np.abs(elements)
    return Sensitivity(
        statements,
        dimension,
        Supremum(Fraction(int(norms.sum(axis=1).max())), exact, by),
        Supremum(Fraction(int(np.square(elements).sum(axis=1).max())), exact, by),
        Supremum(Fraction(int(norms.max(initial=0))), exact, by),
        Supremum(Fraction(rank), exact, by),
        elements,
    )


def side_by_side(adjacency: SemiAdjacent, query: Query) -> Spaces:
    """S_DP, S_Group and S_Semi of a query (Proposition 24), over cells that are possible at all.

    What one record can change without figures, what a* records can, and what a* records can that
    keep the figures: the last is what noise given the figures must cover, and it is never larger
    than the second. Source: semi-dp, section 4.

    >>> from congenial import Schema, SemiAdjacent, Table, publish, total
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["no", "yes"]}})
    >>> published = publish(Table(schema, ["sex", "ill"], [[5, 2], [4, 1]]), total(by="sex"))
    >>> spaces = side_by_side(SemiAdjacent(published), ["sex", "ill"])
    >>> spaces.records, int(spaces.group.l1.value), int(spaces.semi.l1.value)
    (2, 4, 4)
    """
    expect(adjacency, SemiAdjacent, "the adjacency", "Give SemiAdjacent(published).")
    free = Figures(adjacency.schema, adjacency.figures.zeros)
    group = SemiAdjacent(free, metric=adjacency.metric, within=adjacency.records)
    return Spaces(
        adjacency.records,
        sensitivity(SemiAdjacent(free, metric=adjacency.metric), query),
        sensitivity(group, query),
        sensitivity(adjacency, query),
    )


# ---- bounds ------------------------------------------------------------------------------------


def _statements(query: Query) -> tuple[Statement, ...]:
    if isinstance(query, Statement):
        return (query,)
    expect(query, (list, tuple, str), "the query", "Give axes, or statements.")
    if all(isinstance(item, Statement) for item in query) and len(query):
        return tuple(item for item in query if isinstance(item, Statement))
    return (total(by=tuple(str(item) for item in query)),)


def _bounded(
    adjacency: Adjacency, statements: tuple[Statement, ...], dimension: int
) -> Sensitivity:
    """Closed forms for a table; for other queries, records times the farthest two answers."""
    names = statements[0].by
    if statements == (total(by=names),):
        l1, square = adjacency.l1(names), adjacency.l2_squared(names)
        linf = adjacency.linf(names)
    else:
        l1, square, linf = _farthest(adjacency, statements)
    rank = Supremum(Fraction(_rank(adjacency, statements, dimension)), False)
    return Sensitivity(statements, dimension, l1, square, linf, rank, None)


def _farthest(
    adjacency: Adjacency, statements: tuple[Statement, ...]
) -> tuple[Supremum, Supremum, Supremum]:
    """Each record that differs moves the query by at most the two largest columns together."""
    cells, first = _classes(adjacency.figures, statements)
    matrix = cells.matrix(statements, first)
    sizes = np.sort(np.asarray(abs(matrix).sum(axis=0)).reshape(-1))[-2:]
    squares = np.sort(np.asarray(matrix.power(2).sum(axis=0)).reshape(-1))[-2:]
    low, high = matrix.min(axis=1).toarray(), matrix.max(axis=1).toarray()
    a = adjacency.records
    return (
        Supremum(Fraction(a * int(sizes.sum())), False),
        Supremum(Fraction(2 * a**2 * int(squares.sum())), False),
        Supremum(Fraction(a * int((high - low).max(initial=0))), False),
    )


def _classes(figures: Figures, statements: tuple[Statement, ...]) -> tuple[Cells, Ints]:
    """The cells in sight, and one of each class that query and figures cannot tell apart."""
    cells = Cells(figures.schema, (*figures.statements, *statements))
    possible = np.flatnonzero(~cells.touched(figures.zeros))
    classes = cells.classes((*figures.equalities, *statements))[possible]
    return cells, possible[np.unique(classes, return_index=True)[1]]


def _rank(adjacency: Adjacency, statements: tuple[Statement, ...], dimension: int) -> int:
    """Rank of figures, people and query together, less that of figures and people."""
    figures = adjacency.figures
    cells, first = _classes(figures, statements)
    fixed = cells.matrix(figures.equalities, first)
    counts_people = any(
        np.all(cells.column(statement)[1][first] == 1) for statement in figures.equalities
    )
    if (
        adjacency.metric == "replace-one" and not counts_people
    ):  # n is public, and follows from no margin
        fixed = sp.vstack([fixed, np.ones((1, len(first)), dtype=np.int64)], format="csr")
    query = cells.matrix(statements, first)
    try:
        both = len(first) if _apart(query) else lattice.rank(sp.vstack([fixed, query], "csr"))
        return both - lattice.rank(fixed)
    except StructureError:
        return dimension


def _apart(query: sp.csr_matrix) -> bool:
    """Whether every class has a value of the query to itself."""
    return bool(np.all(np.diff(query.indptr) <= 1) and query.nnz == query.shape[1])
