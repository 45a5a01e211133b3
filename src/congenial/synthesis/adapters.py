"""Models from elsewhere, in local mode only: NumPyro programs, and draws kept by ArviZ.

A Hamiltonian chain is not an exact sample, so nothing here can be certified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arguments import (
    CALL,
    COUNT,
    SEVERAL,
    TEXT,
    check_fields,
    numbers,
    optional,
    takes,
)
from congenial.data.arrays import Floats
from congenial.errors import DataError, GuaranteeError, some_of
from congenial.synthesis.record_model import refuse_unconverged


@dataclass(frozen=True, eq=False)
class NumpyroModel:
    """A NumPyro program as a `Model` (extra `bayes`).

    program(records) declares priors and observes the records, with one log probability per record
    at every observed site; the shapes of its other sites must not depend on the records.
    new_records(site, records, generator) makes synthetic records from one draw, a dict of sites.
    blank: any records the program accepts, not confidential, used to see its sites.

    Draws are made by NUTS on the likelihood raised to the weights, and are refused with their
    diagnostics unless the chains converged.
    """

    program: Callable[[Any], object]
    new_records: Callable[[dict[str, Any], Any, np.random.Generator], Any]
    blank: Any = field(default_factory=lambda: np.zeros(1), repr=False)
    warmup: int = 500
    chains: int = 2

    def __post_init__(self) -> None:
        called = {"program": CALL, "new_records": CALL}
        check_fields(self, GuaranteeError, **called, warmup=COUNT, chains=SEVERAL)

    @cached_property
    def _trace(self) -> dict[str, Any]:
        handlers = _numpyro().handlers
        trace = handlers.trace(handlers.seed(self.program, 0)).get_trace(self.blank)
        return {name: site for name, site in trace.items() if site["type"] == "sample"}

    @cached_property
    def sites(self) -> dict[str, tuple[int, ...]]:
        """Unobserved sites in alphabetical order, and their shapes."""
        hidden = {name: site for name, site in self._trace.items() if not site["is_observed"]}
        return {name: tuple(np.shape(site["value"])) for name, site in sorted(hidden.items())}

    @cached_property
    def observed(self) -> frozenset[str]:
        """Names of the observed sites, which the weights apply to."""
        return frozenset(name for name, site in self._trace.items() if site["is_observed"])

    def posterior(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> Floats:
        """Draws of all sites, flattened into rows; GuaranteeError without convergence."""
        numpyro = _numpyro()
        import jax

        observed = self.observed  # looked up now: looking runs the program

        def weighted(data: Any) -> None:
            with _weighted(numpyro, weights, observed):
                self.program(data)

        run = numpyro.infer.MCMC(
            numpyro.infer.NUTS(weighted),
            num_warmup=self.warmup,
            num_samples=-(-draws // self.chains),
            num_chains=self.chains,
            chain_method="sequential",
            progress_bar=False,
        )
        run.run(jax.random.PRNGKey(int(generator.integers(2**31))), records)
        samples = run.get_samples(group_by_chain=True)
        parts = [np.asarray(samples[name], dtype=float) for name in self.sites]
        flat = np.concatenate([part.reshape(*part.shape[:2], -1) for part in parts], axis=2)
        names = [n for n, s in self.sites.items() for _ in range(int(np.prod(s, dtype=int)))]
        refuse_unconverged(flat, names)
        return flat.reshape(-1, flat.shape[2])[:draws]

    def log_likelihood(self, theta: Floats, records: Any) -> Floats:
        """Sum over observed sites, one column per record."""
        parts = _numpyro().infer.log_likelihood(self.program, self._by_site(theta), records)
        columns = [np.asarray(part, dtype=float).reshape(len(theta), -1) for part in parts.values()]
        return np.asarray(np.sum(columns, axis=0))

    def log_prior(self, theta: Floats) -> Floats:
        """Sum of the log densities of the unobserved sites."""
        handlers = _numpyro().handlers
        values = []
        for row in theta:
            program = handlers.substitute(handlers.seed(self.program, 0), self._one(row))
            trace = handlers.trace(program).get_trace(self.blank)
            sites = (trace[name] for name in self.sites)
            values.append(sum(float(np.sum(s["fn"].log_prob(s["value"]))) for s in sites))
        return np.asarray(values)

    def draw(self, theta: Floats, records: Any, generator: np.random.Generator) -> Any:
        """New records from one draw."""
        return self.new_records(self._one(theta), records, generator)

    def _one(self, theta: Floats) -> dict[str, Any]:
        return {name: value[0] for name, value in self._by_site(theta[None, :]).items()}

    def _by_site(self, theta: Floats) -> dict[str, Any]:
        parameters, at = {}, 0
        for name, shape in self.sites.items():
            size = int(np.prod(shape, dtype=int))
            parameters[name] = theta[:, at : at + size].reshape(len(theta), *shape)
            at += size
        return parameters


def _numpyro() -> Any:
    try:
        import numpyro
        import numpyro.infer
    except ImportError:
        raise GuaranteeError(
            "a NumPyro model needs NumPyro.", remedy="Install congenial[bayes]."
        ) from None
    return numpyro


def _weighted(numpyro: Any, weights: Floats, observed: frozenset[str]) -> Any:
    """An effect handler that multiplies the log probability of observed sites by the weights.

    Sites are told by name: the sampler adds observed sites of its own, the Jacobians of its
    changes of variable, which must not be weighted.
    """

    class Weighted(numpyro.primitives.Messenger):  # type: ignore[misc]
        def process_message(self, msg: dict[str, Any]) -> None:
            if msg["type"] == "sample" and msg["name"] in observed:
                scale = msg.get("scale")
                msg["scale"] = weights if scale is None else scale * weights

    return Weighted()


@takes(DataError, variable=optional(TEXT))
def log_likelihood_of(draws: Any, variable: str | None = None) -> Floats:
    """log p(x_i | theta_s) as (draws, records) from an object with a `log_likelihood` group.

    Takes ArviZ's InferenceData or DataTree, or anything with the same shape: a group of arrays with
    leading dimensions chain and draw. With several variables name one, or their sum is taken when
    all have the same number of records.
    """
    group = _group(draws)
    names = list(group) if variable is None else [variable]
    if not names or any(name not in group for name in names):
        raise DataError(
            f"the draws have no log likelihood of {variable!r}.",
            remedy=f"Known: {some_of(group)}.",
        )
    arrays = [numbers(group[name], "the log likelihood", DataError) for name in names]
    if any(array.ndim < 2 for array in arrays):
        raise DataError(
            "a log likelihood has no dimensions for chain and draw.",
            remedy="Give arrays whose first dimensions are chain and draw.",
        )
    flat = [array.reshape(array.shape[0] * array.shape[1], -1) for array in arrays]
    if len({array.shape for array in flat}) > 1:
        raise DataError(
            "the log likelihoods have different numbers of records.", remedy="Name one of them."
        )
    return np.asarray(np.sum(flat, axis=0))


def _group(draws: Any) -> Any:
    is_mapping = isinstance(draws, Mapping)
    group = draws.get("log_likelihood") if is_mapping else getattr(draws, "log_likelihood", None)
    if not hasattr(group, "keys") or isinstance(group, type):
        raise DataError(
            "the draws have no log_likelihood group.",
            remedy="Keep it when sampling, for example with idata_kwargs={'log_likelihood': True}.",
        )
    return group
