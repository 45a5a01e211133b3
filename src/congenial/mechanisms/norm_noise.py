"""Noise in the l2 and in the largest-entry norm on what the figures leave free; pure epsilon.

semi-dp, Proposition 7 with Algorithms 5 and 6, drawn on the integer tables that agree with the
figures in place of the whole space, with the true sensitivity there. With the l1 norm (Algorithm 4)
this is `Congenial`. Draws are exact (sampling.norm_given_sums).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from congenial.data.table import Table
from congenial.mechanisms.congenial import Conditioned
from congenial.mechanisms.error_laws import drawn_laws
from congenial.mechanisms.families import L2_NORM, LINF_NORM
from congenial.mechanisms.mechanism import ErrorLaw, register
from congenial.sampling.law import IntegerLaw
from congenial.sampling.norm_given_sums import NoiseNorm, NormGivenSums
from congenial.sampling.randomness import Randomness

_CITATION = "Cho and Awan 2024 (semi-dp), Proposition 7, on the lattice of the figures"


class NormNoiseGivenFigures(Conditioned):
    """Noise ~ exp(-rate ||u||) given that every published sum of it is zero."""

    noise_norm: ClassVar[NoiseNorm]

    def refuse_unfit(self) -> None:
        """Refuse tables with more free cells than exact draws are made for."""
        _ = self.law

    @cached_property
    def law(self) -> NormGivenSums:
        """The law of the noise."""
        return NormGivenSums(self.noise_norm, self.description.scale, self.support)

    @property
    def sampler(self) -> str:
        """What is proposed and thinned."""
        proposed = "; ".join(self.law.proposals.why)
        return f"double geometric noise given the figures, thinned by the norm ({proposed})"

    def laws(self, truth: Any = None) -> list[IntegerLaw]:  # noqa: ARG002
        """The law of the noise."""
        return [self.law]

    def noise(self, randomness: Randomness, draws: int) -> Any:
        """Independent draws of u: array of shape (draws, *shape)."""
        return self.law.draw_many(randomness, draws).reshape(draws, *self.shape)

    def log_density(self, y: Any, table: Table) -> Any:
        """log p(y | x) = -rate * ||y - phi(x)|| - log Z."""
        u = np.asarray(y, dtype=np.int64) - self.query(table)
        flat = u.reshape(*u.shape[: u.ndim - len(self.shape)], -1)
        return self.law.log_weight(flat) - (self.law.log_Z or 0.0)

    @property
    def normalised(self) -> bool:
        """Whether `log_density` includes the normaliser, unknown where many sums cross."""
        return self.law.log_Z is not None

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """Laws of the noise in sums of cells, simulated: half-widths are upper confidence bounds.

        Cells share one norm, so that even groups without a common figure depend on each other.
        """
        return list(drawn_laws(self.law.draw_many, self.support, np.ravel(index), sums))


@register
class CongenialLength(NormNoiseGivenFigures):
    """A protected table that agrees with every published figure; noise in the l2 norm.

    Formula: p(y | x) ~ exp(-rate * ||y - phi(x)||_2) on the integer tables with the published sums;
    rate = epsilon / Delta_2(S). The length of the noise is spread over all free directions, evenly.

    Formal guarantee: for any two conforming databases that differ in at most a* records, the log-
    likelihood ratio of any release is at most rate * Delta_2(S), by the triangle inequality. The
    normaliser is the same for all: equality figures are translation invariant.

    Edge cases: as for `Congenial`. Refused where too few proposals would be kept: from about 25
    free directions on. More noise than `Congenial` in most tables. Values may be negative.
    """

    name = "congenial_l2"
    noise_family = L2_NORM
    noise_norm = "l2"
    citation = _CITATION


@register
class CongenialLargest(NormNoiseGivenFigures):
    """A protected table that agrees with every published figure; noise in the l_infinity norm.

    Formula: p(y | x) ~ exp(-rate * max |y - phi(x)|) on the integer tables with the published sums;
    rate = epsilon / Delta_inf(S).

    Formal guarantee: for any two conforming databases that differ in at most a* records, the log-
    likelihood ratio of any release is at most rate * Delta_inf(S), by the triangle inequality. The
    normaliser is the same for all.

    Edge cases: as for `Congenial`. Refused where too few proposals would be kept: from about 7 free
    directions on. Less noise than `Congenial` given both margins of 3 x 3 and 3 x 4 tables, where
    one person's change takes others in other cells; more given totals. Values may be negative.
    """

    name = "congenial_linf"
    noise_family = LINF_NORM
    noise_norm = "linf"
    citation = _CITATION
