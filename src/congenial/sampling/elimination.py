"""Crossing groups of cells: atom totals tied by linear equations, drawn exactly by elimination.

Cells are grouped into atoms; atom totals are not fixed but satisfy E T = E (totals of s). Given its
total an atom is drawn by `TreeOfSums` (its message M_A(T) weighs the total); the totals are drawn
by variable elimination. Atoms join one at a time. After some have joined, all that matters of them
is y = E_joined T_joined, which lies in span(E_joined) and span(E_rest) at once: a state of

    rank(E_joined) + rank(E_rest) - rank(E)

dimensions, at most 3 here. Messages over states are sums of positive terms over boxes, and draws go
back through them with exactly known integer weights; they are kept with the exact probability, as
in `tree_messages`, so the law is the stated one: H = 0. Totals outside the atoms' windows have
a proposal of their own (`_Outside`), used with a tiny probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.sampling.discrete import CellLaw
from congenial.sampling.exact_decisions import below, happens
from congenial.sampling.grouped_noise import checked_labels
from congenial.sampling.inversion import _Geometric
from congenial.sampling.joining_order import Component, Step, components, surely_drawn
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness, uniform_below
from congenial.sampling.tree_messages import DONE, FACTOR, RARE, WHOLE, Node, steep
from congenial.sampling.tree_of_sums import (
    LeafPlanner,
    NestedSums,
    NoisyCells,
    TreeOfSums,
    alike,
    log_message,
)
from congenial.sampling.tree_splitter import geometric_pmf

_UNIT = 2.0**-52


class AtomTotals:
    """Draws the totals of one component's atoms, given as messages of their sums."""

    def __init__(self, part: Component, atoms: list[Node]) -> None:
        self.part, self.atoms = part, atoms
        self.steps = part.steps
        self._boxes = [part.box(j, atoms) for j in range(len(self.steps) + 1)]
        part.refuse_large(atoms)
        self.s: list[Floats] = []
        self.m: list[Floats] = [np.ones(1)]
        self.mode: list[Ints] = []
        self.units = 0
        for j, step in enumerate(self.steps):
            self._eliminate(j, step)
        self.total = float(self.s[-1][0])  # with the units of all earlier steps
        self._outside = _Outside(self)
        slack = len(self.steps) * (2.0 / RARE + 2.0**-44)
        self._check = (1 << 63) - math.ceil(slack * 2.0**63)

    @property
    def log_Z(self) -> float:
        """log of the sum over conforming totals of the product of atom messages."""
        scales = math.fsum(a.log_scale for a in self.atoms)
        return math.log(self.total) + self.units * math.log(2) + scales

    def _eliminate(self, j: int, step: Step) -> None:
        from congenial.sampling import tree_kernels

        lo, size = _box_arrays(self._boxes[j + 1])
        s = np.empty(math.prod(size.tolist()))
        mode = np.zeros(s.size, dtype=np.int64)
        atom = self.atoms[step.atom]
        tree_kernels.eliminate(self._packed(j), lo, size, self.m[j], atom.m, s, mode)
        s *= 1 + (len(atom.m) + 256) * _UNIT
        units = math.frexp(float(s.max()))[1] if j + 1 < len(self.steps) else 0
        self.units += units
        self.s.append(s)
        self.mode.append(mode)
        self.m.append(s * 2.0**-units)

    def _packed(self, j: int) -> Any:
        step, atom = self.steps[j], self.atoms[self.steps[j].atom]
        lo, size = _box_arrays(self._boxes[j])
        return (
            np.array([len(self._boxes[j]), len(self._boxes[j + 1])]), lo, size, step.grid,
            step.scale, step.turn, step.fixed_array, step.fixed is not None, atom.lo, len(atom.m),
        )  # fmt: skip

    @cached_property
    def _arrays(self) -> Any:
        """Steps, boxes and tables for the compiled loop."""
        from congenial.sampling import tree_kernels

        atoms = [self.atoms[s.atom] for s in self.steps]
        packed = [self._packed(j) for j in range(len(self.steps))]
        m_at = np.cumsum([0, *(len(m) for m in self.m)])
        w_at = np.cumsum([0, *(len(a.m) for a in atoms)])
        ints = np.array(
            [
                [*p[0], p[4], p[7], p[8], p[9], w_at[j], m_at[j], m_at[j + 1]]
                for j, p in enumerate(packed)
            ],
            dtype=np.int64,
        )
        boxes = [_box_arrays(b) for b in self._boxes]
        pad = np.ones(1)
        first, last, base, slope = tree_kernels.options(packed[-1], np.zeros(3, np.int64))
        start, guide = int(self.mode[-1][0]), np.empty(256, np.uint8)
        tree_kernels.guide_row(
            atoms[-1].m, self.m[-2], (first, last), start, (base, slope), FACTOR / self.total,
            guide,
        )  # fmt: skip
        return (
            (ints, np.stack([p[3] for p in packed])),
            (
                np.stack([b[0] for b in boxes]), np.stack([b[1] for b in boxes]),
                np.stack([p[5] for p in packed]), np.stack([p[6] for p in packed]),
            ),
            (
                np.concatenate([a.m for a in atoms]), np.concatenate([pad, *self.s]),
                np.concatenate(self.m), np.concatenate([np.zeros(1, np.int64), *self.mode]),
                guide,
            ),
        )  # fmt: skip

    def fill(self, sums: Ints, randomness: Randomness) -> set[int]:
        """Write totals of every draw into the columns of sums; return the draws rejected."""
        from congenial.sampling import tree_kernels

        n, steps = len(sums), len(self.steps)
        out = np.zeros((n, steps + 1), dtype=np.int64)
        columns = np.array([*(s.atom for s in self.steps), steps], dtype=np.int64)
        need = n * (self.part.freedom + 1) + 16
        words, task = randomness.words(need), 0
        rejected: set[int] = set()
        flags = np.empty((4096, 4), np.int64)
        while True:
            steps_, boxes, tables = self._arrays
            status, task, used, stored = tree_kernels.draw_states(
                steps_, boxes, tables, FACTOR, out, columns, words, task, flags
            )
            for draw, j, flat, i in flags[:stored].tolist():
                if i < 0 or not self._accept(j, flat, i, out[draw], randomness):
                    rejected.add(draw)
            if status == DONE:
                break
            words = np.concatenate([words[used:], randomness.words(need // 8 + 64)])
            words.flags.writeable = False
        for draw in np.flatnonzero(
            (out[:, steps] >= self._check) | (out[:, steps] < self._outside.chance)
        ).tolist():
            row = self._decide(draw in rejected, out[draw], randomness)
            if row is None:
                rejected.add(draw)
            else:
                rejected.discard(draw)
                out[draw] = row
        sums[:, self.part.atoms] = out[:, :steps]
        return rejected

    def _decide(self, rejected: bool, row: Ints, randomness: Randomness) -> Ints | None:
        """What the last word of a draw asks for: totals outside the windows, or a full check."""
        word = int(row[-1])
        if word < self._outside.chance:
            outside = self._outside.draw(randomness)
            return None if outside is None else np.array([*outside, 0], dtype=np.int64)
        if rejected:
            return None
        path = list(self._path(row))

        def log_p() -> Any:
            total = arb(0)
            for j, flat, i in path:
                if self.steps[j].fixed is not None or self._weight(j, flat, i, row) >= RARE:
                    total += self._log_factor(j, flat, i, row)
            return total

        first = word << 1 | (randomness.word() & 1)
        return row if below(int(first), 64, log_p, randomness) else None

    def _path(self, row: Ints) -> list[tuple[int, int, int]]:
        """(step, state after it, index of the total) of a draw."""
        out = []
        for j, step in enumerate(self.steps):
            state = self._state(j + 1, row)
            index = int(row[step.atom]) - self.atoms[step.atom].lo
            out.append((j, self._flat(j + 1, state), index))
        return out

    def _state(self, j: int, row: Ints) -> list[int]:
        """Coordinates of the state after j steps."""
        joined = [s.atom for s in self.steps[:j]]
        return [
            sum(self.part.rows[e][a] * int(row[a]) for a in joined)
            for e in self.part.coordinates[j]
        ]

    def _flat(self, j: int, state: list[int]) -> int:
        flat, stride = 0, 1
        for value, (lo, hi) in zip(state, self._boxes[j], strict=True):
            flat += (value - lo) * stride
            stride *= hi - lo + 1
        return flat

    def _weight(self, j: int, flat: int, i: int, row: Ints) -> int:
        atom = self.atoms[self.steps[j].atom]
        before = float(self.m[j][self._flat(j, self._state(j, row))])
        return int(float(atom.m[i]) * before * (FACTOR / float(self.s[j][flat]))) + 1

    def _log_factor(self, j: int, flat: int, i: int, row: Ints) -> Any:
        """log of weight x message before / (message x probability of the choice)."""
        atom, step = self.atoms[self.steps[j].atom], self.steps[j]
        before = float(self.m[j][self._flat(j, self._state(j, row))])
        q = arb(1)
        if step.fixed is None:
            q = arb(self._weight(j, flat, i, row)) / 2**WHOLE
        return (arb(float(atom.m[i])) * arb(before) / (arb(float(self.s[j][flat])) * q)).log()

    def _accept(self, j: int, flat: int, i: int, row: Ints, randomness: Randomness) -> bool:
        return happens(lambda: self._log_factor(j, flat, i, row), randomness)


def _box_arrays(box: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    lo, size = np.zeros(3, np.int64), np.ones(3, np.int64)
    for k, (a, b) in enumerate(box):
        lo[k], size[k] = a, b - a + 1
    return lo, size


class _Outside:
    """Totals of which at least one is outside its atom's window.

    With probability `chance`/2^63 = eta a draw of totals T is taken from here instead: the free
    atoms independently ~ M_A, or all but one of them and that one ~ the tails of M_A; the others
    follow from the equations. It counts only if T is outside, and then with probability w(T) /
    (kappa r(T)), kappa = Z eta/(1 - eta), r its exact probability: so inside and outside have the
    same constant. eta is chosen so that kappa >= sup over T outside of w/r, which the masses of the
    tails bound.
    """

    def __init__(self, totals: AtomTotals) -> None:
        self.totals, atoms = totals, totals.atoms
        self.free, self.solved = totals.part.free, totals.part.solved
        masses = [float(v.m.sum()) * (1 + 2.0**-30) + _tail_mass(v) for v in atoms]
        tops = math.prod(atoms[a].top for a in self.solved)
        worst = 0.0
        for a in self.free:
            rest = math.prod(masses[b] for b in self.free if b != a)
            worst = max(worst, _tail_mass(atoms[a]) * rest * tops)
        for a in self.solved:
            edge = atoms[a].beyond / atoms[a].top
            worst = max(worst, edge * tops * math.prod(masses[b] for b in self.free))
        scale = totals.total * 2.0**totals.units
        ratio = 1.01 * (1 + len(self.free)) * worst / scale
        self.chance = 0
        if worst > 0:
            bits = max(0, math.ceil(63 + math.log2(ratio)) + 1)
            if bits > 62:
                raise StructureError(
                    "crossing groups are too many for windows of this size.",
                    remedy="Publish fewer crossing totals exactly, or use a larger epsilon.",
                )
            self.chance = 1 << bits

    def draw(self, randomness: Randomness) -> list[int] | None:
        """Totals outside the windows, or None (rejected)."""
        atoms = self.totals.atoms
        which = uniform_below(1 + len(self.free), randomness)
        values: dict[int, int] = {}
        for k, a in enumerate(self.free):
            values[a] = _draw_message(atoms[a], k + 1 == which, randomness)
        cells = self.totals.part.solve(values)
        if cells is None or all(v.lo <= x <= v.hi for v, x in zip(atoms, cells, strict=True)):
            return None
        if any(v.vanishes(x) for v, x in zip(atoms, cells, strict=True)):
            return None
        return cells if happens(lambda: self._log_ratio(cells), randomness) else None

    def _log_ratio(self, found: list[int]) -> Any:
        atoms = self.totals.atoms
        eta = Fraction(self.chance, 1 << 63)
        plain = {a: _message_pmf(atoms[a], found[a], False) for a in self.free}
        r = arb(1)
        for a in self.free:
            r *= plain[a]
        for a in self.free:
            term = _message_pmf(atoms[a], found[a], True)
            for b in self.free:
                term *= plain[b] if b != a else 1
            r += term
        r /= 1 + len(self.free)
        w = arb(1)
        for v, x in zip(atoms, found, strict=True):
            w *= v.value(x)
        ratio = eta / (1 - eta)
        kappa = arb(self.totals.total) * arb(2) ** self.totals.units
        kappa *= arb(ratio.numerator) / ratio.denominator
        return (w / (kappa * r)).log()


def _tail_mass(v: Node) -> float:
    tails = ((v.c_lo, v.t_lo), (v.c_hi, v.t_hi))
    return sum(c / steep(t) * (1 + 2.0**-40) for c, t in tails if c > 0)


def _message_parts(v: Node, tails_only: bool) -> list[tuple[int, Fraction | None, int, int]]:
    """Parts of a law ~ M, as (weight, rate of a geometric tail or None, first point, direction)."""
    parts: list[tuple[float, Fraction | None, int, int]] = []
    if not tails_only:
        parts = [(w, None, v.lo + i, 1) for i, w in enumerate(v.m.tolist())]
    for c, t, edge, step in ((v.c_lo, v.t_lo, v.lo, -1), (v.c_hi, v.t_hi, v.hi, 1)):
        if c > 0:
            parts.append((c / math.expm1(t), Fraction(t), edge + step, step))
    scale = 2.0**60 / max(math.fsum(p[0] for p in parts), 1e-300)
    return [(int(p[0] * scale) + 1, *p[1:]) for p in parts]


def _draw_message(v: Node, tails_only: bool, randomness: Randomness) -> int:
    parts = _message_parts(v, tails_only and _tail_mass(v) > 0)
    r = uniform_below(sum(p[0] for p in parts), randomness)
    for weight, rate, first, step in parts:
        if r < weight:
            return (
                first
                if rate is None
                else first + step * int(_Geometric(rate).draw(randomness, 1)[0])
            )
        r -= weight
    raise AssertionError("r is below the sum of all weights")


def _message_pmf(v: Node, x: int, tails_only: bool) -> Any:
    parts, total = _message_parts(v, tails_only and _tail_mass(v) > 0), arb(0)
    for weight, rate, first, step in parts:
        far = (x - first) * step
        if rate is None:
            total += weight if far == 0 else 0
        elif far >= 0:
            total += weight * geometric_pmf(rate, far)
    return total / sum(p[0] for p in parts)


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
            moments = [
                self._planner.moments(c, float(t)) for c, t in zip(cells, theta, strict=True)
            ]
            mean, variance = np.array([f[0] for f in moments]), np.array([f[1] for f in moments])
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
        terms, totals_given = [t.log_Z for t in self._totals], self._given_totals
        for part in self.parts:
            if not part.freedom:
                terms += [
                    log_message(totals_given.forest, totals_given.roots[a], 0) for a in part.atoms
                ]
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
    for equation in listed:
        if isinstance(equation, Mapping):
            row = dict(equation)
        else:
            values = np.asarray(equation)
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
