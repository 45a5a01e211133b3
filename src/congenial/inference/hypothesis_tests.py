"""A one-sided test in an exponential family from a release and the public figures.

x is a count with a one-parameter exponential family (Poisson, binomial, negative binomial with
known size), y = x + noise with log-concave noise. A log-concave kernel is totally positive of order
two, and so is the family in (theta, x); the composition keeps it, so y has a monotone likelihood
ratio in theta and "reject for large y" is uniformly most powerful among tests based on y.
partially-private-data, Theorem 15, needs log-concave noise for this, and its strictness is not
claimed (docs/errata).

Exact: P(Y >= y) under the null is a sum over x of p(x) P(noise >= y - x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from congenial.data.arguments import FINITE, SHARE, TEXT, takes
from congenial.data.table import select
from congenial.errors import InferenceError
from congenial.mechanisms.tables_release import TablesRelease
from congenial.sampling.sums import Pmf

Alternative = Literal["greater", "less"]
CUT = 1e-17  # mass of the family left out at either end


@dataclass(frozen=True)
class Family:
    """Law of a count by its parameter: poisson (rate per exposure), binomial (share of trials),
    negative_binomial (mean per exposure, size known).

    `size` is the exposure, or the number of trials; `dispersion` that of the negative binomial law,
    whose variance is mean + mean^2 / dispersion (infinite: Poisson). A parameter outside its range
    is refused (`InferenceError`).

    >>> float(Family("binomial", 10).law(0.3).mean())
    3.0
    """

    name: Literal["poisson", "binomial", "negative_binomial"]
    size: float = 1.0  # exposure, or trials
    dispersion: float = math.inf

    def law(self, theta: float) -> Any:
        """The frozen law of the count."""
        from scipy import stats

        inside = 0 < theta < 1 if self.name == "binomial" else theta > 0
        if not inside:
            raise InferenceError(f"{theta} is not a parameter of a {self.name} law.")
        if self.name == "binomial":
            return stats.binom(int(self.size), theta)
        mean = theta * self.size
        if self.name == "poisson":
            return stats.poisson(mean)
        return stats.nbinom(self.dispersion, self.dispersion / (self.dispersion + mean))


@dataclass(frozen=True)
class OneSidedTest:
    """A p-value with what it rests on. `error` bounds its numerical error.

    statistic: the sum as drawn. null: the value of theta at the edge of the hypothesis.
    alternative: "greater" or "less", where theta would lie otherwise. Under the null hypothesis
    P(p_value <= x) <= x + error for every x.
    """

    p_value: float
    error: float
    statistic: float
    null: float
    alternative: Alternative
    basis: str


@takes(
    InferenceError,
    release=TablesRelease,
    condition=TEXT,
    family=Family,
    null=FINITE,
    alternative=TEXT,
)
def one_sided(
    release: TablesRelease,
    condition: str,
    family: Family,
    null: float,
    alternative: Alternative = "greater",
) -> OneSidedTest:
    """Test of theta <= null (or >=) for the number of people who meet a condition.

    Given a published total that contains the count, use a binomial with that many trials: the test
    is then conditional on the public figure. Size is exact up to the stated error (y is discrete,
    so it may be below the nominal level).
    """
    noise, y = _noise(release, condition)
    p, error = tail(family.law(null), noise, y, alternative)
    return OneSidedTest(p, error, y, null, alternative, "exact, by summation over counts")


@takes(
    InferenceError,
    release=TablesRelease,
    condition=TEXT,
    family=Family,
    null=FINITE,
    level=SHARE,
    at=FINITE,
    alternative=TEXT,
)
def power(
    release: TablesRelease,
    condition: str,
    family: Family,
    null: float,
    level: float,
    at: float,
    alternative: Alternative = "greater",
) -> float:
    """Chance that `one_sided` rejects at a level when the parameter is `at`, by the same sums.

    The largest rejection region of the test at `level` is found under `null`, and its mass
    under `at` is returned; 0 where no value of y can be rejected. Nothing is spent: the law of the
    noise is public, and the released value is not used.
    """
    noise, _ = _noise(release, condition)
    law = joint(family.law(null), noise)
    values = np.arange(law.lo, law.hi + 1)
    mass = law.probs[::-1] if alternative == "greater" else law.probs
    tails = np.cumsum(mass)
    tails = tails[::-1] if alternative == "greater" else tails
    rejected = values[tails <= level]
    there = joint(family.law(at), noise)
    counts = np.arange(there.lo, there.hi + 1)
    if not len(rejected):
        return 0.0
    inside = counts >= rejected[0] if alternative == "greater" else counts <= rejected[-1]
    return float(there.probs[inside].sum())


def _noise(release: TablesRelease, condition: str) -> tuple[Pmf, int]:
    drawn = release.only
    cells = select(condition, release.schema, drawn.table)
    law = drawn.mechanism.error_law(cells)
    if not isinstance(law, Pmf):
        raise InferenceError(
            "the test is built for integer noise with a tabulated law.",
            remedy="Use a release with double geometric or discrete Gaussian noise.",
        )
    return law, int(np.sum(np.asarray(drawn.values)[cells]))


def _support(law: Any) -> tuple[Any, Any]:
    """Counts from 0 to where hardly any mass is left, and their probabilities."""
    high = int(law.mean()) + 16
    while law.sf(high) > CUT:
        high *= 2
    x = np.arange(high + 1)
    return x, law.pmf(x)


def tail(law: Any, noise: Pmf, y: int, alternative: Alternative) -> tuple[float, float]:
    """P(x + noise >= y) (or <=) and a bound on its numerical error."""
    x, mass = _support(law)
    upper = np.append(np.cumsum(noise.probs[::-1])[::-1], 0.0)  # P(noise >= lo + i)
    if alternative == "greater":
        at = np.clip(y - x - noise.lo, 0, len(noise.probs))
        chance = upper[at.astype(np.int64)]
    else:
        at = np.clip(y - x - noise.lo + 1, 0, len(noise.probs))
        chance = 1 - upper[at.astype(np.int64)]
    return float(min(mass @ chance, 1.0)), noise.error + 4 * CUT + 1e-14


def joint(law: Any, noise: Pmf) -> Pmf:
    """The law of x + noise."""
    x, mass = _support(law)
    return Pmf(int(x[0]) + noise.lo, np.convolve(mass, noise.probs), noise.error + 2 * CUT)
