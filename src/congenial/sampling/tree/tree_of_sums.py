"""Integers on cells given a tree of sums: fixed, bounded or weighted; drawn exactly.

p(m) ~ prod_i w_i(u_i) prod_v exp(-rate_v |x_v|), u = m - s, x_v the sum of u over a set v of cells,
on { l_i <= m_i <= h_i, x_v = 0 for fixed sets, least_v <= sum of m over v <= most_v }. The sets
nest. Messages go up the tree and sums are drawn down it (see `messages`): independent exact draws,
linear in the cells; equal subtrees share their messages, and log Z, which the price of a sign
constraint needs, is the product of the roots' messages. A fixed set cuts the tree: what is inside
it and what is outside are independent. At a bounded set the message is cut where the bound ends, so
that sums beyond it are not proposed. Windows follow the noise, not the counts, so totals of any
size cost the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.figures.limits import FAR
from congenial.sampling.discrete import CellLaw, DoubleGeometric
from congenial.sampling.inversion import Ints
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.bounded_sums import BoundedSum
from congenial.sampling.tree.cells_and_sums import NestedSums, NoisyCells
from congenial.sampling.tree.groups import checked_labels
from congenial.sampling.tree.messages import Forest, Leaf
from congenial.sampling.tree.splitter import Splitter
from congenial.sampling.tree.tilts import LeafPlanner, Piece, alike, balanced_tilt

_Part = tuple[int, list[Ints]]  # a message and the cells below it, in its order (-1: no cell)
_NO_CELL = np.array([-1])
_NOTHING = Leaf(DoubleGeometric(Fraction(1)), 0, 0)  # a cell that is always zero


class TreeOfSums(IntegerLaw):
    """The law above for given cells and sums; `of_groups` and `levels` make the usual trees.

    tilts: one per set, for whoever draws the sums of the roots (`crossing`); found here otherwise.
    """

    log_ratio_error = 0.0

    def __init__(
        self, cells: NoisyCells, sums: NestedSums, tilts: Sequence[Fraction] | None = None
    ) -> None:
        if cells.centre.shape != sums.of_cell.shape:
            raise StructureError(
                f"{cells.centre.size} counts for {sums.of_cell.size} cells.",
                remedy="Give one count per cell.",
            )
        self.cells, self.sums = cells, sums
        self._planners = [LeafPlanner(law) for law in cells.laws]
        self._build(self._tilted() if tilts is None else list(tilts))
        if tilts is None and self._tilts_help and np.any(sums.bounded) and not self.sharp:
            self._build(self._balanced())
        bounds = (cells.low, cells.high)
        self.splitter = Splitter(self.forest, self.roots, self._order, cells.centre, bounds)

    @classmethod
    def of_groups(
        cls,
        labels: npt.ArrayLike,
        centre: npt.ArrayLike,
        law: CellLaw,
        low: npt.ArrayLike | None = 0,
        high: npt.ArrayLike | None = None,
        sums: Sequence[BoundedSum] = (),
    ) -> TreeOfSums:
        """Noisy counts m around counts s, bounded cell by cell, given the total of each group.

        labels: the group of each cell as in `GroupedNoise`, -1 for a cell that keeps its count.
        low, high: bounds of m, one number or one per cell, None for no bound; s must be within.
        sums: bounds on sums inside groups, nested, small ones first.

        >>> from congenial.sampling.randomness import SeededRandomness
        >>> law, pair = DoubleGeometric(Fraction(1, 2)), BoundedSum(np.array([0, 1]), 0, 3)
        >>> groups = TreeOfSums.of_groups([0, 0, 0], [2, 0, 5], law, sums=[pair])
        >>> m = groups.draw(SeededRandomness(1))
        >>> int(m.sum()), bool(m.min() >= 0), bool(m[:2].sum() <= 3)
        (7, True, True)
        """
        group = checked_labels(labels)
        return cls(NoisyCells.of_one_law(centre, law, low, high), NestedSums.of_groups(group, sums))

    # --- messages --------------------------------------------------------------------------------

    @property
    def _tilts_help(self) -> bool:
        """Whether all roots are fixed, which makes a tilt a constant, and cells are of one law."""
        return len(self._planners) == 1 and not any(self.sums.rate)

    def _tilted(self) -> list[Fraction]:
        """For each root a tilt that centres its sum, bounds on cells in view."""
        tilts = [Fraction(0)] * len(self.sums.parent)
        for v in np.unique(self.sums.root).tolist() if self._tilts_help else ():
            if (cells := self.sums.cells_below[v]).size:
                bounds = self.cells.low[cells], self.cells.high[cells]
                tilts[v] = self._planners[0].tilt(*bounds)
        return tilts

    def _balanced(self) -> list[Fraction]:
        """The same with bounds on sums in view, for roots that have some inside."""
        tilts, known = self._tilted(), self.sums
        for root in np.unique(known.root[known.bounded]).tolist():
            inside = np.flatnonzero(known.root == root).tolist()
            cells = self.sums.cells_below[root]
            pieces = [self._piece(v, inside) for v in inside]
            bounds = self.cells.low[cells], self.cells.high[cells]
            tilts[root] = balanced_tilt(self._planners[0], pieces, *bounds)
        return tilts

    def _piece(self, v: int, inside: list[int]) -> Piece:
        bare, known = self.sums.cells[v], self.sums
        own = alike(self.cells.low[bare], self.cells.high[bare]) if bare.size else None
        below = [i for i, w in enumerate(inside) if known.parent[w] == v and not known.fixed[w]]
        least, most, shift = int(known.least[v]), int(known.most[v]), int(self._centres[v])
        return Piece(
            own,
            below,
            -math.inf if least <= -FAR else least - shift,
            math.inf if most >= FAR else most - shift,
        )

    @cached_property
    def _centres(self) -> Ints:
        """The sums of s."""
        return self.sums.of(self.cells.centre)

    def _build(self, tilts: list[Fraction]) -> None:
        """Make the messages, sets in turn; the cells in the order of drawing."""
        self.forest, self.roots, self.tilts = Forest(), list[int](), tilts
        self._shared: dict[Any, int] = {}
        for law in self.cells.laws if len(self.cells.laws) > 1 else ():
            self.forest.leaf(Leaf(law))  # numbered in this order, which that of equal sums follows
        order, parts = list[Ints](), dict[int, list[_Part]]()
        for v, parent in enumerate(self.sums.parent.tolist()):
            inside, tilt = parts.pop(v, []), tilts[self.sums.root[v]]
            if not inside and not self.sums.cells[v].size:
                continue
            if not self.sums.fixed[v] and parent >= 0:
                node, cells = self._message(v, inside, tilt, self.sums.rate[v])
                parts.setdefault(parent, []).append((self._cut(v, node), cells))
                continue
            node, cells = self._message(v, inside, tilt, Fraction(0))
            if not self.sums.fixed[v]:  # a sum x with weight e^(-rate |x|): a cell -x beside it
                node, cells = self._mirrored(v, node), [*cells, _NO_CELL]
            self.roots.append(node)
            order += cells
        self._order = np.concatenate([np.empty(0, dtype=np.int64), *order])

    def _message(self, v: int, parts: list[_Part], tilt: Fraction, rate: Fraction) -> _Part:
        """The message of a set of its own cells and of other sets, and their order in it.

        Sets with equal messages are put next to each other, so that they share; a message that is
        cut is nobody else's.
        """
        bare, has_cut = self.sums.cells[v], v in self._holds_bounded
        kind, low, high = self._ends(bare, tilt)
        arranged = np.lexsort((high, low, kind))
        kind, low, high = kind[arranged], low[arranged], high[arranged]
        if not has_cut:
            parts = sorted(parts, key=lambda part: part[0])
        nodes = [node for node, _ in parts]
        key = (kind.tobytes(), low.tobytes(), high.tobytes(), tuple(nodes), tilt, rate)
        alone = bare.size + len(parts) == 1 and rate > 0  # a weight needs two to be joined
        if key not in self._shared:
            each = list(zip(kind.tolist(), low.tolist(), high.tolist(), strict=True))
            leaf_of = {cell: self._leaf(*cell, tilt) for cell in dict.fromkeys(each)}
            leaves = [leaf_of[cell] for cell in each]
            if has_cut and leaves:
                leaves = [self.forest.combine(leaves)]
            nodes = [*leaves, *nodes, *([self.forest.leaf(_NOTHING)] if alone else [])]
            self._shared[key] = self.forest.combine(nodes, rate)
        below = [bare[arranged], *(cells for _, blocks in parts for cells in blocks)]
        return self._shared[key], [*below, *([_NO_CELL] if alone else [])]

    def _leaf(self, kind: int, low: int, high: int, tilt: Fraction) -> int:
        return self.forest.leaf(self._planners[kind].leaf(low, high, tilt))

    @cached_property
    def _holds_bounded(self) -> set[int]:
        """Sets right around a bounded one."""
        return set(self.sums.parent[self.sums.bounded].tolist())

    def _ends(self, cells: Ints, tilt: Fraction) -> tuple[Ints, Ints, Ints]:
        """Kind and bounds of cells, without bounds that say nothing."""
        kind, low, high = (x[cells] for x in (self.cells.kind, self.cells.low, self.cells.high))
        for k, planner in enumerate(self._planners):
            these = kind == k
            low[these], high[these] = planner.shared_bounds(low[these], high[these], tilt)
        return kind, low, high

    def _cut(self, v: int, node: int) -> int:
        if not self.sums.bounded[v]:
            return node
        shift = int(self._centres[v])
        return self.forest.cut(
            node, int(self.sums.least[v]) - shift, int(self.sums.most[v]) - shift
        )

    def _mirrored(self, v: int, node: int) -> int:
        if self.sums.rate[v] == 0:
            raise StructureError(
                f"sum {v} is neither fixed nor weighted, and no other holds it.",
                remedy="Leave it out: what is inside it is independent.",
            )
        return self.forest.join(node, self.forest.leaf(Leaf(DoubleGeometric(self.sums.rate[v]))))

    @property
    def sharp(self) -> bool:
        """Whether few draws are wasted. Not so where many sums press against their bounds at once:
        messages are upper bounds, and what they say so far out is mostly allowance for tails.
        """
        nodes = [self.forest.nodes[root] for root in self.roots]
        return all(v.lo <= 0 <= v.hi and v.m[-v.lo] > 8 * v.floor for v in nodes)

    # --- use -------------------------------------------------------------------------------------

    @cached_property
    def log_Z(self) -> float:
        """log of the sum of all weights; error below 1e-11 per 1e6 cells, 1e-10 with bounded
        sums.
        """
        return math.fsum(log_message(self.forest, root, 0) for root in self.roots)

    def log_density(self, m: npt.ArrayLike) -> Any:
        """log p(m), -inf for m that does not conform; m has shape (..., cells)."""
        u, known = self.cells.noise(m), self.sums
        x = known.of(u)
        inside = ~np.any(x[known.fixed], axis=0) & ~np.any(u[..., known.of_cell < 0], axis=-1)
        logs = self.cells.log_weight(u) - self.log_Z
        for v in np.flatnonzero(known.bounded | np.array([r > 0 for r in known.rate])).tolist():
            held = x[v] + self._centres[v]
            inside &= (held >= known.least[v]) & (held <= known.most[v])
            logs = logs - float(known.rate[v]) * np.abs(x[v])
        return np.where(inside, logs, -np.inf)[()]

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        nothing = np.zeros((1, len(self.roots)), dtype=np.int64)
        out = self.splitter.draw_all(randomness, n, nothing)
        again = self._beyond(out)
        while again.size:  # a bound far out in a message's tail has left the tail
            out[again] = self.splitter.draw_all(randomness, again.size, nothing)
            again = again[self._beyond(out[again])]
        return out

    def _beyond(self, m: Ints) -> Ints:
        """The draws in which a sum is beyond its bounds."""
        bounded = self.sums.bounded
        if not np.any(bounded):
            return np.empty(0, dtype=np.int64)
        held = self.sums.of(m)[bounded].T
        off = (held < self.sums.least[bounded]) | (held > self.sums.most[bounded])
        return np.flatnonzero(np.any(off, axis=1))


def log_message(forest: Forest, node: int, x: int) -> float:
    """log M(x) of a node, scale included."""
    v = forest.nodes[node]
    return v.log_scale + float(v.value(x).log())
