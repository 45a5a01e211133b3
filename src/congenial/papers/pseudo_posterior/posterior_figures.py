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
FIGURE4 = {"Unweighted": 78.7, "DPweighted": 10.1, "EMweighted": 10.2, "Countweighted": 11.17}
Statistic = Callable[[Floats, np.random.Generator], Floats]


def p90(values: Floats, generator: np.random.Generator) -> Floats:
    """Resampled 90th percentiles."""
    return quantiles(values, 0.9, generator)


def _five(values: Floats, digits: int) -> list[tuple[str, float]]:
    return [(k, round(float(np.quantile(values, at)), digits)) for k, at in SHARES.items()]


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
    made = synthesizers(study)
    rows, notes = [], []
    for name, one in made.four():
        rows += [[name, share, value] for share, value in _five(one.bounds, 3)]
        rows.append([name, "maximum (Delta)", round(one.estimate.delta, 3)])
        notes.append(f"{name}: Delta = {one.estimate.delta:.2f} (paper {FIGURE4[name]:g})")
    chart = {"kind": "box", "x": "mechanism", "y": "Lipschitz bound of a record", "by": None}
    return {
        "columns": ["mechanism", "share of records", "Lipschitz bound of a record"],
        "rows": rows,
        "notes": [LABEL, *notes, *_common(made)],
        "chart": chart,
    }


def figure5(study: Study) -> dict[str, Any]:
    """Mean income, data and synthesizers."""
    return _utility(study, means, "mean income")


def figure6(study: Study) -> dict[str, Any]:
    """90th percentile of income, data and synthesizers."""
    return _utility(study, p90, "90th percentile of income")


def _utility(study: Study, statistic: Statistic, what: str) -> dict[str, Any]:
    made = synthesizers(study)
    four = made.four()
    delta = dict(four)["DPweighted"].estimate.delta
    named: list[tuple[str, Sequence[Floats]]] = [("Data", (made.sample.income,))]
    named += [(name, one.copies) for name, one in four]
    named.append((CERTIFIED, certified_copies(made.sample, delta, COPIES, study.seed)))
    rows = _distributions(named, statistic, study.seed)
    return {
        "columns": ["mechanism", "share", what],
        "rows": rows,
        "notes": [
            *_resampled(),
            f"DPweighted and EMweighted: epsilon = 2 Delta = {2 * delta:.2f} per copy, {LABEL}; "
            f"certified: the same epsilon, proved for every dataset",
            *_common(made),
        ],
        "chart": {"kind": "box", "x": "mechanism", "y": what, "by": None, "y_log": True},
    }


def figure7(study: Study) -> dict[str, Any]:
    """90th percentile for every (c, g): DP, EM at the same Delta, certified at the same epsilon."""
    made = synthesizers(study)
    rows: list[list[Any]] = []
    alone = [("Data", (made.sample.income,)), ("Unweighted", made.unweighted().copies)]
    for name, share, value in _distributions(alone, p90, study.seed):
        rows.append([name, name, share, value])
    for c, g in configurations(study):
        dp, em = made.weighted(c, g), made.scalar(c, g)
        sure = certified_copies(made.sample, dp.estimate.delta, COPIES, study.seed)
        named = [("DP", dp.copies), ("EM", em.copies), (CERTIFIED, sure)]
        for name, share, value in _distributions(named, p90, study.seed):
            rows.append([f"({c}, {g})", name, share, value])
    what = "90th percentile of income"
    return {
        "columns": ["(c, g)", "mechanism", "share", what],
        "rows": rows,
        "notes": [*_resampled(), f"DP and EM: {LABEL}", *_common(made)],
        "chart": {"kind": "box", "x": "(c, g)", "y": what, "by": "mechanism"},
    }


def table2(study: Study) -> dict[str, Any]:
    """Delta for every (c, g), with what 20 copies cost and the errors of the 90th percentile."""
    made = synthesizers(study)
    truth = _percentile(made.sample.income)
    rows = []
    for c, g in configurations(study):
        dp, em = made.weighted(c, g), made.scalar(c, g)
        delta = dp.estimate.delta
        sure = certified_copies(made.sample, delta, COPIES, study.seed)
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
    plain = made.unweighted()
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
            *_above(made),
            *_common(made),
        ],
    }


def _percentile(values: Floats) -> float:
    return float(np.quantile(values, 0.9, method="inverted_cdf"))


def _error(copies: Sequence[Floats], truth: float) -> int:
    return round(float(np.sqrt(np.mean([(_percentile(one) - truth) ** 2 for one in copies]))))


def _distributions(
    named: Sequence[tuple[str, Sequence[Floats]]], statistic: Statistic, seed: int
) -> list[tuple[str, str, float]]:
    generator = generator_of(SeededRandomness(seed))
    rows = []
    for name, copies in named:
        middle = barycenter([statistic(one, generator) for one in copies])
        rows += [(name, share, value) for share, value in _five(middle, 0)]
    return rows


def _resampled() -> list[str]:
    return [
        f"distributions by {RESAMPLES} resamples of each database; for synthesizers the barycenter "
        f"over {COPIES} copies, which averages quantiles",
    ]


def _above(made: Synthesizers) -> list[str]:
    """Lemma 2 needs densities of at most 1."""
    above = [one.name for one in made._done.values() if one.estimate.above_one]
    if not above:
        return []
    return [
        "densities above 1 occur, where Lemma 2 would need 4 Delta (appendix A.3): "
        + "; ".join(above)
    ]


def _common(made: Synthesizers) -> list[str]:
    return [*made.notes(), *DIFFERS]
