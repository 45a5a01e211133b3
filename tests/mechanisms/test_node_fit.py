"""Counts made nonnegative from coarse to fine: sums are right, published figures hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import BundleError, StructureError
from congenial.figures.invariants import publish
from congenial.figures.statements import at_least, count, margin, total
from congenial.kinds.tables import _fitted
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.projection.expected_counts import expected_counts
from congenial.mechanisms.projection.node_fit import fit_nodes, node_order_of
from congenial.mechanisms.projection.projection import follows_from_draw, project, rehearse
from congenial.pairs.adjacency import ReplaceOne, SemiAdjacent
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee
from congenial.report.pictures import Blank
from congenial.report.tables_report import render
from congenial.sampling.randomness import SeededRandomness

DISTRICTS, COUNTIES, RACES = 240, 6, 5
SCHEMA = Schema.from_dict(
    {
        "district": {
            "levels": [f"d{i}" for i in range(DISTRICTS)],
            "within": {"county": [f"c{i % COUNTIES}" for i in range(DISTRICTS)]},
        },
        "race": {"levels": [f"r{i}" for i in range(RACES)]},
        "age": {"edges": [0, 18], "top": "18+"},
    }
)
NAMES = ("district", "race", "age")


def people(seed: int = 0) -> Table:
    """Two races have nearly nobody."""
    rng = np.random.default_rng(seed)
    mean = np.array([200, 60, 20, 0.3, 0.05])[None, :, None] * np.array([0.3, 0.7])
    return Table(SCHEMA, NAMES, rng.poisson(mean, (DISTRICTS, RACES, 2)).astype(np.int64))


FIGURES = {
    "none": (),
    "county totals": (total(by="county"),),
    "adults per district": (total(by="county"), count("age >= 18", by="district")),
    "total": (total(),),
}


def released(figures, seed=1, epsilon=1):
    known = publish(people(), *figures) if figures else None
    pairs = ReplaceOne(SCHEMA) if known is None else SemiAdjacent(known)
    mechanism = calibrate("auto", Guarantee.pure(epsilon, pairs), NAMES)
    return mechanism.release(people(), SeededRandomness(seed))


def added(release, names):
    """Printed counts added up, whether they should be or not."""
    return release._sum_onto(release.values, names)


@pytest.mark.parametrize("name", FIGURES)
def test_sums_at_the_nodes_are_as_good_as_the_draw(name):
    drawn = released(FIGURES[name])
    fitted, cut = project(drawn), project(drawn, SeededRandomness(2), "cells")
    assert fitted.description.fit == "nodes"
    assert fitted.values.min() >= 0
    assert np.array_equal(fitted.raw, drawn.values)
    truth = people()
    for names in (("race", "age"), ("county", "race", "age")):
        true = truth.marginal(names).counts
        errors = [
            np.sqrt(np.mean((one - true) ** 2.0))
            for one in (
                fitted.margin(*names),
                drawn.margin(*names),
                cut._sum_onto(cut.values, names),
            )
        ]
        assert fitted.prints(*names)
        assert errors[0] <= 1.05 * errors[1] + 0.5
        assert errors[2] > 1.5 * errors[0]  # the defect: cell by cell, sums are pushed up
    for statement, value in zip(
        fitted.published.equalities, fitted.published.values or (), strict=True
    ):
        again = publish(Table(SCHEMA, NAMES, fitted.values), statement)
        assert np.array_equal(again.values[0], value)


def test_a_small_race_is_not_printed_ten_times_too_large():
    drawn = released(FIGURES["county totals"])
    true = people().marginal(["race"]).counts[-1]
    fitted, cut = project(drawn), project(drawn, fit="cells")
    half = drawn.interval("race = 'r4'", 0.999).high - drawn.interval("race = 'r4'", 0.999).estimate
    assert abs(fitted.values[:, -1].sum() - true) <= half
    assert cut.values[:, -1].sum() > true + 1.5 * half


def test_other_sums_are_those_drawn():
    fitted = project(released(FIGURES["county totals"]))
    assert not fitted.prints("race")
    assert fitted.prints("county")  # published exactly
    assert np.array_equal(fitted.margin("race"), fitted._sum_onto(fitted.raw, ("race",)))
    assert fitted.count("race = 'r4'") == fitted.raw[:, 4].sum()
    one = fitted.count("district = 'd3' and race = 'r1' and age >= 18")
    assert one == fitted.values[3, 1, 1]
    node = fitted.count("county = 'c2' and race = 'r1' and age >= 18")
    assert node == fitted.margin("county", "race", "age")[2, 1, 1]
    assert node == fitted.values[2::COUNTIES, 1, 1].sum()
    assert fitted.count("race = 'r1' and age >= 18") == fitted.margin("race", "age")[1, 1]
    cells = project(released(FIGURES["county totals"]), fit="cells")
    assert cells.count("race = 'r4'") == cells.raw[:, 4].sum()
    assert cells.printed_tables == (NAMES,)


def test_a_release_that_was_not_projected_prints_all_its_sums():
    drawn = released(FIGURES["total"])
    assert drawn.prints("race")
    assert drawn.count("race = 'r4'") == drawn.values[:, 4].sum()


def test_axes_in_another_order_and_coarser_axes():
    known = publish(people(), total(by="county"))
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(known)), ("age", "county", "race"))
    drawn = mechanism.release(people(), SeededRandomness(4))
    fitted = project(drawn)
    assert fitted.description.fit == "nodes"
    assert fitted.values.shape == (2, COUNTIES, RACES)
    assert np.array_equal(fitted.values.sum(axis=(0, 2)), people().marginal(["county"]).counts)
    assert follows_from_draw(fitted)


# ---- verification ----------------------------------------------------------------------------


@pytest.mark.parametrize("fit", ["nodes", "cells"])
@pytest.mark.parametrize("name", ["none", "adults per district"])
def test_printed_counts_are_worked_out_again(name, fit):
    fitted = project(released(FIGURES[name]), SeededRandomness(3), fit)
    assert follows_from_draw(fitted)
    assert [look() for look in _fitted(fitted).values()] == [True]
    moved = fitted.values.copy()
    moved[0, 0, 1] += 2  # two adults of one district change their race
    moved[0, 1, 1] -= 2
    assert not follows_from_draw(replace(fitted, values=moved))
    other = project(released(FIGURES[name], seed=9), SeededRandomness(3), fit)
    assert not follows_from_draw(replace(fitted, values=other.values))


def test_a_fit_of_the_other_kind_is_noticed():
    drawn = released(FIGURES["county totals"])
    fitted, cut = project(drawn), project(drawn, fit="cells")
    claims_cells = replace(fitted, description=cut.description)
    claims_nodes = replace(cut, description=fitted.description)
    assert not follows_from_draw(claims_cells)
    assert not follows_from_draw(claims_nodes)


def test_the_description_says_which_fit():
    fitted = project(released(FIGURES["total"]))
    data = fitted.description.to_dict()
    assert data["fit"] == "nodes"
    assert Description.from_dict(SCHEMA, data) == fitted.description
    cut = project(released(FIGURES["total"]), fit="cells").description.to_dict()
    assert "fit" not in cut  # as 0.1.0 wrote it
    assert Description.from_dict(SCHEMA, cut).fit == "cells"
    for wrong in ({"fit": "some"}, {"fit": "nodes", "post_processing": "none"}):
        with pytest.raises(BundleError, match="cannot have been made nonnegative"):
            Description.from_dict(SCHEMA, data | wrong)


# ---- what has no place in the order ----------------------------------------------------------


def test_bounds_and_finer_figures_are_projected_cell_by_cell():
    small = Schema.from_dict(
        {
            "g": {"levels": ["p", "q", "r"]},
            "x": {"levels": list("abcd")},
            "y": {"levels": ["0", "1"]},
        }
    )
    table = Table(small, small.names, np.random.default_rng(0).poisson(2.0, (3, 4, 2)))
    bounded = publish(table, total(), at_least(total(), 1))
    finer = publish(table, margin("g", "y"))
    assert node_order_of(bounded, ("g", "x")) is None
    assert node_order_of(finer, ("g", "x")) is None
    assert node_order_of(publish(table, margin("g")), ("g", "x")) is not None
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(finer)), ("g", "x"))
    drawn = mechanism.release(table, SeededRandomness(1))
    assert project(drawn).description.fit == "cells"
    assert rehearse(mechanism) == "cells"
    with pytest.raises(StructureError, match="no place"):
        project(drawn, fit="nodes")


def test_ties_favour_no_cell():
    """alpha = 1e-6: which of equal cells gets the odd unit varies with the draw."""
    schema = Schema.from_dict({"x": {"levels": list("abcdefg")}})
    known = publish(Table(schema, ("x",), np.array([5, 5, 5, 5, 5, 5, 1])), total())
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(known)), ("x",))
    order = node_order_of(known, ("x",))
    errors = np.zeros((2000, 6))
    for i, noise in enumerate(mechanism.noise(SeededRandomness(5), 2000)):
        drawn = np.array([5, 5, 5, 5, 5, 5, 1]) + noise
        errors[i] = (fit_nodes(order, ("x",), drawn) - drawn)[:6]
    apart = errors.mean(axis=0) - errors.mean()
    assert np.all(np.abs(apart) < 5.2 * errors.std() / np.sqrt(2000))
    assert errors.std() > 0.1


# ---- what is said ----------------------------------------------------------------------------


def test_what_to_expect_is_said_before_the_draw_and_without_the_data():
    known = publish(people(), *FIGURES["adults per district"])
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(known)), NAMES)
    expected = expected_counts(mechanism)
    assert expected.fit == "nodes"
    assert expected.tables == (("race", "age"), ("county", "race", "age"), NAMES)
    for row in expected.rows:
        assert row.sparse <= 1.05 * row.drawn
        assert row.even <= 1.05 * row.drawn
    other = people(seed=8)  # other people with the same figures: the same words
    moved = other.counts.copy()
    assert moved.sum() != people().counts.sum()
    free = calibrate("auto", Guarantee.pure(1, ReplaceOne(SCHEMA)), NAMES)
    assert expected_counts(free).rows[-1].sparse < expected_counts(free).rows[-1].drawn


def test_the_report_tells_one_story():
    fitted = project(released(FIGURES["county totals"]))
    page = render(fitted, "promise", Blank(drawn=False))
    assert "fitted from coarse to fine" in page
    assert "race × age, then county × race × age, then district × race × age" in page
    assert "count as drawn" in page
