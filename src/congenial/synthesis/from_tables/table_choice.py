"""Which table to measure next: the exponential mechanism on rational scores, drawn exactly.

P(c) ~ exp(epsilon q_c / (2 D)), where one replaced record moves every score q by at most D. That
keeps epsilon per record, and because every ratio of two probabilities moves by at most epsilon,
zero-concentrated rho = epsilon^2 / 8 (Cesar and Rogers 2021). With k records replaced scores move
by k D: k epsilon, k^2 rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from congenial.sampling.inversion import bernoulli_exp
from congenial.sampling.randomness import Randomness, uniform_below


def choose(
    scores: Sequence[int | Fraction], epsilon: Fraction, moves: int, randomness: Randomness
) -> int:
    """The index of a score, drawn with P(c) ~ exp(epsilon q_c / (2 moves)), exactly.

    A score is proposed at random and kept with probability exp(-epsilon (best - q) / (2 moves)):
    the best one is always kept, so about as many proposals as there are scores are enough.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> choose([3, 900, 5], Fraction(4), 2, SeededRandomness(1))
    1
    """
    best = max(scores)
    while True:
        at = uniform_below(len(scores), randomness)
        if bernoulli_exp(epsilon * (best - scores[at]) / (2 * moves), randomness):
            return at
