"""Has a chain converged, and how many independent draws is it worth?

Rank-normalised split R-hat, bulk effective sample size and Monte Carlo standard error, after
Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), Rank-normalization, folding, and
localization. Arrays are (chains, draws, parameters) throughout.
"""

from __future__ import annotations

import numpy as np

from congenial.data.arrays import Floats


def r_hat(draws: Floats) -> Floats:
    """The larger of the R-hats for location (ranks) and for spread (folded ranks); 1 is perfect."""
    folded = np.abs(draws - np.median(draws, axis=(0, 1)))
    return np.maximum(_r_hat(normal_scores(_split(draws))), _r_hat(normal_scores(_split(folded))))


def effective(draws: Floats) -> Floats:
    """Bulk effective sample size: how many independent draws the ranks are worth."""
    return effective_draws(normal_scores(_split(draws)))


def standard_error(draws: Floats) -> Floats:
    """Monte Carlo standard error of the mean: sd / sqrt(effective sample size of the mean)."""
    return np.asarray(draws.std(axis=(0, 1), ddof=1) / np.sqrt(effective_draws(_split(draws))))


def split_r_hat(draws: Floats) -> Floats:
    """Split R-hat of the draws as they are: sqrt of (n-1)/n + B / (n W), chains cut in halves.

    A parameter that never moves has R-hat 1 if all halves agree, infinity otherwise.
    """
    return _r_hat(_split(draws))


def normal_scores(draws: Floats) -> Floats:
    """Normal quantiles of the ranks among the draws of all chains; ties share their mean rank."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    chains, n, k = draws.shape
    ranks = rankdata(draws.reshape(-1, k), axis=0)
    return np.asarray(ndtri((ranks - 0.375) / (chains * n + 0.25)).reshape(draws.shape))


def effective_draws(draws: Floats) -> Floats:
    """How many independent draws the mean over these chains, uncut, is worth.

    chains * n / (1 + 2 sum of correlations), pairs summed while positive and not growing (Geyer's
    initial monotone sequence). A parameter that never moves counts every draw.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    chains, n, k = draws.shape
    size = next_fast_len(2 * n, real=True)
    centred = draws - draws.mean(axis=1, keepdims=True)
    power = np.abs(rfft(centred, size, axis=1)) ** 2
    covariance = irfft(power, size, axis=1)[:, :n] / n
    within = covariance[:, 0].mean(axis=0) * n / (n - 1)
    between = draws.mean(axis=1).var(axis=0, ddof=1) if chains > 1 else np.zeros(k)
    total = within * (n - 1) / n + between
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - covariance.mean(axis=0) * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: n // 2 * 2].reshape(-1, 2, k).sum(axis=1)
    pairs = np.minimum.accumulate(np.where(np.cumprod(pairs > 0, axis=0), pairs, 0.0), axis=0)
    tau = np.maximum(-1 + 2 * pairs.sum(axis=0), 1 / np.log10(max(chains * n, 10)))
    return np.where(total > 0, chains * n / tau, float(chains * n))


def _split(draws: Floats) -> Floats:
    """Each chain as two, so that a drift shows as disagreement."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def _r_hat(draws: Floats) -> Floats:
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    between = draws.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((n - 1) / n + between / within)
    return np.where(within > 0, ratio, np.where(between > 0, np.inf, 1.0))
