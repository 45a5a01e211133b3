"""Noise that was calibrated for pairs of laws: everything a promise about them is worked out from.

What the error of fitted laws does to the promise (`sampling_error`) and what different covariances
cost (`model_checks`) are functions of it; the mechanism that draws is one of them with a guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from congenial.mechanisms.distribution.gaussians import Moments, shared_distance, worst_delta
from congenial.mechanisms.distribution.target import Target
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.stated_laws import VectorLaw
from congenial.privacy.conversions import gaussian_delta


@dataclass(frozen=True, eq=False)
class CalibratedNoise:
    """Additive noise, the pairs of laws that it hides, and what it was calibrated to.

    assumed_equal: whether the promise takes the laws of each pair to share a covariance although
    the fitted ones differ. numerical: whether the calibration rests on numerical integration.
    fit_ignored: whether the noise was calibrated as if fitted laws were the true ones.
    """

    name: str
    pairs: DistributionPairs
    noise: VectorNoise
    target: Target
    citation: str
    assumed_equal: bool = False
    numerical: bool = False
    fit_ignored: bool = False

    def delta(self, laws: Sequence[VectorLaw | Moments] | None = None) -> float:
        """delta at the promised epsilon under Gaussian noise or none, for these laws or others.

        Where the laws of a pair share their covariance, or are taken to, it is the closed form of
        their Mahalanobis distance. Refits of laws that share one do not.
        """
        pairs, added = self.pairs.pairs, self.noise.covariance
        if self.assumed_equal or (laws is None and not self.numerical):
            reach = shared_distance(self.pairs.laws if laws is None else laws, pairs, added)
            return gaussian_delta(reach, self.target.epsilon)
        laws = self.pairs.laws if laws is None else laws
        return worst_delta(laws, pairs, added, float(self.target.epsilon))
