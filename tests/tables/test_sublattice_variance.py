"""The steps of the proof in `noise_variance` about noise on a sublattice, by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

FIGURES = {  # rows that noise keeps at 0
    "one sum of three": [[1, 1, 1]],
    "both margins of 2 x 2": [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]],
    "two sums that overlap": [[1, 1, 1, 0], [0, 1, 1, 1]],
    "weights": [[1, 2, -3, 1]],
    "one cell apart": [[1, 1, 0, 0]],
}
WIDE = 9
VARIANCES = (0.15, 0.4, 1.0, 2.5)


def points(size: int) -> np.ndarray:
    return np.array(list(product(range(-WIDE, WIDE + 1), repeat=size)))


def weights(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Discrete Gaussian probabilities of whole points, variance t_i of cell i before rounding."""
    mass = np.exp(-(x**2 / (2 * t)).sum(axis=1))
    return np.asarray(mass / mass.sum())


def inside(x: np.ndarray, rows: list[list[int]], shift: int = 0) -> np.ndarray:
    return np.asarray(np.all(x @ np.array(rows).T == shift, axis=1))


def settings(size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(size)
    return [rng.choice(VARIANCES, size) for _ in range(6)]


@pytest.mark.parametrize("rows", FIGURES.values(), ids=FIGURES)
def test_chances_of_a_lattice_fall_in_every_variance(rows) -> None:
    x = points(len(rows[0]))
    for t in settings(len(rows[0])):
        before = weights(x, t)[inside(x, rows)].sum()
        for i in range(len(t)):
            wider = t.copy()
            wider[i] *= 1.3
            assert weights(x, wider)[inside(x, rows)].sum() <= before + 1e-12


@pytest.mark.parametrize("rows", FIGURES.values(), ids=FIGURES)
def test_every_cell_varies_less_on_the_lattice(rows) -> None:
    x = points(len(rows[0]))
    for t in settings(len(rows[0])):
        mass, here = weights(x, t), inside(x, rows)
        given = mass[here] / mass[here].sum()
        assert np.all(given @ x[here] ** 2 <= mass @ x**2 + 1e-12)


def test_planted_a_shifted_lattice_breaks_both() -> None:
    """Noise whose sum is 4 is likelier if it is wider, and varies more than noise of any sum."""
    rows, x, t = [[1, 1, 1]], points(3), np.full(3, 0.4)
    there = inside(x, rows, shift=4)
    mass = weights(x, t)
    assert weights(x, 1.3 * t)[there].sum() > mass[there].sum()
    given = mass[there] / mass[there].sum()
    assert np.all(given @ x[there] ** 2 > mass @ x**2)


@pytest.mark.parametrize("t", [0.05, 0.3, 1.0, 6.0])
def test_theta_is_the_product_of_falling_factors(t: float) -> None:
    k, w = np.arange(-60, 61), np.linspace(0, 0.5, 7)[:, None]

    def series(t: float) -> np.ndarray:
        mass = np.exp(-(k**2) / (2 * t))
        return np.asarray((mass * np.cos(2 * np.pi * k * w)).sum(axis=1) / mass.sum())

    def factors(t: float) -> np.ndarray:
        a = np.exp(-(2 * np.arange(1, 400) - 1) / (2 * t))
        return np.asarray(1 - 2 * (1 - np.cos(2 * np.pi * w)) * a / (1 + a) ** 2)

    assert factors(t).prod(axis=1) == pytest.approx(series(t), rel=1e-9, abs=1e-13)
    assert np.all(factors(1.1 * t) <= factors(t))
    assert np.all(factors(t) >= 0)
