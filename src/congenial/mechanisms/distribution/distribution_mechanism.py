"""A calibrated mechanism for distribution privacy: the pairs, the noise, and what is promised.

y = F(x) + Z with Z a `VectorNoise` that is fixed by public inputs alone. The promise is over pairs
of laws (distribution-privacy, Definition 2.2); the same noise may promise single persons something
too, and then a second guarantee says what.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arguments import NOT_NEGATIVE, Rule, takes
from congenial.data.arrays import Floats
from congenial.data.vector_statistics import Vector
from congenial.errors import DataError, StructureError
from congenial.mechanisms.distribution.calibrated_noise import CalibratedNoise
from congenial.mechanisms.distribution.model_checks import cost_of_equal_covariances, relaxed
from congenial.mechanisms.distribution.persons import person_promise
from congenial.mechanisms.distribution.sampling_error import SamplingError, sampling_error
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.mechanisms.distribution.target import Target
from congenial.pairs.adjacency import ReplaceOne
from congenial.privacy.conversions import gdp_to_zcdp
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import IDEALISED, ROUNDED, Basis, Guarantee
from congenial.privacy.numbers import small
from congenial.privacy.tradeoff import Gaussian, Pure
from congenial.sampling.randomness import Randomness, SystemRandomness

APART = "modelling and released data have no record in common (not checked: no unit column)"
IN_MODELLING = "the people in the modelling data, whose fitted distributions are published here"
EQUAL = "the two distributions of each pair have the same covariance"
FIT = "sampling error of the fit"
MORE_NOISE = "; distribution-privacy, Theorem 4.7"  # behind the source of the mechanism
LAMBDA = Rule(  # e^lambda multiplies delta
    "a number above 0 and at most 100",
    lambda value: NOT_NEGATIVE.holds(value) and 0 < value <= 100,
)
IGNORED = 'the fitted distributions are the true ones: their error is ignored (confidence = "off")'


@dataclass(frozen=True, eq=False)
class DistributionMechanism(CalibratedNoise):
    """Additive noise on a vector of statistics; build it with `calibrate_distribution`."""

    @property
    def basis(self) -> Basis:
        """An estimate where laws are fitted; otherwise proved, or bounded numerically."""
        if self.pairs.fitted:
            return "estimate"
        return "numerical bound" if self.numerical else "theorem"

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is promised about the dataset as a whole."""
        return Guarantee(
            self.pairs,
            self.target.tradeoff,
            self.basis,
            self.assumptions,
            self.not_covered,
            self.citation,
        )

    @cached_property
    def person_guarantee(self) -> Guarantee | None:
        """What the same noise promises about replacing one person's record, if anything."""
        promise = person_promise(self.noise, self.pairs.change)
        if promise is None:
            return None
        assumed = [self._numerics, "every record stays within the ranges of the schema"]
        if self.pairs.origin.apart == "assumed":  # the laws would tell of the same people again
            assumed.append(APART)
        source = "Dong, Roth, Su 2022"
        if isinstance(promise, Pure):
            source = "Dwork, McSherry, Nissim, Smith 2006"
        adjacency = ReplaceOne(self.pairs.schema)
        open_ = (IN_MODELLING,) if self.pairs.fitted else ()
        return Guarantee(adjacency, promise, "theorem", tuple(assumed), open_, source)

    @cached_property
    def fit_error(self) -> SamplingError | None:
        """What the sampling error of fitted laws can do to the promise; None for given laws."""
        return sampling_error(self) if self.pairs.fitted else None

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """The model is part of the promise."""
        assumptions = []
        if self.assumed_equal:
            assumptions.append(f"{EQUAL} ({cost_of_equal_covariances(self)})")
        if self.fit_error is not None:
            assumptions.append(self.fit_error.words)
        if self.fit_ignored:
            assumptions.append(IGNORED)
        return (*assumptions, *self.certain)

    @property
    def certain(self) -> tuple[str, ...]:
        """Assumptions without figures of the fit."""
        assumptions = [self.pairs.origin.words]
        if self.noise.dither.any():
            assumptions.append(
                "the distributions have densities once every statistic is spread over one step "
                "of its grid"
            )
        if self.pairs.origin.apart == "assumed":
            assumptions.append(APART)
        if self.pairs.records is not None:
            assumptions.append("the number of records is public")
        return (*assumptions, self._numerics)

    @property
    def _numerics(self) -> str:
        return IDEALISED + (ROUNDED if self.grid else "")

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the promise says nothing about."""
        persons = self.person_guarantee
        about_persons = (
            "individual people: this release promises nothing about them"
            if persons is None
            else f"individual people, to whom the same noise promises {persons.tradeoff.words}"
        )
        assumptions = [
            about_persons,
            "other properties, and scenarios other than those named",
            "further releases from the same data, whose promises do not add up: put all "
            "statistics into one release",
        ]
        if self.pairs.fitted:
            assumptions.append(IN_MODELLING)
        return tuple(assumptions)

    # ---- law ---------------------------------------------------------------------------------

    @cached_property
    def grid(self) -> float:
        """Step of the grid released values are rounded to: fine against the noise, free of charge.

        It takes the low bits of floating-point noise out of the release; 0 without noise.
        """
        if self.noise.rank == 0:
            return 0.0
        return float(2.0 ** np.floor(np.log2(self.noise.scales.min() * 2.0**-10)))

    @property
    def description(self) -> RecordDescription:
        """The law, and what replacing one record does to it."""
        persons = self.person_guarantee
        epsilon = rho = Fraction(0)
        if persons is not None and isinstance(persons.tradeoff, Pure):
            epsilon = Fraction(persons.tradeoff.eps)
        elif persons is not None and isinstance(persons.tradeoff, Gaussian):
            rho = Fraction(gdp_to_zcdp(persons.tradeoff.mu))
        law = {"statistics": list(self.pairs.statistics), **self.noise.to_dict(), "grid": self.grid}
        return RecordDescription(
            self.name,
            self.pairs.schema,
            law,
            epsilon=epsilon,
            rho=rho,
            persons=persons is not None,
        )

    def draw(self, truth: Any, randomness: Randomness, draws: int) -> Floats:
        """Independent draws of what would be released: array of shape (draws, m)."""
        released = np.asarray(truth, dtype=np.float64) + self.noise.draw(randomness, draws)
        return np.round(released / self.grid) * self.grid if self.grid else released

    def log_density(self, y: Any, truth: Any) -> Floats:
        """log p(y | F(x)) before rounding and dither; -inf off the span of the noise."""
        return self.noise.log_density(np.asarray(y) - np.asarray(truth))

    def release(
        self, vector: Vector, randomness: Randomness | None = None, name: str = "release"
    ) -> StatisticsRelease:
        """Draw once and add: the only call that spends privacy."""
        randomness = SystemRandomness() if randomness is None else randomness
        self.check(vector)
        return StatisticsRelease(
            name=name,
            description=self.description,
            guarantee=self.guarantee,
            randomness=randomness.label,
            publishable=randomness.publishable,
            values=tuple(self.draw(vector.values, randomness, 1)[0].tolist()),
            person_guarantee=self.person_guarantee,
        )

    def check(self, vector: Vector) -> None:
        """Refuse statistics the laws are not about, before anything is drawn."""
        if vector.names != self.pairs.statistics:
            raise DataError(
                "the statistics differ from those for which the noise was calibrated.",
                remedy=f"Compute {', '.join(self.pairs.statistics)}, in this order.",
            )
        if self.pairs.records is not None and vector.records != self.pairs.records:
            raise DataError(
                f"the distributions are for datasets of {self.pairs.records:,} records, but the "
                "data have a different number.",
                remedy="Fit the distributions for the number of records you release.",
            )

    def dithered(self) -> DistributionMechanism:
        """The same with every statistic spread over its grid, where noise could be stripped.

        Whole counts and means of whole numbers live on a grid. Unless the noise is wider than the
        grid in every direction, someone who knows the grid can look for the one point of it from
        which the noise can have come.
        """
        spacing = np.array(self.pairs.spacing or [0.0] * self.pairs.dimension)
        if self.noise.rank == 0 or self.noise.least_deviation(spacing) >= 1:
            return self
        return replace(self, noise=self.noise.dithered(spacing))

    def __repr__(self) -> str:
        delta = f", delta = {small(self.target.delta)}" if self.target.delta else ""
        return f"{self.name}(epsilon = {float(self.target.epsilon):g}{delta})"


@takes(StructureError, mechanism=DistributionMechanism, distance=NOT_NEGATIVE, lam=LAMBDA)
def with_model_error(
    mechanism: DistributionMechanism, distance: float, lam: float
) -> DistributionMechanism:
    """Theorem 4.7: the mechanism for laws within `distance` (l1, W_inf) of the assumed ones.

    Promises (epsilon + 2 lambda, e^lambda delta). Laplace noise of scale distance/lambda is added
    in every statistic, unless the mechanism has Laplace noise in every statistic: one of the larger
    scale then does both.
    """
    epsilon, delta = relaxed(float(mechanism.target.epsilon), mechanism.target.delta, lam)
    target = Target(epsilon, delta, mechanism.target.constant)
    noise, needed = mechanism.noise, distance / lam
    if noise.family == "laplace" and np.array_equal(noise.directions, np.eye(noise.dimension)):
        noise = replace(noise, scales=np.maximum(noise.scales, needed))
    else:
        noise = replace(noise, extra=max(noise.extra, needed))
    source = mechanism.citation + MORE_NOISE
    return replace(mechanism, noise=noise, target=target, citation=source)
