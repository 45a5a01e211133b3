"""Fixed-point scores: the weighted log likelihood of a record as whole numbers, with its range.

**What is proved.** Let every record x have a score s(x): whole numbers s_j(x) in 0 .. 2^30, one for
each point j of Theta, that depend on x and on public things alone. A parameter is drawn with
probability ~ prior_j exp((M / 2^30) sum_i s_j(x_i)). Then, whatever the scores are,

    adding or removing a record changes the log probability of every outcome by at most M,
    replacing a record by at most 2M.

*Proof.* Adding x multiplies weight j by e^(g_j), g_j = M s_j(x) / 2^30 in [0, M]. The log ratio of
the two probabilities of j is g_j - log E e^g, the mean being over the old law. A mean lies between
the least and the largest value, so the log ratio lies in [-M, M]. Replacing x by y multiplies by
e^(g(y) - g(x)), whose values lie in [-M, M], an interval of length 2M, so the log ratio lies in
[-2M, 2M]. What is computed from j (records, files) loses no more. QED

No likelihood occurs in it. The scores are *meant* to be the weighted log likelihood,

    s_j(x) = alpha(x) (log p(x | j) - min_j log p(x | j)) 2^30 / M,   alpha(x) = min(1, M / osc(x)),
    osc(x) = max_j - min_j of log p(x | j),

rounded to whole numbers and cut to 0 .. 2^30. A likelihood computed badly makes a poor model, not a
broken promise; and sums of whole numbers do not depend on the order of the records. So the rounding
error H is 0, for a law that is itself a rounding of the ideal one (each score by at most M / 2^31).

Why the least value may be subtracted: it multiplies all weights alike. Why alpha is this: it is the
largest weight that keeps the range of alpha log p at M. osc = 0 gives weight 1 (the record says
nothing about theta); an infinite or undefined log likelihood anywhere on Theta gives weight 0,
silently, since who has such a record is confidential.

Source: our own (Theory, section 3); the idea of weights by record is Savitsky, Williams and Hu.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import logsumexp

from congenial.data.arrays import Floats, Ints
from congenial.errors import GuaranteeError
from congenial.synthesis.record_model import Bools

BITS = 30
FULL = 1 << BITS  # the score that stands for M
MOST_RECORDS = 1 << 32  # so that a sum of scores fits 63 bits


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of every level (points of Theta, levels) and the weight of each level, both public."""

    values: Ints
    weights: Floats
    bound: Fraction  # M

    def totals(self, counts: Ints) -> Ints:
        """sum over records of their scores, for each point of Theta; exact."""
        if int(counts.sum()) > MOST_RECORDS:
            raise GuaranteeError(
                f"scores of more than {MOST_RECORDS} records do not fit 64 bits.",
                remedy="Synthesise parts of the population one by one.",
            )
        occupied = np.flatnonzero(counts)
        return np.asarray(self.values[:, occupied] @ counts[occupied], dtype=np.int64)


def oscillation(log_likelihood: Floats) -> Floats:
    """max - min over Theta (rows) for each record (columns); inf where it is not finite."""
    finite = np.isfinite(log_likelihood).all(axis=0)
    safe = np.where(finite, log_likelihood, 0.0)
    return np.where(finite, safe.max(axis=0) - safe.min(axis=0), np.inf)


def weights_of(osc: Floats, bound: Fraction) -> Floats:
    """alpha = min(1, M / osc): 1 for osc = 0, and 0 for infinite or undefined osc.

    >>> weights_of(np.array([0.0, 0.5, 4.0, np.inf, np.nan]), Fraction(1)).tolist()
    [1.0, 1.0, 0.25, 0.0, 0.0]
    """
    osc = np.where(np.isnan(osc), np.inf, osc)
    return np.asarray(float(bound) / np.maximum(osc, float(bound)), dtype=float)


def scalar_weights(osc: Floats, bound: Fraction) -> Floats:
    """One weight for all: min(1, M / largest osc), the exponential mechanism on a bounded domain.

    Refused when some possible record has an infinite oscillation, as this mechanism needs a bound
    for every record that could exist.
    """
    if not np.isfinite(osc).all():
        raise GuaranteeError(
            "a single weight for all records needs a finite oscillation for every possible record.",
            remedy="Narrow Theta, bound the column, or use one weight per record.",
        )
    largest = np.array([osc.max(initial=0.0)])
    return np.full(osc.shape, weights_of(largest, bound)[0])


def scores_of(log_likelihood: Floats, weights: Floats, bound: Fraction) -> Ints:
    """Whole-number scores (points of Theta, records) in 0 .. 2^30 for given weights.

    The cut at 2^30 is what the promise rests on; it also holds for weights that are too large.
    """
    used = np.isfinite(log_likelihood).all(axis=0) & (weights > 0)
    above = np.where(used, log_likelihood, 0.0)
    above = above - above.min(axis=0)
    scaled = above * np.where(used, weights, 0.0) * (FULL / float(bound))
    return np.asarray(np.clip(np.rint(scaled), 0, FULL), dtype=np.int64)


def score_table(
    log_likelihood: Floats, bound: Fraction, allowed: Bools | None = None, correct: bool = True
) -> Scores:
    """Scores of all levels of a column, from log P(level | theta) and nothing confidential.

    `allowed` leaves out impossible levels. GuaranteeError when no level at all gets a weight.

    correct: weighted records follow alpha f, not f, the law of the data, so a model fitted to them
    as they are misses f even if it contains it. Their likelihood under the model is that of a
    record drawn from p and kept with probability alpha,

        log p(x | theta) - log Z(theta),   Z(theta) = sum over levels of alpha p(. | theta),

    and the weighted sum of these is largest, in expectation, where p = f (a proper score: it is
    a negative Kullback-Leibler divergence of the two tilted laws). Weights must stay proportional
    to alpha for that; they are all multiplied by the same c <= 1 that keeps the range at M.
    """
    allowed = np.ones(log_likelihood.shape[1], dtype=bool) if allowed is None else allowed
    weights = np.where(allowed, weights_of(oscillation(log_likelihood), bound), 0.0)
    if not (weights > 0).any():
        raise GuaranteeError(
            "the oscillation of log p(x | theta) is infinite for every possible record, so none "
            "would have a weight.",
            remedy="Narrow Theta so that every level has a positive probability on all of it.",
        )
    if correct:
        used = weights > 0
        total = logsumexp(log_likelihood[:, used], axis=1, b=weights[used])
        log_likelihood = log_likelihood - total[:, None]
        widest = float((oscillation(log_likelihood[:, used]) * weights[used]).max())
        weights = weights * (float(bound) / max(widest, float(bound)))
    return Scores(scores_of(log_likelihood, weights, bound), weights, bound)


def record_totals(log_likelihoods: Floats, counts: Ints, bound: Fraction) -> tuple[Ints, Floats]:
    """Sums of scores, and the weights, for distinct raw records that are not levels of a schema.

    Column i holds log p(x_i | theta) and counts[i] says how often x_i occurs. To be a function of
    the record alone each column must have been computed by itself, not inside a batch whose shape
    depends on the data.
    """
    weights = weights_of(oscillation(log_likelihoods), bound)
    return Scores(scores_of(log_likelihoods, weights, bound), weights, bound).totals(
        np.asarray(counts, dtype=np.int64)
    ), weights
