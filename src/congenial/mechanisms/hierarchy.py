"""Noise at every level of a hierarchy: nation, state, county, tract, with some totals mandated.

The same table as `congenial` would release, but its sums weigh in the law too: large sums get less
noise than adding up many cells would give them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from congenial.data.table import Table
from congenial.errors import PlanError, StructureError
from congenial.figures.support import FROZEN
from congenial.mechanisms.congenial import Conditioned
from congenial.mechanisms.error_laws import drawn_laws
from congenial.mechanisms.families import DOUBLE_GEOMETRIC
from congenial.mechanisms.mechanism import ErrorLaw, register
from congenial.mechanisms.single_table_release import cell_index
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Pure, Tradeoff
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.levels import noise_at_levels
from congenial.sampling.tree.tree_of_sums import TreeOfSums


@register
class CongenialHierarchy(Conditioned):
    """A protected table with noise at every level of a hierarchy of its sums.

    Formula: p(y | x) ~ exp(-eps_cell ||u||_1 - sum_l eps_l ||C_l u||_1), u = y - phi(x), on the
    tables that agree with every published figure; C_l sums the table onto level l (by state, by
    county, ...). Levels must nest, and published totals must be totals of nodes.

    Formal guarantee: sup over differences u of adjacent conforming tables of
    eps_cell ||u||_1 + sum_l eps_l ||C_l u||_1, the joint supremum the ledger uses for several
    releases; no normaliser price, because the support is a translate of one lattice.

    Edge cases: without levels, the total of the table is the only one; a level that the figures
    fix costs nothing and changes nothing. Errors of sums are simulated. Source: congenial-dp,
    section 2, with a weight at every node; exact draws by messages up and samples down the tree.
    """

    name = "congenial_hierarchy"
    noise_family = DOUBLE_GEOMETRIC
    levelled = True
    citation = "Gong and Meng 2020 (congenial-dp), section 2, on a tree of sums"

    sampler = "noise at every level of nested sums: sums are drawn down their tree"

    def laws(self, truth: Any = None) -> list[IntegerLaw]:  # noqa: ARG002
        """The tree of the free cells."""
        return [self.tree]

    @classmethod
    def parameter_for(
        cls, target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]
    ) -> Fraction:
        """eps per cell when the table's total weighs as much as its cells."""
        return cls.rates(target, adjacency, table, [()], [1, 1])[-1]

    @classmethod
    def rates(
        cls,
        target: Tradeoff,
        adjacency: Adjacency,
        table: tuple[str, ...],
        levels: Sequence[tuple[str, ...]],
        shares: Sequence[int | Fraction],
    ) -> list[Fraction]:
        """eps of each level and of the cells, in the ratio of `shares`, that meet the target."""
        assert isinstance(target, Pure)
        weights = [(tuple(names), Fraction(s)) for names, s in zip(levels, shares, strict=False)]
        together = adjacency.joint_l1([*weights, (table, Fraction(shares[-1]))]).value
        return [Fraction(target.eps) * Fraction(share) / together for share in shares]

    @classmethod
    def calibrate(
        cls,
        target: Guarantee,
        table: Sequence[str],
        levels: Sequence[Sequence[str]] = ((),),
        shares: Sequence[int | Fraction] | None = None,
    ) -> Self:
        """Build the mechanism that just meets the target.

        `levels`: axes of the coarser tables, from coarse to fine. `shares`: how the loss is divided
        between the levels and, last, the cells; equal when left out.
        """
        names = tuple(table)
        adjacency = cls._fitting(target, names)
        shares = [1] * (len(levels) + 1) if shares is None else shares
        if len(shares) != len(levels) + 1 or any(share <= 0 for share in shares):
            raise PlanError(
                f"{len(shares)} shares for {len(levels)} levels and the cells.",
                remedy="Give one positive number for each level and one for the cells.",
            )
        given = [tuple(one) for one in levels]
        rates = cls.rates(target.tradeoff, adjacency, names, given, shares)
        made = tuple(zip(given, rates[:-1], strict=True))
        description = Description(
            cls.name, names, cls.family, rates[-1], adjacency.figures, levels=made
        )
        return cls(adjacency, replace(description, units=adjacency.counts_units))

    def refuse_unfit(self) -> None:
        """Refuse levels that do not nest."""
        _ = self.tree

    @cached_property
    def _free(self) -> Any:
        """The cells that can vary, in table order."""
        return np.flatnonzero(self.support.labels.reshape(-1) != FROZEN)

    @cached_property
    def tree(self) -> TreeOfSums:
        """The law of the noise on the free cells."""
        if self.support.ties:
            raise StructureError(
                "noise at several levels cannot keep figures that cross.",
                remedy="Leave out levels, or publish nested figures.",
            )
        levels: list[tuple[Any, Fraction | None]] = []
        for names, eps in self.description.levels:
            index = cell_index(self.adjacency.schema, self.description.table, names)
            levels.append((np.broadcast_to(index, self.shape).reshape(-1)[self._free], eps))
        if self.support.groups:
            levels.append((self.support.labels.reshape(-1)[self._free], None))
        return noise_at_levels(levels, self.description.rate, len(self._free))

    def noise(self, randomness: Randomness, draws: int) -> Any:
        """Independent draws of u: array of shape (draws, *shape)."""
        u = np.zeros((draws, self.support.labels.size), dtype=np.int64)
        u[:, self._free] = self.tree.draw_many(randomness, draws)
        return u.reshape(draws, *self.shape)

    def log_density(self, y: Any, table: Table) -> Any:
        """log p(y | x); -inf where a published sum or an impossible cell is not as it must be."""
        u = np.asarray(y, dtype=np.int64) - self.query(table)
        flat = u.reshape(*u.shape[: u.ndim - len(self.shape)], -1)
        frozen = np.delete(flat, self._free, axis=-1)
        return np.where(
            np.any(frozen, axis=-1), -np.inf, self.tree.log_density(flat[..., self._free])
        )

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """Laws of the noise in sums of cells, simulated."""
        return list(drawn_laws(self.noise, self.support, np.asarray(index).reshape(-1), sums))
