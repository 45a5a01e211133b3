"""Who is where, as far as published figures tell: people in each atom, levels of crossing margins.

Before figures are published, and for people no figure counts, sizes are unknown and taken as large,
which can only enlarge distances and sensitivities.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from congenial.figures.blocks import Block
from congenial.figures.invariants import Invariants
from congenial.figures.lattice import Ints
from congenial.pairs.set_cover import Cover, hardest_cover


@dataclass(frozen=True, eq=False)
class Crossing:
    """A one-way block: people on each level of each feature, or None while they are unknown."""

    block: Block
    totals: list[Ints] | None

    @cached_property
    def levels(self) -> list[int]:
        """Non-empty levels of its features, those with two or more."""
        sizes: Any = self.block.levels
        if self.totals is not None:
            sizes = (np.count_nonzero(level) for level in self.totals)
        return [int(size) for size in sizes if size >= 2]

    @cached_property
    def people(self) -> int | None:
        """People in the block."""
        return None if self.totals is None else int(self.totals[0].sum())

    def cover(self, without: int = 0) -> Cover:
        """Most people ever needed to show all levels of some answer, `without` one of them."""
        if self.totals is None or self.people is None:
            return Cover(max(1, len(self.levels)), False)
        open_levels = [level[level > 0] for level in self.totals if np.count_nonzero(level) >= 2]
        others = max(1, self.people - without)
        return hardest_cover([int(level.min()) for level in open_levels], others)


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Atoms of figures that are nested, or cross as margins do, and who is known to be in them."""

    mandates: Invariants

    @cached_property
    def people(self) -> Any:
        """People in each atom (0 is the loose one), `inf` where unknown."""
        atoms = self.mandates.atoms
        present = np.zeros(int(atoms.max(initial=0)) + 1, dtype=bool)
        present[atoms[atoms >= 0]] = True
        people = np.where(present, np.inf, 0.0)
        known = self.mandates.atom_totals
        if known is not None:
            people[1:] = np.where(present[1:], known, 0)
        elif self.mandates.values is not None:  # atoms outside crossing margins have known totals
            alone = np.ones(len(people), dtype=bool)
            alone[0] = False
            for block in self.mandates.blocks:
                alone[block.atoms] = False
            if alone.any():
                people[alone] = np.rint(self.mandates.some_solution[np.flatnonzero(alone) - 1])
        return people

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """The blocks of crossing margins."""
        return tuple(
            Crossing(block, self.mandates.level_totals(block)) for block in self.mandates.blocks
        )

    @cached_property
    def margins(self) -> int:
        """Most features with two or more non-empty levels in one block; 0 without blocks."""
        return max((len(one.levels) for one in self.crossings), default=0)

    @cached_property
    def loose(self) -> bool:
        """Whether there are people whom no figure counts, as far as is known."""
        return bool(self.people[0] > 0)

    @cached_property
    def known(self) -> bool:
        """Whether the sizes of all groups are published."""
        return not self.loose and self.mandates.values is not None

    @cached_property
    def crossed(self) -> Any:
        """Which atoms belong to a block of crossing margins."""
        inside = np.zeros(len(self.people), dtype=bool)
        for one in self.crossings:
            inside[one.block.atoms] = True
        return inside

    @cached_property
    def parts(self) -> int:
        """Atoms and blocks with people in them: groups between which nobody can move alone."""
        blocks = sum(one.people is None or one.people > 0 for one in self.crossings)
        return int(np.count_nonzero(self.people[~self.crossed])) + blocks

    @property
    def several(self) -> bool:
        """Whether the figures tell apart two people, or may do so."""
        return self.parts > 1 or any(one.levels for one in self.crossings)
