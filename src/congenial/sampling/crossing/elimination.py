"""Crossing groups of cells: atom totals tied by linear equations, drawn exactly by elimination.

Cells are grouped into atoms; atom totals are not fixed but satisfy E T = E (totals of s). Given its
total an atom is drawn by `TreeOfSums` (its message M_A(T) weighs the total); the totals are drawn
by variable elimination. Atoms join one at a time. After some have joined, all that matters of them
is y = E_joined T_joined, which lies in span(E_joined) and span(E_rest) at once: a state of

    rank(E_joined) + rank(E_rest) - rank(E)

dimensions, at most 3 here. Messages over states are sums of positive terms over boxes, and draws go
back through them with exactly known integer weights; they are kept with the exact probability, as
in `messages`, so the law is the stated one: H = 0. Totals outside the atoms' windows have
a proposal of their own (`atom_totals`), used with a tiny probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.sampling.crossing.atom_totals import AtomTotals
from congenial.sampling.crossing.joining_order import Component, components, surely_drawn
from congenial.sampling.discrete import CellLaw
from congenial.sampling.inversion import Ints
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.cells_and_sums import NestedSums, NoisyCells
from congenial.sampling.tree.groups import checked_labels
from congenial.sampling.tree.tilts import LeafPlanner, alike
from congenial.sampling.tree.tree_of_sums import TreeOfSums, log_message

_CHUNK = 1 << 18  # cells drawn at a time: what belongs to them stays in the cache


class CrossingGroups(IntegerLaw):
    """Noisy counts m around s, bounded cell by cell, given linear equations on atom totals.

    labels: the atom of each cell (0, 1, 2, ...), -1 for a cell that keeps its count. equations: a
    matrix of integers, one row per equation and one column per atom, or a list of {atom:
    coefficient}. law, low, high: as in `TreeOfSums`; low = None for no sign constraint.
    p(m) = prod_i w(m_i - s_i) / Z on { E T(m) = E T(s), low <= m <= high }.

    The paper's case, total, female and voting-age counts of a sex by age table, has four atoms and
    one free sum.

    >>> from congenial.sampling.discrete import DoubleGeometric
    >>> from congenial.sampling.randomness import SeededRandomness
    >>> margins = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]
    >>> noisy = CrossingGroups([0, 1, 2, 3], [3, 4, 5, 6], margins, DoubleGeometric(Fraction(1)))
    >>> m = noisy.draw(SeededRandomness(2))
    >>> int(m[0] + m[1]), int(m[0] + m[2])
    (7, 8)
    """

    log_ratio_error = 0.0

    def __init__(
        self,
        labels: npt.ArrayLike,
        centre: npt.ArrayLike,
        equations: npt.ArrayLike | Sequence[Mapping[int, int]],
        law: CellLaw,
        low: npt.ArrayLike | None = 0,
        high: npt.ArrayLike | None = None,
    ) -> None:
        self._cells = NoisyCells.of_one_law(centre, law, low, high)
        self._sums = NestedSums.of_groups(checked_labels(labels))
        self.atoms = len(self._sums.parent)
        self.equations = _sparse(equations, self.atoms)
        self.parts = components(self.equations, self.atoms)
        for part in self.parts:
            if part.freedom:
                _ = part.order  # refuses, before tables are built, what no order of joining serves
        self._planner = LeafPlanner(law)
        free = low is None and high is None
        sizes = np.array([len(cells) for cells in self._sums.cells])
        if not free or not surely_drawn(self.parts, sizes, law):
            _ = self._totals  # refuses what cannot be drawn

    @cached_property
    def _given_totals(self) -> TreeOfSums:
        """Given their totals the atoms are groups, as `TreeOfSums` draws them."""
        tilts = [Fraction(0)] * self.atoms
        for part in self.parts:
            for atom, tilt in zip(part.atoms, self._tilts(part), strict=True):
                tilts[atom] = tilt
        return TreeOfSums(self._cells, self._sums, tilts)

    @cached_property
    def _totals(self) -> list[AtomTotals]:
        nodes, roots = self._given_totals.forest.nodes, self._given_totals.roots
        return [
            AtomTotals(part, [nodes[roots[a]] for a in part.atoms])
            for part in self.parts
            if part.freedom
        ]

    def _tilts(self, part: Component) -> list[Fraction]:
        """Tilts theta_A = sum over equations of lambda_e E_eA: a constant given the equations."""
        owned = [self._sums.cells[a] for a in part.atoms]
        bounds = [(self._cells.low[cells], self._cells.high[cells]) for cells in owned]
        if not part.freedom:
            return [self._planner.tilt(lows, highs) for lows, highs in bounds]
        cells = [alike(*b) for b in bounds]
        ranges = [self._planner.range(*b) for b in bounds]
        matrix = np.array(part.rows, dtype=float).reshape(-1, len(part.atoms))
        lam = np.zeros(len(matrix))
        for attempt in range(60):
            theta = lam @ matrix
            found = [self._planner.moments(c, float(t)) for c, t in zip(cells, theta, strict=True)]
            mean, variance = np.array([f[0] for f in found]), np.array([f[1] for f in found])
            curve = (matrix * variance) @ matrix.T
            step = np.linalg.lstsq(curve, -(matrix @ mean), rcond=None)[0]
            # Newton's decrement: how many standard deviations the equations are away
            if float(step @ curve @ step) <= (1.0 if attempt == 0 else 0.01):
                break
            share = 1.0
            while not all(
                a < t < b for (a, b), t in zip(ranges, (lam + share * step) @ matrix, strict=True)
            ):
                share /= 2
            lam = lam + min(share, 1.0) * step * (1.0 if share == 1.0 else 0.9)
        if not np.any(lam):
            return [Fraction(0)] * len(part.atoms)
        bits = max(1, math.ceil(math.log2(4 * math.sqrt(float(variance.max())) + 1)))
        while True:
            grid = [Fraction(round(v * 2**bits), 2**bits) for v in lam.tolist()]
            tilts = [
                sum((g * row[i] for g, row in zip(grid, part.rows, strict=True)), Fraction(0))
                for i in range(len(part.atoms))
            ]
            if all(a <= t <= b for (a, b), t in zip(ranges, tilts, strict=True)):
                return tilts
            bits += 1

    @cached_property
    def log_Z(self) -> float:
        """log of the sum of the product of weights over all conforming m; error below 1e-10."""
        terms, given = [t.log_Z for t in self._totals], self._given_totals
        for part in self.parts:
            if not part.freedom:
                terms += [log_message(given.forest, given.roots[a], 0) for a in part.atoms]
        return math.fsum(terms)

    def log_density(self, m: npt.ArrayLike) -> Any:
        """log p(m), -inf for m that does not conform; m has shape (..., cells)."""
        u = self._cells.noise(m)
        sums = self._sums.of(u)
        inside = ~np.any(u[..., self._sums.of_cell < 0], axis=-1)
        for row in self.equations:
            off = np.zeros(u.shape[:-1], dtype=np.int64)
            for atom, coefficient in row.items():
                off = off + coefficient * sums[atom]
            inside &= off == 0
        return np.where(inside, self._cells.log_weight(u) - self.log_Z, -np.inf)[()]

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        out = np.empty((n, self._cells.centre.size), dtype=np.int64)
        rows = max(1, _CHUNK // self._cells.centre.size)
        for start in range(0, n, rows):
            block = out[start : start + rows]
            again = self._fill(block, randomness, n)
            while again.size:
                fresh = np.empty((again.size, self._cells.centre.size), dtype=np.int64)
                left = self._fill(fresh, randomness, n)
                block[again] = fresh
                again = again[left]
        return out

    def _fill(self, out: Ints, randomness: Randomness, n: int) -> Ints:
        """One attempt at every row, of n in all; returns the rows to be drawn again."""
        sums = np.zeros((max(2, len(out)), self.atoms), dtype=np.int64)
        rejected: set[int] = set()
        for totals in self._totals:
            rejected |= totals.fill(sums[: len(out)], randomness)
        rejected |= set(self._given_totals.splitter.fill(out, randomness, sums, n).tolist())
        return np.array(sorted(rejected), dtype=np.int64)


def _sparse(
    equations: npt.ArrayLike | Sequence[Mapping[int, int]], atoms: int
) -> list[dict[int, int]]:
    """Equations as {atom: coefficient}, checked."""
    rows: list[dict[int, int]] = []
    listed = list(equations)  # type: ignore[arg-type]
    for given in listed:
        if isinstance(given, Mapping):
            row = dict(given)
        else:
            values = np.asarray(given)
            if values.shape != (atoms,) or not np.issubdtype(values.dtype, np.integer):
                raise StructureError(
                    f"an equation does not have one integer for each of {atoms} atoms.",
                    remedy="Give a matrix of integers, one column per atom.",
                )
            row = {i: int(values[i]) for i in np.flatnonzero(values).tolist()}
        if any(not 0 <= a < atoms for a in row):
            raise StructureError(
                "an equation names an atom that does not exist.",
                remedy=f"Use atoms 0 .. {atoms - 1}.",
            )
        rows.append({a: int(c) for a, c in row.items() if c})
    return rows
