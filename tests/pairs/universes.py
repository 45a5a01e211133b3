"""Small universes of every structure, on which brute force is possible."""

from __future__ import annotations

from congenial.data.schema import Schema
from congenial.figures.figures import Figures
from congenial.figures.statements import (
    at_least,
    at_most,
    count,
    linear,
    margin,
    structural_zeros,
    total,
)
from tests.pairs.brute import conforming, table_of
from tests.worlds import levels

CUBE, WIDE, SQUARE = levels(x=2, y=2, z=2), levels(x=2, y=3), levels(x=3, y=3)
ONE, TWO = levels(w=4), levels(x=2, y=2)
BLOCKS = Schema.from_dict(
    {
        "block": {"levels": ["0", "1", "2"], "within": {"tract": ["a", "a", "b"]}},
        "age": {"levels": ["0", "1", "2"]},
    }
)
FOUR = levels(x=2, y=2, z=2, w=2)
TWO_WAY = (margin("x", "y"), margin("x", "z"), margin("y", "z"))

# name: schema, figures, numbers of people, every how many universes one is looked at
UNIVERSES = {
    "one-way, 2 x 3": (WIDE, (margin("x"), margin("y")), (2, 3, 4), 6),
    "one-way, 3 x 3": (SQUARE, (margin("x"), margin("y")), (2, 3), 9),
    "one-way, 2 x 2 x 2": (CUBE, (margin("x"), margin("y"), margin("z")), (2, 3, 4), 10),
    "joint": (CUBE, (margin("x", "y"), margin("z")), (2, 3, 4), 15),
    "overlapping": (CUBE, TWO_WAY, (3, 4), 23),
    "chain": (CUBE, (margin("x", "y"), margin("y", "z")), (3, 4), 19),
    "overlapping counts": (
        ONE,
        (total(), count("w in ('0', '1')"), count("w in ('1', '2')")),
        (3, 4),
        2,
    ),
    "no total": (ONE, (count("w in ('0', '1')"), count("w in ('1', '2')")), (3,), 1),
    "weighted": (
        levels(w=3),
        (total(), linear({"w = '0'": 4, "w = '1'": 3, "w = '2'": 1})),
        (3, 5),
        2,
    ),
    "weighted, no total": (levels(w=3), (linear({"w = '0'": 2, "w = '1'": 1}),), (3,), 1),
    "weighted, four": (
        ONE,
        (total(), linear({"w = '0'": 3, "w = '1'": 2, "w = '3'": 1})),
        (3, 4),
        2,
    ),
    "weighted, large atoms": (TWO, (linear({"x = '0'": 2, "y = '0'": 1}), total()), (2, 3), 1),
    "a bound": (TWO, (at_least(count("x = '0'"), 1),), (2, 3), 1),
    "margin and bound": (WIDE, (total(), at_most(count("y = '0'"), 1), margin("x")), (2, 3), 1),
    "margins and bound": (
        TWO,
        (margin("x"), margin("y"), at_most(count("x = '0' and y = '0'"), 1)),
        (3, 4),
        2,
    ),
    "margins in other words": (
        TWO,
        (
            linear({"x = '0'": 1, "y = '0'": 1}),
            linear({"x = '0'": 1, "y = '0'": -1}),
        ),
        (3, 4),
        2,
    ),
    "area totals, ages of the nation": (
        levels(area=2, age=2, sex=2),
        (total(by="area"), margin("age")),
        (2, 3, 4),
        9,
    ),
    "area totals, region x age": (BLOCKS, (total(by="block"), margin("tract", "age")), (2, 3), 9),
    "block totals, tract voting age": (
        BLOCKS,
        (total(by="block"), count("age in ('1', '2')", by="tract")),
        (2, 3),
        9,
    ),
    "area x sex, area x age, area x race": (
        FOUR,
        (margin("x", "y"), margin("x", "z"), margin("x", "w")),
        (2, 3),
        13,
    ),
    "one-way, 2 x 2 x 2 x 2": (FOUR, tuple(margin(name) for name in FOUR.names), (2, 3), 13),
    "structural zero": (
        SQUARE,
        (margin("x"), margin("y"), structural_zeros("x = '0' and y = '0'")),
        (2, 3),
        9,
    ),
}


def universes(name: str, most: int = 150, *, every: bool = False):
    """Published figures and all databases that agree with them, for some values of the figures, or
    for `every` value.
    """
    schema, statements, people, step = UNIVERSES[name]
    for n in people:
        found = [d for d in conforming(schema, statements, n).values() if len(d) <= most]
        found.sort(key=len, reverse=True)  # the same share of large and small ones
        for databases in found[:: 1 if every else step if n > 2 else 2]:
            table = table_of(schema, databases[0])
            yield Figures(schema, statements).evaluate(table), databases
