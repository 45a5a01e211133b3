"""Noise given crossing sums, by proposals: the sum over the free number, and releases with it.

The law itself is compared with enumeration in tests/contracts/test_laws.py.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from congenial import Guarantee, Schema, SemiAdjacent, Table, calibrate, release_table
from congenial.errors import StructureError
from congenial.figures import margin, publish
from congenial.sampling import SeededRandomness, proposed_noise
from congenial.sampling.exact_decisions import working_precision
from congenial.sampling.proposed_noise import ProposedNoise
from tests.contracts.laws import CUBE
from tests.worlds import one_way_margins

ALPHA = 1e-6  # false-alarm rate of each statistical test
SEED = 20_261_117
EPS = Fraction(2, 5)
CENTRES = [[0, 0, 0, 0], [3, -2, 0, 7], [5, 5, -1, -1], [0, 4, 4, 4], [-6, 1, 2, 2]]


def weights(centres, reach=120):
    s = np.arange(-reach, reach + 1)
    return s, np.exp(-float(EPS) * np.abs(s[:, None] - np.array(centres)).sum(axis=1))


@pytest.mark.parametrize("centres", CENTRES, ids=str)
def test_the_sum_over_the_free_number_is_that_of_all_terms(centres):
    alike, here = (math.log(weights(c)[1].sum()) for c in ([0] * 4, centres))
    fast = proposed_noise.log_sums(np.array([centres]), float(EPS))[0]
    with working_precision(128):
        exact = float(proposed_noise.log_sum_ball(centres, EPS))
    assert fast == pytest.approx(here - alike, abs=1e-12)
    assert exact == pytest.approx(here - alike, abs=1e-12)
    assert fast <= 0  # a probability


def fits(draws, centres, eps_times=1.0):
    s, w = weights(centres)
    probs = w**eps_times / (w**eps_times).sum()
    often = probs * len(draws) >= 8
    seen = np.array([np.count_nonzero(draws == x) for x in s[often]])
    observed = np.append(seen, len(draws) - seen.sum())
    expected = np.append(probs[often], 1 - probs[often].sum()) * len(draws)
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), often.sum()) > ALPHA


@pytest.mark.parametrize("centres", CENTRES[1:], ids=str)
def test_the_free_number_has_its_law(centres):
    source = SeededRandomness(SEED)
    draws = np.array([proposed_noise.draw_free(centres, EPS, source) for _ in range(4000)])
    assert fits(draws, centres)
    assert not fits(draws, centres, 1.25)  # 20 % less noise is noticed


def test_doubles_and_balls_decide_alike(monkeypatch):
    """With a slack that leaves everything open, ball arithmetic decides all: the same draws."""
    law = ProposedNoise(np.arange(8), CUBE, EPS)
    usual = law.draw_many(SeededRandomness(SEED), 40)
    monkeypatch.setattr(proposed_noise, "SLACK", 1e9)
    assert np.array_equal(law.draw_many(SeededRandomness(SEED), 40), usual)


@pytest.mark.parametrize("eps", [Fraction(3, 8), Fraction(1, 1000)], ids=str)
@pytest.mark.parametrize("shape", [(2, 2, 2), (2, 3, 2)], ids=str)
def test_about_the_stated_share_is_accepted_at_any_epsilon(shape, eps):
    law = ProposedNoise(np.arange(math.prod(shape)), one_way_margins(*shape), eps)
    source, tried = SeededRandomness(SEED), 20_000
    accepted = len(law._accepted(law._proposed(source, tried), source.words(tried), source))
    print("accepted", accepted / tried, "stated", law.expected_acceptance)
    assert 1 < accepted / tried / law.expected_acceptance < 3
    assert accepted / tried > 0.15


def test_cells_of_one_group_may_be_several():
    labels = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7])
    law = ProposedNoise(labels, CUBE, EPS)
    u = law.draw_many(SeededRandomness(SEED), 50)
    assert not np.any(u @ CUBE[:, labels].T)
    assert np.all(np.abs(u).max(axis=0) > 0)
    assert law.log_weight(u[0] + np.eye(9, dtype=int)[0]) == -math.inf


def test_equations_without_four_such_cells_are_refused():
    with pytest.raises(StructureError, match="no four can make up the difference"):
        ProposedNoise(np.arange(3), np.array([[1, 2, 4]]), EPS)


def test_one_way_margins_of_three_attributes_are_released_at_epsilon_3():
    """semi-dp, Theorem 16 at p = 3: a* is 4, and every margin is kept."""
    schema = Schema.from_dict({name: {"levels": ["p", "q"]} for name in ("x", "y", "z")})
    table = Table(schema, schema.names, np.array([[[30, 4], [5, 1]], [[4, 1], [1, 2]]]))
    public = publish(table, margin("x"), margin("y"), margin("z"))
    adjacency = SemiAdjacent(public)
    mechanism = calibrate("auto", Guarantee.pure(3, adjacency), schema.names)
    assert adjacency.records == 4
    release = release_table(mechanism, table, SeededRandomness(SEED))
    for values in (release.drawn[0], release.counts[0]):
        for axes in ((0, 1), (0, 2), (1, 2)):
            assert np.array_equal(values.sum(axis=axes), table.counts.sum(axis=axes))
    assert "four cells make up the difference" in mechanism.sampler


def test_error_laws_take_fewer_draws_where_a_draw_takes_many_proposals(monkeypatch):
    schema = Schema.from_dict({name: {"levels": ["p", "q"]} for name in ("x", "y", "z")})
    table = Table(schema, schema.names, np.array([[[30, 4], [5, 1]], [[4, 1], [1, 2]]]))
    public = publish(table, margin("x"), margin("y"), margin("z"))
    mechanism = calibrate("auto", Guarantee.pure(3, SemiAdjacent(public)), schema.names)
    monkeypatch.setattr("congenial.mechanisms.error_laws.NUMBERS", 40_000)
    cell = mechanism.error_laws(np.arange(8).reshape(2, 2, 2), 8)[0]
    assert 500 <= len(cell.draws) < 1000
    assert cell.interval(0.9) > 0
