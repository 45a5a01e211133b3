"""Where the public figures and bounds leave few tables, all of them are looked at.

Bounds on sums may cut the conforming tables into pieces between which no moves are proved, and the
normaliser of the release is then a sum over all of them. With a list of the tables both are easy:
a latent table is drawn from the whole list at once, with nothing to reject and nothing to connect.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.inference.cell_noise import Floats, Ints
from congenial.inference.models.counts import log_weights
from congenial.inference.models.model import BoundModel
from congenial.inference.samplers.general import General


def listed_draws(bound: BoundModel, draws: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Independent draws of (theta, x) where the parameters integrate out."""
    tables, law = _listed(bound)
    cells = bound.collapsed()
    assert cells is not None
    x = tables[_choose(rng, (law + log_weights(tables, cells).sum(axis=-1))[None], draws)[0]]
    return bound.draw_parameters(rng, x), x


class ListedTables(General):
    """Parameters by Metropolis steps, and the latent table from the list, given them."""

    words = "latent tables drawn from the list of all that are possible"
    acceptance = None  # type: ignore[assignment]

    def _begin(self) -> tuple[Any, Floats]:
        """The likeliest table, with parameters that suit it."""
        tables, law = _listed(self.bound)
        x = tables[int(law.argmax())]
        given = self.bound.has_log_prior
        theta = self.parameters(x) if given else self.bound.draw_prior(self.rng, 1)
        return np.tile(x, (self.chains, 1)), np.repeat(theta, self.chains, axis=0)

    def move_latent(self, learn: bool) -> None:  # noqa: ARG002 - nothing to learn
        """A fresh table for every chain."""
        tables, law = _listed(self.bound)
        logs = [
            law + self.bound.log_likelihood(tables, np.repeat(one[None], len(tables), axis=0))
            for one in self.theta
        ]
        chosen = _choose(self.rng, np.stack(logs), 1)[:, 0]
        self._x, self._law = tables[chosen], law[chosen]


def _listed(bound: BoundModel) -> tuple[Ints, Floats]:
    assert bound.observation.listed is not None
    return bound.observation.listed


def _choose(rng: np.random.Generator, logs: Floats, draws: int) -> Any:
    """Columns of each row with probability proportional to exp(logs), (rows, draws)."""
    mass = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    return np.stack([np.searchsorted(row, rng.random(draws) * row[-1], "right") for row in mass])
