"""How noise is drawn: system randomness, exact discrete laws, noise given sums, and the law of its
sums.

Draws have exactly the stated law given ideal random bits (H = 0 in the guarantee),
unless a law says otherwise in `log_ratio_error`. `law` has the protocol, `choice`
the list of all laws and which one draws what.
"""

from __future__ import annotations

from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.exact_decisions import bernoulli_exp
from congenial.sampling.grouped_noise import GroupedNoise
from congenial.sampling.inversion import ExactLaw
from congenial.sampling.randomness import (
    Randomness,
    RecordedRandomness,
    SeededRandomness,
    SystemRandomness,
    uniform_below,
)
from congenial.sampling.sums import Pmf, cell_variance, iid_sum_law, subset_sum_law, subset_variance

__all__ = [
    "DiscreteGaussian",
    "DoubleGeometric",
    "ExactLaw",
    "GroupedNoise",
    "Pmf",
    "Randomness",
    "RecordedRandomness",
    "SeededRandomness",
    "SystemRandomness",
    "bernoulli_exp",
    "cell_variance",
    "iid_sum_law",
    "subset_sum_law",
    "subset_variance",
    "uniform_below",
]
