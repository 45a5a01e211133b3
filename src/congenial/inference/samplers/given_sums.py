"""Independent draws given published sums: totals of groups, or the margins of two by two groups.

Where parameters integrate out and each cell has noise of its own, counts are independent but for
what is published. Given their totals groups are independent, and all counts of a group are drawn at
once by a tree of sums (see `count_kernels`). Margins of two by two groups leave one total unknown:
its law is the product of the laws of four sums, and it is drawn first. No chain, nothing to reject.

A factor exp(tilt x) for all counts of a group changes nothing given its total; four groups with
known margins may have tilts whose alternating sum is 0. Tilts are chosen so that what is published
is what is expected: laws are then only needed where they have mass, however far the release is from
the figures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.inference.feasibility import MOST_WORK
from congenial.inference.latent_tables import FREE, alternating
from congenial.inference.models.model import BoundModel
from congenial.inference.samplers import count_kernels
from congenial.inference.samplers.count_kernels import L1

MOST_TRIALS = 5_000_000  # capacities of all cells together, which are looked at one by one
DEEP = 42.0  # -log of what laws of counts leave out
MOST_STEPS = 100
NEAR = 1e-6  # of the largest weight: totals that are rarer were not found by tilting
BATCH = 250  # draws at once, so that what is worked on stays in the cache


@dataclass(frozen=True)
class GroupedCells:
    """Cells by group, totals that conform, and the direction in which margins let them move."""

    order: Ints
    starts: Ints
    totals: Ints
    signs: Floats  # 0 for a group of known total
    part: Ints  # groups of one tie share it

    @property
    def of_cell(self) -> Ints:
        """The group of each cell in `order`."""
        return np.repeat(np.arange(len(self.totals)), np.diff(self.starts))


@dataclass(frozen=True)
class DrawsGivenSums:
    """A tree for each group, and the laws of the totals that are not known."""

    bound: BoundModel
    groups: GroupedCells
    roots: Ints
    forest: tuple[Any, ...] = field(repr=False)
    moves: tuple[tuple[Ints, int, Floats], ...] = field(repr=False)  # groups, first move, cdf

    @classmethod
    def of(cls, bound: BoundModel) -> DrawsGivenSums | None:
        """None where draws have to come from a chain."""
        if not _fits(bound):
            return None
        cells, noise = bound.collapsed(), bound.observation.noise
        assert cells is not None
        assert noise is not None
        groups = groups_of(bound)
        y = np.ascontiguousarray(bound.observation.y[groups.order])
        law = y, np.ascontiguousarray(cells[groups.order]), *noise.at(groups.order).arguments
        tilts = _tilts(groups, law)
        if tilts is None:
            return None
        roots, forest, done = count_kernels.grow(groups.starts, tilts, MOST_WORK, *law)
        moves = _moves(groups, roots, forest) if done else None
        return None if moves is None else cls(bound, groups, roots, forest, moves)

    def draw(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Independent draws of (theta, x)."""
        x = np.empty((draws, self.bound.observation.cells), dtype=np.int64)
        x[:] = self.bound.observation.conforming.known
        for first in range(0, draws, BATCH):
            self._fill(x[first : first + BATCH], rng)
        _draw_free(self.bound, x, rng)
        return self.bound.draw_parameters(rng, x), x

    def _fill(self, x: Ints, rng: np.random.Generator) -> None:
        """Totals first, then the counts of each group."""
        sums = np.empty((len(self.forest[0]), len(x)), dtype=np.int64)
        sums[self.roots] = self.groups.totals[:, None]
        for tied, first, cdf in self.moves:
            move = first + np.searchsorted(cdf, rng.random(len(x)) * cdf[-1], "right")
            signs = self.groups.signs[tied].astype(np.int64)
            sums[self.roots[tied]] += signs[:, None] * move
        count_kernels.split_down(rng, sums, self.forest)
        x[:, self.groups.order] = sums[: len(self.groups.order)].T


def _fits(bound: BoundModel) -> bool:
    """Whether the law is of the kind that trees are for, and narrow enough."""
    observation = bound.observation
    other = (observation.levels, observation.normaliser, observation.finer, observation.listed)
    if observation.noise is None or not observation.whole or any(o is not None for o in other):
        return False
    if bound.collapsed() is None or any(
        alternating(tie.pattern) is None for tie in observation.conforming.ties
    ):
        return False
    grouped = np.flatnonzero(observation.conforming.labels >= 0)
    most = bound.most[grouped]
    trials = float(most[np.isfinite(most)].sum())
    return trials <= MOST_TRIALS and observation.noise.at(grouped).convolution_work <= MOST_WORK


def groups_of(bound: BoundModel) -> GroupedCells:
    """GroupedCells with unknown cells, and totals that conform."""
    conforming = bound.observation.conforming
    start = conforming.start(bound.observation.y, bound.most)
    here = [group for group, cells in enumerate(conforming.members) if len(cells)]
    at = {group: i for i, group in enumerate(here)}
    members = [conforming.members[group] for group in here]
    signs, part = np.zeros(len(here)), np.arange(len(here))
    for tie in conforming.ties:
        alternate = alternating(tie.pattern)
        assert alternate is not None
        tied = [at[int(group)] for group in tie.groups]
        signs[tied], part[tied] = alternate, tied[0]
    order = np.concatenate([*members, np.zeros(0, dtype=np.int64)])
    starts = np.cumsum([0, *map(len, members)])
    return GroupedCells(order, starts, conforming.sums(start)[here], signs, part)


def _tilts(groups: GroupedCells, law: Any) -> Floats | None:
    """Tilts of the cells under which expected totals are those of the groups (Newton's method).

    The totals of tied groups may all move along their signs: by what makes the signed sum of the
    steps 0. Steps are shortened where they are long, as for any self-concordant function.
    """
    count, of_cell = len(groups.totals), groups.of_cell
    tilts, largest = np.zeros(count), _largest(groups, law)
    if np.any(largest <= 0):
        return None
    for _ in range(MOST_STEPS):
        if np.sum((DEEP / (largest - tilts)[of_cell]) ** 2) > MOST_WORK:
            return None
        moments = count_kernels.tilted_moments(tilts[of_cell], *law)
        mean, spread = (np.bincount(of_cell, m, minlength=count) for m in moments.T)
        spread = np.maximum(spread, 0.25)
        gap: Any = groups.totals - mean
        along = np.bincount(groups.part, groups.signs * gap / spread, minlength=count)
        firm = np.bincount(groups.part, groups.signs**2 / spread, minlength=count)
        move = -along / np.maximum(firm, 1e-300)
        gap = gap + groups.signs * move[groups.part]
        if np.all(np.abs(gap) <= np.maximum(0.5, 0.1 * np.sqrt(spread))):
            return tilts[of_cell]
        step = gap / spread
        short = 1 / (1 + np.abs(gap) / np.sqrt(spread))
        room = 0.5 * (largest - tilts) / np.maximum(step, 1e-300)
        share = np.ones(count)
        np.minimum.at(share, groups.part, np.minimum(short, np.where(step > 0, room, 1.0)))
        tilts = tilts + share[groups.part] * step
    return None


def _largest(groups: GroupedCells, law: Any) -> Floats:
    """Tilts below which every law of a group has a sum: only l1 noise sets a limit."""
    _, cells, kind, s, _, _ = law
    largest = np.full(len(groups.totals), np.inf)
    if kind == L1:
        open_end = cells[:, 2] < 0
        limit = np.where(open_end, np.log(s) - np.log(cells[:, 0]), np.inf)
        np.minimum.at(largest, groups.of_cell, limit)
    return largest


def _moves(
    groups: GroupedCells, roots: Ints, forest: tuple[Any, ...]
) -> tuple[tuple[Ints, int, Floats], ...] | None:
    """The law of the unknown total of every tie; None where the trees end before what is known."""
    _, _, low, begin, size, _, _, _, pool = forest
    moves_of_ties = []
    for part in np.unique(groups.part):
        tied = np.flatnonzero(groups.part == part)
        nodes, signs = roots[tied], groups.signs[tied].astype(np.int64)
        ends = np.stack([low[nodes], low[nodes] + size[nodes] - 1]) - groups.totals[tied]
        ways = np.sort(np.where(signs < 0, -ends, ends), axis=0) if signs.any() else 0 * ends
        if not signs.any() and not (ends[0, 0] <= 0 <= ends[1, 0]):
            return None
        moves = np.arange(ways[0].max(), ways[1].min() + 1)
        weights = np.ones(len(moves))
        for node, sign, total in zip(nodes, signs, groups.totals[tied], strict=True):
            weights *= pool[begin[node] + total + sign * moves - low[node]]
        if not len(moves) or not weights.max() > NEAR:
            return None
        if signs.any():
            moves_of_ties.append((tied, int(moves[0]), np.cumsum(weights)))
    return tuple(moves_of_ties)


def _draw_free(bound: BoundModel, x: Ints, rng: np.random.Generator) -> None:
    """Cells in no published sum, one by one."""
    observation, cells = bound.observation, bound.collapsed()
    assert cells is not None
    assert observation.noise is not None
    free = np.flatnonzero(observation.conforming.labels == FREE)
    x[:, free] = count_kernels.draw_counts(
        np.ascontiguousarray(observation.y[free]),
        np.ascontiguousarray(cells[free]),
        *observation.noise.at(free).arguments,
        rng.random((len(free), len(x))),
    ).T
