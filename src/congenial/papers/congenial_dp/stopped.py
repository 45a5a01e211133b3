"""A chain that is stopped leaks: the exact loss of Algorithm 1 after t steps from the truth.

Small enough for exact transition matrices: compositions of n people into bins, given the total and
m >= 0. The chain for truth s starts at s, so after t steps its law is row s of P_s^t, and the loss
between neighbours s, s' is the largest log ratio of those rows. It tends to that of the conditional
mechanism only as t grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from congenial.sampling.inversion import Floats, Ints


@dataclass(frozen=True)
class StoppedChain:
    """Algorithm 1 on `bins` bins with total n; the last bin is solved for."""

    bins: int = 4
    people: int = 5
    eps: float = 0.5
    eps_proposal: float = 0.6

    @cached_property
    def tables(self) -> Ints:
        """All conforming tables."""
        gaps = combinations(range(self.people + self.bins - 1), self.bins - 1)
        edges = np.array([(-1, *g, self.people + self.bins - 1) for g in gaps])
        return np.asarray(np.diff(edges, axis=1) - 1)

    @cached_property
    def neighbours(self) -> list[tuple[int, int]]:
        """Ordered pairs of tables one person's move apart."""
        far = np.abs(self.tables[:, None] - self.tables[None]).sum(axis=2)
        return [(int(i), int(j)) for i, j in zip(*np.nonzero(far == 2), strict=True)]

    def transition(self, truth: int) -> Floats:
        """P of the chain whose confidential table is number `truth`."""
        u = np.abs(self.tables - self.tables[truth])
        a = math.exp(-self.eps_proposal)
        log_q = (self.bins - 1) * math.log((1 - a) / (1 + a)) - self.eps_proposal * u[:, :-1].sum(1)
        log_w = -self.eps * u.sum(axis=1) - log_q
        accept = np.exp(np.minimum(0.0, log_w[None, :] - log_w[:, None]))
        P = np.exp(log_q)[None, :] * accept
        np.fill_diagonal(P, 0.0)
        np.fill_diagonal(P, 1.0 - P.sum(axis=1))  # proposals that do not conform stay, too
        return np.asarray(P)

    def laws(self, steps: int | None) -> Floats:
        """Row s: the law of the released table when the truth is s; None for the limit."""
        if steps is None:
            far = np.abs(self.tables[:, None] - self.tables[None]).sum(axis=2)
            weight = np.exp(-self.eps * far)
            return np.asarray(weight / weight.sum(axis=1, keepdims=True))
        rows = [
            np.linalg.matrix_power(self.transition(s), steps)[s] for s in range(len(self.tables))
        ]
        return np.stack(rows)

    def loss(self, steps: int | None) -> float:
        """Largest log ratio over neighbours and released tables; infinite if a support differs."""
        law = self.laws(steps)
        with np.errstate(divide="ignore"):
            logs = np.log(law)
        return max(float(np.max(logs[i] - logs[j])) for i, j in self.neighbours)
