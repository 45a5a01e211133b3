"""Congenial: integer noise given equality mandates of laminar structure.

congenial-dp, section 2, with its errata: the loss is eps_cell * Delta_1(S) per person, not "epsilon
per cell", and equality mandates cost nothing in the normaliser because the conforming tables form a
translate of one lattice. Draws are exact and independent (sampling/), not the end of a Markov
chain.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.table import Table
from congenial.mechanisms.additive import eps_per_cell, sigma_squared
from congenial.mechanisms.protocol import ErrorLaw, Mechanism, register
from congenial.privacy.tradeoff import Approximate, Pure, Tradeoff, ZeroConcentrated
from congenial.public.adjacency import Adjacency
from congenial.public.support import LOOSE, Support, support
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.families import cell_law, grouped_noise
from congenial.sampling.laminar import GroupedNoise
from congenial.sampling.lattice_gaussian import GroupedGaussian
from congenial.sampling.randomness import Randomness
from congenial.sampling.sums import subset_sum_law


class Conditioned(Mechanism):
    """Shared by both families: noise given that groups of known total sum to zero."""

    conditions = True

    def __post_init__(self) -> None:
        # A structure without a sampler is refused here, before anything is published or drawn.
        _ = self.support

    @cached_property
    def support(self) -> Support:
        """The groups of released cells whose totals are published."""
        return support(self.description.support, self.description.table)

    @cached_property
    def grouped(self) -> GroupedNoise | GroupedGaussian:
        """Noise that sums to zero in each group."""
        labels = np.where(self.support.labels >= 0, self.support.labels, -1).reshape(-1)
        return grouped_noise(self.family, labels, self.description.scale)

    @cached_property
    def free(self) -> DoubleGeometric | DiscreteGaussian:
        """Noise of a cell that belongs to no published sum."""
        return cell_law(self.family, self.description.scale)

    def noise(self, randomness: Randomness, draws: int) -> Any:
        """Independent draws of u: array of shape (draws, *shape)."""
        u = self.grouped.draw_many(randomness, draws).reshape(draws, -1)
        loose = np.flatnonzero(self.support.labels.reshape(-1) == LOOSE)
        if len(loose):
            u[:, loose] = self.free.draw(randomness, draws * len(loose)).reshape(draws, -1)
        return u.reshape(draws, *self.shape)

    def log_density(self, y: Any, table: Table) -> Any:
        """log p(y | x) = log of the unconditioned law of u = y - phi(x), minus log Z."""
        u = np.asarray(y, dtype=np.int64) - self.query(table)
        u = u.reshape(*u.shape[: u.ndim - len(self.shape)], -1)
        loose = self.support.labels.reshape(-1) == LOOSE
        conditioned = self.grouped.log_density(np.where(loose, 0, u))
        return conditioned + np.sum(self.free.log_pmf(u[..., loose]), axis=-1)

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """Laws of the noise in sums of cells: m of the k cells of every group a sum meets.

        Groups are independent; sums that meet groups in the same way share one law.
        """
        flat, labels = np.asarray(index).reshape(-1), self.support.labels.reshape(-1)
        loose = np.bincount(flat[(flat >= 0) & (labels == LOOSE)], minlength=sums)
        inside = (flat >= 0) & (labels >= 0)
        groups = max(self.support.groups, 1)
        pair, m = np.unique(flat[inside] * groups + labels[inside], return_counts=True)
        met = np.stack([m, self.support.sizes[pair % groups]], axis=1)
        start = np.searchsorted(pair // groups, np.arange(sums + 1))
        known: dict[Any, ErrorLaw] = {}
        laws = []
        for i in range(sums):
            parts = sorted(map(tuple, met[start[i] : start[i + 1]].tolist()))
            key = (tuple(parts), int(loose[i]))
            if key not in known:
                known[key] = subset_sum_law(parts, self.free, int(loose[i]))
            laws.append(known[key])
        return laws


@register
class Congenial(Conditioned):
    """A protected table that agrees with every published figure.

    Formula: p(y | x) ~ exp(-eps_cell * ||y - phi(x)||_1) on { y integer : group totals of y are
    those published }. Assumes the published figures hold for the data (checked at release).

    Formal guarantee: for any two conforming databases that differ in at most a* records, the log-
    likelihood ratio of any release is at most eps_cell * Delta_1(S), and some pair attains it. The
    normaliser is the same for all of them: equality mandates are translation invariant.

    Edge cases: a group of one cell is published as it is, because the figures fix it; an empty
    group stays zero; cells that no figure touches get independent noise; values may be negative.

    Source: congenial-dp, section 2 and Theorem 2.1; semi-dp, section 3; docs/errata.
    """

    name = "congenial"
    family = "double_geometric"
    targets = (Pure,)
    citation = "Gong and Meng 2020 (congenial-dp), section 2, corrected; semi-dp, section 3"

    @classmethod
    def scale_for(cls, target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]) -> Fraction:
        """eps per cell = epsilon per person / Delta_1(S)."""
        return eps_per_cell(target, adjacency, table)


@register
class CongenialGaussian(Conditioned):
    """The same with discrete Gaussian noise: a table that agrees with every published figure, zCDP.

    Formula: p(y | x) ~ exp(-||y - phi(x)||_2^2 / (2 sigma^2)) on the tables with the published
    group totals.

    Formal guarantee: rho = Delta_2(S)^2 / (2 sigma^2) for any two conforming databases that differ
    in at most a* records: on a lattice, shifting a discrete Gaussian by a lattice vector u costs at
    most alpha ||u||^2 / (2 sigma^2) in Renyi divergence of order alpha. It is not G_mu.

    Edge cases: as for `Congenial`. Source: Canonne, Kamath, Steinke 2020, Proposition 5, for any
    lattice; semi-dp, section 4, with integers in place of reals.
    """

    name = "congenial_gaussian"
    family = "discrete_gaussian"
    targets = (ZeroConcentrated, Approximate)
    citation = "Canonne, Kamath, Steinke 2020; semi-dp, section 4"

    @classmethod
    def scale_for(cls, target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]) -> Fraction:
        """sigma^2 = Delta_2(S)^2 / (2 rho)."""
        return sigma_squared(target, adjacency, table)
