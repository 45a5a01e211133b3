"""Compiled one-dimensional draws and small linear algebra for the Gibbs sampler of the mixture.

Everything here is exact given its generator: a slice step leaves its density invariant, the
truncated gamma is a rejection, the triangular solves are plain loops (37 x 37 matrices are too
small for LAPACK calls to pay).
"""

from __future__ import annotations

import math
from typing import Any

import numba

fast = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


def slice_step(log_density: Any) -> Any:
    """A compiled step of the slice sampler with stepping out (Neal 2003) for a compiled density:
    step(x, width, given, rng) leaves exp(log_density(x, given)) invariant.
    """

    @fast
    def step(x: float, width: float, given: Any, rng: Any) -> Any:
        level = log_density(x, given) - rng.standard_exponential()
        low = x - width * rng.random()
        high = low + width
        while log_density(low, given) > level:
            low -= width
        while log_density(high, given) > level:
            high += width
        while True:
            y = low + (high - low) * rng.random()
            if log_density(y, given) > level or high - low < 1e-13 * (1 + abs(x)):
                return y
            if y < x:
                low = y
            else:
                high = y

    return step


@fast
def truncated_gamma(shape: float, rate: float, top: float, rng: Any) -> Any:
    """Draw g in (0, top] with density ~ g^(shape-1) e^(-rate g), shape >= 1; top may be inf.

    Where the mode lies inside, plain rejection keeps about half; where it lies beyond the top, the
    log-concave density is below its tangent there, and an exponential from the top is thinned.
    """
    if not (shape - 1 > rate * top):
        while True:
            g = rng.standard_gamma(shape) / rate
            if g <= top:
                return g
    slope = (shape - 1) / top - rate
    while True:
        back = rng.standard_exponential() / slope
        g = top - back
        if g <= 0:
            continue
        gap = (shape - 1) * math.log(g / top) + rate * back + slope * back
        if -rng.standard_exponential() < gap:
            return g


@fast
def log_gamma_draw(shape: float, rng: Any) -> Any:
    """log of a Gamma(shape, 1) variable; shapes near 0 do not underflow."""
    return math.log(rng.standard_gamma(shape + 1)) + math.log(1 - rng.random()) / shape


@fast
def cholesky(a: Any) -> None:
    """Replace the lower triangle of a positive definite matrix by its Cholesky factor."""
    n = len(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k]
            if i == j:
                a[i, i] = math.sqrt(s)
            else:
                a[i, j] = s / a[j, j]


@fast
def forward(lower: Any, b: Any) -> None:
    """b <- L^-1 b."""
    for i in range(len(b)):
        s = b[i]
        for k in range(i):
            s -= lower[i, k] * b[k]
        b[i] = s / lower[i, i]


@fast
def backward(lower: Any, b: Any) -> None:
    """b <- L^-T b."""
    for i in range(len(b) - 1, -1, -1):
        b[i] /= lower[i, i]
        for k in range(i):
            b[k] -= lower[i, k] * b[i]
