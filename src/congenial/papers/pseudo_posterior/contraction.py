"""Theorem 2 and Definition 4, measured on the Poisson samples of section 4.4.

Posteriors are Gamma laws, so masses and quantiles are exact given a dataset and its weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import gamma

from congenial.papers.item import Study
from congenial.papers.pseudo_posterior.simulation import (
    MEAN,
    MECHANISMS,
    MODEL,
    SIZES,
    M,
    S,
    extremes,
    simulate,
)
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.local import LABEL, min_max, probabilistic, risks, truncated
from congenial.synthesis.record_model import Floats, generator_of

SAFETY = (1.0, 1.05, 1.10)  # the factors of section 4.5


def weights(y: Floats, generator: np.random.Generator) -> list[Floats]:
    """Weights of the three mechanisms for one dataset."""
    theta = MODEL.posterior(y, np.ones(len(y)), S, generator)
    risk = risks(MODEL.log_likelihood(extremes(theta), y))
    plain = min_max()
    return [np.ones(len(y)), plain(risk), truncated(plain, M)(risk)]


def posterior(y: Floats, w: Floats) -> Any:
    """The weighted posterior of the mean: a Gamma law."""
    return gamma(MODEL.shape + float(w @ y), scale=1 / float(w.sum()))


def measured(y: Floats, w: Floats) -> tuple[float, float, float]:
    """Half the width of the central 95 %, the distance of its median from the truth, and the share
    of records whose weight is below 1.
    """
    low, middle, high = posterior(y, w).ppf([0.025, 0.5, 0.975])
    return (high - low) / 2, abs(middle - MEAN), float((w < 1).mean())


def theorem2(study: Study) -> dict[str, Any]:
    """Widths of the weighted posteriors and their distance from the truth, by n."""
    repeats = 20 if study.quick else 100
    generator = generator_of(SeededRandomness(study.seed))
    rows: list[list[Any]] = []
    for n in SIZES[:3] if study.quick else SIZES:
        study.progress(f"n = {n}: {repeats} datasets")
        samples = [generator.poisson(MEAN, n).astype(float) for _ in range(repeats)]
        bounds = np.array([[measured(y, w) for w in weights(y, generator)] for y in samples])
        for name, (width, away, down) in zip(MECHANISMS, bounds.mean(axis=0), strict=True):
            scaled = [float(v * np.sqrt(n)) for v in (width, away)]
            rows.append([name, n, float(width), *scaled, float(down)])
    return {
        "columns": [
            "mechanism", "n", "half width of 95 %", "times sqrt(n)",
            "distance from the truth times sqrt(n)", "share of records downweighted",
        ],
        "rows": rows,
        "notes": [
            LABEL,
            f"{repeats} datasets per n; posteriors are exact Gamma laws. The truth is {MEAN:g}.",
            "Widths fall like n^(-1/2), the rate of the theorem, with a constant that grows as "
            "weight is taken away: 1.96 sqrt(100) = 19.6 without weights.",
            "They contract on the law nearest to the weighted data, not on the truth: the distance "
            "of Weighted-M from the truth falls more slowly than n^(-1/2).",
            "Assumption 4 asks that at most of order sqrt(n) records are downweighted. Min-max "
            "weights downweight nearly all, so the theorem does not cover the paper's own choice.",
        ],
        "chart": {
            "kind": "line", "x": "n", "x_log": True, "y": "half width of 95 %", "y_log": True,
            "by": "mechanism",
        },
    }  # fmt: skip


def definition4(study: Study) -> dict[str, Any]:
    """delta of probabilistic privacy under one law, for three factors of safety."""
    simulated = simulate(study)
    rows = []
    for n, (deltas, _) in simulated.items():
        for at, name in enumerate(MECHANISMS):
            for factor in SAFETY:
                share = probabilistic(deltas[:, at], 2 * M * factor)
                rows.append([name, n, factor, 2 * M * factor, share.delta, share.upper()])
    return {
        "columns": ["mechanism", "n", "factor of safety", "epsilon", "delta", "95 % upper bound"],
        "rows": rows,
        "notes": [
            LABEL,
            f"delta: the share of {len(next(iter(simulated.values()))[0])} simulated datasets "
            f"whose 2 Delta exceeds epsilon = 2 M times the factor, M = {M}; upper bound by "
            "Clopper and Pearson.",
            "The probability is over datasets of one Poisson law; the definition asks for it under "
            "all laws, and for the loss of every neighbour where 2 Delta is an estimate. Item "
            "one-record shows neighbours that lose more.",
        ],
        "chart": {
            "kind": "line", "x": "n", "x_log": True, "y": "delta", "by": "mechanism",
            "facet": "panel", "y_title": "share of datasets beyond epsilon",
            "data": {
                "columns": ["mechanism", "n", "panel", "delta"],
                "rows": [[a, n, f"factor of safety {s:g}", d] for a, n, s, _, d, _ in rows],
            },
        },
    }  # fmt: skip
