"""The least noise: minimum-trace Gaussian covariance that hides every pair.

N(mu_i, Sigma + S) and N(mu_j, Sigma + S) keep a Mahalanobis distance of at most kappa exactly when
Sigma + S >= d d' / kappa^2, d = mu_i - mu_j (Schur complement). So the least noise solves

    minimise tr(W S)   subject to   S >= 0,   S >= M_k = d_k d_k' / kappa_k^2 - Sigma_k,

a semidefinite programme (clarabel); for one M the solution is its positive part. Protecting single
persons by the same noise adds constraints with Sigma = 0. What the solver returns is enlarged until
every constraint holds by a margin above the rounding of the check, so the promise is about the
noise that is drawn, not about the solver's tolerance. The paper stops at Algorithm 1, which is
never better (docs/errata).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.errors import StructureError
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs

_SMALL = 1e-7  # eigenvalues of the solver's answer below this share of the largest are noise
_ULP = 2.0**-52


def requirements(pairs: DistributionPairs, kappa: float) -> list[Floats]:
    """M = d d' / kappa^2 - Sigma for both laws of every pair."""
    distinct: dict[bytes, Floats] = {}
    for (i, j), d in zip(pairs.pairs, pairs.differences, strict=True):
        for law in (pairs.laws[i], pairs.laws[j]):
            matrix = np.outer(d, d) / kappa**2 - law.covariance
            distinct[matrix.tobytes()] = matrix
    return list(distinct.values())


def optimum_noise(
    pairs: DistributionPairs,
    kappa: float,
    weights: Any = None,
    further: Sequence[Floats] = (),
) -> VectorNoise:
    """The least Gaussian noise for all pairs and `further` constraints; none if none is needed."""
    return least_noise([*requirements(pairs, kappa), *further], weights)


def least_noise(matrices: Sequence[Floats], weights: Any = None) -> VectorNoise:
    """Gaussian noise of least tr(W S) with S >= 0 and S >= M for every matrix, by a margin.

    >>> noise = least_noise([np.array([[3.0, 0.0], [0.0, -1.0]])])
    >>> round(float(noise.covariance.trace()), 6), noise.rank
    (3.0, 1)
    """
    size = len(matrices[0])
    root, inverse = _roots(weights, size)
    turned = _undominated([root @ matrix @ root for matrix in matrices])
    if not turned:
        return VectorNoise.none(size)
    if len(turned) == 1:
        values, vectors = np.linalg.eigh(turned[0])
        answer = (vectors * np.maximum(values, 0)) @ vectors.T
    else:
        answer = _programme(turned)
    return _enlarged(inverse @ answer @ inverse, matrices)


def slack(noise: VectorNoise, matrices: Sequence[Floats]) -> float:
    """Least eigenvalue of S - M over all constraints, less what its computation can be wrong by.

    A value >= 0 proves that every constraint holds: the computed eigenvalues of a symmetric matrix
    are those of one within 8 m ulp of it in norm, and forming S - M rounds by less than that.
    """
    covariance = noise.covariance
    least_found = math.inf
    for matrix in matrices:
        size = float(np.linalg.norm(covariance) + np.linalg.norm(matrix))
        least = float(np.linalg.eigvalsh(covariance - matrix)[0])
        least_found = min(least_found, least - 16 * len(covariance) * _ULP * size)
    return least_found


def _roots(weights: Any, size: int) -> tuple[Floats, Floats]:
    """W^{1/2} and its inverse."""
    if weights is None:
        return np.eye(size), np.eye(size)
    matrix = np.asarray(weights, dtype=np.float64)
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    if matrix.shape != (size, size) or not np.allclose(matrix, matrix.T):
        raise StructureError(
            f"the weights are not a symmetric {size} x {size} matrix or {size} numbers.",
            remedy="Give one positive weight per statistic.",
        )
    values, vectors = np.linalg.eigh(matrix)
    if values[0] <= 1e-12 * values[-1]:
        raise StructureError(
            "the weights are not positive definite.",
            remedy="Give every statistic a positive weight.",
        )
    root = (vectors * np.sqrt(values)) @ vectors.T
    return root, (vectors / np.sqrt(values)) @ vectors.T


def _undominated(matrices: Sequence[Floats]) -> list[Floats]:
    """Constraints that ask for something and are not implied by another one."""
    active = [matrix for matrix in matrices if np.linalg.eigvalsh(matrix)[-1] > 0]
    active.sort(key=lambda one: -float(np.linalg.eigvalsh(one)[-1]))
    maximal: list[Floats] = []
    for candidate in active:
        if not any(np.linalg.eigvalsh(other - candidate)[0] >= 0 for other in maximal):
            maximal.append(candidate)
    return maximal


def _programme(matrices: Sequence[Floats]) -> Floats:
    """The semidefinite programme; any answer will do, since it is enlarged to a feasible one."""
    import clarabel
    from scipy import sparse

    size = len(matrices[0])
    unit = max(float(np.linalg.eigvalsh(matrix)[-1]) for matrix in matrices)
    rows, columns = np.triu_indices(size)
    order = np.lexsort((rows, columns))  # the solver stacks the upper triangle by columns
    rows, columns = rows[order], columns[order]
    scale = np.where(rows == columns, 1.0, math.sqrt(2))
    count = len(rows)
    targets = [np.zeros((size, size)), *(matrix / unit for matrix in matrices)]
    bound = -np.concatenate([target[rows, columns] * scale for target in targets])
    blocks = len(targets)
    places = (np.arange(count)[:, None] + count * np.arange(blocks)).ravel()
    constraint = sparse.csc_matrix(
        (np.full(len(places), -1.0), places, blocks * np.arange(count + 1)),
        shape=(blocks * count, count),
    )  # minus the identity, once per block
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((count, count)),
        np.where(rows == columns, 1.0, 0.0),
        constraint,
        bound,
        [clarabel.PSDTriangleConeT(size)] * len(targets),
        settings,
    )
    solution = np.asarray(solver.solve().x)
    answer = np.zeros((size, size))
    if solution.shape != (count,) or not np.isfinite(solution).all():
        solution = bound[:count]  # no answer: start from nothing, the enlargement repairs it
    answer[rows, columns] = answer[columns, rows] = solution / scale
    return answer * unit


def _enlarged(answer: Floats, matrices: Sequence[Floats]) -> VectorNoise:
    """The answer made feasible: small eigenvalues dropped and the rest scaled up, or a shift."""
    values, vectors = np.linalg.eigh((answer + answer.T) / 2)
    positive = np.where(values > _SMALL * values[-1], values, 0.0)
    for excess in (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6):
        noise = VectorNoise.gaussian((vectors * (positive * (1 + excess))) @ vectors.T)
        if slack(noise, matrices) >= 0:
            return noise
    raised = np.maximum(values, 0.0)
    for _ in range(60):
        noise = VectorNoise.gaussian((vectors * raised) @ vectors.T)
        missing = -slack(noise, matrices)
        if missing <= 0:
            return noise
        raised = raised + 2 * missing
    raise StructureError(
        "no noise could be shown to hide every pair.",
        remedy="Rescale the statistics to similar sizes.",
    )
