"""Figures that no units have: compared with all databases of small universes of units."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.errors import FigureError
from congenial.figures.figures import Figures
from congenial.figures.statements import at_least, at_most, count, of_units, total
from congenial.figures.unit_clash import refuse_unmet

SCHEMA = Schema.from_dict(
    {
        "block": {"levels": ["1", "2", "3"], "of": "unit", "within": {"county": ["N", "N", "S"]}},
        "age": {"levels": ["child", "adult"]},
    }
)


def published(rows: list[int], units: list[int], ages: int | None = None) -> Figures:
    """People by county, households by block, and perhaps the children."""
    told = [total(by="county"), of_units(total(by="block"))]
    values = [np.array(rows), np.array(units)]
    if ages is not None:
        told.insert(1, count("age = 'child'"))
        values.insert(1, np.array(ages))
    known = Figures.of(SCHEMA, tuple(told))
    counted = known.of_units
    assert counted is not None
    own = Figures(SCHEMA, known.statements, tuple(values[:-1]))
    about = Figures(SCHEMA, counted.statements, (values[-1],))
    return Figures(own.schema, own.statements, own.values, about)


def refused(figures: Figures, most: int) -> bool:
    try:
        refuse_unmet(figures, most)
    except FigureError:
        return True
    return False


@pytest.mark.parametrize("most", [1, 2, 3])
def test_figures_are_refused_where_no_households_have_them(most: int) -> None:
    """Each county: between as many people as households and k times as many; nothing else."""
    for north, south, *blocks in itertools.product(range(5), range(3), *(range(3),) * 3):
        homes = (blocks[0] + blocks[1], blocks[2])
        people = (north, south)
        met = all(h <= n <= most * h for n, h in zip(people, homes, strict=True))
        assert refused(published([north, south], blocks), most) != met


def test_other_figures_about_rows_count_too() -> None:
    with pytest.raises(FigureError, match="with 1 to 2 rows per unit"):
        refuse_unmet(published([2, 1], [2, 1, 1]), 2)
    assert not refused(published([4, 1], [2, 1, 1], ages=5), 2)
    assert refused(published([4, 1], [2, 1, 1], ages=6), 2)


def test_bounds_of_a_plan_are_compared_before_any_value_is_known() -> None:
    many, few = of_units(at_least(total(), 9)), at_most(total(), 8)
    assert refused(Figures.of(SCHEMA, (few, many)), 4)
    crowded = of_units(at_most(total(), 2)), at_least(total(), 9)
    assert refused(Figures.of(SCHEMA, crowded), 4)
    assert not refused(Figures.of(SCHEMA, crowded), 5)


def test_figures_about_rows_alone_are_met_by_enough_units() -> None:
    assert not refused(Figures(SCHEMA, (total(),), (np.array(7),)), 1)
