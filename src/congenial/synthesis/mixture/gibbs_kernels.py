"""Compiled sweeps of the blocked Gibbs sampler for the weighted mixture of regressions.

Target, over (labels z, pi, beta, sigma, a, Sigma), for records i of weight w_i in (0, 1]:
prod_i pi_{z_i} N(y_i | x_i' beta_{z_i}, sigma_{z_i})^{w_i} times the prior of `parameters`. The
label is a parameter: it is not weighted, and summing over it leaves sum_k pi_k N_k^{w_i}.

One sweep: labels, pi integrated out; a given the counts, and pi; sigma_k and beta_k of occupied
components; Sigma given them, together with coefficients no record speaks about; every scale
stretched together with its coefficients; sigma and beta of empty components from the prior (until
then they are integrated out).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from congenial.synthesis.mixture.covariance_kernels import stretch_column, update_column
from congenial.synthesis.mixture.step_kernels import (
    backward,
    cholesky,
    fast,
    forward,
    log_gamma_draw,
    slice_step,
    truncated_gamma,
)


class GibbsRecords(NamedTuple):
    """Rows of the design in compressed form, the sensitive values and the weights."""

    start: Any  # (n + 1,) first entry of each row
    column: Any  # (entries,)
    value: Any  # (entries,)
    y: Any  # (n,) on the model's scale
    w: Any  # (n,) in (0, 1]


class Sums(NamedTuple):
    """What the records of each component say about its coefficients."""

    count: Any  # (K,) records
    weight: Any  # (K,) sum of w
    xx: Any  # (K, R, R) sum of w x x', lower triangle
    xy: Any  # (K, R) sum of w x y
    yy: Any  # (K,) sum of w y^2


class GibbsState(NamedTuple):
    """The chain's present place; arrays are changed in place."""

    label: Any  # (n,)
    log_pi: Any  # (K,)
    beta: Any  # (K, R)
    sigma: Any  # (K,)
    a: Any  # (1,) concentration
    sd: Any  # (R,) scales of the coefficients
    F: Any  # (R, R) with F F' = Sigma^-1


class KeptStates(NamedTuple):
    """Room for the states that are kept: as in `GibbsState` with a leading axis."""

    log_pi: Any
    beta: Any
    sigma: Any
    a: Any
    sd: Any
    F: Any
    occupied: Any  # (draws,) components with a record


class Hyper(NamedTuple):
    """Gamma(shape, rate) for the concentration and the least sigma."""

    shape: float
    rate: float
    floor: float


@fast
def fitted(r: GibbsRecords, i: int, across: Any, mean: Any) -> None:
    """x_i' beta_k of every component k; across: beta'."""
    for k in range(len(mean)):
        mean[k] = 0.0
    for e in range(r.start[i], r.start[i + 1]):
        c, x = r.column[e], r.value[e]
        for k in range(len(mean)):
            mean[k] += x * across[c, k]


@fast
def draw_labels(r: GibbsRecords, s: GibbsState, count: Any, rng: Any) -> None:
    """z_i = k with probability ~ (a/K + others in k) N(y_i | x_i' beta_k, sigma_k)^w_i: one record
    after another, pi integrated out.
    """
    K, R = s.beta.shape
    across = np.empty((R, K))
    offset, half = np.empty(K), np.empty(K)
    for k in range(K):
        for c in range(R):
            across[c, k] = s.beta[k, c]
        offset[k] = math.log(s.sigma[k])
        half[k] = 0.5 / (s.sigma[k] * s.sigma[k])
    mean, weight = np.empty(K), np.empty(K)
    share = s.a[0] / K
    for i in range(len(r.y)):
        count[s.label[i]] -= 1
        fitted(r, i, across, mean)
        top = -np.inf
        for k in range(K):
            gap = r.y[i] - mean[k]
            weight[k] = -r.w[i] * (offset[k] + half[k] * gap * gap)
            top = max(top, weight[k])
        total = 0.0
        for k in range(K):
            gap = weight[k] - top
            weight[k] = (share + count[k]) * math.exp(gap) if gap > -60 else 0.0
            total += weight[k]
        u = rng.random() * total
        k = 0
        while k < K - 1 and u >= weight[k]:
            u -= weight[k]
            k += 1
        s.label[i] = k
        count[k] += 1


@fast
def add_up(r: GibbsRecords, label: Any, t: Sums) -> None:
    """Sums of each component."""
    K, R = t.xy.shape
    for k in range(K):
        t.count[k], t.weight[k], t.yy[k] = 0, 0.0, 0.0
        for c in range(R):
            t.xy[k, c] = 0.0
            for d in range(R):
                t.xx[k, c, d] = 0.0
    for i in range(len(r.y)):
        k, w, y = label[i], r.w[i], r.y[i]
        t.count[k] += 1
        t.weight[k] += w
        t.yy[k] += w * y * y
        for e in range(r.start[i], r.start[i + 1]):
            c = r.column[e]
            wx = w * r.value[e]
            t.xy[k, c] += wx * y
            for f in range(r.start[i], e + 1):
                t.xx[k, c, r.column[f]] += wx * r.value[f]


@fast
def _log_concentration(x: float, given: Any) -> Any:
    """log density of x = log a given the counts, pi integrated out."""
    count, shape, rate = given
    K = len(count)
    a = math.exp(x)
    total = shape * x - rate * a + math.lgamma(a)
    records = 0
    for k in range(K):
        records += count[k]
        if count[k] > 0:
            total += math.lgamma(a / K + count[k]) - math.lgamma(a / K)
    return total - math.lgamma(a + records)


_step_concentration = slice_step(_log_concentration)


@fast
def draw_weights(s: GibbsState, t: Sums, h: Hyper, rng: Any) -> None:
    """The concentration given the counts, then pi ~ Dirichlet(a/K + counts)."""
    K = len(t.count)
    x = _step_concentration(math.log(s.a[0]), 1.0, (t.count, h.shape, h.rate), rng)
    s.a[0] = math.exp(x)
    top = -np.inf
    for k in range(K):
        s.log_pi[k] = log_gamma_draw(s.a[0] / K + t.count[k], rng)
        top = max(top, s.log_pi[k])
    total = 0.0
    for k in range(K):
        total += math.exp(s.log_pi[k] - top)
    for k in range(K):
        s.log_pi[k] -= top + math.log(total)


@fast
def _residual(s: GibbsState, t: Sums, k: int) -> Any:
    """Weighted sum of squared residuals of component k."""
    R = len(s.sd)
    total = t.yy[k]
    for c in range(R):
        inner = t.xy[k, c]
        for d in range(c):
            inner -= t.xx[k, c, d] * s.beta[k, d]
        total -= s.beta[k, c] * (2 * inner - t.xx[k, c, c] * s.beta[k, c])
    return max(total, 0.0)


@fast
def draw_scale(s: GibbsState, t: Sums, k: int, h: Hyper, rng: Any) -> None:
    """sigma_k ~ half-t(3) above the floor, given beta_k: 1/sigma^2 is a mixture of gammas."""
    g = 1 / (s.sigma[k] * s.sigma[k])
    rate = 3 * rng.standard_gamma(2.0) / (3 * g + 1)
    top = 1 / (h.floor * h.floor) if h.floor > 0 else np.inf
    g = truncated_gamma(1.5 + 0.5 * t.weight[k], rate + 0.5 * _residual(s, t, k), top, rng)
    s.sigma[k] = 1 / math.sqrt(g)


@fast
def precision(F: Any) -> Any:
    """F F', lower triangle."""
    R = len(F)
    P = np.empty((R, R))
    for c in range(R):
        for d in range(c + 1):
            x = 0.0
            for i in range(R):
                x += F[c, i] * F[d, i]
            P[c, d] = x
    return P


@fast
def draw_coefficients(s: GibbsState, t: Sums, k: int, inverse: Any, rng: Any) -> None:
    """beta_k ~ N(P^-1 xy / sigma^2, P^-1), P = xx / sigma^2 + Sigma^-1."""
    R = len(s.sd)
    g = 1 / (s.sigma[k] * s.sigma[k])
    P, b = np.empty((R, R)), np.empty(R)
    for c in range(R):
        b[c] = g * t.xy[k, c]
        for d in range(c + 1):
            P[c, d] = g * t.xx[k, c, d] + inverse[c, d]
    cholesky(P)
    forward(P, b)
    for c in range(R):
        b[c] += rng.standard_normal()
    backward(P, b)
    for c in range(R):
        s.beta[k, c] = b[c]


@fast
def draw_components(s: GibbsState, t: Sums, h: Hyper, rng: Any) -> None:
    """sigma_k and beta_k of the occupied components."""
    inverse = precision(s.F)
    for k in range(len(t.count)):
        if t.count[k] > 0:
            draw_scale(s, t, k, h, rng)
            draw_coefficients(s, t, k, inverse, rng)


@fast
def draw_covariance(s: GibbsState, t: Sums, rng: Any) -> None:
    """Sigma given the coefficients of the occupied components, column by column."""
    K, R = s.beta.shape
    m = 0
    for k in range(K):
        m += t.count[k] > 0
    B, E, informed = np.empty((m, R)), np.empty((m, R)), np.empty((R, m), np.bool_)
    m = 0
    for k in range(K):
        if t.count[k] == 0:
            continue
        for c in range(R):
            B[m, c] = s.beta[k, c]
            informed[c, m] = t.xx[k, c, c] > 0
            E[m, c] = 0.0
        for c in range(R):
            for i in range(R):
                E[m, i] += B[m, c] * s.F[c, i]
        m += 1
    for j in range(R):
        update_column(s.F, E, B, s.sd, j, informed, rng)
    m = 0
    for k in range(K):
        if t.count[k] > 0:
            for c in range(R):
                s.beta[k, c] = B[m, c]
            m += 1


@fast
def stretch(s: GibbsState, t: Sums, rng: Any) -> None:
    """Scale each sd_j together with the coefficients of column j in the occupied components."""
    K, R = s.beta.shape
    for j in range(R):
        linear, square = 0.0, 0.0
        for k in range(K):
            if t.count[k] == 0:
                continue
            g = 1 / (s.sigma[k] * s.sigma[k])
            inner = t.xy[k, j]
            for c in range(R):
                if c != j:
                    inner -= t.xx[k, max(c, j), min(c, j)] * s.beta[k, c]
            linear += g * s.beta[k, j] * inner
            square += g * s.beta[k, j] ** 2 * t.xx[k, j, j]
        factor = stretch_column(s.F, s.sd, j, linear, square, rng)
        for k in range(K):
            if t.count[k] > 0:
                s.beta[k, j] *= factor


@fast
def draw_empty(s: GibbsState, t: Sums, h: Hyper, rng: Any) -> None:
    """beta and sigma of empty components from the prior: beta = F^-T e has covariance Sigma."""
    K, R = s.beta.shape
    lower = precision(s.F)
    cholesky(lower)
    e = np.empty(R)
    for k in range(K):
        if t.count[k] > 0:
            continue
        for c in range(R):
            e[c] = rng.standard_normal()
        backward(lower, e)
        for c in range(R):
            s.beta[k, c] = e[c]
        while True:
            x = abs(rng.standard_normal()) / math.sqrt(rng.standard_gamma(1.5) / 1.5)
            if x > h.floor:
                break
        s.sigma[k] = x


@fast
def keep(s: GibbsState, t: Sums, out: KeptStates, i: int) -> None:
    """Write the state to row i."""
    K, R = s.beta.shape
    out.a[i] = s.a[0]
    out.occupied[i] = 0
    for k in range(K):
        out.log_pi[i, k], out.sigma[i, k] = s.log_pi[k], s.sigma[k]
        out.occupied[i] += t.count[k] > 0
        for c in range(R):
            out.beta[i, k, c] = s.beta[k, c]
    for c in range(R):
        out.sd[i, c] = s.sd[c]
        for d in range(R):
            out.F[i, c, d] = s.F[c, d]


@fast
def run(
    r: GibbsRecords, s: GibbsState, t: Sums, h: Hyper, rng: Any, thin: int, out: KeptStates
) -> None:
    """Fill `out` with every thin-th state of the chain; t.count are the counts of s.label.

    The steps are called from here and nowhere deeper: every level of calls is optimised anew.
    """
    for i in range(len(out.a)):
        for _ in range(thin):
            draw_labels(r, s, t.count, rng)
            add_up(r, s.label, t)
            draw_weights(s, t, h, rng)
            draw_components(s, t, h, rng)
            draw_covariance(s, t, rng)
            stretch(s, t, rng)
            draw_empty(s, t, h, rng)
        keep(s, t, out, i)
