"""R-hat and effective sample size against their published formulas, written out draw by draw.

Those of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021).
"""

from __future__ import annotations

from statistics import NormalDist, fmean, median, variance

import numpy as np
import pytest
from scipy.signal import lfilter

from congenial.sampling.convergence import (
    effective,
    effective_draws,
    normal_scores,
    r_hat,
    split_r_hat,
    standard_error,
)

SEED = 41
Chains = list[list[float]]


def autoregressive(rho: float, chains: int, draws: int, seed: int = SEED) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((chains, draws + 500)) * np.sqrt(1 - rho**2)
    return lfilter([1], [1, -rho], noise, axis=1)[:, 500:, None]


# ---- the formulas, one by one --------------------------------------------------------------------


def halves(chains: Chains) -> Chains:
    half = len(chains[0]) // 2
    return [chain[:half] for chain in chains] + [chain[-half:] for chain in chains]


def ranked(chains: Chains) -> Chains:
    """Normal quantiles of (rank - 3/8) / (S + 1/4), ties at their mean rank."""
    pooled = [x for chain in chains for x in chain]

    def score(x: float) -> float:
        rank = sum(y < x for y in pooled) + (sum(y == x for y in pooled) + 1) / 2
        return NormalDist().inv_cdf((rank - 3 / 8) / (len(pooled) + 1 / 4))

    return [[score(x) for x in chain] for chain in chains]


def folded(chains: Chains) -> Chains:
    middle = median(x for chain in chains for x in chain)
    return [[abs(x - middle) for x in chain] for chain in chains]


def variances(chains: Chains) -> tuple[float, float]:
    """W, and var+ = (n - 1)/n W + B/n."""
    n = len(chains[0])
    within = fmean(variance(chain) for chain in chains)
    between = variance([fmean(chain) for chain in chains]) if len(chains) > 1 else 0.0
    return within, (n - 1) / n * within + between


def r_hat_by_hand(chains: Chains) -> float:
    within, total = variances(halves(chains))
    return (total / within) ** 0.5


def ess_by_hand(chains: Chains) -> float:
    """M N / tau: tau = -1 + 2 sum of P, P = rho(2t) + rho(2t + 1) while positive, never growing."""
    m, n = len(chains), len(chains[0])
    within, total = variances(chains)
    means = [fmean(chain) for chain in chains]

    def rho(lag: int) -> float:
        if lag == 0:
            return 1.0
        moved = [
            sum((x - a) * (y - a) for x, y in zip(chain, chain[lag:], strict=False)) / (n - 1)
            for chain, a in zip(chains, means, strict=True)
        ]
        return 1 - (within - fmean(moved)) / total

    tau, least = -1.0, float("inf")
    for t in range(n // 2):
        pair = rho(2 * t) + rho(2 * t + 1)
        if pair <= 0:
            break
        least = min(least, pair)
        tau += 2 * least
    return m * n / max(tau, 1 / np.log10(m * n))


CASES = {
    "independent": autoregressive(0.0, 4, 60),
    "slow": autoregressive(0.9, 3, 75),  # odd: the middle draw belongs to no half
    "against": autoregressive(-0.6, 2, 50),
    "heavy tails": autoregressive(0.5, 3, 60, seed=2) ** 5,
    "ties": np.round(autoregressive(0.4, 2, 64)),
    "apart": autoregressive(0.3, 3, 40) + np.array([0, 0, 2])[:, None, None],
}


@pytest.mark.parametrize("case", CASES)
def test_published_formulas(case: str) -> None:
    draws = CASES[case]
    chains = draws[..., 0].tolist()
    split = halves(chains)
    rank_r_hat = max(_ranked_r_hat(split), _ranked_r_hat(halves(folded(chains))))
    assert split_r_hat(draws)[0] == pytest.approx(r_hat_by_hand(chains), rel=1e-12)
    assert r_hat(draws)[0] == pytest.approx(rank_r_hat, rel=1e-9)
    assert normal_scores(draws)[..., 0] == pytest.approx(np.array(ranked(chains)), abs=1e-9)
    assert effective_draws(draws)[0] == pytest.approx(ess_by_hand(chains), rel=1e-9)
    assert effective(draws)[0] == pytest.approx(ess_by_hand(ranked(split)), rel=1e-9)
    spread = variance([x for chain in chains for x in chain]) ** 0.5
    assert standard_error(draws)[0] == pytest.approx(spread / ess_by_hand(split) ** 0.5, rel=1e-9)


def _ranked_r_hat(split: Chains) -> float:
    within, total = variances(ranked(split))
    return (total / within) ** 0.5


# ---- known values --------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    """Halves (1, 2), (3, 4) twice: W = 1/2, B/n = 4/3, so R-hat^2 = 1/2 + 8/3 = 19/6."""
    draws = np.array([[1.0, 2, 3, 4], [1, 2, 3, 4]])[..., None]
    assert split_r_hat(draws)[0] == pytest.approx((19 / 6) ** 0.5)
    apart = np.array([[0.0] * 6, [1.0] * 6])[..., None]
    assert split_r_hat(apart)[0] == np.inf
    assert effective_draws(apart)[0] == pytest.approx(12 / 11)  # rho = 1: tau = 12 - 1


def test_values_that_numpyro_gives() -> None:
    """split_gelman_rubin and effective_sample_size of NumPyro 0.22.0, written down.

    It divides the covariance at lag t by n, the paper's s^2 rho_t by n - 1: 0.04 % here.
    """
    draws = autoregressive(0.6, 4, 2000)
    assert split_r_hat(draws)[0] == pytest.approx(1.00171845, abs=1e-8)
    assert effective_draws(draws)[0] == pytest.approx(1975.17347337, rel=5e-4)


@pytest.mark.parametrize(("rho", "deviation"), [(0.0, 0.014), (0.5, 0.024), (0.9, 0.044)])
def test_effective_draws_of_an_autoregression(rho: float, deviation: float) -> None:
    """(1 - rho) / (1 + rho) of the draws, within five relative deviations of the estimate.

    The deviation was measured over 30 seeds; the standard error has half of it.
    """
    draws = autoregressive(rho, 4, 20_000)
    expected = 80_000 * (1 - rho) / (1 + rho)
    for found in (effective(draws)[0], effective_draws(draws)[0]):
        assert found == pytest.approx(expected, rel=5 * deviation)
    assert standard_error(draws)[0] == pytest.approx(expected**-0.5, rel=2.5 * deviation)
    assert r_hat(draws)[0] < 1.01


def test_what_never_moves() -> None:
    same = np.ones((3, 100, 1))
    assert r_hat(same)[0] == split_r_hat(same)[0] == 1
    assert effective(same)[0] == effective_draws(same)[0] == 300


def test_one_chain_is_worth_its_draws() -> None:
    draws = autoregressive(0.5, 1, 400)
    assert effective_draws(draws)[0] == pytest.approx(ess_by_hand(draws[..., 0].tolist()))
