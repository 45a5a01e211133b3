"""The l2 loss on integer tables, by a chain: not certified.

exp(-r |u|) is a mixture of Gaussians: with density v^(-1/2) exp(-|u|^2 / (2 v) - r^2 v / 2) for
(u, v), v integrates out to exp(-r |u|) times a constant. Given the scale v the table is drawn
exactly under the squared loss (`TableLaw`); given the table, 1/v is inverse Gaussian with mean
r / |u| and shape r^2 (u = 0: v is Gamma). The chain alternates; where it stops it is near the law,
and nothing proves how near.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.arrays import Ints
from congenial.mechanisms.wasserstein.base_measure import Base
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.sampling.randomness import Randomness

LABEL = "not certified: chain"
BURN_IN = 50  # scales forgotten before the first draw; the scale is one number, and mixes fast
THIN = 5


class L2Chain:
    """p(y) ~ nu(y) exp(-rate ||y - T(x)||_2) on the conforming tables.

    Scales are rounded to 2^-20 of their size, so that the tables given them are exact draws.
    """

    label = LABEL

    def __init__(self, base: Base, truth: npt.ArrayLike, rate: Fraction) -> None:
        self.base, self.rate = base, rate
        self.start = TableLaw(base, truth, Fraction(1))  # checks the data
        self.truth = self.start.truth

    def draw_many(
        self, randomness: Randomness, n: int, burn_in: int = BURN_IN, thin: int = THIN
    ) -> Ints:
        """n states of one chain, `thin` steps apart, shape (n, cells); dependent."""
        rng = np.random.Generator(np.random.Philox(randomness.word()))
        y, out = self.truth, np.empty((n, self.base.cells), dtype=np.int64)
        for step in range(burn_in + thin * n):
            v = self._scale(y, rng)
            half = Fraction(1, 2) / v
            y = TableLaw(self.base, self.truth, half, squared=True).draw_many(randomness, 1)[0]
            if step >= burn_in and (step - burn_in) % thin == thin - 1:
                out[(step - burn_in) // thin] = y
        return out

    def _scale(self, y: Ints, rng: np.random.Generator) -> Fraction:
        """v given the table."""
        r, away = float(self.rate), math.sqrt(float(((y - self.truth) ** 2).sum()))
        v = rng.gamma(0.5, 2 / r**2) if away == 0 else 1 / rng.wald(r / away, r**2)
        v = max(v, 1e-6)
        bits = 20 - math.frexp(v)[1]
        whole = max(1, round(v * 2.0**bits))
        return Fraction(whole) * Fraction(2) ** -bits

    def log_density(self, y: npt.ArrayLike) -> Any:
        """log nu(y) - rate ||y - T(x)||_2, without the normaliser; -inf off the support."""
        table = np.asarray(y, dtype=np.int64)
        u = (table - self.truth).astype(float)
        logs = -float(self.rate) * np.sqrt((u**2).sum(axis=-1))
        return logs + log_base(self.base, table)


def log_base(base: Base, y: npt.ArrayLike) -> Any:
    """log nu(y) up to a constant: Dirichlet-multinomial factors, -inf off the support."""
    from scipy.special import gammaln

    table = np.asarray(y, dtype=np.int64)
    inside = np.ones(table.shape[:-1], dtype=bool)
    for group, total in base.totals:
        inside &= table[..., list(group)].sum(axis=-1) == total
    if base.nonnegative:
        inside &= (table >= 0).all(axis=-1)
    for part, whole in base.parts:
        inside &= table[..., part] <= table[..., whole]
    logs = np.zeros(table.shape[:-1])
    counts = np.maximum(table, 0)
    for i, a in enumerate(base.shapes):
        if a is not None:
            here = counts[..., i]
            logs += gammaln(here + float(a)) - gammaln(here + 1.0) - math.lgamma(float(a))
    return np.where(inside, logs, -np.inf)
