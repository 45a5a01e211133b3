"""Shared by the sampling tests: the named false-alarm rate and a chi-square test with power."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2

ALPHA = 1e-6


def p_value(counts: npt.ArrayLike, probs: npt.ArrayLike) -> float:
    """Chi-square p-value; cells with a small expectation and all mass not listed form one cell."""
    seen, law = np.asarray(counts, dtype=float), np.asarray(probs, dtype=float)
    n = seen.sum()
    big = law * n >= 8
    observed = np.append(seen[big], n - seen[big].sum())
    expected = np.append(law[big] * n, n * max(0.0, 1 - law[big].sum()))
    if expected[-1] < 8:  # too little left over for a cell of its own
        observed[-2] += observed[-1]
        expected[-2] += expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.fixture
def fits() -> Callable[[npt.ArrayLike, npt.ArrayLike], bool]:
    """fits(counts, probs): the chi-square test does not reject at ALPHA."""

    def check(counts: npt.ArrayLike, probs: npt.ArrayLike) -> bool:
        p = p_value(counts, probs)
        print(f"p = {p:.3g} (alpha = {ALPHA})")
        return p >= ALPHA

    return check


@pytest.fixture(autouse=True)
def _say_the_seed(request: pytest.FixtureRequest) -> None:
    print(f"seed = {request.module.SEED}")
