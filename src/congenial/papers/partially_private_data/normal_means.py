"""Example 1 with several public figures, and the remark on manifolds after Corollary 13."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.errors import GuaranteeError
from congenial.pairs.scenarios import ConditionalNormal
from congenial.papers.item import Study
from congenial.sampling.inversion import Floats

PEOPLE, VARIANCE, DIAMETER = 5, 4, 2
COVARIANCE = ((3, 1, 0), (1, 2, 1), (0, 1, 4))  # of three public figures
WITH_RECORD, WITH_MEAN = (1, 1, 2), (1, Fraction(1, 2), Fraction(2, 5))


def first(figures: int) -> ConditionalNormal:
    """The example given the first so many figures."""
    if not figures:
        zero = Fraction(0)
        return ConditionalNormal(PEOPLE, Fraction(VARIANCE), Fraction(1), zero, zero, Fraction(2))
    return ConditionalNormal.given_several(
        PEOPLE,
        VARIANCE,
        [row[:figures] for row in COVARIANCE[:figures]],
        WITH_RECORD[:figures],
        WITH_MEAN[:figures],
        DIAMETER,
    )


def largest(public_variance: Fraction, with_record: Fraction, steps: int = 400) -> float:
    """The largest Delta_z over covariances of the mean with one figure that a normal law allows."""
    top = math.sqrt(VARIANCE / PEOPLE * public_variance)
    worst = 0.0
    for k in range(-steps, steps + 1):
        b = Fraction(top * k / steps).limit_denominator(10**6)
        try:
            scenario = ConditionalNormal(
                PEOPLE, Fraction(VARIANCE), public_variance, with_record, b, Fraction(DIAMETER)
            )
        except GuaranteeError:
            continue
        worst = max(worst, float(abs(scenario.coefficient) * DIAMETER))
    return worst


def example1(study: Study) -> dict[str, Any]:
    """Delta_z of a mean given none to three figures, and as dependence grows."""
    rows: list[list[Any]] = []
    for figures in range(4):
        exact = abs(first(figures).coefficient) * DIAMETER
        rows.append([f"{figures} public figures", str(exact), float(exact)])
    for a in ("0", "2", "3", "3.3", "3.4", "3.46"):
        value = largest(Fraction(3), Fraction(a), 50 if study.quick else 400)
        rows.append([f"one figure of variance 3, covariance {a} with a record, worst", "", value])
    return {
        "columns": ["public", "Delta_z, exact", "Delta_z"],
        "rows": rows,
        "notes": [
            f"{PEOPLE} normal records of variance {VARIANCE}, {DIAMETER} apart at most; without "
            "figures the mean moves by 2/5. Corrected Eq 16: as printed it gives 2.29 for one "
            "figure, where 14/55 = 0.2545 is right.",
            "worst: over the covariances of the mean with the figure. It grows without bound as "
            "the figure determines a record (covariance sqrt(12) = 3.464): arbitrary dependence "
            "leaves nothing, the paper's 'no free lunch'.",
        ],
    }


# ---- the remark on manifolds ---------------------------------------------------------------------


def _ambient(rng: np.random.Generator, d: int, n: int, scale: float) -> Floats:
    """Noise exp(-||u||_2 / scale) in d dimensions."""
    u = rng.normal(size=(n, d))
    radius = rng.gamma(d, scale, size=n)
    return np.asarray(u * (radius / np.linalg.norm(u, axis=1))[:, None])


def projected_angles(rng: np.random.Generator, d1: int, n: int, scale: float) -> Floats:
    """Angles between a point of the unit sphere in d1 dimensions and its noisy value, projected."""
    truth = np.eye(d1)[0]
    noisy = truth + _ambient(rng, d1, n, scale)
    cosine = noisy[:, 0] / np.linalg.norm(noisy, axis=1)
    return np.asarray(np.arccos(np.clip(cosine, -1, 1)))


def intrinsic_angles(rng: np.random.Generator, d1: int, n: int, scale: float) -> Floats:
    """Angles of noise on the sphere itself: density exp(-angle / scale) sin(angle)^(d1 - 2)."""
    grid = np.linspace(0, math.pi, 200_001)[1:]
    weight = np.exp(-grid / scale) * np.sin(grid) ** (d1 - 2)
    steps = np.cumsum(weight)
    return np.asarray(grid[np.searchsorted(steps, rng.random(n) * steps[-1])])


def manifold(study: Study) -> dict[str, Any]:
    """Squared errors on a circle and a sphere, times n^2, towards the linear case."""
    rng, draws = np.random.default_rng(study.seed), 20_000 if study.quick else 200_000
    rows = []
    for d1, words in ((2, "circle in the plane"), (3, "sphere in space")):
        d2 = d1 - 1
        for n in (1, 10, 100, 1000):
            squares = [
                n**2 * float((angles(rng, d1, draws, 1 / n) ** 2).mean())
                for angles in (projected_angles, intrinsic_angles)
            ]
            rows.append([words, n, squares[0], d2 * (d1 + 1), squares[1], d2 * (d2 + 1)])
    return {
        "columns": [
            "public manifold",
            "n",
            "projected",
            "projected, linear case",
            "intrinsic",
            "intrinsic, linear case",
        ],
        "rows": rows,
        "notes": [
            f"n^2 E (angle to the truth)^2 for l2-Laplace noise of scale 1/n, {draws:,} draws: "
            "drawn around the point and projected on the manifold, or drawn on it.",
            "As n grows the manifold is its tangent space, and the errors are those of Corollary "
            "13: d2 (d1 + 1) and d2 (d2 + 1) in units of the squared scale.",
        ],
        "chart": {
            "kind": "line",
            "x": "n",
            "x_log": True,
            "y": "squared error",
            "by": "noise",
            "facet": "manifold",
            "data": {
                "columns": ["manifold", "noise", "n", "squared error"],
                "rows": [
                    [row[0], name, row[1], row[at]]
                    for name, at in (("projected", 2), ("intrinsic", 4))
                    for row in rows
                ],
            },
            "y_title": "n^2 times squared error",
        },
    }
