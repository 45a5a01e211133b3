"""A heat-bath chain for noise given any whole-number equations: NOT certified.

p(u) ~ prod_i w(u_i) on { u whole : E u = 0 }. The moves are a basis of that lattice (differences
inside a group, and a basis of the equations' integer kernel between groups), so they connect it:
every conforming u is a whole combination of them, and no sign stands in the way. The law is the
chain's limit; nothing is proved about how close a finite run is. The chain starts at u = 0,
whatever the data are, so that a run leaks nothing about where it started; but its law is not the
stated one, and a release drawn from it is labelled "uncertified chain".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.figures.integers import kernel
from congenial.sampling.discrete import CellLaw, DoubleGeometric
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness, open_uniform


class LatticeChain(IntegerLaw):
    """`sweeps` heat-bath sweeps over a lattice basis of the noise on tied groups, from zero.

    labels: the group of each cell. equations: rows of whole coefficients, one column per group.
    Nothing is proved of a draw, which the two errors say.
    """

    log_ratio_error = math.inf
    log_Z: float | None = None

    def __init__(self, cell: CellLaw, labels: Ints, equations: Ints) -> None:
        self._l1 = isinstance(cell, DoubleGeometric)
        if isinstance(cell, DoubleGeometric):
            self._rate = float(cell.eps)
        else:
            self._rate = 1 / (2 * float(cell.sigma2))
        self._labels, self._equations = labels, equations
        self._moves = lattice_moves(labels, equations)
        self.sweeps = 12 + 2 * len(self._moves)
        self.steps = self.sweeps * len(self._moves)  # of one draw

    def log_density(self, u: Any) -> Any:
        """Of the chain's limit, up to a constant; u has shape (..., cells)."""
        noise = np.asarray(u)
        sums = np.zeros((*noise.shape[:-1], self._equations.shape[1]), dtype=np.int64)
        np.add.at(np.moveaxis(sums, -1, 0), self._labels, np.moveaxis(noise, -1, 0))
        weight = -self._rate * (np.abs(noise) if self._l1 else noise * noise).sum(axis=-1)
        return np.where(np.any(sums @ self._equations.T, axis=-1), -np.inf, weight)

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n approximate draws, shape (n, cells): runs of their own, each from zero."""
        from congenial.sampling.lattice_kernels import run_chain

        moves, cells = self._moves, self._moves.shape[1]
        out = np.zeros((n, cells), dtype=np.int64)
        rows = max(1, (1 << 22) // max(1, self.sweeps * len(moves)))
        for start in range(0, n, rows):
            block = out[start : start + rows]
            words = randomness.words(len(block) * self.sweeps * len(moves))
            uniform: Floats = open_uniform(words)
            run_chain(block, moves, self._rate, self._l1, uniform.reshape(len(block), -1))
        return out


def lattice_moves(labels: Ints, equations: Ints) -> Ints:
    """A basis of { u whole : the equations hold for its group sums }, one row per vector."""
    cells, moves = len(labels), []
    first = np.array([np.flatnonzero(labels == g)[0] for g in range(equations.shape[1])])
    for g in range(equations.shape[1]):
        for cell in np.flatnonzero(labels == g)[1:]:
            move = np.zeros(cells, dtype=np.int64)
            move[first[g]], move[cell] = 1, -1
            moves.append(move)
    for row in kernel(equations).basis:
        move = np.zeros(cells, dtype=np.int64)
        move[first] = row
        moves.append(move)
    return np.array(moves, dtype=np.int64).reshape(-1, cells)
