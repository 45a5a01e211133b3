"""What published figures fix on a released table, against linear algebra over the rationals.

Figures and tables are drawn at random. What the product calls known must follow from the figures:
otherwise it is released exactly, under whatever promise.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from flint import fmpz_mat

from congenial import CongenialError, Figures, Table, count, linear, publish
from congenial.figures import support as module
from congenial.figures.limits import conforming_tables
from congenial.figures.support import FROZEN, LOOSE, support
from congenial.pairs.universe import Universe
from tests.pairs.random_figures import figures
from tests.worlds import levels

SEED = 61
SCHEMAS = (levels(a=2, b=3), levels(a=3, b=3), levels(a=2, b=2, c=2), levels(x=5, b=2))


def universes(sparse: bool, many: int, seed: int = SEED):
    """Published figures, the table they are of, and some axes of it."""
    rng = random.Random(seed)
    while many:
        schema = rng.choice(SCHEMAS)
        shape = tuple(schema.attribute(name).size for name in schema.names)
        few = [0, 0, 0, 1, 2] if sparse else [1, 2, 3]
        counts = np.array([rng.choice(few) for _ in range(int(np.prod(shape)))]).reshape(shape)
        table = Table(schema, schema.names, counts)
        names = tuple(name for name in schema.names if rng.random() < 0.6) or schema.names[:1]
        try:
            yield publish(table, *figures(rng, schema)), table, names
        except CongenialError:  # contradictory before it is told, or twice the same label
            continue
        many -= 1


def rank(rows) -> int:
    array = np.asarray(rows, dtype=int)
    return 0 if 0 in array.shape else fmpz_mat(array.tolist()).rank()


def free_directions(public: Figures, names) -> int:
    """Dimension of the released tables that real tables with these figures can differ by."""
    schema = public.schema
    shape = tuple(schema.attribute(name).size for name in schema.names)
    plan, told, seen = Figures(schema, public.statements), [], []
    for cell in product(*map(range, shape)):
        unit = np.zeros(shape, dtype=np.int64)
        unit[cell] = 1
        one = Table(schema, schema.names, unit)
        told.append(plan.evaluate(one).flat_values)
        seen.append(one.marginal(names).counts.reshape(-1))
    figures_, release = np.array(told).T, np.array(seen).T
    return rank(np.vstack([figures_, release])) - rank(figures_)


def unfit(many: int) -> int:
    """In how many universes the support has too few or too many directions, or wrong sums."""
    wrong = 0
    for public, table, names in universes(sparse=False, many=many):
        known = support(public, names)
        right = known.agrees(table.marginal(names).counts)
        wrong += not right or known.degrees_of_freedom != free_directions(public, names)
    return wrong


def test_what_is_known_follows_from_the_figures():
    """Nobody is missing anywhere, so nothing is known but what linear algebra knows."""
    assert unfit(200) == 0


@pytest.mark.audit
def test_thousands_of_figures():
    assert unfit(5000) == 0
    assert wrong_sums(5000) == 0


def test_groups_nothing_is_said_about_are_not_known(monkeypatch):
    """Planted: a sum that no equation mentions was taken for known, and came out exactly."""
    monkeypatch.setattr(module, "_without_silent", lambda *same: same)
    assert unfit(200) > 0


@pytest.mark.parametrize(
    ("statements", "released"),
    [
        ((count("a = '0' and b in ('0', '1')"), count("a = '0' and b in ('1', '2')")), ("a",)),
        ((linear({"a = '0'": 1, "b = '0'": 2}),), ("a",)),
    ],
)
def test_overlapping_counts_do_not_fix_a_population(statements, released):
    schema = levels(a=2, b=3)
    table = Table(schema, schema.names, np.array([[20, 30, 20], [10, 40, 30]]))
    known = support(publish(table, *statements), released)
    assert set(known.labels.tolist()) == {LOOSE}
    assert known.degrees_of_freedom == 2


def wrong_sums(many: int) -> int:
    """In how many sparse universes the truth does not have the sums, or is not among the tables."""
    wrong = 0
    for public, table, names in universes(sparse=True, many=many):
        truth = table.marginal(names).counts
        right = support(public, names).agrees(truth)
        listed = conforming_tables(public, names)
        if listed is not None:
            right = right and truth.reshape(-1).tolist() in listed.tolist()
        wrong += not right
    return wrong


def test_sums_are_right_where_some_figures_are_zero():
    assert wrong_sums(200) == 0


def test_sums_of_a_solution_that_fills_empty_cells_are_noticed(monkeypatch):
    """Planted: any solution was taken, also one with people where a figure says there are none."""
    right = module._some_sums

    def careless(public, of_atom, groups, empty):
        return right(public, of_atom, groups, np.zeros_like(empty))

    monkeypatch.setattr(module, "_some_sums", careless)
    assert wrong_sums(200) > 0


def test_look_alikes_differ_inside_the_lattice_of_the_noise():
    """Every table with the same figures agrees with the support of every other."""
    seen = 0
    for public, table, names in universes(sparse=True, many=150, seed=SEED + 1):
        if table.total > 3 or not public.bases:
            continue
        known = support(public, names)
        for other in Universe(public).tables(table.total):
            seen += 1
            assert known.agrees(other.marginal(names).counts)
            assert not np.any(other.marginal(names).counts[known.labels == FROZEN])
    assert seen > 300
