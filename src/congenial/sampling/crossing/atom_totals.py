"""Totals of atoms tied by equations: messages over states, and draws back through them.

The argument is in `elimination`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from congenial.errors import StructureError
from congenial.sampling.crossing.joining_order import Component, Step
from congenial.sampling.discrete import Floats
from congenial.sampling.inversion import Ints, _bernoulli, _Geometric
from congenial.sampling.randomness import Randomness, uniform_below
from congenial.sampling.tree.messages import FACTOR, Node, steep
from congenial.sampling.tree.split_constants import DONE, RARE, WHOLE
from congenial.sampling.tree.split_law import geometric_pmf

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
        from congenial.sampling.crossing import state_kernels

        lo, size = _box_arrays(self._boxes[j + 1])
        s = np.empty(math.prod(size.tolist()))
        mode = np.zeros(s.size, dtype=np.int64)
        atom = self.atoms[step.atom]
        state_kernels.eliminate(self._packed(j), lo, size, self.m[j], atom.m, s, mode)
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
        from congenial.sampling.crossing import state_kernels
        from congenial.sampling.tree import split_kernels

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
        first, last, base, slope = state_kernels.options(packed[-1], np.zeros(3, np.int64))
        start, guide = int(self.mode[-1][0]), np.empty(256, np.uint8)
        split_kernels.guide_row(
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
        from congenial.sampling.crossing import state_kernels

        n, steps = len(sums), len(self.steps)
        out = np.zeros((n, steps + 1), dtype=np.int64)
        columns = np.array([*(s.atom for s in self.steps), steps], dtype=np.int64)
        need = n * (self.part.freedom + 1) + 16
        words, task = randomness.words(need), 0
        rejected: set[int] = set()
        flags = np.empty((4096, 4), np.int64)
        while True:
            steps_, boxes, tables = self._arrays
            status, task, used, kept = state_kernels.draw_states(
                steps_, boxes, tables, FACTOR, out, columns, words, task, flags
            )
            for draw, j, flat, i in flags[:kept].tolist():
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
        return row if _bernoulli(log_p, randomness, first) else None

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
        return _bernoulli(lambda: self._log_factor(j, flat, i, row), randomness)


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
        found = self.totals.part.solve(values)
        if found is None or all(v.lo <= x <= v.hi for v, x in zip(atoms, found, strict=True)):
            return None
        if any(v.vanishes(x) for v, x in zip(atoms, found, strict=True)):
            return None
        return found if _bernoulli(lambda: self._log_ratio(found), randomness) else None

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
