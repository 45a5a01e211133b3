"""Integer noise on a table of which some sums are published: one sampler per part.

What the mandates leave of a table (`public.support`) falls into independent parts: groups of known
sum, ties (groups whose sums are only fixed together), and loose cells. Each part has its own exact
sampler; this module picks it by structure and puts the parts together.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from congenial.errors import StructureError
from congenial.figures.support import LOOSE, Support, Tie
from congenial.sampling.crossing.elimination import CrossingGroups
from congenial.sampling.crossing.surely_drawn import surely_drawn
from congenial.sampling.discrete import DiscreteGaussian
from congenial.sampling.families import cell_law, grouped_noise
from congenial.sampling.inversion import Ints
from congenial.sampling.lattice_chain import LatticeChain
from congenial.sampling.randomness import Randomness
from congenial.sampling.two_way.lattice_gaussian import TwoWayGaussian
from congenial.sampling.two_way.two_way import TwoWayNoise


class Part(Protocol):
    """Noise on the cells of one part."""

    @property
    def log_Z(self) -> float | None:
        """log of the normaliser; None where it is not known."""

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws."""


class TiedNoise:
    """Noise on the cells of one tie, given that its equations hold; cells in the tie's own order.

    A two-way table of single cells has samplers of its own; any other tie is drawn by elimination
    of group sums, which needs that few sums are open at a time; its tables are built with the first
    draw, or at once where only that tells whether they can be. `chain`: by a heat-bath chain
    instead, which is not certified.
    """

    def __init__(
        self, family: str, scale: Fraction, tie: Tie, sizes: Ints, chain: bool = False
    ) -> None:
        self.labels = np.repeat(np.arange(len(tie.groups)), sizes)
        self.cells = len(self.labels)
        self._law = cell_law(family, scale)
        self._tie, self.certified = tie, not chain
        self._grid = None
        shape = tie.shape
        if chain:
            self._own: Any = LatticeChain(family, scale, self.labels, tie.equations)
        elif shape is not None and len(shape) == 2 and self.cells == len(tie.groups):
            assert tie.features is not None
            self._grid = tie.features[:, 0] * shape[1] + tie.features[:, 1]
            two_way = TwoWayGaussian if isinstance(self._law, DiscreteGaussian) else TwoWayNoise
            self._own = two_way((shape[0], shape[1]), scale)
        else:
            self._own = None
            if not surely_drawn(tie.equations, sizes, self._law):
                _ = self._by_elimination  # refuses what it cannot draw

    @property
    def _part(self) -> Any:
        return self._by_elimination if self._own is None else self._own

    @cached_property
    def _by_elimination(self) -> CrossingGroups:
        nothing = np.zeros(self.cells, dtype=np.int64)
        return CrossingGroups(self.labels, nothing, self._tie.equations, self._law, low=None)

    @property
    def steps(self) -> int:
        """How many steps of a chain one draw takes; 0 where draws are exact."""
        return self._own.steps if isinstance(self._own, LatticeChain) else 0

    @property
    def equations(self) -> Ints:
        """What ties the sums of its groups."""
        return self._tie.equations

    @cached_property
    def log_Z(self) -> float | None:
        """log of the normaliser; None for a table too large for elimination."""
        known: float | None = self._part.log_Z
        if known is None:
            try:
                known = self._by_elimination.log_Z
            except StructureError:
                return None
        return known

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        drawn: Ints = self._part.draw_many(randomness, n).reshape(n, -1)
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


class ConditionedNoise:
    """Noise u on a table: groups sum to zero, ties hold, frozen cells are zero, loose ones are
    free.

    p(u) = prod_i w(u_i) / Z, w double geometric or discrete Gaussian. Exact: H = 0, tau = 0, unless
    ties are left to a `chain`.
    """

    def __init__(self, family: str, scale: Fraction, support: Support, chain: bool = False) -> None:
        self.support = support
        self._flat = support.labels.reshape(-1)
        self._loose = np.flatnonzero(self._flat == LOOSE)
        self.cell = cell_law(family, scale)
        alone = np.flatnonzero(~support.tied)
        number = np.full(support.groups + 1, -1)  # the last entry serves cells of no group
        number[alone] = np.arange(len(alone))
        labels = number[np.maximum(self._flat, -1)]
        self._grouped = grouped_noise(family, labels, scale) if len(alone) else None
        self._ties = list(_alike(family, scale, support, chain)) if support.ties else []

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        u = np.zeros((n, self._flat.size), dtype=np.int64)
        if self._grouped is not None:
            u = self._grouped.draw_many(randomness, n).reshape(n, -1)
        for noise, places in self._ties:
            drawn = noise.draw_many(randomness, n * len(places))
            u[:, places.reshape(-1)] = drawn.reshape(n, -1)
        if len(self._loose):
            free = self.cell.draw(randomness, n * len(self._loose))
            u[:, self._loose] = free.reshape(n, -1)
        return u

    @cached_property
    def log_Z_ties(self) -> float | None:
        """log of the ties' normaliser; None where one of them is not known."""
        terms = [(noise.log_Z, len(places)) for noise, places in self._ties]
        if any(log_Z is None for log_Z, _ in terms):
            return None
        return sum((log_Z or 0.0) * times for log_Z, times in terms)

    def log_density(self, u: Ints) -> Any:
        """log p(u) for u of shape (..., cells); up to a constant where `log_Z_ties` is None."""
        tied = np.concatenate([np.empty(0, np.int64), *(p.reshape(-1) for _, p in self._ties)])
        apart = u.copy()
        apart[..., tied] = 0
        apart[..., self._loose] = 0
        if self._grouped is not None:
            logs = self._grouped.log_density(apart)
        else:
            logs = np.where(np.any(apart, axis=-1), -np.inf, 0.0)
        logs = logs + np.sum(self.cell.log_pmf(u[..., self._loose]), axis=-1)
        for noise, places in self._ties:
            one = u[..., places]
            weight = (self.cell.log_pmf(one) - self.cell.log_pmf(0)).sum(axis=(-2, -1))
            logs = logs + np.where(np.all(noise.holds(one), axis=-1), weight, -np.inf)
        return logs - (self.log_Z_ties or 0.0)

    def ties(self) -> Iterator[tuple[TiedNoise, Ints]]:
        """Samplers of ties of one make, with the places (ties x cells) they serve."""
        return iter(self._ties)


def _alike(
    family: str, scale: Fraction, support: Support, chain: bool
) -> Iterator[tuple[TiedNoise, Ints]]:
    """Ties with equal equations and sizes share a sampler (thousands of counties have one make)."""
    flat = support.labels.reshape(-1)
    order = np.argsort(flat, kind="stable")
    start = np.searchsorted(flat[order], np.arange(support.groups + 1))
    makes: dict[Any, tuple[Tie, list[Ints]]] = {}
    for tie in support.ties:
        cells = np.concatenate([order[start[g] : start[g + 1]] for g in tie.groups])
        sizes = support.sizes[tie.groups]
        key = (tie.pattern, sizes.tobytes())
        makes.setdefault(key, (tie, []))[1].append(cells)
    for tie, places in makes.values():
        yield TiedNoise(family, scale, tie, support.sizes[tie.groups], chain), np.stack(places)
