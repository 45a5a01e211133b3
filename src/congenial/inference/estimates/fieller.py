"""Fieller's method with any law of the errors: which ratios r are compatible with the estimates?

If r is the true ratio A/B, then a - r b has the error e_A - r e_B, whose law is public. The
confidence set { r : |a - r b| <= quantile of |e_A - r e_B| } covers the truth at the level of the
quantile, however small the denominator is. It is unbounded where b is within the noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.inference.estimates.interval_cover import IntervalCover

STEPS = 12  # points looked at between the estimate and a point outside
HALVINGS = 12
DOUBLINGS = 60


def fieller(
    estimates: tuple[float, float], errors: tuple[Any, Any], cover: IntervalCover
) -> tuple[float, float]:
    """The ends of the set, (-inf, inf) where it is unbounded."""
    a, b = estimates
    size = float(cover.reach(np.abs(errors[1])[:, None])[0])
    if abs(b) <= size:
        return -np.inf, np.inf

    def inside(ratios: Any) -> Any:
        """Which ratios belong to the set."""
        sizes = np.abs(errors[0][:, None] - np.multiply.outer(errors[1], ratios))
        return cover.reaches(sizes, np.abs(a - ratios * b))

    start = a / b
    step = float(cover.reach(np.abs(errors[0] - start * errors[1])[:, None])[0]) / (abs(b) - size)
    if step == 0:
        return start, start
    return _end(inside, start, -step), _end(inside, start, step)


def _end(inside: Any, start: float, step: float) -> float:
    """The far end of the set on one side, rounded outwards."""
    for _ in range(DOUBLINGS):
        if not inside(np.array([start + step]))[0]:
            break
        step *= 2
    else:
        return float(np.copysign(np.inf, step))
    points = start + step * np.arange(STEPS + 1) / STEPS
    last = int(np.flatnonzero(inside(points)[:STEPS]).max(initial=0))
    near, far = float(points[last]), float(points[last + 1])
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        near, far = (middle, far) if inside(np.array([middle]))[0] else (near, middle)
    return far
