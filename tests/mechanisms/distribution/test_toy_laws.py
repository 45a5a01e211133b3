"""Laws that are not Gaussian, enumerated: the released densities are integrated, not trusted."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from congenial.errors import GuaranteeError, StructureError
from congenial.mechanisms.distribution.choose import calibrate_distribution
from congenial.mechanisms.distribution.transported_noise import bounded_noise, wasserstein_noise
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.privacy.tradeoff import Pure
from tests.mechanisms.distribution.cases import discrete_pairs, example, gaussian_pairs


def released(law, noise: VectorNoise, points):
    """Density of law plus Laplace noise in every statistic."""
    scale = noise.scales
    apart = np.abs(points[:, None, :] - law.points[None]) / scale
    kernel = np.exp(-apart.sum(axis=2)) / np.prod(2 * scale)
    return kernel @ law.probabilities


def hockey_stick(pairs, noise: VectorNoise, epsilon: float) -> tuple[float, float]:
    """Largest log ratio and largest delta(epsilon) over both orders, on a grid of outputs."""
    reach = 12 * float(noise.scales.max())
    step = float(noise.scales.max()) / (400 if pairs.dimension == 1 else 20)
    axes = []
    for k in range(pairs.dimension):
        every = np.concatenate([law.points[:, k] for law in pairs.laws])
        axes.append(np.arange(every.min() - reach, every.max() + reach, step))
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    worst = delta = 0.0
    for i, j in pairs.pairs:
        p, q = (released(pairs.laws[k], noise, points) for k in (i, j))
        worst = max(worst, float(np.abs(np.log(p) - np.log(q)).max()))
        for a, b in ((p, q), (q, p)):
            gain = np.maximum(a - math.exp(epsilon) * b, 0).sum() * step**pairs.dimension
            delta = max(delta, float(gain))
    return worst, delta


LINE = discrete_pairs(([1, 2, 3, 100], [0.6, 0.2, 0, 0.2]), ([1, 2, 3, 100], [0.4, 0.3, 0.2, 0.1]))
SKEWED = discrete_pairs(
    ([0, 1, 2, 4, 9], [0.5, 0.2, 0.2, 0.06, 0.04]), ([0, 1, 2, 4, 9], [0.3, 0.3, 0.25, 0.1, 0.05])
)
PLANE = discrete_pairs(
    ([[0, 0], [2, 1], [1, 3]], ["1/2", "1/4", "1/4"]),
    ([[0, 1], [2, 1], [2, 3], [1, 0]], ["1/4", "1/4", "1/4", "1/4"]),
)


def test_the_paper_s_figure_1():
    assert wasserstein_noise(LINE, 1.0).scales[0] == pytest.approx(97, rel=1e-9)
    assert wasserstein_noise(LINE, 1.0, 0.1).scales[0] == pytest.approx(1, rel=1e-9)
    assert wasserstein_noise(LINE, 1.0, 0.3).rank == 0


@pytest.mark.parametrize("pairs", [SKEWED, PLANE])
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_pure_wasserstein_noise(pairs, epsilon):
    noise = wasserstein_noise(pairs, epsilon)
    worst, delta = hockey_stick(pairs, noise, epsilon)
    assert worst <= epsilon + 1e-9
    assert delta <= 1e-12


@pytest.mark.parametrize("pairs", [LINE, SKEWED, PLANE])
@pytest.mark.parametrize("delta", [0.05, 0.1])
def test_approximate_and_bounded_wasserstein_noise(pairs, delta):
    for noise in (wasserstein_noise(pairs, 1.0, delta), bounded_noise(pairs, 1.0, delta)):
        if noise.rank:
            assert hockey_stick(pairs, noise, 1.0)[1] <= delta


def test_negative_control_less_noise_breaks_the_promise():
    apart = discrete_pairs(([0, 1], [0.5, 0.5]), ([3, 4], [0.5, 0.5]))
    full = wasserstein_noise(apart, 1.0)
    assert hockey_stick(apart, full, 1.0)[0] == pytest.approx(1, abs=1e-9)
    less = VectorNoise.laplace(np.eye(1), full.scales * 0.8)
    assert hockey_stick(apart, less, 1.0)[0] > 1.2
    tight = discrete_pairs(([0, 5], [0.9, 0.1]), ([3, 5], [0.9, 0.1]))
    enough = wasserstein_noise(tight, 1.0, 0.05)
    assert hockey_stick(tight, enough, 1.0)[1] <= 0.05
    less = VectorNoise.laplace(np.eye(1), enough.scales * 0.6)
    assert hockey_stick(tight, less, 1.0)[1] > 0.05


def test_gaussian_laws_against_the_oracle(oracles):
    told = json.loads((oracles / "distribution-privacy.json").read_text())
    for case in (one for one in told if one["id"].startswith("gauss_shift")):
        pairs = gaussian_pairs([[0.0], [1.0]], [[[1.0]]] * 2)
        found = wasserstein_noise(pairs, 1.0, case["inputs"]["delta"]).scales[0]
        assert found == pytest.approx(case["output"], rel=1e-9)


def test_gaussian_laws_by_their_coupling():
    """In the plane the coupling runs along d."""
    pairs = gaussian_pairs([[0, 0], [3.0, 3.0]], [[[1, 1], [1, 3]]] * 2)
    m = math.sqrt(np.array([3, 3]) @ np.linalg.solve([[1, 1], [1, 3]], [3, 3]))
    from scipy.stats import norm

    expected = 6 * (1 - 2 * norm.ppf(0.505) / m)
    assert wasserstein_noise(pairs, 1.0, 0.01).scales[0] == pytest.approx(expected, rel=1e-9)


def test_translated_laws_that_are_not_gaussian():
    base = [[0, 0], [1, 3], [4, 1]]
    moved = [[x + 2, y + 1] for x, y in base]
    pairs = discrete_pairs((base, ["1/2", "1/4", "1/4"]), (moved, ["1/2", "1/4", "1/4"]))
    choice = calibrate_distribution(pairs, 1)
    assert choice.mechanism.name == "directional_laplace"
    assert choice.mechanism.noise.scales[0] == pytest.approx(math.sqrt(5), rel=1e-9)
    spread = next(one.mechanism for one in choice.candidates if one.name == "expected_laplace")
    assert hockey_stick(pairs, spread.noise, 1.0)[0] <= 1 + 1e-9
    # along the direction every line carries the same translated pair: ratio e^{|d| / scale}
    line = choice.mechanism.noise.directions[:, 0]
    off = np.array(base) - np.outer(np.array(base) @ line, line)
    moved_off = np.array(moved) - np.outer(np.array(moved) @ line, line)
    assert np.allclose(off, moved_off)


def test_two_releases_that_hide_each_alone_reveal_together():
    """B = A against B = -A: each marginal is one law, so nothing is to hide, and both tell all."""
    alone = [-1, 1], [0.5, 0.5]
    with pytest.raises(StructureError, match="gap is 0"):
        discrete_pairs(alone, alone)
    stacked = discrete_pairs(([[1, 1], [-1, -1]], [0.5, 0.5]), ([[1, -1], [-1, 1]], [0.5, 0.5]))
    noise = wasserstein_noise(stacked, 1.0)
    assert noise.scales[0] == pytest.approx(2, rel=1e-9)
    assert hockey_stick(stacked, noise, 1.0)[0] <= 1 + 1e-9


def test_promises_of_two_releases_are_not_added():
    made = calibrate_distribution(SKEWED, 1).mechanism
    assert made.guarantee.tradeoff == Pure(1)
    with pytest.raises(GuaranteeError, match="be added up"):
        made.guarantee.compose(made.guarantee)


def test_unequal_gaussians_have_no_finite_distance():
    pairs = gaussian_pairs([[0.0], [1.0]], [[[1.0]], [[2.0]]])
    with pytest.raises(StructureError, match="no finite distance"):
        wasserstein_noise(pairs, 1.0)
    noise = bounded_noise(pairs, 1.0, 0.01)
    assert noise.scales[0] > 1 + 2 * 2.8  # Delta_E + 2 c, c the wider law's 0.9975 quantile
    assert bounded_noise(example(), 1.0, 0.01).rank == 2
