"""A heat-bath chain for noise given any whole-number equations: NOT certified.

p(u) ~ prod_i w(u_i) on { u whole : E u = 0 }. The moves are a basis of that lattice (differences
inside a group, and a basis of the equations' integer kernel between groups), so they connect it:
every conforming u is a whole combination of them, and no sign stands in the way. The law is the
chain's limit; nothing is proved about how close a finite run is. The chain starts at u = 0,
whatever the data are, so that a run leaks nothing about where it started; but its law is not the
stated one, and a release drawn from it is labelled "uncertified chain".
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from congenial.figures.integers import kernel
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.families import cell_law
from congenial.sampling.inversion import Floats, Ints
from congenial.sampling.randomness import Randomness, open_uniform


class LatticeChain:
    """`sweeps` heat-bath sweeps over a lattice basis of the noise on tied groups, from zero.

    labels: the group of each cell. equations: rows of whole coefficients, one column per group.
    """

    log_Z: float | None = None

    def __init__(self, family: str, scale: Fraction, labels: Ints, equations: Ints) -> None:
        self._l1 = isinstance(cell_law(family, scale), DoubleGeometric)
        self._rate = float(scale) if self._l1 else 1 / (2 * float(scale))
        self._moves = lattice_moves(labels, equations)
        self.sweeps = 12 + 2 * len(self._moves)
        self.steps = self.sweeps * len(self._moves)  # of one draw

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
