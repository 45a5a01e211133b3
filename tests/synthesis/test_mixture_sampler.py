"""The Gibbs sampler of the mixture leaves its target alone: against the prior, against importance
sampling, and by simulation-based calibration. Every check has a planted defect it rejects.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from congenial.synthesis.mixture import gibbs_kernels
from congenial.synthesis.mixture.gibbs_chains import (
    as_parameters,
    compress,
    empty_sums,
    functionals,
    hyper,
    room,
)
from congenial.synthesis.mixture.parameters import MixturePrior, Parameters

ALPHA = 1e-6
PRIOR = MixturePrior(shape=2.0, rate=1.5, least_sd=0.15)
# a constant, a number, and an indicator that few records have: some components never see it
DESIGN = np.array(
    [[1.0, 0.3, 0], [1, -1.2, 0], [1, 2.0, 1], [1, 0.0, 0], [1, 0.7, 1], [1, -0.4, 0], [1, 1.1, 0]]
)


def half_t(rng, size, least=0.0):
    x = np.abs(rng.standard_t(3, size))
    while (x < least).any():
        x = np.where(x < least, np.abs(rng.standard_t(3, size)), x)
    return x


def prior_draws(S, K, R, rng):
    """Independent draws of all parameters from Appendix B's prior, without any of our kernels."""
    a = rng.gamma(PRIOR.shape, 1 / PRIOR.rate, S)
    log_gamma = np.log(rng.gamma(a[:, None] / K + 1, size=(S, K)))
    log_gamma += np.log(rng.random((S, K))) * K / a[:, None]
    log_pi = log_gamma - logsumexp(log_gamma, axis=1, keepdims=True)
    # uniform over correlation matrices: the correlations of a Wishart with R + 1 degrees of freedom
    z = rng.standard_normal((S, R, R + 1))
    u = z / np.linalg.norm(z, axis=2, keepdims=True)
    correlation = u @ np.swapaxes(u, 1, 2)
    sd = half_t(rng, (S, R))
    lower = np.linalg.cholesky(correlation) * sd[:, :, None]
    beta = np.swapaxes(lower @ rng.standard_normal((S, R, K)), 1, 2)
    return Parameters(log_pi, beta, half_t(rng, (S, K), PRIOR.least_sd), a, sd, correlation)


def simulate(p, design, w, rng):
    """Labels from pi and y ~ N(x' beta, sigma^2 / w) for every draw."""
    S = len(p)
    edges = np.cumsum(np.exp(p.log_pi), axis=1)
    label = (rng.random((S, len(design), 1)) > edges[:, None, :-1]).sum(axis=2)
    rows = np.arange(S)[:, None]
    centre = np.einsum("nr,snr->sn", design, p.beta[rows, label])
    scale = p.sigma[rows, label] / np.sqrt(w)
    return label, centre + scale * rng.standard_normal(centre.shape)


def state_of(p, label, s):
    covariance = p.correlation[s] * np.outer(p.sd[s], p.sd[s])
    F = np.linalg.inv(np.linalg.cholesky(covariance)).T.copy()
    return gibbs_kernels.GibbsState(
        label[s].astype(np.int64), p.log_pi[s].copy(), p.beta[s].copy(), p.sigma[s].copy(),
        p.concentration[s : s + 1].copy(), p.sd[s].copy(), F,
    )  # fmt: skip


def sweep_with(**planted):
    """As `gibbs_kernels.run` to one kept state, step by step, with other steps for some."""
    step = {**vars(gibbs_kernels), **planted}

    def advance(r, s, t, h, rng, thin, out):
        for _ in range(thin):
            step["draw_labels"](r, s, t.count, rng)
            step["add_up"](r, s.label, t)
            step["draw_weights"](s, t, h, rng)
            step["draw_components"](s, t, h, rng)
            step["draw_covariance"](s, t, rng)
            step["stretch"](s, t, rng)
            step["draw_empty"](s, t, h, rng)
        gibbs_kernels.keep(s, t, out, 0)

    return advance


def one_record_too_many(s, t, h, rng):
    """Planted: sigma's law counts a record that is not there."""
    t.weight[:] += 1.0
    gibbs_kernels.draw_components(s, t, h, rng)


def empty_left_alone(s, t, h, rng):
    """Planted: empty components keep coefficients of a covariance that is gone."""


def stretch_without_data(s, t, rng):
    """Planted: coefficients are scaled as if no record spoke about them."""
    blank = empty_sums(*t.xy.shape)
    blank.count[:] = t.count
    gibbs_kernels.stretch(s, blank, rng)


def bounded(p, y):
    """Bounded functions of (theta, y), so that their means are approximately normal."""
    pi = np.exp(p.log_pi)
    centre = np.einsum("nr,skr->skn", DESIGN, p.beta)
    fit = (pi[:, :, None] * np.tanh(y[:, None, :] - centre)).sum(axis=1)
    shape = (pi[:, :, None] * np.exp(-(((y[:, None] - centre) / p.sigma[:, :, None]) ** 2))).sum(1)
    mean = (pi[:, :, None] * p.beta).sum(axis=1)
    return np.column_stack(
        [
            p.concentration / (1 + p.concentration),
            (pi**2).sum(axis=1),
            p.sd / (1 + p.sd),
            (p.sd < 0.3).astype(float),
            p.correlation[:, 0, 1],
            p.correlation[:, 1, 2] ** 2,
            np.tanh(mean),
            np.tanh(np.abs(p.beta[:, 0])),
            np.minimum((p.beta / p.sd[:, None, :]) ** 2, 9).mean(axis=1),
            (pi * p.sigma / (1 + p.sigma)).sum(axis=1),
            (p.sigma < 0.5).mean(axis=1),
            fit[:, :4],
            shape[:, :3],
        ]
    )


def drift(replications, w, advance, seed, sweeps=3, K=3):
    """z-scores of E[bounded after] - E[bounded before], starting from exact joint draws.

    (theta, labels, y) is drawn from prior(theta) prod pi N(y; x' beta, sigma / sqrt(w)), which is
    the target times prod sigma^(w - 1): importance weights take that factor back.
    """
    print("seed", seed)
    rng = np.random.default_rng(seed)
    p = prior_draws(replications, K, DESIGN.shape[1], rng)
    label, y = simulate(p, DESIGN, w, rng)
    weight = np.exp(((1 - w) * np.log(p.sigma[np.arange(len(p))[:, None], label])).sum(axis=1))
    out, h = room(replications, K, DESIGN.shape[1]), hyper(PRIOR)
    for s in range(replications):
        r, state, t = compress(DESIGN, y[s], w), state_of(p, label, s), empty_sums(K, 3)
        t.count[:] = np.bincount(label[s], minlength=K)
        advance(
            r, state, t, h, rng, sweeps, gibbs_kernels.KeptStates(*(one[s : s + 1] for one in out))
        )
    change = weight[:, None] * (bounded(as_parameters(out), y) - bounded(p, y))
    return np.sqrt(replications) * change.mean(axis=0) / change.std(axis=0)


def limit(count):
    return stats.norm.isf(ALPHA / (2 * count))


EQUAL, UNEQUAL = np.ones(7), np.array([1.0, 0.9, 0.8, 1.0, 0.85, 0.95, 0.7])


@pytest.mark.parametrize("w", [EQUAL, UNEQUAL], ids=["weights 1", "weights below 1"])
def test_a_sweep_keeps_the_joint_law(w):
    z = drift(4000, w, gibbs_kernels.run, 11)
    assert np.abs(z).max() < limit(len(z))


@pytest.mark.audit
@pytest.mark.parametrize("w", [EQUAL, UNEQUAL], ids=["weights 1", "weights below 1"])
def test_a_sweep_keeps_the_joint_law_at_length(w):
    z = drift(60_000, w, gibbs_kernels.run, 12, sweeps=10)
    assert np.abs(z).max() < limit(len(z))


@pytest.mark.parametrize(
    ("step", "defect"),
    [
        ("draw_components", one_record_too_many),
        ("draw_empty", empty_left_alone),
        ("stretch", stretch_without_data),
    ],
)
def test_planted_wrong_steps_are_noticed(step, defect):
    z = drift(1000, EQUAL, sweep_with(**{step: defect}), 13, sweeps=4)
    assert np.abs(z).max() > limit(len(z))


def test_the_steps_called_apart_are_the_run():
    rng = np.random.default_rng(3)
    p = prior_draws(1, 3, 3, rng)
    label, y = simulate(p, DESIGN, EQUAL, rng)
    kept = []
    for advance in (gibbs_kernels.run, sweep_with()):
        out, t = room(1, 3, 3), empty_sums(3, 3)
        t.count[:] = np.bincount(label[0], minlength=3)
        r = compress(DESIGN, y[0], EQUAL)
        advance(r, state_of(p, label, 0), t, hyper(PRIOR), np.random.default_rng(4), 5, out)
        kept.append(out)
    for one, other in zip(*kept, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


# ---- the reading of "weighted": importance sampling from the prior is the oracle -----------------

Y = np.array([-1.5, 2.5, 0.4])
W = np.array([1.0, 0.5, 0.25])
READINGS = {
    "label a parameter": lambda log_pi, log_n, w: logsumexp(log_pi + w * log_n, axis=1),
    "label summed out first": lambda log_pi, log_n, w: w * logsumexp(log_pi + log_n, axis=1),
    "label weighted too": lambda log_pi, log_n, w: logsumexp(w * (log_pi + log_n), axis=1),
}


def told(p):
    pi = np.exp(p.log_pi)
    return np.column_stack(
        [
            (pi**2).sum(axis=1),
            (pi * p.sigma / (1 + p.sigma)).sum(axis=1),
            p.concentration / (1 + p.concentration),
            np.tanh((pi[:, :, None] * p.beta).sum(axis=1)),
            (pi * np.tanh(p.sigma) * np.abs(np.tanh(p.beta[:, :, 0]))).sum(axis=1),
        ]
    )


@pytest.fixture(scope="module")
def from_prior():
    """Draws of the prior and the log densities of the three records under each component."""
    p = prior_draws(200_000, 2, 2, np.random.default_rng(22))
    centre = np.einsum("nr,skr->skn", DESIGN[:3, :2], p.beta)
    return p, stats.norm.logpdf(Y, centre, p.sigma[:, :, None])


def by_importance(reading, p, log_n):
    """Means under the weighted posterior and their standard errors, from draws of the prior."""
    log_w = sum(READINGS[reading](p.log_pi, log_n[:, :, i], W[i]) for i in range(3))
    weight = np.exp(log_w - log_w.max())
    weight /= weight.sum()
    values = told(p)
    mean = weight @ values
    return mean, np.sqrt((weight**2) @ (values - mean) ** 2)


@pytest.fixture(scope="module")
def weighted_chain():
    """Means of a long chain on three weighted records, with standard errors from batches."""
    rng = np.random.default_rng(21)
    r, batches, each = compress(DESIGN[:3, :2], Y, W), 50, 800
    p = prior_draws(1, 2, 2, rng)
    state, t = state_of(p, np.zeros((1, 3), int), 0), empty_sums(2, 2)
    t.count[0] = 3
    gibbs_kernels.run(r, state, t, hyper(PRIOR), rng, 500, room(1, 2, 2))
    means = []
    for _ in range(batches):
        out = room(each, 2, 2)
        gibbs_kernels.run(r, state, t, hyper(PRIOR), rng, 2, out)
        means.append(told(as_parameters(out)).mean(axis=0))
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(batches)


@pytest.mark.parametrize("reading", READINGS)
def test_the_chain_has_the_label_as_a_parameter(weighted_chain, from_prior, reading):
    mean, error = weighted_chain
    exact, uncertain = by_importance(reading, *from_prior)
    z = (mean - exact) / np.hypot(error, uncertain)
    far = np.abs(z).max() > stats.t.isf(ALPHA / (2 * len(z)), 49)
    assert far == (reading != "label a parameter")


# ---- simulation-based calibration ----------------------------------------------------------------


def ranks(replications, seed, spread=1.0, draws=31, thin=20):
    """Ranks of the true functionals among posterior draws; spread != 1 plants a wrong likelihood.

    A chain starts at the truth, which is a draw from the posterior, and is thinned until draws are
    nearly independent.
    """
    print("seed", seed)
    rng = np.random.default_rng(seed)
    p = prior_draws(replications, 3, 3, rng)
    label, y = simulate(p, DESIGN, EQUAL / spread**2, rng)
    truth, names = [], ()
    for s in range(replications):
        t, out = empty_sums(3, 3), room(draws, 3, 3)
        t.count[:] = np.bincount(label[s], minlength=3)
        r = compress(DESIGN, y[s], EQUAL)
        gibbs_kernels.run(r, state_of(p, label, s), t, hyper(PRIOR), rng, thin, out)
        found, names = functionals(as_parameters(out), DESIGN, y[s])
        one = Parameters(*(getattr(p, f)[s : s + 1] for f in p.__dataclass_fields__))
        true, _ = functionals(one, DESIGN, y[s])
        truth.append((found < true).sum(axis=0))
    return np.array(truth), names


def p_values(found, draws=31, bins=8):
    counts = [np.bincount(one * bins // (draws + 1), minlength=bins) for one in found.T]
    return np.array([stats.chisquare(one).pvalue for one in counts])


def test_simulation_based_calibration():
    found, names = ranks(160, 31)
    assert len(names) > 10
    assert p_values(found).min() > ALPHA / len(names)


@pytest.mark.audit
def test_simulation_based_calibration_at_length():
    found, names = ranks(2000, 32, thin=60)
    assert p_values(found).min() > ALPHA / len(names)


def test_calibration_notices_a_wrong_likelihood():
    found, names = ranks(160, 33, spread=3.0, thin=5)
    assert p_values(found).min() < ALPHA / len(names)


# ---- small steps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "rate", "top"),
    [(1.5, 2.0, np.inf), (4.0, 2.0, 3.0), (30.0, 1.0, 2.0), (5.0, 0.0, 7.0)],
)
def test_truncated_gamma(shape, rate, top):
    rng = np.random.default_rng(41)
    drawn = np.array([gibbs_kernels.truncated_gamma(shape, rate, top, rng) for _ in range(4000)])

    def law(g):
        if rate == 0:
            return (g / top) ** shape
        scale = 1 / rate
        return stats.gamma.cdf(g, shape, scale=scale) / stats.gamma.cdf(top, shape, scale=scale)

    assert drawn.max() <= top
    assert stats.kstest(drawn, law).pvalue > ALPHA
    assert stats.kstest(drawn * 0.9, law).pvalue < ALPHA


def test_log_gamma_draws_of_tiny_shapes_do_not_underflow():
    rng = np.random.default_rng(42)
    drawn = np.array([gibbs_kernels.log_gamma_draw(0.004, rng) for _ in range(4000)])
    assert np.isfinite(drawn).all()
    assert drawn.min() < -745  # exp of it is 0
    assert stats.kstest(drawn, lambda x: stats.loggamma.cdf(x, 0.004)).pvalue > ALPHA
