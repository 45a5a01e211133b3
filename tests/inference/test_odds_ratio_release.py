"""The test of an odds ratio as a release: its promise by enumeration, its law, its cost."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from congenial import Budget, Guarantee, Ledger, Schema, SemiAdjacent, Table, margin, publish, total
from congenial.errors import BudgetError, FigureError, GuaranteeError
from congenial.inference import OddsRatioMechanism, OddsRatioQuestion, OddsRatioTest
from congenial.inference.odds_ratio import lemma_34_excess
from congenial.privacy.tradeoff import Pure
from congenial.sampling.canonical import Tulap
from congenial.sampling.randomness import SeededRandomness

SEED = 240_517
ALPHA = 1e-6
ANSWERS = {"levels": ["yes", "no"]}
SCHEMA = Schema.from_dict({"smoker": ANSWERS, "ill": ANSWERS})
PAIR = ("smoker", "ill")


def mechanism(cells: list[list[int]], epsilon: object = 1, **asked: object) -> OddsRatioMechanism:
    table = Table(SCHEMA, PAIR, cells)
    figures = publish(table, margin("smoker"), margin("ill"))
    target = Guarantee.pure(epsilon, under=SemiAdjacent(figures))  # type: ignore[arg-type]
    return OddsRatioMechanism.calibrate(target, PAIR, OddsRatioQuestion(**asked))  # type: ignore[arg-type]


# ---- paid for ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["decide", "release"])
def test_six_decisions_against_a_budget_of_one(tmp_path: Path, way: str) -> None:
    """They were free of charge once: a ledger did not know them."""
    table = Table(SCHEMA, PAIR, [[14, 6], [7, 33]])
    made = mechanism([[14, 6], [7, 33]])
    ledger = Ledger.open(tmp_path / "ledger.sqlite", SCHEMA, budget=Budget(epsilon=1))
    ledger.publish(made.guarantee.adjacency.figures)
    drawn = [getattr(made, way)(table, name=f"test-{i}") for i in range(6)]
    ledger.record(drawn[0])
    for one in drawn[1:]:
        with pytest.raises(BudgetError, match="counted as spent"):
            ledger.record(one)
    assert ledger.spent().epsilon == 6  # drawn is spent, whether it may be published or not


def test_files_say_how_far_the_noisy_count_may_be_off() -> None:
    table = Table(SCHEMA, PAIR, [[14, 6], [7, 33]])
    drawn = mechanism([[14, 6], [7, 33]]).release(table, SeededRandomness(SEED))
    told = json.loads(drawn.payload()["test.json"])
    around = drawn.interval("smoker = 'yes' and ill = 'yes'", 0.9)
    assert told["count_interval"] == [around.low, around.high]
    law = drawn.counts.only.mechanism.error_law(np.array([[True, False], [False, False]]))
    assert told["count_sd"] == pytest.approx(law.variance**0.5, rel=1e-5)
    rows = dict(zip(*drawn.to_arrow().to_pydict().values(), strict=True))
    assert rows["noisy count, low"] == str(around.low)


# ---- the promise ---------------------------------------------------------------------------------


def databases(rows: int, columns: int, people: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """All databases of some people with these margins, record by record."""
    for one in product(product((0, 1), (0, 1)), repeat=people):
        if sum(r == 0 for r, _ in one) == rows and sum(c == 0 for _, c in one) == columns:
            yield one


def worst_loss(made: OddsRatioMechanism, rows: int, columns: int, scale: float) -> float:
    """The largest log ratio of any noisy count over databases at most a* records apart.

    The law is written down here: p(k) ~ exp(-scale |k - x11|).
    """
    pairs = made.counts.adjacency
    known = list(databases(rows, columns, 5))
    first = [sum(r == 0 and c == 0 for r, c in one) for one in known]
    at = np.arange(-12, 18)
    logs = [-scale * np.abs(at - x) for x in first]  # the normaliser is the same for all
    worst = 0.0
    for i, one in enumerate(known):
        for j, other in enumerate(known):
            apart = sum(a != b for a, b in zip(one, other, strict=True))
            if apart <= pairs.records:
                worst = max(worst, float(np.max(logs[i] - logs[j])))
    return worst


@pytest.mark.parametrize(
    ("cells", "rows", "columns"), [([[2, 1], [1, 1]], 3, 3), ([[1, 1], [2, 1]], 2, 3)]
)
def test_the_promise_over_all_databases_with_the_margins(
    cells: list[list[int]], rows: int, columns: int
) -> None:
    """Held and attained; with 20 % less noise it is broken."""
    made = mechanism(cells, Fraction(7, 10))
    assert made.guarantee.tradeoff == Pure(Fraction(7, 10))
    scale = 4 * float(made.description.scale)
    assert worst_loss(made, rows, columns, scale) == pytest.approx(0.7)
    assert worst_loss(made, rows, columns, scale * 1.25) > 0.7 + 0.1


def test_the_count_has_the_law_that_the_promise_is_about() -> None:
    cells = [[9, 5], [4, 12]]
    made, table = mechanism(cells, 1), Table(SCHEMA, PAIR, cells)
    source = SeededRandomness(SEED)
    noise = np.array([made.release(table, source).count - 9 for _ in range(1500)])
    b = math.exp(-1)
    bins = np.array([-np.inf, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, np.inf])
    seen = np.histogram(noise, bins)[0]

    def fits(b: float) -> float:
        inner = [(1 - b) / (1 + b) * b ** abs(k) for k in (-2, -1, 0, 1, 2)]
        tail = (1 - sum(inner)) / 2
        return float(stats.chisquare(seen, 1500 * np.array([tail, *inner, tail])).pvalue)

    assert fits(b) > ALPHA
    assert fits(math.exp(-1.25)) < ALPHA  # 20 % less noise would be seen


# ---- what follows from the draw ------------------------------------------------------------------


def p_values(made: OddsRatioMechanism, w: float, n: int) -> np.ndarray:
    """P-values of releases from tables drawn with odds ratio w, given the margins."""
    assert made.test is not None
    rng = np.random.default_rng(SEED)
    source = SeededRandomness(SEED)
    (t1, t2), k = made.test.rows, made.test.columns[0]
    found = []
    for x in rng.choice(made.test.support, n, p=made.test.law(w)):
        cells = [[x, t1 - x], [k - x, t2 - k + x]]
        found.append(made.release(Table(SCHEMA, PAIR, cells), source).p_value())
    return np.array(found)


@pytest.mark.parametrize("side", ["greater", "less", "two-sided"])
def test_p_values_under_the_null_and_power_under_the_alternative(side: str) -> None:
    made = mechanism([[12, 13], [5, 20]], 1, alternative=side, alpha=0.1)
    null = p_values(made, 1.0, 500)
    for level in (0.05, 0.1, 0.3):
        assert stats.binom.sf(np.count_nonzero(null <= level) - 1, 500, level) > ALPHA
    if side != "two-sided":
        assert stats.kstest(null, "uniform").pvalue > ALPHA
    at = 0.25 if side == "less" else 4.0
    other = p_values(made, at, 500)
    power = float(made.test.power(0.1, at, 1.0, side))  # type: ignore[union-attr, arg-type]
    assert stats.binomtest(int(np.count_nonzero(other <= 0.1)), 500, power).pvalue > ALPHA
    assert stats.kstest(other, "uniform").pvalue < ALPHA  # so a null that fails would be seen


def test_p_values_that_ignore_the_noise_are_not_valid() -> None:
    """The negative control: Fisher's exact test of the noisy count rejects far too often."""
    cells = [[12, 13], [5, 20]]
    made = mechanism(cells, Fraction(1, 5))
    assert made.test is not None
    naive = OddsRatioTest(made.test.rows, made.test.columns, Tulap(20))
    rng, source = np.random.default_rng(SEED), SeededRandomness(SEED)
    x = rng.choice(made.test.support, 500, p=made.test.law(1.0))
    statistics = x + Tulap(Fraction(1, 5)).draw(source, 500)
    wrong = sum(naive.p_value(float(one)) <= 0.05 for one in statistics)
    right = sum(made.test.p_value(float(one)) <= 0.05 for one in statistics)
    assert stats.binom.sf(wrong - 1, 500, 0.05) < ALPHA
    assert stats.binom.sf(right - 1, 500, 0.05) > ALPHA


def test_power_of_every_side() -> None:
    test = OddsRatioTest((25, 20), (17, 28), Tulap(1))
    for side in ("greater", "less", "two-sided"):
        assert test.power(0.05, 1.0, 1.0, side) == pytest.approx(0.05, abs=1e-9)
    assert test.power(0.05, 0.3, 1.0, "less") > 0.2 > test.power(0.05, 0.3)
    swapped = OddsRatioTest((20, 25), (17, 28), Tulap(1))
    assert test.power(0.05, 0.3, 1.0, "less") == pytest.approx(swapped.power(0.05, 1 / 0.3))
    assert test.power(0.05, [0.2, 5.0], 1.0, "two-sided").shape == (2,)
    with pytest.raises(GuaranteeError, match="alternative"):
        test.power(0.05, 2.0, 1.0, "both")  # type: ignore[arg-type]


def test_the_decision_is_private_and_agrees_with_the_p_value() -> None:
    made = mechanism([[12, 13], [5, 20]])
    assert made.test is not None
    phi = made.test.rejection(0.05)
    assert lemma_34_excess(phi, Pure(1)) < 1e-12
    table = Table(SCHEMA, PAIR, [[12, 13], [5, 20]])
    release = made.release(table, SeededRandomness(SEED))
    decision = made.decide(table, SeededRandomness(SEED))
    assert decision.rejected == release.rejected == (release.p_value() <= 0.05)
    assert decision.description == release.description
    assert not decision.publishable


# ---- what cannot be asked ------------------------------------------------------------------------


def test_other_tables_and_questions_are_refused() -> None:
    three = Schema.from_dict({"smoker": ANSWERS, "age": {"levels": ["a", "b", "c"]}})
    table = Table(three, ("smoker", "age"), [[4, 5, 6], [7, 8, 9]])
    pairs = SemiAdjacent(publish(table, margin("smoker"), margin("age")))
    with pytest.raises(GuaranteeError, match="two categories each"):
        OddsRatioMechanism.calibrate(Guarantee.pure(1, under=pairs), ["smoker", "age"])
    one = SemiAdjacent(publish(Table(SCHEMA, PAIR, [[4, 5], [6, 7]]), total(by="ill")))
    with pytest.raises(FigureError, match="counts by smoker and by ill"):
        OddsRatioMechanism.calibrate(Guarantee.pure(1, under=one), PAIR)
    empty = SemiAdjacent(
        publish(Table(SCHEMA, PAIR, [[4, 5], [0, 0]]), margin("smoker"), margin("ill"))
    )
    with pytest.raises(FigureError, match="all of them positive"):
        OddsRatioMechanism.calibrate(Guarantee.pure(1, under=empty), PAIR)
    for bad in (
        {"null_value": 0},
        {"alpha": 1},
        {"level": 2},
        {"power_at": [-1]},
        {"null_value": "2"},
    ):
        with pytest.raises(GuaranteeError):
            OddsRatioQuestion(**bad)


def test_other_figures_may_be_public_too() -> None:
    """They count in the adjacency; the margins are read off the figures."""
    schema = Schema.from_dict(
        {"county": {"levels": ["a", "b", "c"]}, "smoker": ANSWERS, "ill": ANSWERS}
    )
    cells = np.arange(1, 13).reshape(3, 2, 2)
    table = Table(schema, schema.names, cells)
    figures = publish(table, margin("smoker"), margin("ill"), total(by="county"))
    target = Guarantee.pure(1, under=SemiAdjacent(figures))
    made = OddsRatioMechanism.calibrate(target, PAIR)
    assert made.test is not None
    sums = cells.sum(axis=0)
    assert made.test.rows == tuple(sums.sum(axis=1))
    assert made.test.columns == tuple(sums.sum(axis=0))
    assert made.guarantee.tradeoff == Pure(1)
    epsilon = made.test.noise.epsilon  # type: ignore[attr-defined]
    assert epsilon == 4 * made.description.scale
