"""Examples 2 to 6 and Remark 14, by listing every database: distances, neighbours and the
semi-adjacent parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.figures.statements import margin
from congenial.pairs.adjacency import SemiAdjacent
from congenial.papers.item import Study

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
