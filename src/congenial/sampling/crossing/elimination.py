"""Crossing groups of cells: atom totals tied by linear equations, drawn exactly by elimination.

Cells are grouped into atoms; atom totals are not fixed but satisfy E T = E (totals of s). Given its
total an atom is drawn as in `bounded` (its message M_A(T) weighs the total); the totals are drawn
by variable elimination. Atoms join one at a time. After some have joined, all that matters of them
is y = E_joined T_joined, which lies in span(E_joined) and span(E_rest) at once: a state of

    rank(E_joined) + rank(E_rest) - rank(E)

dimensions, at most 3 here. Messages over states are sums of positive terms over boxes, and draws go
back through them with exactly known integer weights; they are kept with the exact probability, as
in `messages`, so the law is the stated one: H = 0, tau = 0. Totals outside the atoms' windows have
a proposal of their own (`totals`), used with a tiny probability.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.sampling.crossing.atom_totals import AtomTotals
from congenial.sampling.crossing.joining_order import Component, components
from congenial.sampling.inversion import Ints
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.bounded import (
    LeafPlanner,
    alike,
    log_message,
    log_weight,
    noise_bounds,
    noise_of,
)
from congenial.sampling.tree.groups import checked_labels
from congenial.sampling.tree.messages import Forest, Law
from congenial.sampling.tree.splitter import Splitter

_CHUNK = 1 << 18  # cells drawn at a time: what belongs to them stays in the cache


class CrossingGroups:
    """Noisy counts m around s, bounded cell by cell, given linear equations on atom totals.

    labels: the atom of each cell (0, 1, 2, ...), -1 for a cell that keeps its count. equations: a
    matrix of integers, one row per equation and one column per atom, or a list of {atom:
    coefficient}. law, low, high: as in `BoundedGroups`; low = None for no sign constraint.
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
    mass_lost = 0.0

    def __init__(
        self,
        labels: npt.ArrayLike,
        centre: npt.ArrayLike,
        equations: npt.ArrayLike | Sequence[Mapping[int, int]],
        law: Law,
        low: npt.ArrayLike | None = 0,
        high: npt.ArrayLike | None = None,
    ) -> None:
        self.labels = checked_labels(labels)
        self.centre = np.array(centre, dtype=np.int64).reshape(-1)
        self.law = law
        self.bounds = noise_bounds(self.centre, low, high, self.labels.size)
        self.atoms = int(self.labels.max()) + 1
        self.equations = _sparse(equations, self.atoms)
        self._forest, self._planner = Forest(), LeafPlanner(law)
        members = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[members], np.arange(self.atoms + 1))
        self._cells = [members[a:b] for a, b in itertools.pairwise(starts)]
        empty = [a for a, cells in enumerate(self._cells) if cells.size == 0]
        if empty:
            raise StructureError(
                f"atom {empty[0]} has no cell.",
                remedy="Number the atoms 0, 1, 2, ... without gaps.",
            )
        self.parts = components(self.equations, self.atoms)
        self._build()

    def _build(self) -> None:
        roots, order = [0] * self.atoms, [np.empty(0, np.int64)] * self.atoms
        for part in self.parts:
            for atom, tilt in zip(part.atoms, self._tilts(part), strict=True):
                cells = self._cells[atom]
                lows, highs = self._planner.shared_bounds(
                    self.bounds[0][cells], self.bounds[1][cells], tilt
                )
                arranged = np.lexsort((highs, lows))
                roots[atom] = self._planner.message(
                    self._forest, lows[arranged], highs[arranged], tilt
                )
                order[atom] = cells[arranged]
        self._roots = roots
        self._splitter = Splitter(
            self._forest, roots, np.concatenate(order), self.centre, self.bounds
        )
        nodes = self._forest.nodes
        self._totals = [
            AtomTotals(part, [nodes[roots[a]] for a in part.atoms])
            for part in self.parts
            if part.freedom
        ]

    def _tilts(self, part: Component) -> list[Fraction]:
        """Tilts theta_A = sum over equations of lambda_e E_eA: a constant given the equations."""
        owned = [self._cells[a] for a in part.atoms]
        bounds = [(self.bounds[0][cells], self.bounds[1][cells]) for cells in owned]
        if not part.freedom:
            return [self._planner.tilt(lows, highs, 0) for lows, highs in bounds]
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
        terms = [t.log_Z for t in self._totals]
        for part in self.parts:
            if not part.freedom:
                terms += [log_message(self._forest, self._roots[a], 0) for a in part.atoms]
        return math.fsum(terms)

    def atom_sums(self, u: Ints) -> Ints:
        """Sums over atoms, shape (atoms, ...), of values of shape (..., cells)."""
        free = self.labels >= 0
        sums = np.zeros((self.atoms, *u.shape[:-1]), dtype=np.int64)
        np.add.at(sums, self.labels[free], np.moveaxis(u[..., free], -1, 0))
        return sums

    def log_density(self, m: npt.ArrayLike) -> Any:
        """log p(m), -inf for m that does not conform; m has shape (..., cells)."""
        u = noise_of(m, self.centre)
        sums = self.atom_sums(u)
        inside = np.all((u >= self.bounds[0]) & (u <= self.bounds[1]), axis=-1)
        inside &= ~np.any(u[..., self.labels < 0], axis=-1)
        for row in self.equations:
            off = np.zeros(u.shape[:-1], dtype=np.int64)
            for atom, coefficient in row.items():
                off = off + coefficient * sums[atom]
            inside &= off == 0
        return np.where(inside, log_weight(self.law, u) - self.log_Z, -np.inf)[()]

    def draw(self, randomness: Randomness) -> Ints:
        """One exact draw: a count per cell."""
        one: Ints = self.draw_many(randomness, 1)[0]
        return one

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        out = np.empty((n, self.labels.size), dtype=np.int64)
        rows = max(1, _CHUNK // self.labels.size)
        for start in range(0, n, rows):
            block = out[start : start + rows]
            again = self._fill(block, randomness, n)
            while again.size:
                fresh = np.empty((again.size, self.labels.size), dtype=np.int64)
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
        rejected |= set(self._splitter.fill(out, randomness, sums, n).tolist())
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
