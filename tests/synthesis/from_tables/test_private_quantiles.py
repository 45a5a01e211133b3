"""Bins at private quantiles: every outcome enumerated on small universes, and a planted defect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import log
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare

from congenial import Figures, Schema, SemiAdjacent, Table, total
from congenial.data.attribute import Attribute
from congenial.errors import CongenialError, SchemaError, StructureError
from congenial.kinds.records_from_tables import KIND
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables import private_quantiles
from congenial.synthesis.from_tables.column_rules import ColumnRules
from congenial.synthesis.from_tables.private_quantiles import (
    QuantileBins,
    bin_of_level,
    cuts_from_plain,
    cuts_to_plain,
)
from congenial.synthesis.from_tables.records_run import CountedRecords, TableRecords
from tests.synthesis.from_tables.enumerated_procedure import Script, Undecided

ALPHA = 1e-6
SEED = 20261117
Y = Attribute("y", "integers", low=1, high=5)
FOUR = QuantileBins("y", 4, 4)
EPSILON = Fraction(3, 2)
PEOPLE = 4


def outcomes(counts: Any, patch: pytest.MonkeyPatch, by: QuantileBins = FOUR) -> dict[Any, float]:
    """The log probability of every way to cut a column with these counts; the code itself runs."""
    found: dict[Any, float] = {}

    def explore(told: tuple[int, ...], so_far: float) -> None:
        script = Script(told)

        def scripted(scores: Sequence[int], epsilon: Fraction, moves: int, _: Any) -> int:
            weights = np.array([float(epsilon * one / (2 * moves)) for one in scores])
            return script.next(weights - logsumexp(weights), None)

        patch.setattr(private_quantiles, "choose", scripted)
        try:
            cuts = by.draw(np.asarray(counts), Y, EPSILON, SeededRandomness(1))
        except Undecided as ahead:
            for at, more in enumerate(ahead.logs):
                explore((*told, at), so_far + more)
        else:
            found[cuts] = so_far

    explore((), 0.0)
    return found


def databases(levels: int, people: int) -> Iterator[Any]:
    for one in combinations_with_replacement(range(levels), people):
        yield np.bincount(one, minlength=levels)


def worst(patch: pytest.MonkeyPatch, records: int, by: QuantileBins = FOUR) -> float:
    """The largest log ratio over databases that differ in at most so many records."""
    told = [(counts, outcomes(counts, patch, by)) for counts in databases(5, PEOPLE)]
    return max(
        abs(first[cuts] - other[cuts])
        for (one, first), (two, other) in product(told, repeat=2)
        if np.abs(one - two).sum() <= 2 * records
        for cuts in first
    )


@pytest.mark.parametrize("records", [1, 2])
def test_no_pair_of_databases_is_told_apart_by_more_than_its_steps(
    monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """Two steps cost 2 a epsilon. Planted: for a* = 2, what one record costs is exceeded."""
    found = worst(monkeypatch, records)
    assert found <= records * FOUR.steps * EPSILON
    assert found > 0.5 * records * FOUR.steps * EPSILON
    assert (found > FOUR.steps * EPSILON) == (records == 2)


def test_spikes_cost_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts on both sides of a spike are cut in the same step: each record is in one of them."""
    assert worst(monkeypatch, 1, QuantileBins("y", 4, 2, (3,))) <= FOUR.steps * EPSILON


def test_planted_cuts_at_a_third_would_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that moves from one part to another moves F - n / 3 by 2/3 in both."""
    honest = worst(monkeypatch, 1)

    def at_a_third(counts: Any) -> list[Fraction]:
        below, everybody = np.cumsum(counts)[:-1].tolist(), int(counts.sum())
        return [Fraction(-2 * abs(3 * one - everybody), 3) for one in below]

    monkeypatch.setattr(private_quantiles, "_scores", at_a_third)
    assert worst(monkeypatch, 1) > honest


def test_outcomes_add_up_and_draws_follow_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws against enumerated probabilities; counts of another database must be rejected."""
    counts, other = np.array([3, 0, 1, 0, 4]), np.array([0, 5, 0, 3, 0])
    with monkeypatch.context() as patch:
        told, wrong = outcomes(counts, patch), outcomes(other, patch)
    assert logsumexp(list(told.values())) == pytest.approx(0, abs=1e-12)
    source, draws = SeededRandomness(SEED), 3_000
    drawn = [FOUR.draw(counts, Y, EPSILON, source) for _ in range(draws)]
    seen = np.array([drawn.count(cuts) for cuts in told])

    def p_value(laws: dict[Any, float]) -> float:
        return float(chisquare(seen, draws * np.exp([laws[cuts] for cuts in told])).pvalue)

    assert p_value(told) > ALPHA
    assert p_value(wrong) < ALPHA


SCHEMA = Schema.from_dict(
    {"x": {"levels": ["p", "q"]}, "y": {"integers": [1, 4]}, "z": {"levels": ["s", "t", "u"]}}
)
BY_X = Figures(SCHEMA, (total(by="x"),), (np.array([1, 2]),))
HALVES = ColumnRules.of(quantiles={"y": 2})


def test_quantiles_are_part_of_the_promise() -> None:
    """Everything that is spent, quantiles first, is the amount; figures count a*."""
    promises: list[dict[str, Any]] = [{"rho": Fraction(2)}, {"epsilon": Fraction(4)}]
    for promise in promises:
        made = TableRecords.calibrate(SemiAdjacent(BY_X), SCHEMA.names, rules=HALVES, **promise)
        budget, spent = made.budget, made.budget.spent
        assert made.adjacency.records == 2
        assert spent <= budget.amount
        assert float(spent) == pytest.approx(float(budget.amount), rel=1e-5)
        plain = TableRecords.calibrate(SemiAdjacent(BY_X), SCHEMA.names, **promise)
        assert budget.pair_scale != plain.budget.pair_scale
        assert TableRecords.from_dict(made.adjacency, made.to_dict()) == made


def whole_losses(made: TableRecords, databases: Sequence[Table]) -> float:
    """The largest log ratio of cuts and all tables between the first database and the second.

    Noise is double geometric, so that the ratio of a table is at most rate times the distance, and
    is attained; tables depend on the cuts alone.
    """
    (one, other), y = databases, made.adjacency.schema.attribute("y")
    epsilon, cut = made.budget.quantile_epsilon, made.rules.quantiles[0]
    logs = []
    for table in (one, other):
        scores = private_quantiles._scores(table.marginal(("y",)).counts)
        weights = np.array([float(epsilon * score / 4) for score in scores])
        logs.append(weights - logsumexp(weights))
    found = []
    for at in range(len(logs[0])):
        drawn = TableRecords(
            made.adjacency, made.names, made.budget, rules=made.rules, cuts=(("y", ((at + 1,),)),)
        )
        tables = [CountedRecords.read(table, made.names).tables(drawn) for table in databases]
        noise = sum(
            float(scale) * np.abs(tables[0][axes] - tables[1][axes]).sum()
            for axes, scale in drawn.scales.items()
        )
        assert bin_of_level(cut, y, ((at + 1,),)).max() == 1
        found.append(abs(logs[0][at] - logs[1][at]) + noise)
    return float(max(found))


def people(*cells: tuple[int, int, int]) -> Table:
    counts = np.zeros((2, 4, 3), dtype=np.int64)
    for cell in cells:
        counts[cell] += 1
    return Table(SCHEMA, SCHEMA.names, counts)


def test_quantiles_and_tables_together_stay_below_the_promise() -> None:
    """x is published, a* = 2: two people move together. Planted: sensitivity 1 in place of a*."""
    epsilon = Fraction(4)
    pair = [people((0, 0, 0), (1, 0, 0), (1, 3, 0)), people((0, 3, 1), (1, 3, 1), (1, 3, 0))]
    made = TableRecords.calibrate(
        SemiAdjacent(BY_X), SCHEMA.names, epsilon=epsilon, rules=HALVES, rounds=3
    )
    assert 0.6 * epsilon < whole_losses(made, pair) <= epsilon
    wrong = TableRecords.calibrate(
        SemiAdjacent(Figures(SCHEMA)), SCHEMA.names, epsilon=epsilon, rules=HALVES, rounds=3
    )
    assert whole_losses(wrong, pair) > epsilon


def test_a_run_measures_by_the_bins_it_drew() -> None:
    """One release: a cut inside the column, tables by its two bins, and checks that hold."""
    made = TableRecords.calibrate(
        SemiAdjacent(Figures(SCHEMA)), SCHEMA.names, epsilon=Fraction(60), rules=HALVES
    )
    table = people((0, 0, 0), (1, 0, 1), (1, 3, 2), (0, 3, 2))
    release = made.release(table, SeededRandomness(SEED))
    assert dict(release.cuts)["y"][0][0] in (1, 2, 3)
    assert all(KIND.checks(release).values())
    assert {one.axes for one in release.measured} >= {("x",), ("y",), ("z",)}
    assert next(one for one in release.measured if one.axes == ("y",)).values.shape == (2,)


def test_a_value_that_many_share_ends_up_alone() -> None:
    """Zeros of a third of all people, without being asked for; and two resolutions that nest."""
    income = Attribute("income", "integers", low=0, high=999)
    rng = np.random.default_rng(SEED)
    values = np.where(rng.random(20_000) < 0.35, 0, rng.gamma(2, 120, 20_000).astype(int) + 1)
    counts = np.bincount(np.minimum(values, 999), minlength=1000)
    by = QuantileBins("income", 16, 4)
    cuts = by.draw(counts, income, Fraction(1, 2), SeededRandomness(SEED))
    binned = by.binned(income, cuts)
    assert binned.levels[0] == "0"
    assert by.possible(income, cuts)
    assert cuts_from_plain(income, cuts_to_plain(income, cuts)) == cuts
    assert 3 <= len(set(binned.coarser["income in pairs"])) <= 4
    shares = np.bincount(bin_of_level(by, income, cuts), counts) / counts.sum()
    assert shares[1:].max() < 3 / 16
    assert not by.possible(income, cuts[:-1])
    assert not by.possible(income, ((0,), *cuts[1:]))


def test_open_levels_and_levels_without_a_number_stay_apart() -> None:
    income = Attribute(
        "income", "bins", edges=tuple(range(0, 90, 10)), top="80+", bottom="debt", missing="unknown"
    )
    by = QuantileBins("income", 2, 2)
    cuts = by.draw(np.arange(11), income, Fraction(5), SeededRandomness(SEED))
    assert by.binned(income, cuts).levels[0] == "debt"
    assert by.binned(income, cuts).levels[-2:] == ("80+", "unknown")
    assert bin_of_level(by, income, cuts).tolist()[-2:] == [3, 4]


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"quantiles": {"y": 3}}, "classes are not possible"),
        ({"quantiles": {"y": 512}}, "classes are not possible"),
        ({"quantiles": {"y": [2, 4]}}, "more than"),
        ({"quantiles": {"y": 8}}, "4 categories"),
        ({"quantiles": {"x": 2}}, "no quantiles"),
        ({"quantiles": {"y": 2}, "spikes": {"y": [9]}}, "not a category of its own"),
        ({"spikes": {"y": [1]}}, "has no quantiles"),
        ({"tails": {"y": {"top": 9}}}, "no open class"),
        ({"made_up": {"x": "identifier"}}, "column of the schema"),
        ({"made_up": {"id": "number"}}, "neither"),
        ({"made_up": {"day": ["2024-02-01", "2024-01-01"]}}, "comes after"),
    ],
)
def test_what_cannot_be_cut_or_written_is_refused(rules: dict[str, Any], says: str) -> None:
    with pytest.raises((StructureError, SchemaError), match=says):
        TableRecords.calibrate(
            SemiAdjacent(BY_X), SCHEMA.names, epsilon=Fraction(1), rules=ColumnRules.of(**rules)
        )


def test_figures_about_a_cut_column_are_refused() -> None:
    figures = Figures(SCHEMA, (total(by="y"),), (np.array([1, 2, 0, 0]),))
    with pytest.raises(CongenialError, match="could not keep it"):
        TableRecords.calibrate(
            SemiAdjacent(figures), SCHEMA.names, epsilon=Fraction(1), rules=HALVES
        )


def test_ranks_come_out_right() -> None:
    """The median of many people is near one half; at a tiny epsilon it is anywhere."""
    counts, by = np.full(1000, 50), QuantileBins("y", 2, 2)
    wide = Attribute("y", "integers", low=0, high=999)
    source = SeededRandomness(SEED)
    near = [by.draw(counts, wide, Fraction(1, 10), source)[0][0] for _ in range(20)]
    assert max(abs(cut - 500) for cut in near) <= 2 / 0.1 * log(1000 / ALPHA * 20) / 50
    far = [by.draw(counts, wide, Fraction(1, 10**7), source)[0][0] for _ in range(20)]
    assert max(abs(cut - 500) for cut in far) > 100


def test_people_by_category_are_counted_as_often_as_their_record_occurs() -> None:
    """Categories and numbers of people are not interchangeable: neither bounds the other."""
    records = CountedRecords({"y": np.array([0, 0, 2])}, np.array([3, 1, 5]))
    assert records.counts("y", 4).tolist() == [4, 0, 5, 0]
