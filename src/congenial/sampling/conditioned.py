"""Integer noise, or noisy counts m >= 0, on a table of which some sums are published: a sampler per
part.

What the figures leave of a table (`figures.support`) falls into independent parts: groups of known
sum, ties (groups whose sums are only fixed together), and loose cells. Each part has its own exact
law (`choice` picks it by structure); this module puts the parts together.

Of counts, bounds of single cells go into the laws of the parts, and so do bounds on nested sums
inside a group of known total; bounds on other sums of cells are met by drawing again
(`KeptBounds`): parts that no bound joins are accepted by themselves, so that a bound per county is
met county by county and not by all counties at once. Whatever is accepted has exactly the
sampler's law given the bounds. How many tables that takes depends on the centre of the law, which
is confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures.lattice import connected, equal_lines
from congenial.figures.limits import FAR, Limits, no_limits
from congenial.figures.support import LOOSE, Support, Tie
from congenial.sampling.choice import ChosenLaw, TablePart, choose, reason
from congenial.sampling.discrete import CellLaw
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.lattice_chain import LatticeChain
from congenial.sampling.lattice_gaussian import CrossingGaussian
from congenial.sampling.law import IntegerLaw
from congenial.sampling.proposed_noise import ProposedNoise
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree_of_sums import BoundedSum, TreeOfSums, log_weight, nested_sums
from congenial.sampling.two_way_noise import TwoWayNoise

PROPOSED = 10_000  # cells proposed for one draw, from which thousands of draws take long
QUICKER = 5  # times: numbers of Klein's sampler, in a compiled loop, beside proposed cells


class TiedNoise(IntegerLaw):
    """Noise on the cells of one tie, given that its equations hold; cells in the tie's own order.

    `chain`: by a heat-bath chain, which is not certified.
    """

    def __init__(self, cell: CellLaw, tie: Tie, sizes: Ints, chain: bool = False) -> None:
        self.labels = np.repeat(np.arange(len(tie.groups)), sizes)
        self.cells = len(self.labels)
        self._cell, self._tie, self.certified = cell, tie, not chain
        shape = None
        if tie.shape is not None and len(tie.shape) == 2 and self.cells == len(tie.groups):
            shape = (tie.shape[0], tie.shape[1])
        part = TablePart(
            cell, self.labels, tie.equations, shape, chain=chain, features=tie.features
        )
        chosen = choose(part)
        self.law, self.why = chosen.law, chosen.why
        self._grid = None
        if isinstance(self.law, TwoWayNoise) and tie.features is not None:
            self._grid = np.ravel_multi_index(tuple(tie.features.T), self.law.shape)

    @property
    def log_ratio_error(self) -> float:
        """H of the law that draws."""
        return self.law.log_ratio_error

    @property
    def steps(self) -> int:
        """How many steps of a chain one draw takes; 0 where draws are exact."""
        return self.law.steps if isinstance(self.law, LatticeChain) else 0

    @property
    def cells_proposed(self) -> float:
        """About how many cells are proposed for one draw, where draws are accepted or not; or 0."""
        if isinstance(self.law, CrossingGaussian):
            return self.law.sampler.numbers_proposed / QUICKER
        return self.law.cells_proposed if isinstance(self.law, ProposedNoise) else 0.0

    @property
    def grid(self) -> bool:
        """Whether exactly the margins of a table of groups are fixed."""
        return self._tie.features is not None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Levels of each feature, where margins of a table of groups are fixed."""
        return self._tie.shape

    @property
    def equations(self) -> Ints:
        """What ties the sums of its groups."""
        return self._tie.equations

    @cached_property
    def log_Z(self) -> float | None:
        """log of the normaliser; None for a table too large for elimination."""
        if self.law.log_Z is not None:
            return self.law.log_Z
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
        drawn: Ints = self.law.draw_many(randomness, n).reshape(n, -1)
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
        return ties + sum(part.law.log_ratio_error for part in self._apart)

    @cached_property
    def log_Z(self) -> float | None:
        """log of the sum of all weights; None where that of a tie is not known."""
        terms = [(part.law.log_Z, 1) for part in self._apart]
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

    @property
    def is_slow(self) -> bool:
        """Whether one draw takes a chain, or very many proposals."""
        return any(tie.steps or tie.cells_proposed > PROPOSED for tie, _ in self._ties)

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


_CHUNK = 1 << 21  # cells proposed at a time, at most

Draw = Callable[[Randomness, int], Ints]


def parts_of(support: Support) -> Ints:
    """A number for each cell, shared by those whose counts depend on each other; -1 for none."""
    labels = support.labels.reshape(-1)
    part = np.arange(support.groups)
    for tie in support.ties:
        part[tie.groups] = tie.groups[0]
    of_cell = np.append(part, -1)[np.maximum(labels, -1)]
    loose = labels == LOOSE
    of_cell[loose] = support.groups + np.arange(np.count_nonzero(loose))
    return of_cell


class KeptBounds:
    """Independent draws of `propose`, given that every bound on a sum holds.

    `part` numbers the independent parts of a table, cell by cell (-1: a cell that never varies).
    """

    def __init__(self, propose: Draw, part: Ints, limits: Limits) -> None:
        self._propose, self._limits, self.sums = propose, limits, limits.sums
        rows, cells = limits.rows.nonzero()
        nodes = int(part.max(initial=-1)) + 1
        varies = part[cells] >= 0
        ends = rows[varies], limits.sums + part[cells][varies]
        component = connected(ends, limits.sums + nodes)
        used, self._of_row = np.unique(component[: limits.sums], return_inverse=True)
        self.components = len(used)
        number = np.full(int(component.max(initial=0)) + 1, -1)
        number[used] = np.arange(len(used))
        of_part = np.append(number[component[limits.sums :]], -1)
        self._of_cell = of_part[part]  # component of each cell, -1 where no bound matters
        self._cells = [np.flatnonzero(self._of_cell == c) for c in range(self.components)]

    def kept(self, m: Ints) -> Any:
        """For each table and component, whether its bounds hold; shape (tables, components)."""
        sums = (self._limits.rows @ m.T).T
        broken = (sums < self._limits.least) | (sums > self._limits.most)
        accepted = np.zeros((len(m), self.components), dtype=bool)
        for row, component in enumerate(self._of_row.tolist()):
            accepted[:, component] |= broken[:, row]
        return ~accepted

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells); takes as long as it takes."""
        m = self._propose(randomness, n)
        accepted = self.kept(m)
        waiting = [np.flatnonzero(~accepted[:, c]) for c in range(self.components)]
        batch = 16
        while longest := max(map(len, waiting), default=0):
            batch = min(max(2 * batch, longest), max(1, _CHUNK // m.shape[1]))
            fresh = self._propose(randomness, batch)
            good = self.kept(fresh)
            for component, cells in enumerate(self._cells):
                first_good = np.flatnonzero(good[:, component])
                take = min(len(first_good), len(waiting[component]))
                rows = waiting[component][:take]
                m[np.ix_(rows, cells)] = fresh[np.ix_(first_good[:take], cells)]
                waiting[component] = waiting[component][take:]
        return m

    def acceptance(self, randomness: Randomness, n: int) -> float:
        """The share of n proposals whose worst component is accepted."""
        return float(self.kept(self._propose(randomness, n)).mean(axis=0).min(initial=1.0))


WHY_LOOSE = "no published sum touches some cells: independent counts, each within its bounds"
WHY_AGAIN = "bounds on sums: drawn again until they hold"


class ConditionedCounts(IntegerLaw):
    """Counts m >= 0 around counts s with the published sums of s: p(m) ~ prod_i w(m_i - s_i).

    limits: bounds that m keeps too, as s does. listed: all tables m, where they are known, for
    densities that have no other normaliser. The law, its normaliser and the time a draw takes
    depend on s.
    """

    log_Z: ClassVar[float | None] = None
    log_ratio_error = 0.0

    def __init__(
        self,
        cell: CellLaw,
        support: Support,
        centre: Ints,
        limits: Limits | None = None,
        listed: Ints | None = None,
    ) -> None:
        self._support, self._listed = support, listed
        self._flat = support.labels.reshape(-1)
        self._centre = np.asarray(centre, dtype=np.int64).reshape(-1)
        self._law = cell
        self._limits = no_limits(self._flat.size) if limits is None else limits
        self._loose = np.flatnonzero(self._flat == LOOSE)

    @property
    def why(self) -> list[str]:
        """Why each part is drawn as it is, each reason once; by the published figures alone."""
        parts = [] if self._groups_part is None else [self._groups_part]
        loose = [WHY_LOOSE] if len(self._loose) else []
        again = [WHY_AGAIN] if self._limits.sums else []
        return list(dict.fromkeys([*map(reason, parts), *loose, *again]))

    @cached_property
    def _groups(self) -> IntegerLaw | None:
        """The law of all groups; None where there are none."""
        return None if self._groups_part is None else choose(self._groups_part).law

    @cached_property
    def _groups_part(self) -> TablePart | None:
        support = self._support
        if not support.groups:
            return None
        labels = np.maximum(self._flat, -1)
        free = labels >= 0  # other cells keep their count here, whatever their bounds
        low = np.where(free, self._limits.low, np.minimum(self._centre, 0))
        high = np.where(free, self._limits.high, FAR) if np.any(self._limits.high < FAR) else None
        part = TablePart(self._law, labels, None, None, self._centre, low, high, self._nested[0])
        if not support.ties:
            return part
        equations = [{g: 1} for g in np.flatnonzero(~support.tied).tolist()]
        for tie in support.ties:
            for row in tie.equations:
                pairs = zip(tie.groups.tolist(), row.tolist(), strict=True)
                equations.append({g: c for g, c in pairs if c})
        return replace(part, equations=equations)

    @cached_property
    def _nested(self) -> tuple[list[BoundedSum], Ints]:
        """Bounds on sums that the sampler of the groups takes, and their rows among the limits."""
        if self._support.ties or not self._limits.sums:
            return [], np.zeros(0, dtype=np.int64)
        return nested_sums(self._limits, self._support)

    @cached_property
    def _kept(self) -> KeptBounds | None:
        """Draws again until bounds hold; None where no bound asks for it."""
        if not self._limits.sums:
            return None
        return KeptBounds(self._propose, parts_of(self._support), self._limits)

    def prepare(self) -> None:
        """Build what drawing needs; StructureError where it is too wide to be built."""
        _ = self._groups, self._kept

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        if self._kept is not None:
            return self._kept.draw_many(randomness, n)
        return self._propose(randomness, n)

    def acceptance(self, randomness: Randomness, n: int) -> float:
        """Estimated share of proposals that meet the bounds on sums, of the worst part; 1 without
        any. It depends on s: never to be shown for confidential s.
        """
        return 1.0 if self._kept is None else self._kept.acceptance(randomness, n)

    def _propose(self, randomness: Randomness, n: int) -> Ints:
        m = np.tile(self._centre, (n, 1))
        if self._groups is not None:
            m = self._groups.draw_many(randomness, n)
        if len(self._loose):
            m[:, self._loose] = self._free(randomness, n)
        return m

    def _free(self, randomness: Randomness, n: int) -> Ints:
        """Cells in no published sum, each given its bounds: drawn until they hold."""
        s, low, high = (
            np.tile(x[self._loose], n) for x in (self._centre, self._limits.low, self._limits.high)
        )
        m = low - 1
        while True:
            again = np.flatnonzero((m < low) | (m > high))
            if not len(again):
                return m.reshape(n, -1)
            m[again] = s[again] + self._law.draw(randomness, len(again))

    # ---- densities ---------------------------------------------------------------------------

    def log_density(self, m: Ints) -> Any:
        """log p(m) for m of shape (..., cells).

        StructureError for tables of which no normaliser is known: it depends on s, so that leaving
        it out would make densities of different s incomparable.
        """
        m = np.asarray(m, dtype=np.int64)
        if self._listed is not None and self._limits.sums:
            logs = log_weight(self._law, m - self._centre) - self._log_Z_listed
            return np.where(self._among_listed(m), logs, -np.inf)[()]
        law = self._groups
        taken = np.count_nonzero(law.sums.bounded) if isinstance(law, TreeOfSums) else 0
        if self._kept is not None and self._kept.sums > taken:
            raise StructureError(
                "the normaliser of counts given bounds on sums is not known: too many tables "
                "conform.",
                remedy="Use nonnegative = 'project': its law before projection has a density.",
            )
        apart = m.copy()
        apart[..., self._loose] = self._centre[self._loose]
        if self._groups is not None:
            logs = self._groups.log_density(apart)
        else:
            logs = np.where(np.any(apart != self._centre, axis=-1), -np.inf, 0.0)
        return logs + np.sum(self._log_free(m[..., self._loose]), axis=-1)

    @cached_property
    def _log_Z_listed(self) -> float:
        from scipy.special import logsumexp

        assert self._listed is not None
        return float(logsumexp(log_weight(self._law, self._listed - self._centre)))

    def _among_listed(self, m: Ints) -> Any:
        assert self._listed is not None
        listed_rows = {row.tobytes() for row in np.ascontiguousarray(self._listed)}
        flat = np.ascontiguousarray(m).reshape(-1, m.shape[-1])
        return np.array([row.tobytes() in listed_rows for row in flat]).reshape(m.shape[:-1])

    def _log_free(self, m: Ints) -> Any:
        """log of the law of cells in no published sum, given their bounds."""
        s, low, high = (x[self._loose] for x in (self._centre, *self._ends))
        # P(u <= -k) = P(u >= k) = a^k / (1 + a) for a double geometric u and k >= 1
        eps = float(self._law.eps)  # type: ignore[union-attr]
        outside = np.exp(-eps * (s - low + 1.0)) + np.exp(-eps * (high - s + 1.0))
        inside = np.log1p(-outside / (1 + np.exp(-eps)))
        return np.where((m >= low) & (m <= high), self._law.log_pmf(m - s) - inside, -np.inf)

    @property
    def _ends(self) -> tuple[Any, Any]:
        """Bounds as doubles, so that none overflows."""
        high = np.where(self._limits.high >= FAR, np.inf, self._limits.high.astype(float))
        return self._limits.low.astype(float), high
