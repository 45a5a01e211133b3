"""Four cells that take up what the others leave: the law of the one number still free, and its sum.

Cells a, b, c, d whose columns of the equations satisfy E_a - E_b - E_c + E_d = 0 (two levels of one
attribute by two of another). Given the sums they must have, they are q + s (1, -1, -1, 1), s whole,
and with a = exp(-eps) the weight of s is a^(|s - c_1| + ... + |s - c_4|), c_i = -(sign of i) q_i.
In order c_1 <= c_2 <= c_3 <= c_4 and with b = a^2, the sum over s is

    a^(c_4 - c_1 + c_3 - c_2) [ c_3 - c_2 + 1 + g(c_2 - c_1) + g(c_4 - c_3)
                                + (b^(c_2 - c_1) + b^(c_4 - c_3)) b^2 / (1 - b^2) ],

g(m) = b + b^2 + ... + b^m: the middle, two flanks, two tails. All terms are positive.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from congenial.sampling.decide import pick_fast
from congenial.sampling.inversion import Floats, Ints, _bernoulli, _Geometric, ball, exp_ball
from congenial.sampling.randomness import Randomness, uniform_below

SIGNS = np.array([1, -1, -1, 1])
SLACK = 2.0**-30  # relative error granted to doubles, which make less than 2^-40


def log_sums(c: Ints, eps: float) -> Floats:
    """log of the sum over s in doubles, for centres of shape (n, 4), relative to all c equal."""
    c = np.sort(c, axis=1)
    left, middle, right = np.diff(c, axis=1).T.astype(float)
    b, norm = math.exp(-2 * eps), left + 2 * middle + right
    flanks = -b * (np.expm1(-2 * eps * left) + np.expm1(-2 * eps * right)) / -math.expm1(-2 * eps)
    ends = (np.exp(-2 * eps * left) + np.exp(-2 * eps * right)) * b * b / -math.expm1(-4 * eps)
    alike = math.log1p(2 * b * b / -math.expm1(-4 * eps))
    return np.asarray(np.log(middle + 1 + flanks + ends) - eps * norm - alike)


def log_sum_ball(c: list[int], eps: Fraction) -> Any:
    """The same as a ball, for one list of centres."""
    c = sorted(c)
    total = sum(_parts(c, eps), arb(0)) / sum(_parts([0] * 4, eps), arb(0))
    return total.log() - ball(eps * (c[3] - c[0] + c[2] - c[1]))


def _parts(c: list[int], eps: Fraction) -> list[Any]:
    """Middle, flanks and tails as balls, up to the common factor."""
    left, right = c[1] - c[0], c[3] - c[2]
    b = exp_ball(-2 * eps)
    end = b * b / (1 - b * b)
    return [
        arb(c[2] - c[1] + 1),
        *(b * (1 - b**m) / (1 - b) for m in (left, right)),
        *(b**m * end for m in (left, right)),
    ]


def draw_free(c: list[int], eps: Fraction, randomness: Randomness) -> int:
    """One exact draw of s."""
    c = sorted(c)
    left, right = c[1] - c[0], c[3] - c[2]
    part = pick_fast(_part_weights(c, float(eps)), SLACK, lambda: _parts(c, eps), randomness)
    if part == 0:
        return c[1] + uniform_below(c[2] - c[1] + 1, randomness)
    if part in (1, 2):
        step = 1 + _truncated(2 * eps, (left, right)[part - 1], randomness)
        return c[1] - step if part == 1 else c[2] + step
    step = 1 + int(_Geometric(4 * eps).draw(randomness, 1)[0])
    return c[0] - step if part == 3 else c[3] + step


def _part_weights(c: list[int], eps: float) -> Floats:
    b = math.exp(-2 * eps)
    sizes = (c[1] - c[0], c[3] - c[2])
    flanks = [b * math.expm1(-2 * eps * m) / math.expm1(-2 * eps) for m in sizes]
    ends = [math.exp(-2 * eps * m) * b * b / -math.expm1(-4 * eps) for m in sizes]
    return np.array([c[2] - c[1] + 1, *flanks, *ends])


def _truncated(rate: Fraction, size: int, randomness: Randomness) -> int:
    """j in 0 .. size - 1 with probability ~ exp(-rate j): at least every third proposal is kept."""
    while True:
        if rate * size > 1:
            j = int(_Geometric(rate).draw(randomness, 1)[0])
            if j < size:
                return j
        else:
            j = uniform_below(size, randomness)
            if _bernoulli(lambda j=j: -ball(rate * j), randomness):  # type: ignore[misc]
                return j
