"""Small universes, one for each structure and adjacency, on which a promise can be checked by
enumeration; and the pairs of databases that must look alike there.

Nothing here trusts what the product computes about an adjacency but the number of records: tables
are enumerated from the schema and the published figures, and adjacency is counted record by record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arguments import COUNT, takes
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.figures.statements import (
    Statement,
    at_least,
    count,
    linear,
    margin,
    structural_zeros,
    total,
)
from congenial.pairs.a_star import Metric, Reading
from congenial.pairs.adjacency import AddRemove, ReplaceOne, SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.pairs.universe import Universe, selected

Pair = tuple[Table, Table]


@dataclass(frozen=True, eq=False)
class SmallUniverse:
    """A schema, a conforming table, figures published of it, and the axes of a released table.

    `max_rows`: people have several rows, which come and go; no figures are published then.
    """

    label: str
    table: Table
    statements: tuple[Statement, ...]
    release: tuple[str, ...]
    max_rows: int | None = None
    reading: Reading = "robust"
    metric: Metric = "replace-one"

    @property
    def people(self) -> int:
        """How many people the table has."""
        return self.table.total

    @cached_property
    def adjacency(self) -> Adjacency:
        """The databases that must look alike."""
        if self.max_rows is not None:
            return AddRemove(self.table.schema, self.max_rows)
        if not self.statements:
            return ReplaceOne(self.table.schema)
        public = publish(self.table, *self.statements)
        return SemiAdjacent(public, self.reading, self.metric)

    @cached_property
    def complete(self) -> bool:
        """Whether its pairs are all that the promise is about: the figures fix how many people
        there are, or there are no figures and every size has the same pairs.
        """
        if not self.statements:
            return True
        assert isinstance(self.adjacency, SemiAdjacent)
        return self.adjacency.people_kept

    def pairs(self) -> list[Pair]:
        """All ordered pairs of different tables that must look alike."""
        if self.reading == "existential":
            return list(selected_pairs(self.adjacency, self.people))
        return list(adjacent_pairs(self.adjacency, self.people))


@takes(adjacency=Adjacency, n=COUNT)
def adjacent_pairs(adjacency: Adjacency, n: int) -> Iterator[Pair]:
    """Ordered pairs of different tables whose databases can be adjacent, n people in the first.

    Two tables have databases at Hamming distance d when ||s - s'||_1 = 2d, and at symmetric
    difference d when it is d.
    """
    universe = Universe(adjacency.figures)
    tables = list(universe.tables(n))
    if adjacency.metric == "symmetric difference":
        limit = adjacency.records
        others = [t for m in range(max(0, n - limit), n + limit + 1) for t in universe.tables(m)]
    else:
        limit, others = 2 * adjacency.records, tables
    for left in tables:
        for right in others:
            if 0 < int(np.abs(left.counts - right.counts).sum()) <= limit:
                yield left, right


def selected_pairs(adjacency: Adjacency, n: int) -> Iterator[Pair]:
    """Ordered pairs of the existential reading: a table, and the one that the stored rule puts in
    its place for an answer that somebody could have.
    """
    tables = list(Universe(adjacency.figures).tables(n))
    possible = np.any([table.counts > 0 for table in tables], axis=0)
    for table in tables:
        for answer in zip(*np.nonzero(possible), strict=True):
            other = selected(adjacency.figures, table, tuple(int(i) for i in answer))
            if np.any(other.counts != table.counts):
                yield table, other
                yield other, table


# ---- the list ------------------------------------------------------------------------------------

THREE = Schema.from_dict({"x": {"levels": ["a", "b", "c"]}})
FIVE = Schema.from_dict({"x": {"levels": ["a", "b", "c", "d", "e"]}})
TWO_BY_THREE = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
TWO_BY_TWO = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b"]}})
THREE_BY_THREE = Schema.from_dict(
    {"g": {"levels": ["p", "q", "r"]}, "x": {"levels": ["a", "b", "c"]}}
)
SEX_BY_AGE = Schema.from_dict(
    {"sex": {"levels": ["f", "m", "x"]}, "age": {"edges": [0, 18], "top": "18+"}}
)
AGES = Schema.from_dict({"age": {"edges": [0, 5, 18, 65], "top": "65+"}})


def _table(schema: Schema, counts: Any) -> Table:
    return Table(schema, schema.names, np.array(counts))


UNIVERSES = (
    SmallUniverse("no mandates", _table(THREE, [1, 0, 2]), (), ("x",)),
    SmallUniverse("several rows", _table(THREE, [1, 0, 2]), (), ("x",), max_rows=2),
    SmallUniverse("total", _table(THREE, [2, 0, 1]), (total(),), ("x",)),
    SmallUniverse("one person", _table(THREE, [0, 1, 0]), (total(),), ("x",)),
    SmallUniverse(
        "totals by group",
        _table(TWO_BY_THREE, [[1, 0, 0], [0, 1, 1]]),
        (total(by="g"),),
        ("g", "x"),
    ),
    SmallUniverse(
        "hidden group", _table(TWO_BY_THREE, [[1, 0, 0], [0, 1, 0]]), (total(by="g"),), ("x",)
    ),
    SmallUniverse(
        "voting age", _table(AGES, [1, 0, 2, 0]), (total(), count("age >= 18")), ("age",)
    ),
    SmallUniverse(
        "one figure, rest loose", _table(AGES, [1, 1, 1, 0]), (count("age >= 18"),), ("age",)
    ),
    SmallUniverse(
        "weighted",
        _table(AGES, [1, 0, 1, 0]),
        (linear({"age < 18": 2, "age >= 18": 3}), total()),
        ("age",),
    ),
    SmallUniverse(
        "impossible cells",
        _table(AGES, [0, 1, 1, 0]),
        (total(), structural_zeros("age < 5")),
        ("age",),
    ),
    SmallUniverse(
        "both margins", _table(TWO_BY_TWO, [[1, 1], [0, 1]]), (margin("g"), margin("x")), ("g", "x")
    ),
    SmallUniverse(
        "margins of 2 x 3",
        _table(TWO_BY_THREE, [[1, 0, 1], [0, 1, 0]]),
        (margin("g"), margin("x")),
        ("g", "x"),
    ),
    SmallUniverse(
        "crossing groups",
        _table(SEX_BY_AGE, [[1, 0], [0, 0], [0, 1]]),
        (total(), count("sex = 'f'"), count("age >= 18")),
        ("sex", "age"),
    ),
    SmallUniverse(
        "crossing, no total",
        _table(TWO_BY_TWO, [[1, 0], [1, 1]]),
        (count("g = 'p'"), count("x = 'a'")),
        ("g", "x"),
    ),
    SmallUniverse(
        "overlapping counts, coarser table",
        _table(TWO_BY_THREE, [[1, 0, 1], [1, 0, 0]]),
        (count("g = 'p' and x in ('a', 'b')"), count("g = 'p' and x in ('b', 'c')")),
        ("g",),
    ),
    SmallUniverse(
        "empty group", _table(TWO_BY_THREE, [[0, 0, 0], [2, 0, 0]]), (total(by="g"),), ("g", "x")
    ),
)
"""Universes small enough to list, one per structure of figures and adjacency."""

# Structures and adjacencies that the others leave out.
FURTHER = (
    SmallUniverse(
        "hexagon",
        _table(THREE_BY_THREE, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (margin("g"), margin("x")),
        ("g", "x"),
    ),
    SmallUniverse(
        "sparse margins",
        _table(THREE_BY_THREE, [[1, 0, 0], [0, 0, 2], [0, 0, 0]]),
        (margin("g"), margin("x")),
        ("g", "x"),
    ),
    SmallUniverse(
        "a figure of zero",
        _table(FIVE, [1, 0, 0, 0, 1]),
        (count("x in ('a', 'b', 'd')"), count("x in ('a', 'd', 'e')"), count("x in ('b', 'c')")),
        ("x",),
    ),
    SmallUniverse(
        "crossing weights",
        _table(AGES, [1, 1, 0, 1]),
        (total(), linear({"age < 5": 3, "age >= 5 and age < 18": 2, "age >= 65": 1})),
        ("age",),
    ),
    SmallUniverse(
        "bounds",
        _table(AGES, [1, 0, 1, 1]),
        (total(), at_least(count("age >= 18"), 1)),
        ("age",),
    ),
    SmallUniverse(
        "rows come and go",
        _table(AGES, [1, 0, 1, 0]),
        (count("age >= 18"),),
        ("age",),
        metric="symmetric difference",
    ),
    SmallUniverse(
        "stand-ins",
        _table(TWO_BY_TWO, [[1, 1], [0, 1]]),
        (margin("g"), margin("x")),
        ("g", "x"),
        reading="existential",
    ),
)
