"""Are the sampled statistics Gaussian, and do the two laws of a pair share a covariance?

Tests on what `fit_pairs` sampled: Jarque and Bera per statistic, Mardia's skewness and kurtosis for
the vector, Box's M for equal covariances, with a Bonferroni rule over all of them; and histograms,
sampled shares beside the fitted curve. Passing a test does not make the assumption true; what a
violation costs is in `model_checks`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.mechanisms.distribution.fit import FittedLaws

LEVEL = 0.05
BINS = 30


@dataclass(frozen=True)
class AssumptionCheck:
    """One test: what is assumed, about what, the test's statistic and p-value."""

    assumption: str
    about: str
    test: str
    value: float
    p: float


@dataclass(frozen=True)
class Diagnosis:
    """All tests; `doubtful` are those that fail at 5 % once the number of tests is counted."""

    checks: tuple[AssumptionCheck, ...]

    @property
    def doubtful(self) -> tuple[AssumptionCheck, ...]:
        """Tests with p below 0.05 / number of tests."""
        return tuple(check for check in self.checks if check.p < LEVEL / len(self.checks))

    @property
    def words(self) -> str:
        """The result in a sentence."""
        if not self.checks:
            return "the distributions are stated by an expert; nothing was fitted or tested."
        if not self.doubtful:
            return f"none of {len(self.checks)} tests contradicts the assumptions."
        kinds = sorted({check.assumption for check in self.doubtful})
        return (
            f"{len(self.doubtful)} of {len(self.checks)} tests contradict the assumptions: "
            f"{', '.join(kinds)}."
        )


def diagnose(fit: FittedLaws) -> Diagnosis:
    """Test every law of a fit for a Gaussian shape, and every pair for equal covariances."""
    pairs, checks = fit.pairs, []
    for law in pairs.laws:
        drawn = fit.samples[law.label]
        for at, name in enumerate(pairs.statistics):
            checks.append(_jarque_bera(drawn[:, at], f"{name} when {law.label}"))
        checks += _mardia(drawn, f"all statistics when {law.label}")
    for i, j in pairs.pairs:
        samples = [fit.samples[pairs.laws[k].label] for k in (i, j)]
        checks.append(_box(samples, f"{pairs.laws[i].label}, against {pairs.laws[j].label}"))
    return Diagnosis(tuple(checks))


def histograms(fit: FittedLaws) -> dict[str, Any]:
    """CONFIDENTIAL: histogram and fitted Gaussian density per statistic and law, as a table."""
    rows: list[list[Any]] = []
    for at, name in enumerate(fit.pairs.statistics):
        every = np.concatenate([fit.samples[law.label][:, at] for law in fit.pairs.laws])
        if every.min() == every.max():
            continue
        edges = _edges(every)
        middle, width = (edges[1:] + edges[:-1]) / 2, float(edges[1] - edges[0])
        for law in fit.pairs.laws:
            drawn = fit.samples[law.label][:, at]
            shares = np.histogram(drawn, edges)[0] / (len(drawn) * width)
            deviation = math.sqrt(float(law.covariance[at, at]))
            curve = np.exp(-(((middle - law.mean[at]) / deviation) ** 2) / 2)
            curve = curve / (deviation * math.sqrt(2 * math.pi))
            columns = np.stack([edges[:-1], edges[1:], shares, curve], axis=1)
            rows += [[name, law.label, *row] for row in columns.tolist()]
    return {
        "columns": ["statistic", "scenario", "from", "to", "sampled density", "Gaussian density"],
        "rows": rows,
        "notes": [diagnose(fit).words],
    }


def _edges(values: Floats) -> Floats:
    """Edges of about `BINS` bins; for values on a grid (counts, shares) each bin has as many points
    of the grid as any other, or the shares would go up and down with their number.
    """
    low, high = float(values.min()), float(values.max())
    unit = float(np.diff(np.unique(values)).min())
    steps = (values - low) / unit
    if np.abs(steps - np.rint(steps)).max() > 1e-6:
        return np.linspace(low, high, BINS + 1, dtype=np.float64)
    each = math.ceil((round((high - low) / unit) + 1) / BINS)
    bins = math.ceil((round((high - low) / unit) + 1) / each)
    return np.asarray(low + unit * (each * np.arange(bins + 1) - 0.5), dtype=np.float64)


def _jarque_bera(values: Floats, about: str) -> AssumptionCheck:
    """n/6 (skewness^2 + excess kurtosis^2 / 4), chi-squared with 2 degrees of freedom."""
    from scipy.stats import jarque_bera

    test = jarque_bera(values)
    return AssumptionCheck(
        "Gaussian law", about, "Jarque-Bera", float(test.statistic), float(test.pvalue)
    )


def _mardia(values: Floats, about: str) -> list[AssumptionCheck]:
    """Mardia's multivariate skewness (chi-squared) and kurtosis (normal)."""
    from scipy.stats import chi2, norm

    n, m = values.shape
    centred = values - values.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred / n)
    products = centred @ inverse @ centred.T
    skewness = n * float((products**3).mean()) / 6
    freedom = m * (m + 1) * (m + 2) / 6
    kurtosis = float((np.diag(products) ** 2).mean())
    z = (kurtosis - m * (m + 2)) / math.sqrt(8 * m * (m + 2) / n)
    return [
        AssumptionCheck(
            "Gaussian law", about, "Mardia skewness", skewness, float(chi2.sf(skewness, freedom))
        ),
        AssumptionCheck("Gaussian law", about, "Mardia kurtosis", z, float(2 * norm.sf(abs(z)))),
    ]


def _box(samples: list[Floats], about: str) -> AssumptionCheck:
    """Box's M for equal covariances, with his chi-squared approximation."""
    from scipy.stats import chi2

    m, groups = samples[0].shape[1], len(samples)
    sizes = np.array([len(sample) - 1 for sample in samples])
    covariances = [np.atleast_2d(np.cov(sample.T)) for sample in samples]
    pooled = sum(v * c for v, c in zip(sizes, covariances, strict=True)) / sizes.sum()
    logs = [np.linalg.slogdet(covariance)[1] for covariance in covariances]
    statistic = sizes.sum() * np.linalg.slogdet(pooled)[1] - float(sizes @ np.array(logs))
    shrink = (2 * m**2 + 3 * m - 1) / (6 * (m + 1) * (groups - 1))
    shrink *= float((1 / sizes).sum() - 1 / sizes.sum())
    value = (1 - shrink) * float(statistic)
    freedom = m * (m + 1) * (groups - 1) / 2
    return AssumptionCheck(
        "equal covariances", about, "Box's M", value, float(chi2.sf(value, freedom))
    )
