"""Property inference: a meta-classifier guesses, from released statistics, what a dataset is like.

Shadow datasets with either value of the property are drawn from auxiliary records, their statistics
(released through the same mechanism, since its law is public) train a logistic regression, and
datasets from other records test it (distribution-privacy, section 5.3). The attack shows what one
adversary achieves; the promise bounds all of them: with prior odds of one half, no guess is right
more often than (1 + delta(0)) / 2, delta(0) the largest total variation the promise allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from congenial.data.arguments import SEVERAL, Rule, listed, optional, takes
from congenial.data.arrays import Floats
from congenial.data.vector_statistics import Records
from congenial.errors import DataError
from congenial.mechanisms.distribution.distribution_mechanism import DistributionMechanism
from congenial.mechanisms.distribution.fit import groups, numpy_generator, subsets
from congenial.pairs.properties import Scenario
from congenial.privacy.numbers import percent
from congenial.privacy.tradeoff import Tradeoff
from congenial.sampling.randomness import Randomness, SystemRandomness

LEVEL = 0.95
RIDGE = 1.0  # on standardised statistics, the intercept left alone
_STEPS = 50
_RESAMPLES = 2000


@dataclass(frozen=True)
class LogisticRegression:
    """Coefficients of a ridge logistic regression on standardised columns, by Newton's method."""

    centre: Floats
    scale: Floats
    weights: Floats  # the intercept first

    @classmethod
    def fit(cls, features: Floats, labels: Floats, ridge: float = RIDGE) -> LogisticRegression:
        """Maximise the log likelihood minus ridge / 2 times the squared weights."""
        centre, scale = features.mean(axis=0), features.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        design = np.column_stack([np.ones(len(features)), (features - centre) / scale])
        penalty = np.full(design.shape[1], ridge)
        penalty[0] = 1e-9
        weights = np.zeros(design.shape[1])
        for _ in range(_STEPS):
            chance = 1 / (1 + np.exp(-np.clip(design @ weights, -35, 35)))
            slope = design.T @ (labels - chance) - penalty * weights
            curve = (design * (chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
            step = np.linalg.solve(curve, slope)
            weights = weights + step
            if float(np.abs(step).max()) < 1e-9:
                break
        return cls(centre, scale, weights)

    def accuracy(self, features: Floats, labels: Floats) -> float:
        """Share of right guesses."""
        guess = (features - self.centre) / self.scale @ self.weights[1:] + self.weights[0] > 0
        return float(np.mean(guess == (labels > 0.5)))


@dataclass(frozen=True)
class Accuracy:
    """Mean accuracy of the attack, with a 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PropertyInference:
    """How often the attack is right without and with the mechanism, and the most it may be.

    before: the attack on exact statistics. after: on released ones. allowed: what the promise
    lets any attack reach (`allowed_accuracy`). Each accuracy has a 95 % interval.
    """

    before: Accuracy
    after: Accuracy
    allowed: float
    repetitions: int

    @property
    def words(self) -> str:
        """The result in a sentence."""
        return (
            f"the attack is right in {self.before.value:.1%} of cases without protection and in "
            f"{self.after.value:.1%} ({self.after.low:.1%} to {self.after.high:.1%}) with it; the "
            f"promise allows at most {percent(self.allowed)}."
        )

    @property
    def violated(self) -> bool:
        """Whether the accuracy is above what the promise allows, beyond its interval."""
        return self.after.low > self.allowed


@dataclass(frozen=True, eq=False)
class Shadows:
    """Statistics of drawn datasets: (repetitions, datasets, m), the first half of scenario one.

    CONFIDENTIAL as far as the records they were drawn from are.
    """

    train: Floats
    test: Floats

    def labels(self, part: Floats) -> Floats:
        """1 for datasets of the second scenario."""
        return np.repeat([0.0, 1.0], part.shape[1] // 2)


TWO = Rule("a pair of scenarios", lambda one: listed(Scenario).holds(one) and len(one) == 2)


@takes(
    auxiliary=Records,
    testing=Records,
    records=SEVERAL,
    datasets=SEVERAL,
    repetitions=SEVERAL,
    randomness=optional(Randomness),
    scenarios=TWO,
)
def draw_shadows(
    scenarios: tuple[Scenario, Scenario],
    auxiliary: Records,
    testing: Records,
    *,
    records: int,
    datasets: int = 200,
    repetitions: int = 50,
    randomness: Randomness | None = None,
) -> Shadows:
    """Datasets of n = `records`, half of each scenario, to train (auxiliary) and test (testing).

    The adversary of a property inference attack knows records like those that are protected: it
    draws `datasets` of each from `auxiliary`, computes the statistics, and learns to tell the two
    scenarios apart; it is judged on datasets from `testing`, `repetitions` times. Both must not
    share a record (DataError), or the attack would be judged on what it has seen.
    """
    if auxiliary.overlaps(testing):
        raise DataError(
            "auxiliary and testing records have records in common.", remedy="Keep them separate."
        )
    generator = numpy_generator(randomness or SystemRandomness())
    samples = []
    for source in (auxiliary, testing):
        halves = []
        for scenario in scenarios:
            pools, sizes = groups(source, scenario), scenario.sizes(records)
            if any(size > len(pool) for pool, size in zip(pools, sizes, strict=True)):
                raise DataError(
                    f"there are too few records to draw datasets in which {scenario.words}.",
                    remedy="Give more records, or smaller datasets.",
                )
            index = subsets(pools, sizes, repetitions * datasets // 2, generator)
            drawn = source.vectors(index)
            halves.append(drawn.reshape(repetitions, datasets // 2, -1))
        samples.append(np.concatenate(halves, axis=1))
    return Shadows(samples[0], samples[1])


def accuracies(shadows: Shadows, protect: Callable[[Floats], Floats] | None = None) -> Floats:
    """Accuracy of the attack in each repetition, on statistics released through `protect`."""
    m = shadows.train.shape[-1]
    accuracies = []
    for train, test in zip(shadows.train, shadows.test, strict=True):
        protected = train if protect is None else protect(train.reshape(-1, m))
        asked = test if protect is None else protect(test.reshape(-1, m))
        model = LogisticRegression.fit(protected, np.repeat([0.0, 1.0], len(protected) // 2))
        accuracies.append(model.accuracy(asked, np.repeat([0.0, 1.0], len(asked) // 2)))
    return np.array(accuracies)


@takes(mechanism=DistributionMechanism, shadows=Shadows, randomness=optional(Randomness))
def property_inference(
    mechanism: DistributionMechanism, shadows: Shadows, randomness: Randomness | None = None
) -> PropertyInference:
    """Run the attack before and after, against an adversary who knows the mechanism.

    Before: on the statistics as they are. After: on what the mechanism draws around them. The share
    of right guesses after must not pass what the promise allows, (1 + TV) / 2 for the total
    variation TV of its trade-off; more, beyond the error of the simulation, breaks the promise. An
    attack that fails proves nothing: a better one may not.
    """
    source = randomness or SystemRandomness()

    def protect(values: Floats) -> Floats:
        return mechanism.draw(values, source, len(values))

    before, after = accuracies(shadows), accuracies(shadows, protect)
    tests = shadows.test.shape[1]
    return PropertyInference(
        summary(before, tests),
        summary(after, tests),
        allowed_accuracy(mechanism.guarantee.tradeoff),
        len(before),
    )


@takes(promise=Tradeoff)
def allowed_accuracy(promise: Tradeoff) -> float:
    """Largest accuracy of any guess between two equally likely scenarios.

    1 - (least sum of both errors) / 2; for pure epsilon that is e^eps / (1 + e^eps).

    >>> from congenial.privacy import Pure
    >>> round(allowed_accuracy(Pure(1)), 4)
    0.7311
    """
    return (1 + promise.total_variation) / 2


def summary(found: Floats, tests: int) -> Accuracy:
    """Mean and interval: Clopper and Pearson for one run, the bootstrap over repetitions else."""
    value = float(found.mean())
    if len(found) == 1:
        low, high = clopper_pearson(round(value * tests), tests)
        return Accuracy(value, low, high)
    generator = np.random.Generator(np.random.Philox(len(found)))
    index = generator.integers(len(found), size=(_RESAMPLES, len(found)))
    low, high = np.quantile(found[index].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Accuracy(value, float(low), float(high))


def clopper_pearson(hits: int, trials: int) -> tuple[float, float]:
    """Exact confidence interval for a probability, at `LEVEL`.

    >>> clopper_pearson(0, 10)[0], round(clopper_pearson(0, 10)[1], 4)
    (0.0, 0.3085)
    """
    from scipy.special import betaincinv

    tail = (1 - LEVEL) / 2
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    assert math.isfinite(low)
    return low, high
