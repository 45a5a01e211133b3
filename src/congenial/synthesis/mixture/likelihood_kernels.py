"""Compiled log likelihood of the mixture, one row per draw and one column per record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from congenial.synthesis.mixture.gibbs_kernels import GibbsRecords, fitted
from congenial.synthesis.mixture.step_kernels import fast

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@fast
def log_likelihood(r: GibbsRecords, log_pi: Any, beta: Any, sigma: Any) -> Any:
    """log sum_k pi_k N(y_i | x_i' beta_k, sigma_k)^{w_i}, shape (draws, records)."""
    S, K, R = beta.shape
    n = len(r.y)
    out = np.empty((S, n))
    across, offset, half = np.empty((R, K)), np.empty(K), np.empty(K)
    mean, term = np.empty(K), np.empty(K)
    for s in range(S):
        for k in range(K):
            for c in range(R):
                across[c, k] = beta[s, k, c]
            offset[k] = math.log(sigma[s, k]) + _HALF_LOG_2PI
            half[k] = 0.5 / (sigma[s, k] * sigma[s, k])
        for i in range(n):
            fitted(r, i, across, mean)
            top = -np.inf
            for k in range(K):
                gap = r.y[i] - mean[k]
                term[k] = log_pi[s, k] - r.w[i] * (offset[k] + half[k] * gap * gap)
                top = max(top, term[k])
            total = 0.0
            for k in range(K):
                total += math.exp(term[k] - top)
            out[s, i] = top + math.log(total)
    return out
