"""Integer noise on a table of which some sums are published: one sampler per part.

What the figures leave of a table (`figures.support`) falls into independent parts: groups of known
sum, ties (groups whose sums are only fixed together), and loose cells. Each part has its own exact
law (`choice` picks it by structure); this module puts the parts together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from congenial.errors import StructureError
from congenial.figures.alike import equal_lines
from congenial.figures.support import LOOSE, Support
from congenial.figures.ties import Tie
from congenial.sampling.choice import ChosenLaw, TablePart, choose
from congenial.sampling.crossing.elimination import CrossingGroups
from congenial.sampling.crossing.proposals import ProposedNoise
from congenial.sampling.discrete import CellLaw
from congenial.sampling.inversion import Ints
from congenial.sampling.lattice_chain import LatticeChain
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness


class TiedNoise(IntegerLaw):
    """Noise on the cells of one tie, given that its equations hold; cells in the tie's own order.

    `chain`: by a heat-bath chain, which is not certified.
    """

    def __init__(self, cell: CellLaw, tie: Tie, sizes: Ints, chain: bool = False) -> None:
        self.labels = np.repeat(np.arange(len(tie.groups)), sizes)
        self.cells = len(self.labels)
        self._cell, self._tie, self.certified = cell, tie, not chain
        self._grid, shape = None, None
        if tie.shape is not None and len(tie.shape) == 2 and self.cells == len(tie.groups):
            assert tie.features is not None
            shape = (tie.shape[0], tie.shape[1])
            self._grid = None if chain else tie.features[:, 0] * shape[1] + tie.features[:, 1]
        part = TablePart(cell, self.labels, tie.equations, shape, chain=chain)
        chosen = choose(part)
        self._law, self.why = chosen.law, chosen.why

    @property
    def log_ratio_error(self) -> float:
        """H of the law that draws."""
        return self._law.log_ratio_error

    @property
    def steps(self) -> int:
        """How many steps of a chain one draw takes; 0 where draws are exact."""
        return self._law.steps if isinstance(self._law, LatticeChain) else 0

    @property
    def cells_proposed(self) -> float:
        """About how many cells are proposed for one draw, where draws are accepted or not; or 0."""
        return self._law.cells_proposed if isinstance(self._law, ProposedNoise) else 0.0

    @property
    def grid(self) -> bool:
        """Whether exactly the margins of a table of groups are fixed."""
        return self._tie.features is not None

    @property
    def equations(self) -> Ints:
        """What ties the sums of its groups."""
        return self._tie.equations

    @cached_property
    def log_Z(self) -> float | None:
        """log of the normaliser; None for a table too large for elimination."""
        if self._law.log_Z is not None:
            return self._law.log_Z
        nothing = np.zeros(self.cells, dtype=np.int64)
        try:
            return CrossingGroups(self.labels, nothing, self.equations, self._cell, None).log_Z
        except StructureError:
            return None

    def log_density(self, u: Any) -> Any:
        """log p(u), u of shape (..., cells); up to a constant where `log_Z` is None."""
        weight = np.sum(self._cell.log_pmf(u) - self._cell.log_pmf(0), axis=-1)
        return np.where(self.holds(u), weight, -np.inf) - (self.log_Z or 0.0)

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent draws, shape (n, cells)."""
        drawn: Ints = self._law.draw_many(randomness, n).reshape(n, -1)
        return drawn if self._grid is None else drawn[:, self._grid]

    def fixes(self, groups: Any) -> bool:
        """Whether the sum over these whole groups follows from the equations."""
        return self._tie.pattern.fixes(groups)

    def holds(self, u: Ints) -> Any:
        """Whether the equations hold, for noise of shape (..., cells)."""
        sums = np.zeros((*u.shape[:-1], len(self._tie.groups)), dtype=np.int64)
        for group in range(len(self._tie.groups)):
            sums[..., group] = u[..., self.labels == group].sum(axis=-1)
        return ~np.any(sums @ self._tie.equations.T, axis=-1)


class ConditionedNoise(IntegerLaw):
    """Noise u on a table: groups sum to zero, ties hold, frozen cells are zero, loose ones are
    free.

    p(u) = prod_i w(u_i) / Z, w double geometric or discrete Gaussian. Exact: H = 0, unless
    ties are left to a `chain`.
    """

    def __init__(self, cell: CellLaw, support: Support, chain: bool = False) -> None:
        self.support, self.cell = support, cell
        flat = support.labels.reshape(-1)
        self._size, self._loose = flat.size, np.flatnonzero(flat == LOOSE)
        self._free = choose(TablePart(cell, flat[self._loose])) if len(self._loose) else None
        alone = np.flatnonzero(~support.tied)
        number = np.full(support.groups + 1, -1)  # the last entry serves cells of no group
        number[alone] = np.arange(len(alone))
        labels = number[np.maximum(flat, -1)]
        self._grouped = choose(TablePart(cell, labels)) if len(alone) else None
        self._ties = list(_alike(cell, support, chain)) if support.ties else []

    @cached_property
    def _apart(self) -> list[ChosenLaw]:
        """The laws of cells that are in no tie."""
        return [chosen for chosen in (self._grouped, self._free) if chosen is not None]

    @property
    def why(self) -> list[str]:
        """Why each part is drawn as it is, each reason once."""
        ties = [tie.why for tie, _ in self._ties]
        return list(dict.fromkeys([*(chosen.why for chosen in self._apart), *ties]))

    @property
    def log_ratio_error(self) -> float:
        """H of one draw of the whole table: parts are independent, so theirs add up."""
        ties = sum(law.log_ratio_error * len(places) for law, places in self._ties)
        return ties + sum(one.law.log_ratio_error for one in self._apart)

    @cached_property
    def log_Z(self) -> float | None:
        """log of the sum of all weights; None where that of a tie is not known."""
        terms = [(one.law.log_Z, 1) for one in self._apart]
        terms += [(law.log_Z, len(places)) for law, places in self._ties]
        if any(log_Z is None for log_Z, _ in terms):
            return None
        return sum((log_Z or 0.0) * times for log_Z, times in terms)

    @cached_property
    def _is_one_make(self) -> bool:
        """Whether the cells, as they stand, are those of ties of one make, one after the other."""
        places = [places.reshape(-1) for _, places in self._ties]
        return len(places) == 1 and np.array_equal(places[0], np.arange(self._size))

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent draws, shape (n, cells)."""
        if self._is_one_make:
            noise, places = self._ties[0]
            return noise.draw_many(randomness, n * len(places)).reshape(n, -1)
        u = np.zeros((n, self._size), dtype=np.int64)
        if self._grouped is not None:
            u = self._grouped.law.draw_many(randomness, n).reshape(n, -1)
        for noise, places in self._ties:
            drawn = noise.draw_many(randomness, n * len(places))
            u[:, places.reshape(-1)] = drawn.reshape(n, -1)
        if self._free is not None:
            u[:, self._loose] = self._free.law.draw_many(randomness, n)
        return u

    def log_density(self, u: Ints) -> Any:
        """log p(u) for u of shape (..., cells); up to a constant where `log_Z` is None."""
        tied = np.concatenate([np.empty(0, np.int64), *(p.reshape(-1) for _, p in self._ties)])
        apart = u.copy()
        apart[..., tied] = 0
        apart[..., self._loose] = 0
        if self._grouped is not None:
            logs = self._grouped.law.log_density(apart)
        else:
            logs = np.where(np.any(apart, axis=-1), -np.inf, 0.0)
        if self._free is not None:
            logs = logs + self._free.law.log_density(u[..., self._loose])
        for noise, places in self._ties:
            logs = logs + np.sum(noise.log_density(u[..., places]), axis=-1)
        return logs

    def ties(self) -> Iterator[tuple[TiedNoise, Ints]]:
        """Samplers of ties of one make, with the places (ties x cells) they serve."""
        return iter(self._ties)


def _alike(cell: CellLaw, support: Support, chain: bool) -> Iterator[tuple[TiedNoise, Ints]]:
    """Ties with equal equations and sizes share a sampler (thousands of counties have one make)."""
    flat = support.labels.reshape(-1)
    order = np.argsort(flat, kind="stable")
    start = np.count_nonzero(flat < 0) + np.cumsum(support.sizes) - support.sizes
    for kind in support.ties.kinds:
        sizes = support.sizes[kind.groups]
        for same in equal_lines(sizes):
            tie = Tie(kind.groups[same[0]], kind.pattern, None)
            places = [
                order[start[kind.groups[same, g]][:, np.newaxis] + np.arange(size)]
                for g, size in enumerate(sizes[same[0]].tolist())
            ]
            yield TiedNoise(cell, tie, sizes[same[0]], chain), np.concatenate(places, axis=1)
