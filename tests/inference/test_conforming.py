"""Which tables the public figures leave, where a chain starts, and that moves reach them all."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import congenial as cg
from congenial.figures.support import support
from congenial.inference import InferenceError
from congenial.inference.latent_tables import LatentTables

SEED = 5
NO_LIMIT = np.inf
MOST = 3  # the largest count in any of the tables below


def conforming(schema, counts, *statements, names=None) -> tuple[LatentTables, np.ndarray]:
    table = cg.Table(schema, schema.names, np.asarray(counts))
    names = schema.names if names is None else names
    known = LatentTables.of_support(support(cg.publish(table, *statements), names))
    return known, table.marginal(names).counts.reshape(-1)


def schema_of(*sizes):
    return cg.Schema.from_dict(
        {f"v{i}": {"levels": [f"{i}{k}" for k in range(size)]} for i, size in enumerate(sizes)}
    )


CASES = {
    "total": (schema_of(4), [2, 0, 1, 1], (cg.total(),)),
    "totals by group": (schema_of(2, 3), [[1, 0, 2], [0, 2, 0]], (cg.total(by="v0"),)),
    "one figure": (schema_of(3), [1, 2, 0], (cg.count("v0 = '00'"),)),
    "two margins": (
        schema_of(2, 3), [[1, 0, 2], [0, 2, 1]], (cg.margin("v0"), cg.margin("v1")),
    ),
    "three margins": (
        schema_of(2, 2, 2),
        [[[1, 0], [0, 1]], [[0, 1], [1, 0]]],
        (cg.margin("v0"), cg.margin("v1"), cg.margin("v2")),
    ),
    "margins of groups": (
        schema_of(2, 2, 2),
        [[[1, 0], [0, 1]], [[0, 1], [1, 0]]],
        (cg.margin("v0"), cg.margin("v1")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_moves_of_one_unit_reach_every_conforming_table(name):
    schema, counts, statements = CASES[name]
    known, x = conforming(schema, counts, *statements)
    grid = np.array(list(product(range(MOST + 1), repeat=len(x))))
    everything = set(map(tuple, grid[known.holds(grid)].tolist()))
    rng = np.random.default_rng(SEED)
    lines = np.unique(np.concatenate([known.lines(rng) for _ in range(150)]), axis=0)
    steps = np.zeros((2 * len(lines), len(x)), dtype=np.int64)
    for i, line in enumerate(lines):
        for k, cell in enumerate(line):
            if cell >= 0:
                steps[2 * i, cell] += 1 if k < 2 else -1
    steps[1::2] = -steps[::2]
    steps = np.unique(steps, axis=0)
    reached, waiting = {tuple(x.tolist())}, [x]
    while waiting:
        new = waiting.pop() + steps
        new = new[(new.min(axis=1) >= 0) & (new.max(axis=1) <= MOST)]
        assert np.all(known.holds(new))
        fresh = set(map(tuple, new.tolist())) - reached
        reached |= fresh
        waiting += [np.array(one) for one in fresh]
    assert len(everything) > 1
    assert reached == everything


def test_planted_without_exchanges_two_margins_stay_where_they_are():
    known, _ = conforming(*CASES["two margins"][:2], *CASES["two margins"][2])
    assert len(known.lines(np.random.default_rng(SEED))) > 0
    alone = LatentTables(known.labels, known.known, known.totals)
    assert len(alone.lines(np.random.default_rng(SEED))) == 0


@pytest.mark.parametrize("name", CASES)
def test_the_start_conforms_and_is_near(name):
    schema, counts, statements = CASES[name]
    known, x = conforming(schema, counts, *statements)
    noise = np.random.default_rng(SEED).integers(-2, 3, len(x))
    start = known.start((x + noise).astype(float), np.full(len(x), NO_LIMIT))
    assert known.holds(start)
    assert start.min() >= 0
    assert np.abs(start - x).sum() <= 2 * np.abs(noise).sum() + 4


def test_capacities_are_kept_or_refused():
    known, x = conforming(schema_of(3), [4, 1, 1], cg.total())
    start = known.start(x.astype(float), np.array([2.0, 2.0, 2.0]))
    assert start.tolist() == [2, 2, 2]
    with pytest.raises(InferenceError, match="probability zero"):
        known.start(x.astype(float), np.array([2.0, 1.0, 1.0]))


def test_a_structure_without_proved_moves_is_refused():
    statements = (cg.linear({"v0 = '00'": 2, "v0 = '01'": 3, "v0 = '02'": 5}),)
    with pytest.raises(InferenceError, match="no sampler is proved"):
        conforming(schema_of(4), [1, 1, 1, 0], *statements)


def test_cells_that_are_published_are_fixed():
    known, _ = conforming(schema_of(2, 3), [[1, 0, 2], [0, 2, 0]], cg.margin("v0"), names=("v0",))
    assert known.moving.size == 0
    assert known.known.tolist() == [3, 2]
