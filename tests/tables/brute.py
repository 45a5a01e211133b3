"""Norms of differences by comparing whole databases: slow, obvious, independent of the product."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations_with_replacement, product

from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.figures.statements import Statement


def cells_of(schema: Schema):
    """Cells as {attribute: level number}."""
    sizes = [range(schema.attribute(name).size) for name in schema.names]
    return [dict(zip(schema.names, cell, strict=True)) for cell in product(*sizes)]


def label(schema: Schema, cell, names):
    axes = [schema.axis(name) for name in names]
    return tuple(int(axis.of_base[cell[axis.base]]) for axis in axes)


def meets(schema: Schema, cell, condition: str) -> bool:
    if not condition:
        return True
    predicate = parse(condition, schema)
    return bool(predicate.mask()[tuple(cell[name] for name in predicate.bases)])


def figures_of(schema: Schema, statements: tuple[Statement, ...], people):
    """Values of all exact figures, or None for a database with an impossible record."""
    values = []
    for one in statements:
        count: Counter = Counter()
        for cell in people:
            weight = sum(w for condition, w in one.terms if meets(schema, cell, condition))
            count[label(schema, cell, one.by)] += weight
        held = {key: value for key, value in count.items() if value}
        if one.relation == "zero" and held:
            return None
        values.append(tuple(sorted(held.items())))
    return tuple(values)


def norms(schema: Schema, tables, left, right):
    """(||T u||_2^2 ..., ||T u||_1 ...) of the difference of two databases."""
    squares, absolutes = [], []
    for names in tables:
        u: Counter = Counter()
        for cell in left:
            u[label(schema, cell, names)] += 1
        for cell in right:
            u[label(schema, cell, names)] -= 1
        squares.append(sum(v * v for v in u.values()))
        absolutes.append(sum(abs(v) for v in u.values()))
    return tuple(squares), tuple(absolutes)


def by_figures(schema: Schema, statements, n: int):
    """All databases of n people as sorted cell numbers, grouped by their figures."""
    cells, found = cells_of(schema), defaultdict(list)
    for chosen in combinations_with_replacement(range(len(cells)), n):
        key = figures_of(schema, statements, [cells[i] for i in chosen])
        if key is not None:
            found[key].append(chosen)
    return found


def pareto(vectors):
    """Vectors that no other one exceeds or equals everywhere."""
    unique = set(vectors)
    return {
        v
        for v in unique
        if not any(w != v and all(x >= y for x, y in zip(w, v, strict=True)) for w in unique)
    }


def maximal_types(schema: Schema, tables, databases, a: int):
    """Maximal norms over pairs of listed databases that differ in at most a records."""
    cells, squares, absolutes = cells_of(schema), set(), set()
    for left in databases:
        for right in databases:
            removed, added = Counter(left) - Counter(right), Counter(right) - Counter(left)
            if max(removed.total(), added.total()) <= a:
                pair = ([cells[i] for i in side.elements()] for side in (removed, added))
                square, absolute = norms(schema, tables, *pair)
                squares.add(square)
                absolutes.add(absolute)
    return pareto(squares), pareto(absolutes)


def all_types(schema: Schema, statements, tables, a: int):
    """Maximal norms over all pairs of databases of a people each with equal figures.

    People who stay cancel, so these are the differences of at most a records under any values.
    """
    squares, absolutes = set(), set()
    for databases in by_figures(schema, statements, a).values():
        square, absolute = maximal_types(schema, tables, databases, a)
        squares |= square
        absolutes |= absolute
    return pareto(squares), pareto(absolutes)
