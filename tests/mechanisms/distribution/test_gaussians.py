"""The exact delta of two Gaussian laws, against closed forms, sampling and given numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from congenial.errors import GuaranteeError
from congenial.mechanisms.distribution import gaussians
from congenial.mechanisms.distribution.gaussians import mahalanobis, pair_delta, shared_distance
from congenial.mechanisms.distribution.target import Target, classical_limit, classical_mu
from congenial.privacy.conversions import gaussian_delta
from tests.mechanisms.distribution.cases import ALPHA, gaussian_pairs

SEED = 5


@pytest.fixture(scope="module")
def oracle(oracles):
    told = json.loads((oracles / "distribution-privacy.json").read_text())
    return {one["id"]: one for one in told}


def test_given_numbers(oracle):
    for name in ("0.01", "0.05"):
        case = oracle[f"eta_var_{name}"]
        found = pair_delta(0, 18.31, 0, 18.17, case["inputs"]["lam"])
        assert found == pytest.approx(case["output"], abs=case["tol"])
    for name in ("1e-5", "1e-3", "0.1"):
        case = oracle[f"classical_eps_max_{name}"]
        assert classical_limit(case["inputs"]["delta"]) == pytest.approx(case["output"], abs=1e-8)
    for case in oracle.values():
        if set(case["inputs"]) == {"eps", "delta"}:
            eps, delta, told = *case["inputs"].values(), case["output"]
            assert Target(eps, delta).kappa == pytest.approx(told["mu_star"], rel=1e-9)
            assert gaussian_delta(classical_mu(eps, delta), eps) == pytest.approx(
                told["delta_actual"], rel=1e-8
            )


def test_equal_covariances_are_the_balle_wang_formula():
    covariance = np.array([[2.0, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 3]])
    d = np.array([0.4, -0.7, 1.0])
    mu = math.sqrt(d @ np.linalg.solve(covariance, d))
    assert mahalanobis(d, covariance) == pytest.approx(mu, rel=1e-12)
    assert mahalanobis(d, covariance) >= mu
    assert pair_delta(d, covariance, 0 * d, covariance, 1.0) == pytest.approx(
        gaussian_delta(mu, 1), rel=1e-9
    )
    # the contour agrees as covariances become equal
    near = pair_delta(d, covariance, 0 * d, covariance * (1 + 1e-9), 1.0)
    assert near == pytest.approx(gaussian_delta(mu, 1), rel=1e-6)


@pytest.mark.parametrize(("v1", "v2", "shift"), [(1, 1.3, 1), (1.3, 1, 1), (1, 2, 0), (2, 1, 0.1)])
def test_the_contour_agrees_with_intervals_on_the_line(v1, v2, shift):
    """A second coordinate with one law for both adds nothing, but takes the other way."""
    one, other = np.diag([v1, 1.0]), np.diag([v2, 1.0])
    for epsilon in (0.05, 0.5, 1.5):
        line = pair_delta(0, v1, shift, v2, epsilon)
        plane = pair_delta([0, 0], one, [shift, 0], other, epsilon)
        assert plane == pytest.approx(line, rel=1e-5, abs=1e-9)
        assert plane >= line * (1 - 1e-7)


def test_the_contour_agrees_with_sampling():
    print("seed", SEED)
    random = np.random.default_rng(SEED)
    trials, draws = 6, 40_000
    for case in range(trials):
        size = 2 + case % 4
        roots = random.normal(size=(2, size, size))
        c1 = roots[0] @ roots[0].T + np.eye(size)
        c2 = c1 + (0.2 * roots[1]) @ (0.2 * roots[1]).T * random.choice([1, -0.3])
        d, epsilon = random.normal(size=size) * 0.6, float(random.choice([0.1, 0.5, 1.0]))
        x = random.multivariate_normal(0 * d, c1, size=draws)
        loss = stats.multivariate_normal(0 * d, c1).logpdf(x) - stats.multivariate_normal(
            d, c2
        ).logpdf(x)
        gain = np.maximum(1 - np.exp(epsilon - loss), 0)
        allowed = -stats.norm.ppf(ALPHA / (2 * trials)) * gain.std() / math.sqrt(draws)
        allowed = max(allowed, -math.log(ALPHA / trials) / draws)  # where hardly any was seen
        found = pair_delta(0 * d, c1, d, c2, epsilon)
        assert abs(found - gain.mean()) <= allowed + 1e-9
        if gain.mean() > 0.01:  # negative control: an epsilon that is 20 % off is noticed
            wrong = pair_delta(0 * d, c1, d, c2, 1.2 * epsilon + 0.1)
            assert abs(wrong - gain.mean()) > allowed


def loss_in_the_plane(m1, c1, m2, c2):
    """(a, b, c) of the loss a x^2 + b x + c, standard normal x, for each of two coordinates."""
    root = np.linalg.cholesky(c1)
    half = np.linalg.solve(root, np.linalg.solve(root, c2).T)
    values, vectors = np.linalg.eigh(half)
    shift = vectors.T @ np.linalg.solve(root, m2 - m1)
    c = shift**2 / (2 * values) + np.log(values) / 2
    return (1 - values) / (2 * values), -shift / values, c


def delta_by_grid(law, epsilon):
    """E (1 - e^{eps - L})_+ on a grid: nothing in common with the contour but the loss."""
    x = np.linspace(-9, 9, 801)
    a, b, c = loss_in_the_plane(*law)
    one, two = (a[k] * x * x + b[k] * x + c[k] for k in (0, 1))
    gain = -np.expm1(np.minimum(epsilon - (one[:, None] + two), 0))
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    return float(density @ gain @ density)


def test_covariances_that_differ_by_rounding_or_in_one_direction():
    """The line of integration once missed the saddle point, and delta came out as 0 or 1."""
    print("seed", SEED)
    random, zero = np.random.default_rng(SEED), np.zeros(2)
    for case in range(24):
        root = random.normal(size=(2, 3))
        c1 = root @ root.T + 0.05 * np.eye(2)
        v = random.normal(size=2)
        turned = c1 * (1 + random.integers(-3, 4, size=(2, 2)) * 2.0**-52)
        c2 = [
            (turned + turned.T) / 2,
            c1 + np.outer(v, v) * 10.0 ** random.uniform(-6, 1),
            c1 * (1 + 10.0 ** random.uniform(-14, -9)),
            c1 + np.diag([c1[0, 0] * random.choice([0.01, 0.1, 1]), 0]),
        ][case % 4]
        d = random.normal(size=2) * 10.0 ** random.uniform(-1, 0.5)
        epsilon = float(random.choice([0.01, 0.1, 0.5, 1, 2]))
        for law in ((zero, c1, d, c2), (d, c2, zero, c1)):
            told = delta_by_grid(law, epsilon)
            assert pair_delta(*law, epsilon) == pytest.approx(told, rel=1e-3, abs=1e-5)


def test_covariances_equal_but_for_rounding_are_rounded_towards_more_loss():
    c1, d = np.array([[0.009, 0.00895], [0.00895, 0.02475]]), np.array([0.19, -0.157])
    c2 = c1 * (1 - 2.0**-50)
    equal = gaussian_delta(mahalanobis(d, c1), 1.0)
    for law in ((0 * d, c1, d, c2), (d, c2, 0 * d, c1)):
        found = pair_delta(*law, 1.0)
        assert equal <= found <= equal * (1 + 1e-7)
    line = gaussian_delta(1.0, 0.5)
    assert line <= pair_delta(0, 1.0, 1.0, 1.0 - 2.0**-50, 0.5) <= line * (1 + 1e-7)


def test_an_integral_without_digits_is_refused(monkeypatch):
    """Far from the saddle point the terms cancel: refused, where it was once cut to 0 or 1."""
    c1, d = np.eye(2), np.array([1.0, 0.5])
    c2 = np.diag([1.1, 1.0])
    assert 0 < pair_delta(d, c2, 0 * d, c1, 1.0) < 1

    def far(a, b, c, epsilon, _):
        return 40.0, float(gaussians._log_transform(40.0, a, b, c)) - 40 * epsilon - math.log(1640)

    monkeypatch.setattr(gaussians, "_saddle", far)
    with pytest.raises(GuaranteeError, match="enough digits"):
        pair_delta(0 * d, c1, d, c2, 1.0)


def test_hardly_any_delta_is_bounded():
    near = pair_delta(np.zeros(2), np.diag([1 + 1e-6, 1.0]), np.zeros(2), np.eye(2), 1.0)
    assert 0 <= near < 1e-60
    assert pair_delta([0, 0], np.eye(2), [60, 0], np.diag([1.0, 1.1]), 1.0) == pytest.approx(1)


def test_a_bounded_loss_has_no_delta_beyond_it():
    narrow, wide = np.eye(3), 1.02 * np.eye(3)
    assert pair_delta(np.zeros(3), narrow, np.zeros(3), wide, 0.05) == 0.0
    assert pair_delta(np.zeros(3), narrow, np.zeros(3), wide, 0.001) > 0


def test_a_shared_covariance_is_the_worse_of_both():
    pairs = gaussian_pairs([[0.0], [1.0]], [[[1.0]], [[4.0]]])
    assert shared_distance(pairs.laws, pairs.pairs, np.zeros((1, 1))) == pytest.approx(1)


@pytest.mark.parametrize("epsilon", [7.5, 10])
def test_the_classical_constant_is_refused_where_it_fails(epsilon):
    with pytest.raises(GuaranteeError, match=r"classical constant sqrt\(2 ln\(1.25/delta\)\)"):
        _ = Target(epsilon, 0.001, "classical").kappa
    assert gaussian_delta(classical_mu(epsilon, 0.001), epsilon) > 0.001
    assert Target(7.4, 0.001, "classical").kappa > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 0.1), "not a possible promise"),
        ((1, 1.0), "not a possible promise"),
        ((1, 0.1, "old"), "not known"),
    ],
)
def test_bad_targets(arguments, words):
    with pytest.raises(GuaranteeError, match=words):
        Target(*arguments)
    with pytest.raises(GuaranteeError, match="promises nothing at delta = 0"):
        _ = Target(1).kappa
