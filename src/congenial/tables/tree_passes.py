"""Least squares on a tree in two passes: small matrices at the nodes, once per kind of node.

The unknowns are vectors x of d entries at the leaves; a node stands for the sum of its leaves.
Every node of a level carries the information matrix W of that level and, where figures fix C x = 0,
the rows C. Going up, a node's covariance given what was measured at and below it is

    S = sum over children of their covariances,   R = (I + S W)^(-1) S,   R - R C'(C R C')^(-1) C R;

going down, a child moves by its share, (its covariance) S^(-1), of what its parent moved. Nodes
with the same number of children of each kind are of one kind, so matrices are computed once per
kind and a pass costs O(leaves). Covariances come from the same two passes.

Why: least squares are conditional means of Gaussians with these precisions. Given what was measured
below them, the children x_c of a node are independent with covariances S_c; so their sum s has
S = sum of S_c. Measuring it with information W leaves (S^(-1) + W)^(-1) = (I + S W)^(-1) S, also
where S is singular; knowing C s leaves the Schur complement. What is measured elsewhere concerns
the children only through s, and E[x_c | s] = m_c + S_c S^(-1) (s - sum of m): so the pass down, and
Cov(x_c) = S_c - S_c S^(-1) (S - Cov(s)) S^(-1) S_c (`covariances`). On a chain these are the
Kalman filter and the smoother of Rauch, Tung and Striebel (1965).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from congenial.data.arrays import Floats, Ints
from congenial.data.workload import Margin, Partition
from congenial.tables.row_space import complement, orthonormal

GATHERED = 4_000_000  # entries of matrices copied at a time


class Undetermined(Exception):
    """The measurements say nothing about some direction at the leaves."""


@dataclass(frozen=True, eq=False)
class Level:
    """One level of the tree: kinds of nodes and the matrices of each kind."""

    kinds: Ints  # of each node
    keep: Floats  # what is left of the children's sum after measuring here
    covariance: Floats  # given what was measured at and below
    share: Floats  # S^(-1) of the children's sum; empty at the leaves
    summed: Floats  # S; empty at the leaves


@dataclass(frozen=True, eq=False)
class Upward:
    """Means given what was measured at and below each node, and sums of the children's."""

    up: list[Floats]
    sums: list[Floats]


class TreePasses:
    """The tree with its information: solves and covariances.

    `parents[l]` are the nodes of level l + 1 that the nodes of level l belong to; `information[l]`
    and `fixed[l]` (orthonormal rows, spanning those of the finer levels) hold at every node. A tree
    may be cut at a level: `upward` and `downward` are then called apart, and `over` stands on the
    sums of what was cut off.
    """

    def __init__(
        self,
        leaves: int,
        parents: Sequence[Partition],
        information: Sequence[Floats],
        fixed: Sequence[Floats],
    ) -> None:
        first = _leaf_level(leaves, information[0], fixed[0])
        self._build(leaves, parents, first, information, fixed)

    @classmethod
    def over(
        cls,
        summed: Floats,
        parents: Sequence[Partition],
        information: Sequence[Floats],
        fixed: Sequence[Floats],
    ) -> TreePasses:
        """A tree whose leaves stand for trees of their own.

        `summed[node]` is the covariance of the sum of a leaf's children given what was measured
        below it; `fixed[0]` are the rows that are fixed there, `fixed[1:]` those of the levels.
        """
        passes = cls.__new__(cls)
        kinds, which = np.unique(summed.reshape(len(summed), -1), axis=0, return_inverse=True)
        kinds = kinds.reshape(-1, *summed.shape[1:])
        first = _measured_level(kinds, which.reshape(-1), information[0], (fixed[0], fixed[1]))
        passes._build(len(summed), parents, first, information, fixed[1:])
        return passes

    def _build(
        self,
        leaves: int,
        parents: Sequence[Partition],
        first: Level,
        information: Sequence[Floats],
        fixed: Sequence[Floats],
    ) -> None:
        self.leaves, self.parents = leaves, tuple(parents)
        self.top: Floats | None = None  # covariance of the one top node, where more is known of it
        self.width = information[0].shape[0]
        self.levels = [first]
        for level, partition in enumerate(self.parents, start=1):
            before = self.levels[-1]
            self.levels.append(
                _inner_level(
                    before, partition, information[level], (fixed[level - 1], fixed[level])
                )
            )
        self._sums = [Margin((p, Partition.levels(self.width))) for p in self.parents]

    def solve(self, terms: Sequence[Floats | None], below: Floats | None = None) -> Floats:
        """x at the leaves for information vectors per level, shaped (batch, nodes, d).

        `below`: the means of the children's sums of a tree that stands `over` others.
        """
        messages = self.upward(terms, below)
        return self.downward(messages, messages.up[-1])

    def upward(self, terms: Sequence[Floats | None], below: Floats | None = None) -> Upward:
        """Means given what was measured at and below each node."""
        first = _apply(self.levels[0], "covariance", self._leaf_terms(terms, below))
        up = [first if below is None else first + _apply(self.levels[0], "keep", below)]
        sums: list[Floats] = []
        for at, level in enumerate(self.levels[1:], start=1):
            total = self._sums[at - 1].totals(up[-1])
            sums.append(total)
            here = _apply(level, "keep", total)
            term = terms[at]
            up.append(here if term is None else here + _apply(level, "covariance", term))
        return Upward(up, sums)

    def downward(self, found: Upward, x: Floats) -> Floats:
        """x at the leaves, given x at the top."""
        for at in reversed(range(len(self.parents))):
            moved = _apply(self.levels[at + 1], "share", x - found.sums[at])
            spread = np.take(moved, self.parents[at].array, axis=1)
            x = found.up[at] + _apply(self.levels[at], "covariance", spread)
        return x

    def _leaf_terms(self, terms: Sequence[Floats | None], below: Floats | None) -> Floats:
        term = terms[0]
        if term is not None:
            return term
        if below is not None:
            return np.zeros_like(below)
        batch = next(len(term) for term in terms if term is not None)
        return np.zeros((batch, self.leaves, self.width))

    @cached_property
    def covariances(self) -> tuple[tuple[Floats, Ints], ...]:
        """Per level: covariances given everything measured, one per kind, and each node's kind."""
        last = self.levels[-1]
        covariances = [(last.covariance if self.top is None else self.top[None], last.kinds)]
        for at in reversed(range(len(self.levels) - 1)):
            level = self.levels[at]
            above, kinds_above = covariances[-1]
            upper = self.levels[at + 1]
            number, first = np.unique(kinds_above, return_index=True)
            share, summed = (m[upper.kinds[first]] for m in (upper.share, upper.summed))
            less = np.zeros_like(above)
            less[number] = share @ (summed - above[number]) @ share
            pairs = np.stack([level.kinds, kinds_above[self.parents[at].array]])
            kinds_here, which = np.unique(pairs, axis=1, return_inverse=True)
            own = level.covariance[kinds_here[0]]
            covariances.append((own - own @ less[kinds_here[1]] @ own, which.reshape(-1)))
        return tuple(reversed(covariances))


def _leaf_level(leaves: int, information: Floats, fixed: Floats) -> Level:
    free = complement(fixed)
    inside = free.T @ information @ free
    if inside.size:
        values = np.linalg.eigvalsh(inside)
        if values[0] <= 1e-12 * max(values[-1], 1e-300):
            raise Undetermined
    covariance = free @ np.linalg.inv(inside) @ free.T
    none = np.zeros((0, 0, 0))
    return Level(np.zeros(leaves, np.int64), none, covariance[None], none, none)


def _inner_level(
    below: Level, parents: Partition, information: Floats, fixed: tuple[Floats, Floats]
) -> Level:
    counts = np.zeros((parents.size, len(below.covariance)))
    np.add.at(counts, (parents.array, below.kinds), 1.0)
    counts, kinds = np.unique(counts, axis=0, return_inverse=True)
    summed = np.tensordot(counts, below.covariance, 1)
    return _measured_level(summed, kinds.reshape(-1), information, fixed)


def _measured_level(
    summed: Floats, kinds: Ints, information: Floats, fixed: tuple[Floats, Floats]
) -> Level:
    """Nodes of which the children's sums have covariances `summed`, one per kind."""
    eye = np.eye(summed.shape[1])
    measured = np.linalg.solve(eye + summed @ information, summed)
    keep = eye - measured @ information
    free = complement(fixed[0])
    new = orthonormal(fixed[1] @ free @ free.T) if len(fixed[1]) > len(fixed[0]) else fixed[1][:0]
    if len(new):
        gain = measured @ new.T @ np.linalg.inv(new @ measured @ new.T)
        keep, measured = keep - gain @ (new @ keep), measured - gain @ (new @ measured)
    share = free @ np.linalg.inv(free.T @ summed @ free) @ free.T
    symmetric = (measured + np.swapaxes(measured, 1, 2)) / 2
    return Level(kinds, keep, symmetric, share, summed)


def _apply(level: Level, what: str, vectors: Floats) -> Floats:
    """Each node's vectors times the matrix of its kind."""
    matrices: NDArray[np.float64] = getattr(level, what)
    if len(matrices) == 1:
        return np.asarray(vectors @ matrices[0].T)
    width = matrices.shape[1]
    if width == 1:
        return np.asarray(vectors * matrices[level.kinds, 0, 0][None, :, None])
    out = np.empty_like(vectors)
    step = max(1, GATHERED // width**2)
    for start in range(0, len(level.kinds), step):
        part = slice(start, start + step)
        out[:, part] = np.einsum("bnj,nij->bni", vectors[:, part], matrices[level.kinds[part]])
    return out
