"""Exact posterior draws by rejection: Algorithm 1 of partially-private-data, corrected.

Draw theta from the prior and x given theta; keep theta with probability pi(y | x) / sup over x of
pi(y | x). As printed, the inequality is reversed and the supremum is over y, which gives another
law (docs/errata). Published figures are conditioned on by the same token: tables that do not agree
with them have pi(y | x) = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.errors import InferenceError
from congenial.inference.cell_noise import Floats
from congenial.inference.models.counts import Conjugate
from congenial.inference.models.model import BoundModel

PILOT = 200_000  # proposals after which the acceptance rate is judged
MOST = 2_000_000_000  # proposed cells, about as many minutes as a person waits
BATCH = 1 << 19  # proposed cells at a time


@dataclass(frozen=True)
class KeptDraws:
    """Accepted draws and the share of proposals that were accepted."""

    theta: Floats
    x: Any
    acceptance: float


def rejection(bound: BoundModel, draws: int, rng: np.random.Generator) -> KeptDraws:
    """`draws` independent draws from the posterior, and the acceptance rate.

    Cells that have nothing to do with each other (a conjugate rate each, no published sums) are
    drawn one by one: rejecting all of them at once would multiply their rates.
    """
    observation = bound.observation
    if math.isinf(observation.log_supremum):
        raise InferenceError(
            "this release has a density without a known largest value, so rejection has no bound.",
            remedy="Use method='importance' or method='augmentation'.",
        )
    if isinstance(bound, Conjugate) and observation.unrelated:
        parts = [_reject(bound.alone(j), draws, rng) for j in range(observation.cells)]
        return KeptDraws(
            np.concatenate([part.theta for part in parts], axis=1),
            np.concatenate([part.x for part in parts], axis=1),
            len(parts) / sum(1 / part.acceptance for part in parts),
        )
    return _reject(bound, draws, rng)


def _reject(bound: BoundModel, draws: int, rng: np.random.Generator) -> KeptDraws:
    observation = bound.observation
    bound_on_law = observation.log_supremum
    thetas, tables = [], []
    kept = proposed = 0
    rows = max(64, BATCH // observation.cells)
    while kept < draws:
        theta = bound.draw_prior(rng, rows)
        x = bound.draw_data(rng, theta)
        accepted = np.log(rng.random(rows)) <= observation.log_law(x) - bound_on_law
        thetas.append(theta[accepted])
        tables.append(x[accepted])
        kept, proposed = kept + int(accepted.sum()), proposed + rows
        if kept < draws:
            _judge(kept, proposed, draws, observation.cells)
    return KeptDraws(
        np.concatenate(thetas)[:draws], np.concatenate(tables)[:draws], kept / proposed
    )


def _judge(kept: int, proposed: int, draws: int, cells: int) -> None:
    """Refuse a run that would not finish, with the estimate it rests on."""
    if proposed < PILOT:
        return
    rate = max(kept, 1) / proposed
    needed = draws / rate
    if needed * cells <= MOST:
        return
    about = f"about {rate:.1e}" if kept else f"below {3 / proposed:.1e} (none of {proposed:,})"
    raise InferenceError(
        f"rejection accepts {about} of its proposals: {draws:,} draws need some {needed:.1e}.",
        remedy="Use method='auto' or 'augmentation', or a more informative prior; if nothing is "
        "ever accepted, check that the prior can produce the published figures.",
    )
