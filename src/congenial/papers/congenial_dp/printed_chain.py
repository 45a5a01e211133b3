"""The paper's chain and rejection samplers, with what can be said about the chain without running
it.

A Metropolised independence chain proposes from one law q whatever its state and accepts by the
weights w = p/q alone. Its long-run behaviour therefore follows from the law of w under p, and p is
drawn exactly here: acceptance and effective draws are computed from exact draws, where averages
over a run of the chain miss the rare states in which it sticks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arguments import COUNT, EXACT, FLAG, check_fields, listed
from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.papers.congenial_dp import printed_chain_kernels as kernels
from congenial.papers.congenial_dp.example import EPS_CELL, PROPOSAL, SOLVED, A
from congenial.sampling.randomness import Randomness

_WORDS = 1 << 20  # fetched at a time


@dataclass(frozen=True)
class PrintedChain:
    """The paper's Algorithm 1 for a table of 2 sexes by 23 ages, like its own, given A m = A s and
    m >= 0.

    A chain that is stopped may lose more than its limit does (`reproduce congenial-dp
    stopped-chain`), so nothing is released from it.

    solved: the cells outside the index set, one per row of A, which the equations determine (they
    must do so in whole numbers). printed: draw with the paper's quantile, which lacks a -1.
    """

    table: Ints
    eps: Fraction = EPS_CELL
    eps_proposal: Fraction = PROPOSAL
    solved: tuple[int, ...] = SOLVED
    printed: bool = False

    def __post_init__(self) -> None:
        exact = {"eps": EXACT, "eps_proposal": EXACT, "printed": FLAG}
        check_fields(self, StructureError, table=listed(COUNT), solved=listed(COUNT), **exact)
        object.__setattr__(self, "table", np.asarray(self.table))
        if len(self.table) != A.shape[1] or any(cell >= A.shape[1] for cell in self.solved):
            raise StructureError(
                f"the chain is for {A.shape[1]} cells, numbered from 0, and not for "
                f"{len(self.table)} with cells {tuple(self.solved)} solved for.",
                remedy="Give the counts of 2 sexes by 23 ages, sex by sex.",
            )

    @cached_property
    def _solve(self) -> Ints:
        """Rows (cell, inverse of A on the solved cells)."""
        square = A[:, list(self.solved)].astype(float)
        if len(self.solved) != len(A) or abs(abs(np.linalg.det(square)) - 1) > 1e-9:
            raise StructureError(
                f"the equations do not determine cells {self.solved} in whole numbers.",
                remedy="Leave out one cell of each of three groups.",
            )
        inverse = np.rint(np.linalg.inv(square)).astype(np.int64)
        return np.column_stack([np.array(self.solved), inverse])

    @cached_property
    def _proposal(self) -> tuple[Any, ...]:
        a = math.exp(-float(self.eps_proposal))
        inside = np.setdiff1d(np.arange(self.table.size), self.solved)
        cells = inside[np.argsort(self.table[inside], kind="stable")]
        return kernels.decided(a), a, int(self.printed), cells, self.table, self._solve, A

    def run(
        self, randomness: Randomness, steps: int, start: Ints | None = None, trace: bool = False
    ) -> tuple[Ints, Ints, int]:
        """The chain from m = start (the table itself if not given): (l1 distance of m from the
        table after each step, states if asked for, number of accepted proposals).
        """
        state = np.zeros(self.table.size, np.int64) if start is None else start - self.table
        distance = np.empty(steps, np.int64)
        states = np.empty((steps if trace else 0, self.table.size), np.int64)
        law = (float(self.eps), float(self.eps_proposal))
        step = accepted = 0
        while step < steps:
            words = randomness.words(min(_WORDS, 32 * (steps - step) + 256))
            step, more = kernels.chain(words, self._proposal, law, state, states, distance, step)
            accepted += more
        return distance, states + self.table, accepted

    def reject(self, randomness: Randomness, draws: int) -> tuple[Ints, int]:
        """Exact independent draws by rejection from the same proposal: (tables, proposals made)."""
        if self.eps_proposal > self.eps:
            raise StructureError(
                f"the proposal (eps {self.eps_proposal}) has lighter tails than the law "
                f"({self.eps}): p/q has no useful bound.",
                remedy="Use a proposal eps of at most eps per cell.",
            )
        out = np.empty((draws, self.table.size), np.int64)
        law = (float(self.eps), float(self.eps_proposal))
        row = proposals = 0
        while row < draws:
            words = randomness.words(_WORDS)
            row, more = kernels.reject(words, self._proposal, law, out, row)
            proposals += more
        return out + self.table, proposals

    def weights(self, draws: Ints, log_Z: float) -> Floats:
        """1/w = q/p at exact draws of p, whose normaliser is log_Z."""
        u = np.abs(draws - self.table)
        outer = u[:, list(self.solved)].sum(axis=1)
        inner = u.sum(axis=1) - outer
        a = math.exp(-float(self.eps_proposal))
        inside = self.table.size - len(self.solved)
        log_Zq = inside * math.log((1 + a) / (1 - a))
        gap = float(self.eps - self.eps_proposal)
        return np.asarray(np.exp(gap * inner + float(self.eps) * outer + log_Z - log_Zq))


def acceptance(inverse_weights: Floats) -> float:
    """Long-run acceptance rate, E min(1/w, 1/w') over independent draws of p."""
    v = np.sort(inverse_weights)
    n = v.size
    return float((v * (2 * (n - np.arange(n)) - 1)).sum()) / n**2


def effective_share(inverse_weights: Floats, values: Any) -> float:
    """Effective independent draws per step for the mean of `values` (one per draw of p).

    Var g / sigma^2 with sigma^2 = 2 <f, h> - <f, f>, f = g - E g, where h solves the chain's
    Poisson equation sum_j pi_j min(v_i, v_j) (h_i - h_j) = f_i, v = 1/w. Sorted by v this is solved
    in one pass. Not an estimate from a run: only the draws of p are random.
    """
    v = np.asarray(inverse_weights, dtype=float)
    order = np.argsort(v)
    g = np.asarray(values, dtype=float)[order]
    f = g - g.mean()
    h = kernels.poisson(v[order], f)
    spread = float((f * f).mean())
    return spread / float(2 * (f * h).mean() - spread)
