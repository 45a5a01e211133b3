"""Compiled draw of the covariance of the coefficients under a uniform correlation matrix.

Sigma = diag(sd) Omega diag(sd), Omega uniform over correlation matrices, sd_j ~ half-t(3), and m
coefficient vectors b_k ~ N(0, Sigma). A uniform Omega of size R is the Gram matrix of R independent
uniform directions in R + 1 dimensions. So Sigma is the Gram matrix of v_j = sd_j u_j, and given
the others v_j matters only by its part w in their span (R - 1 whitened coordinates) and the length
s of the rest (2 coordinates): prior ~ h(rho) rho^-R s dw ds, rho^2 = sd_j^2 = |w|^2 + s^2, and
b_j ~ N(T w, s^2) with T the whitened coefficients of the others.

The half-t radius is a scale mixture of normals, v_j ~ N(0, tau^2 I) with tau^2 = sd_j^2 / Q and
Q = lambda sd_j^2 + chi2_R, lambda ~ Gamma(2, (3 + sd_j^2)/2). Given tau, w is integrated out, s is
drawn by a slice step, w from its normal law. No matrix is inverted: F with F F' = Sigma^-1 and
E = B F are carried along by one Householder reflection per column.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from congenial.synthesis.mixture.step_kernels import backward, cholesky, fast, forward, slice_step


@fast
def log_half_t(x: float) -> float:
    """log density of |t_3| at x > 0, up to a constant."""
    return -2 * math.log1p(x * x / 3)


@fast
def _reflect(M: Any, u: Any, scale: float) -> None:
    """M <- M (I - 2 u u' / scale)."""
    for r in range(len(M)):
        s = 0.0
        for i in range(len(u)):
            s += M[r, i] * u[i]
        s *= 2 / scale
        for i in range(len(u)):
            M[r, i] -= s * u[i]


@fast
def reflect_row(F: Any, E: Any, j: int) -> None:
    """Rotate the columns of F and E so that row j of F is zero except in the last column."""
    R = len(F)
    u, norm = np.empty(R), 0.0
    for i in range(R):
        u[i] = F[j, i]
        norm += u[i] * u[i]
    last = u[R - 1]
    u[R - 1] += math.copysign(math.sqrt(norm), last)
    scale = norm - last * last + u[R - 1] * u[R - 1]
    _reflect(F, u, scale)
    _reflect(E, u, scale)


@fast
def _log_rest(x: float, given: Any) -> Any:
    """log density of x = log s^2 given tau, w integrated out: s^2 ~ tau^2 chi2_2 and
    b_j ~ N(0, s^2 I + gram), gram = tau^2 T T'.
    """
    gram, b, tau2, lower, y = given
    s2 = math.exp(x)
    for k in range(len(b)):
        y[k] = b[k]
        for r in range(k):
            lower[k, r] = gram[k, r]
        lower[k, k] = gram[k, k] + s2
    cholesky(lower)
    forward(lower, y)
    total = x - s2 / (2 * tau2)
    for k in range(len(b)):
        total -= math.log(lower[k, k]) + 0.5 * y[k] * y[k]
    return total


_step_rest = slice_step(_log_rest)


@fast
def _log_radius(x: float, given: Any) -> float:
    """log density of x = log c for v_j -> c v_j, its direction and b_j fixed."""
    b, along, sd, s = given
    c = math.exp(x)
    total = (1 - len(b)) * x + log_half_t(c * sd)
    for k in range(len(b)):
        r = (b[k] / c - along[k]) / s
        total -= 0.5 * r * r
    return total


_step_radius = slice_step(_log_radius)


@fast
def _gram(T: Any, tau2: float) -> Any:
    """tau^2 T T' without the last column of T, lower triangle."""
    m = len(T)
    gram = np.empty((m, m))
    for k in range(m):
        for r in range(k + 1):
            t = 0.0
            for i in range(T.shape[1] - 1):
                t += T[k, i] * T[r, i]
            gram[k, r] = tau2 * t
    return gram


@fast
def _span(T: Any, b: Any, gram: Any, tau: float, s: float, rng: Any) -> Any:
    """Draw w ~ N(0, tau^2 I) given b = T w + s e: a prior draw, corrected by what it misses."""
    m, q = len(b), T.shape[1] - 1
    w = np.empty(q)
    for i in range(q):
        w[i] = tau * rng.standard_normal()
    miss = np.empty(m)
    for k in range(m):
        t = b[k] - s * rng.standard_normal()
        for i in range(q):
            t -= T[k, i] * w[i]
        miss[k] = t
        gram[k, k] += s * s
    cholesky(gram)
    forward(gram, miss)
    backward(gram, miss)
    for k in range(m):
        for i in range(q):
            w[i] += tau * tau * T[k, i] * miss[k]
    return w


@fast
def _times(M: Any, w: Any) -> Any:
    """M w without the last column of M."""
    out = np.empty(len(M))
    for r in range(len(M)):
        t = 0.0
        for i in range(len(w)):
            t += M[r, i] * w[i]
        out[r] = t
    return out


@fast
def update_column(F: Any, E: Any, B: Any, sd: Any, j: int, informed: Any, rng: Any) -> None:
    """Draw column j of Sigma, and B[k, j] where the data say nothing about it.

    Given: the other columns, the rest of B, and B[k, j] of those with informed[j, k] (the others
    are integrated out, then drawn). E = B F is kept current.
    """
    R = len(F)
    q = R - 1
    reflect_row(F, E, j)  # F without row j and column q is a factor of the others' precision
    sd2 = sd[j] * sd[j]
    chi2 = sd2 * rng.standard_gamma(2.0) * 2 / (3 + sd2) + 2 * rng.standard_gamma(R / 2)
    tau2 = sd2 / chi2
    T, b = _chosen(E, B, j, informed)
    gram, work = _gram(T, tau2), (np.empty((len(b), len(b))), np.empty(len(b)))
    now = -2 * math.log(abs(F[j, q]))
    s = math.exp(0.5 * _step_rest(now, 2.0, (gram, b, tau2, work[0], work[1]), rng))
    w = _span(T, b, gram, math.sqrt(tau2), s, rng)
    rho = s * s
    for i in range(q):
        rho += w[i] * w[i]
    rho = math.sqrt(rho)
    c = math.exp(_step_radius(0.0, 0.5, (b, _times(T, w), rho, s), rng))
    sd[j] = c * rho
    column, along = _times(F, w), _times(E, w)
    for r in range(R):  # F <- [G, G w / s; 0, -1 / (c s)]
        F[r, q] = column[r] / s
        F[j, r] = 0.0
    F[j, q] = -1 / (c * s)
    for k in range(len(B)):
        if not informed[j, k]:
            B[k, j] = c * (along[k] + s * rng.standard_normal())
        E[k, q] = along[k] / s - B[k, j] / (c * s)


@fast
def _chosen(E: Any, B: Any, j: int, informed: Any) -> Any:
    """Rows of E and of column j of B that the data speak about."""
    m = 0
    for k in range(len(B)):
        m += informed[j, k]
    T, b = np.empty((m, E.shape[1])), np.empty(m)
    m = 0
    for k in range(len(B)):
        if informed[j, k]:
            b[m] = B[k, j]
            for i in range(E.shape[1]):
                T[m, i] = E[k, i]
            m += 1
    return T, b


@fast
def _log_stretch(x: float, given: Any) -> Any:
    """log density of x = log c for (sd_j, b_j) -> (c sd_j, c b_j), the data moving with it."""
    sd, linear, square = given
    c = math.exp(x)
    return x + log_half_t(c * sd) + c * linear - 0.5 * c * c * square


_step_stretch = slice_step(_log_stretch)


@fast
def stretch_column(F: Any, sd: Any, j: int, linear: float, square: float, rng: Any) -> float:
    """Scale sd_j and the coefficients b_j together; return c, by which the caller scales b_j.

    log likelihood of c b_j: c linear - c^2 square / 2. Where the data say little about b_j this
    moves the scale freely; `update_column` moves it where they say much.
    """
    c = math.exp(_step_stretch(0.0, 1.0, (sd[j], linear, square), rng))
    sd[j] *= c
    for i in range(len(F)):
        F[j, i] /= c
    return c
