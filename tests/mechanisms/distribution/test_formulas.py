"""Noise that other checks only bound from above, against the formula that was proved."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from congenial.mechanisms.distribution.persons import person_promise, person_requirements
from congenial.mechanisms.distribution.transported_noise import bounded_noise
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.privacy.tradeoff import Gaussian
from tests.mechanisms.distribution.cases import gaussian_pairs

EPSILON, DELTA, MU = 0.7, 0.02, 0.8


def test_the_bounded_mechanism_holds_both_laws() -> None:
    """Lap((Delta_E + 2 c) / epsilon): both laws within c of their means but for delta/2."""
    pairs = gaussian_pairs([[0.0], [3.0]], [[[1.0]], [[4.0]]])
    c = 2.0 * norm.ppf(1 - DELTA / 4)  # the wider law, two tails of delta/4
    noise = bounded_noise(pairs, EPSILON, DELTA)
    assert noise.scales == pytest.approx([(3.0 + 2 * c) / EPSILON], rel=1e-6)


@pytest.mark.parametrize("change", [[0.5], [0.5, 2.0], [1.0, 0.25, 3.0]])
def test_what_is_owed_to_persons_is_what_they_are_promised(change: list[float]) -> None:
    """S = v v' / mu^2 along the corner v is just enough, and no more."""
    for corner, owed in zip(
        _corners(change), person_requirements(change, Gaussian(MU)), strict=True
    ):
        assert owed == pytest.approx(np.outer(corner, corner) / MU**2, rel=1e-6)
    first = person_requirements(change[:1], Gaussian(MU))[0]
    noise = VectorNoise.gaussian(first)
    promised = person_promise(noise, change[:1])
    assert isinstance(promised, Gaussian)
    assert float(promised.mu) == pytest.approx(MU, rel=1e-6)


def _corners(change: list[float]) -> list[np.ndarray]:
    signs = np.array(np.meshgrid(*[[1.0, -1.0]] * (len(change) - 1), indexing="ij"))
    rest = signs.reshape(len(change) - 1, -1).T if len(change) > 1 else np.ones((1, 0))
    return [np.array([1.0, *row]) * change for row in rest]
