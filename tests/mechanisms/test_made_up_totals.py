"""Totals that are made up for a rehearsal have the margins of their ties."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.figures.blocks import margins
from congenial.figures.ties import Pattern
from congenial.mechanisms.projection.projection import totals_with_margins

SEED = 20261117


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 3), (2, 3, 2)])
def test_whole_nonnegative_and_of_these_margins(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(SEED)
    features = np.array(list(np.ndindex(shape)))
    pattern = Pattern(margins(features), features)
    counts = rng.poisson(rng.gamma(0.3, 20, size=(50, len(features))))
    values = counts @ pattern.equations.T
    made = totals_with_margins(pattern, values)
    assert made.min() >= 0
    assert np.array_equal(made @ pattern.equations.T, values)
    assert not np.array_equal(made, counts)  # made up, not found out
