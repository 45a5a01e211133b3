"""a* and sensitivities: growth with attributes and levels, and the price of each exact method.

Run `python -m benchmarks sensitivity`. Every row is one schema with its one-way margins, or another
set of figures, from statements to a*, Delta_1, Delta_2^2, Delta_inf and rank.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from congenial import Schema, Table, linear, margin, publish, total
from congenial.figures.figures import Figures
from congenial.pairs.a_star import graver
from congenial.pairs.adjacency import SemiAdjacent
from congenial.papers import sensitivity

SEED = 20240901
SHAPES = (*((2,) * k for k in (2, 3, 4, 5, 6, 8, 10)), *((k,) * 6 for k in (3, 4, 5)))
TWO_WAY = (((2, 2, 2), 40), ((2, 3, 3), 30), ((3, 3, 3), 30), ((3, 3, 3), 3000))  # shape, people
WIDE = 300
HULLS = ((3, 3), (3, 4), (4, 4))
GRAVER = ((3, 3), (3, 4), (4, 4), (4, 5))


def schema_of(levels: Sequence[int]) -> Schema:
    return Schema.from_dict({f"v{i}": {"integers": [1, size]} for i, size in enumerate(levels)})


def table_of(schema: Schema, people: int) -> Table:
    shape = [schema.axis(name).size for name in schema.names]
    cells = np.random.default_rng(SEED).integers(0, int(np.prod(shape)), people)
    counts = np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)
    return Table(schema, schema.names, counts)


def measured(what: str, public: Figures) -> dict[str, Any]:
    """a* and all sensitivities of the whole table, with their footing and the time they took."""
    start = time.process_time()
    adjacency = SemiAdjacent(public)
    found = sensitivity(adjacency, public.schema.names)
    return {
        "what": what,
        "cells": public.schema.size(public.schema.names),
        "a*": adjacency.records,
        "a* is": f"{adjacency.a_star.footing}, {adjacency.a_star.by}",
        "Delta_1": int(found.l1.value),
        "Delta_2^2": int(found.l2_squared.value),
        "Delta_inf": int(found.linf.value),
        "rank": int(found.rank.value),
        "Delta_1 is": f"{found.l1.footing}, {found.l1.by}",
        "cpu seconds": time.process_time() - start,
    }


def one_way_rows() -> list[dict[str, Any]]:
    """Growth with attributes (two levels each) and with levels (six attributes)."""
    rows = []
    for shape in SHAPES:
        schema = schema_of(shape)
        margins = tuple(margin(name) for name in schema.names)
        name = " x ".join(map(str, shape)) if len(shape) < 4 else f"{shape[0]}^{len(shape)}"
        rows.append(measured(f"{name}, margins planned", Figures(schema, margins)))
        table = table_of(schema, 1000)
        rows.append(measured(f"{name}, margins published", publish(table, *margins)))
    return rows


def other_rows() -> list[dict[str, Any]]:
    """Overlapping and weighted figures: enumeration, Graver bound, and listed differences."""
    rows = []
    for shape, people in TWO_WAY:
        schema = schema_of(shape)
        names = schema.names
        pairs = [margin(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        name = " x ".join(map(str, shape))
        what = f"{name}, all two-way margins, n = {people}"
        rows.append(measured(what, publish(table_of(schema, people), *pairs)))
    schema = schema_of((4,))
    weights = linear({"v0 = 1": 5, "v0 = 2": 3, "v0 = 3": 2})
    rows.append(measured("weighted total, n = 60", publish(table_of(schema, 60), total(), weights)))
    schema = schema_of((WIDE, WIDE))
    both = Figures(schema, (margin("v0"), margin("v1")))
    rows.append(measured(f"{WIDE} x {WIDE}, margins planned", both))
    return rows


def hull_rows() -> list[dict[str, Any]]:
    """Listing S and finding the corners of its hull."""
    rows = []
    for shape in HULLS:
        schema = schema_of(shape)
        start = time.process_time()
        both = SemiAdjacent(Figures(schema, (margin("v0"), margin("v1"))))
        found = sensitivity(both, schema.names)
        corners = len(found.vertices)
        rows.append(
            {
                "what": f"{shape[0]} x {shape[1]} under A_3: {found.size} differences, "
                f"{corners} corners",
                "cells": found.dimension,
                "a*": both.records,
                "cpu seconds": time.process_time() - start,
            }
        )
    return rows


def graver_rows() -> list[dict[str, Any]]:
    """The completion alone, on tables with both margins."""
    rows = []
    for r, c in GRAVER:
        matrix = np.vstack(
            [np.kron(np.eye(r), np.ones((1, c))), np.kron(np.ones((1, r)), np.eye(c))]
        )
        start = time.process_time()
        basis = graver(matrix.astype(np.int64))
        size = "too large" if basis is None else f"{len(basis)} elements up to sign"
        rows.append(
            {
                "what": f"Graver basis of {r} x {c} margins: {size}",
                "cpu seconds": time.process_time() - start,
            }
        )
    return rows


SMALLEST = {"SHAPES": ((2, 3),), "TWO_WAY": (((2, 2, 2), 40),), "WIDE": 3}
SMALLEST |= {"HULLS": ((3, 3),), "GRAVER": ((2, 3),)}


def run() -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    graver(np.array([[1, 1, 1, 1]]))  # compiled before the clock runs
    return [*one_way_rows(), *other_rows(), *hull_rows(), *graver_rows()]


if __name__ == "__main__":
    for row in run():
        print(row)
