"""Section 5: Figures 3 to 7 and Table 2 on the expenditure quarter, certified mode beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from congenial.papers.item import Study
from congenial.papers.pseudo_posterior.certified_study import certified_copies
from congenial.papers.pseudo_posterior.expenditure import DIFFERS, read
from congenial.papers.pseudo_posterior.fits import (
    COPIES,
    PRINTED,
    Synthesizers,
    configurations,
    synthesizers,
)
from congenial.papers.pseudo_posterior.resampling import RESAMPLES, barycenter, means, quantiles
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.local import LABEL
from congenial.synthesis.record_model import Floats, generator_of

CERTIFIED = "Certified (a theorem)"
SHARES = {"2.5 %": 0.025, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "97.5 %": 0.975}
FIGURE4 = {
    "Unweighted": "78.7",
    "DPweighted": "10.1",
    "EMweighted": "10.2",
    "Countweighted": "11.17",
}
NAMED = ("Data", "Unweighted", "DPweighted", "EMweighted", "Countweighted", CERTIFIED)
SPREAD = (
    "the picture shows the density of the bounds over records, from the 0.1 to the 99.9 % quantile"
)
Statistic = Callable[[Floats, np.random.Generator], Floats]


def p90(values: Floats, generator: np.random.Generator) -> Floats:
    """Resampled 90th percentiles."""
    return quantiles(values, 0.9, generator)


def _five(values: Floats, digits: int | None) -> list[float]:
    """The quantiles of a row, rounded; to whole dollars without digits."""
    return [round(float(np.quantile(values, at)), digits) for at in SHARES.values()]


def density_curve(values: Floats) -> list[tuple[float, float]]:
    """A kernel density (Silverman's width) between the 0.1 and the 99.9 % quantile, thinned."""
    from scipy.stats import gaussian_kde

    low, high = np.quantile(values, (0.001, 0.999))
    if low == high:
        return [(float(low), 0.0), (float(low), 1.0)]
    at = np.linspace(low, high, 120)
    heights = gaussian_kde(values, bw_method="silverman")(at)
    return [(float(f"{x:.6g}"), float(f"{h:.4g}")) for x, h in zip(at, heights, strict=True)]


def _violins(named: Sequence[tuple[str, str, Floats]], y_title: str) -> dict[str, Any]:
    """Violins of samples: place on the axis, colour, values."""
    rows = [[place, hue, x, h] for place, hue, values in named for x, h in density_curve(values)]
    return {
        "kind": "violin",
        "x": "place",
        "y": "value",
        "low": "density",
        "by": "mechanism",
        "named": NAMED,
        "data": {"columns": ["place", "mechanism", "value", "density"], "rows": rows},
        "x_title": "",
        "y_title": y_title,
    }


def figure3(study: Study) -> dict[str, Any]:
    """Histogram of family income."""
    income = read(study).income / 1000
    counts, edges = np.histogram(income, bins=np.arange(-25, 1201, 12.5))
    density = counts / counts.sum() / 12.5
    rows = [
        [float(left + 6.25), float(f"{d:.6g}")] for left, d in zip(edges, density, strict=False)
    ]
    return {
        "columns": ["income, thousands of dollars", "density"],
        "rows": rows,
        "notes": list(DIFFERS[:1]),
        "chart": {"kind": "line", "x": "income, thousands of dollars", "y": "density", "by": None},
    }


def figure4(study: Study) -> dict[str, Any]:
    """Lipschitz bounds by record for the four synthesizers."""
    fitted = synthesizers(study)
    rows, notes = [], []
    for name, fit in fitted.four():
        rows.append([name, *_five(fit.bounds, 3), round(fit.estimate.delta, 3)])
        notes.append(f"{name}: Delta = {fit.estimate.delta:.2f} (paper {FIGURE4[name]})")
    violins = [(name, name, np.asarray(fit.bounds)) for name, fit in fitted.four()]
    return {
        "columns": ["mechanism", *SHARES, "maximum (Delta)"],
        "rows": rows,
        "notes": [LABEL, *notes, *_common(fitted), SPREAD],
        "chart": _violins(violins, "Lipschitz bound of a record") | {"y_symlog": True},
    }


def figure5(study: Study) -> dict[str, Any]:
    """Mean income, data and synthesizers."""
    return _utility(study, means, "mean income")


def figure6(study: Study) -> dict[str, Any]:
    """90th percentile of income, data and synthesizers."""
    return _utility(study, p90, "90th percentile of income")


def _utility(study: Study, statistic: Statistic, what: str) -> dict[str, Any]:
    fitted = synthesizers(study)
    four = fitted.four()
    delta = dict(four)["DPweighted"].estimate.delta
    named: list[tuple[str, Sequence[Floats]]] = [("Data", (fitted.sample.income,))]
    named += [(name, fit.copies) for name, fit in four]
    named.append((CERTIFIED, certified_copies(fitted.sample, delta, COPIES, study.seed)))
    distributions = _distributions(named, statistic, study.seed)
    return {
        "columns": ["mechanism", *SHARES],
        "rows": [[name, *_five(values, None)] for name, values in distributions],
        "notes": [
            f"{what}, in dollars",
            *_resampled(),
            f"DPweighted and EMweighted: epsilon = 2 Delta = {2 * delta:.2f} per copy, {LABEL}; "
            f"certified: the same epsilon, proved for every dataset",
            *_common(fitted),
        ],
        "chart": _violins(
            [(name, name, values) for name, values in distributions], f"{what}, dollars"
        ),
    }


def figure7(study: Study) -> dict[str, Any]:
    """90th percentile for every (c, g): DP, EM at the same Delta, certified at the same epsilon."""
    fitted = synthesizers(study)
    alone = [("Data", (fitted.sample.income,)), ("Unweighted", fitted.unweighted().copies)]
    violins = [(n, n, values) for n, values in _distributions(alone, p90, study.seed)]
    for c, g in configurations(study):
        dp, em = fitted.weighted(c, g), fitted.scalar(c, g)
        sure = certified_copies(fitted.sample, dp.estimate.delta, COPIES, study.seed)
        named = [("DPweighted", dp.copies), ("EMweighted", em.copies), (CERTIFIED, sure)]
        distributions = _distributions(named, p90, study.seed)
        violins += [(f"({c}, {g})", name, values) for name, values in distributions]
    return {
        "columns": ["(c, g)", "mechanism", *SHARES],
        "rows": [[place, name, *_five(values, None)] for place, name, values in violins],
        "notes": [*_resampled(), f"DPweighted and EMweighted: {LABEL}", *_common(fitted)],
        "chart": _violins(violins, "90th percentile of income, dollars"),
    }


def table2(study: Study) -> dict[str, Any]:
    """Delta for every (c, g), with what 20 copies cost and the errors of the 90th percentile."""
    fitted = synthesizers(study)
    truth = _percentile(fitted.sample.income)
    rows = []
    for c, g in configurations(study):
        dp, em = fitted.weighted(c, g), fitted.scalar(c, g)
        delta = dp.estimate.delta
        sure = certified_copies(fitted.sample, delta, COPIES, study.seed)
        errors = [_error(copies, truth) for copies in (dp.copies, em.copies, sure)]
        rows.append(
            [
                f"({c}, {g})",
                PRINTED[c, g],
                round(delta, 2),
                round(em.estimate.delta, 2),
                round(2 * delta, 2),
                round(2 * delta * COPIES, 1),
                round(dp.estimate.downweighted_share, 3),
                *errors,
            ]
        )
    plain = fitted.unweighted()
    return {
        "columns": [
            "(c, g)",
            "Delta, paper",
            "Delta, DP",
            "Delta, EM",
            "epsilon per copy",
            "epsilon of 20 copies",
            "share downweighted",
            "error of P90, DP",
            "error of P90, EM",
            "error of P90, certified",
        ],
        "rows": rows,
        "notes": [
            f"Delta and epsilon of DP and EM: {LABEL}; certified: epsilon per copy by a theorem",
            "EM aims at the Delta of DP by one weight for all; its own is what its draws give",
            "a maximum over draws is noisy, so Delta need not fall from row to row",
            f"Unweighted: Delta = {plain.estimate.delta:.2f} (paper 78.7), error of P90 "
            f"{_error(plain.copies, truth)}",
            "errors: root mean square over copies of the difference to the data's percentile, in "
            "dollars; computed from the confidential data, for the curator alone",
            *_above(fitted),
            *_common(fitted),
        ],
    }


def _percentile(values: Floats) -> float:
    return float(np.quantile(values, 0.9, method="inverted_cdf"))


def _error(copies: Sequence[Floats], truth: float) -> int:
    return round(float(np.sqrt(np.mean([(_percentile(copy) - truth) ** 2 for copy in copies]))))


def _distributions(
    named: Sequence[tuple[str, Sequence[Floats]]], statistic: Statistic, seed: int
) -> list[tuple[str, Floats]]:
    """Each mechanism with the distribution of its statistic."""
    generator = generator_of(SeededRandomness(seed))
    return [
        (name, barycenter([statistic(copy, generator) for copy in copies]))
        for name, copies in named
    ]


def _resampled() -> list[str]:
    return [
        f"distributions by {RESAMPLES} resamples of each database; for synthesizers the barycenter "
        f"over {COPIES} copies, which averages quantiles",
    ]


def _above(made: Synthesizers) -> list[str]:
    """Lemma 2 needs densities of at most 1."""
    above = [fit.name for fit in made._done.values() if fit.estimate.above_one]
    if not above:
        return []
    return [
        "densities above 1 occur, where Lemma 2 would need 4 Delta (appendix A.3): "
        + "; ".join(above)
    ]


def _common(made: Synthesizers) -> list[str]:
    return [*made.notes(), *DIFFERS]
