"""The latent tables that the public figures leave possible, and moves that connect them.

Why the moves connect every two conforming tables of counts >= 0:

- a cell in no published sum moves by one unit at a time;
- inside a group of known total one unit moves from a cell to another: take any two tables of the
  group, move units from cells that have too many to cells that have too few, never below zero (nor
  above a public capacity);
- groups of which the one-way margins are known: write the table as a list of people with one level
  per feature. Any other conforming table of groups is the same list with each feature's column
  permuted, a permutation is a product of transpositions, and to transpose one feature between two
  people is to move two units out of two groups into two others;
- the same with public capacities where the margins are two by two: the totals of the four groups
  have one free direction, along which one unit moves at a time. Two groups have to gain and two to
  lose; a group whose total is below that of another conforming table has a cell with room, one
  whose total is above has a cell that is not empty, so the exchange is open until totals agree.

Anything else is refused: a chain that cannot reach a table says nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.errors import InferenceError
from congenial.figures.support import FROZEN, LOOSE, Pattern, Support, Tie

FIXED = FROZEN
FREE = LOOSE


@dataclass(frozen=True)
class LatentTables:
    """Which counts are known, which sums, and which are free.

    labels: group of each cell, FREE or FIXED. known: the value of fixed cells. totals: each group's
    sum, -1 where it is only tied to others.
    """

    labels: Ints
    known: Ints = field(repr=False)
    totals: Ints = field(repr=False)
    ties: Sequence[Tie] = ()

    @classmethod
    def anything(cls, cells: int) -> LatentTables:
        """Nothing is known."""
        labels = np.full(cells, FREE, dtype=np.int64)
        return cls(labels, np.zeros(cells, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of_groups(cls, labels: Any, totals: Any) -> LatentTables:
        """Groups 0, 1, ... of known total (labels: FREE for a cell in none of them)."""
        labels, totals = np.array(labels, dtype=np.int64), np.asarray(totals, dtype=np.int64)
        counts = np.zeros(len(labels), dtype=np.int64)
        sizes = np.bincount(labels[labels >= 0], minlength=len(totals))
        alone = np.flatnonzero(np.isin(labels, np.flatnonzero(sizes == 1)))
        counts[alone] = totals[labels[alone]]
        labels[alone] = FIXED
        return cls(labels, counts, totals)

    @classmethod
    def of_support(cls, support: Support) -> LatentTables:
        """What published figures leave on a table."""
        labels, totals = support.labels.reshape(-1), support.totals
        if not support.groups:
            totals = np.zeros(0, dtype=np.int64)
        if totals is None:
            raise InferenceError(
                "the public figures of this release have no values.",
                remedy="Use the bundle as published, or public=False.",
            )
        if unproved_ties(support) or any(tie.values is None for tie in support.ties):
            raise InferenceError(
                "the published figures tie the cells in a way that no sampler is proved to "
                f"handle ({support.structure}).",
                remedy="Use public=False with a plain mechanism, or model a coarser table.",
            )
        alone = cls.of_groups(labels, totals)
        tied = np.isin(labels, np.flatnonzero(support.tied))
        return cls(
            np.where(tied, labels, alone.labels),
            np.where(tied, 0, alone.known),
            np.where(support.tied, -1, totals),
            support.ties,
        )

    # ---- what is known -----------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether no sum is known: every cell that is not fixed is free."""
        return not np.any(self.labels >= 0)

    @cached_property
    def moving(self) -> Ints:
        """Cells whose count is not known."""
        return np.flatnonzero(self.labels != FIXED)

    @cached_property
    def members(self) -> list[Ints]:
        """The cells of each group."""
        order = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[order], np.arange(len(self.totals) + 1))
        return [order[a:b] for a, b in pairwise(starts)]

    def sums(self, x: Any) -> Any:
        """Sum of each group, for tables of shape (..., cells)."""
        x = np.asarray(x)
        out = np.zeros((*x.shape[:-1], len(self.totals)), dtype=x.dtype)
        for group, cells in enumerate(self.members):
            out[..., group] = x[..., cells].sum(axis=-1)
        return out

    def holds(self, x: Any) -> Any:
        """Which tables (..., cells) agree with everything that is known."""
        x = np.asarray(x)
        fixed = self.labels == FIXED
        good = np.all(x[..., fixed] == self.known[fixed], axis=-1)
        if len(self.totals):
            sums, checked = self.sums(x), self.totals >= 0
            checked &= np.array([len(cells) > 0 for cells in self.members])
            good &= np.all(sums[..., checked] == self.totals[checked], axis=-1)
            for tie in self.ties:
                right = np.moveaxis(sums[..., tie.groups] @ tie.equations.T - tie.values, -1, 0)
                good &= ~np.any(right, axis=0)
        return good

    # ---- where a chain starts ----------------------------------------------------------------

    def start(self, y: Floats, most: Floats) -> Ints:
        """A conforming table near y; `most`: largest possible count of each cell (inf: no limit).

        Raises InferenceError when none exists: the model gives the public figures no mass.
        """
        x = np.clip(np.rint(y), 0, most).astype(np.int64)
        x[self.labels == FIXED] = self.known[self.labels == FIXED]
        if np.any(x > most):
            raise no_mass("a count that is published exactly is above what the model allows.")
        totals = self.totals.copy()
        for tie in self.ties:
            room = np.array([most[self.members[group]].sum() for group in tie.groups])
            if np.any(np.isfinite(room)) and alternating(tie.pattern) is None:
                raise InferenceError(
                    "capacities together with crossing margins of more than two rows and two "
                    "columns: no connecting moves are proved.",
                    remedy="Use a model without capacities, such as poisson.",
                )
            totals[tie.groups] = _some_totals(tie, self.sums(x)[tie.groups], room)
        for group, cells in enumerate(self.members):
            if len(cells):
                x[cells] = _reach_total(x[cells], most[cells], int(totals[group]))
        return x

    # ---- moves -------------------------------------------------------------------------------

    def lines(self, rng: np.random.Generator, parts: Ints | None = None) -> Ints:
        """Lines for one sweep: (lines, 4), two cells that go up, two that go down, -1 for none.

        `parts` (one number per cell) adds moves between cells of one part, where sums are free:
        they change nothing about which tables are reached, only how fast.
        """
        free = np.flatnonzero(self.labels == FREE)
        columns = [_columns(free)]
        if parts is not None:
            columns += [_pairs(rng, free[parts[free] == part]) for part in np.unique(parts[free])]
        columns += [_pairs(rng, cells) for cells in self.members]
        columns += [self._swaps(rng, tie) for tie in self.ties]
        return np.concatenate(columns)

    def _swaps(self, rng: np.random.Generator, tie: Tie) -> Ints:
        """Exchanges of some features between two people, as many as the tie has cells."""
        assert tie.features is not None
        levels = np.array(tie.shape)
        place, members, sizes = self._places(tie)
        count = len(members)
        left, right = rng.integers(len(tie.groups), size=(2, count))
        chosen = rng.random((count, len(levels))) < 0.5
        from_left, from_right = tie.features[left], tie.features[right]
        up = (
            np.where(chosen, from_right, from_left),
            np.where(chosen, from_left, from_right),
        )
        out = [place[np.ravel_multi_index(levels_of.T, levels)] for levels_of in up]
        groups = np.stack([*out, left, right], axis=1)
        real = ~np.any((groups[:, :2, None] == groups[:, None, 2:]), axis=(1, 2))
        real &= groups[:, 0] != groups[:, 1]
        # one cell of each group, all equally likely
        first = np.cumsum(sizes) - sizes
        chosen = groups[real]
        at = first[chosen] + (rng.random(chosen.shape) * sizes[chosen]).astype(np.int64)
        cells: Ints = members[at]
        return cells

    def _places(self, tie: Tie) -> tuple[Ints, Ints, Ints]:
        """The group at each combination of features; the cells of all groups, and their numbers."""
        key = int(tie.groups[0])
        if key not in self._known_places:
            assert tie.features is not None
            assert tie.shape is not None
            place = np.full(int(np.prod(tie.shape)), -1, dtype=np.int64)
            at = np.ravel_multi_index(tie.features.T, np.array(tie.shape))
            place[at] = np.arange(len(tie.groups))
            members = [self.members[g] for g in tie.groups]
            sizes = np.array([len(cells) for cells in members])
            self._known_places[key] = place, np.concatenate(members), sizes
        return self._known_places[key]

    @cached_property
    def _known_places(self) -> dict[int, tuple[Ints, Ints, Ints]]:
        return {}

    @property
    def words(self) -> str:
        """What the chain moves along, in words."""
        moves = []
        if np.any(self.labels == FREE):
            moves.append("single counts")
        if np.any(self.labels >= 0):
            moves.append("pairs inside groups of known total")
        if self.ties:
            moves.append("exchanges between groups with known margins")
        return ", ".join(moves) or "nothing: every count is public"


def no_mass(reason: str) -> InferenceError:
    """The model excludes what is public."""
    return InferenceError(
        f"the model gives the public figures probability zero: {reason}",
        remedy="Widen the prior, the number of trials or the total.",
    )


def _columns(cells: Ints) -> Ints:
    lines = np.full((len(cells), 4), -1, dtype=np.int64)
    lines[:, 0] = cells
    return lines


def _pairs(rng: np.random.Generator, cells: Ints) -> Ints:
    """Neighbours in a random order, so that every pair has its turn."""
    if len(cells) < 2:
        return np.empty((0, 4), dtype=np.int64)
    order = rng.permutation(cells)
    lines = np.full((len(cells), 4), -1, dtype=np.int64)
    lines[:, 0], lines[1:, 2], lines[0, 2] = order, order[:-1], order[-1]
    return lines[:-1] if len(cells) == 2 else lines


def _reach_total(x: Ints, most: Floats, total: int) -> Ints:
    """Change counts, largest room first, until they sum to the total."""
    x = x.copy()
    missing = total - int(x.sum())
    room = np.minimum(most - x, max(missing, 0)) if missing > 0 else x.astype(float)
    for cell in np.argsort(-room, kind="stable"):
        step = int(min(abs(missing), room[cell]))
        x[cell] += step if missing > 0 else -step
        missing -= step if missing > 0 else -step
        if missing == 0:
            return x
    if missing:
        raise no_mass("a published total is above what the model allows.")
    return x


def _some_totals(tie: Tie, near: Any, room: Floats) -> Ints:
    """Counts of tied groups that satisfy the published margins, near given ones, at most `room`."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    groups = len(tie.groups)
    size = float(np.abs(near).max(initial=1.0)) + 1
    # |T - near| <= d, least sum of d
    eye = np.eye(groups)
    solution = milp(
        np.concatenate([np.zeros(groups), np.ones(groups)]),
        constraints=[
            LinearConstraint(np.hstack([tie.equations, 0 * tie.equations]), tie.values, tie.values),
            LinearConstraint(np.hstack([eye, -eye]), -np.inf, near),
            LinearConstraint(np.hstack([eye, eye]), near, np.inf),
        ],
        integrality=np.concatenate([np.ones(groups), np.zeros(groups)]),
        bounds=Bounds(0, np.concatenate([room, np.full(groups, np.inf)])),
        options={"mip_rel_gap": 1 / size},
    )
    if solution.x is None:
        raise no_mass("no table of counts has the published margins.")
    totals: Ints = np.rint(solution.x[:groups]).astype(np.int64)
    return totals


def alternating(pattern: Pattern) -> Ints | None:
    """How the totals of four groups move together, up or down by one, as those of two by two do.

    None where their margins leave more than one direction free, or another one.
    """
    if pattern.equations.shape[1] != 4 or pattern.rank != 3:
        return None
    free = np.linalg.svd(pattern.equations.astype(float))[2][-1]
    signs = np.sign(free).astype(np.int64)
    return None if np.any(pattern.equations @ signs) or not np.all(signs) else signs


def unproved_ties(known: Support) -> bool:
    """Whether figures tie groups in a way for which no connecting moves are proved."""
    return any(tie.features is None for tie in known.ties)
