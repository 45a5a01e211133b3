"""Example 1 and section 7, by listing databases: steps and distances, and what an adversary who
knows more is left with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.figures.figures import Figures
from congenial.figures.statements import count, margin
from congenial.ledger.reassessment import suppose
from congenial.pairs.adjacency import SemiAdjacent
from congenial.papers.item import Study
from congenial.papers.semi_dp.examples import Database, conforming, hamming
from congenial.privacy.semantics import neighbourhood

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
