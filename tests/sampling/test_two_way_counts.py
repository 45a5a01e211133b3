"""Nonnegative tables with given margins: enumeration, each way's law, slow path, uncertified
chain."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from congenial.errors import FigureError, RandomnessError, StructureError
from congenial.sampling import RecordedRandomness, SeededRandomness
from congenial.sampling import two_way_counts as divide
from congenial.sampling import two_way_kernels as margin_kernels
from congenial.sampling.exact_decisions import ball
from congenial.sampling.two_way_counts import Columns, Divide, Intervals, TwoColumns, TwoWayCounts

SEED = 271828
EPS = Fraction(1, 2)
FOUR_BY_TWO = np.array([[3, 0], [1, 4], [2, 2], [0, 5]])
THREE_BY_FOUR = np.array([[1, 0, 2, 1], [0, 3, 0, 1], [2, 1, 1, 0]])
FOUR_BY_FIVE = np.array([[2, 0, 0, 1, 0], [0, 1, 0, 0, 1], [0, 0, 2, 0, 1], [1, 0, 0, 1, 0]])


def fillings(total, caps):
    if len(caps) == 1:
        return [(total,)] if total <= caps[0] else []
    return [
        (x, *rest) for x in range(min(total, caps[0]) + 1) for rest in fillings(total - x, caps[1:])
    ]


def all_tables(s):
    """Every nonnegative table with the margins of s, column by column."""
    done = [(np.zeros((len(s), 0), np.int64), s.sum(axis=1))]
    for n in s.sum(axis=0):
        done = [
            (np.column_stack([t, x]), left - np.array(x))
            for t, left in done
            for x in fillings(int(n), left.tolist())
        ]
    return np.array([t for t, _ in done])


def distances(s):
    """How many tables lie at each distance: integers, so Z = sum count a^distance is exact."""
    return Counter(np.abs(all_tables(s) - s).sum(axis=(1, 2)).tolist())


def counts_and_probs(s, draws, eps=EPS):
    places = all_tables(s)
    weights = np.exp(-float(eps) * np.abs(places - s).sum(axis=(1, 2)))
    seen = Counter(map(bytes, np.ascontiguousarray(draws)))
    counts = [seen[bytes(t)] for t in places]
    assert sum(counts) == len(draws)  # nothing off the support
    return counts, weights / weights.sum()


def draws_of(way, n, seed=SEED):
    source = SeededRandomness(seed)
    return np.array([way.draw(source) for _ in range(n)])


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lo", "hi", "cap"), [(0, 0, 9), (2, 2, 9), (3, 5, 6), (0, 9, 9), (7, 9, 20), (12, 15, 15)]
)
def test_add_row_is_the_plain_sum(lo, hi, cap):
    f = np.random.default_rng(SEED).random(11)
    out = np.empty(11)
    scale = margin_kernels.add_row(f, lo, hi, cap, 0.6, out)
    for k in range(11):
        direct = sum(0.6 ** max(lo - x, x - hi, 0) * f[k - x] for x in range(min(cap, k) + 1))
        assert out[k] * scale == pytest.approx(direct, rel=1e-14)


def test_messages_are_exact_integers_of_powers():
    """In ball arithmetic Z holds sum count a^distance, the counts being integers."""
    law = TwoColumns(FOUR_BY_TWO, EPS)._law
    with ctx.workprec(300):
        direct = sum(n * (-ball(EPS * d)).exp() for d, n in distances(FOUR_BY_TWO).items())
        whole = law.exact_messages(0)[law.n]
        assert whole.overlaps(direct)
        assert whole.rad() < 1e-80
        assert law.log_Z == pytest.approx(float(direct.log()), abs=1e-13)


@pytest.mark.parametrize("eps", [Fraction(1, 10), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("s", [FOUR_BY_TWO.T, THREE_BY_FOUR, THREE_BY_FOUR.T], ids=str)
def test_log_z_by_enumeration(s, eps):
    law = TwoWayCounts(s, eps)
    direct = math.log(sum(n * math.exp(-eps * d) for d, n in distances(s).items()))
    assert law.log_Z == pytest.approx(direct, abs=1e-12)
    assert np.exp(law.log_density(all_tables(s))).sum() == pytest.approx(1, abs=1e-12)
    assert law.log_ratio_error == 0 if min(s.shape) == 2 else 0 < law.log_ratio_error < 1e-9


def test_log_z_where_doubles_underflow():
    """Rows around (900, 0, 900) with sum 3: distance 1803 or so, drawn in ball arithmetic."""
    s = np.array([900, 0, 900])
    law = Intervals(s, s, np.full(3, 900), 3, Fraction(1))
    # x_2 of the 3 cost 1 each, those in the other two rows save 1 each
    direct = math.log(sum((4 - x) * math.exp(2 * (3 - x)) for x in range(4))) - 1803
    assert law.log_Z == pytest.approx(direct, abs=1e-9)
    assert law.draw(SeededRandomness(SEED)).sum() == 3


# --- the law, way by way --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "s", "n"),
    [
        (TwoColumns, FOUR_BY_TWO, 8000),
        (Columns, THREE_BY_FOUR, 5000),
        (Divide, THREE_BY_FOUR, 5000),
        (Divide, np.ascontiguousarray(THREE_BY_FOUR.T), 5000),
        (Divide, FOUR_BY_FIVE, 5000),
    ],
    ids=["two columns", "columns", "divide 3x4", "divide 4x3", "divide 4x5"],
)
def test_draws_have_the_law(way, s, n, fits):
    draws = draws_of(way(s, EPS), n)
    assert fits(*counts_and_probs(s, draws))
    assert not fits(*counts_and_probs(s, draws, EPS * Fraction(3, 5)))


def test_negative_control_divide_without_its_acceptance(fits, monkeypatch):
    def accept(m, state, *rest):
        status, at = two_way_kernels_divide(m, state, *rest)
        return (margin_kernels.FINISHED if status == margin_kernels.TABLE else status), at

    two_way_kernels_divide = margin_kernels.divide
    monkeypatch.setattr(margin_kernels, "divide", accept)
    way = Divide(THREE_BY_FOUR, EPS)
    way.judge_slack = 1e9  # every acceptance is open, and the defect accepts it
    assert not fits(*counts_and_probs(THREE_BY_FOUR, draws_of(way, 5000)))


def test_negative_control_divide_with_the_plain_first_row(fits, monkeypatch):
    """Messages instead of square roots in the first row: the acceptance does not take it back."""
    monkeypatch.setattr(divide.FirstRow, "_share", lambda self, j: 1.0)
    draws = draws_of(Divide(THREE_BY_FOUR, EPS), 5000)
    assert not fits(*counts_and_probs(THREE_BY_FOUR, draws))


# --- slow path ------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [TwoColumns, Divide])
def test_ball_arithmetic_gives_the_same_draws(way, monkeypatch):
    s = FOUR_BY_TWO if way is TwoColumns else THREE_BY_FOUR
    opened = []
    settle = divide.GivenSum.settle
    log_p = Divide._log_acceptance
    monkeypatch.setattr(divide.GivenSum, "settle", lambda *a: opened.append("cell") or settle(*a))
    monkeypatch.setattr(Divide, "_log_acceptance", lambda *a: opened.append("table") or log_p(*a))
    fast, slow = way(s, EPS), way(s, EPS)
    if way is TwoColumns:
        slow._law.slack = 0.02
    else:
        slow.slack, slow.judge_slack = 0.02, 0.5
    assert np.array_equal(draws_of(fast, 60), draws_of(slow, 60))
    assert opened.count("cell") > 20
    assert opened.count("table") > 10 or way is TwoColumns


def test_columns_slow_path_is_the_same(monkeypatch):
    from congenial.sampling import two_way_counts as margin_counts

    fast = draws_of(Columns(THREE_BY_FOUR, EPS), 60)
    pick_fast, opened = margin_counts.pick_fast, []

    def crippled(weights, slack, exact, randomness):
        opened.append(len(weights))
        return pick_fast(weights, 0.05, exact, randomness)

    monkeypatch.setattr(margin_counts, "pick_fast", crippled)
    assert np.array_equal(fast, draws_of(Columns(THREE_BY_FOUR, EPS), 60))
    assert len(opened) == 180


# --- the facade -----------------------------------------------------------------------------------


def test_the_way_depends_on_margins_alone():
    assert TwoWayCounts(FOUR_BY_TWO, EPS).way == "two columns"
    assert TwoWayCounts(THREE_BY_FOUR, EPS).way == "columns"
    assert TwoWayCounts(FOUR_BY_FIVE, EPS).way == "divide and conquer"
    assert TwoWayCounts(1000 * THREE_BY_FOUR, EPS).way == "divide and conquer"
    padded = np.zeros((5, 6), np.int64)
    padded[np.ix_([0, 2, 3], [1, 2, 4, 5])] = THREE_BY_FOUR
    law = TwoWayCounts(padded, EPS)
    assert law.way == "columns"
    m = law.draw_many(SeededRandomness(SEED), 5)
    assert not m[:, [1, 4]].any()
    assert np.isfinite(law.log_density(m)).all()


def test_one_table_left():
    s = np.array([[0, 0, 0], [1, 0, 4]])
    law = TwoWayCounts(s, EPS)
    assert (law.way, law.log_Z, law.log_ratio_error) == ("one table", 0.0, 0.0)
    assert law.draw(RecordedRandomness([])).tolist() == s.tolist()
    assert not TwoWayCounts(np.zeros((2, 3), int), 1).draw(RecordedRandomness([])).any()


def test_a_table_of_ten_by_nine():
    s = np.random.default_rng(SEED).poisson(6, (10, 9))
    law = TwoWayCounts(s, Fraction(1, 2))
    assert law.log_Z is None
    m = law.draw_many(SeededRandomness(SEED), 2)
    assert np.isfinite(law.log_weight(m)).all()
    with pytest.raises(StructureError, match="log_weight"):
        law.log_density(m)


def test_nothing_confidential_is_shown():
    s = np.array([[987_654, 3], [2, 1], [5, 0]])
    assert "987" not in repr(TwoWayCounts(s, EPS))
    with pytest.raises(FigureError) as error:
        TwoWayCounts(-s, EPS)
    assert "987" not in str(error.value)
    with pytest.raises(StructureError) as refused:
        TwoWayCounts(np.full((3, 4), 10**9), EPS)
    assert "000" not in str(refused.value)


def test_refusals():
    with pytest.raises(StructureError, match="integers"):
        TwoWayCounts([[0.5, 1.0]], EPS)
    with pytest.raises(FigureError, match="negative cell"):
        TwoWayCounts([[2, -1], [1, 3]], EPS)
    with pytest.raises(StructureError, match="30 x 30"):
        TwoWayCounts(np.ones((30, 30), int), EPS)
    with pytest.raises(RandomnessError):
        TwoWayCounts(FOUR_BY_FIVE, EPS).draw(RecordedRandomness([1]))
    law = TwoWayCounts(THREE_BY_FOUR, EPS)
    assert law.log_density(np.zeros((3, 4))) == -math.inf
    assert law.log_density(THREE_BY_FOUR) == pytest.approx(-law.log_Z)


def test_where_a_search_starts() -> None:
    """At the mode and an even share of what is missing, within 0 .. most."""
    modes, tail = np.array([3, 5, 0]), np.array([8, 5, 0])
    for i, k, most, start in (
        (0, 8, 9, 3),
        (0, 14, 9, 5),
        (1, 5, 4, 4),
        (0, 2, 9, 1),
        (0, 0, 9, 0),
    ):
        assert margin_kernels.middle(i, k, modes, tail, most) == start
    assert margin_kernels.middle(1, 0, np.array([3, 1, 0]), np.array([4, 1, 0]), 9) == 0
