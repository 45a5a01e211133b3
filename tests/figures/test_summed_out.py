"""Figures as tables see them that leave out some of their axes: nothing that shows is lost."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from congenial import Figures, Schema, Table, count, publish, structural_zeros, total
from congenial.figures.restricted_figures import summed_out
from congenial.figures.support import support

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"], "within": {"state": ["P", "P", "Q"]}},
        "sex": {"levels": ["f", "m"]},
        "age": {"levels": ["child", "young", "mid", "old"]},
    }
)
TABLE = Table(SCHEMA, SCHEMA.names, np.random.default_rng(1).integers(0, 9, (3, 2, 4)))
FIGURES = [
    (total(by="county"),),
    (total(by=("county", "sex")), total(by="state")),
    (total(by="county"), count("sex = 'f'", by="state")),
    (total(by="county"), total(by="age"), count("age = 'old'", by=("county", "sex"))),
]


@pytest.mark.parametrize("figures", FIGURES, ids=len)
@pytest.mark.parametrize("names", [("sex", "age"), ("age",), ("sex",)], ids=" ".join)
def test_tables_see_the_same_sums(figures, names) -> None:
    """Cells, groups, ties and totals of a table are those under the figures as published."""
    public = publish(TABLE, *figures)
    fewer = summed_out(public, ("sex", "age"))
    before, after = support(public, names), support(fewer, names)
    truth = TABLE.marginal(names).counts
    assert before.degrees_of_freedom == after.degrees_of_freedom
    assert after.agrees(truth)
    for move in product((-1, 0, 1), repeat=min(truth.size, 4)):
        moved = truth.copy()
        moved.flat[: len(move)] += np.array(move)
        assert before.agrees(moved) == after.agrees(moved)


def test_conditions_outside_leave_the_figures_as_they_are() -> None:
    for figures in ((count("county = 'A'"),), (total(), structural_zeros("county = 'A'"))):
        public = Figures(SCHEMA, figures)
        assert summed_out(public, ("sex", "age")) is public


def test_figures_that_become_the_same_are_kept_once() -> None:
    public = publish(TABLE, total(by="county"), total(by="state"))
    fewer = summed_out(public, ("sex",))
    assert [one.by for one in fewer.statements] == [()]
    assert int(fewer.values[0]) == TABLE.total
