"""Figures 1 to 3, and the two parameters of the prior that the paper leaves open."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from congenial.papers.item import Study
from congenial.papers.partially_private_data import pennsylvania as pa
from congenial.sampling.convergence import effective_draws
from congenial.sampling.randomness import SeededRandomness

SHOWN = ("Allegheny", "Erie", "Cameron")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
ERRORS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
EXTREMES = 5  # most and least populous counties of Figure 3


def _notes(study: Study) -> list[str]:
    prior = f"Prior-congenial: a = alpha (last month + kappa), alpha = {pa.ALPHA}, kappa = 1/2."
    return [pa.ASSUMED, pa.LOSS, _walked(study), pa.FACTOR, prior, *pa.load(study).notes]


def _walked(study: Study) -> str:
    """What the l2 walks did, and how many independent draws they are worth."""
    data, months, worth = pa.load(study), list(pa.months_of(study)), list[float]()
    for (method, _), (cases, deaths, _) in pa.released(study, "l2").items():
        if method != "post-processing":
            away = (cases - data.cases[months][:, None]) ** 2
            away += (deaths - data.deaths[months][:, None]) ** 2
            far = np.sqrt(away.sum(axis=2).astype(float))
            worth += [float(effective_draws(chain[None, :, None])[0]) for chain in far]
    return (
        f"l2: one Metropolis walk per method, epsilon and month, {pa.SWEEPS} moves of every cell "
        f"between two of {pa.replicates_of(study)} draws. Judged by the distance from the truth "
        f"they are worth {min(worth):.0f} independent draws at least, {np.median(worth):.0f} in "
        "the middle."
    )


def figure1(study: Study) -> dict[str, Any]:
    """Distributions of released cases per 100,000 people, three counties; the truth beside them."""
    data, rows = pa.load(study), []
    months = list(pa.months_of(study))
    for (method, loss, epsilon), (cases, _, _) in _in_order(study):
        for county in SHOWN:
            j = data.counties.index(county)
            per = 1e5 / data.population[j]
            for at, t in enumerate(months):
                quantiles = [float(v) for v in np.quantile(cases[at, :, j] * per, LEVELS)]
                true = float(data.cases[t][j] * per)
                panel = f"{method}, {loss}, epsilon = {float(epsilon):g}"
                name = f"{county} ({data.population[j]:,} people)"
                rows.append([panel, name, data.months[t], *quantiles, true])
    return {
        "columns": ["panel", "county", "month", *_names(LEVELS), "confidential"],
        "rows": rows,
        "notes": [
            *_notes(study),
            "Cases per 100,000 people. Boxes: quartiles over replicates, whiskers 5 to 95 %; "
            "lines: the confidential rates.",
        ],
        "chart": {
            "kind": "quartiles",
            "x": "month",
            **dict(zip(("low", "q1", "y", "q3", "high"), _names(LEVELS), strict=True)),
            "line": "confidential",
            "by": "county",
            "facet": "panel",
            "columns": len(pa.EPSILONS) * len(pa.LOSSES),
            "width": 250,
            "x_sparse": True,
            "height": 150,
            "size": 2,
            "y_symlog": True,
            "y_title": "cases per 100,000",
        },
    }


def _in_order(study: Study) -> list[tuple[Any, Any]]:
    """Method by method, l1 before l2, the smallest epsilon first: panels from left to right."""
    return [
        ((method, loss, epsilon), pa.released(study, loss)[method, epsilon])
        for method in pa.METHODS
        for loss in pa.LOSSES
        for epsilon in pa.EPSILONS
    ]


def _names(levels: tuple[float, ...]) -> list[str]:
    return [f"{100 * level:g} %" for level in levels]


def figure2(study: Study) -> dict[str, Any]:
    """Distribution of |y - x| / max(x, 1) over counties, months and replicates."""
    data, rows = pa.load(study), []
    truth = data.cases[list(pa.months_of(study))][:, None, :]
    for loss in pa.LOSSES:
        for (method, epsilon), (cases, _, _) in pa.released(study, loss).items():
            error = 100 * np.abs(cases - truth) / np.maximum(truth, 1)
            quantiles = [float(v) for v in np.quantile(error, ERRORS)]
            rows.append([f"{loss} loss, epsilon = {float(epsilon):g}", method, *quantiles])
    names = _names(ERRORS)
    return {
        "columns": ["panel", "method", *names],
        "rows": rows,
        "notes": [
            *_notes(study),
            "Relative errors in percent, over counties, months and replicates; where no case was "
            "counted the error is relative to 1. Boxes: quartiles, whiskers 5 to 99 %.",
        ],
        "chart": {
            "kind": "quartiles",
            "x": "method",
            **dict(zip(("low", "q1", "y", "q3", "high"), (*names[:4], "99 %"), strict=True)),
            "by": "method",
            "facet": "panel",
            "columns": 2,
            "size": 26,
            "y_symlog": True,
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
    for (method, loss, epsilon), (cases, deaths, noisy) in _in_order(study):
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
            for effect, draws in at.items():
                share = float(draws[..., members].mean())
                contracted = float(cut[effect][..., members].mean())
                rows.append([effect, words, loss, float(epsilon), method, share, contracted])
    truth_notes = _true_shares(study, groups)
    return {
        "columns": [
            "effect", "counties", "loss", "epsilon", "method", "on the bound", "contracted",
        ],
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
            "facet": "panel",
            "data": _by_panel(rows),
            "columns": 2,
            "y_title": "share of values contracted",
        },
    }  # fmt: skip


def _by_panel(rows: list[list[Any]]) -> dict[str, Any]:
    """Bars of one method and one group of counties each, the methods that contract anything."""
    cutting = {row[4] for row in rows if row[6] > 0} or {row[4] for row in rows}
    drawn = [
        [f"{method}, {loss}, {words}", effect, f"epsilon = {epsilon:g}", cut]
        for effect, words, loss, epsilon, method, _, cut in rows
        if method in cutting
    ]
    return {"columns": ["panel", "effect", "epsilon", "contracted"], "rows": drawn}


def _true_shares(study: Study, groups: dict[str, Any]) -> list[str]:
    data, months = pa.load(study), list(pa.months_of(study))
    rows = []
    for words, members in groups.items():
        cases, deaths = data.cases[months][:, members], data.deaths[months][:, members]
        rows.append(
            f"In the data, {words}: {100 * (cases == 0).mean():.1f} % have no case and "
            f"{100 * (deaths == 0).mean():.1f} % no death."
        )
    return rows


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
                            pa.law_of(data, t, "prior-congenial", epsilon, (alpha, kappa)),
                            "prior-congenial", randomness, replicates,
                        )[0]
                        for t in months
                    ]
                )  # fmt: skip
                error = 100 * np.abs(cases - truth) / np.maximum(truth, 1)
                quantiles = [float(v) for v in np.quantile(error, (0.5, 0.95))]
                rows.append(
                    [float(epsilon), float(alpha), float(kappa), *quantiles, float(error.max())]
                )
    return {
        "columns": ["epsilon", "alpha", "kappa", "median_percent", "q95_percent", "max_percent"],
        "rows": rows,
        "notes": [
            pa.ASSUMED,
            pa.FACTOR,
            "The loss is l1.",
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
            "y_title": "median error in percent",
            "by": "kappa",
            "facet": "epsilon",
            "y_log": True,
        },
    }
