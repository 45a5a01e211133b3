"""Records from tables: what is measured and chosen, against promise and law."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

import congenial
from congenial import Figures, Schema, SemiAdjacent, Table, margin, structural_zeros, total
from congenial.errors import CongenialError, StructureError
from congenial.inference.estimates.table_tests import carry_out_test
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables.private_quantiles import choose
from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease
from congenial.synthesis.from_tables.records_run import RecordsRun, TableRecords
from congenial.synthesis.from_tables.table_records import predicted_errors

ALPHA = 1e-6
SEED = 20261117
SCHEMA = Schema.from_dict({"x": {"levels": ["p", "q"]}, "y": {"integers": [1, 3]}})


def test_the_promise_counts_look_alikes() -> None:
    """Planted: sensitivity 2 in place of 2 a* would leave the noise as without figures."""
    free = TableRecords.calibrate(SemiAdjacent(Figures(SCHEMA)), ("x", "y"), Fraction(1))
    figures = Figures(SCHEMA, (margin("x"), margin("y")), (np.array([9, 8]), np.array([5, 7, 5])))
    tied = TableRecords.calibrate(SemiAdjacent(figures), ("x", "y"), Fraction(1))
    a = tied.adjacency.records
    assert a == 3
    assert float(tied.budget.amount) == pytest.approx(float(free.budget.amount) / a**2, rel=1e-6)
    assert set(tied.scales) == {("x", "y")}  # what figures settle gets no share
    assert 1 / tied.budget.pair_scale == pytest.approx(float(tied.budget.amount), rel=1e-5)
    for made in (free, tied):
        assert float(made.guarantee.tradeoff.rho) <= 1
        assert float(made.guarantee.tradeoff.rho) == pytest.approx(1, rel=1e-5)


def test_losses_of_everything_that_is_measured_stay_below_the_promise() -> None:
    """Whole databases of five people: squared distances of all tables, and scores of choices."""
    made = TableRecords.calibrate(SemiAdjacent(Figures(SCHEMA)), ("x", "y"), Fraction(1))
    rng = np.random.default_rng(SEED)
    worst = 0.0
    for _ in range(300):
        one = rng.integers(0, 6, 5)
        other = one.copy()
        other[0] = rng.integers(0, 6)
        tables = [np.bincount(people, minlength=6).reshape(2, 3) for people in (one, other)]
        loss = 0.0
        for axes, away in ((("x",), 1), (("y",), 0), (("x", "y"), ())):
            u = tables[0].sum(axis=away) - tables[1].sum(axis=away)
            loss += float((u**2).sum()) / (2 * float(made.scales[axes]))
        worst = max(worst, loss)
    assert worst <= float(made.budget.amount)
    assert worst == pytest.approx(
        float(made.budget.amount), rel=1e-5
    )  # attained where both cells move


def test_choices_follow_their_law() -> None:
    """Draws against exp(epsilon q / (2 moves)); half of epsilon must be rejected."""
    scores, draws = [0, 3, -2, 5], 4_000
    source = SeededRandomness(SEED)
    counts = np.bincount(
        [choose(scores, Fraction(1), 2, source) for _ in range(draws)], minlength=4
    )

    def p_value(epsilon: float) -> float:
        from scipy.stats import chisquare

        weights = np.exp(epsilon * np.array(scores) / 4)
        return float(chisquare(counts, draws * weights / weights.sum()).pvalue)

    assert p_value(1.0) > ALPHA
    assert p_value(0.5) < ALPHA


def test_one_column_and_no_rounds() -> None:
    table = Table(SCHEMA, ["x", "y"], [[5, 0, 2], [1, 3, 9]])
    made = TableRecords.calibrate(SemiAdjacent(Figures(SCHEMA)), ("y",), Fraction(1))
    release = made.release(table, SeededRandomness(SEED))
    assert release.names == ("y",)
    assert made.budget.rounds == 0
    assert release.to_arrow().num_rows == 20


def test_a_table_that_a_figure_settles_is_not_measured() -> None:
    table = Table(SCHEMA, ["x", "y"], [[5, 0, 2], [1, 3, 9]])
    figures = congenial.publish(table, total(by="x"))
    made = TableRecords.calibrate(SemiAdjacent(figures), ("x", "y"), Fraction(1))
    release = made.release(table, SeededRandomness(SEED))
    assert ("x",) not in [one.axes for one in release.measured]
    assert release.to_pandas()["x"].value_counts().to_dict() == {"q": 13, "p": 7}


def test_tests_use_the_measured_table() -> None:
    """Independent columns are not rejected, dependent ones are; unmeasured ones are refused."""
    three = Schema.from_dict({**SCHEMA.to_dict(), "z": {"levels": ["u", "v"]}})
    counts = np.zeros((2, 3, 2), dtype=np.int64)
    counts[0, :, 0], counts[1, :, 1] = (300, 200, 100), (300, 200, 100)
    pairs = SemiAdjacent(Figures(three))
    made = TableRecords.calibrate(pairs, three.names, Fraction(1))
    release = made.release(Table(three, three.names, counts), SeededRandomness(SEED))
    assert carry_out_test(release, "independent(x, y)").p_value > 1e-3
    assert carry_out_test(release, "independent(x, z)").p_value < 1e-3
    assert carry_out_test(release, "equal(y | x = 'p', x = 'q')").p_value > 1e-3
    only = replace(release, measured=tuple(m for m in release.measured if len(m.axes) == 1))
    with pytest.raises(CongenialError, match="together"):
        carry_out_test(only, "independent(x, z)")


def measured_releases(number: int) -> Iterator[TableRecordsRelease]:
    """One table of 200 people, measured anew each time."""
    table = Table(SCHEMA, ["x", "y"], [[50, 0, 20], [10, 30, 90]])
    made = TableRecords.calibrate(SemiAdjacent(Figures(SCHEMA)), ("x", "y"), Fraction(1, 10))
    for seed in range(number):
        drawn = RecordsRun(made, *made.fetch(table), SeededRandomness(seed), lambda _: None)
        for axes in made.scales:
            drawn.measure(axes)
        yield replace(made.made_up(200), measured=tuple(drawn.measured))


def test_intervals_from_combined_tables_are_narrower_and_cover() -> None:
    """A pair and its columns: 80 % intervals of 80 releases; a third as wide ones must not do."""
    covered = narrow = 0
    for release in measured_releases(80):
        (one,) = congenial.estimate(release, "count(y = 2)", 0.8)
        asked = release.interval("y = 2", 0.8)
        assert (asked.estimate, asked.low, asked.high) == (one.value, one.low, one.high)
        (alone,) = congenial.estimate(release.tables_about(["y"])[0], "count(y = 2)", 0.8)
        covered += one.low <= 30 <= one.high
        narrow += abs(one.value - 30) <= (one.high - one.value) / 3
        assert one.sd < 0.95 * alone.sd
    assert binomtest(covered, 80, 0.8, alternative="less").pvalue > ALPHA
    assert binomtest(narrow, 80, 0.8, alternative="less").pvalue < ALPHA


def test_heavier_columns_are_chosen_more_often() -> None:
    """A score counts less where no heavy column is in the pair."""
    three = Schema.from_dict({**SCHEMA.to_dict(), "z": {"levels": ["u", "v"]}})
    made = TableRecords.calibrate(
        SemiAdjacent(Figures(three)), three.names, Fraction(1), 1, weights={"z": Fraction(3)}
    )
    assert made.weight_of(("x", "y")) == Fraction(1, 3)
    assert made.weight_of(("x", "z")) == 1
    assert TableRecords.from_dict(made.adjacency, made.to_dict()) == made


def test_predicted_errors_are_those_of_the_noise() -> None:
    """Mean of sum |z| / 2 in tables drawn 400 times, for both laws."""
    nobody = Table(SCHEMA, ["x", "y"], np.zeros((2, 3), dtype=np.int64))
    pairs = SemiAdjacent(Figures(SCHEMA))
    for made in (
        TableRecords.calibrate(pairs, ("x", "y"), Fraction(1, 2)),
        TableRecords.calibrate(pairs, ("x", "y"), epsilon=Fraction(1)),
    ):
        for one in predicted_errors(made):
            law = made.law(one.axes)
            assert law is not None
            truth = nobody.marginal(one.axes).counts
            drawn = law.draw(truth, SeededRandomness(SEED), 400).reshape(400, -1)
            sums = np.abs(drawn).sum(axis=1) / 2
            spread = sums.std() / 20  # of the mean of 400
            assert abs(sums.mean() - one.misplaced) < 4.9 * spread  # two-sided, ALPHA
            assert abs(sums.mean() - 1.5 * one.misplaced) > 4.9 * spread


def test_rules_that_tie_records_to_other_columns_are_refused() -> None:
    """Figures on a column that the records lack would bind them unseen."""
    schema = Schema.from_dict(
        {"region": {"levels": ["A", "B"]}, "sex": {"levels": ["f", "m", "x"]}}
    )
    rule = structural_zeros("region = 'A' and sex = 'm'")
    figures = Figures(schema, (total(by="region"), rule), (np.array([3, 7]), None))
    with pytest.raises(StructureError, match="Synthesise region too"):
        TableRecords.calibrate(SemiAdjacent(figures), ("sex",), Fraction(1))


def test_figures_of_other_columns_stay_in_the_description() -> None:
    """Noise was drawn given them, so a price without them would be wrong."""
    figures = Figures(SCHEMA, (total(by="x"),), (np.array([4, 5]),))
    made = TableRecords.calibrate(SemiAdjacent(figures), ("y",), Fraction(1))
    assert made.description.given == figures
