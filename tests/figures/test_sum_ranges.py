"""How small and large sums can be, against every table that has the published figures."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.figures.limits import FAR, cell_ranges, conforming_tables, sum_ranges
from congenial.figures.statements import margin, total
from congenial.figures.support import support
from tests.figures.test_support import universes
from tests.worlds import levels

SCHEMA = levels(a=2, b=3)
TABLE = Table(SCHEMA, ("a", "b"), np.array([[3, 0, 2], [1, 4, 0]]))


@pytest.mark.parametrize("sparse", [False, True])
def test_no_true_sum_is_outside(sparse) -> None:
    """Random figures, random sums: the range holds the truth, of which the figures are."""
    rng, cut = np.random.default_rng(5), 0
    for public, table, names in universes(sparse, 60):
        true = table.marginal(names).counts.reshape(-1)
        chosen = sp.csr_array((rng.random((8, true.size)) < 0.4).astype(np.int64))
        found = sum_ranges(support(public, names), chosen)
        sums = chosen @ true
        assert np.all((found.least <= sums) & (sums <= found.most))
        cells, single = cell_ranges(support(public, names)), sp.eye_array(true.size, format="csr")
        again = sum_ranges(support(public, names), single)
        assert np.array_equal(cells.least, again.least)
        assert np.array_equal(cells.most, again.most)
        cut += np.count_nonzero(found.most < FAR)
    assert cut > 100


@pytest.mark.parametrize(
    ("statements", "sharp"),
    [((total(),), True), ((margin("a"),), True), ((margin("a"), margin("b")), False), ((), True)],
)
def test_every_conforming_table_is_inside(statements, sharp) -> None:
    """All sums of cells; where groups are disjoint, the ends are attained by some table."""
    public = publish(TABLE, *statements)
    tables = (
        np.array([[9, 0, 0, 0, 0, 0]]) if not statements else conforming_tables(public, ("a", "b"))
    )
    bits = np.array([[i >> j & 1 for j in range(6)] for i in range(1, 64)])
    found = sum_ranges(support(public, ("a", "b")), sp.csr_array(bits))
    sums = bits @ np.asarray(tables).reshape(len(tables), -1).T
    assert np.all(found.least <= sums.min(axis=1))
    assert np.all(found.most >= sums.max(axis=1))
    if sharp and statements:
        assert np.array_equal(found.least, sums.min(axis=1))
        assert np.array_equal(found.most, sums.max(axis=1))
    if not statements:
        assert np.all(found.most == FAR)


def test_two_margins_bound_a_cell_by_the_smaller_and_a_row_by_its_own() -> None:
    known = support(publish(TABLE, margin("a"), margin("b")), ("a", "b"))
    sums = sp.csr_array([[0, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 1, 1, 0, 0]])
    assert sum_ranges(known, sums).most.tolist() == [2, 5, 6]


def test_cells_known_to_be_empty_hold_nobody() -> None:
    table = Table(SCHEMA, ("a", "b"), np.array([[3, 0, 2], [0, 0, 0]]))
    known = support(publish(table, margin("a")), ("a", "b"))
    assert sum_ranges(known, sp.eye_array(6, format="csr")).most.tolist() == [5, 5, 5, 0, 0, 0]
