"""Counts of `prior` given their total, drawn down a tree of messages: many draws, narrow laws.

The cells of `prior` become leaves of `messages`: M is the table of a cell raised by its rounding
error, and beyond the table a geometric tail, which dominates since the weights are log-concave (or,
for a Dirichlet parameter a < 1 going up, since (c + a)/(c + 1) <= 1 leaves a log-concave bound).
Nearly every draw is kept, where the proposals of `prior` fit the total with probability sd(cell) /
sd(sum); but the messages have to be made first. Exact by the argument in `messages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.sampling.ball_precision import working_precision
from congenial.sampling.inversion import Ints, ball
from congenial.sampling.prior.count_cell import CountCell, WeightTable
from congenial.sampling.tree.messages import Forest, Node
from congenial.sampling.tree.splitter import Splitter


@dataclass(frozen=True)
class CountWeight:
    """w(c) e^(theta c) over the same at `anchor`, for 0 <= c <= most."""

    cell: CountCell
    theta: Fraction
    anchor: int
    most: int

    def allows(self, c: int) -> bool:
        """Whether c is within 0 .. most."""
        return 0 <= c <= self.most

    def log_ratio(self, c: int) -> Any:
        """The log weight as a ball."""
        tilt = ball(self.theta * (c - self.anchor))
        return self.cell.log_ball(c) - self.cell.log_ball(self.anchor) + tilt

    def fall(self, edge: int, step: int) -> float:
        """t > 0 with w(edge + k step) <= w(edge) e^(-t k) for all k >= 0, edge + step allowed.

        Weights with max(a, 1) in place of a are log-concave: their next ratio bounds all later
        ones. Downwards a < 1 has no such bound; tables then reach 0.
        """
        assert step > 0 or self.cell.shape >= 1
        bound = replace(self, cell=replace(self.cell, shape=max(self.cell.shape, Fraction(1))))
        with working_precision(128):
            return float((bound.log_ratio(edge) - bound.log_ratio(edge + step)).lower())


def _leaf(weight: CountWeight, table: WeightTable, error: float) -> Node:
    """The message of one cell; error: bound of the relative error of the table."""
    m = table.weights * (1 + 2 * error)
    tails = []
    for edge, step, at in ((table.low, -1, 0), (table.high, 1, -1)):
        c, slope = 0.0, np.inf
        if weight.allows(edge + step):
            c, slope = float(m[at]), weight.fall(edge, step) * (1 - 2.0**-50)
        tails.append((c, slope))
    return Node(
        -1, -1, Fraction(0), weight, table.low, m, m, *tails[0], *tails[1], slack=4 * error
    )  # fmt: skip


def tree_of(
    cells: Sequence[CountCell],
    tables: Sequence[WeightTable],
    theta: float,
    total: int,
    error: float,
) -> Splitter | None:
    """A splitter whose only root is the sum of all cells; None if a tail does not fall."""
    forest, leaves = Forest(), []
    for cell, table in zip(cells, tables, strict=True):
        weight = CountWeight(cell, Fraction(theta), table.anchor, total)
        node = _leaf(weight, table, error)
        if not (node.t_lo > 0 and node.t_hi > 0):
            return None
        leaves.append(forest.add(node))
    root = forest.combine(leaves)
    nothing: Ints = np.zeros(len(cells), dtype=np.int64)
    return Splitter(forest, [root], np.arange(len(cells)), nothing)
