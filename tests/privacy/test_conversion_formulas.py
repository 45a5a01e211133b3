"""Conversions against the definition they come from, not against each other."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from scipy.stats import norm

from congenial.privacy.conversions import pure_to_gdp


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 3.0])
def test_a_pure_promise_as_a_gaussian_one(eps: float) -> None:
    """G_mu lies below f_{eps,0} everywhere, and touches it at the corner: no smaller mu would do.

    Written with type II errors: G_mu(a) = Phi(Phi^{-1}(1 - a) - mu).
    """
    mu = pure_to_gdp(eps)
    alpha = np.linspace(1e-6, 1 - 1e-6, 20_001)
    promised = np.maximum.reduce(
        [np.zeros_like(alpha), 1 - exp(eps) * alpha, exp(-eps) * (1 - alpha)]
    )
    assert (norm.cdf(norm.ppf(1 - alpha) - mu) <= promised + 1e-12).all()
    corner = 1 / (1 + exp(eps))
    assert norm.cdf(norm.ppf(1 - corner) - mu) == pytest.approx(corner, rel=1e-9)
