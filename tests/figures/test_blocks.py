"""Margins are recognised in whatever words the figures say them, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from congenial import Table, count, publish, total
from congenial.figures import blocks as module
from congenial.figures.blocks import blocks, margins
from congenial.figures.lattice import partitions
from congenial.figures.support import support
from tests.figures.test_support import rank
from tests.worlds import levels

SHAPES = ((2, 2), (2, 3), (3, 2), (3, 4), (2, 2, 2), (2, 2, 3))


def in_other_words(rows, rng):
    """Independent sums and differences of the rows that span the same."""
    independent = rows[:0]
    for row in rows:
        more = np.vstack([independent, row])
        independent = more if rank(more) == len(more) else independent
    for _ in range(2 * len(independent)):
        one, other = rng.choice(len(independent), 2, replace=False)
        mixed = independent[one] + rng.choice([-1, 1]) * independent[other]
        if np.abs(mixed).max() <= 3:
            independent[one] = mixed
    return independent


def cells_of(shape):
    return np.array(list(np.ndindex(shape)))


@pytest.mark.parametrize("shape", SHAPES)
def test_margins_in_other_words(shape):
    rng, features = np.random.default_rng(sum(shape)), cells_of(shape)
    rows = margins(features)
    other = 0
    for _ in range(10):
        said = in_other_words(rows, rng)
        order = rng.permutation(len(features))
        (block,) = blocks(sp.csr_matrix(said[:, order]))
        other += bool(np.any((said != 0) & (said != 1)))
        assert block.features is not None
        assert sorted(block.levels) == sorted(shape)
        found = margins(block.features)
        assert rank(np.vstack([found, said[:, order]])) == rank(found) == rank(said)
    assert other


def wrong(said) -> int:
    """How many blocks are taken for margins of which something else is known."""
    found = 0
    for kind in blocks(sp.csr_matrix(said)):
        for atoms in kind.atoms if kind.features is not None else ():
            inside, known = said[:, atoms], margins(kind.features)
            found += len({rank(known), rank(inside), rank(np.vstack([known, inside]))}) > 1
    return found


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_figures_that_say_more_than_margins_are_not_taken_for_margins(shape):
    rng, features = np.random.default_rng(sum(shape)), cells_of(shape)
    for _ in range(10):
        more = rng.integers(-2, 4, size=(1, len(features)))
        assert not wrong(in_other_words(np.vstack([margins(features), more]), rng))


def random_figures(many: int):
    rng = np.random.default_rng(1)
    for _ in range(many):
        yield rng.choice([0, 0, 0, 1, 1, 1, -1, 3], size=(rng.integers(2, 5), rng.integers(4, 7)))


def test_random_figures_are_not_taken_for_margins():
    assert sum(map(wrong, random_figures(800))) == 0


def test_sets_that_leave_somebody_out_are_noticed(monkeypatch):
    """Planted: sets that cross were taken for margins, whether or not the total is known."""
    least = module._least_sets

    def with_total(rows):
        sets = least(rows).toarray()
        return sp.csr_matrix(np.vstack([sets, np.ones((1, rows.shape[1]), dtype=np.int64)]))

    monkeypatch.setattr(module, "_least_sets", with_total)
    assert sum(map(wrong, random_figures(800))) > 0


def test_sets_that_follow_are_not_all_that_is_said():
    """The sets alone are the margins of a table; a weighted sum beside them ties it further."""
    said = np.vstack([margins(cells_of((2, 3))), [0, 1, 3, 0, 0, 0]])
    sets = module._least_sets(sp.csr_matrix(said))
    assert module._features(sets) is not None
    assert rank(sets.toarray()) < rank(said)
    assert [block.features for block in blocks(sp.csr_matrix(said))] == [None]


def test_a_row_of_two_sides_is_no_partition():
    """The middle row is the second of one column and the first of the other."""
    assert partitions(sp.csr_matrix(np.array([[1, 0], [1, 1], [0, 1]]))) is None
    sides = partitions(sp.csr_matrix(np.array([[1, 0], [0, 1], [1, 1]])))
    assert sides is not None
    assert sides.tolist() == [[0, 2], [1, 2]]


def test_margins_need_the_total():
    """Two sets that cross, of known sum, and a third figure that is not the total."""
    said = np.array([[0, 1, 0, 1], [0, 0, 1, 1], [3, 0, 0, 1]])
    assert [block.features for block in blocks(sp.csr_matrix(said))] == [None]


def test_margins_of_counties_are_margins_of_the_state():
    """On a coarser table the figures' sums are known: sums and differences of margins there."""
    schema = levels(county=3, sex=2, age=2)
    table = Table(schema, schema.names, np.arange(1, 13).reshape(3, 2, 2))
    told = (total(by="county"), count("sex = '0'", by="county"), count("age = '0'", by="county"))
    known = support(publish(table, *told), ("sex", "age"))
    assert known.structure == "2 x 2 groups with known margins"
    (tie,) = known.ties
    assert set(np.unique(tie.equations)) == {0, 1}
    assert known.agrees(table.marginal(("sex", "age")).counts)
