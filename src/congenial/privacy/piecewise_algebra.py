"""Algebra of piecewise-linear trade-off functions, as discrete pairs (P, Q).

A piecewise-linear f is T(P, Q) of a discrete pair: its *pieces* are the masses (p_i, q_i), sorted
by rising slope q/p (most telling outcomes first), and its *points* are their running sums. A first
piece with q = 0 is where f vanishes; a last piece with p = 0 is the mass 1 - f(1). Rational input
is handled exactly; floats keep pieces rather than points, because differences of points near 1
would lose the small masses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from congenial.errors import GuaranteeError
from congenial.privacy.numbers import ULP, FloatArray, Number, above, parameter

Pairs = tuple[tuple[Number, Number], ...]

MAX_PIECES = 20_000
_MAX_PRODUCT = 4_000_000
_MAX_EXACT = 4_000
_EQUAL_SLOPES = 64 * ULP
TOLERANCE = 1e-12


def read(rows: Sequence[tuple[Any, Any]]) -> Pairs:
    """Read pairs of numbers: all rational, or else all floats."""
    pairs = [(parameter(a, "alpha"), parameter(f, "f")) for a, f in rows]
    if all(isinstance(x, Fraction) for pair in pairs for x in pair):
        return tuple(pairs)
    return tuple((float(a), float(f)) for a, f in pairs)


def is_exact(pairs: Pairs) -> bool:
    """Whether every number is rational."""
    return all(isinstance(x, Fraction) for pair in pairs for x in pair)


def as_array(pairs: Pairs) -> FloatArray:
    """The pairs as a float array of shape (n, 2)."""
    return np.array([[float(a), float(b)] for a, b in pairs], dtype=np.float64)


def losses(pieces: FloatArray) -> FloatArray:
    """Privacy loss ln(p/q) of each piece; inf where q = 0, -inf where p = 0."""
    p, q = pieces[:, 0], pieces[:, 1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(p) - np.log(q))


def hockey_stick(mass: FloatArray, loss: FloatArray, eps: float, rounding: float) -> float:
    """sum mass (1 - e^{eps - loss})_+ with loss and mass raised by the rounding allowed for."""
    with np.errstate(invalid="ignore"):
        gap = np.maximum(0.0, loss + rounding * (1 + np.abs(loss) * (loss < np.inf)) - eps)
    gap = np.where(np.isposinf(loss), np.inf, np.where(np.isneginf(loss), 0.0, gap))
    return min(1.0, float(np.sum(mass * -np.expm1(-gap))) * (1 + rounding))


def randomised_response(eps: Number, dlt: Number) -> Pairs:
    """Pieces of f_{eps, dlt}: randomised response that reveals the truth with chance dlt."""
    if eps == 0 and isinstance(dlt, Fraction):
        half = (1 - dlt) / 2
        pieces: Pairs = ((dlt, Fraction(0)), (half, half), (half, half), (Fraction(0), dlt))
        return merge(pieces)
    ratio = math.exp(-above(eps))
    rest, slack = 1 - float(dlt), above(dlt)
    high, low = rest / (1 + ratio), rest * ratio / (1 + ratio)
    return tuple(x for x in ((slack, 0.0), (high, low), (low, high), (0.0, slack)) if any(x))


def merge(pieces: Pairs) -> Pairs:
    """Sort pieces by slope and join those of equal slope (within rounding for floats)."""
    positive = tuple(x for x in pieces if x[0] > 0 or x[1] > 0)
    return _merge_exact(positive) if is_exact(positive) else _merge_float(as_array(positive))


def _merge_exact(pieces: Pairs) -> Pairs:
    sums: dict[Number, tuple[Number, Number]] = {}
    for p, q in pieces:
        share = q / (p + q)  # rises with the slope and stays finite
        old = sums.get(share, (Fraction(0), Fraction(0)))
        sums[share] = (old[0] + p, old[1] + q)
    return tuple(sums[share] for share in sorted(sums))


def _merge_float(pieces: FloatArray) -> Pairs:
    loss = losses(pieces)
    order = np.argsort(-loss, kind="stable")
    pieces, loss = pieces[order], loss[order]
    with np.errstate(invalid="ignore"):
        new = ~(-np.diff(loss) <= _EQUAL_SLOPES)
    infinite = np.isinf(loss)
    new &= ~(infinite[1:] & infinite[:-1] & (loss[1:] == loss[:-1]))
    starts = np.concatenate(([0], np.flatnonzero(new) + 1))
    sums = np.add.reduceat(pieces, starts, axis=0)
    return tuple((float(p), float(q)) for p, q in sums)


def points_of(pieces: Pairs) -> Pairs:
    """Corners of f: running sums of the pieces, from (0, 0) to (1, f(1))."""
    zero: Number = Fraction(0) if is_exact(pieces) else 0.0
    points: list[tuple[Number, Number]] = [(zero, zero)]
    alpha, value = zero, zero
    for p, q in pieces:
        alpha, value = alpha + p, value + q
        # A mass below the rounding of alpha is no corner, and beyond alpha = 1 the last one stands:
        # dropping a steep end lowers f, raising the corner to the end would not.
        if alpha > points[-1][0] and points[-1][0] < 1:
            points.append((alpha, value))
    if isinstance(zero, float):
        points[-1] = (1.0, min(1.0, points[-1][1]))
    return tuple(points)


def pieces_of(points: Pairs) -> Pairs:
    """Masses between the corners, and the mass 1 - f(1) that P never shows."""
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(points)]
    rest = 1 - points[-1][1]
    if rest > 0:
        steps.append((Fraction(0) if is_exact(points) else 0.0, rest))
    return tuple(steps)


def mirrored(pieces: Pairs) -> Pairs:
    """Pieces of T(Q, P)."""
    return tuple((q, p) for p, q in reversed(pieces))


def mirror_upper(pieces: Pairs) -> Pairs:
    """Rebuild the steep half of a symmetric f from the flat half, whose small numbers are right."""
    lower: list[tuple[Number, Number]] = []
    room: Number = Fraction(1) if is_exact(pieces) else 1.0  # 1 - alpha - f(alpha), 0 at the fold
    for p, q in pieces:
        if q >= p or room <= 0:
            break
        share = min(1, room / (p + q))  # a piece across the fold has slope one but for rounding
        lower.append((p * share, q * share))
        room -= (p + q) * share
    flat = ((room, room),) if room > 0 else ()
    return (*lower, *flat, *mirrored(tuple(lower)))


def product(first: Pairs, second: Pairs) -> Pairs:
    """Pieces of the tensor product: the pair (P1 x P2, Q1 x Q2)."""
    size = len(first) * len(second)
    if size > _MAX_PRODUCT:
        raise _too_many(size)
    if is_exact(first) and is_exact(second) and size <= _MAX_EXACT:
        pieces = merge(tuple((a * c, b * d) for a, b in first for c, d in second))
    else:
        x, y = as_array(first), as_array(second)
        outer = (x[:, None, :] * y[None, :, :]).reshape(-1, 2)
        pieces = _merge_float(outer[outer.max(axis=1) > 0])
    if len(pieces) > MAX_PIECES:
        raise _too_many(len(pieces))
    return pieces


def _too_many(size: int) -> GuaranteeError:
    return GuaranteeError(
        f"the product of these trade-off functions has {size} pieces.",
        remedy="Compose them with accounting.compose, which rounds to a grid.",
    )


def value_at(points: Pairs, alpha: Number) -> Number:
    """f(alpha) by interpolation, exact for rationals."""
    low, high = 0, len(points) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if points[middle][0] <= alpha else (low, middle)
    (a0, f0), (a1, f1) = points[low], points[high]
    return f1 if alpha == a1 else f0 + (f1 - f0) * (alpha - a0) / (a1 - a0)


def compose_points(outer: Pairs, inner: Pairs) -> Pairs:
    """Corners of outer(inner(alpha)): inner's corners and the preimages of outer's."""
    corners = [(alpha, value_at(outer, value)) for alpha, value in inner]
    for level, value in outer:
        for (a0, f0), (a1, f1) in pairwise(inner):
            if f0 <= level < f1:
                corners.append((a0 + (a1 - a0) * (level - f0) / (f1 - f0), value))
                break
    return lower_hull(corners)


def lower_hull(corners: Sequence[tuple[Number, Number]]) -> Pairs:
    """Greatest convex function below the corners (its corners, collinear ones dropped)."""
    hull: list[tuple[Number, Number]] = []
    for x in sorted(set(corners)):
        if hull and x[0] == hull[-1][0]:
            continue  # sorted: the lower value came first
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], x):
            hull.pop()
        hull.append(x)
    return tuple(hull)


def _turns_down(
    a: tuple[Number, Number], b: tuple[Number, Number], c: tuple[Number, Number]
) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) >= (c[1] - b[1]) * (b[0] - a[0])


def envelope(epsilon: FloatArray, delta: FloatArray) -> Pairs:
    """Pieces of sup_i f_{epsilon_i, delta_i}: what a list of (epsilon, delta) promises says
    together.

    `epsilon` rises from 0. The flat half is the upper envelope of the lines e^{-epsilon}(alpha -
    delta) and of 0; the steep half is its mirror image.
    """
    lines: list[tuple[float, float]] = [(0.0, 0.0)]  # slope, zero of the line
    starts = [0.0]  # where each line takes over
    for eps, dlt in zip(epsilon[::-1].tolist(), delta[::-1].tolist(), strict=True):
        slope = math.exp(-eps)
        if slope == 0 or dlt >= 1:
            continue
        while True:
            s, d = lines[-1]
            meet = (slope * dlt - s * d) / (slope - s) if slope > s else -1.0
            if meet > starts[-1] or len(lines) == 1:
                break
            lines.pop()
            starts.pop()
        if slope > lines[-1][0]:
            lines.append((slope, dlt))
            starts.append(max(meet, 0.0))
    return _fold(lines, starts)


def _fold(lines: list[tuple[float, float]], starts: list[float]) -> Pairs:
    """Cut the flat half where it meets its mirror image (alpha + f = 1) and append that image."""
    lower: list[tuple[Number, Number]] = []
    alpha = value = 0.0
    for k, (slope, _) in enumerate(lines):
        end = starts[k + 1] if k + 1 < len(lines) else 1.0
        step = max(0.0, end - alpha)
        room = (1 - alpha - value) / (1 + slope)
        step = min(step, room)
        if slope >= 1:  # the line of slope one is its own mirror image
            break
        if step > 0:
            lower.append((step, step * slope))
            alpha, value = alpha + step, value + step * slope
    middle = 1 - alpha - value
    flat = ((middle, middle),) if middle > 4 * ULP else ()
    return tuple(lower) + flat + mirrored(tuple(lower))
