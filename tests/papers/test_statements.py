"""Statements that became items of `reproduce`: against enumeration, closed forms and simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from congenial.errors import GuaranteeError
from congenial.pairs import ConditionalNormal
from congenial.papers import catalogue
from congenial.papers.congenial_dp import congenial_statements
from congenial.papers.distribution_privacy import studies
from congenial.papers.item import Study
from congenial.papers.partially_private_data import theory
from congenial.papers.pseudo_posterior import simulation

ALPHA = 1e-6
QUICK = Study(quick=True, seed=5)


def run(paper, item):
    return catalogue.run(paper, item, QUICK)


# ---- congenial-dp --------------------------------------------------------------------------------


def test_theorem_1_3_holds_for_independent_beliefs_and_fails_for_tied_ones():
    rows = run("congenial-dp", "theorem-1.3")["rows"]
    assert {row[0]: row[-1] for row in rows} == {
        "independent, 30 % each": True,
        "nearly the same answer": False,
        "the same answer": False,
    }
    # all three alike: the odds are those of counts 0 and 3
    factors = congenial_statements.posterior_factors(
        congenial_statements.priors()["the same answer"], 1.0
    )
    assert factors.max() / factors.min() == pytest.approx(math.exp(3))


def test_posterior_factors_by_bayes_in_rationals_of_e():
    """Two answers of one person by hand, for one result."""
    prior = congenial_statements.priors()["independent, 30 % each"]
    y = 1
    weight = {0: 0.0, 1: 0.0}
    for x, p in zip(product((0, 1), repeat=3), prior, strict=True):
        weight[x[0]] += p * math.exp(-abs(y - sum(x)))
    want = [weight[w] / sum(weight.values()) / (0.7, 0.3)[w] for w in (0, 1)]
    at = congenial_statements.RESULTS.tolist().index(y)
    assert congenial_statements.posterior_factors(prior, 1.0)[:, at] == pytest.approx(want)


def test_beliefs_stay_as_epsilon_vanishes():
    rows = run("congenial-dp", "definition-1.4")["rows"]
    changes = [row[1] for row in rows]
    assert changes == sorted(changes, reverse=True)
    assert changes[3] == pytest.approx(0.0007, rel=0.01)  # 0.7 epsilon: 1 less the prior
    assert rows[-1][1:] == [0, 0, 1]
    noise = stats.dlaplace(0.1)
    assert rows[1][2] == pytest.approx(noise.cdf(10) - noise.cdf(-11))


def test_posterior_to_posterior_is_twice_epsilon_and_attained():
    for _, _, found, allowed, holds in run("congenial-dp", "posterior-to-posterior")["rows"]:
        assert holds
        assert found == pytest.approx(allowed)
    wide = congenial_statements.odds_factor(congenial_statements.priors()["the same answer"], 1.2)
    assert wide > math.exp(2)  # planted: 20 % less noise


def test_a_mandate_that_fixes_the_answer_loses_nothing():
    rows = run("congenial-dp", "example-5.2")["rows"]
    assert [row[4:] for row in rows if row[0] == "41 to 50 ones"] == [[0, -1], [0, -1]]
    assert [row[4] for row in rows if row[0] == "all databases"] == [0.5, 1.0]
    laws = congenial_statements._conditioned(np.array([4.0, 5.0]), np.array([4.0, 5.0]), 1.0)
    assert np.abs(np.diff(np.log(laws), axis=0)).max() == pytest.approx(1)  # two answers do


# ---- partially-private-data ----------------------------------------------------------------------


@pytest.mark.parametrize("figures", [1, 2, 3])
def test_several_figures_by_regression(figures):
    """The coefficient of a record in the regression of the mean on it and on the figures."""
    T = np.array(theory.COVARIANCE, float)[:figures, :figures]
    a, b = (
        np.array([float(v) for v in one[:figures]])
        for one in (theory.WITH_RECORD, theory.WITH_MEAN)
    )
    inner = np.block([[np.array([[4.0]]), a[None, :]], [a[:, None], T]])
    slope = np.linalg.solve(inner, np.append(4 / 5, b))[0]
    assert float(theory.first(figures).coefficient) == pytest.approx(slope)


def test_one_figure_is_the_class_with_one():
    one = ConditionalNormal(5, Fraction(4), Fraction(3), Fraction(1), Fraction(1), Fraction(2))
    assert ConditionalNormal.given_several(5, 4, [[3]], [1], [1], 2).coefficient == one.coefficient
    none = ConditionalNormal.given_several(5, 4, [[3, 0], [0, 1]], [0, 0], [1, 0], 2)
    assert none.coefficient == Fraction(1, 5)


@pytest.mark.parametrize(
    ("covariance", "record", "mean", "why"),
    [
        ([[3, 1], [2, 2]], [1, 1], [1, 1], "symmetric"),
        ([[3, 1]], [1, 1], [1, 1], "symmetric"),
        ([[1, 2], [2, 1]], [1, 1], [1, 1], "positive definite"),
        ([[3, 1], [1, 2]], [1, 1], [3, 3], "negative eigenvalue"),
        ([[1, 0], [0, 1]], [2, 0], [Fraction(2, 5), 0], "determines a record"),
    ],
)
def test_impossible_covariances_are_refused(covariance, record, mean, why):
    with pytest.raises(GuaranteeError, match=why):
        ConditionalNormal.given_several(5, 4, covariance, record, mean, 2)


def test_dependence_without_bound_leaves_nothing():
    rows = [row[2] for row in run("partially-private-data", "example-1")["rows"][4:]]
    assert rows == sorted(rows)
    assert rows[0] == pytest.approx(0.4)
    assert rows[-1] > 10


def test_manifolds_are_their_tangent_spaces_in_the_end():
    """Monte Carlo error of 20,000 squares: their spread is estimated from the draws."""
    rng, draws, n = np.random.default_rng(7), 20_000, 1000
    for d1 in (2, 3):
        limits = ((d1 - 1) * (d1 + 1), (d1 - 1) * d1)
        found = (theory.projected_angles, theory.intrinsic_angles)
        for limit, angles in zip(limits, found, strict=True):
            squares = n**2 * angles(rng, d1, draws, 1 / n) ** 2
            error = squares.std() / math.sqrt(draws)
            z = -stats.norm.ppf(ALPHA / 2)
            assert abs(squares.mean() - limit) < z * error
            assert abs(1.2 * squares.mean() - limit) > z * error  # planted: 20 % more
    assert len(run("partially-private-data", "manifold")["rows"]) == 8


# ---- distribution-privacy ------------------------------------------------------------------------


def test_the_law_of_tenants_by_listing():
    """Four records of 20 low: against a convolution of float binomials; masses are exact."""
    law = studies.tenants(4)
    assert sum(law) == 1
    want = np.convolve(stats.binom(4, 0.7).pmf(range(5)), stats.binom(16, 0.4).pmf(range(17)))
    np.testing.assert_allclose([float(v) for v in law], want, atol=1e-12)


def test_pairs_of_shares_and_their_distance():
    rows = {row[0]: row[1:] for row in run("distribution-privacy", "example-2.1")["rows"]}
    assert rows["share of low income, k = 0.1"][0] == 10
    assert rows["share of low income, k = 0.2"][0] == 19
    assert all(near <= exact for _, exact, near in rows.values())
    quantiles = [
        np.searchsorted(np.cumsum([float(v) for v in studies.tenants(low)]), levels)
        for low in (4, 6)
        for levels in [(np.arange(20_000) + 0.5) / 20_000]
    ]
    pair = studies.share(studies.LOW, between=(Fraction(1, 5), Fraction(3, 10))).pairs
    # two quantile functions on a fine grid of levels: all but the extreme tails
    assert np.abs(quantiles[0] - quantiles[1]).max() <= studies.reach(pair, Fraction(0)) <= 2


# ---- pseudo-posterior ----------------------------------------------------------------------------


def test_widths_fall_with_the_root_of_n_and_few_weights_stay():
    found = run("pseudo-posterior", "theorem-2")
    for name, n, width, scaled, _, down in found["rows"]:
        assert scaled == pytest.approx(width * math.sqrt(n))
        if name == "Unweighted":
            assert scaled == pytest.approx(19.6, rel=0.02)
            assert down == 0
        else:
            assert scaled > 19.6
            assert down > 0.9  # Assumption 4 would have a share of order n^(-1/2)


def test_the_posterior_is_the_models():
    """Quantiles of the Gamma law against draws of the model itself."""
    rng = np.random.default_rng(8)
    y = rng.poisson(100, 50).astype(float)
    w = rng.random(50)
    drawn = simulation.MODEL.posterior(y, w, 20_000, rng)[:, 0]
    assert stats.kstest(drawn, simulation.posterior(y, w).cdf).pvalue > ALPHA
    assert stats.kstest(drawn, simulation.posterior(y, 0.8 * w).cdf).pvalue < ALPHA


def test_delta_falls_with_the_factor_of_safety():
    rows = run("pseudo-posterior", "definition-4")["rows"]
    for name, n in {(row[0], row[1]) for row in rows}:
        deltas = [row[4] for row in rows if row[:2] == [name, n]]
        assert deltas == sorted(deltas, reverse=True)
    assert all(row[4] <= row[5] for row in rows)
    assert all(row[4] == 1 for row in rows if row[0] == "Unweighted")
