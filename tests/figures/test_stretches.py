"""What is worked out of cells some at a time is what all of them give at once."""

from __future__ import annotations

import numpy as np
import pytest

from congenial import Figures, Schema, Table, count, structural_zeros, total
from congenial.figures import cells as cells_module
from congenial.figures.cells import first_places
from congenial.figures.support import images, key_of
from congenial.pairs.adjacency import _shows_several

SEED = 20261117
SCHEMA = Schema.from_dict(
    {
        "block": {"levels": list("abcde"), "within": {"state": list("PPQQQ")}},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 5, 18, 65], "top": "65+"},
    }
)
FIGURES = Figures(
    SCHEMA,
    (
        total(by="block"),
        count("age >= 18", by="state"),
        structural_zeros("block = 'c' and age < 5"),
    ),
)
TABLES = [("block", "sex", "age"), ("state", "age"), ("state",), ("sex",), ("sex", "age"), ("age",)]


@pytest.fixture(params=[3, 2**20])
def together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, "TOGETHER", request.param)


def several(names: tuple[str, ...]) -> list[bool]:
    """Which atoms show two cells of a table, one by one."""
    atoms, seen = FIGURES.atoms, images(FIGURES, names)
    keys = [set(seen.key[atoms == atom].tolist()) for atom in range(atoms.max() + 1)]
    return [len(one) * seen.other > 1 for one in keys]


@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("names", TABLES)
def test_atoms_that_show_several_cells(names: tuple[str, ...]) -> None:
    _shows_several.cache_clear()
    assert _shows_several(FIGURES, names).tolist() == several(names)
    cells = np.array([7, 0, 19])
    np.testing.assert_array_equal(key_of(FIGURES, names, cells), images(FIGURES, names).key[cells])


@pytest.mark.usefixtures("together")
def test_sums_and_first_places() -> None:
    rng = np.random.default_rng(SEED)
    people = Table(SCHEMA, SCHEMA.names, rng.integers(0, 9, (5, 2, 4)))
    ages = people.counts[..., 2:].sum(axis=(1, 2))
    told = Figures(SCHEMA, FIGURES.statements[:2]).evaluate(people).values
    assert told is not None
    assert [one.tolist() for one in told if one is not None] == [
        people.counts.sum(axis=(1, 2)).tolist(),
        [ages[:2].sum(), ages[2:].sum()],
    ]
    numbers = rng.integers(-1, 6, 50)
    found = first_places(numbers)
    assert found.tolist() == [numbers.tolist().index(one) for one in range(numbers.max() + 1)]
