"""The rows that a page carries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from congenial.report.page_data import columns

SEED = 7
RNG = np.random.default_rng(SEED)


@pytest.mark.parametrize(
    "values",
    [
        RNG.normal(0, 1000, 20_000),
        RNG.integers(-(10**6), 10**6, 20_000) / 200,  # many halves
        RNG.normal(0, 1e12, 1000),
        np.array([np.nan, np.inf, -np.inf, -0.0, -0.001, 0.005, 0.015, 2.675, 1e307]),
    ],
    ids=["usual", "halves", "large", "odd"],
)
def test_two_decimals_are_those_of_round(values):
    """To the sign of a zero: a page is compared to the letter."""
    listed = columns(np.zeros(len(values), dtype=int), sd=values)["sd"]
    expected = [round(v, 2) if math.isfinite(v) else None for v in values.tolist()]
    assert list(map(str, listed)) == list(map(str, expected))
