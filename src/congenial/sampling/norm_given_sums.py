"""Integer noise in the l2 or the largest-entry norm, given published sums; drawn exactly.

p(u) ~ exp(-rate ||u||) on the integer tables whose published sums are zero, with ||u|| the l2 norm
or the largest absolute entry (semi-dp, Algorithms 5 and 6, on the integers and on the kernel of the
figures). With the l1 norm this law is that of independent double geometric noise given the sums
(`conditioned_noise`), which is also what is proposed here.

**Thinning.** Over d cells that vary ||u||_2 >= ||u||_1 / sqrt(d) and ||u||_inf >= ||u||_1 / d'
(d' = d, less one for each group of known sum with an odd number of cells, whose entries cannot all
be 1 or -1). Propose double geometric noise at the rate c, rational and at most rate / sqrt(d) or
rate / d', and keep it with probability exp(-(rate ||u|| - c ||u||_1)). Doubles with certified
bounds decide what is clear, ball arithmetic the rest: H = 0. The share that is kept falls
by about a quarter with each free direction for l2, by two thirds for the largest entry. Running
time depends on the figures, the rate and chance, never on data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from congenial.errors import StructureError
from congenial.figures.support import Support
from congenial.sampling.conditioned_noise import ConditionedNoise
from congenial.sampling.decide import below
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.inversion import Floats, Ints, ball, positive_rational
from congenial.sampling.law import WeightedLaw
from congenial.sampling.norm_weights import log_sum_of_largest, log_sum_of_lengths
from congenial.sampling.randomness import Randomness, SeededRandomness

NoiseNorm = Literal["l2", "linf"]

LEAST_KEPT = 1e-3  # share of proposals that must be kept
MOST_FREE = 60  # free directions beyond which nothing is tried
_PROPOSALS = 2000  # of the trial
_SEED = 20200101  # public: everybody gets the same answer
_SLACK = 2.0**-40  # relative error granted to logarithms in doubles
_BATCH = 1 << 16  # proposals at a time, at most
_BITS = 24  # of the rate of the proposals


class NormGivenSums(WeightedLaw):
    """Noise ~ exp(-rate ||u||) on tables of which the sums that `support` names are zero.

    norm: "l2" or "linf". scale: the square of the rate for "l2" (a rational where the sensitivity
    is a root), the rate itself for "linf". Tables with too many free cells for exact draws are
    refused. log_Z is None where the sums cross other than as margins of two attributes.

    >>> from congenial import Schema, Figures, total
    >>> from congenial.figures.support import support
    >>> schema = Schema.from_dict({"x": {"levels": ["a", "b", "c"]}})
    >>> known = support(Figures(schema, (total(),)), ("x",))
    >>> u = NormGivenSums("l2", Fraction(1, 4), known).draw(SeededRandomness(1))
    >>> int(u.sum())
    0
    """

    log_ratio_error = 0.0

    def __init__(self, norm: NoiseNorm, scale: Fraction, support: Support) -> None:
        self.norm, self.support = norm, support
        self.scale = positive_rational("scale", scale)
        if support.degrees_of_freedom > MOST_FREE:
            raise self._too_large()
        self.per_cell = self._rate_of_proposals()
        self.proposals = ConditionedNoise(DoubleGeometric(self.per_cell), support)
        if self.kept < LEAST_KEPT:
            raise self._too_large()

    def _too_large(self) -> StructureError:
        return StructureError(
            f"{self.norm} noise is drawn exactly for small tables only, and these figures leave "
            f"{self.support.degrees_of_freedom:,} directions free.",
            remedy="Use mechanism = 'congenial' (l1 noise), or release a coarser table.",
        )

    def _rate_of_proposals(self) -> Fraction:
        """c: the largest rational of a few bits with c ||u||_1 <= rate ||u||."""
        sizes = self.support.sizes[~self.support.tied]
        alone = sizes[sizes > 1]  # a group of one cell is fixed
        tied = int(self.support.sizes[self.support.tied].sum())
        others = self.support.loose + tied
        if self.norm == "linf":
            return self.scale / max(1, others + int((alone - alone % 2).sum()))
        return _root_below(self.scale / max(1, others + int(alone.sum())))

    @cached_property
    def kept(self) -> float:
        """About which share of proposals is kept, from public draws."""
        u = self.proposals.draw_many(SeededRandomness(_SEED), _PROPOSALS)
        return float(np.exp(self._log_kept(u)).mean())

    @cached_property
    def log_Z(self) -> float | None:
        """log of the sum of exp(-rate ||u||), or None where it is not computed."""
        if self.norm == "l2":
            return log_sum_of_lengths(self.scale, self.support)
        return log_sum_of_largest(self.scale, self.support)

    def log_weight(self, u: Any) -> Any:
        """-rate ||u||, or -inf where a published sum is not zero; u of shape (..., cells)."""
        values = np.asarray(u, dtype=np.int64)
        off = np.isneginf(self.proposals.log_density(values))
        return np.where(off, -np.inf, -self._rated(values))[()]

    def _rated(self, u: Ints) -> Floats:
        """Rate times the norm, in doubles."""
        if self.norm == "l2":
            return np.asarray(np.sqrt(float(self.scale) * (u.astype(float) ** 2).sum(axis=-1)))
        return float(self.scale) * np.asarray(np.abs(u).max(axis=-1, initial=0), dtype=float)

    def _log_kept(self, u: Ints) -> Floats:
        return np.asarray(float(self.per_cell) * np.abs(u).sum(axis=-1) - self._rated(u))

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells): the first n proposals that are kept.

        Words: batches of proposals, then a word for each decision, then what open decisions need.
        """
        out = np.empty((0, self.support.labels.size), dtype=np.int64)
        made, kept = 1, 1
        while len(out) < n:
            size = min(math.ceil(1.1 * (n - len(out)) * made / kept) + 2, _BATCH)
            tables = self._batch(randomness, size)
            made, kept = made + size, kept + len(tables)
            out = np.concatenate([out, tables])
        return out[:n]

    def _batch(self, randomness: Randomness, size: int) -> Ints:
        """Those of `size` proposals that are kept."""
        tables: Ints = self.proposals.draw_many(randomness, size)
        words = randomness.words(size)
        log_kept = self._log_kept(tables)
        slack = _SLACK * (1 + self._rated(tables))
        with np.errstate(divide="ignore"):
            low = np.log(words.astype(float)) - 64 * math.log(2)
        high = np.logaddexp(low, -64 * math.log(2))
        verdicts = high < log_kept - slack
        unclear = ~verdicts & (low <= log_kept + slack)
        for t in np.flatnonzero(unclear).tolist():
            log_p = partial(self._exact_log_kept, tables[t])
            verdicts[t] = below(int(words[t]), 64, log_p, randomness)
        return np.asarray(tables[verdicts])

    def _exact_log_kept(self, table: Ints) -> Any:
        """c ||u||_1 - rate ||u|| as a ball at the working precision."""
        proposed = ball(self.per_cell * int(np.abs(table).sum()))
        if self.norm == "l2":
            return proposed - ball(self.scale * int((table**2).sum())).sqrt()
        return proposed - ball(self.scale * int(np.abs(table).max(initial=0)))


def _root_below(square: Fraction) -> Fraction:
    """A rational just below the root, of about `_BITS` bits."""
    shift = _BITS - (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    shift = max(0, shift)
    return Fraction(math.isqrt(square.numerator * 4**shift // square.denominator), 2**shift)
