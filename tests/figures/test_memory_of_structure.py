"""The structure of figures of many areas takes few bytes an area, and is what it was: a nation has
a million areas, 46 cells each.
"""

from __future__ import annotations

import gc
import pickle
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

from congenial import Figures, Schema, count, structural_zeros, total
from congenial.figures import cells as cells_module
from congenial.figures import lattice
from congenial.figures.figures import _IN_USE
from congenial.figures.lattice import kinds
from congenial.figures.people import people_under
from congenial.pairs.adjacency import _shows_several
from tests.worlds import levels

AREAS = 30_000
CROSSING = sp.csr_matrix([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0]])  # people, women, voters


def most_bytes(work: Callable[[], object]) -> int:
    """The most memory that Python and NumPy hold at once, beyond what they held before."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_kinds_of_many_areas_take_little_memory() -> None:
    """A matrix has 96 bytes an area here."""
    matrix = sp.block_diag([CROSSING] * 100, format="csr")
    matrix = sp.kron(sp.identity(AREAS // 100, dtype=np.int64), matrix, format="csr")
    assert most_bytes(lambda: kinds(matrix)) < 700 * AREAS


def test_what_is_known_of_cells_takes_four_bytes_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "TOGETHER", 2**12)
    blocks = [str(at) for at in range(1_000)]
    ages = {"integers": [0, 199]}
    schema = Schema.from_dict(
        {"block": {"levels": blocks}, "sex": {"levels": ["f", "m"]}, "age": ages}
    )
    told = (total(by="block"), count("sex = 'f'", by="block"), count("age >= 18", by="block"))
    figures = Figures(schema, told)

    def work() -> None:
        assert figures.structure == "two-way"
        assert np.all(np.isinf(people_under(figures).people[1:]))
        assert np.all(_shows_several(figures, schema.names)[1:])

    assert most_bytes(work) < 8 * figures.cells.size
    assert figures.atoms.nbytes == 4 * figures.cells.size


@pytest.fixture(params=[2, 2**16])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice, "LINES_AT_ONCE", request.param)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("power", [0, 7, 8, 15, 16, 31, 32, 62])
def test_parts_that_differ_in_a_large_weight_are_of_different_kinds(power: int) -> None:
    """Numbers are compared in few bytes, in which 128 and -128 may not become the same."""
    told, other = np.array([[2**power, 1]]), np.array([[-(2**power), 1]])
    whole = sp.block_diag([told, other, told, other, told], format="csr", dtype=np.int64)
    found = kinds(whole)
    assert [one.matrix.toarray().tolist() for one in found] == [told.tolist(), other.tolist()]
    assert [one.rows.tolist() for one in found] == [[[0], [2], [4]], [[1], [3]]]
    assert found[1].columns.tolist() == [[2, 3], [6, 7]]


def test_figures_that_leave_nobody_anywhere() -> None:
    """Every cell is impossible: there is one atom, the loose one, and it is empty."""
    schema = levels(area=2, sex=3)
    nobody = Figures(schema, (total(by="area"), structural_zeros("area in ('0', '1')")))
    assert nobody.first_cells.tolist() == [-1]
    assert people_under(nobody).people.tolist() == [0.0]
    assert not people_under(nobody).loose


# ---- figures with the same words share what is worked out of them; their values stay their own----


def made(*values: int) -> tuple[Schema, Figures]:
    schema = Schema.from_dict({"county": {"levels": ["A", "B"]}, "sex": {"levels": ["f", "m"]}})
    told = (np.array(values[:2]), np.array(values[2:]))
    by = (total(by="county"), count("sex = 'f'", by="county"))
    return schema, Figures(schema, by, told)


def test_structure_is_shared_and_values_are_not() -> None:
    schema, one = made(5, 7, 2, 3)
    other = Figures(schema, one.statements, (np.array([9, 9]), np.array([9, 0])))
    planned = Figures(schema, one.statements)
    assert one.atoms is other.atoms is planned.atoms
    assert planned.matrix is one.matrix
    assert one.atom_totals.tolist() == [3, 2, 4, 3]  # type: ignore[union-attr]
    assert other.atom_totals.tolist() == [0, 9, 9, 0]  # type: ignore[union-attr]
    assert planned.atom_totals is None
    fewer = Figures(schema, one.statements[:1])
    assert fewer.rank < one.rank


def test_another_schema_shares_nothing_and_nothing_is_kept_without_use() -> None:
    kept = len(_IN_USE)
    one, other = made(5, 7, 2, 3), made(5, 7, 2, 3)
    assert one[1].atoms is not other[1].atoms
    np.testing.assert_array_equal(one[1].atoms, other[1].atoms)
    assert len(_IN_USE) == kept + 2
    del one, other
    gc.collect()
    assert len(_IN_USE) <= kept


def test_what_the_first_worked_out_outlives_it_and_travels() -> None:
    schema, one = made(5, 7, 2, 3)
    other = Figures(schema, one.statements)
    atoms = one.atoms
    assert other.atoms is atoms
    del one
    gc.collect()
    assert other.atoms is atoms
    again = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(again.atoms, atoms)
