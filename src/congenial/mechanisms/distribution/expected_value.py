"""Expected value mechanisms: noise scaled to the distance between the means of two laws.

Laplace and Gaussian noise in every statistic (Theorems 4.1, 4.2), along the directions in which
means differ (Theorem 4.3), and with the laws' own spread counted (Theorem 4.5, Algorithm 1, Theorem
A.1). distribution-privacy, with errata: sensitivities along several directions are l1 norms in the
rotated basis; eigenvalues, not their squares; a closed form for Algorithm 1; mu* instead of the
classical constant. Here `kappa` is the largest Mahalanobis distance allowed.
"""

from __future__ import annotations

import numpy as np

from congenial.data.arrays import Floats
from congenial.errors import StructureError
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs

UP = 1 + 2.0**-40  # norms and quotients of a few terms, rounded towards more noise
_PARALLEL = 1e-12  # singular values below this share of the largest are rounding


def laplace_noise(pairs: DistributionPairs, epsilon: float) -> VectorNoise:
    """Lap(Delta_1 / epsilon) in every statistic, Delta_1 the largest l1 distance of means."""
    delta_1 = float(np.abs(pairs.differences).sum(axis=1).max())
    return VectorNoise.laplace(np.eye(pairs.dimension), _positive(delta_1) * UP / epsilon)


def gaussian_noise(pairs: DistributionPairs, kappa: float) -> VectorNoise:
    """N(0, (Delta_2 / kappa)^2 I), Delta_2 the largest l2 distance of means."""
    sigma = _positive(float(np.linalg.norm(pairs.differences, axis=1).max())) * UP / kappa
    return VectorNoise.gaussian(sigma**2 * np.eye(pairs.dimension))


def directional_laplace_noise(pairs: DistributionPairs, epsilon: float) -> VectorNoise:
    """Laplace noise along the directions V in which means differ: max ||V' d||_1 / epsilon.

    One direction: the l2 distance (Theorem 4.3). Several: the paper's l2 distance in each would
    cost sqrt(number of directions) epsilon.
    """
    basis = directions(pairs)
    reach = float(np.abs(pairs.differences @ basis).sum(axis=1).max())
    return VectorNoise.laplace(basis, reach * UP / epsilon)


def directional_gaussian_noise(pairs: DistributionPairs, kappa: float) -> VectorNoise:
    """Gaussian noise of deviation Delta_2 / kappa along the directions in which means differ."""
    basis = directions(pairs)
    sigma = float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa
    return VectorNoise("gaussian", basis, np.full(basis.shape[1], sigma), np.zeros(len(basis)))


def eigenvector_noise(pairs: DistributionPairs, kappa: float) -> VectorNoise:
    """Noise along the eigenvectors of the covariance, up to (Delta_2 / kappa)^2 in each.

    S = sum of (needed - lambda_k)_+ v_k v_k' makes Sigma + S >= needed I (Corollary A.2). Where
    laws have different eigenvectors, those of the mean covariance are used and what is still
    missing for some law is added in every direction.
    """
    covariances = [law.covariance for law in pairs.laws]
    needed = (float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa) ** 2
    _, vectors = np.linalg.eigh(np.mean(covariances, axis=0))
    own = np.min([np.diag(vectors.T @ covariance @ vectors) for covariance in covariances], axis=0)
    variances = np.maximum(0.0, needed - own)
    added = (vectors * variances) @ vectors.T
    least = min(float(np.linalg.eigvalsh(covariance + added)[0]) for covariance in covariances)
    rounding = 2.0**-40 * max(
        needed, *(float(np.linalg.norm(covariance)) for covariance in covariances)
    )
    if least < needed and (variances.any() or needed - least > rounding):
        variances = variances + (needed - least) + rounding
    return VectorNoise.gaussian((vectors * variances) @ vectors.T)


def uncertain_direction_noise(pairs: DistributionPairs, kappa: float) -> VectorNoise:
    """Gaussian noise along the one direction v in which means differ, the laws' spread counted.

    sigma^2 = max over pairs of (alpha / kappa)^2 - 1 / (v' Sigma^-1 v), not below 0: the closed
    form of line 7 of Algorithm 1 (det(Sigma + (sigma^2 - (alpha/kappa)^2) v v') = 0).
    """
    basis = directions(pairs)
    if basis.shape[1] != 1:
        raise StructureError(
            "the means of the pairs differ along several directions.",
            remedy="Use the optimum, which covers that case.",
        )
    v = basis[:, 0]
    variance = 0.0
    for (i, j), d in zip(pairs.pairs, pairs.differences, strict=True):
        for law in (pairs.laws[i], pairs.laws[j]):
            own = 1 / float(v @ np.linalg.solve(law.covariance, v))
            needed = (float(d @ v) * UP / kappa) ** 2
            variance = max(variance, needed - own / UP)
    if variance <= 0:
        return VectorNoise.none(pairs.dimension)
    return VectorNoise("gaussian", basis, np.sqrt([variance]), np.zeros(len(basis)))


def directions(pairs: DistributionPairs) -> Floats:
    """Orthonormal directions that span the differences of means, as columns."""
    _, values, rows = np.linalg.svd(pairs.differences, full_matrices=False)
    _positive(float(values[0]))
    return np.ascontiguousarray(rows[values > _PARALLEL * values[0]].T)


def _positive(distance: float) -> float:
    if distance <= 0:
        raise StructureError(
            "both distributions of every pair have the same mean, so an expected value mechanism "
            "would add no noise.",
            remedy="Use a Wasserstein mechanism, or the optimum with fitted covariances.",
        )
    return distance
