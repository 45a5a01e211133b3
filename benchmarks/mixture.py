"""The mixture of regressions: compiled Gibbs against NumPyro's NUTS on the same posterior.

Run `python benchmarks/mixture.py [DATA]`. Simulated records of the size and kind of the paper's
sample: n = 6,426, 36 indicator predictors and a constant, 4 true components, K = 10. With a data
folder the Consumer Expenditure quarter is fitted too (no target: its posterior has several modes).

Effective draws are those of the worst of: log concentration, all scales, all correlations and the
log determinant of the coefficients' covariance, and, because components swap labels, functions of
the rest that do not depend on them: sum_k pi_k beta_k, sum_k pi_k log sigma_k and the predictive
distribution function at five points. NUTS (labels summed out, coefficients non-centred, single
precision, two threads) starts from a draw of ours, so it needs no burn-in, and only sampling after
its adaptation is timed; it runs for some minutes and the time for 1,000 effective draws is
extrapolated. Ours is timed with its warm-up. `ratio` compares times for 1,000 effective draws of
the worst functional; `ratio_at_least` takes every draw of NUTS as fully effective.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from congenial.synthesis.mixture import MixturePrior, Run
from congenial.synthesis.mixture.gibbs_chains import compress, diagnose, functionals, sample
from congenial.synthesis.mixture.parameters import Parameters

SIZES = (2, 5, 8, 5, 2, 5, 5, 11, 2)  # levels of nine categories: 36 indicators
N, K, SEED = 6426, 10, 5
PRIOR = MixturePrior(least_sd=0.05)
RUN = Run(chains=2, warmup=1500, thin=4)
DRAWS = 4000  # kept, in all chains
TARGET = 1000
NUTS = (150, 50)  # draws of adaptation, and after it


def simulated() -> tuple[Any, Any]:
    """A design of indicators with uneven shares, and y of four components."""
    rng = np.random.default_rng(SEED)
    blocks = [np.ones((N, 1))]
    for size in SIZES:
        level = rng.choice(size, N, p=rng.dirichlet(np.full(size, 2.0)))
        blocks.append((level[:, None] == np.arange(1, size)).astype(float))
    design = np.concatenate(blocks, axis=1)
    beta = rng.standard_normal((4, design.shape[1])) * rng.uniform(0.1, 0.5, design.shape[1])
    beta[:, 0] = [3.5, 5.5, 1.0, -1.5]
    label = rng.choice(4, N, p=[0.4, 0.3, 0.2, 0.1])
    sigma = np.array([0.35, 0.6, 0.5, 0.25])[label]
    y = (design * beta[label]).sum(axis=1) + sigma * rng.standard_normal(N)
    return design, y


def watched(p: Parameters, design: Any, y: Any) -> tuple[Any, tuple[str, ...]]:
    """All functionals, with every correlation by itself."""
    values, names = functionals(p, design, y)
    low = np.tril_indices(design.shape[1], -1)
    more = tuple(f"correlation[{i}, {j}]" for i, j in zip(*low, strict=True))
    return np.column_stack([values, p.correlation[:, low[0], low[1]]]), names + more


def timed(action: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, wall seconds and processor seconds of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = action()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def row_of(
    part: str, what: str, p: Parameters, chains: int, design: Any, y: Any, wall: float, cpu: float
) -> dict[str, Any]:
    """Effective draws of the worst and of the median functional, and the time for 1,000."""
    found = diagnose(*watched(p, design, y), chains)
    return {
        "part": part,
        "what": what,
        "seconds": wall,
        "cpu_seconds": cpu,
        "effective": found.worst["effective"],
        "worst": found.worst["functional"],
        "effective_median": float(np.median(found.effective)),
        "r_hat": found.worst["r_hat"],
        "seconds_per_1000": wall * TARGET / found.worst["effective"],
        "cpu_seconds_per_1000": cpu * TARGET / found.worst["effective"],
    }


def gibbs(part: str, design: Any, y: Any) -> tuple[dict[str, Any], Parameters]:
    r, rng = compress(design, y, np.ones(len(y))), np.random.default_rng(SEED)
    R = design.shape[1]
    sample(r, K, R, PRIOR, Run(chains=1, warmup=0), 1, rng)  # compiles
    (p, _), wall, cpu = timed(lambda: sample(r, K, R, PRIOR, RUN, DRAWS, rng))
    sweeps = RUN.chains * (RUN.warmup + RUN.thin * DRAWS // RUN.chains)
    what = f"Gibbs, {RUN.chains} chains, {sweeps:,} sweeps with warm-up"
    return row_of(part, what, p, RUN.chains, design, y, wall, cpu), p


def program(design: Any, y: Any) -> Callable[[], None]:
    """The same posterior as a NumPyro program."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    R = design.shape[1]
    x, z = jnp.asarray(design), jnp.asarray(y)

    def model() -> None:
        a = numpyro.sample("a", dist.Gamma(PRIOR.shape, PRIOR.rate))
        pi = numpyro.sample("pi", dist.Dirichlet(jnp.full(K, a / K)))
        t = dist.StudentT(3.0)
        with numpyro.plate("components", K):
            sigma = numpyro.sample("sigma", dist.LeftTruncatedDistribution(t, low=PRIOR.least_sd))
        with numpyro.plate("columns", R):
            sd = numpyro.sample("sd", dist.LeftTruncatedDistribution(t, low=0.0))
        L = numpyro.sample("L", dist.LKJCholesky(R, 1.0))
        white = numpyro.sample("white", dist.Normal(0, 1).expand([K, R]).to_event(2))
        beta = numpyro.deterministic("beta", white @ (sd[:, None] * L).T)
        log_n = dist.Normal(x @ beta.T, sigma).log_prob(z[:, None])
        numpyro.factor("y", jax.nn.logsumexp(jnp.log(pi) + log_n, axis=1).sum())

    return model


def nuts(design: Any, y: Any, start: Parameters, warmup: int, draws: int) -> dict[str, Any] | None:
    """NUTS on the same posterior; None without NumPyro."""
    try:
        import jax
        import numpyro
    except ImportError:
        return None
    L = np.linalg.cholesky(start.correlation[-1])
    pi = np.maximum(np.exp(start.log_pi[-1]), 1e-6)
    at = {
        "a": start.concentration[-1],
        "pi": pi / pi.sum(),
        "sigma": start.sigma[-1],
        "sd": start.sd[-1],
        "L": L,
        "white": np.linalg.solve(L * start.sd[-1][:, None], start.beta[-1].T).T,
    }
    kernel = numpyro.infer.NUTS(
        program(design, y), init_strategy=numpyro.infer.init_to_value(values=at)
    )
    chain = numpyro.infer.MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
    extra = ("num_steps",)
    chain.warmup(jax.random.PRNGKey(SEED), extra_fields=extra)
    chain.num_samples = 1
    chain.run(jax.random.PRNGKey(0), extra_fields=extra)  # compiles
    chain.post_warmup_state, chain.num_samples = chain.last_state, draws

    def go() -> Any:
        chain.run(jax.random.PRNGKey(1), extra_fields=extra)
        return jax.block_until_ready(chain.get_samples())  # run alone does not wait

    drawn, wall, cpu = timed(go)
    steps = float(np.mean(chain.get_extra_fields()["num_steps"]))
    found = {name: np.asarray(v, dtype=float) for name, v in drawn.items()}
    p = Parameters(
        np.log(np.maximum(found["pi"], 1e-300)),
        found["beta"],
        found["sigma"],
        found["a"],
        found["sd"],
        found["L"] @ np.swapaxes(found["L"], 1, 2),
    )
    what = f"NumPyro NUTS, {draws} draws after {warmup} of adaptation, {steps:.0f} gradients each"
    found_row = row_of("simulated", what, p, 1, design, y, wall, cpu)
    return {**found_row, "seconds_per_1000_draws": wall * TARGET / draws}


def expenditure(data: str) -> tuple[Any, Any]:
    """The Consumer Expenditure quarter as the reproduction fits it."""
    from congenial.papers.item import Study
    from congenial.papers.pseudo_posterior.expenditure import read

    sample_ = read(Study(data=Path(data)))
    design = np.column_stack([np.ones(len(sample_.income)), sample_.predictors])
    return design, np.arcsinh(sample_.records[:, -1])


SMALLEST = {"SIZES": (2, 3), "N": 60, "K": 3, "DRAWS": 40, "NUTS": (4, 8)}
SMALLEST |= {"RUN": Run(chains=2, warmup=10, thin=1)}


def run(data: str | None = None) -> list[dict[str, Any]]:
    """Gibbs and NUTS on simulated records in one run; Gibbs on real ones if there are any."""
    design, y = simulated()
    ours, draws = gibbs("simulated", design, y)
    theirs = nuts(design, y, draws, *NUTS)
    rows = [ours]
    if theirs is not None:
        for key, row in (
            ("ratio", "seconds_per_1000"),
            ("ratio_at_least", "seconds_per_1000_draws"),
        ):
            theirs[key] = theirs[row] / ours["seconds_per_1000"]
        rows.append(theirs)
    if data is not None:
        rows.append(gibbs("Consumer Expenditure 2016 Q1", *expenditure(data))[0])
    return rows


def main() -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for row in run(sys.argv[1] if len(sys.argv) > 1 else None):
        print("\n".join(f"{key:<26}{value}" for key, value in row.items()), end="\n\n")


if __name__ == "__main__":
    main()
