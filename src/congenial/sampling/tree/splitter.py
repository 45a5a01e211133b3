"""Draws sums down a tree of messages and keeps them with their exact probability.

The argument is in `messages`. Here are the compiled fast path with its arrays, and the decisions
over what it flags; `split_law` has the law of one split.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from congenial.errors import StructureError
from congenial.sampling.discrete import Floats
from congenial.sampling.inversion import Ints, _bernoulli
from congenial.sampling.randomness import Randomness, Words
from congenial.sampling.tree.messages import Forest, Node
from congenial.sampling.tree.split_constants import DONE, RARE
from congenial.sampling.tree.split_law import SplitLaw

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
        from congenial.sampling.tree import split_kernels

        self.nodes, self.centre, self._bounds = forest.nodes, centre, bounds
        self.law = SplitLaw(self.nodes)
        self.roots: Ints = np.array(roots, dtype=np.int64)
        self.order: Ints = np.array(order, dtype=np.int64)
        self._flat = Flat.of(forest.nodes)
        hidden = np.flatnonzero(self.order < 0)
        slots = self.order.copy()
        slots[hidden] = centre.size + np.arange(hidden.size)
        spare = centre.size + hidden.size
        program, of_root = split_kernels.build_program(
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
        from congenial.sampling.tree import alias_kernels

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
            status, done, used, kept = alias_kernels.draw_down(
                out, sums, self._plan, self._flat.arrays, aliases.arrays, numbers,
                words, words.view(np.uint16), task, flags, saved,
            )  # fmt: skip
            rejected |= self._decide(out, flags[:kept], saved, randomness)
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
        from congenial.sampling.tree import alias_kernels

        rejected: set[int] = set()
        finished: dict[int, Ints] = {}
        for kind, draw, step, x, y in flags.tolist():
            if draw in rejected:
                continue
            if kind == alias_kernels.UNLIKELY:
                t = int(self._plan[0][step, 0])
                ok = _bernoulli(partial(self.law.log_factor, t, x, y), randomness)
            elif kind == alias_kernels.CHECK:
                values = finished.get(draw, saved[y])
                ok = self._accept_all(self._check + x, values, randomness)
            else:
                values = saved[y].copy()
                lump = x if kind == alias_kernels.LUMP else None
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
            t, whole, one, two = self._plan[0][j].tolist()
            x, v = int(values[whole]), self.nodes[t]
            if j == step and lump is not None:
                y = self.law.draw_lump(t, x, lump, randomness)
            else:
                y = self.law.draw(t, x, randomness)
            if y is None or self.nodes[v.left].vanishes(y) or self.nodes[v.right].vanishes(x - y):
                return False
            factor = partial(self.law.log_factor, t, x, y)
            if not self.law.is_likely(t, x, y) and not _bernoulli(factor, randomness):
                return False
            values[one], values[two] = y, x - y
        for t, u in self.ends(values):
            if self._is_outside(t, u):
                leaf = self.nodes[t].leaf
                if leaf is None or not leaf.allows(u):
                    return False
                if not _bernoulli(partial(self.law.log_leaf, t, u), randomness):
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

        return _bernoulli(log_p, randomness, word)

    # --- a draw, as the sums at all its nodes ----------------------------------------------------

    def values(self, leaves: Ints) -> Ints:
        """All sums of a draw from its leaves, roots in turn and from left to right."""
        values = np.zeros(self._plan[3], np.int64)
        values[[slot for _, slot in self._leaves]] = leaves
        for _, whole, one, two in self._plan[0][::-1].tolist():
            values[whole] = values[one] + values[two]
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
        for t, _, one, two in self._plan[0].tolist():
            child[one], child[two] = self.nodes[t].left, self.nodes[t].right
        hidden = self.centre.size
        slots = []
        for cell in self.order.tolist():
            slots.append(cell if cell >= 0 else hidden)
            hidden += cell < 0
        return [(child[slot], slot) for slot in slots]


@dataclass(frozen=True, eq=False)
class Flat:
    """Messages one after the other: for each node its children and its window (columns as in
    `_aliases`), and for each sum of a window M, S and where its split is likeliest.
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
        from congenial.sampling.tree import split_kernels

        size = np.array([len(v.m) for v in nodes], dtype=np.int64)
        mode = np.zeros(int(size.sum()), np.int32)
        at = np.cumsum(size) - size
        for start, v in zip(at, nodes, strict=True):
            if v.left >= 0:
                a, b = nodes[v.left], nodes[v.right]
                mode[start : start + len(v.m)] = split_kernels.modes(
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
    found = np.zeros((len(nodes), 2), np.int64)
    for t, v in enumerate(nodes):
        if v.left >= 0:
            often = np.flatnonzero(v.m >= _OFTEN * v.m.max())
            found[t] = v.lo + often[0], often[-1] - often[0] + 1
    return found


@dataclass(frozen=True, eq=False)
class Aliases:
    """Alias tables (see `_aliases`) of the splits of frequent sums, a row for each sum.

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
        from congenial.sampling.tree import alias_kernels

        tables = np.zeros((len(nodes), 5), np.int64)
        tables[:, [alias_kernels.FIRST, alias_kernels.ROWS]] = frequent_sums(nodes)
        rows = tables[:, alias_kernels.ROWS]
        tables[:, alias_kernels.AT_ROW] = np.cumsum(rows) - rows
        of_row = np.zeros((int(rows.sum()), 3), np.int64)
        alias_kernels.find_codes(flat.nodes, flat.m, flat.s, flat.mode, tables, of_row)
        size = rows << tables[:, alias_kernels.BITS]
        smallest = np.argsort(size, kind="stable")
        too_much = smallest[np.cumsum(size[smallest]) > _MOST_ENTRIES]
        rows[too_much] = size[too_much] = 0
        tables[:, alias_kernels.AT_ENTRY] = np.cumsum(size) - size
        entries, exact = np.empty(size.sum(), np.uint32), np.empty(size.sum(), np.int64)
        alias_kernels.build_aliases(flat.nodes, flat.m, flat.s, tables, of_row, entries, exact)
        return cls(tables, of_row, entries, exact)
