"""Draws sums down a tree of messages and keeps them with their exact probability.

The argument is in `messages`. Here are the compiled fast path, the checks of flagged draws in ball
arithmetic, and the slow path for outcomes outside the windows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from congenial.errors import StructureError
from congenial.sampling import _splits
from congenial.sampling.discrete import Floats
from congenial.sampling.exact import Ints, _bernoulli, _Geometric, ball
from congenial.sampling.messages import FACTOR, Forest, Node, lumps_of
from congenial.sampling.randomness import Randomness, Words

_CHUNK = 1 << 21  # cells drawn at a time
_GUIDE_ROWS = 1 << 18  # 64 MB of guides at most
_GUIDED = 2.0**-20  # rows of sums rarer than this have no guide


@dataclass(frozen=True, eq=False)
class _Flat:
    left: Ints
    right: Ints
    lo: Ints
    size: Ints
    at: Ints
    m: Floats
    s: Floats
    mode: npt.NDArray[np.int32]

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self.left, self.right, self.lo, self.size, self.at, self.m, self.s, self.mode
        )  # fmt: skip

    @classmethod
    def of(cls, nodes: list[Node]) -> _Flat:
        size = np.array([len(v.m) for v in nodes], dtype=np.int64)
        mode = np.zeros(int(size.sum()), np.int32)
        at = np.cumsum(size) - size
        for start, v in zip(at, nodes, strict=True):
            if v.left >= 0:
                a, b = nodes[v.left], nodes[v.right]
                mode[start : start + len(v.m)] = _splits.modes(
                    a.m, b.m, v.lo - a.lo - b.lo, len(v.m)
                )
        return cls(
            np.array([v.left for v in nodes], dtype=np.int64),
            np.array([v.right for v in nodes], dtype=np.int64),
            np.array([v.lo for v in nodes], dtype=np.int64),
            size,
            at,
            np.concatenate([v.m for v in nodes]),
            np.concatenate([v.s for v in nodes]),
            mode,
        )


@dataclass(frozen=True, eq=False)
class _Guides:
    """For frequent rows: the outcome by the first byte, or 255 where a byte does not decide."""

    first: Ints  # x of a node's first row
    rows: Ints
    at: Ints
    base: Ints  # y for code 0 of a row
    table: npt.NDArray[np.uint8]

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.first, self.rows, self.at, self.base, self.table

    @classmethod
    def of(cls, nodes: list[Node], flat: _Flat, wanted: bool) -> _Guides:
        first, rows = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
        for t, v in enumerate(nodes):
            if wanted and v.left >= 0:
                often = np.flatnonzero(v.m >= _GUIDED * v.m.max())
                first[t], rows[t] = v.lo + often[0], often[-1] - often[0] + 1
        if rows.sum() > _GUIDE_ROWS:
            rows[:] = 0
        at = np.cumsum(rows) - rows
        base = np.empty(int(rows.sum()), np.int64)
        table = np.empty(int(rows.sum()) * 256, np.uint8)
        _splits.build_guides(flat.arrays, (first, rows, at, base, table), FACTOR)
        return cls(first, rows, at, base, table)


class _Tape:
    """Words of a draw for the slow path: those the compiled loop saw, then fresh ones."""

    def __init__(self, words: Words, randomness: Randomness) -> None:
        self._words, self._randomness, self.used = words, randomness, 0
        self._bytes: list[int] = []

    def word(self) -> int:
        self.used += 1
        if self.used <= len(self._words):
            return int(self._words[self.used - 1])
        return self._randomness.word()

    def byte(self) -> int:
        if not self._bytes:
            word = self.word()
            self._bytes = [(word >> 8 * i) & 255 for i in range(8)]
        return self._bytes.pop(0)

    def last(self) -> int | None:
        """The 64 bits that decide over all common factors; None if the first 16 accept."""
        if len(self._bytes) < 2:
            self._bytes = []
        low = self.byte()
        bits = low | self.byte() << 8
        if bits != 0xFFFF:
            return None
        return bits << 48 | self.word() >> 16


class Splitter:
    """Draws leaves given the sums of some roots, exactly (see the module).

    order: for each leaf, roots in turn and leaves from left to right, the cell of the output it
    goes to, or -1. centre: what a leaf is added to, per cell. bounds: least and largest leaf, per
    cell, for bounds that lie outside the windows of shared leaves.
    """

    def __init__(
        self,
        forest: Forest,
        roots: list[int],
        order: npt.ArrayLike,
        centre: Ints,
        bounds: tuple[Ints, Ints] | None = None,
    ) -> None:
        self.nodes, self.centre, self._bounds = forest.nodes, centre, bounds
        self.roots: Ints = np.array(roots, dtype=np.int64)
        self.order: Ints = np.array(order, dtype=np.int64)
        self._flat = _Flat.of(forest.nodes)
        hidden = np.flatnonzero(self.order < 0)
        slots = self.order.copy()
        slots[hidden] = centre.size + np.arange(hidden.size)
        spare = centre.size + hidden.size
        program, of_root = _splits.build_program(
            self.roots, self._flat.left, self._flat.right, slots, spare,
            4 + max((forest.height(r) for r in roots), default=0),
        )  # fmt: skip
        self._plan = (program, of_root, centre, spare + len(program))
        self._guides: _Guides | None = None
        self._count = 2 * max(1, self.order.size)
        slack = max(v.slack for v in self.nodes) if self.nodes else 0.0
        self.slack = self._count * (slack + 1.0 / _splits.RARE)
        if self.slack >= 2.0**-17:
            raise StructureError(
                f"a table of {centre.size} cells is too large for one draw.",
                remedy="Split it at a mandated total.",
            )
        self._check = (1 << 64) - math.ceil(2 * self.slack * 2.0**64)

    def fill(self, out: Ints, randomness: Randomness, sums: Ints) -> Ints:
        """Fill out, shape (n, cells), with n draws; return the numbers of those rejected.

        sums: shape (n or 1, roots). A rejected draw (a share of about 2^-25) is to be drawn again
        from scratch, together with whatever its sums were drawn from.
        """
        n = len(out)
        if self.order.size == 0 or n == 0:
            out[:] = self.centre
            return np.empty(0, np.int64)
        guides = self._guides_for(n)
        rejected: set[int] = set()
        task = 0
        per_draw = self.order.size * (10 if guides.table.size else 64) // 64 + 3
        words = randomness.words(min(n * per_draw + 64, max(1 << 20, 2 * per_draw)))
        flags = np.empty((4096 + self.order.size // 64, 4), np.int64)
        while True:
            status, done, used, kept = _splits.draw_down(
                out, sums, self._plan, self._flat.arrays, guides.arrays,
                (FACTOR, np.uint64(self._check)), words, task, flags,
            )  # fmt: skip
            rejected |= self._checked(out, sums, flags[:kept], randomness)
            stuck, task = done == task, done
            if status == _splits.DONE:
                return np.array(sorted(rejected), dtype=np.int64)
            if status == _splits.SLOW:
                tape = _Tape(words[used:], randomness)
                row = sums[task if len(sums) > 1 else 0]
                leaves = self._slow_draw(tape, randomness, row)
                if leaves is not None:
                    shown = self.order >= 0
                    out[task] = self.centre
                    out[task, self.order[shown]] += leaves[shown]
                if leaves is None or not self._allowed(out[task] - self.centre):
                    rejected.add(task)
                used, task = used + tape.used, task + 1
                words = words[min(used, words.size) :]
                continue
            if stuck:
                flags = np.empty((2 * len(flags), 4), np.int64)
            more = min((n - task) * per_draw + 64, max(1 << 20, 2 * per_draw))
            words = np.concatenate([words[used:], randomness.words(more)])
            words.flags.writeable = False

    def draw_all(self, randomness: Randomness, n: int, sums: Ints) -> Ints:
        """n exact draws given fixed sums, shape (1, roots); rejected ones are drawn again."""
        rows = max(1, _CHUNK // max(1, self.centre.size))
        out = np.empty((n, self.centre.size), dtype=np.int64)
        for start in range(0, n, rows):
            block = out[start : start + rows]
            again = self.fill(block, randomness, sums)
            while again.size:
                fresh = np.empty((again.size, self.centre.size), dtype=np.int64)
                left = self.fill(fresh, randomness, sums)
                block[again] = fresh
                again = again[left]
        return out

    def _allowed(self, u: Ints) -> bool:
        if self._bounds is None:
            return True
        return bool(np.all((u >= self._bounds[0]) & (u <= self._bounds[1])))

    def _guides_for(self, n: int) -> _Guides:
        """Guides, made once enough is drawn to pay for them; draws are exact with or without."""
        rows = sum(len(v.m) for v in self.nodes)
        if self._guides is None and rows <= n * self._count:
            self._guides = _Guides.of(self.nodes, self._flat, True)
        return self._guides or _Guides.of(self.nodes, self._flat, False)

    # --- the exact factors -----------------------------------------------------------------------

    def _checked(self, out: Ints, sums: Ints, flags: Ints, randomness: Randomness) -> set[int]:
        """Decide flagged draws; return those to be rejected."""
        rejected = set()
        for task, t, x, y in flags.tolist():
            if t >= 0:
                ok = _bernoulli(partial(self._log_split, t, x, y), randomness)
            else:
                row = sums[task if len(sums) > 1 else 0]
                leaves = np.where(self.order >= 0, (out[task] - self.centre)[self.order], 0)
                ok = self._accept_all(self._check + x, leaves, row, randomness)
            if not ok:
                rejected.add(task)
        return rejected

    def _accept_all(self, word: int, leaves: Ints, row: Ints, randomness: Randomness) -> bool:
        """Whether U, whose first word is given, is below the product of all common factors."""
        splits, ends = self._walk(leaves, row)
        common = [v for v in splits if self._is_common(*v)]

        def log_p() -> Any:
            total = arb(0)
            for t, x, y in common:
                total += self._log_split(t, x, y)
            for t, u in ends:
                if self.nodes[t].lo <= u <= self.nodes[t].hi:
                    total += self._log_leaf(t, u)
            return total

        return _bernoulli(log_p, Prefixed(word, randomness))

    def _walk(
        self, leaves: Ints, row: Ints
    ) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
        """All (node, x, y) and (leaf, u) of a draw, from its leaves; a leaf that is not part of
        the output has what is left of the sum.
        """
        splits: list[tuple[int, int, int]] = []
        ends: list[tuple[int, int]] = []
        at = 0

        def below(t: int, x: int) -> None:
            nonlocal at
            v = self.nodes[t]
            if v.left < 0:
                ends.append((t, x))
                at += 1
                return
            width = self._widths[v.left]
            y = int(leaves[at : at + width].sum())
            if np.any(self.order[at : at + width] < 0):
                y = x - int(leaves[at + width : at + self._widths[t]].sum())
            splits.append((t, x, y))
            below(v.left, y)
            below(v.right, x - y)

        for root, x in zip(self.roots.tolist(), row.tolist(), strict=True):
            below(root, x)
        return splits, ends

    @cached_property
    def _widths(self) -> list[int]:
        """Leaves below each node."""
        widths: list[int] = []
        for v in self.nodes:
            widths.append(1 if v.left < 0 else widths[v.left] + widths[v.right])
        return widths

    def _weight(self, t: int, x: int, y: int) -> int:
        """n(y) as the compiled loop computes it, or 0 outside the windows."""
        v = self.nodes[t]
        a, b = self.nodes[v.left], self.nodes[v.right]
        z = x - y
        if not (v.lo <= x <= v.hi and a.lo <= y <= a.hi and b.lo <= z <= b.hi):
            return 0
        factor = FACTOR / float(v.s[x - v.lo])
        return int(float(a.m[y - a.lo]) * float(b.m[z - b.lo]) * factor) + 1

    def _is_common(self, t: int, x: int, y: int) -> bool:
        return self._weight(t, x, y) >= _splits.RARE

    def _log_split(self, t: int, x: int, y: int) -> Any:
        """log of the factor of one split: e^(-eps |x|) M_left M_right / (M 2^units q)."""
        v = self.nodes[t]
        a, b = self.nodes[v.left], self.nodes[v.right]
        n = self._weight(t, x, y)
        q = arb(n) / 2**_splits.WHOLE if n else self._outside(t, x, y)
        ratio = a.value(y) * b.value(x - y) / (v.value(x) * arb(2) ** v.units * q)
        return ratio.log() - ball(v.eps * abs(x))

    def _log_leaf(self, t: int, u: int) -> Any:
        """log of w(u) / M(u) for a leaf inside its bounds."""
        v = self.nodes[t]
        assert v.leaf is not None
        return ball(v.leaf.exponent(u) - v.leaf.exponent(v.leaf.mode)) - v.value(u).log()

    # --- outside the windows ---------------------------------------------------------------------

    def _slow_draw(self, tape: _Tape, randomness: Randomness, row: Ints) -> Ints | None:
        """One draw by the same rules and words as the compiled loop, windows or not; None if
        rejected.
        """
        leaves: list[int] = []
        factors: list[tuple[int, int, int]] = []
        outside: list[tuple[int, int]] = []
        for root, total in zip(self.roots.tolist(), row.tolist(), strict=True):
            stack = [(root, total)]
            while stack:
                t, x = stack.pop()
                v = self.nodes[t]
                if v.vanishes(x):
                    return None
                if v.left < 0:
                    if not (v.lo <= x <= v.hi):
                        outside.append((t, x))
                    leaves.append(x)
                    continue
                y = self._split(t, x, tape, randomness)
                if y is None:
                    return None
                if not self._is_common(t, x, y):
                    factors.append((t, x, y))
                stack += [(v.right, x - y), (v.left, y)]
        drawn = np.array(leaves, dtype=np.int64)
        last = tape.last()
        for t, u in outside:
            leaf = self.nodes[t].leaf
            assert leaf is not None
            if not leaf.allows(u):
                return None
        for t, x, y in factors:
            if not _bernoulli(partial(self._log_split, t, x, y), randomness):
                return None
        for t, u in outside:
            if not _bernoulli(partial(self._log_leaf, t, u), randomness):
                return None
        if last is not None and last >= self._check:
            return drawn if self._accept_all(last, drawn, row, randomness) else None
        return drawn

    def _split(self, t: int, x: int, tape: _Tape, randomness: Randomness) -> int | None:
        """y given x at one node, in the words of the compiled loop; None if rejected."""
        v = self.nodes[t]
        if not v.lo <= x <= v.hi:
            return self._split_outside(t, x, randomness)
        a, b = self.nodes[v.left], self.nodes[v.right]
        guides = self._guides
        g = x - int(guides.first[t]) if guides else -1
        start = int(self._flat.mode[self._flat.at[t] + x - v.lo])
        if guides and 0 <= g < guides.rows[t]:
            byte = tape.byte()
            code = int(guides.table[(int(guides.at[t]) + g) * 256 + byte])
            if code < 255:
                return a.lo + start + code - 127
            shift = _splits.WHOLE - 8
            r = byte << shift | tape.word() >> (64 - shift)
        else:
            r = tape.word() >> (64 - _splits.WHOLE)
        j = x - a.lo - b.lo
        first, last = max(0, j - len(b.m) + 1), min(len(a.m) - 1, j)
        factor = FACTOR / float(v.s[x - v.lo])
        y, _, before = _splits.scan(a.m, b.m, (first, last), start, (j, -1), factor, r)
        if y >= 0:
            return a.lo + int(y)
        return self._lump(t, x, r - int(before), randomness)

    def _lump_weights(self, t: int, x: int) -> list[tuple[int, float, int, bool, int]]:
        v = self.nodes[t]
        factor = FACTOR / float(v.s[x - v.lo])
        lumps = lumps_of(self.nodes[v.left], self.nodes[v.right])
        return [(int(lump[0] * factor) + 1, *lump[1:]) for lump in lumps]

    def _lump(self, t: int, x: int, r: int, randomness: Randomness) -> int | None:
        """An outcome with one child outside its window, or None (the room left for rounding)."""
        for weight, rate, edge, is_left, step in self._lump_weights(t, x):
            if r < weight:
                far = edge + step * int(_Geometric(Fraction(rate)).draw(randomness, 1)[0])
                return far if is_left else x - far
            r -= weight
        return None

    def _split_outside(self, t: int, x: int, randomness: Randomness) -> int:
        """y given x beyond the window of its node: law ~ M_left(y) e^(t y), t Chernoff's."""
        parts = self._tilted(t, x)
        while True:
            r = randomness.word() >> (64 - _splits.WHOLE)
            for weight, rate, first, step in parts:
                if r < weight:
                    if rate is None:
                        return first
                    return first + step * int(_Geometric(rate).draw(randomness, 1)[0])
                r -= weight

    def _tilted(self, t: int, x: int) -> list[tuple[int, Fraction | None, int, int]]:
        """Parts (weight of 2^62, rate of a geometric tail or None, first point, direction)."""
        v = self.nodes[t]
        a = self.nodes[v.left]
        pull = v.pull_hi if x > v.hi else -v.pull_lo
        u = np.arange(len(a.m)) + (a.lo - (a.hi if x > v.hi else a.lo))
        weights = (a.m * np.exp(pull * u)).tolist()
        parts: list[tuple[float, Fraction | None, int, int]] = [
            (w, None, a.lo + i, 1) for i, w in enumerate(weights)
        ]
        for c, rate, edge, step in ((a.c_lo, a.t_lo, a.lo, -1), (a.c_hi, a.t_hi, a.hi, 1)):
            if c > 0:
                slope = Fraction(rate) - Fraction(pull) * step
                here = math.exp(pull * (edge - (a.hi if x > v.hi else a.lo)))
                parts.append((c * here / math.expm1(float(slope)), slope, edge + step, step))
        scale = 2.0**_splits.WHOLE * (1 - 2.0**-20) / math.fsum(p[0] for p in parts)
        return [(int(p[0] * scale) + 1, *p[1:]) for p in parts]

    def _outside(self, t: int, x: int, y: int) -> Any:
        """The exact probability with which the slow path proposes y, as a ball."""
        v = self.nodes[t]
        if v.lo <= x <= v.hi:
            total = arb(0)
            for weight, rate, edge, is_left, step in self._lump_weights(t, x):
                far = ((y if is_left else x - y) - edge) * step
                if far >= 0:
                    total += weight * geometric_pmf(Fraction(rate), far)
            return total / 2**_splits.WHOLE
        parts, total = self._tilted(t, x), arb(0)
        for weight, slope, first, step in parts:
            far = (y - first) * step
            if slope is None:
                total += weight if far == 0 else 0
            elif far >= 0:
                total += weight * geometric_pmf(slope, far)
        return total / sum(p[0] for p in parts)


def geometric_pmf(rate: Fraction, k: int) -> Any:
    """P(k) = (1 - e^-rate) e^(-rate k) as a ball."""
    return (1 - (-ball(rate)).exp()) * (-ball(rate * k)).exp()


class Prefixed(Randomness):
    """One given word, then those of another source."""

    def __init__(self, word: int, then: Randomness) -> None:
        super().__init__()
        self._given: int | None = word
        self._then = then

    def word(self) -> int:
        """The given word first."""
        word, self._given = self._given, None
        return self._then.word() if word is None else word

    def _fetch(self, n: int) -> Words:
        return self._then.words(n)
