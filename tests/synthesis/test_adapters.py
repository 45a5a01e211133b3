"""Models from elsewhere, and chains that did not converge."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from congenial.errors import DataError, GuaranteeError
from congenial.sampling.convergence import split_r_hat
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.adapters import NumpyroModel, _weighted, log_likelihood_of
from congenial.synthesis.local import min_max, risks, synthesize_locally
from congenial.synthesis.record_model import RecordModel, refuse_unconverged

# ---- NumPyro -------------------------------------------------------------------------------------


def a_program():
    numpyro = pytest.importorskip("numpyro", reason="needs the extra `bayes`")
    import numpyro.distributions as dist

    def program(x):
        mean = numpyro.sample("mean", dist.Gamma(0.5, 0.001))
        numpyro.sample("x", dist.Poisson(mean), obs=x)

    return NumpyroModel(program, lambda site, x, rng: rng.poisson(site["mean"], len(x)))


@pytest.mark.audit  # the programs of NumPyro are compiled, which takes seconds
def test_weights_touch_the_records_alone():
    """On the sampler's own scale, where it adds a Jacobian of its own that must keep weight 1."""
    model = a_program()
    import numpyro
    from numpyro.infer.util import potential_energy

    assert isinstance(model, RecordModel)
    assert (model.sites, model.observed) == ({"mean": ()}, {"x"})
    x, weights = np.array([90.0, 100.0, 130.0]), np.array([0.2, 1.0, 0.0])

    def weighted(data):
        with _weighted(numpyro, weights, model.observed):
            model.program(data)

    def energy(mean):
        return float(potential_energy(weighted, (x,), {}, {"mean": np.log(mean)}))

    def expected(mean):
        prior = -0.5 * np.log(mean) - 0.001 * mean
        likelihood = weights @ (x * np.log(mean) - mean)
        return -(prior + likelihood + np.log(mean))  # the last term is the Jacobian

    found = energy(120.0) - energy(95.0)
    assert found == pytest.approx(expected(120.0) - expected(95.0), abs=1e-3)


@pytest.mark.audit
def test_likelihood_prior_and_new_records_of_a_program():
    model = a_program()
    theta, x = np.array([[90.0], [110.0]]), np.array([95.0, 100.0, 130.0])
    from scipy.stats import gamma, poisson

    found = model.log_likelihood(theta, x)
    assert found == pytest.approx(poisson.logpmf(x[None], theta), rel=1e-4)
    assert model.log_prior(theta) == pytest.approx(
        gamma.logpdf(theta[:, 0], 0.5, scale=1000), rel=1e-4
    )
    assert model.draw(theta[0], x, np.random.default_rng(0)).shape == (3,)


@pytest.mark.audit
def test_a_program_runs_in_local_mode():
    """NUTS against the conjugate posterior; long because the program is compiled."""
    model = a_program()
    x = np.random.default_rng(0).poisson(100, 50)
    run = synthesize_locally(
        model, x, min_max(), draws=1000, copies=2, randomness=SeededRandomness(1)
    )
    shape, rate = 0.5 + run.weights @ x, 0.001 + run.weights.sum()
    # 1000 draws of deviation 1.4 and more: five standard errors of a chain worth half of them
    assert run.theta.mean() == pytest.approx(shape / rate, abs=0.3)
    assert run.theta.std() == pytest.approx(np.sqrt(shape) / rate, rel=0.16)
    assert len(run.copies) == 2


# ---- ArviZ ---------------------------------------------------------------------------------------


def test_draws_with_a_log_likelihood_group():
    table = -np.arange(24.0).reshape(2, 3, 4)
    for draws in (SimpleNamespace(log_likelihood={"y": table}), {"log_likelihood": {"y": table}}):
        found = log_likelihood_of(draws)
        assert found.shape == (6, 4)
        assert risks(found).tolist() == [20.0, 21.0, 22.0, 23.0]
    two = SimpleNamespace(log_likelihood={"y": table, "z": table})
    assert np.array_equal(log_likelihood_of(two), 2 * log_likelihood_of(two, "y"))
    uneven = SimpleNamespace(log_likelihood={"y": table, "z": table[..., :2]})
    with pytest.raises(DataError, match="different numbers"):
        log_likelihood_of(uneven)
    with pytest.raises(DataError, match="no log likelihood of 'w'"):
        log_likelihood_of(two, "w")
    with pytest.raises(DataError, match="no log_likelihood group"):
        log_likelihood_of(SimpleNamespace())


# ---- diagnostics ---------------------------------------------------------------------------------


def chains(rho: float, shift: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(7)
    out = np.empty((4, 2000, 1))
    state = rng.normal(size=4)
    for t in range(2000):
        state = rho * state + np.sqrt(1 - rho**2) * rng.normal(size=4)
        out[:, t, 0] = state
    out[0] += shift
    return out


def test_chains_that_did_not_converge_are_refused_with_diagnostics():
    refuse_unconverged(chains(0.5))
    assert split_r_hat(chains(0.0))[0] == pytest.approx(1, abs=0.01)
    with pytest.raises(GuaranteeError, match=r"did not converge: slope has R-hat 1\.[1-9]"):
        refuse_unconverged(chains(0.5, shift=3), names=["slope"])
    with pytest.raises(GuaranteeError, match="effective draws"):
        refuse_unconverged(chains(0.999))
    with pytest.raises(GuaranteeError, match="not finite"):
        refuse_unconverged(np.full((2, 100, 1), np.nan))
    stuck = np.concatenate([np.zeros((1, 100, 1)), np.ones((1, 100, 1))])
    assert split_r_hat(stuck)[0] == np.inf
