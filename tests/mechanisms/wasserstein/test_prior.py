"""Counts given their total under a prior: against enumeration, through every path."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction as F

import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import chi2, dirichlet_multinomial

from congenial.errors import FigureError, GuaranteeError
from congenial.sampling import counts_given_total, given_total_kernels
from congenial.sampling.counts_given_total import CountCell, CountsGivenTotal, draw_below
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.randomness import RecordedRandomness, SeededRandomness
from congenial.sampling.tree_of_sums import TreeOfSums
from tests.sampling.conditioned import attempt, constant

ALPHA = 1e-6
SEED = 20_240_611
DRAWS = 40_000


def cells(squared: bool = False) -> list[CountCell]:
    """Strong and weak priors (one below 1), with and without a subordinate count."""
    return [
        CountCell(3, F(1, 2), F(5, 2), 1, squared),
        CountCell(0, F(1, 2), F(1, 4), 0, squared),
        CountCell(4, F(1, 2), F(1), None, squared),
    ]


def tables(total: int, n: int) -> list[tuple[int, ...]]:
    return [p for p in itertools.product(range(total + 1), repeat=n) if sum(p) == total]


def by_hand(cell: CountCell, c: int) -> float:
    """w(c), term by term."""
    power = 2 if cell.squared else 1
    a, rate = float(cell.shape), float(cell.rate)
    w = math.exp(math.lgamma(c + a) - math.lgamma(c + 1) - math.lgamma(a))
    w *= math.exp(-rate * abs(c - cell.centre) ** power)
    if cell.below is not None:
        w *= math.fsum(math.exp(-rate * abs(d - cell.below) ** power) for d in range(c + 1))
    return w


def fit(drawn: np.ndarray, points: list[tuple[int, ...]], p: np.ndarray) -> float:
    """p-value of a chi-square test, rare points pooled."""
    at = {point: i for i, point in enumerate(points)}
    seen = np.bincount([at[tuple(row)] for row in drawn.tolist()], minlength=len(points))
    rare = p * len(drawn) < 10
    observed = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(p[~rare], p[rare].sum()) * len(drawn)
    kept = expected > 0
    statistic = ((observed[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    return float(chi2.sf(statistic, kept.sum() - 1)) if kept.sum() > 1 else 1.0


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("cut", [None, 0.3])
@pytest.mark.parametrize("paid", [0, math.inf])
def test_draws_follow_the_law(squared, cut, paid, monkeypatch):
    monkeypatch.setattr(counts_given_total, "_PAID", paid)  # down a tree at once, or never
    if cut is not None:  # windows so narrow that the bins beyond them and ball arithmetic are used
        monkeypatch.setattr(counts_given_total, "_CUT", cut)
    total, n = 6, DRAWS if cut is None else 500 if paid == 0 else 1_000
    law = CountsGivenTotal(cells(squared), total)
    points = tables(total, 3)
    weights = np.array([math.prod(map(by_hand, law.cells, point)) for point in points])
    p = weights / weights.sum()
    if cut is None:
        assert law.log_density(points) == pytest.approx(np.log(p), abs=1e-9)
    drawn = law.draw_many(SeededRandomness(SEED), n)
    assert ("_splitter" in vars(law)) == (paid == 0)
    assert fit(drawn, points, p) > ALPHA
    if cut is None:  # the same test sees a prior parameter that is 20 % off
        other = [CountCell(3, F(1, 2), F(3), 1, squared), *law.cells[1:]]
        wrong = np.array([math.prod(map(by_hand, other, point)) for point in points])
        assert fit(drawn, points, wrong / wrong.sum()) < ALPHA


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("cut", [2.0**-66, 0.3])
def test_every_attempt_down_the_tree_has_the_stated_law(squared, cut, monkeypatch):
    """Proposal x acceptance is w(c) times one constant, in balls of 256 bits, for every table."""
    monkeypatch.setattr(counts_given_total, "_CUT", cut)
    law, ratios = CountsGivenTotal(cells(squared), 6), []
    assert law._splitter is not None
    for point in tables(6, 3):
        log_p, largest = attempt(law._splitter, [6], point)
        assert largest <= 0
        with ctx.workprec(256):
            weights = (cell.log_ball(c) for cell, c in zip(law.cells, point, strict=True))
            ratios.append(log_p - sum(weights, arb(0)))
    assert constant(ratios)


def test_wide_laws_are_proposed_and_narrow_ones_drawn_down_a_tree():
    """Whichever is faster; both have the same mean and spread."""
    centre = [400, 0, 900, 30, 77]
    wide = CountsGivenTotal([CountCell(x, F(1, 300)) for x in centre], sum(centre))
    assert wide._splitter is None
    narrow = CountsGivenTotal([CountCell(x, F(1, 4), F(3, 2), x // 9) for x in centre], 1407)
    few = narrow.draw_many(SeededRandomness(SEED), 3000)
    assert "_splitter" not in vars(narrow)
    many = narrow.draw_many(SeededRandomness(SEED), 60_000)
    assert "_splitter" in vars(narrow)
    assert (many.sum(axis=1) == 1407).all()
    error = np.sqrt(few.var(axis=0) / len(few) + many.var(axis=0) / len(many))
    assert (np.abs(few.mean(axis=0) - many.mean(axis=0)) < 5.5 * error).all()
    five_errors = 5 * np.sqrt(5 / len(few))  # of a kurtosis of 6
    assert few.var(axis=0) == pytest.approx(many.var(axis=0), rel=five_errors)


def test_beyond_the_windows(monkeypatch):
    monkeypatch.setattr(counts_given_total, "_CUT", 0.3)
    law = CountsGivenTotal(cells(), 6)
    drawn = law.draw_many(SeededRandomness(SEED), 300)
    lows = np.array([t.low for t in law.tables])
    highs = np.array([t.high for t in law.tables])
    outside = ((drawn < lows) | (drawn > highs)).any(axis=1)
    assert 0.02 < outside.mean() < 0.98


def test_integer_weights_dominate():
    for law in (CountsGivenTotal(cells(), 40), CountsGivenTotal(cells(True), 40)):
        for j, table in enumerate(law.tables):
            first, end = law._offsets[j], law._offsets[j + 1]
            n = np.diff(law._cumulative[first:end])
            assert int(n.astype(object).sum()) == 1 << 62
            c = np.arange(table.low, table.high + 1)
            logs = law.cells[j].log_weight(c) + law.theta * c
            exact = np.exp(logs - logs[table.anchor - table.low])
            assert table.weights == pytest.approx(exact, rel=1e-9)
            assert (n[1:-1] >= table.weights * law._scales[j]).all()


def test_kernel_and_ball_arithmetic_decide_alike():
    law = CountsGivenTotal(cells(), 9)
    words = np.array(SeededRandomness(5).words(3 * 150)).reshape(150, 3)
    out, status = np.empty((150, 3), np.int64), np.empty(150, np.int8)
    given_total_kernels.propose(
        words, law._cumulative, law._guide, law._ratios, law._offsets, law._lows, 9, law._last,
        law._last_weights, law.tables[law._last].low, counts_given_total._GUIDE, 1e-8, out, status,
    )  # fmt: skip
    assert {0, 1} <= set(status.tolist())
    for t in range(150):
        found = law._exactly(words[t], RecordedRandomness([]))
        assert (found is not None) == (status[t] == 1)
        if found is not None:
            assert found.tolist() == out[t].tolist()


@pytest.mark.parametrize("squared", [False, True])
def test_uniform_base_is_the_bounded_law(squared):
    centre, total, rate = [3, 0, 5, 2], 10, F(1, 3)
    noise = DiscreteGaussian(1 / (2 * rate)) if squared else DoubleGeometric(rate)
    law = CountsGivenTotal([CountCell(x, rate, squared=squared) for x in centre], total)
    other = TreeOfSums.of_groups([0] * 4, centre, noise)
    y = other.draw_many(SeededRandomness(1), 20)
    assert law.log_density(y) == pytest.approx(other.log_density(y), abs=1e-9)
    assert law.log_density([[10, 0, 0, 1], [11, -1, 0, 0]]).tolist() == [-math.inf, -math.inf]


def test_large_totals():
    rng = np.random.default_rng(SEED)
    x, last = rng.poisson(9_000, 67), rng.poisson(8_000, 67)
    law = CountsGivenTotal(
        [
            CountCell(int(a), F(1, 400), F(int(b)) / 10, int(a) // 50)
            for a, b in zip(x, last, strict=True)
        ],
        int(x.sum()),
    )
    drawn = law.draw_many(SeededRandomness(SEED), 60)
    assert (drawn.sum(axis=1) == x.sum()).all()
    assert drawn.min() >= 0
    spread = np.array([math.sqrt(t.moments[1]) for t in law.tables])
    means = np.array([t.moments[0] for t in law.tables])
    assert np.abs((drawn.mean(axis=0) - means) / spread * math.sqrt(60)).max() < 6.5
    assert np.isfinite(law.log_density(drawn)).all()


@pytest.mark.parametrize(("rate", "squared"), [(F(1, 50), False), (F(2), False), (F(1, 9), True)])
def test_subordinate_counts(rate, squared):
    tops, centres = np.array([0, 3, 40]), np.array([0, 1, 9])
    drawn = draw_below(np.tile(tops, (DRAWS, 1)), centres, rate, SeededRandomness(SEED), squared)
    for j, (top, e) in enumerate(zip(tops, centres, strict=True)):
        d = np.arange(top + 1)
        p = np.exp(-float(rate) * np.abs(d - e) ** (2.0 if squared else 1.0))
        assert fit(drawn[:, [j]], [(int(v),) for v in d], p / p.sum()) > ALPHA


@pytest.mark.parametrize(
    ("rate", "squared"),
    [(F(1, 50), False), (F(1, 2), False), (F(1, 900), True), (F(1, 9), True), (F(3), True)],
)
def test_subordinate_counts_around_a_centre_above_the_whole(rate, squared):
    """The true part may be far above the drawn whole; every way of drawing is met."""
    tops, centres = np.array([1, 3, 30, 5, 12, 40]), np.array([2, 90, 31, 2000, 13, 45])
    drawn = draw_below(np.tile(tops, (DRAWS, 1)), centres, rate, SeededRandomness(SEED), squared)
    for j, (top, e) in enumerate(zip(tops, centres, strict=True)):
        d = np.arange(top + 1)
        logs = -float(rate) * np.abs(d - e) ** (2.0 if squared else 1.0)
        p = np.exp(logs - logs.max())
        points = [(int(v),) for v in d]
        assert fit(drawn[:, [j]], points, p / p.sum()) > ALPHA
        if squared and top == 40 and rate < 1:  # planted: around the whole, as for the l1 loss
            p = np.exp(-float(rate) * (d - top) ** 2.0)
            assert fit(drawn[:, [j]], points, p / p.sum()) < ALPHA


def test_a_part_far_above_its_whole_is_drawn_at_once():
    words = CountedWords(SEED)
    for squared in (False, True):
        draw_below(np.full(100, 4), np.full(100, 120), F(1, 2), words, squared)
        draw_below(np.full(100, 10**6), np.full(100, 10**9), F(1, 10**4), words, squared)
    assert words.taken < 20_000


class CountedWords(SeededRandomness):
    taken = 0

    def words(self, n):
        self.taken += n
        if self.taken > 10**6:
            raise AssertionError("it does not end")
        return super().words(n)


@pytest.mark.parametrize("rate", [F(1), F(300), F(800), F(5000)])
def test_rates_whose_weights_are_no_doubles(rate):
    """e^rate overflows: the law is the truth alone, or what the others leave, and draws end."""
    for x in tables(5, 3):
        law = CountsGivenTotal([CountCell(c, rate, F(1, 2)) for c in x], 5)
        drawn = law.draw_many(SeededRandomness(SEED), 20)
        assert np.all(drawn.sum(axis=1) == 5)
        if rate > 1:
            assert np.all(drawn == np.array(x))


def pmf_of_base(a):
    """Of five people in three counts; a rate near 0 leaves the base measure alone."""
    law = CountsGivenTotal([CountCell(0, F(1, 10**12), v) for v in a], 5)
    points = tables(5, 3)
    return points, np.exp(law.log_density(points))


def test_dirichlet_multinomial_pmf():
    a = [F(2), F(1), F(1, 2)]
    points, p = pmf_of_base(a)
    assert p.sum() == pytest.approx(1)
    expected = [dirichlet_multinomial.pmf(one, [float(v) for v in a], 5) for one in points]
    np.testing.assert_allclose(p, expected, rtol=1e-9)
    assert abs(printed_sum() - 1) > 1  # the test above catches it


def test_dirichlet_multinomial_against_the_oracle(oracles):
    told = json.loads((oracles / "partially-private-data.json").read_text())
    oracle = {one["id"]: one for one in told}
    case = oracle["dm_(5, 0, 0)"]
    points, p = pmf_of_base([F(str(v)) for v in case["inputs"]["alpha"]])
    assert p[points.index((5, 0, 0))] == pytest.approx(case["output"], rel=1e-9)
    assert printed_sum() == pytest.approx(oracle["dm_printed_sum"]["output"], abs=1e-10)


def printed_sum() -> float:
    """The pmf as printed, summed over its support: alpha = 1/2, last counts (4, 2, 1), s = 5."""
    s, a, total = 5, [2.0, 1.0, 0.5], 0.0
    front = math.gamma(0.5 * s) * math.gamma(s + 1) / math.gamma(1.5 * s)
    for y in tables(s, 3):
        factors = [
            math.gamma(k + b) / (math.gamma(k) * math.gamma(b + 1)) if k else 0.0
            for k, b in zip(y, a, strict=True)
        ]
        total += front * math.prod(factors)
    return total


def test_edges():
    assert CountsGivenTotal([CountCell(4, F(1))], 4).draw_many(SeededRandomness(1), 2).tolist() == [
        [4],
        [4],
    ]
    empty = CountsGivenTotal([CountCell(0, F(1)), CountCell(0, F(1), F(1, 2), 0)], 0)
    assert empty.draw_many(SeededRandomness(1), 1).tolist() == [[0, 0]]
    assert empty.log_density([0, 0]) == pytest.approx(0)
    with pytest.raises(FigureError, match="negative"):
        CountsGivenTotal([CountCell(0, F(1))], -1)
    with pytest.raises(FigureError, match="larger than the count"):
        CountCell(1, F(1), below=2)
    with pytest.raises(GuaranteeError, match="shape"):
        CountCell(1, F(1), F(0))
