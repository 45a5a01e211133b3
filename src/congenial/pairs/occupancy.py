"""Who is where, as far as published figures tell: people in each atom, levels of crossing margins.

Before figures are published, and for people no figure counts, sizes are unknown and taken as large,
which can only enlarge distances and sensitivities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from congenial.figures.blocks import BlockKind
from congenial.figures.figures import Figures
from congenial.figures.lattice import Ints
from congenial.figures.merged import Merged, merged

if TYPE_CHECKING:
    from congenial.pairs.a_star import Reach
    from congenial.pairs.set_cover import Cover


@dataclass(frozen=True, eq=False)
class Crossing:
    """One-way blocks of one kind: people on each level of each feature, or None while unknown.

    `totals[k]` has one line a block and one column a level of feature k.
    """

    block: BlockKind
    totals: list[Ints] | None

    @cached_property
    def shown(self) -> Ints:
        """Non-empty levels of each feature (columns) of each block (lines)."""
        if self.totals is None:
            return np.tile(np.array(self.block.levels), (len(self.block.atoms), 1))
        return np.stack([np.count_nonzero(level, axis=1) for level in self.totals], axis=1)

    @cached_property
    def margins(self) -> Ints:
        """Features with two or more non-empty levels, of each block."""
        return np.asarray(np.count_nonzero(self.shown >= 2, axis=1))

    @cached_property
    def people(self) -> Ints | None:
        """People in each block."""
        return None if self.totals is None else self.totals[0].sum(axis=1)

    def covers(self, blocks: Any, without: int = 0) -> Iterator[Cover]:
        """Most people ever needed to show all levels of some answer, `without` one of them: of
        some blocks, those that say the same once, the most features and people first.
        """
        from congenial.pairs.set_cover import Cover, hardest_cover

        if self.totals is None or self.people is None:
            features = np.unique(self.margins[blocks])[::-1]
            yield from (Cover(max(1, int(one)), False) for one in features)
            return
        open_ = self.shown[blocks] >= 2
        rarest = np.stack([_rarest(level[blocks]) for level in self.totals], axis=1)
        others = np.maximum(1, self.people[blocks] - without)
        keys = np.column_stack([-open_.sum(axis=1), -others, np.where(open_, rarest, 0)])
        for _, number, *held in np.unique(keys, axis=0).tolist():
            yield hardest_cover([one for one in held if one], -number)


def _rarest(level: Ints) -> Ints:
    """The fewest people on a level that is not empty, of each block."""
    return np.asarray(np.where(level > 0, level, np.iinfo(np.int64).max).min(axis=1))


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Atoms of figures that are nested, or cross as margins do, and who is known to be in them.

    `reaches`: how far look-alikes are apart, by reading and metric, once worked out.
    """

    figures: Figures
    reaches: dict[tuple[str, str], Reach] = field(default_factory=dict, repr=False)

    @cached_property
    def merged(self) -> Merged:
        """The figures on merged cells, bounds among them."""
        return merged(self.figures)

    @cached_property
    def people(self) -> Any:
        """People in each atom (0 is the loose one), `inf` where unknown."""
        present = self.figures.first_cells >= 0
        people = np.where(present, np.inf, 0.0)
        known = self.figures.atom_totals
        if known is not None:
            people[1:] = np.where(present[1:], known, 0)
        elif self.figures.values is not None:  # atoms outside crossing margins have known totals
            alone = np.ones(len(people), dtype=bool)
            alone[0] = False
            for kind in self.figures.blocks.kinds:
                alone[kind.atoms] = False
            if alone.any():
                people[alone] = np.rint(self.figures.some_solution[np.flatnonzero(alone) - 1])
        return people

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """The blocks of crossing margins, kind by kind."""
        kinds = self.figures.blocks.kinds
        return tuple(Crossing(kind, self.figures.level_totals(kind)) for kind in kinds)

    @cached_property
    def margins(self) -> int:
        """Most features with two or more non-empty levels in one block; 0 without blocks."""
        return max((int(one.margins.max()) for one in self.crossings), default=0)

    @cached_property
    def loose(self) -> bool:
        """Whether there are people whom no figure counts, as far as is known."""
        return bool(self.people[0] > 0)

    @cached_property
    def known(self) -> bool:
        """Whether the sizes of all groups are published."""
        return not self.loose and self.figures.values is not None

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
        blocks = sum(
            len(one.block.atoms) if one.people is None else int(np.count_nonzero(one.people))
            for one in self.crossings
        )
        return int(np.count_nonzero(self.people[~self.crossed])) + blocks

    @property
    def several(self) -> bool:
        """Whether the figures tell apart two people, or may do so."""
        return self.parts > 1 or any(np.any(one.margins) for one in self.crossings)


@lru_cache(maxsize=16)
def occupancy(figures: Figures) -> Occupancy:
    """Who is where under some figures; what was worked out is kept for those who ask again."""
    return Occupancy(figures)
