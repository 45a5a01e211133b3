"""Several tables at once as cells, tables and attributes grow: processor seconds of each step.

Run `python -m benchmarks tables_growth`. Made-up people, rho = 1/2, default design. Cells: counties
by sex and 23 ages with total, women and voting age of each county exact, six tables. Tables: six
attributes of four levels, more and more of their two- and three-way tables. Attributes: all one-
and two-way tables of so many attributes of four levels. Seconds are those of types and design, and
of draw, estimates and whole counts together.
"""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.tables_design import SEED, census, flat, ways
from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.pairs.adjacency import ReplaceOne, SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import SeededRandomness

COUNTIES = ((100, 4), (400, 12), (1_600, 30), (6_400, 51))
TABLES = (6, 15, 35)
ATTRIBUTES = (4, 6, 8, 9)
PEOPLE = 20_000


def measured(
    what: str, adjacency: Adjacency, tables: list[list[str]], counts: Any
) -> dict[str, Any]:
    """One row: a design, and one release of it."""
    start = time.process_time()
    made = calibrate_tables(Guarantee.zero_concentrated("1/2", adjacency), tables)
    designed = time.process_time()
    made.release(counts, SeededRandomness(SEED))
    return {
        "what": what,
        "cells": int(counts.counts.size),
        "tables": len(tables),
        "types and design, s": designed - start,
        "draw, estimates, counts, s": time.process_time() - designed,
    }


def cell_rows(sizes: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
    rows = []
    for units, groups in sizes:
        name, planned, tables = census(units, groups)
        schema = planned.schema
        drawn = np.random.default_rng(SEED).poisson(8.0, (units, 2, 23)).astype(np.int64)
        table = Table(schema, schema.names, drawn)
        adjacency = SemiAdjacent(publish(table, *planned.statements))
        rows.append(measured(name, adjacency, tables, table))
    return rows


def _people(attributes: int) -> Table:
    schema = flat((4,) * attributes)
    chosen = np.random.default_rng(SEED).integers(0, 4, (PEOPLE, attributes))
    counts = np.zeros((4,) * attributes, dtype=np.int64)
    np.add.at(counts, tuple(chosen.T), 1)
    return Table(schema, schema.names, counts)


def table_rows() -> list[dict[str, Any]]:
    table = _people(6)
    pairs = [[f"v{i}" for i in t] for t in ways((4,) * 6, 2) if len(t) == 2]
    threes = [[f"v{i}" for i in t] for t in combinations(range(6), 3)]
    return [
        measured(f"{many} tables", ReplaceOne(table.schema), [*threes, *pairs][-many:], table)
        for many in TABLES
    ]


def attribute_rows(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    rows = []
    for many in sizes:
        table = _people(many)
        tables = [[f"v{i}" for i in t] for t in ways((4,) * many, 2)]
        rows.append(measured(f"{many} attributes", ReplaceOne(table.schema), tables, table))
    return rows


SMALLEST = {"COUNTIES": ((4, 2),), "TABLES": (2,), "ATTRIBUTES": (2,)}


def run() -> list[dict[str, Any]]:
    """One row for each size, once everything that is compiled has been."""
    cell_rows(COUNTIES[:1])
    attribute_rows((3,))
    return [*cell_rows(COUNTIES), *table_rows(), *attribute_rows(ATTRIBUTES)]
