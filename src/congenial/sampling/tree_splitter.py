"""Draws sums down a tree of messages and keeps them with their exact probability.

The argument is in `tree_messages`. `SplitLaw` is the exact law of one split: weights, factors of
the acceptance, proposals beyond the windows, all rare and in ball arithmetic. `Splitter` has the
compiled fast path with its arrays (`tree_kernels`), and decides over what it flags.
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

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.sampling.exact_decisions import ball, below, happens
from congenial.sampling.inversion import _Geometric
from congenial.sampling.randomness import Randomness, Words
from congenial.sampling.tree_messages import DONE, FACTOR, RARE, WHOLE, Forest, Node, lumps_of


class SplitLaw:
    """How a sum x at a node is split into y for its left and x - y for its right part."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    # --- the exact factors -----------------------------------------------------------------------

    def weight(self, t: int, x: int, y: int) -> int:
        """n(y) as the compiled loop computes it, or 0 outside the windows."""
        v = self.nodes[t]
        a, b = self.nodes[v.left], self.nodes[v.right]
        z = x - y
        if not (v.lo <= x <= v.hi and a.lo <= y <= a.hi and b.lo <= z <= b.hi):
            return 0
        factor = FACTOR / float(v.s[x - v.lo])
        return int(float(a.m[y - a.lo]) * float(b.m[z - b.lo]) * factor) + 1

    def is_likely(self, t: int, x: int, y: int) -> bool:
        """Whether the factor of this outcome is left to the decision over all of them."""
        return self.weight(t, x, y) >= RARE

    def log_factor(self, t: int, x: int, y: int) -> Any:
        """log of the factor of one split: e^(-eps |x|) M_left M_right / (M 2^units q)."""
        v = self.nodes[t]
        a, b = self.nodes[v.left], self.nodes[v.right]
        ratio = a.value(y) * b.value(x - y)
        ratio /= v.value(x) * arb(2) ** v.units * self.chance(t, x, y)
        return ratio.log() - ball(v.eps * abs(x))

    def log_leaf(self, t: int, u: int) -> Any:
        """log of w(u) / M(u) for a leaf inside its bounds."""
        v = self.nodes[t]
        assert v.leaf is not None
        return v.leaf.log_ratio(u) - v.value(u).log()

    def chance(self, t: int, x: int, y: int) -> Any:
        """The exact probability with which y is proposed, as a ball."""
        n = self.weight(t, x, y)
        return arb(n) / 2**WHOLE if n else self._chance_outside(t, x, y)

    # --- a split in plain Python -----------------------------------------------------------------

    def draw(self, t: int, x: int, randomness: Randomness) -> int | None:
        """y given x at one node, wherever x is; None if rejected."""
        from congenial.sampling import tree_kernels

        v = self.nodes[t]
        if not v.lo <= x <= v.hi:
            return self._draw_outside(t, x, randomness)
        a, b = self.nodes[v.left], self.nodes[v.right]
        r = randomness.word() >> (64 - WHOLE)
        j = x - a.lo - b.lo
        first, last = max(0, j - len(b.m) + 1), min(len(a.m) - 1, j)
        factor = FACTOR / float(v.s[x - v.lo])
        y, _, before = tree_kernels.scan(a.m, b.m, (first, last), first, (j, -1), factor, r)
        if y >= 0:
            return a.lo + int(y)
        return self.draw_lump(t, x, r - int(before), randomness)

    # --- outside the windows ---------------------------------------------------------------------

    def _lumps(self, t: int, x: int) -> list[tuple[int, float, int, bool, int]]:
        v = self.nodes[t]
        factor = FACTOR / float(v.s[x - v.lo])
        lumps = lumps_of(self.nodes[v.left], self.nodes[v.right])
        return [(int(lump[0] * factor) + 1, *lump[1:]) for lump in lumps]

    def draw_lump(self, t: int, x: int, r: int, randomness: Randomness) -> int | None:
        """An outcome with one child outside its window, or None (the room left for rounding)."""
        for weight, rate, edge, is_left, step in self._lumps(t, x):
            if r < weight:
                far = edge + step * int(_Geometric(Fraction(rate)).draw(randomness, 1)[0])
                return far if is_left else x - far
            r -= weight
        return None

    def _draw_outside(self, t: int, x: int, randomness: Randomness) -> int:
        """y given x beyond the window of its node: law ~ M_left(y) e^(t y), t Chernoff's."""
        parts = self._tilted(t, x)
        while True:
            r = randomness.word() >> (64 - WHOLE)
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
        scale = 2.0**WHOLE * (1 - 2.0**-20) / math.fsum(p[0] for p in parts)
        return [(int(p[0] * scale) + 1, *p[1:]) for p in parts]

    def _chance_outside(self, t: int, x: int, y: int) -> Any:
        v = self.nodes[t]
        if v.lo <= x <= v.hi:
            total = arb(0)
            for weight, rate, edge, is_left, step in self._lumps(t, x):
                far = ((y if is_left else x - y) - edge) * step
                if far >= 0:
                    total += weight * geometric_pmf(Fraction(rate), far)
            return total / 2**WHOLE
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


_CHUNK = 1 << 18  # cells drawn at a time
_TOGETHER = 1 << 13  # sums held for the draws made side by side
_ROW = 32  # splits drawn without a table in about the time that a row of one takes
_WORDS = 1 << 15  # fetched at a time, few enough to stay in the cache
_MOST_ENTRIES = 5 << 20  # 60 MB of alias tables at most
_OFTEN = 2.0**-12  # rows of sums rarer than this have no alias table


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
        from congenial.sampling import tree_kernels

        self.nodes, self.centre, self._bounds = forest.nodes, centre, bounds
        self.law = SplitLaw(self.nodes)
        self.roots: Ints = np.array(roots, dtype=np.int64)
        self.order: Ints = np.array(order, dtype=np.int64)
        self._flat = Flat.of(forest.nodes)
        hidden = np.flatnonzero(self.order < 0)
        slots = self.order.copy()
        slots[hidden] = centre.size + np.arange(hidden.size)
        spare = centre.size + hidden.size
        program, of_root = tree_kernels.build_program(
            self.roots, self._flat.nodes, slots, spare,
            4 + max((forest.height(r) for r in roots), default=0),
        )  # fmt: skip
        self._plan = (program, of_root, centre, spare + len(program))
        self._block = max(1, min(_TOGETHER // self._plan[3], 256))
        self._count = 2 * max(1, self.order.size)
        slack = max(v.slack for v in self.nodes) if self.nodes else 0.0
        self.slack = self._count * (slack + 1.0 / RARE)
        if self.slack >= 2.0**-17:
            raise StructureError(
                f"a table of {centre.size} cells is too large for one draw.",
                remedy="Split it at a published total.",
            )
        self._check = (1 << 64) - math.ceil(2 * self.slack * 2.0**64)

    def fill(self, out: Ints, randomness: Randomness, sums: Ints, of: int = 0) -> Ints:
        """Fill out, shape (n, cells), with n draws; return the numbers of those rejected.

        sums: shape (n or 1, roots). of: how many draws these are part of, if more. A rejected draw
        (a share of about 2^-25) is to be drawn again from scratch, together with whatever its sums
        were drawn from.
        """
        from congenial.sampling import tree_kernels

        n = len(out)
        if self.order.size == 0 or n == 0:
            out[:] = self.centre
            return np.empty(0, np.int64)
        aliases, slots = self._aliases_for(max(n, of)), self._plan[3]
        numbers = (np.uint64(self._check), self._block, aliases.any)
        rejected: set[int] = set()
        flags, saved = np.empty((4096, 5), np.int64), np.empty((4, slots), np.int64)
        task, words = 0, self._more_words(n, aliases.any, randomness)
        while True:
            status, done, used, stored = tree_kernels.draw_down(
                out, sums, self._plan, self._flat.arrays, aliases.arrays, numbers,
                words, words.view(np.uint16), task, flags, saved,
            )  # fmt: skip
            rejected |= self._decide(out, flags[:stored], saved, randomness)
            if status == DONE:
                return np.array(sorted(rejected), dtype=np.int64)
            if done == task:  # too little room for what one block flags, or too few words
                flags, saved = np.empty((2 * len(flags), 5), np.int64), np.repeat(saved, 2, axis=0)
            task = done
            more = self._more_words(n - task, aliases.any, randomness)
            words = np.concatenate([words[used:], more])
            words.flags.writeable = False

    def _more_words(self, draws: int, aliases: bool, randomness: Randomness) -> Words:
        """Words for so many draws, but not many more than fit the cache, unless one block does."""
        splits = len(self._plan[0])
        each = splits * (19 if aliases else 66) // 64 + 2
        return randomness.words(min(draws * each + 16, max(_WORDS, 2 * self._block * each)))

    def draw_all(self, randomness: Randomness, n: int, sums: Ints) -> Ints:
        """n exact draws given fixed sums, shape (1, roots); rejected ones are drawn again."""
        rows = max(1, _CHUNK // max(1, self.centre.size))
        out = np.empty((n, self.centre.size), dtype=np.int64)
        for start in range(0, n, rows):
            block = out[start : start + rows]
            again = self.fill(block, randomness, sums, n)
            while again.size:
                fresh = np.empty((again.size, self.centre.size), dtype=np.int64)
                left = self.fill(fresh, randomness, sums, n)
                block[again] = fresh
                again = again[left]
        return out

    def _aliases_for(self, n: int) -> Aliases:
        """Alias tables if n draws pay for them; draws are exact either way.

        By n alone, so that draws are a function of the words whatever was drawn before.
        """
        if _ROW * self._rows > n * self.order.size:
            return Aliases.none(len(self.nodes))
        return self._all_aliases

    @cached_property
    def _rows(self) -> int:
        return int(frequent_sums(self.nodes)[:, 1].sum())

    @cached_property
    def _all_aliases(self) -> Aliases:
        return Aliases.of(self.nodes, self._flat)

    # --- what the compiled loop leaves open ------------------------------------------------------

    def _decide(self, out: Ints, flags: Ints, saved: Ints, randomness: Randomness) -> set[int]:
        """Decide flagged draws, finish those that left the windows; return the rejected ones."""
        from congenial.sampling import tree_kernels

        rejected: set[int] = set()
        finished: dict[int, Ints] = {}
        for kind, draw, step, x, y in flags.tolist():
            if draw in rejected:
                continue
            if kind == tree_kernels.UNLIKELY:
                t = int(self._plan[0][step, 0])
                ok = happens(partial(self.law.log_factor, t, x, y), randomness)
            elif kind == tree_kernels.CHECK:
                values = finished.get(draw, saved[y])
                ok = self._accept_all(self._check + x, values, randomness)
            else:
                values = saved[y].copy()
                lump = x if kind == tree_kernels.LUMP else None
                ok = self._finish(values, step, lump, randomness)
                finished[draw] = values
                out[draw] = self.centre + values[: self.centre.size]
            if not ok:
                rejected.add(draw)
        return rejected

    def _finish(self, values: Ints, step: int, lump: int | None, randomness: Randomness) -> bool:
        """Draw all splits from `step` on in plain Python, windows or not; whether they are kept.

        lump: what is left of r if the first of them falls outside a window.
        """
        if any(self.nodes[t].vanishes(int(values[slot])) for t, slot in self._tops):
            return False
        for j in range(step, len(self._plan[0])):
            t, whole, left, right = self._plan[0][j].tolist()
            x, v = int(values[whole]), self.nodes[t]
            if j == step and lump is not None:
                y = self.law.draw_lump(t, x, lump, randomness)
            else:
                y = self.law.draw(t, x, randomness)
            if y is None or self.nodes[v.left].vanishes(y) or self.nodes[v.right].vanishes(x - y):
                return False
            factor = partial(self.law.log_factor, t, x, y)
            if not self.law.is_likely(t, x, y) and not happens(factor, randomness):
                return False
            values[left], values[right] = y, x - y
        for t, u in self.ends(values):
            if self._is_outside(t, u):
                leaf = self.nodes[t].leaf
                if leaf is None or not leaf.allows(u):
                    return False
                if not happens(partial(self.law.log_leaf, t, u), randomness):
                    return False
        if self._bounds is None:
            return True
        cells = values[: self.centre.size]
        return bool(np.all((cells >= self._bounds[0]) & (cells <= self._bounds[1])))

    def _is_outside(self, t: int, u: int) -> bool:
        return not self.nodes[t].lo <= u <= self.nodes[t].hi

    def _accept_all(self, word: int, values: Ints, randomness: Randomness) -> bool:
        """Whether U, whose first word is given, is below the product of all likely factors."""
        likely = [v for v in self.splits(values) if self.law.is_likely(*v)]
        inside = [v for v in self.ends(values) if not self._is_outside(*v)]

        def log_p() -> Any:
            total = arb(0)
            for t, x, y in likely:
                total += self.law.log_factor(t, x, y)
            for t, u in inside:
                total += self.law.log_leaf(t, u)
            return total

        return below(int(word), 64, log_p, randomness)

    # --- a draw, as the sums at all its nodes ----------------------------------------------------

    def values(self, leaves: Ints) -> Ints:
        """All sums of a draw from its leaves, roots in turn and from left to right."""
        values = np.zeros(self._plan[3], np.int64)
        values[[slot for _, slot in self._leaves]] = leaves
        for _, whole, left, right in self._plan[0][::-1].tolist():
            values[whole] = values[left] + values[right]
        return values

    def splits(self, values: Ints) -> list[tuple[int, int, int]]:
        """All (node, x, y) of a draw."""
        return [(t, int(values[x]), int(values[y])) for t, x, y, _ in self._plan[0].tolist()]

    def ends(self, values: Ints) -> list[tuple[int, int]]:
        """All (leaf, u) of a draw."""
        return [(t, int(values[slot])) for t, slot in self._leaves]

    @property
    def _tops(self) -> list[tuple[int, int]]:
        """(node, slot) of every root."""
        return list(zip(self.roots.tolist(), self._plan[1].tolist(), strict=True))

    @cached_property
    def _leaves(self) -> list[tuple[int, int]]:
        """(node, slot) of every leaf, in the order of drawing."""
        child = {slot: t for t, slot in self._tops}
        for t, _, left, right in self._plan[0].tolist():
            child[left], child[right] = self.nodes[t].left, self.nodes[t].right
        hidden = self.centre.size
        slots = []
        for cell in self.order.tolist():
            slots.append(cell if cell >= 0 else hidden)
            hidden += cell < 0
        return [(child[slot], slot) for slot in slots]


@dataclass(frozen=True, eq=False)
class Flat:
    """Messages one after the other: for each node its children and its window (columns as in
    `tree_kernels`), and for each sum of a window M, S and where its split is likeliest.
    """

    nodes: Ints
    m: Floats
    s: Floats
    mode: npt.NDArray[np.int32]

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """As the compiled loops take them."""
        return self.nodes, self.m, self.s, self.mode

    @classmethod
    def of(cls, nodes: list[Node]) -> Flat:
        """From messages, children before parents."""
        from congenial.sampling import tree_kernels

        size = np.array([len(v.m) for v in nodes], dtype=np.int64)
        mode = np.zeros(int(size.sum()), np.int32)
        at = np.cumsum(size) - size
        for start, v in zip(at, nodes, strict=True):
            if v.left >= 0:
                a, b = nodes[v.left], nodes[v.right]
                mode[start : start + len(v.m)] = tree_kernels.modes(
                    a.m, b.m, v.lo - a.lo - b.lo, len(v.m)
                )
        rows = [(v.left, v.right, v.lo, *where) for v, *where in zip(nodes, size, at, strict=True)]
        return cls(
            np.array(rows, dtype=np.int64).reshape(-1, 5),
            np.concatenate([np.empty(0), *(v.m for v in nodes)]),
            np.concatenate([np.empty(0), *(v.s for v in nodes)]),
            mode,
        )


def frequent_sums(nodes: list[Node]) -> Ints:
    """For each node the first sum that is worth an alias table, and how many are from there on."""
    counts = np.zeros((len(nodes), 2), np.int64)
    for t, v in enumerate(nodes):
        if v.left >= 0:
            often = np.flatnonzero(v.m >= _OFTEN * v.m.max())
            counts[t] = v.lo + often[0], often[-1] - often[0] + 1
    return counts


@dataclass(frozen=True, eq=False)
class Aliases:
    """Alias tables (see `tree_kernels`) of the splits of frequent sums, a row for each sum.

    tables: for each node the sum of its first row, rows, log2 of the columns, and where its rows
    and entries start. of_row: y for code 0, codes, weight of the outcomes without a code.
    """

    tables: Ints
    of_row: Ints
    entries: npt.NDArray[np.uint32]
    exact: Ints

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """As the compiled loops take them."""
        return self.tables, self.of_row, self.entries, self.exact

    @property
    def any(self) -> bool:
        """Whether any split has a table."""
        return self.entries.size > 0

    @classmethod
    def none(cls, nodes: int) -> Aliases:
        """No tables."""
        return cls(
            np.zeros((nodes, 5), np.int64),
            np.zeros((0, 3), np.int64),
            np.empty(0, np.uint32),
            np.empty(0, np.int64),
        )

    @classmethod
    def of(cls, nodes: list[Node], flat: Flat) -> Aliases:
        """Tables of all nodes, the smallest first as far as memory goes."""
        from congenial.sampling import tree_kernels

        tables = np.zeros((len(nodes), 5), np.int64)
        tables[:, [tree_kernels.FIRST, tree_kernels.ROWS]] = frequent_sums(nodes)
        rows = tables[:, tree_kernels.ROWS]
        tables[:, tree_kernels.AT_ROW] = np.cumsum(rows) - rows
        of_row = np.zeros((int(rows.sum()), 3), np.int64)
        tree_kernels.find_codes(flat.nodes, flat.m, flat.s, flat.mode, tables, of_row)
        size = rows << tables[:, tree_kernels.BITS]
        smallest = np.argsort(size, kind="stable")
        too_much = smallest[np.cumsum(size[smallest]) > _MOST_ENTRIES]
        rows[too_much] = size[too_much] = 0
        tables[:, tree_kernels.AT_ENTRY] = np.cumsum(size) - size
        entries, exact = np.empty(size.sum(), np.uint32), np.empty(size.sum(), np.int64)
        tree_kernels.build_aliases(flat.nodes, flat.m, flat.s, tables, of_row, entries, exact)
        return cls(tables, of_row, entries, exact)
