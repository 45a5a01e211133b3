"""What projecting a release costs an analyst: Lemma 14 of partially-private-data, measured.

The draw Y (with the public total Z) against its projection Y* onto possible values: for squared
error, E Var(theta | Y, Z) <= E Var(theta | Y*), because Y* is a function of (Y, Z). Both sides are
computed exactly: for one count out of a public total, for one Poisson count, and for a few cells
with a public total. Draws that are projected to one value are merged: its likelihood is their sum.

A finding: cutting one count at the ends of its range loses nothing under double geometric noise,
because exp(-eps |y - x|) is the same function of x for every y beyond the end. Under discrete
Gaussian noise it does, and for several cells it does under both.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln

from congenial.data.arguments import COUNT, SEVERAL, one_of, takes
from congenial.data.arrays import Floats
from congenial.errors import InferenceError
from congenial.inference.models.priors import Beta, Dirichlet, Gamma
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.sums import iid_sum_law

NOISES = one_of(DoubleGeometric, DiscreteGaussian)
LARGEST = 200_000  # draws enumerated


@dataclass(frozen=True)
class ProjectionLoss:
    """Expected posterior variances, and that of the parameter before anything is seen.

    from_draw: given the value as drawn. from_projected: given the value that was projected.
    prior: without either. chance_moved: how often projecting changes the value at all. Since the
    projection is a function of the draw, from_draw <= from_projected <= prior.
    """

    from_draw: float
    from_projected: float
    prior: float
    chance_moved: float  # how often projection changes the value

    @property
    def ratio(self) -> float:
        """How many times larger the variance is after projection; at least 1 by Lemma 14."""
        return self.from_projected / self.from_draw


@takes(InferenceError, total=COUNT, prior=Beta, noise=NOISES)
def share_of_total(
    total: int, prior: Beta, noise: DoubleGeometric | DiscreteGaussian
) -> ProjectionLoss:
    """x ~ Binomial(total, share) with the total public; Y* = Y cut to 0 .. total.

    Exact sums over x and the noise. `from_projected` is never below `from_draw`.
    """
    x = np.arange(total + 1.0)
    log_mass = (
        gammaln(total + 1)
        - gammaln(x + 1)
        - gammaln(total - x + 1)
        + betaln(prior.a + x, prior.b + total - x)
        - betaln(prior.a, prior.b)
    )
    size = prior.a + prior.b + total
    mean = (prior.a + x) / size
    variance = mean * (1 - mean) / (size + 1)
    return _compare(np.exp(log_mass), mean, variance, noise, total)


@takes(InferenceError, prior=Gamma, noise=NOISES)
def poisson_rate(prior: Gamma, noise: DoubleGeometric | DiscreteGaussian) -> ProjectionLoss:
    """x ~ Poisson(rate); Y* = Y cut at 0.

    Exact sums over x and the noise. `from_projected` is never below `from_draw`: projecting
    loses what a negative value says about a small rate.
    """
    most = int((prior.shape + 12 * np.sqrt(prior.shape) + 40) / min(prior.rate, 1.0)) + 40
    x = np.arange(most + 1.0)
    log_mass = (
        gammaln(prior.shape + x)
        - gammaln(prior.shape)
        - gammaln(x + 1)
        + prior.shape * np.log(prior.rate / (1 + prior.rate))
        - x * np.log1p(prior.rate)
    )
    mean = (prior.shape + x) / (1 + prior.rate)
    return _compare(np.exp(log_mass), mean, mean / (1 + prior.rate), noise, None)


def _compare(
    mass: Floats,
    mean: Floats,
    variance: Floats,
    noise: DoubleGeometric | DiscreteGaussian,
    top: int | None,
) -> ProjectionLoss:
    law = iid_sum_law(1, noise)
    x = np.arange(len(mass))
    y = np.arange(law.lo, law.hi + len(mass))
    at = y[:, None] - x[None, :] - law.lo
    inside = (at >= 0) & (at < len(law.probs))
    likelihood = np.where(inside, law.probs[np.where(inside, at, 0)], 0.0)
    cut = np.clip(y, 0, top)
    merged = np.zeros((int(cut.max()) + 1, len(mass)))
    np.add.at(merged, cut, likelihood)
    centre = float(mass @ mean)
    return ProjectionLoss(
        _expected_variance(likelihood, mass, mean, variance),
        _expected_variance(merged, mass, mean, variance),
        float(mass @ (variance + mean**2)) - centre**2,
        float((likelihood[cut != y] @ mass).sum()),
    )


def _expected_variance(likelihood: Floats, mass: Floats, mean: Floats, variance: Floats) -> float:
    """E over y of Var(theta | y) = E E(theta^2 | x) - E (E(theta | y))^2."""
    joint = likelihood * mass
    chance = joint.sum(axis=1)
    first, second = joint @ mean, joint @ (variance + mean**2)
    possible = chance > 0
    return float(np.sum(second[possible] - first[possible] ** 2 / chance[possible]))


@takes(InferenceError, total=COUNT, cells=SEVERAL, prior=Dirichlet, noise=NOISES)
def shares_of_total(
    total: int, cells: int, prior: Dirichlet, noise: DoubleGeometric | DiscreteGaussian
) -> ProjectionLoss:
    """Counts of a few cells given their public total, Dirichlet shares; the first share is judged.

    Y: noise given that it sums to zero. Y*: the nearest whole table of counts >= 0 with the total
    (least squares), ties broken evenly, as `project` does. By enumeration: a handful of cells and
    people.
    """
    tables = _compositions(total, cells)
    half = _half_width(noise, cells)
    grid = np.indices((2 * half + 1,) * (cells - 1)).reshape(cells - 1, -1).T - half
    around = grid + total // cells
    y = np.column_stack([around, total - around.sum(axis=1)])
    log_mass = (gammaln(tables + prior.weight) - gammaln(tables + 1)).sum(axis=1)
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    likelihood = np.exp(noise.log_pmf(y[:, None, :] - tables[None, :, :]).sum(axis=-1))
    likelihood /= likelihood.sum(axis=0)  # the window's share of the conditioned law
    place = {tuple(row): i for i, row in enumerate(tables.tolist())}
    merged = np.zeros((len(tables), len(tables)))
    moved = 0.0
    for row, weight in zip(y, likelihood, strict=True):
        ends = nearest(row, total)
        for end in ends:
            merged[place[end]] += weight / len(ends)
        moved += float(weight @ mass) * (min(row) < 0)
    size = cells * prior.weight + total
    mean = (prior.weight + tables[:, 0]) / size
    variance = mean * (1 - mean) / (size + 1)
    centre = float(mass @ mean)
    return ProjectionLoss(
        _expected_variance(likelihood, mass, mean, variance),
        _expected_variance(merged, mass, mean, variance),
        float(mass @ (variance + mean**2)) - centre**2,
        moved,
    )


def nearest(x: Any, total: int) -> list[tuple[int, ...]]:
    """All whole tables of counts >= 0 with the total that are nearest to x."""
    x = np.asarray(x)
    high = np.sort(x)[::-1]
    surplus = np.cumsum(high) - total
    active = int(np.flatnonzero(high * np.arange(1, len(high) + 1) > surplus)[-1]) + 1
    level = int(surplus[active - 1] // active)
    y = np.maximum(x - level, 0)
    above = np.flatnonzero(y > 0)
    projections = []
    for chosen in combinations(above.tolist(), int(y.sum()) - total):
        projected = y.copy()
        projected[list(chosen)] -= 1
        projections.append(tuple(projected.tolist()))
    return projections


def _compositions(total: int, cells: int) -> Any:
    grid = np.indices((total + 1,) * (cells - 1)).reshape(cells - 1, -1).T
    grid = grid[grid.sum(axis=1) <= total]
    return np.column_stack([grid, total - grid.sum(axis=1)])


def _half_width(noise: DoubleGeometric | DiscreteGaussian, cells: int) -> int:
    """Wide enough that little is left out, few enough to enumerate."""
    wide = int(12 * noise.variance**0.5) + 4
    if (2 * wide + 1) ** (cells - 1) > LARGEST:
        raise InferenceError(
            f"noise of variance {noise.variance:.1f} on {cells} cells is too wide to enumerate.",
            remedy="Use fewer cells or less noise.",
        )
    return wide
