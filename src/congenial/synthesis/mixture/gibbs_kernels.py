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

import numba
import numpy as np

# ---- Step kernels ----
# Compiled one-dimensional draws and small linear algebra for the Gibbs sampler of the mixture.
#
# Everything here is exact given its generator: a slice step leaves its density invariant, the
# truncated gamma is a rejection, the triangular solves are plain loops (37 x 37 matrices are too
# small for LAPACK calls to pay).

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


# ---- Covariance kernels ----
# Compiled draw of the covariance of the coefficients under a uniform correlation matrix.
#
# Sigma = diag(sd) Omega diag(sd), Omega uniform over correlation matrices, sd_j ~ half-t(3), and
# m coefficient vectors b_k ~ N(0, Sigma). A uniform Omega of size R is the Gram matrix of R
# independent uniform directions in R + 1 dimensions. So Sigma is the Gram matrix of v_j = sd_j
# u_j, and given the others v_j matters only by its part w in their span (R - 1 whitened
# coordinates) and the length s of the rest (2 coordinates): prior ~ h(rho) rho^-R s dw ds, rho^2
# = sd_j^2 = |w|^2 + s^2, and b_j ~ N(T w, s^2) with T the whitened coefficients of the others.
#
# The half-t radius is a scale mixture of normals, v_j ~ N(0, tau^2 I) with tau^2 = sd_j^2 / Q and
# Q = lambda sd_j^2 + chi2_R, lambda ~ Gamma(2, (3 + sd_j^2)/2). Given tau, w is integrated out, s
# is drawn by a slice step, w from its normal law. No matrix is inverted: F with F F' = Sigma^-1
# and E = B F are carried along by one Householder reflection per column.


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


# ---- Compiled log likelihood of the mixture, one row per draw and one column per record ----

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@fast
def log_likelihood(r: GibbsRecords, log_pi: Any, beta: Any, sigma: Any) -> Any:
    """log sum_k pi_k N(y_i | x_i' beta_k, sigma_k)^{w_i}, shape (draws, records)."""
    S, K, R = beta.shape
    n = len(r.y)
    out = np.empty((S, n))
    across, offset, half = np.empty((R, K)), np.empty(K), np.empty(K)
    mean, term = np.empty(K), np.empty(K)
    for s in range(S):
        for k in range(K):
            for c in range(R):
                across[c, k] = beta[s, k, c]
            offset[k] = math.log(sigma[s, k]) + _HALF_LOG_2PI
            half[k] = 0.5 / (sigma[s, k] * sigma[s, k])
        for i in range(n):
            fitted(r, i, across, mean)
            top = -np.inf
            for k in range(K):
                gap = r.y[i] - mean[k]
                term[k] = log_pi[s, k] - r.w[i] * (offset[k] + half[k] * gap * gap)
                top = max(top, term[k])
            total = 0.0
            for k in range(K):
                total += math.exp(term[k] - top)
            out[s, i] = top + math.log(total)
    return out
