"""Closed-form variances against dense least squares, and derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.workload import Workload
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.statements import count, margin, total
from congenial.tables.information import Information
from tests.pairs.test_difference_types import NOT_NESTED
from tests.worlds import schema_of


def dense(one):
    """A margin as a matrix."""
    cells = int(np.prod(one.finest))
    return one.totals(np.eye(cells).reshape(cells, *one.finest)).reshape(cells, -1).T


def least_squares(workload, figures, precisions):
    """Mean variances given exact figures, from the whole covariance of what can be estimated."""
    maps = [dense(one) for one in workload.margins]
    exact = np.vstack([dense(workload.margin(names)) for names in figures])
    _, values, basis = np.linalg.svd(exact)
    free = basis[np.sum(values > 1e-9) :].T
    information = sum(p * m.T @ m for p, m in zip(precisions, maps, strict=True))
    covariance = free @ np.linalg.pinv(free.T @ information @ free, rcond=1e-10) @ free.T
    return np.array([np.trace(m @ covariance @ m.T) / len(m) for m in maps])


TREE = schema_of(g=[0, 0, 1, 1, 1, 2], x=2, y=3)
PARTS = schema_of(g=[0, 0, 1, 1, 1], x=2, y=[0, 0, 1, 1, 1])
EVEN = schema_of(g=[0, 0, 1, 1, 2, 2], x=2)
CASES = {
    "flat": (schema_of(x=2, y=3, z=4), [["x", "y"], ["y", "z"], ["x", "z"], ["y"], []], [[]]),
    "flat, margin exact": (schema_of(x=2, y=3), [["x", "y"], ["x"], ["y"]], [["x"]]),
    "equal blocks": (EVEN, [["g", "x"], ["g_wide"], ["x"], ["g_wide", "x"]], [[]]),
    "tree": (TREE, [["g", "x"], ["g_wide", "x", "y"], ["g", "y"], ["x", "y"], ["y"]], [[]]),
    "tree, margins exact": (
        TREE,
        [["g", "x", "y"], ["g", "y"], ["g_wide", "x", "y"], ["g_wide", "y"], ["x", "y"], ["y"]],
        [["g", "x"]],
    ),
    "tree, coarse exact": (TREE, [["g", "x"], ["g", "y"], ["x", "y"]], [["g_wide", "x"], ["y"]]),
    "unequal parts exact": (
        PARTS,
        [["g", "x", "y"], ["g", "y"], ["g_wide", "x", "y"], ["y"]],
        [["g", "x"], ["g", "y_wide"]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_variances_equal_dense_least_squares(name):
    schema, tables, margins = CASES[name]
    work = Workload.of(schema, tables)
    figures = Figures(schema, tuple(margin(*names) if names else total() for names in margins))
    precisions = np.random.default_rng(5).uniform(0.2, 3, len(tables))
    model = Information.of(work, figures)
    expected = least_squares(work, margins, precisions)
    assert model.variances(precisions) == pytest.approx(expected, rel=1e-9)
    wrong = Information.of(work, Figures(schema), people_kept=False)
    assert wrong.variances(precisions) != pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_gains_are_derivatives(name):
    schema, tables, margins = CASES[name]
    work, rng = Workload.of(schema, tables), np.random.default_rng(6)
    figures = Figures(schema, tuple(margin(*names) if names else total() for names in margins))
    model = Information.of(work, figures)
    p, weights = rng.uniform(0.2, 3, (2, len(tables)))
    gains = model.gains(p, weights)
    for k, unit in enumerate(np.eye(len(tables))):
        change = weights @ (model.variances(p - 1e-6 * unit) - model.variances(p + 1e-6 * unit))
        assert gains[k] == pytest.approx(change / 2e-6, rel=1e-5, abs=1e-8)
    assert gains @ p == pytest.approx(weights @ model.variances(p))  # V(t p) = V(p) / t


def test_a_figure_in_other_words_is_the_same_figure():
    schema = schema_of(x=2, y=3)
    work, p = Workload.of(schema, [["x", "y"], ["y"]]), np.array([1.0, 0.5])
    counted = Information.of(work, Figures(schema, (count("x = 'x0'"),)))
    whole = Information.of(work, Figures(schema, (margin("x"),)))
    assert counted.variances(p) == pytest.approx(whole.variances(p))


def test_what_does_not_decouple_is_refused():
    both = schema_of(g=[0, 0, 1], y=[0, 1, 1])
    with pytest.raises(StructureError, match="'g' and 'y'"):
        Information.of(Workload.of(both, [["g_wide", "y_wide"], ["g", "y"]]), Figures(both))
    crossing = Workload.of(NOT_NESTED, [["urban", "x"], ["north"]])
    with pytest.raises(StructureError, match="do not nest"):
        Information.of(crossing, Figures(NOT_NESTED))


def test_unequal_blocks_taken_as_equal_are_near_and_say_so():
    schema = schema_of(g=[0, 0, 1, 1, 1, 2], y=[0, 0, 0, 1, 1])
    tables = [["g", "y"], ["g_wide", "y"], ["g", "y_wide"], ["y_wide"]]
    work, p = Workload.of(schema, tables), np.array([1.0, 0.5, 0.4, 0.3])
    model = Information.of(work, Figures(schema), approximate=True)
    assert model.approximate
    assert not Information.of(Workload.of(TREE, [["g_wide", "y"]]), Figures(TREE)).approximate
    expected = least_squares(work, [[]], p)
    assert model.variances(p) == pytest.approx(expected, rel=0.1)
    assert model.variances(p) != pytest.approx(expected, rel=1e-4)


def test_a_schema_of_many_attributes():
    schema = Schema.from_dict({f"v{i}": {"integers": [1, i + 2]} for i in range(6)})
    work = Workload.of(schema, [["v0", "v1"], ["v2", "v3", "v4"], ["v5"], []])
    model = Information.of(work, Figures(schema), people_kept=False)
    assert model.variances(np.ones(4)).shape == (4,)
