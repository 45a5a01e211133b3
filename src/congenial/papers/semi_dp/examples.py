"""Examples 2 to 6 and Remark 14, by listing every database: distances, neighbours and the
semi-adjacent parameter.

Example 1 and section 7, by listing databases: steps and distances, and what an adversary who
knows more is left with.

Examples 7 and 8, and the norm balls of section 4.2: the printed sensitivity set and the true
one.

Section 5.3: power of the private test of the odds ratio, its optimality, and the printed
direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.optimize import linprog

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import Figures, publish
from congenial.figures.statements import count, margin
from congenial.inference.odds_ratio import OddsRatioTest
from congenial.ledger.reassessment import suppose
from congenial.pairs.adjacency import SemiAdjacent
from congenial.papers.item import Study
from congenial.papers.semi_dp.real_knorm import table_cones
from congenial.papers.semi_dp.semi_figures import projection
from congenial.privacy.semantics import neighbourhood
from congenial.sampling.canonical import CanonicalNoise, CanonicalNormal, Tulap
from congenial.sampling.knorm_noise import Gauge

Database = tuple[Any, ...]  # one answer per person


def conforming(answers: list[Any], n: int, statistic: Callable[[Database], Any], t: Any) -> Any:
    """All databases of n people with statistic(X) = t."""
    return [x for x in product(answers, repeat=n) if statistic(x) == t]


def hamming(x: Database, y: Database) -> int:
    """Records in which two databases differ."""
    return sum(a != b for a, b in zip(x, y, strict=True))


def literal(databases: list[Database]) -> int:
    """Definition 13 as printed: sup over person and two answers of the nearest pair of databases.

    >>> literal([(1, 1, 0), (1, 0, 1), (0, 1, 1)])
    2
    """
    worst = 0
    for i in range(len(databases[0])):
        answers = {x[i] for x in databases}
        for a, b in product(answers, repeat=2):
            pairs = ((x, y) for x in databases if x[i] == a for y in databases if y[i] == b)
            worst = max(worst, min(hamming(x, y) for x, y in pairs))
    return worst


def robust(databases: list[Database]) -> int:
    """The same for every database X, not just some: sup over X, person and answer of the nearest
    conforming Y.
    """
    return max(
        min(hamming(x, y) for y in databases if y[i] == b)
        for x in databases
        for i in range(len(x))
        for b in {y[i] for y in databases}
    )


def example2(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """Three bits with two ones: conforming databases and their distances."""
    left = conforming([0, 1], 3, sum, 2)
    rows = [[str(x), str(y), hamming(x, y)] for x in left for y in left if x < y]
    return {
        "columns": ["database", "conforming database", "records apart"],
        "rows": rows,
        "notes": ["No two conforming databases differ in one record: distance 1 is no standard."],
    }


def example3(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """a(t) of three bits for every published number of ones."""
    rows = []
    for t in range(4):
        left = conforming([0, 1], 3, sum, t)
        rows.append([t, len(left), literal(left), robust(left)])
    return {
        "columns": ["t", "conforming databases", "a(t) literal", "a(t) robust"],
        "rows": rows,
        "notes": ["a(t) = 0: one conforming database, nothing is left to protect."],
    }


def nearest(databases: list[Database]) -> list[int]:
    """For each database the distance to the nearest other one; 0 if there is no other.

    >>> nearest([(0, 0, 0), (0, 0, 1), (1, 1, 1)])
    [1, 1, 2]
    """
    return [min((hamming(x, y) for y in databases if y != x), default=0) for x in databases]


def remark14(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """a_min and a_maxmin beside both readings of a(t), and who is left without a neighbour."""
    bits = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1)]
    pairs = list(product((1, 2), repeat=2))

    def margins(x: Database) -> Any:
        return tuple(sum(np.array(x) == 1))

    cases = {f"three bits, {t} ones": conforming([0, 1], 3, sum, t) for t in range(4)}
    cases["three bits, anything but two ones"] = bits
    cases["2 x 2 table of 3 people, margins (2, 1) and (2, 1)"] = conforming(
        pairs, 3, margins, (2, 2)
    )
    rows = []
    for words, databases in cases.items():
        away, printed = nearest(databases), literal(databases)
        alone = sum(d > printed for d in away)
        rows.append(
            [words, len(databases), min(away), max(away), printed, robust(databases), alone]
        )
    return {
        "columns": [
            "published",
            "conforming databases",
            "a_min",
            "a_maxmin",
            "a(t) literal",
            "a(t) robust",
            "without a neighbour at a(t) literal",
        ],
        "rows": rows,
        "notes": [
            "a_min: the two closest conforming databases. a_maxmin: the database whose nearest "
            "other one is farthest away.",
            "Definition 13 as printed leaves 111 without a neighbour where the number of ones is "
            "anything but two; the robust reading reaches every database.",
            "In the 2 x 2 table every database has another at distance a_maxmin, but not one in "
            "which a given person has any given answer: that takes the robust a(t).",
        ],
    }


def two_by_two(counts: list[list[int]]) -> Table:
    """A 2 x 2 table over A1 and A2."""
    schema = Schema.from_dict({"A1": {"levels": ["1", "2"]}, "A2": {"levels": ["1", "2"]}})
    return Table(schema, schema.names, np.array(counts))


def example4(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """T(X) of a small 2 x 2 table is its margins, as the product publishes them."""
    counts = [[2, 1], [0, 3]]
    published = publish(two_by_two(counts), margin("A1"), margin("A2"))
    assert published.values is not None
    rows = []
    for statement, figures in zip(published.statements, published.values, strict=True):
        assert figures is not None
        rows += [[statement.by[0], level + 1, int(v)] for level, v in enumerate(figures)]
    return {
        "columns": ["margin", "level", "published count"],
        "rows": rows,
        "notes": [f"The table is {counts}."],
    }


def example5(study: Study) -> dict[str, Any]:
    """a(t) of 2 x 2 tables given both margins, all margins of n people, two readings."""
    people = range(2, 4 if study.quick else 6)
    answers = list(product((1, 2), repeat=2))
    rows = []
    for n in people:
        groups: dict[Any, list[Database]] = {}
        for x in product(answers, repeat=n):
            groups.setdefault(tuple(sum(np.array(x) == 1)), []).append(x)
        counts: dict[tuple[int, int], int] = {}
        for databases in groups.values():
            key = literal(databases), robust(databases)
            counts[key] = counts.get(key, 0) + 1
        rows += [[n, *key, number] for key, number in sorted(counts.items())]
    product_says = SemiAdjacent(publish(two_by_two([[1, 1], [1, 0]]), margin("A1"), margin("A2")))
    return {
        "columns": ["people", "a(t) literal", "a(t) robust", "margins with these"],
        "rows": rows,
        "notes": [
            "The paper's a(t) = 3 is the robust reading; Definition 13 as printed never exceeds 2.",
            f"The product's a* for the table ((1, 1), (1, 0)) is {product_says.records}.",
        ],
    }


def example6(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """How many pairs group privacy of size a and Semi-DP protect, three bits, t = 2."""
    every, left = list(product((0, 1), repeat=3)), conforming([0, 1], 3, sum, 2)
    rows = []
    for a in (1, 2, 3):
        group = sum(hamming(x, y) <= a for x in every for y in every if x != y)
        semi = sum(hamming(x, y) <= a for x in left for y in left if x != y)
        rows.append([a, group, semi])
    return {
        "columns": ["a", "pairs in IND(D, A_a)", "pairs in IND(D_t, A_a)"],
        "rows": rows,
        "notes": [
            "Ordered pairs of different databases. The two promises have the same f and are not "
            "the same promise: Semi-DP is about fewer pairs (Definition 20)."
        ],
    }


UNREACHED = -1


def steps(databases: Sequence[Any], distance: Callable[[Any, Any], int]) -> Any:
    """Least number of steps of distance 1 between any two databases; -1 where there is no way.

    >>> steps([(0, 0), (0, 1), (1, 1)], hamming).tolist()[0]
    [0, 1, 2]
    """
    from scipy.sparse.csgraph import shortest_path

    near = np.array([[distance(x, y) == 1 for y in databases] for x in databases])
    steps = shortest_path(near.astype(float), unweighted=True)
    return np.where(np.isinf(steps), UNREACHED, steps).astype(int)


def symmetric_difference(x: tuple[int, ...], y: tuple[int, ...]) -> int:
    """Records to add or remove: the l1 distance of the numbers of records of each kind."""
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def example1(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """Is every distance the number of single steps? Hamming, symmetric difference, conforming."""
    tables = [x for x in product(range(4), repeat=3) if sum(x) <= 3]
    cases: list[tuple[str, list[Any], Callable[[Any, Any], int]]] = [
        ("Hamming, 3 records of 3 answers", list(product(range(3), repeat=3)), hamming),
        ("symmetric difference, up to 3 records of 3 answers", tables, symmetric_difference),
        ("Hamming, three bits with two ones", conforming([0, 1], 3, sum, 2), hamming),
    ]
    rows = []
    for words, databases, distance in cases:
        far = np.array([[distance(x, y) for y in databases] for x in databases])
        walked = steps(databases, distance)
        unlike = int((far != walked).sum()) // 2
        rows.append([words, len(databases), int(far.max()), unlike, unlike == 0])
    return {
        "columns": ["metric", "databases", "largest distance", "pairs without a way", "holds"],
        "rows": rows,
        "notes": [
            "A metric is an adjacency metric if every distance is the least number of steps of "
            "distance 1 (Definition 1). A pair without a way is one whose distance is not that.",
            "The last line is the metric of the first on conforming databases only: no step of "
            "distance 1 is left there, which is why Semi-DP needs its own parameter a(t).",
        ],
    }


# ---- section 7 -----------------------------------------------------------------------------------

ANSWERS = tuple(product((1, 2), repeat=2))
Published = Callable[[Database], Any]
PUBLISHED: dict[str, Published] = {
    "nothing": lambda _: None,
    "margin of A1": lambda x: sum(a == 1 for a, _ in x),
    "margins of A1 and A2": lambda x: (sum(a == 1 for a, _ in x), sum(b == 1 for _, b in x)),
}


def answers_left(databases: Iterable[Database], known: Sequence[int]) -> dict[Any, set[Any]]:
    """Answers of the first person among databases that agree on the people in `known`."""
    left: dict[Any, set[Any]] = {}
    for x in databases:
        left.setdefault(tuple(x[i] for i in known), set()).add(x[0])
    return left


def _line(people: int, words: str, figures: Published, known: int) -> list[Any]:
    """Over all databases and all sets of `known` others: answers left to the first person."""
    groups: dict[Any, list[Database]] = {}
    for x in product(ANSWERS, repeat=people):
        groups.setdefault(figures(x), []).append(x)
    left = []
    for databases in groups.values():
        for others in combinations(range(1, people), known):
            table = answers_left(databases, others)
            left += [len(table[tuple(x[i] for i in others)]) for x in databases]
    return [words, known, min(left), float(np.mean(left)), float(np.mean(np.array(left) == 1))]


def section7(study: Study) -> dict[str, Any]:
    """Answers left to one person, by what is published and how many other records are known."""
    people = 3 if study.quick else 4
    rows = [
        _line(people, words, figures, records_known)
        for words, figures in PUBLISHED.items()
        for records_known in range(people)
    ]
    schema = Schema.from_dict({"A1": {"levels": ["1", "2"]}, "A2": {"levels": ["1", "2"]}})
    margins = Figures(schema, (margin("A1"), margin("A2")))
    more = suppose(margins, count("A1 = '1' and A2 = '1'"))
    return {
        "columns": [
            "published",
            "other records known",
            "fewest answers left",
            "average",
            "share with one answer left",
        ],
        "rows": rows,
        "notes": [
            f"{people} people with two yes/no answers each; all databases and all choices of known "
            "records, weighed equally. Without figures four answers are left whatever is known.",
            "With both margins published, someone who knows all other records knows the last one: "
            "no pair of databases is left for a promise to be about.",
            "Side information of the form 'so many people are ...' is one more figure: with both "
            "margins and the count of A1 = 1 and A2 = 1 the neighbourhood is "
            f"{neighbourhood(SemiAdjacent(more))} (`congenial.ledger.suppose`).",
        ],
    }


SHAPES = ((2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (4, 4))


def example7(study: Study) -> dict[str, Any]:
    """Size of S and its sensitivities under A_2 and A_3."""
    rows = []
    for shape in SHAPES[:4] if study.quick else SHAPES:
        for records in (2, 3):
            s = Gauge(shape, records).generators.reshape(-1, shape[0] * shape[1])
            rows.append(
                [
                    f"{shape[0]} x {shape[1]}",
                    f"A_{records}",
                    len(s) + 1,
                    int(np.abs(s).sum(axis=1).max()),
                    int((s**2).sum(axis=1).max()),
                    int(np.abs(s).max()),
                    int(np.linalg.matrix_rank(s)),
                ]
            )
    return {
        "columns": ["table", "adjacency", "|S|", "Delta_1", "Delta_2^2", "Delta_inf", "rank"],
        "rows": rows,
        "notes": [
            "The paper's set under A_3 is the one listed under A_2: true for 2 x c. From 3 x 3 on "
            "a cycle through three rows and three columns keeps both margins at distance 3."
        ],
    }


def example8(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """The projection matrix P of a 2 x 2 table."""
    matrix = projection(2).apply(np.eye(4))
    return {
        "columns": ["x11", "x12", "x21", "x22"],
        "rows": [[float(v) for v in row] for row in np.round(matrix, 12)],
        "notes": ["P = u u^T with the unit vector u = (1, -1, -1, 1) / 2; Delta_2 = 2."],
    }


def balls(study: Study) -> dict[str, Any]:
    """Volume of K and E ||noise||^2 at epsilon = 1, exactly."""
    rows = []
    for shape in SHAPES[:4] if study.quick else SHAPES:
        for records in (2, 3):
            cones = table_cones(shape, records)
            rows.append(
                [
                    f"{shape[0]} x {shape[1]}",
                    f"A_{records}",
                    cones.dimension,
                    cones.volume,
                    str(cones.mean_square()),
                    float(cones.mean_square()),
                ]
            )
    return {
        "columns": ["table", "adjacency", "dimension", "volume of K", "E l2^2", "E l2^2, decimal"],
        "rows": rows,
        "notes": [
            "Volumes in orthonormal coordinates of the tables with zero margins; noise at "
            "epsilon = 1, divide by epsilon^2."
        ],
    }


ROWS, COLUMNS = (7, 5), (6, 6)


def best_power(test: OddsRatioTest, eps: float, delta: float, alpha: float, w: float) -> float:
    """The largest power at w of any (eps, delta)-private test of size alpha at 1: a linear
    programme over phi on the support (Lemma 34).
    """
    n = len(test.support)
    above, limits = [], []
    for x in range(n):
        for y in (x - 1, x + 1):
            if 0 <= y < n:
                for sign, free in ((1.0, delta), (-1.0, delta + np.exp(eps) - 1)):
                    # phi(x) <= e^eps phi(y) + delta, and the same for 1 - phi
                    row = np.zeros(n)
                    row[x], row[y] = sign, -sign * np.exp(eps)
                    above.append(row)
                    limits.append(free)
    solution = linprog(
        -test.law(w),
        A_ub=np.array(above),
        b_ub=np.array(limits),
        A_eq=test.law(1.0)[None, :],
        b_eq=[alpha],
        bounds=(0, 1),
        method="highs",
    )
    return float(-solution.fun)


def power(study: Study) -> dict[str, Any]:
    """Power curves at alpha = 0.05 against the linear programme."""
    noises: list[tuple[str, CanonicalNoise, tuple[float, float] | None]] = [
        ("epsilon = 1", Tulap(1), (1.0, 0.0)),
        ("epsilon = 0.5, delta = 0.01", Tulap(0.5, 0.01), (0.5, 0.01)),
        ("mu = 1", CanonicalNormal(1), None),
    ]
    points = (1.0, 2.0, 8.0) if study.quick else (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
    rows: list[list[Any]] = []
    for words, noise, private in noises:
        test = OddsRatioTest(ROWS, COLUMNS, noise)
        for w in points:
            best = None if private is None else best_power(test, *private, 0.05, w)
            rows.append(
                [words, w, float(test.power(0.05, w)), best, float(test.power(0.05, 1 / w))]
            )
    return {
        "columns": ["promise", "w", "power", "best possible", "power, printed direction"],
        "rows": rows,
        "notes": [
            f"alpha = 0.05, row totals {ROWS}, column totals {COLUMNS}; w = odds of row 1 / odds "
            "of row 2.",
            "best possible: a linear programme over all private tests of that size.",
            "The paper prints w = odds2 / odds1 with x11: that test has less power than its size.",
        ],
        "chart": {
            "kind": "line",
            "x": "w",
            "y": "power",
            "by": "promise",
            "x_log": True,
            "x_title": "w: odds of row 1 / odds of row 2",
        },
    }
