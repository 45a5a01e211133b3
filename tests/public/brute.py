"""Brute force over whole databases: slow, obvious, and independent of the product's algebra."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import MandateError
from congenial.public.invariants import Invariants
from congenial.public.statements import Statement


def conforming(schema: Schema, statements: tuple[Statement, ...], n: int):
    """All databases of n records, grouped by the values of the statements."""
    cells = schema.size(schema.names)
    plan = Invariants(schema, statements)
    found = defaultdict(list)
    figures = {}
    for database in product(range(cells), repeat=n):
        key = tuple(sorted(database))
        if key not in figures:
            table = table_of(schema, database)
            try:
                values = plan.evaluate(table)
            except MandateError:
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
    return max(worst, 1)


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
