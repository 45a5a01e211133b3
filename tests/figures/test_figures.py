"""Structure, rank, redundancy and values of figures, against dense algebra on small tables."""

from __future__ import annotations

import flint
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import CongenialError, FigureError
from congenial.figures import lattice
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures, publish
from congenial.figures.statements import (
    Statement,
    at_least,
    at_most,
    count,
    linear,
    margin,
    structural_zeros,
    total,
)
from congenial.figures.support import FROZEN, LOOSE, support


def laminar_row_by_row(matrix):
    """The definition: rows from large to small, each inside one innermost row so far."""
    sizes = np.diff(matrix.indptr)
    innermost = np.full(matrix.shape[1], -1, dtype=np.int64)
    parents = np.full(matrix.shape[0], -1, dtype=np.int64)
    for row in np.argsort(-sizes, kind="stable"):
        atoms = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        if not len(atoms):
            continue
        owners = innermost[atoms]
        if np.any(owners != owners[0]):
            return None
        parents[row] = owners[0]
        innermost[atoms] = row
    return parents, innermost


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sets(st.integers(0, 6), max_size=4),
            st.sampled_from([{0, 1, 2}, {3, 4}, {0}, {1, 2}, {0, 1, 2, 3, 4}, set()]),
        ),
        min_size=1,
        max_size=7,
    )
)
def test_nested_rows_are_found_as_one_by_one(sets: list[set[int]]) -> None:
    matrix = sp.csr_matrix([[int(c in row) for c in range(7)] for row in sets], dtype=np.int64)
    found, expected = lattice.laminar(matrix), laminar_row_by_row(matrix)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["a", "b", "c"], "within": {"state": ["N", "N", "S"]}},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 5, 18, 65], "top": "65+"},
    }
)
COUNTS = np.arange(24).reshape(3, 2, 4)
TABLE = Table(SCHEMA, SCHEMA.names, COUNTS)


def test_published_values_are_the_sums_they_say():
    public = publish(
        TABLE,
        total(by="county"),
        count("age >= 18 and sex = 'f'", by="state"),
        linear({"sex = 'f'": 2, "": -1}),
    )
    assert public.values is not None
    assert public.values[0].tolist() == COUNTS.sum(axis=(1, 2)).tolist()
    young = COUNTS[:, 0, 2:].sum(axis=1)
    assert public.values[1].tolist() == [young[:2].sum(), young[2]]
    assert public.values[2].tolist() == 2 * COUNTS[:, 0].sum() - COUNTS.sum()
    assert public.holds_for(TABLE)
    moved = COUNTS.copy()
    moved[0, 0, 0] += 1
    assert not public.holds_for(Table(SCHEMA, SCHEMA.names, moved))


@pytest.mark.parametrize(
    ("statements", "structure", "rank"),
    [
        ((), "none", 0),
        ((total(),), "laminar", 1),
        ((total(by="county"), count("age >= 18", by="county")), "laminar", 6),
        ((margin("county"), margin("sex")), "two-way", 4),
        ((total(), count("sex = 'f'"), count("age >= 18")), "two-way", 3),
        ((count("sex = 'f'"), count("age >= 18"), count("age >= 65")), "two-way", 3),
        ((margin("county"), margin("sex"), margin("age")), "one-way", 7),
        ((total(by="county"), count("sex = 'f'", by="county"), margin("age")), "two-way", 9),
        ((margin("county", "sex"), margin("sex", "age"), margin("county", "age")), "general", 18),
        ((total(), linear({"sex = 'f'": 2, "age >= 18": 1})), "general", 2),
        ((margin("sex"), total()), "laminar", 2),
    ],
)
def test_structure_and_rank(statements, structure, rank):
    figures = Figures(SCHEMA, statements)
    assert figures.structure == structure
    assert figures.rank == rank


def test_redundant_statements_are_named():
    figures = Figures(SCHEMA, (margin("sex"), total(), count("sex = 'f'"), total(by="state")))
    assert figures.redundant == ("Population", "Count of sex = 'f'")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_rank_equals_exact_elimination(data):
    rows = data.draw(st.integers(1, 6))
    columns = data.draw(st.integers(1, 7))
    entries = data.draw(
        st.lists(st.integers(0, 1), min_size=rows * columns, max_size=rows * columns)
    )
    dense = np.array(entries, dtype=np.int64).reshape(rows, columns)
    expected = flint.fmpz_mat(dense.tolist()).rank()
    assert lattice.rank(sp.csr_matrix(dense)) == expected
    with_sum = flint.fmpz_mat([*dense.tolist(), [1] * columns]).rank()
    assert lattice.tells_sum(sp.csr_matrix(dense)) == (with_sum == expected)


@pytest.mark.parametrize(
    "statements",
    [
        (total(by="county"), count("age >= 18", by="county")),
        (total(), count("sex = 'f'"), count("age >= 18"), count("sex = 'f' and age >= 18")),
        (linear({"age >= 18": 2, "age < 18": 3}), total()),
        (count("age >= 5"), count("age >= 18"), count("age >= 65")),
    ],
)
@pytest.mark.parametrize(
    "names", [("county", "sex", "age"), ("sex", "age"), ("age",), ("state",), ("sex",)]
)
def test_groups_are_exactly_the_sums_that_follow(statements, names):
    """A direction of the released table is free iff it is orthogonal to the implied figures."""
    figures = Figures(SCHEMA, statements).evaluate(TABLE)
    groups = support(figures, names)
    cells = figures.schema.size(SCHEMA.names)
    full = np.zeros((0, cells), dtype=np.int64)
    for statement in statements:
        row, weight = Cells(SCHEMA, (*statements, margin(*SCHEMA.names))).column(statement)
        block = np.zeros((int(row.max()) + 1, cells), dtype=np.int64)
        block[row, np.arange(cells)] = weight
        full = np.vstack([full, block])
    phi = np.zeros((SCHEMA.size(names), cells), dtype=np.int64)
    phi[_onto(names), np.arange(cells)] = 1
    # Sums over released cells that follow from the figures: row space of A meets row space of phi.
    implied = _rank(full) + _rank(phi) - _rank(np.vstack([full, phi]))
    assert groups.groups == implied
    assert groups.degrees_of_freedom == SCHEMA.size(names) - implied
    released = TABLE.marginal(names).counts.reshape(-1)
    flat = groups.labels.reshape(-1)
    sums = np.bincount(flat[flat >= 0], released[flat >= 0], minlength=groups.groups)
    assert groups.totals is not None
    assert sums.tolist() == groups.totals.tolist()


def _rank(matrix):
    return flint.fmpz_mat([[int(v) for v in row] for row in matrix]).rank()


def _onto(names):
    index = np.zeros((3, 2, 4), dtype=np.int64)
    grids = dict(zip(SCHEMA.names, np.indices((3, 2, 4)), strict=True))
    for name in names:
        axis = SCHEMA.axis(name)
        index = index * len(axis.levels) + axis.of_base[grids[axis.base]]
    return index.reshape(-1)


def test_empty_groups_and_structural_zeros_are_frozen():
    counts = COUNTS.copy()
    counts[0] = 0
    counts[:, 1, 0] = 0
    table = Table(SCHEMA, SCHEMA.names, counts)
    public = publish(table, total(by="county"), structural_zeros("sex = 'm' and age < 5"))
    labels = support(public, SCHEMA.names).labels
    assert np.all(labels[0] == FROZEN)
    assert np.all(labels[:, 1, 0] == FROZEN)
    assert np.all(labels[1:, 0] >= 0)
    loose = support(publish(table, count("age >= 18")), ("age",)).labels
    assert loose.tolist() == [LOOSE, LOOSE, 0, 0]


def test_a_million_cells_are_no_problem():
    schema = Schema.from_dict(
        {
            "tract": {"integers": [1, 20_000]},
            "age": {"integers": [0, 49]},
        }
    )
    figures = Figures(schema, (total(by="tract"), count("age >= 18", by="tract")))
    assert figures.rank == 40_000
    assert support(figures, ("tract", "age")).groups == 40_000
    crossed = Figures(schema, (margin("tract"), margin("age")))
    assert crossed.structure == "two-way"
    assert crossed.rank == 20_049


def test_writing_and_reading_back():
    public = publish(TABLE, total(by="county").named("People", "statute 7"), total())
    again = Figures.from_dict(SCHEMA, public.to_dict())
    assert again == public
    assert again.statements[0].because == "statute 7"
    assert Figures(SCHEMA, (total(),)) != public


def test_joining():
    left, right = publish(TABLE, total()), publish(TABLE, total(), total(by="sex"))
    assert [s.label for s in left.join(right).statements] == ["Population", "Population by sex"]
    other = Table(SCHEMA, SCHEMA.names, COUNTS + 1)
    with pytest.raises(FigureError, match="other values"):
        left.join(publish(other, total()))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Statement("", (("", 1),)),
        lambda: linear({"sex = 'f'": 0}),
        lambda: linear({"sex = 'f'": 0.5}),
        lambda: linear({}),
        lambda: total(by=("sex", "sex")),
        lambda: margin(),
        lambda: Figures(SCHEMA, (total(), margin("sex").named("Population"))),
        lambda: Figures(SCHEMA, (total(by="nowhere"),)).structure,
        lambda: Figures(SCHEMA, (count("age >= 17"),)).structure,
        lambda: publish(TABLE, structural_zeros("sex = 'f'")),
        lambda: publish(TABLE, at_least(count("sex = 'f'"), 10**6)),
        lambda: publish(TABLE, at_most(count("sex = 'f'"), 3)),
    ],
)
def test_bad_mandates_say_what_and_what_to_do(make):
    with pytest.raises(CongenialError) as error:
        make()
    assert error.value.remedy
    assert str(COUNTS[:, 0].sum()) not in str(error.value)


@pytest.mark.parametrize(
    ("statements", "clashing"),
    [
        ((at_least(total(), 5), at_most(count("sex = 'f'"), 3)), ()),
        (
            (at_least(count("sex = 'f'"), 5), at_most(total(), 3), at_least(total(by="age"), 0)),
            ("Count of sex = 'f': at least 5", "Population: at most 3"),
        ),
        (
            (structural_zeros("age < 5"), at_least(count("age < 5", by="county"), 1)),
            ("Impossible: age < 5", "Count of age < 5 by county: at least 1"),
        ),
        ((at_most(total(), -1),), ("Population: at most -1",)),
    ],
)
def test_contradictions_are_named(statements, clashing):
    assert Figures(SCHEMA, statements).clash == clashing


def test_figures_that_no_table_has_are_refused_on_reading():
    data = publish(TABLE, total(by="county"), total()).to_dict()
    data["statements"][1]["values"] += 1
    with pytest.raises(FigureError, match="'Population by county' and 'Population' together"):
        Figures.from_dict(SCHEMA, data)


def test_large_figures_and_weights_are_settled_exactly():
    big = Table(SCHEMA, SCHEMA.names, np.full((3, 2, 4), 10**15))
    data = publish(big, total(by="county"), total()).to_dict()
    assert Figures.from_dict(SCHEMA, data).clash == ()
    weighted = publish(
        Table(SCHEMA, SCHEMA.names, np.full((3, 2, 4), 10**9)),
        linear({"age >= 18": 10**7, "age < 18": 10**7 + 1}),
        total(),
    )
    assert weighted.atom_totals is not None


def test_a_statement_given_twice_is_kept_once():
    once = publish(TABLE, total(), count("age >= 18", by="state"))
    twice = publish(TABLE, total(), count("age >= 18", by=("state",)), total(by=[]))
    assert twice == once
    assert Figures(SCHEMA, (total(), total())).statements == (total(),)
    figures = (np.array(3), np.array(3))
    assert Figures(SCHEMA, (total(), total()), figures).values == figures[:1]
    with pytest.raises(FigureError, match="two different values"):
        Figures(SCHEMA, (total(), total()), (np.array(3), np.array(4)))
    with pytest.raises(FigureError, match="called 'people'"):
        Figures(SCHEMA, (total().named("people"), margin("sex").named("people")))


@pytest.mark.parametrize("wrong", ["age >= 18", None, [total()], 3.5])
def test_what_is_no_mandate_is_refused_in_words(wrong):
    with pytest.raises(FigureError, match="is not a figure"):
        publish(TABLE, wrong)
