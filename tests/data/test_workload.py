"""Tables as linear maps: sums and their adjoint agree with a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.workload import Margin, Partition, Workload
from congenial.errors import SchemaError


@pytest.mark.parametrize(
    "blocks",
    [([0, 1, 0], [0, 0]), ([0, 1, 2], [0, 1]), ([0, 0, 0], [1, 0]), ([2, 0, 1], [0, 0])],
)
def test_totals_and_spread_are_a_matrix_and_its_transpose(blocks):
    margin = Margin(tuple(Partition.of(one) for one in blocks))
    cells = np.prod(margin.finest)
    unit = np.eye(cells, dtype=np.int64).reshape(cells, *margin.finest)
    dense = margin.totals(unit).reshape(cells, -1).T
    expected = np.zeros_like(dense)
    for i, (row, column) in enumerate(np.ndindex(*margin.finest)):
        expected[blocks[0][row] * margin.shape[1] + blocks[1][column], i] = 1
    assert np.array_equal(dense, expected)
    values = np.arange(margin.size).reshape(margin.shape)
    assert np.array_equal(margin.spread(values).reshape(-1), dense.T @ values.reshape(-1))


def test_refinement():
    fine, coarse, other = (Partition.of(b) for b in ([0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 1, 0]))
    assert fine.refines(coarse)
    assert not coarse.refines(fine)
    assert not coarse.refines(other)


def test_a_gap_in_the_blocks_is_refused():
    with pytest.raises(SchemaError, match="gap"):
        Partition.of([0, 2])


def test_no_table_is_refused():
    with pytest.raises(SchemaError, match="no table"):
        Workload.of(Schema.from_dict({"sex": {"levels": ["f", "m"]}}), [])
