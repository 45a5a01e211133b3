"""Chains that have not converged are refused: split R-hat and effective sample size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from congenial.errors import GuaranteeError
from congenial.sampling.convergence import effective_draws, split_r_hat
from congenial.synthesis.record_model import Floats


def refuse_unconverged(
    chains: Floats, names: Sequence[str] = (), r_hat: float = 1.05, effective: float = 100
) -> None:
    """Raise GuaranteeError with the worst parameter's diagnostics unless the chains converged."""
    if chains.ndim != 3 or chains.shape[1] < 4 or not np.isfinite(chains).all():
        raise GuaranteeError(
            "the chains are too short, or have numbers that are not finite.",
            remedy="Run at least two chains of some hundred draws.",
        )
    rates, sizes = split_r_hat(chains), effective_draws(chains)
    worst = int(np.argmax(np.where(rates > r_hat, rates, 1.0) + (sizes < effective)))
    if rates[worst] > r_hat or sizes[worst] < effective:
        name = names[worst] if names else f"parameter {worst}"
        raise GuaranteeError(
            f"the chain did not converge: {name} has R-hat {rates[worst]:.3f} (at most {r_hat}) "
            f"and {sizes[worst]:.0f} effective draws (at least {effective:.0f}).",
            remedy="Run longer chains, or simplify the model.",
        )
