"""Noise at every node of a hierarchy, some nodes mandated (noise zero there), drawn exactly.

p(u) ~ prod over nodes v of exp(-eps_v |x_v|), x_v = sum of u over the leaves below v, on integer
leaf noise u with x_v = 0 at mandated nodes. Messages go up the tree, sums are drawn down (see
`messages`): independent exact draws, linear in the leaves; equal subtrees share their messages. A
mandated node cuts the tree: what is below and what is above are independent.
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
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.inversion import Ints, positive_rational
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.messages import Forest, Leaf
from congenial.sampling.tree.splitter import Splitter

_Part = tuple[int, list[Ints]]  # a message and the leaves below it, in its order (-1: no leaf)


class HierarchicalNoise:
    """Double geometric noise at all nodes of a forest, given that it is zero at mandated nodes.

    parents: for each node its parent, or -1 for a root; a node without children is a leaf. rates
    and rate_of: node v has eps_v = rates[rate_of[v]], a rational >= 0, above 0 at leaves. mandated:
    which nodes have x_v = 0. Noise is one integer per leaf, in the order of `leaves`.

    Exact: `log_ratio_error` and `mass_lost` are 0 by the argument in `messages`.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> noise = HierarchicalNoise.of_levels([[2], [3, 2]], [0, 1, 1], [True, False, False])
    >>> int(noise.draw(SeededRandomness(1)).sum())
    0
    """

    log_ratio_error = 0.0
    mass_lost = 0.0

    def __init__(
        self,
        parents: npt.ArrayLike,
        rates: Sequence[Fraction | int],
        rate_of: npt.ArrayLike,
        mandated: npt.ArrayLike,
    ) -> None:
        self.parents = np.array(parents, dtype=np.int64).reshape(-1)
        self.rate_of = np.array(rate_of, dtype=np.int64).reshape(-1)
        self.mandated = np.array(mandated, dtype=bool).reshape(-1)
        self.rates = tuple(Fraction(0) if r == 0 else positive_rational("eps", r) for r in rates)
        self._depths = _checked_depths(self.parents, self.rate_of, self.mandated, len(self.rates))
        is_leaf = np.ones(self.parents.size, dtype=bool)
        is_leaf[self.parents[self.parents >= 0]] = False
        self.leaves: Ints = np.flatnonzero(is_leaf)
        zero = np.array([r == 0 for r in self.rates])
        if np.any(zero[self.rate_of[self.leaves]]):
            raise StructureError("a leaf has eps = 0.", remedy="Give every leaf an eps above 0.")
        self._forest = Forest()
        self._roots: list[int] = []
        order = self._build(is_leaf)
        nothing = np.zeros(self.leaves.size, dtype=np.int64)
        self._splitter = Splitter(self._forest, self._roots, order, nothing)

    @classmethod
    def of_levels(
        cls,
        children: Sequence[npt.ArrayLike],
        rates: Sequence[Fraction | int],
        mandated: Sequence[bool],
    ) -> HierarchicalNoise:
        """One root and levels below it: children[l] lists the number of children of each node of
        level l, in order; rates and mandated have one entry per level, the leaves' last.
        """
        parents, rate_of, first, count = [np.array([-1])], [np.array([0])], 0, 1
        for level, given in enumerate(children):
            sizes = np.asarray(given, dtype=np.int64)
            if sizes.shape != (count,) or np.any(sizes < 1):
                raise StructureError(
                    f"level {level} has {count} nodes but {sizes.size} numbers of children.",
                    remedy="Give one number >= 1 for each node of the level.",
                )
            parents.append(np.repeat(np.arange(first, first + count), sizes))
            first, count = first + count, int(sizes.sum())
            rate_of.append(np.full(count, level + 1))
        levels = np.concatenate(rate_of)
        return cls(np.concatenate(parents), rates, levels, np.asarray(mandated)[levels])

    # --- set-up ----------------------------------------------------------------------------------

    def _build(self, is_leaf: npt.NDArray[np.bool_]) -> Ints:
        """Make messages from the deepest nodes up; return the leaves in the order of drawing."""
        number = np.cumsum(is_leaf) - 1  # of a leaf among leaves
        by_depth = np.argsort(-self._depths, kind="stable")
        parts: dict[int, list[_Part]] = {}
        done: list[Ints] = []
        shared: dict[tuple[bytes, Fraction], int] = {}
        leaf_types = [
            self._forest.leaf(Leaf(DoubleGeometric(r))) if r > 0 else -1 for r in self.rates
        ]
        kids = _children(self.parents)
        for v in by_depth.tolist():
            if is_leaf[v]:
                if self.parents[v] < 0 and not self.mandated[v]:
                    self._free_leaf(v, done, int(number[v]))
                continue
            own = kids[0][kids[1][v] : kids[1][v + 1]]
            bare = own[is_leaf[own] & ~self.mandated[own]]
            found = parts.pop(v, [])
            types = np.array(leaf_types)[self.rate_of[bare]]
            arranged = np.argsort(types, kind="stable")
            all_types = np.concatenate(
                [types[arranged], np.array([p[0] for p in found], dtype=np.int64)]
            )
            if all_types.size == 0:
                continue
            below = [number[bare[arranged]]]
            if found:
                rank = np.argsort(all_types[arranged.size :], kind="stable")
                all_types[arranged.size :] = all_types[arranged.size :][rank]
                below += [block for i in rank for block in found[i][1]]
            self._place(v, all_types, below, parts, done, shared)
        return np.concatenate(done) if done else np.empty(0, dtype=np.int64)

    def _place(
        self,
        v: int,
        types: Ints,
        below: list[Ints],
        parts: dict[int, list[_Part]],
        done: list[Ints],
        shared: dict[tuple[bytes, Fraction], int],
    ) -> None:
        """Give node v its message and hand it to its parent, or make it a root to draw from."""
        eps, parent = self.rates[self.rate_of[v]], int(self.parents[v])

        def message(weight: Fraction) -> int:
            key = (types.tobytes(), weight)
            if key not in shared:
                listed = types.tolist()
                if len(listed) == 1 and weight > 0:
                    listed.append(self._nothing)
                shared[key] = self._forest.combine(listed, weight)
            return shared[key]

        nothing = [np.array([-1])]
        if self.mandated[v]:
            self._roots.append(message(Fraction(0)))
            done += below
        elif parent >= 0:
            one = len(types) == 1 and eps > 0
            parts.setdefault(parent, []).append((message(eps), below + nothing * one))
        elif eps > 0:  # a free sum x with weight e^(-eps |x|): a cell -x beside it, given sum zero
            cell = self._forest.leaf(Leaf(DoubleGeometric(eps)))
            self._roots.append(self._forest.join(message(Fraction(0)), cell))
            done += below + nothing
        else:
            raise StructureError(
                f"root node {v} has eps = 0 and no mandate.",
                remedy="Drop it: its children are independent; make them roots.",
            )

    def _free_leaf(self, v: int, done: list[Ints], number: int) -> None:
        half = self._forest.leaf(Leaf(DoubleGeometric(self.rates[self.rate_of[v]] / 2)))
        self._roots.append(self._forest.join(half, half))
        done += [np.array([number]), np.array([-1])]

    @cached_property
    def _nothing(self) -> int:
        """The message of a cell that is always zero."""
        return self._forest.leaf(Leaf(DoubleGeometric(Fraction(1)), 0, 0))

    # --- use -------------------------------------------------------------------------------------

    @cached_property
    def log_Z(self) -> float:
        """log of the sum of prod exp(-eps_v |x_v|) over all conforming u, to about 1e-11 per
        1e6 leaves.
        """
        nodes = self._forest.nodes
        terms = [nodes[r].log_scale + math.log(nodes[r].m[-nodes[r].lo]) for r in self._roots]
        return math.fsum(terms)

    def sums(self, u: npt.ArrayLike) -> Ints:
        """x_v for every node, last axis, from leaf noise of shape (..., leaves)."""
        noise = np.asarray(u, dtype=np.int64)
        if noise.shape[-1:] != (self.leaves.size,):
            raise StructureError(
                f"noise has {noise.shape[-1:]} cells, the hierarchy has {self.leaves.size} leaves.",
                remedy="Give one value per leaf.",
            )
        x = np.zeros((self.parents.size, *noise.shape[:-1]), dtype=np.int64)
        x[self.leaves] = np.moveaxis(noise, -1, 0)
        for depth in range(int(self._depths.max()), 0, -1):
            level = np.flatnonzero(self._depths == depth)
            np.add.at(x, self.parents[level], x[level])
        return np.moveaxis(x, 0, -1)

    def log_density(self, u: npt.ArrayLike) -> Any:
        """log p(u) = -sum_v eps_v |x_v| - log Z, or -inf if a mandated sum is not zero."""
        x = self.sums(u)
        eps = np.array([float(r) for r in self.rates])[self.rate_of]
        inside = ~np.any(x[..., self.mandated], axis=-1)
        free = ~self.mandated
        loss = np.abs(x[..., free].astype(float)) @ eps[free]
        return np.where(inside, -loss - self.log_Z, -np.inf)[()]

    def draw(self, randomness: Randomness) -> Ints:
        """One exact draw: an integer per leaf."""
        one: Ints = self.draw_many(randomness, 1)[0]
        return one

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, leaves)."""
        return self._splitter.draw_all(randomness, n, np.zeros((1, len(self._roots)), np.int64))


def _children(parents: Ints) -> tuple[Ints, Ints]:
    """All nodes sorted by parent, and where each parent's start."""
    order = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[order], np.arange(parents.size + 1))
    return order.astype(np.int64), starts.astype(np.int64)


def _checked_depths(
    parents: Ints, rate_of: Ints, mandated: npt.NDArray[np.bool_], rates: int
) -> Ints:
    n = parents.size
    sound = n > 0 and rate_of.size == n and mandated.size == n
    sound = sound and bool(np.all((parents >= -1) & (parents < n)))
    if not sound or np.any((rate_of < 0) | (rate_of >= rates)):
        raise StructureError(
            "parents, rate_of and mandated do not describe one forest.",
            remedy="Give one entry per node; parents are node numbers or -1.",
        )
    depths = np.zeros(n, dtype=np.int64)
    above = parents.copy()
    for _ in range(n + 1):
        inside = above >= 0
        if not inside.any():
            return depths
        depths[inside] += 1
        above[inside] = parents[above[inside]]
    raise StructureError("the parents form a cycle.", remedy="Give a forest.")
