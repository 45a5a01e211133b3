"""Propositions 21, 25, 26 and 30, Definition 10 and Lemma 42 as numbers: order of composition,
rank, projected noise, subspace privacy, and the K-norm sensitivity in several coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
from scipy import integrate
from scipy.optimize import linprog

from congenial.data.arguments import COUNT, NAMES, listed, takes
from congenial.data.arrays import Floats, Ints
from congenial.data.schema import Schema
from congenial.errors import GuaranteeError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement, margin, total
from congenial.figures.support import FROZEN, Support, support
from congenial.ledger.reassessment import by_distance
from congenial.mechanisms.kernel_gaussian import KernelProjection
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import Supremum
from congenial.papers.item import Study
from congenial.papers.semi_dp.real_knorm import Norm, NormNoise
from congenial.papers.sensitivity_spaces import sensitivity
from congenial.privacy.accounting import tensor
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff
from congenial.sampling.knorm_noise import Gauge

LARGEST_PROJECTION = 2_000  # cells
ALPHAS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
FINE = tuple(0.5 + k / 200 for k in range(101))  # of the curves


@dataclass(frozen=True)
class CompositionOrders:
    """Several releases under published figures, counted in two ways (Proposition 21).

    `semi_first`: each promise is composed a times, then all are put together; `composition_first`:
    the other way round, which is never better.
    """

    semi_first: Tradeoff
    composition_first: Tradeoff


@takes(GuaranteeError, promises=listed(Tradeoff), records=COUNT)
def composition_orders(promises: Sequence[Tradeoff], records: int) -> CompositionOrders:
    """Both ways to count releases that are known by their promise for one record only.

    `records` is a*, the records in which look-alikes differ. Pure promises are composed as
    functions here: `reassess` gives the tightest pure promise instead, which is weaker between its
    ends.

    >>> both = composition_orders([Gaussian(1), Gaussian(1)], 2)
    >>> both.semi_first == both.composition_first  # a tie for Gaussian promises
    True
    """
    if not promises:
        return CompositionOrders(Pure(0), Pure(0))
    whole = [f.piecewise() if isinstance(f, Pure) else f for f in promises]
    return CompositionOrders(
        reduce(tensor, [by_distance(f, records) for f in whole]),
        by_distance(reduce(tensor, whole), records),
    )


def proposition21(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """f1 and f2 at a = 2: each composed twice and then put together, and the other way round."""
    cases: list[tuple[str, list[Tradeoff]]] = [
        ("epsilon = 1 twice", [Pure(1), Pure(1)]),
        ("epsilon = 1/2 and 2", [Pure("0.5"), Pure(2)]),
        ("(1, 0.01) twice", [Approximate(1, "0.01"), Approximate(1, "0.01")]),
        ("mu = 1 twice", [Gaussian(1), Gaussian(1)]),
    ]
    rows, curves = [], list[list[Any]]()
    for words, promises in cases:
        both = composition_orders(promises, 2)
        for alpha in ALPHAS:
            semi, composed = (float(f(alpha)) for f in (both.semi_first, both.composition_first))
            rows.append([words, alpha, semi, composed, semi - composed])
        curves += [[words, a, float(both.semi_first(a) - both.composition_first(a))] for a in FINE]
    return {
        "columns": ["promises", "alpha", "Semi-DP first", "composition first", "difference"],
        "rows": rows,
        "notes": [
            "a = 2. Each value is the least error of the second kind at error 1 - alpha of the "
            "first; larger is safer. Semi-DP first is never smaller (Lemma 41), and equal for "
            "Gaussian promises, where both are G_(a sqrt(mu1^2 + mu2^2)).",
        ],
        "chart": {
            "kind": "line",
            "x": "alpha",
            "y": "difference",
            "by": "promises",
            "y_title": "Semi-DP first minus composition first",
            "data": {"columns": ["promises", "alpha", "difference"], "rows": curves},
        },
    }


def _cases() -> list[tuple[str, Schema, tuple[Statement, ...]]]:
    def schema(*sizes: int) -> Schema:
        levels = {n: [str(i) for i in range(k)] for n, k in zip("ABC", sizes, strict=False)}
        return Schema.from_dict({n: {"levels": labels} for n, labels in levels.items()})

    one_way = (margin("A"), margin("B"), margin("C"))
    return [
        ("4 cells, total", schema(4), (total(),)),
        ("2 x 2, margin A", schema(2, 2), (margin("A"),)),
        ("2 x 2, both margins", schema(2, 2), (margin("A"), margin("B"))),
        ("2 x 3, both margins", schema(2, 3), (margin("A"), margin("B"))),
        ("3 x 3, both margins", schema(3, 3), (margin("A"), margin("B"))),
        ("2 x 2 x 2, one-way margins", schema(2, 2, 2), one_way),
    ]


def proposition25(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """Rank of the sensitivity space against the number of cells and the rank of the figures."""
    rows = []
    for words, schema, statements in _cases():
        figures = Figures(schema, statements)
        space = sensitivity(SemiAdjacent(figures), schema.names)
        rank = int(np.linalg.matrix_rank(figures.matrix.toarray()))
        rows.append([words, space.dimension, rank, int(space.rank.value)])
    return {
        "columns": ["figures", "cells", "rank of the figures", "rank of S"],
        "rows": rows,
        "notes": [
            "A linear figure takes its rank from that of the sensitivity space: S spans the tables "
            "with all figures 0, so the ranks add up to the number of cells. The total of a "
            "replace-one database is public anyway.",
        ],
    }


def _sums(schema: Schema, statements: Sequence[Statement]) -> Floats:
    """C: a row for each published sum, a column for each cell of the whole table."""
    cells = np.array(list(np.ndindex(*(schema.size((name,)) for name in schema.names))))
    rows = []
    for statement in statements:
        columns = cells[:, [schema.names.index(name) for name in statement.by]]
        rows += [(columns == level).all(axis=1) for level in np.unique(columns, axis=0)]
    return np.array(rows, dtype=float)


@dataclass(frozen=True)
class Subspace:
    """Delta_2 of a table outside the row space of the figures, one record replaced anywhere, and
    Delta_2 squared between look-alikes that agree with the figures.

    Gaussian noise of standard deviation sigma has mu = projected / sigma in the first reading and
    sqrt(semi) / sigma in the second.
    """

    projected: float
    semi: Supremum

    @property
    def words(self) -> str:
        """Both numbers, and why the first promises nothing."""
        semi = math.sqrt(self.semi.value)
        return (
            f"Subspace differential privacy would count Delta_2 = {self.projected:.4f}; between "
            f"datasets that agree with the figures it is {semi:.4f}. The first "
            "also compares datasets of which at most one agrees with the published figures: "
            "everybody can see which, so that they look alike in the rest protects nobody. And it "
            "does not compare those that agree and differ in more than one record."
        )


@takes(StructureError, adjacency=SemiAdjacent, names=NAMES)
def subspace(adjacency: SemiAdjacent, names: Sequence[str]) -> Subspace:
    """Subspace differential privacy of Gaussian noise (Definition 10, corrected) beside ours.

    sup over replaced records of ||P (e_c - e_c')||_2, with P the projection off the row space of
    the figures on the released table.

    >>> schema = Schema.from_dict({"r": {"integers": [1, 3]}, "c": {"integers": [1, 3]}})
    >>> both = Figures(schema, (margin("r"), margin("c")))
    >>> found = subspace(SemiAdjacent(both), ["r", "c"])
    >>> round(found.projected, 4), int(found.semi.value)  # 2 / sqrt 3 against sqrt 6
    (1.1547, 6)
    """
    table_support = support(adjacency.figures, tuple(names))
    size = table_support.labels.size
    if size > LARGEST_PROJECTION:
        raise StructureError(
            f"a table of {size} cells is too large for the projection of subspace privacy.",
            remedy=f"Compare on at most {LARGEST_PROJECTION} cells.",
        )
    rows = _row_space(table_support)
    projection = np.eye(size) - np.linalg.pinv(rows) @ rows
    diagonal = np.diag(projection)
    squares = diagonal[:, None] + diagonal[None, :] - 2 * projection
    projected = math.nextafter(math.sqrt(max(0.0, float(squares.max()))) * (1 + 1e-9), math.inf)
    return Subspace(projected, adjacency.l2_squared(tuple(names)))


def _row_space(known: Support) -> Any:
    """Sums of released cells that the figures fix, as rows."""
    flat = known.labels.reshape(-1)
    groups = (flat[None, :] == np.arange(known.groups)[:, None]).astype(float)
    ties = [tie.equations @ groups[tie.groups] for tie in known.ties]
    frozen = np.eye(len(flat))[flat == FROZEN]
    return np.vstack([groups[~known.tied], *ties, frozen])


def definition10(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """Delta_2 by subspace privacy and between look-alikes; its projection beside Algorithm 1's."""
    rows = []
    for words, schema, statements in _cases():
        figures = Figures(schema, statements)
        space = subspace(SemiAdjacent(figures), schema.names)
        matrix = _sums(schema, statements)
        theirs = np.eye(matrix.shape[1]) - np.linalg.pinv(matrix) @ matrix
        ours = KernelProjection(support(figures, schema.names)).apply(np.eye(len(theirs)))
        apart = round(float(np.abs(theirs - ours).max()), 9)
        semi = math.sqrt(space.semi.value)
        rows.append([words, round(space.projected, 6), round(semi, 6), apart])
    return {
        "columns": [
            "figures", "Delta_2, subspace privacy", "Delta_2, look-alikes",
            "largest difference of the two projections",
        ],
        "rows": rows,
        "notes": [
            "Subspace privacy projects off the row space of the figures (the definition read with "
            "the span of S instead would compare nothing) and replaces one record, whether or not "
            "the figures still hold.",
            "Its number is never the larger one, and is not a promise: it compares datasets of "
            "which at most one agrees with the published figures, and none that differ in several "
            "records.",
            "Remark 27: the noise is the same, since both projections are the same matrix. Only "
            "the promise differs.",
        ],
    }  # fmt: skip


# ---- Lemma 42 ------------------------------------------------------------------------------------


def conforming_counts(matrix: Ints, sums: Sequence[int], people: int) -> Ints:
    """All tables (rows) of this many people with matrix @ table = sums."""
    cells = matrix.shape[1]
    bars = combinations(range(people + cells - 1), cells - 1)
    ends = np.array([(-1, *bar, people + cells - 1) for bar in bars])
    tables = np.diff(ends, axis=1) - 1
    return np.asarray(tables[(tables @ matrix.T == np.asarray(sums)).all(axis=1)])


def beyond_s(tables: Ints, records: int) -> tuple[int, int, int]:
    """Rank of S, rank of all differences, and how many values the part orthogonal to S takes."""
    apart = tables[:, None, :] - tables[None, :, :]
    near = apart[np.abs(apart).sum(axis=2) <= 2 * records].astype(float)
    onto = np.eye(tables.shape[1]) - np.linalg.pinv(near) @ near
    values = np.unique(np.round(tables @ onto, 6), axis=0)
    rank = np.linalg.matrix_rank
    return int(rank(near)), int(rank(apart.reshape(-1, tables.shape[1]))), len(values)


def lemma42(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """What is orthogonal to S: one value where every table is reached by steps, else several."""
    cube = np.array(list(np.ndindex(2, 2, 2)))
    two_way = [((cube[:, p] == u) & (cube[:, q] == v)).astype(np.int64)
               for p, q in ((0, 1), (0, 2), (1, 2)) for u in (0, 1) for v in (0, 1)]  # fmt: skip
    both = np.array([[1, 1, 0, 0], [1, 0, 1, 0]])
    cases = [
        ("2 x 2, both margins", conforming_counts(both, [2, 2], 4), (2, 3)),
        ("2 x 2 x 2, all two-way margins", conforming_counts(np.array(two_way), [1] * 12, 4),
         (2, 3, 4)),
        ("weights 4, 3, 1, total 20", conforming_counts(np.array([[4, 3, 1]]), [20], 7), (2, 3)),
    ]  # fmt: skip
    rows = [
        [words, f"A_{records}", len(tables), *beyond_s(tables, records)]
        for words, tables, reach in cases
        for records in reach
    ]
    return {
        "columns": [
            "figures", "adjacency", "conforming tables", "rank of S", "rank of all differences",
            "values orthogonal to S",
        ],
        "rows": rows,
        "notes": [
            "The lemma says one value. It holds where steps of the adjacency lead from every "
            "conforming table to every other, or where S spans all their differences.",
            "With all two-way margins of 2 x 2 x 2 and four people, or weights 4, 3 and 1, S under "
            "A_2 is {0}: noise projected on its span is none, and the table would be published as "
            "it is. The product projects on the kernel of the figures and takes a* people.",
        ],
    }  # fmt: skip


# ---- Proposition 30 ------------------------------------------------------------------------------


def coordinates(shape: tuple[int, int]) -> dict[str, Floats]:
    """Two isomorphisms from tables with zero margins (flat) to R^s: matrices with s rows."""
    r, c = shape
    inner = np.zeros(((r - 1) * (c - 1), r * c))
    cells = [i * c + j for i in range(r - 1) for j in range(c - 1)]
    inner[np.arange(len(cells)), cells] = 1
    centre = [np.eye(k) - np.full((k, k), 1 / k) for k in shape]
    left, sizes, _ = np.linalg.svd(np.kron(*centre))
    return {"inner cells": inner, "orthonormal": left[:, sizes > 0.5].T}


def largest_gauge(points: Floats) -> float:
    """sup over the points of their norm whose ball is the hull of the points; 0 for {0}."""
    moving = points[np.abs(points).max(axis=1) > 0]
    if not len(moving):
        return 0.0
    ones = np.ones(len(moving))
    return max(float(linprog(ones, A_eq=moving.T, b_eq=vector).fun) for vector in moving)


def proposition30(study: Study) -> dict[str, Any]:
    """Delta_s in two coordinate systems, two adjacencies and several tables; S = {0} beside."""
    shapes = ((2, 2), (2, 3), (3, 3)) if study.quick else ((2, 2), (2, 3), (2, 4), (3, 3), (3, 4))
    rows: list[list[Any]] = []
    for shape in shapes:
        for records in (2, 3):
            s = Gauge(shape, records).generators.reshape(-1, shape[0] * shape[1]).astype(float)
            for words, theta in coordinates(shape).items():
                name = f"{shape[0]} x {shape[1]}"
                rows.append([name, f"A_{records}", words, len(s), largest_gauge(s @ theta.T)])
    rows.append(["one conforming table", "any", "any", 0, largest_gauge(np.zeros((1, 1)))])
    return {
        "columns": ["table", "adjacency", "coordinates", "elements besides 0", "Delta_s"],
        "rows": rows,
        "notes": [
            "Each norm by a linear programme. The norm is made from the set, so its largest value "
            "on it is 1 in every system of coordinates. S = {0} is left out by the statement: its "
            "sensitivity is 0, and no noise is needed.",
        ],
    }


# ---- Proposition 26 ------------------------------------------------------------------------------

CELLS = 4  # of a 2 x 2 table; its kernel is spanned by (1, -1, -1, 1) / 2
SENSITIVITY: dict[Norm, float] = {"l1": 4.0, "l2": 2.0, "linf": 1.0}
ROUNDING = 1e-9  # of the integration
STEP = 2.0  # how far a swap moves along the unit vector of the kernel


def _share(norm: Norm, at: float) -> float:
    """Density of u . (noise / its Gamma radius): the point of the unit ball or sphere, seen on u.

    l2: a coordinate of a uniform point of the sphere in four dimensions. linf: half the sum of four
    uniform variables on [-1, 1], whose density is that of Irwin and Hall.
    """
    if norm == "l2":
        return 2 / math.pi * math.sqrt(max(1 - at * at, 0.0))
    x = at + 2  # half the sum is the sum of four uniforms on [0, 1], less 2
    terms = [(-1) ** k * math.comb(4, k) * max(x - k, 0.0) ** 3 for k in range(5)]
    return math.fsum(terms) / 6 if 0 <= x <= 4 else 0.0


def projected_density(norm: Norm, epsilon: float, w: float) -> float:
    """Density at w of the noise projected on the kernel of a 2 x 2 table, along its unit vector."""
    scale = SENSITIVITY[norm] / epsilon
    if norm == "l1":  # half the sum of four Laplace variables: the difference of two Gamma(4)
        at = abs(2 * w) / scale
        terms = (
            math.comb(3 + k, k) * at ** (3 - k) / math.factorial(3 - k) / 2.0 ** (4 + k)
            for k in range(4)
        )
        return 2 * math.exp(-at) * math.fsum(terms) / scale
    top, shape = (1.0, CELLS) if norm == "l2" else (2.0, CELLS + 1)  # of the Gamma radius
    least = abs(w) / (top * scale)

    def integrand(r: float) -> float:
        density = _share(norm, w / (r * scale)) / (r * scale)
        return density * r ** (shape - 1) / math.gamma(shape) * math.exp(least - r)

    integral = integrate.quad(integrand, least, least + 60, points=[least + 1], limit=200)[0]
    return float(integral) * math.exp(-least)


def largest_loss(norm: Norm, epsilon: float, reach: float = 60.0) -> float:
    """The largest log ratio of the projected law and the same moved by one swap, |w| <= reach."""
    at = np.linspace(0, reach, 61)
    return max(
        math.log(projected_density(norm, epsilon, w) / projected_density(norm, epsilon, w + STEP))
        for w in at.tolist()
    )


def proposition26(study: Study) -> dict[str, Any]:
    """l1, l2 and l_infinity noise on a 2 x 2 table, before and after projection on its kernel."""
    rows = []
    for norm, size in SENSITIVITY.items():
        for epsilon in (1.0,) if study.quick else (0.5, 1.0, 2.0):
            square = NormNoise(norm, CELLS, size, epsilon).mean_square
            loss = largest_loss(norm, epsilon)
            rows.append([norm, epsilon, square, square / CELLS, loss, loss <= epsilon + ROUNDING])
    return {
        "columns": [
            "noise",
            "epsilon",
            "E l2^2 in four cells",
            "E l2^2 projected",
            "largest loss found",
            "kept",
        ],
        "rows": rows,
        "notes": [
            "Both margins of a 2 x 2 table published: Delta_1 = 4, Delta_2 = 2, Delta_inf = 1. The "
            "kernel has one dimension of four, so three quarters of the squared error go.",
            "largest loss: of the projected law against itself moved by one swap, by integration, "
            "up to 60 from the centre. It approaches epsilon in the tail and does not exceed it.",
            "The paper adds that projection shrinks every norm; that holds for l2 only: in a 3 x 3 "
            "table the projection of one unit has l1 norm 16/9.",
        ],
    }
