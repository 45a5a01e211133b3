"""Mardia's statistics: against sums over pairs, with p-values that are uniform for normal data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from congenial.mechanisms.distribution.assumptions import _mardia

ALPHA = 1e-6
SEED = 20_261_116


@pytest.mark.parametrize("m", [2, 3, 4])
def test_statistics_and_p_values_are_those_of_the_definition(m):
    """b1 n / 6 has m (m + 1) (m + 2) / 6 degrees of freedom: 4, 10 and 20."""
    values = np.random.default_rng(SEED).gamma(3.0, size=(60, m))
    inverse = np.linalg.inv(np.cov(values.T, bias=True))
    centred = values - values.mean(axis=0)
    b1 = np.mean([(x @ inverse @ y) ** 3 for x in centred for y in centred])
    b2 = np.mean([(x @ inverse @ x) ** 2 for x in centred])
    z = (b2 - m * (m + 2)) / np.sqrt(8 * m * (m + 2) / 60)
    skewness, kurtosis = _mardia(values, "all")
    assert skewness.value == pytest.approx(60 * b1 / 6)
    assert skewness.p == pytest.approx(chi2.sf(10 * b1, {2: 4, 3: 10, 4: 20}[m]))
    assert kurtosis.value == pytest.approx(z)
    assert kurtosis.p == pytest.approx(2 * norm.sf(abs(z)))


def test_p_values_of_skewness_are_uniform_for_normal_data_and_not_for_skewed():
    random = np.random.default_rng(SEED)
    normal = [_mardia(random.normal(size=(250, 3)), "all")[0].p for _ in range(200)]
    skewed = [_mardia(random.gamma(3.0, size=(250, 3)), "all")[0].p for _ in range(200)]
    assert kstest(normal, "uniform").pvalue > ALPHA
    assert kstest(skewed, "uniform").pvalue < ALPHA
