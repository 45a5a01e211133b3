"""Whole counts of one measured table: sums are right, published figures hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import Guarantee, Schema, SeededRandomness, Table, calibrate, release_table
from congenial.figures import at_least, count, margin, publish, total
from congenial.kinds.tables_accuracy import try_printed
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.one_table import TableSums, nearest_counts
from congenial.pairs import ReplaceOne, SemiAdjacent

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


def noise(figures, epsilon=1):
    known = publish(people(), *figures) if figures else None
    pairs = ReplaceOne(SCHEMA) if known is None else SemiAdjacent(known)
    return calibrate("auto", Guarantee.pure(epsilon, pairs), NAMES)


def released(figures, seed=1):
    return release_table(noise(figures), people(), SeededRandomness(seed))


def cell_by_cell(release):
    """The nearest counts to the same draw, each cell for itself inside known sums."""
    return nearest_counts(release.only.mechanism, release.drawn[0], SeededRandomness(2))


def as_near(release, counts):
    return release.estimator.as_near(release.drawn, [counts])


@pytest.mark.parametrize("name", FIGURES)
def test_sums_at_the_nodes_are_as_good_as_the_draw(name):
    release = released(FIGURES[name])
    assert release.estimator.order is not None
    assert release.counts[0].min() >= 0 > release.drawn[0].min()
    assert np.array_equal(release.estimates[0], release.drawn[0])
    cut, truth = TableSums(release.only.mechanism, cell_by_cell(release)), people()
    for names in (("race", "age"), ("county", "race", "age")):
        true = truth.marginal(names).counts
        errors = [
            np.sqrt(np.mean((one - true) ** 2.0))
            for one in (release.margin(*names), release.estimates_of(*names), cut.table(names))
        ]
        assert release.prints(*names)
        assert errors[0] <= 1.05 * errors[1] + 0.5
        assert errors[2] > 1.5 * errors[0]  # the defect: cell by cell, sums are pushed up
    for statement, value in zip(
        release.published.equalities, release.published.values or (), strict=True
    ):
        again = publish(Table(SCHEMA, NAMES, release.counts[0]), statement)
        assert np.array_equal(again.values[0], value)


def test_a_small_race_is_not_printed_ten_times_too_large():
    release = released(FIGURES["county totals"])
    true = people().marginal(["race"]).counts[-1]
    wide = release.interval("race = 'r4'", 0.999)
    half = wide.high - wide.estimate
    assert abs(release.counts[0][:, -1].sum() - true) <= half
    assert cell_by_cell(release)[:, -1].sum() > true + 1.5 * half


def test_other_sums_are_those_drawn():
    release = released(FIGURES["county totals"])
    (drawn,), (counts,) = release.drawn, release.counts
    assert not release.prints("race")
    assert release.prints("county")  # published exactly
    assert np.array_equal(release.margin("race"), drawn.sum(axis=(0, 2)))
    assert release.count("race = 'r4'") == drawn[:, 4].sum()
    one = release.count("district = 'd3' and race = 'r1' and age >= 18")
    assert one == counts[3, 1, 1]
    node = release.count("county = 'c2' and race = 'r1' and age >= 18")
    assert node == release.margin("county", "race", "age")[2, 1, 1]
    assert node == counts[2::COUNTIES, 1, 1].sum()
    assert release.count("race = 'r1' and age >= 18") == release.margin("race", "age")[1, 1]


def test_sums_of_counts_that_were_fitted_cell_by_cell_are_those_drawn():
    release = released((total(by="county"), at_least(total(), 1)))
    assert release.estimator.order is None
    assert release.estimator.fitted_tables == (NAMES,)
    assert release.counts[0][:, 4].sum() > release.drawn[0][:, 4].sum()
    assert release.count("race = 'r4'") == release.drawn[0][:, 4].sum()
    assert np.array_equal(release.margin("race", "age"), release.drawn[0].sum(axis=0))


def test_a_release_without_whole_counts_shows_the_sums_drawn():
    made = MeasuredTables.of_one(noise(FIGURES["total"]), whole=False)
    release = made.release(people(), SeededRandomness(1))
    assert release.counts == (None,)
    assert not release.prints("race", "age")
    assert release.count("race = 'r4'") == release.drawn[0][:, 4].sum()
    assert np.array_equal(release.margin("race"), release.drawn[0].sum(axis=(0, 2)))


def printed_too(names, *figures):
    """The table, and sums of it that are printed and not measured."""
    known = SemiAdjacent(publish(people(), *figures))
    made = MeasuredTables.of(known, (NAMES, names), "double_geometric", [Fraction(1, 2), None])
    return made.release(people(), SeededRandomness(1))


def test_sums_that_are_printed_beside_their_table_are_sums_of_its_counts():
    release = printed_too(("race",), total())
    (counts, sums), (drawn, _) = release.counts, release.estimates
    assert np.array_equal(sums, counts.sum(axis=(0, 2)))
    assert release.prints("race")
    assert release.count("race = 'r4'") == sums[4]
    assert release.estimated_count("race = 'r4'") == drawn[:, 4].sum()
    assert release.estimator.as_near(release.drawn, release.counts)
    assert not release.estimator.as_near(release.drawn, [counts, sums[::-1]])
    assert not release.estimator.as_near(release.drawn, [counts, None])


def test_sums_that_would_keep_a_bias_are_printed_as_estimates():
    """Cell by cell no sum is fitted, and a printed one would be far too large."""
    release = printed_too(("race",), total(), at_least(count("race = 'r0'"), 1))
    counts, sums = release.counts
    assert release.estimator.order is None
    assert counts[:, 4].sum() > 2 * release.interval("race = 'r4'", 0.999).high
    assert sums is None
    assert not release.prints("race")
    assert np.array_equal(release.margin("race"), release.drawn[0].sum(axis=(0, 2)))
    assert release.count("race = 'r4'") == release.drawn[0][:, 4].sum()
    assert "count" not in release.to_arrow("race").column_names
    assert release.estimator.as_near(release.drawn, release.counts)
    told = [counts, counts.sum(axis=(0, 2))]
    assert not release.estimator.as_near(release.drawn, told)


def test_partitions_that_cannot_be_kept_together_leave_no_counts():
    made = MeasuredTables.of_one(noise(FIGURES["none"]), keep=("county", "age"))
    assert "keep" in made.estimator.why_no_counts
    assert made.release(people(), SeededRandomness(1)).counts == (None,)
    assert not MeasuredTables.of_one(made.only, keep=("county",)).estimator.why_no_counts


def test_axes_in_another_order_and_coarser_axes():
    known = publish(people(), total(by="county"))
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(known)), ("age", "county", "race"))
    release = release_table(mechanism, people(), SeededRandomness(4))
    (counts,) = release.counts
    assert release.estimator.order is not None
    assert counts.shape == (2, COUNTIES, RACES)
    assert np.array_equal(counts.sum(axis=(0, 2)), people().marginal(["county"]).counts)
    assert as_near(release, counts)


# ---- verification ----------------------------------------------------------------------------


BOUNDED = (*FIGURES["adults per district"], at_least(total(), 1))  # has no place in an order


@pytest.mark.parametrize("figures", [(), FIGURES["adults per district"], BOUNDED])
def test_printed_counts_are_worked_out_again(figures):
    release = released(figures)
    assert (release.estimator.order is None) == (figures == BOUNDED)
    (counts,) = release.counts
    assert as_near(release, counts)
    moved = counts.copy()
    moved[0, 0, 1] += 2  # two adults of one district change their race
    moved[0, 1, 1] -= 2
    assert not as_near(release, moved)
    assert not as_near(release, released(figures, seed=9).counts[0])


def test_a_fit_of_the_other_kind_is_noticed():
    nodes, cells = released(FIGURES["adults per district"]), released(BOUNDED)
    assert np.array_equal(nodes.drawn[0], cells.drawn[0])
    assert as_near(cells, cell_by_cell(nodes))  # ties broken another way
    assert not np.array_equal(cells.counts[0], cell_by_cell(nodes))
    assert not as_near(nodes, cells.counts[0])
    assert not as_near(cells, nodes.counts[0])


SMALL = Schema.from_dict({"g": {"levels": ["p", "q", "r"]}, "x": {"levels": list("abcd")}})


@pytest.mark.parametrize("bounds", [(), (at_least(count("g = 'p'"), 8),)])
def test_counts_as_near_as_the_fit_with_other_sums_are_no_fit(bounds):
    """Every move of one person between two cells, or out of one: a fit or a tie keeps the total."""
    table = Table(SMALL, SMALL.names, np.array([[5, 2, 0, 1], [0, 0, 3, 0], [1, 0, 0, 1]]))
    known = publish(table, total(), *bounds)
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(known)), SMALL.names)
    release = release_table(mechanism, table, SeededRandomness(3))
    (drawn,), (counts,) = release.drawn, release.counts
    accepted = refused = 0
    least = np.square(counts - drawn).sum()
    for source in range(12):
        for place in range(-1, 12):
            told = counts.copy()
            told.flat[source] -= 1
            if place >= 0:
                told.flat[place] += 1
            near = as_near(release, told)
            may = told.sum() == 13 and told.min() >= 0 and (not bounds or told[0].sum() >= 8)
            assert may or not near
            accepted += near
            refused += not may and np.square(told - drawn).sum() <= least
    assert accepted > 12  # those that put a person back, and ties
    assert refused > 0


# ---- what has no place in the order ----------------------------------------------------------


def test_bounds_and_finer_figures_are_fitted_cell_by_cell():
    small = Schema.from_dict(
        {
            "g": {"levels": ["p", "q", "r"]},
            "x": {"levels": list("abcd")},
            "y": {"levels": ["0", "1"]},
        }
    )
    table = Table(small, small.names, np.random.default_rng(0).poisson(2.0, (3, 4, 2)))

    def fitted(*figures):
        known = SemiAdjacent(publish(table, *figures))
        mechanism = calibrate("auto", Guarantee.pure(1, known), ("g", "x"))
        return release_table(mechanism, table, SeededRandomness(1))

    assert fitted(margin("g")).estimator.order is not None
    for figures in ((total(), at_least(total(), 1)), (margin("g", "y"),)):
        release = fitted(*figures)
        assert release.estimator.order is None
        assert release.counts[0].min() >= 0
        assert release.counts[0].sum() == table.counts.sum()


@pytest.mark.parametrize("bounds", [(), (at_least(count("x = 'g'"), 0),)])
def test_ties_favour_no_cell(bounds):
    """alpha = 1e-6: which of equal cells gets the odd unit varies with the draw."""
    schema = Schema.from_dict({"x": {"levels": list("abcdefg")}})
    table = Table(schema, ("x",), np.array([5, 5, 5, 5, 5, 5, 1]))
    known = publish(table, total(), *bounds)
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(known)), ("x",))
    estimator = MeasuredTables.of_one(mechanism).estimator
    assert (estimator.order is None) == bool(bounds)
    errors = np.zeros((2000, 6))
    for i, noise in enumerate(mechanism.noise(SeededRandomness(5), 2000)):
        drawn = table.counts + noise
        errors[i] = (estimator.counts(drawn) - drawn)[:6]
    apart = errors.mean(axis=0) - errors.mean()
    assert np.all(np.abs(apart) < 5.2 * errors.std() / np.sqrt(2000))
    assert errors.std() > 0.1


# ---- what is said ----------------------------------------------------------------------------


def test_what_to_expect_is_said_before_the_draw_and_without_the_data():
    made = MeasuredTables.of_one(noise(FIGURES["adults per district"]))
    assert made.estimator.fitted_tables == (("race", "age"), ("county", "race", "age"), NAMES)
    deviation = np.sqrt(np.mean(made.estimator.deviations(NAMES).values ** 2))
    assert 0 < try_printed(made).errors[0] <= 1.05 * deviation
    free = MeasuredTables.of_one(noise(()))
    deviation = np.sqrt(np.mean(free.estimator.deviations(NAMES).values ** 2))
    assert 0 < try_printed(free).errors[0] < deviation
