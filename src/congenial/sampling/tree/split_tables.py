"""Arrays of `splitter` for its compiled loop: the messages in a row, and alias tables of splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.sampling.discrete import Floats
from congenial.sampling.inversion import Ints
from congenial.sampling.tree.messages import Node

_MOST_ENTRIES = 5 << 20  # 60 MB of alias tables at most
_OFTEN = 2.0**-12  # rows of sums rarer than this have no alias table


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
