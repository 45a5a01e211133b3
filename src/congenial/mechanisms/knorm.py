"""K-norm: the least noise of its kind on two-way tables whose margins are published; pure epsilon.

semi-dp, section 4.2 (Theorem 31), on the integers, with its erratum: the sensitivity set of a table
given both margins under A_3 holds hexagons, not only swaps, where both margins have three or more
levels; with the printed set the loss is twice what is promised. Draws are exact (sampling.knorm).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from congenial.data.arrays import Ints
from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.mechanisms.congenial import Conditioned
from congenial.mechanisms.error_laws import SimulatedLaw
from congenial.mechanisms.families import K_NORM
from congenial.mechanisms.mechanism import ErrorLaw, register
from congenial.privacy.composition import moves
from congenial.privacy.description import HULLS, Family
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.knorm_noise import KNormNoise
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness, SeededRandomness

FAMILIES: dict[int, Family] = {2: "k_norm_2", 3: "k_norm_3"}  # by the records of the hull
_SEED = 20200101  # public: everybody gets the same intervals


@register
class KNorm(Conditioned):
    """A protected two-way table that agrees with both published margins, with the least noise.

    Formula: p(y | x) ~ exp(-epsilon * gauge(y - phi(x))) on the integer tables with the published
    margins; the gauge is that of the hull of S, all differences of conforming tables at most
    `records` apart, the smallest norm ball that serves (semi-dp, Definition 8). Several tables (one
    per county, say) get independent noise: no difference within 3 records touches two of them.

    Formal guarantee: for any two conforming databases that differ in at most `records` records, the
    log-likelihood ratio of any release is at most epsilon, attained by a swap. The normaliser is
    the same for all: equality figures are translation invariant.

    Edge cases: rows and columns with a published total of zero stay zero; a table with one row or
    column left is published as it is; 2 x c tables get the noise of `Congenial`. Refused: figures
    that are not the margins of tables of single cells, more than 3 records, tables too large for
    exact draws (about 12 x 12). Values may be negative.
    """

    name = "knorm"
    noise_family = K_NORM
    citation = "Cho and Awan 2024 (semi-dp), Theorem 31, corrected; Awan and Slavkovic 2021"

    sampler = (
        "K-norm noise on two-way tables: double geometric noise given the margins, thinned by the "
        "gauge"
    )

    def laws(self, truth: Any = None) -> list[IntegerLaw]:  # noqa: ARG002
        """One for each table."""
        return [law for law, places in self._parts for _ in places]

    @classmethod
    def calibrate(cls, target: Guarantee, table: Sequence[str]) -> Self:
        """As for every mechanism; the hull is that of the adjacency's records."""
        built = super().calibrate(target, table)
        apart = moves(built.adjacency, built.description.table)
        if apart not in FAMILIES:
            raise StructureError(
                f"'{cls.name}' works for tables that differ in 2 or 3 records, not {apart}.",
                remedy="Use 'congenial' or 'congenial_gaussian'.",
            )
        return cls(built.adjacency, replace(built.description, family=FAMILIES[apart]))

    def refuse_unfit(self) -> None:
        """Mandates other than both margins of tables of single cells, and tables too large."""
        _ = self._parts

    @classmethod
    def families(cls) -> tuple[Family, ...]:
        """One for each hull."""
        return tuple(FAMILIES.values())

    @property
    def hull(self) -> int:
        """How many records the tables of the hull are apart."""
        return HULLS[self.description.family]

    @cached_property
    def _parts(self) -> list[tuple[KNormNoise, Ints]]:
        """A sampler for each shape of table, with the places of such tables (tables x r x c)."""
        support = self.support
        flat = support.labels.reshape(-1)
        if support.loose or np.any(support.sizes != 1) or not support.ties:
            raise StructureError(
                f"'{self.name}' needs both margins of a table; these figures leave "
                f"{support.structure}.",
                remedy="Use 'congenial' or 'congenial_gaussian', which work with any nested or "
                "crossing figures.",
            )
        cell = np.full(support.groups, -1)
        cell[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
        places: dict[tuple[int, int], list[Ints]] = {}
        for tie in support.ties:
            shape = tie.shape
            if shape is None or len(shape) != 2 or len(tie.groups) != shape[0] * shape[1]:
                raise StructureError(
                    f"'{self.name}' needs two margins; these figures leave {support.structure}.",
                    remedy="Use 'congenial' or 'congenial_gaussian'.",
                )
            assert tie.features is not None
            grid = np.empty(shape, dtype=np.int64)
            grid[tie.features[:, 0], tie.features[:, 1]] = cell[tie.groups]
            places.setdefault((shape[0], shape[1]), []).append(grid)
        rate = self.description.rate
        return [
            (KNormNoise(shape, rate, records=self.hull), np.stack(grids))
            for shape, grids in places.items()
        ]

    def noise(self, randomness: Randomness, draws: int) -> Any:
        """Independent draws of u: array of shape (draws, *shape)."""
        u = np.zeros((draws, self.support.labels.size), dtype=np.int64)
        for sampler, places in self._parts:
            drawn = sampler.draw_many(randomness, draws * len(places))
            u[:, places.reshape(-1)] = drawn.reshape(draws, -1)
        return u.reshape(draws, *self.shape)

    def log_density(self, y: Any, table: Table) -> Any:
        """log p(y | x) = -epsilon * gauge(y - phi(x)) - log Z."""
        u = np.asarray(y, dtype=np.int64) - self.query(table)
        u = u.reshape(*u.shape[: u.ndim - len(self.shape)], -1)
        free = np.concatenate([places.reshape(-1) for _, places in self._parts])
        fixed = np.delete(u, free, axis=-1)
        logs = np.where(np.any(fixed, axis=-1), -np.inf, 0.0)
        for sampler, places in self._parts:
            weights = np.sum(sampler.log_weight(u[..., places]), axis=-1)
            logs = logs + weights - (sampler.log_Z or 0.0) * len(places)
        return logs

    @property
    def normalised(self) -> bool:
        """Whether `log_density` includes the normaliser, unknown for larger tables."""
        return all(sampler.log_Z is not None for sampler, _ in self._parts)

    @cached_property
    def _draws(self) -> Any:
        """Draws of the public noise law, fewer for larger tables, whose draws take longer."""
        largest = max((r - 1) * (c - 1) for (r, c) in (s.shape for s, _ in self._parts))
        draws = (
            10_000 if largest <= 9 else 4000 if largest <= 25 else 1000 if largest <= 49 else 400
        )
        return self.noise(SeededRandomness(_SEED), draws).reshape(draws, -1)

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """Laws of the noise in sums of cells, simulated: half-widths are upper confidence bounds.

        A sum that follows from the margins has no noise: its cells, as 0s and 1s, are a function of
        the row plus one of the column.
        """
        flat = np.asarray(index).reshape(-1)
        laws: list[ErrorLaw] = []
        for i in range(sums):
            cells = flat == i
            fixed = all(not np.any(_interaction(cells[places])) for _, places in self._parts)
            laws.append(SimulatedLaw(self._draws[:, cells].sum(axis=1), fixed))
        return laws


def _interaction(cells: Any) -> Any:
    """What is left of 0-1 tables (tables x r x c) after functions of row and column are taken out:
    differences with the first row and column.
    """
    x = cells.astype(np.int64)
    return x - x[:, :1, :] - x[:, :, :1] + x[:, :1, :1]
