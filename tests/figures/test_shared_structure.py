"""Figures with the same words share what is worked out of them; their values stay their own."""

from __future__ import annotations

import gc
import pickle

import numpy as np

from congenial.data.schema import Schema
from congenial.figures.figures import _IN_USE, Figures
from congenial.figures.statements import count, total


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
