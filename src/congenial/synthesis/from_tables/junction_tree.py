"""Exact sums over all cells of a product of small tables.

A distribution p(x) ~ exp(sum_c theta_c(x_c)) over many attributes has far more cells than can be
listed. If its tables c fit into the cliques of a tree in which every attribute's cliques are
connected, then log Z and every clique's marginal follow from two passes of messages along the tree
(Lauritzen and Spiegelhalter 1988), in time proportional to the cells of the cliques.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import logsumexp

from congenial.errors import StructureError

Reals = NDArray[np.float64]
Axes = tuple[str, ...]
LARGEST_CLIQUE = 4_000_000  # cells


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of attributes, in an order in which each one's parent comes before it.

    `sizes`: levels of each attribute; `cliques`: attributes of each clique, in the order of
    `sizes`; `parents`: the clique that each hangs on, -1 for the first.

    >>> tree = JunctionTree.of({"a": 2, "b": 3, "c": 4}, [("a", "b"), ("b", "c")])
    >>> tree.cliques, tree.parents, tree.cells
    ((('a', 'b'), ('b', 'c')), (-1, 0), 18)
    """

    sizes: Mapping[str, int]
    cliques: tuple[Axes, ...]
    parents: tuple[int, ...]
    largest: int = field(default=LARGEST_CLIQUE, repr=False)

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, int],
        tables: Sequence[Sequence[str]],
        first: Sequence[str] = (),
        largest: int = LARGEST_CLIQUE,
    ) -> JunctionTree:
        """A tree whose cliques hold all tables; its first clique holds `first`.

        Attributes are eliminated one at a time, the one whose clique has the fewest cells first. A
        StructureError names the clique where it would have more than `largest` cells.
        """
        cliques = _maximal(_eliminated(sizes, [*tables, first]))
        for clique in cliques:
            if prod(sizes[name] for name in clique) > largest:
                raise StructureError(
                    f"tables that share attributes tie {', '.join(sorted(clique))} together: more "
                    f"than {largest} cells.",
                    remedy="Measure fewer of these pairs, or coarser attributes.",
                )
        root = next(i for i, clique in enumerate(cliques) if set(first) <= clique)
        order, parents = _tree(cliques, root)
        ordered = tuple(tuple(n for n in sizes if n in cliques[i]) for i in order)
        return cls(sizes, ordered, parents, largest)

    @property
    def cells(self) -> int:
        """Cells of all cliques together."""
        return sum(prod(self.shape(clique)) for clique in self.cliques)

    def shape(self, axes: Sequence[str]) -> tuple[int, ...]:
        """Levels of some attributes."""
        return tuple(self.sizes[name] for name in axes)

    def home(self, axes: Sequence[str]) -> int:
        """The smallest clique that holds some attributes."""
        wanted = set(axes)
        cliques = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        if not cliques:
            raise StructureError(
                f"no clique holds {', '.join(axes)} together.",
                remedy="Name them together in a table when the tree is made.",
            )
        return min(cliques, key=lambda i: prod(self.shape(self.cliques[i])))

    @cached_property
    def separators(self) -> tuple[Axes, ...]:
        """What each clique shares with its parent; nothing for the first."""
        shared = [
            tuple(n for n in clique if parent >= 0 and n in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        ]
        return tuple(shared)

    def spread(self, values: Any, axes: Sequence[str], clique: int) -> Reals:
        """A table over some of a clique's attributes, in a shape that adds to the clique's."""
        wanted = self.cliques[clique]
        ordered = [name for name in wanted if name in axes]
        moved = np.transpose(values, [list(axes).index(name) for name in ordered])
        return np.reshape(moved, [self.sizes[n] if n in ordered else 1 for n in wanted])

    def summed(self, values: Reals, clique: int, axes: Sequence[str]) -> Reals:
        """A clique's table summed to some of its attributes, in the order of `axes`."""
        wanted = self.cliques[clique]
        away = tuple(i for i, name in enumerate(wanted) if name not in axes)
        axes_kept = [name for name in wanted if name in axes]
        return np.transpose(values.sum(axis=away), [axes_kept.index(name) for name in axes])

    def beliefs(self, potentials: Sequence[Reals]) -> tuple[float, list[Reals]]:
        """log Z, and the probabilities of every clique's cells.

        `potentials`: log potentials, one table for each clique; minus infinity where nobody can be.
        """
        upward = [np.array(potential) for potential in potentials]
        messages: list[Reals] = [np.zeros(())] * len(self.cliques)
        for i in range(len(self.cliques) - 1, 0, -1):
            messages[i] = self._log_sum(upward[i], i, self.separators[i])
            parent = self.parents[i]
            upward[parent] = upward[parent] + self.spread(messages[i], self.separators[i], parent)
        log_z = float(logsumexp(upward[0]))
        if not np.isfinite(log_z):
            raise StructureError(
                "the structural zeros exclude every cell.", remedy="Leave out some of them."
            )
        beliefs = [np.exp(upward[0] - log_z)]
        for i in range(1, len(self.cliques)):
            from_above = self.summed(beliefs[self.parents[i]], self.parents[i], self.separators[i])
            with np.errstate(divide="ignore", invalid="ignore"):
                change = np.log(from_above) - messages[i]
            change = np.where(from_above > 0, change, -np.inf)
            beliefs.append(np.exp(upward[i] + self.spread(change, self.separators[i], i)))
        return log_z, beliefs

    def _log_sum(self, values: Reals, clique: int, axes: Axes) -> Reals:
        wanted = self.cliques[clique]
        away = tuple(i for i, name in enumerate(wanted) if name not in axes)
        most = values.max(axis=away, keepdims=True)
        most = np.where(np.isfinite(most), most, 0.0)
        with np.errstate(divide="ignore"):
            sums = np.log(np.exp(values - most).sum(axis=away))
        return np.asarray(sums + np.squeeze(most, axis=away))


def _eliminated(sizes: Mapping[str, int], tables: Sequence[Sequence[str]]) -> list[set[str]]:
    """The cliques that arise when attributes are eliminated, cheapest first."""
    near: dict[str, set[str]] = {name: set() for name in sizes}
    for table in tables:
        for first, other in combinations(table, 2):
            near[first].add(other)
            near[other].add(first)
    cliques, left = [], set(sizes)

    def cost(name: str) -> int:
        return prod(sizes[n] for n in near[name]) * sizes[name]

    while left:
        name = min(sorted(left), key=cost)
        cliques.append({name, *near[name]})
        for first, other in combinations(near[name], 2):
            near[first].add(other)
            near[other].add(first)
        for neighbour in near.pop(name):
            near[neighbour].discard(name)
        left.discard(name)
    return cliques


def _maximal(cliques: Sequence[set[str]]) -> list[set[str]]:
    """Those that are part of no other."""
    maximal: list[set[str]] = []
    for clique in sorted(cliques, key=len, reverse=True):
        if not any(clique <= other for other in maximal):
            maximal.append(clique)
    return maximal


def _tree(cliques: Sequence[set[str]], root: int) -> tuple[list[int], tuple[int, ...]]:
    """A tree with the largest separators (a maximum spanning tree), from the root downwards."""
    k = len(cliques)
    weights = np.zeros((k, k))
    for i, j in combinations(range(k), 2):
        weights[i, j] = -1 - len(cliques[i] & cliques[j])  # 1 more, so that all are connected
    tree = minimum_spanning_tree(csr_matrix(weights))
    near = (tree + tree.T).tolil().rows
    order, parents = [root], [-1]
    for at, i in enumerate(order):
        for j in near[i]:
            if j not in order:
                order.append(j)
                parents.append(at)
    return order, tuple(parents)
