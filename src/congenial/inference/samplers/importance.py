"""Importance sampling: Algorithm 2 of partially-private-data, corrected.

Draw theta from the prior and x given theta; the weight is pi(y | x). Or draw theta from a proposal
g with weight pi(y | x) pi(theta) / g(theta). As printed, theta is drawn from the prior and weighted
by pi(theta) / g(theta) as well, which targets another law (docs/errata).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.data.arguments import CALL, check_fields
from congenial.errors import InferenceError
from congenial.inference.cell_noise import Floats
from congenial.inference.latent_tables import no_mass
from congenial.inference.models.model import BoundModel

LEAST = 10.0  # effective draws


@dataclass(frozen=True)
class Proposal:
    """A law g of theta, on the model's own scale: `draw(rng, n)` and `log_density(theta)`.

    Draws are weighted by prior times likelihood over g, so g must cover the posterior: where it
    has thinner tails, few draws carry all the weight, and the effective number of draws says so.
    `log_density` may leave out a constant.
    """

    draw: Callable[[np.random.Generator, int], Any]
    log_density: Callable[[Floats], Any]

    def __post_init__(self) -> None:
        check_fields(self, InferenceError, draw=CALL, log_density=CALL)


def importance(
    bound: BoundModel, draws: int, rng: np.random.Generator, proposal: Proposal | None = None
) -> tuple[Floats, Any, Floats]:
    """theta, x and normalised weights; refused when hardly any draw counts."""
    if proposal is None:
        theta = bound.draw_prior(rng, draws)
    else:
        theta = np.asarray(proposal.draw(rng, draws), dtype=float)
    x = bound.draw_data(rng, theta)
    logs = bound.observation.log_law(x)
    if proposal is not None:
        if not bound.has_log_prior:
            raise InferenceError(
                "importance sampling from a proposal needs the prior's density.",
                remedy="Give the model a log_prior, or draw from the prior.",
            )
        logs = logs + bound.log_prior(theta) - np.asarray(proposal.log_density(theta))
    if np.all(np.isneginf(logs)):
        raise no_mass(f"none of {draws:,} draws agrees with them and the release.")
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    effective = 1 / float(np.sum(weights**2))
    if effective < LEAST:
        raise InferenceError(
            f"{draws:,} draws are worth {effective:.1f} independent ones: the prior hardly ever "
            "comes near the release.",
            remedy="Use method='auto' or 'augmentation', or a proposal closer to the posterior.",
        )
    return theta, x, weights
