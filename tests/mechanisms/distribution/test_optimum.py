"""The least noise: feasible in exact arithmetic, optimal, and never worse than Algorithm 1."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize

from congenial.errors import StructureError
from congenial.mechanisms.distribution import expected_value
from congenial.mechanisms.distribution.optimum import (
    least_noise,
    optimum_noise,
    requirements,
    slack,
)
from congenial.mechanisms.distribution.target import Target, classical_mu
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from tests.mechanisms.distribution.cases import exactly, example, random_pairs, semidefinite


def feasible(noise: VectorNoise, pairs, kappa: float) -> bool:
    """S - d d'/kappa^2 + Sigma without a negative eigenvalue for every law, in rationals.

    S is what is drawn: sum of scale^2 times direction direction', each an exact product.
    """
    directions, scales = exactly(noise.directions), [Fraction(float(s)) for s in noise.scales]
    m = noise.dimension
    drawn = [
        [
            sum(
                (directions[i][k] * directions[j][k] * s * s for k, s in enumerate(scales)),
                Fraction(0),
            )
            for j in range(m)
        ]
        for i in range(m)
    ]
    bound = Fraction(kappa)
    for (i, j), d in zip(pairs.pairs, pairs.differences, strict=True):
        step = [Fraction(float(x)) for x in d]
        for law in (pairs.laws[i], pairs.laws[j]):
            own = exactly(law.covariance)
            left = [
                [drawn[a][b] + own[a][b] - step[a] * step[b] / bound**2 for b in range(m)]
                for a in range(m)
            ]
            if not semidefinite(left):
                return False
    return True


def test_worked_example_in_closed_form():
    kappa = classical_mu(1, 0.001)
    noise = optimum_noise(example(), kappa)
    assert np.trace(noise.covariance) == pytest.approx(6.170, abs=5e-4)
    assert noise.rank == 1
    assert feasible(noise, example(), kappa)


def test_several_pairs_against_a_given_solution(oracles):
    told = json.loads((oracles / "distribution-privacy.json").read_text())
    case = next(one for one in told if one["id"] == "sdp_multi")
    kappa = classical_mu(1, 0.001)
    matrices = [np.outer(d, d) / kappa**2 - np.array(c) for d, c in case["inputs"]["pairs"]]
    noise = least_noise(matrices)
    assert np.trace(noise.covariance) == pytest.approx(case["output"]["trace"], rel=1e-6)
    assert noise.covariance == pytest.approx(np.array(case["output"]["S"]), abs=1e-3)
    assert slack(noise, matrices) >= 0


def test_against_an_independent_solver():
    """Two statistics: tr S by sequential quadratic programming on the entries of S."""
    random = np.random.default_rng(8)
    for _ in range(6):
        matrices = []
        for _ in range(4):
            root, d = random.normal(size=(2, 2)), random.normal(size=2) * 2
            matrices.append(np.outer(d, d) - root @ root.T)
        found = least_noise(matrices)
        assert slack(found, matrices) >= 0

        def excess(s, m):
            a, b, c = s - np.array([m[0, 0], m[0, 1], m[1, 1]])
            return a + c - math.sqrt((a - c) ** 2 + 4 * b**2 + 1e-16)

        bounds = [
            {"type": "ineq", "fun": excess, "args": (m,)} for m in [np.zeros((2, 2)), *matrices]
        ]
        start = np.array([1.0, 0.0, 1.0]) * (1 + max(np.linalg.eigvalsh(m)[-1] for m in matrices))
        other = optimize.minimize(
            lambda s: s[0] + s[2], start, constraints=bounds, method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )  # fmt: skip
        assert np.trace(found.covariance) == pytest.approx(other.fun, rel=1e-4, abs=1e-5)


def test_weights_trade_one_error_for_another():
    pairs = example()
    kappa = classical_mu(1, 0.001)
    plain, weighted = optimum_noise(pairs, kappa), optimum_noise(pairs, kappa, [100.0, 1.0])
    assert feasible(weighted, pairs, kappa)
    assert weighted.covariance[0, 0] < plain.covariance[0, 0]
    weights = np.diag([100.0, 1.0])
    assert weighted.mean_square(weights) < plain.mean_square(weights)
    for bad in ([1.0], [1.0, 0.0], np.ones((2, 2))):
        with pytest.raises(StructureError, match="weights"):
            optimum_noise(pairs, kappa, bad)


def test_feasible_and_dominant_on_random_instances():
    random = np.random.default_rng(2024)
    kappa = Target(1, 0.001).kappa
    for case in range(24):
        pairs = random_pairs(random, 2 + case % 4, 2 + case % 3)
        noise = optimum_noise(pairs, kappa)
        trace = float(np.trace(noise.covariance))
        assert feasible(noise, pairs, kappa)
        others = [
            expected_value.gaussian_noise(pairs, kappa),
            expected_value.directional_gaussian_noise(pairs, kappa),
            expected_value.eigenvector_noise(pairs, kappa),
        ]
        if len(pairs.pairs) == 1:
            others.append(expected_value.uncertain_direction_noise(pairs, kappa))
        for other in others:
            assert feasible(other, pairs, kappa) or other.rank == 0
            assert trace <= float(np.trace(other.covariance)) * (1 + 1e-6) + 1e-9


def test_a_solution_that_is_a_little_too_small_is_noticed():
    pairs, kappa = example(), classical_mu(1, 0.001)
    noise = optimum_noise(pairs, kappa)
    smaller = VectorNoise.gaussian(noise.covariance * (1 - 1e-9))
    assert not feasible(smaller, pairs, kappa)
    assert slack(smaller, requirements(pairs, kappa)) < 0


def test_nothing_is_added_where_the_laws_are_spread_enough():
    assert optimum_noise(example(), Target(1, 0.001).kappa).rank == 0


def test_a_solver_without_an_answer_still_ends_in_a_feasible_one(monkeypatch):
    from congenial.mechanisms.distribution import optimum

    random = np.random.default_rng(4)
    pairs, kappa = random_pairs(random, 3, 4), 0.3
    best = float(np.trace(optimum_noise(pairs, kappa).covariance))
    monkeypatch.setattr(optimum, "_programme", lambda matrices: np.zeros((3, 3)))
    found = optimum_noise(pairs, kappa)
    assert feasible(found, pairs, kappa)
    assert float(np.trace(found.covariance)) >= best * (1 - 1e-9)
