"""Tests of the odds ratio of a 2 x 2 table whose margins are published.

Given the margins the table has one free cell, x11 = H, and with theta_i the chance of column 1 in
row i and w = [theta_1 / (1 - theta_1)] / [theta_2 / (1 - theta_2)], H is Fisher's noncentral
hypergeometric: P_w(H = x) ~ C(t1., x) C(t2., t.1 - x) w^x. Conforming neighbours move x11 by one,
so x11 + N with canonical noise N for f is f-private among them, and

    phi(x) = F(x - m),  p = E_{w0} F(H - (x11 + N))

are the uniformly most powerful unbiased private test of w <= w0 and a p-value that agrees with it
(semi-dp, Theorem 37 and Lemma 46). Erratum: the paper prints w = odds2 / odds1, for which rejecting
at large x11 has less power than its size; with the ratio as above the theorem is true.

What a test of an odds ratio asks: null value, side, size, level, and where its power matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from congenial.data.arguments import NUMBER, WHOLE, expect, numbers, optional, takes
from congenial.data.arrays import Floats, Ints
from congenial.data.rational import LARGEST, fraction
from congenial.errors import FigureError, GuaranteeError, StructureError
from congenial.figures.support import support
from congenial.mechanisms.tables_release import TablesRelease
from congenial.privacy.tradeoff import Tradeoff
from congenial.sampling.canonical import CanonicalNoise, CanonicalNormal, Tulap, uniform_doubles
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.randomness import Randomness, SystemRandomness, uniform_below

Alternative = Literal["greater", "less", "two-sided"]
MOST_VALUES = 1_000_000  # of x11, each of which is weighed
_FAR = 700.0  # |log w| beyond which a bound of an interval is 0 or infinite


class NoiseLaw(Protocol):
    """Law of symmetric noise in x11; only its distribution function is needed."""

    def cdf(self, x: npt.ArrayLike) -> Any:
        """P(N <= x)."""


@dataclass(frozen=True)
class OddsRatioTest:
    """Inference about w = odds of row 1 / odds of row 2 from a noisy x11 and the margins.

    rows = (t1., t2.), columns = (t.1, t.2): published, none of them zero. noise: the law of N in
    x11 + N, a `CanonicalNoise` for an optimal test; any symmetric law for a valid one (integer
    noise gives conservative p-values).

    >>> from congenial.sampling.canonical import Tulap
    >>> test = OddsRatioTest((7, 5), (6, 6), Tulap(1))
    >>> round(float(test.power(0.05, 2.0)), 6)
    0.084188
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    noise: NoiseLaw

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            expect(getattr(self, name), (tuple, list), name, "Give two totals.", FigureError)
            for item in getattr(self, name):
                expect(item, WHOLE, "a total", "Give whole numbers.", FigureError)
        if not hasattr(self.noise, "cdf"):
            raise GuaranteeError(
                "the noise has no distribution.", remedy="Give for example Tulap(1)."
            )
        if len(self.rows) != 2 or len(self.columns) != 2 or sum(self.rows) != sum(self.columns):
            raise FigureError(
                "the margins do not belong to one 2 x 2 table.",
                remedy="Give two row totals and two column totals with the same sum.",
            )
        if min(*self.rows, *self.columns) <= 0:
            raise StructureError(
                "a margin of the 2 x 2 table is zero: the margins fix every cell, and nothing is "
                "left to test.",
                remedy="Test a table whose four margins are positive.",
            )
        if min(*self.rows, *self.columns) >= MOST_VALUES:
            raise StructureError(
                f"x11 can have more than {MOST_VALUES:,} values under these margins, too many to "
                "weigh one by one.",
                remedy="Test a table one of whose four margins is smaller.",
            )

    @cached_property
    def support(self) -> Ints:
        """The values x11 can have: max(0, t.1 - t2.) .. min(t1., t.1)."""
        low = max(0, self.columns[0] - self.rows[1])
        return np.arange(low, min(self.rows[0], self.columns[0]) + 1)

    def law(self, w: float) -> Floats:
        """P_w(H = x) for x in `support`."""
        return self._law(_log_ratio(w))

    @cached_property
    def _log_ways(self) -> Floats:
        """log C(t1., x) C(t2., t.1 - x) for x in `support`."""
        x = self.support.astype(float)
        (t1, t2), k = self.rows, self.columns[0]
        return _log_choose(t1, x) + _log_choose(t2, k - x)

    def _law(self, log_w: float) -> Floats:
        logs = self._log_ways + self.support * log_w
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    # ---- tests ---------------------------------------------------------------------------------

    def p_value(
        self, statistic: float, w: float = 1.0, alternative: Alternative = "greater"
    ) -> float:
        """Private p-value from U = x11 + N: post-processing of U and the margins.

        "greater" is against odds ratios above w, "less" below; "two-sided" is twice the smaller,
        at most 1 (valid, not claimed optimal).
        """
        check_alternative(alternative)
        if alternative == "two-sided":
            sides = (self.p_value(statistic, w, "greater"), self.p_value(statistic, w, "less"))
            return min(1.0, 2 * min(sides))
        return self._tail(_finite("the statistic", statistic), _log_ratio(w), alternative)

    def _tail(self, statistic: float, log_w: float, alternative: Alternative) -> float:
        sign = 1 if alternative == "greater" else -1
        values = self.noise.cdf(sign * (self.support - statistic))
        return float(np.clip(self._law(log_w) @ values, 0.0, 1.0))

    def interval(self, statistic: float, level: float) -> tuple[float, float]:
        """Confidence interval for w: the values that neither one-sided test at (1 - level) / 2
        rejects. An end may be 0 or infinite, and both are 0 or infinite where the noise took U far
        outside the support.
        """
        _check_probability("level", level)
        statistic = _finite("the statistic", statistic)
        tail = (1 - level) / 2
        low = _crossing(lambda t: self._tail(statistic, t, "greater") - tail)
        high = _crossing(lambda t: tail - self._tail(statistic, t, "less"))
        return _exp(low), _exp(high)

    # ---- power ---------------------------------------------------------------------------------

    def threshold(self, alpha: float, w: float = 1.0) -> float:
        """m with E_w F(H - m) = alpha."""
        from scipy import optimize

        _check_probability("alpha", alpha)
        law = self.law(w)

        def excess(m: float) -> float:
            return float(law @ self.noise.cdf(self.support - m)) - alpha

        reach = 1.0
        low, high = float(self.support[0]), float(self.support[-1])
        while excess(low - reach) < 0 or excess(high + reach) > 0:
            reach *= 2
        return float(optimize.brentq(excess, low - reach, high + reach, xtol=1e-13, rtol=1e-15))

    def rejection(self, alpha: float, w: float = 1.0) -> Floats:
        """phi(x) = F(x - m) on `support`: the probability that "w' <= w" is rejected at alpha."""
        return np.asarray(self.noise.cdf(self.support - self.threshold(alpha, w)))

    def power(
        self,
        alpha: float,
        at: npt.ArrayLike,
        w: float = 1.0,
        alternative: Alternative = "greater",
    ) -> Any:
        """Probability that p <= alpha when the odds ratio is `at` (one or many).

        "greater": of rejecting "odds ratio <= w"; "less": ">= w"; "two-sided": "= w".
        """
        check_alternative(alternative)
        _check_probability("alpha", alpha)
        if alternative == "two-sided":  # the two regions do not meet, alpha being below 1
            return self.power(alpha / 2, at, w) + self.power(alpha / 2, at, w, "less")
        if alternative == "less":
            mirrored = OddsRatioTest(self.rows, (self.columns[1], self.columns[0]), self.noise)
            return mirrored.power(alpha, 1 / _ratios(at), math.exp(-_log_ratio(w)))
        phi = self.rejection(alpha, w)
        points = np.atleast_1d(_ratios(at))
        powers = np.array([self.law(float(point)) @ phi for point in points])
        return powers.reshape(np.shape(at))[()]

    # ---- the decision alone ----------------------------------------------------------------------

    def decide(
        self, x11: int, alpha: float, w: float = 1.0, randomness: Randomness | None = None
    ) -> Decision:
        """Draw one bit: whether "odds ratio <= w" is rejected at alpha. This spends privacy, and no
        ledger can count it: it is for studies. `OddsRatioMechanism.decide` gives one to record.

        Drawn as Bernoulli(phi(x11)), exactly for the double phi(x11); it needs no noisy count and
        promises the same f (semi-dp, Lemma 34). x11 is confidential.
        """
        f = self._promise()
        expect(x11, WHOLE, "x11", "Give the count of the first cell.", FigureError)
        values = self.rejection(alpha, w)
        phi = [Fraction(float(p)) for p in values]
        at = int(x11) - int(self.support[0])
        if not 0 <= at < len(phi):
            raise FigureError(
                "the data do not agree with the published margins.",
                remedy="Use the margins of the same table.",
            )
        if lemma_34_excess(values, f) > 1e-12:
            raise GuaranteeError(
                "the rounded test does not keep its promise.", remedy="Use another alpha or noise."
            )
        randomness = SystemRandomness() if randomness is None else randomness
        expect(randomness, Randomness, "randomness", "Leave it out.")
        reject = uniform_below(phi[at].denominator, randomness) < phi[at].numerator
        return Decision(reject, alpha, w, f, randomness.label, randomness.publishable)

    def _promise(self) -> Tradeoff:
        if not isinstance(self.noise, CanonicalNoise):
            raise GuaranteeError(
                "the decision alone needs canonical noise.",
                remedy="Use canonical_noise(f) for the promise you want.",
            )
        return self.noise.tradeoff


@dataclass(frozen=True)
class ObservedOddsRatio:
    """A test together with the statistic U = x11 + N that a release gives for it.

    `p_value(w)` is for the null value w of the odds ratio, `interval(level)` for the odds ratio.
    """

    test: OddsRatioTest
    statistic: float

    def p_value(self, w: float = 1.0, alternative: Alternative = "greater") -> float:
        """As `OddsRatioTest.p_value`."""
        return self.test.p_value(self.statistic, w, alternative)

    def interval(self, level: float) -> tuple[float, float]:
        """As `OddsRatioTest.interval`."""
        return self.test.interval(self.statistic, level)


@takes(StructureError, release=TablesRelease, randomness=optional(Randomness))
def odds_ratio_test(
    release: TablesRelease, randomness: Randomness | None = None
) -> ObservedOddsRatio:
    """The test a released 2 x 2 table allows: post-processing, nothing is spent.

    Double geometric and K-norm noise given both margins is k (+1 -1 / -1 +1) with k double
    geometric. With `randomness` a uniform on (-1/2, 1/2) is added, which makes the noise Tulap and
    the test optimal at the release's epsilon; without it p-values are those of integer noise, valid
    and conservative. Discrete Gaussian noise has variance parameter sigma^2 / 4 in x11.
    """
    drawn = release.only
    table, law = np.asarray(drawn.values), drawn.description
    structure = support(law.support, drawn.table)
    two_by_two = structure.ties[0].shape == (2, 2) if len(structure.ties) == 1 else False
    if table.shape != (2, 2) or not two_by_two or law.nonnegative:
        raise StructureError(
            "this release is not a 2 x 2 table with additive noise and both margins published, "
            "all four of them positive.",
            remedy="Release the 2 x 2 table given both margins, without nonnegative counts.",
        )
    family, scale = law.family, law.scale
    noise: NoiseLaw
    if family == "gaussian":
        noise = CanonicalNormal(2 / math.sqrt(scale))
    elif family == "discrete_gaussian":
        noise = DiscreteGaussian(scale / 4)
    else:
        noise = DoubleGeometric(4 * scale if family == "double_geometric" else scale)
    statistic = float(table[0, 0])
    if randomness is not None and isinstance(noise, DoubleGeometric):
        statistic += float(uniform_doubles(randomness, 1)[0]) - 0.5
        noise = Tulap(noise.eps)
    rows, columns = np.rint(table.sum(axis=1)), np.rint(table.sum(axis=0))
    margins = [(int(two_by_two[0]), int(two_by_two[1])) for two_by_two in (rows, columns)]
    return ObservedOddsRatio(OddsRatioTest(margins[0], margins[1], noise), statistic)


@dataclass(frozen=True)
class Decision:
    """One released bit about the odds ratio, and what it promises between conforming neighbours."""

    reject: bool
    alpha: float
    w: float
    tradeoff: Tradeoff
    randomness: str
    publishable: bool


def lemma_34_excess(phi: npt.ArrayLike, f: Tradeoff) -> float:
    """Largest phi(x) - [1 - f(1 - phi(x'))] over neighbours x' = x +- 1: at most 0 for an f-private
    test (semi-dp, Lemma 34, for f made symmetric).

    >>> from congenial.privacy.tradeoff import Pure
    >>> lemma_34_excess([0.5, 0.5], Pure(1)) <= 0
    True
    """
    values = np.asarray(phi, dtype=np.float64)
    limit = 1 - np.asarray(f.symmetrise()(np.clip(1 - values, 0.0, 1.0)))
    return float(max(np.max(values[1:] - limit[:-1]), np.max(values[:-1] - limit[1:])))


# --- steps ----------------------------------------------------------------------------------------


def _log_choose(n: int, k: Floats) -> Floats:
    from scipy import special

    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def _crossing(rising: Callable[[float], float]) -> float:
    """Where a rising function of log w crosses zero; -inf or inf if it does not."""
    from scipy import optimize

    if rising(-_FAR) >= 0:
        return -math.inf
    if rising(_FAR) <= 0:
        return math.inf
    return float(optimize.brentq(rising, -_FAR, _FAR, xtol=1e-12))


def _exp(log_w: float) -> float:
    return math.exp(log_w) if log_w < _FAR else math.inf


def check_alternative(alternative: str) -> None:
    """Refuse a side that is not known."""
    expect(alternative, str, "alternative", "Give text.", GuaranteeError)
    if alternative not in get_args(Alternative):
        raise GuaranteeError(
            f"alternative = '{alternative}' is not known.",
            remedy="Use 'greater', 'less' or 'two-sided'.",
        )


def _finite(name: str, value: Any) -> float:
    expect(value, NUMBER, name, "Give a number.", GuaranteeError)
    if not abs(value) < LARGEST:
        raise GuaranteeError(f"{name} is not finite.", remedy="Give a number.")
    return float(value)


def _log_ratio(w: Any) -> float:
    """The logarithm of an odds ratio."""
    expect(w, NUMBER, "an odds ratio", "Give a number such as 2.", GuaranteeError)
    if not 0 < w < LARGEST:
        raise GuaranteeError("an odds ratio is a positive number.", remedy="Give 0 < w < inf.")
    return math.log(w)


def _ratios(at: Any) -> Floats:
    ratios = numbers(at, "what power is asked at", GuaranteeError)
    if not np.all((ratios > 0) & (ratios < np.inf)):
        raise GuaranteeError("an odds ratio is a positive number.", remedy="Give one such as 2.")
    return ratios


def _check_probability(name: str, value: float) -> None:
    expect(value, NUMBER, name, "Give a number.", GuaranteeError)
    if not 0 < value < 1:
        raise GuaranteeError(
            f"{name} = {value} is not between 0 and 1.", remedy=f"Give {name} such as 0.05 or 0.95."
        )


RATIOS = (1.5, 2, 3, 5)  # alternatives whose power is stated unless others are named
DIGITS = 6  # of what is printed; libraries agree far beyond


@dataclass(frozen=True)
class OddsRatioQuestion:
    """What is tested: "the odds ratio is at most `null_value`" against `alternative`, at size
    `alpha`; `level` is that of the interval, and power is stated at the odds ratios `power_at`.

    >>> OddsRatioQuestion(null_value=2, alternative="less").hypothesis
    'the odds ratio is at least 2'
    """

    null_value: Fraction | float = Fraction(1)
    alternative: Alternative = "greater"
    alpha: Fraction | float = Fraction(1, 20)
    level: Fraction | float = Fraction(19, 20)
    power_at: tuple[Fraction | float, ...] = ()

    def __post_init__(self) -> None:
        check_alternative(self.alternative)
        remedy = "Give a list of odds ratios, such as [2, 3]."
        expect(self.power_at, (tuple, list), "power_at", remedy, GuaranteeError)
        ratios = tuple(self.power_at)
        for name, value in (
            ("null_value", self.null_value),
            *(("power_at", item) for item in ratios),
        ):
            expect(value, NUMBER, name, "Give an odds ratio such as 2.", GuaranteeError)
            if not 1e-100 < value < 1e100:
                raise GuaranteeError(
                    f"{name}: an odds ratio is a positive number.", remedy="Give one such as 2."
                )
        for name in ("alpha", "level"):
            expect(getattr(self, name), NUMBER, name, "Give a number.", GuaranteeError)
            if not 0 < getattr(self, name) < 1:
                raise GuaranteeError(
                    f"{name} = {getattr(self, name)} is not between 0 and 1.",
                    remedy=f"Give {name} such as 0.05 or 0.95.",
                )
            object.__setattr__(self, name, fraction(getattr(self, name)))
        object.__setattr__(self, "null_value", fraction(self.null_value))
        object.__setattr__(self, "power_at", tuple(map(fraction, ratios)))

    @property
    def hypothesis(self) -> str:
        """What the test may reject, in words."""
        most = {"greater": "at most", "less": "at least", "two-sided": "exactly"}
        return f"the odds ratio is {most[self.alternative]} {shown(self.null_value)}"

    @property
    def alternatives(self) -> tuple[float, ...]:
        """The odds ratios at which power is stated."""
        if self.power_at:
            return tuple(map(float, self.power_at))
        up = [float(self.null_value) * ratio for ratio in RATIOS]
        down = [float(self.null_value) / ratio for ratio in reversed(RATIOS)]
        return tuple({"greater": up, "less": down, "two-sided": down + up}[self.alternative])

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        document = {name: str(getattr(self, name)) for name in ("null_value", "alpha", "level")}
        return document | {
            "alternative": self.alternative,
            "power_at": [str(ratio) for ratio in self.power_at],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OddsRatioQuestion:
        """Inverse of `to_dict`."""
        return cls(
            fraction(data["null_value"]),
            data["alternative"],
            fraction(data["alpha"]),
            fraction(data["level"]),
            tuple(fraction(ratio) for ratio in data["power_at"]),
        )


def shown(value: Fraction | float) -> str:
    """A number of the question for people.

    >>> shown(Fraction(1, 20)), shown(Fraction(2))
    ('0.05', '2')
    """
    return f"{float(value):.{DIGITS}g}"
