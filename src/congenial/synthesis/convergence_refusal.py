"""Whether chains have converged: split R-hat and effective sample size, and the refusal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from congenial.errors import GuaranteeError
from congenial.synthesis.record_model import Floats


def split_r_hat(chains: Floats) -> Floats:
    """Split R-hat of every parameter for draws (chains, draws, parameters); 1 is converged.

    sqrt of (n-1)/n + B / (n W), chains cut in halves (Gelman et al., Bayesian Data Analysis, 11.4).
    A parameter that never moves has R-hat 1 if all halves agree, infinity otherwise.
    """
    half = chains.shape[1] // 2
    parts = np.concatenate([chains[:, :half], chains[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(within > 0, between / within, np.where(between > 0, np.inf, 0.0))
    return np.asarray(np.sqrt((half - 1) / half + ratio))


def effective_draws(chains: Floats) -> Floats:
    """Effective number of independent draws of every parameter, (chains, draws, parameters).

    Autocorrelations are averaged over chains and summed in pairs while the pairs are positive
    (Geyer's initial monotone sequence).
    """
    m, n, _ = chains.shape
    centred = chains - chains.mean(axis=1, keepdims=True)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=1)[:, :n].mean(axis=0) / n
    between = chains.mean(axis=1).var(axis=0, ddof=1) if m > 1 else np.zeros(chains.shape[2])
    total = covariance[0] + between
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = np.where(total > 0, 1 - (covariance[0] - covariance) / total, 0.0)
    rho[0] = 1.0
    pairs = rho[0 : n - n % 2 : 2] + rho[1 : n - n % 2 + 1 : 2]
    pairs = np.minimum.accumulate(np.maximum(pairs, 0.0), axis=0)
    time = np.maximum(2 * pairs.sum(axis=0) - 1, 1 / np.log10(max(10, m * n)))
    return np.asarray(m * n / time)


def refuse_unconverged(
    chains: Floats, names: Sequence[str] = (), r_hat: float = 1.05, effective: float = 100
) -> None:
    """Raise GuaranteeError with the worst parameter's diagnostics unless the chains converged."""
    if chains.ndim != 3 or chains.shape[1] < 4 or not np.isfinite(chains).all():
        raise GuaranteeError(
            "the chains are too short or hold numbers that are not finite.",
            remedy="Run at least two chains of some hundred draws.",
        )
    rates, sizes = split_r_hat(chains), effective_draws(chains)
    worst = int(np.argmax(np.where(rates > r_hat, rates, 1.0) + (sizes < effective)))
    if rates[worst] > r_hat or sizes[worst] < effective:
        name = names[worst] if names else f"parameter {worst}"
        raise GuaranteeError(
            f"the chain did not converge: {name} has R-hat {rates[worst]:.3f} (at most {r_hat}) "
            f"and {sizes[worst]:.0f} effective draws (at least {effective:.0f}).",
            remedy="Run longer chains, or simplify the model.",
        )
