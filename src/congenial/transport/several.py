"""Several dimensions: laws of vectors, or of whole databases under the Hamming distance."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from congenial.errors import GuaranteeError, StructureError
from congenial.pairs.scenarios.statistic_laws import (
    LARGEST_INT64,
    StatedDiscrete,
    StatedLogDiscrete,
)
from congenial.transport.certificates import Certificate, Coupling, Norm, Side
from congenial.transport.distance import Distance, empirical
from congenial.transport.line import least
from congenial.transport.line_cells import UNIT, LineCells, OneDimensional, whole_masses
from congenial.transport.threshold import least_distance, projections


def in_several_dimensions(
    a: OneDimensional, b: OneDimensional, delta: Fraction, norm: Norm
) -> Distance:
    """The least W for two discrete laws of vectors, by a threshold on distances and a flow."""
    if not (
        isinstance(a, StatedDiscrete | StatedLogDiscrete)
        and isinstance(b, StatedDiscrete | StatedLogDiscrete)
    ):
        raise StructureError(
            "distances in several dimensions work only for discrete distributions.",
            remedy="Give a pmf or a sample.",
        )
    if not delta and not (isinstance(a, StatedDiscrete) and isinstance(b, StatedDiscrete)):
        raise GuaranteeError(
            "a pmf was rounded (its masses do not add up to one exactly), so W_inf cannot be "
            "certified in several dimensions.",
            remedy="Give the masses as fractions or integers, or ask for (W, delta)-closeness.",
        )
    left, right, total = _sides(a, b)
    need = math.ceil((1 - delta) * total)
    start = _lower_bound(left, right, total, need, norm)
    value, found = least_distance(left, right, need, norm, start)

    def prove() -> Certificate:
        used = found.sent > 0
        pairs = np.stack([found.edges.i[used], found.edges.j[used]], axis=1)
        return Coupling(left, right, pairs, found.sent[used], total, value, delta, norm)

    exact = isinstance(a, StatedDiscrete) and isinstance(b, StatedDiscrete)
    return Distance(value, value if exact else start, delta, norm, empirical(a, b), prove)


def _sides(
    a: StatedDiscrete | StatedLogDiscrete, b: StatedDiscrete | StatedLogDiscrete
) -> tuple[Side, Side, int]:
    """Both laws with masses out of one total; rounded masses are rounded down."""
    totals = [law.total if isinstance(law, StatedDiscrete) else UNIT for law in (a, b)]
    common = math.lcm(*totals)
    sides = []
    for law, total in zip((a, b), totals, strict=True):
        masses = law.masses if isinstance(law, StatedDiscrete) else whole_masses(law, "down")
        kind = np.int64 if common < LARGEST_INT64 else object
        points = law.points if law.points.ndim == 2 else law.points[:, None]
        sides.append(Side(points, points, masses.astype(kind) * (common // total)))
    return sides[0], sides[1], common


def _lower_bound(left: Side, right: Side, total: int, need: int, norm: Norm) -> float:
    """No coupling of vectors moves less than it moves their projections."""
    bound = 0.0
    lines = zip(projections(left.low, norm), projections(right.low, norm), strict=True)
    for x, y in lines:
        sides = []
        for line, side in ((x, left), (y, right)):
            order = np.argsort(line, kind="stable")
            sides.append(LineCells(line[order], line[order], side.masses[order], total))
        bound = max(bound, least(sides[0], sides[1], need))
    return bound * (1 - 1e-12)  # sums of coordinates were rounded
