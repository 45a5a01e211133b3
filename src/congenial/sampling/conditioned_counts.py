"""Noisy counts m >= 0 on a table of which some sums are published: one sampler per part.

The parts are those of `conditioned_noise`, with their signs; `choice` picks their laws. Bounds of
single cells go into the laws of the parts, and so do bounds on nested sums inside a group of known
total; bounds on other sums of cells are met by drawing again (`rejection`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from congenial.errors import StructureError
from congenial.figures.limits import FAR, Limits, no_limits
from congenial.figures.support import LOOSE, Support
from congenial.privacy.columns_error import counts_error, is_wide
from congenial.sampling.choice import TablePart, choose, reason
from congenial.sampling.discrete import CellLaw
from congenial.sampling.inversion import Ints
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.rejection import KeptBounds, parts_of
from congenial.sampling.tree.bounded_sums import BoundedSum, nested_sums
from congenial.sampling.tree.cells_and_sums import log_weight
from congenial.sampling.tree.tree_of_sums import TreeOfSums

WHY_LOOSE = "no published sum touches some cells: independent counts, each within its bounds"
WHY_AGAIN = "bounds on sums: drawn again until they hold"


class ConditionedCounts(IntegerLaw):
    """Counts m >= 0 around counts s with the published sums of s: p(m) ~ prod_i w(m_i - s_i).

    limits: bounds that m keeps too, as s does. listed: all tables m, where they are known, for
    densities that have no other normaliser. The law, its normaliser and the time a draw takes
    depend on s. H (`log_ratio_error`) is 0 but for large two-way tables of which a margin
    is empty.
    """

    log_Z: ClassVar[float | None] = None

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
        self._wide = [tie for tie in support.ties if self.is_wide(tie, support)]

    is_wide = staticmethod(is_wide)
    public_error = staticmethod(counts_error)

    @property
    def log_ratio_error(self) -> float:
        """H of one draw of the whole table: parts are independent, so theirs add up."""
        return sum(table.log_ratio_error for table, _ in self._tables)

    @property
    def why(self) -> list[str]:
        """Why each part is drawn as it is, each reason once; by the published figures alone."""
        parts = [part for part, _ in self._wide_tables]
        parts += [] if self._groups_part is None else [self._groups_part]
        loose = [WHY_LOOSE] if len(self._loose) else []
        again = [WHY_AGAIN] if self._met_by_drawing_again().sums else []
        return list(dict.fromkeys([*map(reason, parts), *loose, *again]))

    @cached_property
    def _tables(self) -> list[tuple[IntegerLaw, Ints]]:
        return [(choose(part).law, places) for part, places in self._wide_tables]

    @cached_property
    def _wide_tables(self) -> list[tuple[TablePart, Ints]]:
        """Two-way tables too large for elimination, and the cell at each place of them."""
        found = []
        for tie in self._wide:
            assert tie.features is not None
            assert tie.shape is not None
            cell = np.array([np.flatnonzero(self._flat == g)[0] for g in tie.groups])
            places = np.empty(tie.shape, dtype=np.int64)
            places[tie.features[:, 0], tie.features[:, 1]] = cell
            shape = (tie.shape[0], tie.shape[1])
            found.append(
                (TablePart(self._law, cell, tie.equations, shape, self._centre[places]), places)
            )
        return found

    @cached_property
    def _groups(self) -> IntegerLaw | None:
        """The law of all other groups; None where there are none."""
        return None if self._groups_part is None else choose(self._groups_part).law

    @cached_property
    def _groups_part(self) -> TablePart | None:
        support = self._support
        ties = [tie for tie in support.ties if not self.is_wide(tie, support)]
        kept = ~support.tied
        for tie in ties:
            kept[tie.groups] = True
        if not np.any(kept):
            return None
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        labels = np.append(number, -1)[np.maximum(self._flat, -1)]
        free = labels >= 0  # other cells keep their count here, whatever their bounds
        low = np.where(free, self._limits.low, np.minimum(self._centre, 0))
        high = np.where(free, self._limits.high, FAR) if np.any(self._limits.high < FAR) else None
        given = TablePart(self._law, labels, None, None, self._centre, low, high, self._nested[0])
        if not ties:
            return given
        equations = [{int(number[g]): 1} for g in np.flatnonzero(~support.tied)]
        for tie in ties:
            for row in tie.equations:
                pairs = zip(number[tie.groups].tolist(), row.tolist(), strict=True)
                equations.append({g: c for g, c in pairs if c})
        return replace(given, equations=equations)

    @cached_property
    def _nested(self) -> tuple[list[BoundedSum], Ints]:
        """Bounds on sums that the sampler of the groups takes, and their rows among the limits."""
        tied = any(not self.is_wide(tie, self._support) for tie in self._support.ties)
        if tied or not self._limits.sums:
            return [], np.zeros(0, dtype=np.int64)
        return nested_sums(self._limits, self._support)

    @cached_property
    def _kept(self) -> KeptBounds | None:
        """Draws again until bounds hold; None where no bound asks for it."""
        again = self._met_by_drawing_again()
        return KeptBounds(self._propose, parts_of(self._support), again) if again.sums else None

    def _met_by_drawing_again(self) -> Limits:
        """Bounds on sums, and those of single cells that their sampler does not take."""
        given, cells = self._limits, self._flat.size
        wide = np.zeros(cells, dtype=bool)
        for tie in self._wide:
            wide |= np.isin(self._flat, tie.groups)
        boxed = np.flatnonzero(wide & ((given.low > 0) | (given.high < FAR)))
        rows = sp.csr_matrix(
            (np.ones(len(boxed), np.int64), (np.arange(len(boxed)), boxed)),
            shape=(len(boxed), cells),
        )
        return Limits(
            given.low,
            given.high,
            sp.vstack([given.rows, rows], format="csr"),
            np.concatenate([given.least, given.low[boxed]]),
            np.concatenate([given.most, given.high[boxed]]),
        )

    def prepare(self) -> None:
        """Build what drawing needs; StructureError where it is too wide to be built."""
        _ = self._groups, self._tables, self._kept

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
        for table, places in self._tables:
            m[:, places] = table.draw_many(randomness, n)
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
        if self._listed is not None and (self._wide or self._limits.sums):
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
        tables = np.zeros(m.shape[:-1])
        for table, places in self._tables:
            tables = tables + table.log_density(m[..., places])
            apart[..., places] = self._centre[places]
        if self._groups is not None:
            logs = self._groups.log_density(apart)
        else:
            logs = np.where(np.any(apart != self._centre, axis=-1), -np.inf, 0.0)
        return logs + tables + np.sum(self._log_free(m[..., self._loose]), axis=-1)

    @cached_property
    def _log_Z_listed(self) -> float:
        from scipy.special import logsumexp

        assert self._listed is not None
        return float(logsumexp(log_weight(self._law, self._listed - self._centre)))

    def _among_listed(self, m: Ints) -> Any:
        assert self._listed is not None
        known = {row.tobytes() for row in np.ascontiguousarray(self._listed)}
        flat = np.ascontiguousarray(m).reshape(-1, m.shape[-1])
        return np.array([row.tobytes() in known for row in flat]).reshape(m.shape[:-1])

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
