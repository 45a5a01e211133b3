"""Brute force over whole databases: slow, obvious, and independent of the product's algebra."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import FigureError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement


def conforming(schema: Schema, statements: tuple[Statement, ...], n: int):
    """All databases of n records, grouped by the values of the statements."""
    cells = schema.size(schema.names)
    plan = Figures(schema, statements)
    found = defaultdict(list)
    figures = {}
    for database in product(range(cells), repeat=n):
        key = tuple(sorted(database))
        if key not in figures:
            table = table_of(schema, database)
            try:
                values = plan.evaluate(table)
            except FigureError:
                figures[key] = None
                continue
            figures[key] = values.digest
            found.setdefault(values.digest, [])
        if figures[key] is not None:
            found[figures[key]].append(database)
    return found


def table_of(schema: Schema, database) -> Table:
    shape = tuple(len(schema.axis(name).levels) for name in schema.names)
    counts = np.bincount(np.asarray(database, dtype=np.int64), minlength=int(np.prod(shape)))
    return Table(schema, schema.names, counts.reshape(shape))


def robust_a(databases) -> int:
    """sup over X, i and every value y possible for i, of the distance to the nearest Y with Y_i =
    y.
    """
    worst = 0
    n = len(databases[0])
    array = np.array(databases)
    for x in databases:
        distance = np.count_nonzero(array != np.array(x), axis=1)
        for i in range(n):
            for y in {d[i] for d in databases}:
                worst = max(worst, int(distance[array[:, i] == y].min()))
    return worst


def differences(schema: Schema, databases, a: int):
    """Distinct differences of conforming tables at most a records apart."""
    tables = {tuple(sorted(d)): table_of(schema, d).counts for d in databases}
    unique = list(tables.values())
    found = {}
    for left in unique:
        for right in unique:
            u = left - right
            if np.abs(u).sum() <= 2 * a:
                found[u.tobytes()] = u
    return list(found.values())


def onto(schema: Schema, u, names):
    """A table difference summed onto the released axes."""
    axes = schema.axes(names)
    full = schema.axes(schema.names)
    out = np.zeros(tuple(len(axis.levels) for axis in axes), dtype=np.int64)
    for index in np.ndindex(*u.shape):
        base = {axis.base: i for axis, i in zip(full, index, strict=True)}
        out[tuple(int(axis.of_base[base[axis.base]]) for axis in axes)] += u[index]
    return out


def distances(databases):
    """Records in which each two databases differ."""
    array = np.array(databases)
    return np.stack([np.count_nonzero(array != x, axis=1) for x in array])


def literal_a(databases) -> int:
    """Definition 13 as printed: the nearest of all pairs that have x and y, worst over x and y."""
    array, apart = np.array(databases), distances(databases)
    worst = 0
    for i in range(array.shape[1]):
        values = np.unique(array[:, i])
        for x in values:
            for y in values:
                pairs = apart[np.ix_(array[:, i] == x, array[:, i] == y)]
                worst = max(worst, int(pairs.min()))
    return worst


def existential_a(schema: Schema, databases) -> int:
    """sup over X, i, y of the distance between tables to the nearest Y with Y_i = y."""
    array = np.array(databases)
    tables = np.stack([table_of(schema, d).counts.reshape(-1) for d in databases])
    worst = 0
    for table in np.unique(tables, axis=0):
        apart = np.abs(tables - table).sum(axis=1) // 2
        for i in range(array.shape[1]):
            for y in np.unique(array[:, i]):
                worst = max(worst, int(apart[array[:, i] == y].min()))
    return worst


def remark_14(databases) -> tuple[int, int]:
    """a_min and a_maxmin: over pairs of different databases."""
    apart = distances(databases)
    if len(databases) == 1:
        return 0, 0
    nearest = np.where(apart == 0, apart.max() + 1, apart).min(axis=1)
    return int(nearest.min()), int(nearest.max())


def generating_a(schema: Schema, databases) -> int:
    """Least a whose differences generate those of all conforming tables; by Hermite forms."""
    from flint import fmpz_mat

    def form(rows):
        array = np.unique(np.stack(rows).reshape(len(rows), -1), axis=0)
        hermite = fmpz_mat(array.tolist()).hnf()
        return [row for row in hermite.tolist() if any(row)]

    everything = differences(schema, databases, len(databases[0]))
    whole = form(everything)
    for a in range(len(databases[0]) + 1):
        if form([u for u in everything if np.abs(u).sum() <= 2 * a]) == whole:
            return a
    raise AssertionError


def components(schema: Schema, databases, a: int) -> int:
    """Parts of the conforming tables when those at most a records apart are joined."""
    tables = np.unique([table_of(schema, d).counts.reshape(-1) for d in databases], axis=0)
    left, parts = set(range(len(tables))), 0
    while left:
        parts, stack = parts + 1, [left.pop()]
        while stack:
            near = np.abs(tables - tables[stack.pop()]).sum(axis=1) <= 2 * a
            reached = {k for k in left if near[k]}
            left -= reached
            stack += reached
    return parts


# ---- symmetric difference: people come and go ------------------------------------------------


def by_rows(schema: Schema, statements: tuple[Statement, ...], most: int):
    """Conforming tables of at most so many people, grouped by figures.

    Only groups that the bound on people does not cut: their figures fix it, or leave enough room.
    """
    plan, found = Figures(schema, statements), {}
    cells = schema.size(schema.names)
    for counts in product(range(most + 3), repeat=cells):
        if sum(counts) <= most + 2:
            shape = tuple(len(schema.axis(name).levels) for name in schema.names)
            table = Table(schema, schema.names, np.array(counts).reshape(shape))
            try:
                public = plan.evaluate(table)
            except FigureError:
                continue
            found.setdefault(public.digest, (public, []))[1].append(table.counts)
    for public, tables in found.values():
        if min(t.sum() for t in tables) <= most // 2:
            yield public, tables


def participation(tables) -> int:
    """sup over tables, and ways for a person to come or leave, of rows that differ; the tables with
    the fewest people only, so that the cut above most people is far.
    """
    flat = np.array([t.reshape(-1) for t in tables])
    fewest, worst = flat.sum(axis=1).min(), 1
    eye = np.eye(flat.shape[1], dtype=np.int64)
    for s in flat[flat.sum(axis=1) == fewest]:
        for y in np.flatnonzero(flat.any(axis=0)):
            has = flat[flat[:, y] > 0]
            worst = max(worst, int(1 + np.abs(has - eye[y] - s).sum(axis=1).min()))
            if s[y]:
                worst = max(worst, int(1 + np.abs(flat - s + eye[y]).sum(axis=1).min()))
    return worst


def generating_rows(tables) -> int:
    """Least a whose differences (by rows) generate all; by Hermite forms."""
    from flint import fmpz_mat

    flat = np.array([t.reshape(-1) for t in tables])
    everything = np.unique((flat[:, None] - flat[None]).reshape(-1, flat.shape[1]), axis=0)

    def form(rows):
        hermite = fmpz_mat(rows.tolist()).hnf()
        return [row for row in hermite.tolist() if any(row)]

    whole = form(everything)
    for a in range(int(np.abs(everything).sum(axis=1).max()) + 1):
        if form(everything[np.abs(everything).sum(axis=1) <= a]) == whole:
            return max(a, 1)
    raise AssertionError


def differences_by_rows(tables, a: int):
    """Distinct differences of at most a rows."""
    found = {}
    for left in tables:
        for right in tables:
            if np.abs(left - right).sum() <= a:
                found[(left - right).tobytes()] = left - right
    return list(found.values())
