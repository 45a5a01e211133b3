"""Figures 1 to 3, and the two parameters of the prior that the paper leaves open."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from congenial.papers.item import Study
from congenial.papers.partially_private_data import pennsylvania as pa
from congenial.sampling.randomness import SeededRandomness

SHOWN = ("Allegheny", "Erie", "Cameron")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
EXTREMES = 5  # most and least populous counties of Figure 3


def _notes(study: Study) -> list[str]:
    prior = f"Prior-congenial: a = alpha (last month + kappa), alpha = {pa.ALPHA}, kappa = 1/2."
    return [pa.ASSUMED, pa.LOSS, pa.FACTOR, prior, *pa.load(study).notes]


def figure1(study: Study) -> dict[str, Any]:
    """Quantiles of released cases per 100,000 people, three counties; the truth beside them."""
    data, rows = pa.load(study), []
    months = list(pa.months_of(study))
    shown = [(method, eps, cases) for (method, eps), (cases, _, _) in pa.released(study).items()]
    shown += [("confidential", eps, data.cases[months][:, None, :]) for eps in pa.EPSILONS]
    for method, epsilon, cases in shown:
        for county in SHOWN:
            j = data.counties.index(county)
            panel = f"{county}, epsilon = {float(epsilon):g}"
            for at, t in enumerate(months):
                rates = cases[at, :, j] * 1e5 / data.population[j]
                found = [float(v) for v in np.quantile(rates, LEVELS)]
                rows.append([panel, float(epsilon), method, data.months[t], t + 1, *found])
    order = [f"{c}, epsilon = {float(e):g}" for e in pa.EPSILONS for c in SHOWN]
    rows.sort(key=lambda row: order.index(str(row[0])))
    names = [f"q{round(100 * level)}" for level in LEVELS]
    return {
        "columns": ["panel", "epsilon", "method", "month", "t", *names],
        "rows": rows,
        "notes": _notes(study),
        "chart": {
            "kind": "line",
            "x": "t",
            "y": "q50",
            "by": "method",
            "facet": "panel",
            "y_free": True,
            "x_title": "month (1 is March 2020)",
            "y_title": "median cases per 100,000",
        },
    }


def figure2(study: Study) -> dict[str, Any]:
    """Quantiles of |y - x| / max(x, 1) over counties, months and replicates."""
    data, rows = pa.load(study), []
    truth = data.cases[list(pa.months_of(study))][:, None, :]
    for (method, epsilon), (cases, _, _) in pa.released(study).items():
        error = np.abs(cases - truth) / np.maximum(truth, 1)
        for level in (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0):
            percent = 100 * float(np.quantile(error, level))
            rows.append([f"epsilon = {float(epsilon):g}", method, f"{100 * level:g} %", percent])
    return {
        "columns": ["panel", "method", "quantile", "relative_error_percent"],
        "rows": rows,
        "notes": [*_notes(study), "Where no case was counted the error is relative to 1."],
        "chart": {
            "kind": "points",
            "x": "quantile",
            "y": "relative_error_percent",
            "by": "method",
            "facet": "panel",
            "y_log": True,
            "y_free": True,
            "y_title": "relative error, percent",
        },
    }


def figure3(study: Study) -> dict[str, Any]:
    """How often released values sit on a constraint, and how often noise was cut off there."""
    data, rows = pa.load(study), []
    order = np.argsort(data.population)
    groups = {
        f"{EXTREMES} least populous": order[:EXTREMES],
        f"{EXTREMES} most populous": order[-EXTREMES:],
    }
    size = len(data.counties)
    for (method, epsilon), (cases, deaths, noisy) in pa.released(study).items():
        at = {
            "zero cases": cases == 0,
            "zero deaths": deaths == 0,
            "all cases died": (cases == deaths) & (cases > 0),
        }
        cut = dict.fromkeys(at, np.zeros(cases.shape, dtype=bool))
        if noisy is not None:  # several noisy values became this one
            raw_cases, raw_deaths = noisy[..., :size], noisy[..., size:]
            cut = {
                "zero cases": at["zero cases"] & (raw_cases < 0),
                "zero deaths": at["zero deaths"] & (raw_deaths < 0),
                "all cases died": at["all cases died"] & (raw_cases < raw_deaths),
            }
        for words, members in groups.items():
            for effect, seen in at.items():
                share = float(seen[..., members].mean())
                contracted = float(cut[effect][..., members].mean())
                rows.append([effect, words, float(epsilon), method, share, contracted])
    truth_notes = _true_shares(study, groups)
    return {
        "columns": ["effect", "counties", "epsilon", "method", "on_the_bound", "contracted"],
        "rows": rows,
        "notes": [
            *_notes(study),
            "contracted: the noisy value was beyond the constraint, so that different noisy values "
            "became one. The mechanisms draw from a law on the constrained tables; nothing is cut, "
            "and an analyst can use their density. The naive base is not constrained.",
            *truth_notes,
        ],
        "chart": {
            "kind": "bar",
            "x": "effect",
            "y": "contracted",
            "by": "epsilon",
            "facet": "counties",
        },
    }


def _true_shares(study: Study, groups: dict[str, Any]) -> list[str]:
    data, months = pa.load(study), list(pa.months_of(study))
    told = []
    for words, members in groups.items():
        cases, deaths = data.cases[months][:, members], data.deaths[months][:, members]
        told.append(
            f"In the data, {words}: {100 * (cases == 0).mean():.1f} % have no case and "
            f"{100 * (deaths == 0).mean():.1f} % no death."
        )
    return told


def sweep(study: Study) -> dict[str, Any]:
    """Errors under the prior-congenial base for several alpha and kappa."""
    data, rows = pa.load(study), []
    randomness = SeededRandomness(study.seed)
    months = list(pa.months_of(study))
    alphas = (Fraction(1, 10), Fraction(1)) if study.quick else (
        Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(10)
    )  # fmt: skip
    kappas = (Fraction(1, 2),) if study.quick else (Fraction(1, 10), Fraction(1, 2), Fraction(2))
    replicates = 3 if study.quick else 10
    truth = data.cases[months][:, None, :]
    for epsilon in pa.EPSILONS:
        for alpha in alphas:
            for kappa in kappas:
                study.progress(f"epsilon = {float(epsilon):g}, alpha = {alpha}, kappa = {kappa}")
                cases = np.stack(
                    [
                        pa.month(
                            pa.law_of(data, t, "prior-congenial", epsilon, alpha, kappa),
                            "prior-congenial", randomness, replicates,
                        )[0]
                        for t in months
                    ]
                )  # fmt: skip
                error = 100 * np.abs(cases - truth) / np.maximum(truth, 1)
                found = [float(v) for v in np.quantile(error, (0.5, 0.95))]
                rows.append(
                    [float(epsilon), float(alpha), float(kappa), *found, float(error.max())]
                )
    return {
        "columns": ["epsilon", "alpha", "kappa", "median_percent", "q95_percent", "max_percent"],
        "rows": rows,
        "notes": [
            *_notes(study)[:3],
            "Relative errors of cases in percent. At epsilon = 0.01 a stronger prior (larger "
            "alpha) cuts the worst errors; at epsilon = 1 it costs accuracy from alpha = 1 on. "
            "kappa matters little. The figures use alpha = 1/10, chosen for this study from this "
            "table; a curator must choose without looking at the data.",
        ],
        "chart": {
            "kind": "line",
            "x": "alpha",
            "x_log": True,
            "y": "median_percent",
            "by": "kappa",
            "facet": "epsilon",
            "y_free": True,
        },
    }
