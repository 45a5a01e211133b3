"""COVID-19 in Pennsylvania, 67 counties and 24 months: cases and deaths, released in four ways.

Public at month t: the total of cases, last month's counties, and deaths <= cases. Month 1 has no
predecessor, so 23 months are released. Delta_z = 2 is assumed for both losses, as in the paper.

Post-processing baseline: noisy wholes and parts made to agree with a public sum, in two stages.

Stage 1: the nearest real table with sum(wholes) = s and whole >= part >= 0. For a multiplier the
problem splits into pairs, each a projection onto a cone in closed form, and the sum falls in it:
bisection. Stage 2: round down, and add 1 to as many wholes as the sum asks for. The problem is
totally unimodular; what each whole costs with its best part is known, so the K smallest
marginal costs are optimal. Values within `SNAP` of an integer are snapped to it first, because a
floor turns 2.999999 into 2.

partially-private-data, section 4.2, with a sum sign, a plus and the floor offset put back.

Figures 1 to 3, and the two parameters of the prior that the paper leaves open.
"""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.mechanisms.distribution.fit import numpy_generator
from congenial.mechanisms.wasserstein.base_measure import Base, congenial, naive, prior_congenial
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.papers.item import Study
from congenial.sampling.convergence import effective_draws
from congenial.sampling.randomness import Randomness, SeededRandomness

FILE = "covid/pa_county_covid_monthly_2020-03_2022-02.csv.gz"
EPSILONS = (Fraction(1, 100), Fraction(1))
DELTA_Z = Fraction(2)
ALPHA, KAPPA = Fraction(1, 10), Fraction(1, 2)
METHODS = ("post-processing", "naive", "congenial", "prior-congenial")
LOSSES = ("l1", "l2")
SWEEPS, FIRST = 300, 3000  # of the l2 walk: moves of every cell between two draws, before the first
ASSUMED = (
    "Assumed, not derived: Delta_z = 2 in l1, as in the paper; the scenarios that would give it "
    "are not stated there."
)
LOSS = (
    "The paper's loss is l2, drawn by a Markov chain; so is ours (not certified). The l1 loss is "
    "drawn exactly. Both have Delta_z = 2, as in the paper, although one unit that moves is 2 in "
    "l1 and sqrt 2 in l2. At one rate l2 noise is far larger: it has one radius for all cells."
)
FACTOR = (
    "The naive base has a constant normaliser, so its rate is epsilon / 2 per unit; the others "
    "keep the factor 2 and have epsilon / 4. Post-processing starts from the naive release."
)


@dataclass(frozen=True, eq=False)
class Pennsylvania:
    """Counts by month and county."""

    counties: tuple[str, ...]
    months: tuple[str, ...]
    population: Ints
    cases: Ints
    deaths: Ints
    corrected: int

    @property
    def notes(self) -> list[str]:
        """What was done to the data."""
        return [
            f"{self.corrected} cells with new_deaths = -1 (later corrections) are set to 0. Month "
            f"{self.months[0]} has no predecessor and is not released."
        ]


@lru_cache(maxsize=2)
def read(path: Path) -> Pennsylvania:
    """The monthly file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    months = tuple(sorted({line["month"] for line in lines}))
    counties = tuple(sorted({line["county"] for line in lines}))
    shape = (len(months), len(counties))
    cases, deaths = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    population = np.zeros(len(counties), dtype=np.int64)
    for line in lines:
        t, j = months.index(line["month"]), counties.index(line["county"])
        cases[t, j], deaths[t, j] = int(line["new_cases"]), int(line["new_deaths"])
        population[j] = int(line["population"])
    negative = int((deaths < 0).sum())
    return Pennsylvania(counties, months, population, cases, np.maximum(deaths, 0), negative)


def load(study: Study) -> Pennsylvania:
    """The data of a study."""
    return read(study.file(FILE))


def months_of(study: Study) -> range:
    """The months that are released: all but the first, or three of them."""
    return range(1, 4) if study.quick else range(1, 24)


def replicates_of(study: Study) -> int:
    """100, as in the paper, or 5."""
    return 5 if study.quick else 100


def base_of(data: Pennsylvania, t: int, kind: str, alpha: Fraction, kappa: Fraction) -> Base:
    """The base measure of a month: cells 0 .. J-1 are cases, J .. 2J-1 deaths."""
    size = len(data.counties)
    if kind == "naive":
        return naive(2 * size)
    totals = [(tuple(range(size)), int(data.cases[t].sum()))]
    parts = [(size + j, j) for j in range(size)]
    if kind == "congenial":
        return congenial(2 * size, totals, parts=parts)
    before = [*data.cases[t - 1].tolist(), *([0] * size)]
    return prior_congenial(2 * size, totals, before, alpha=alpha, kappa=kappa, parts=parts)


@dataclass(frozen=True, eq=False)
class L2Walk:
    """p(y) ~ nu(y) exp(-rate ||y - truth||_2) on wholes and parts, by a walk: not certified."""

    base: Base
    truth: Ints
    rate: Fraction

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n states of one walk, `SWEEPS` moves of every cell apart, shape (n, cells)."""
        from congenial.papers.partially_private_data.l2_walk_kernels import walk

        cells = self.base.cells
        shapes_given = self.base.shapes or (None,) * cells
        shapes = np.array([0.0 if a is None else float(a) for a in shapes_given])
        largest = 2 + 4 * math.sqrt(cells) / float(self.rate)  # a few deviations of one cell
        plan = (n, FIRST * cells, SWEEPS * cells, largest)
        rng, tied = numpy_generator(randomness), bool(self.base.totals)
        counts: Ints = walk(self.truth, float(self.rate), shapes, tied, plan, rng)
        return counts


def law_of(
    data: Pennsylvania,
    t: int,
    kind: str,
    epsilon: Fraction,
    prior: tuple[Fraction, Fraction] = (ALPHA, KAPPA),
    loss: str = "l1",
) -> TableLaw | L2Walk:
    """The law of one month's release."""
    base = base_of(data, t, kind, *prior)
    factor = 1 if base.translation_invariant else 2
    truth = np.concatenate([data.cases[t], data.deaths[t]])
    law = TableLaw if loss == "l1" else L2Walk
    return law(base, truth, epsilon / (factor * DELTA_Z))


def month(
    law: TableLaw | L2Walk, method: str, randomness: Randomness, replicates: int
) -> tuple[Any, Any, Any]:
    """Cases, deaths (replicates, J), and the noisy values before post-processing or None."""
    drawn = law.draw_many(randomness, replicates)
    size = drawn.shape[1] // 2
    cases, deaths = drawn[:, :size], drawn[:, size:]
    if method != "post-processing":
        return cases, deaths, None
    return *two_stage(cases, deaths, int(law.truth[:size].sum())), drawn


@lru_cache(maxsize=4)
def released(study: Study, loss: str) -> dict[tuple[str, Fraction], tuple[Any, Any, Any]]:
    """Every method at every epsilon: arrays (months, replicates, J); cached, three items use it."""
    data, results = load(study), {}
    randomness = SeededRandomness(study.seed)
    for epsilon in EPSILONS:
        for method in METHODS:
            study.progress(f"{loss} loss, epsilon = {float(epsilon):g}: {method}")
            kind = "naive" if method == "post-processing" else method
            parts = [
                month(
                    law_of(data, t, kind, epsilon, loss=loss),
                    method, randomness, replicates_of(study),
                )
                for t in months_of(study)
            ]  # fmt: skip
            cases, deaths, raw = zip(*parts, strict=True)
            noisy = None if raw[0] is None else np.stack(raw)
            results[method, epsilon] = (np.stack(cases), np.stack(deaths), noisy)
    return results


SNAP = 1e-6


def nearest_real(wholes: npt.ArrayLike, parts: npt.ArrayLike, total: int) -> tuple[Floats, Floats]:
    """argmin of the l2 distance, for each row: wholes and parts of shape (..., J).

    >>> c, d = nearest_real([[4.0, -2.0]], [[1.0, 3.0]], 3)
    >>> (c.round(6) + 0).tolist(), (d.round(6) + 0).tolist()
    ([[3.0, 0.0]], [[1.0, 0.0]])
    """
    c, d = np.broadcast_arrays(np.asarray(wholes, float), np.asarray(parts, float))
    if total < 0:
        raise StructureError("a sum of counts is negative.", remedy="Give 0 or more.")
    low = np.min(c - np.abs(d), axis=-1) - total - 1.0
    high = np.max(np.abs(c) + np.abs(d), axis=-1) + 1.0
    for _ in range(200):
        middle = (low + high) / 2
        above = _cone(c - middle[..., None], d)[0].sum(axis=-1) >= total
        low, high = np.where(above, middle, low), np.where(above, high, middle)
        if np.all(high - low <= 1e-12 * (1 + np.abs(high))):
            break
    return _cone(c - low[..., None], d)


def _cone(c: Floats, d: Floats) -> tuple[Floats, Floats]:
    """The nearest (whole, part) with whole >= part >= 0."""
    tied = (d > 0) & (c < d)
    middle = np.maximum((c + d) / 2, 0)
    whole = np.where(tied, middle, np.maximum(c, 0))
    return whole, np.where(tied, middle, np.maximum(d, 0))


def rounded(wholes: npt.ArrayLike, parts: npt.ArrayLike, total: int) -> tuple[Ints, Ints]:
    """The nearest whole table above the floors in l1, with the same sum and order."""
    c, d = _snapped(np.asarray(wholes, float)), _snapped(np.asarray(parts, float))
    floor_c, floor_d = np.floor(c), np.floor(d)
    f_c, f_d = c - floor_c, d - floor_d
    tied = floor_c <= floor_d  # the part may only go up with its whole
    free = np.minimum(f_d, 1 - f_d)
    without = f_c + np.where(tied, f_d, free)
    marginal = 1 - f_c + free - without
    needed = (total - floor_c.sum(axis=-1)).astype(np.int64)
    if np.any((needed < 0) | (needed > c.shape[-1])):
        raise StructureError("the wholes do not add up to the sum.", remedy="Project them first.")
    rank = np.argsort(np.argsort(marginal, axis=-1, kind="stable"), axis=-1, kind="stable")
    up = rank < needed[..., None]
    part_up = (f_d > 0.5) & (up | ~tied)
    return (floor_c + up).astype(np.int64), (floor_d + part_up).astype(np.int64)


def _snapped(values: Floats) -> Floats:
    near = np.round(values)
    return np.where(np.abs(values - near) < SNAP, near, values)


def two_stage(wholes: npt.ArrayLike, parts: npt.ArrayLike, total: int) -> tuple[Any, Any]:
    """Both stages: whole tables with this sum and 0 <= part <= whole."""
    return rounded(*nearest_real(wholes, parts, total), total)


SHOWN = ("Allegheny", "Erie", "Cameron")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
ERRORS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
EXTREMES = 5  # most and least populous counties of Figure 3


def _notes(study: Study) -> list[str]:
    prior = f"Prior-congenial: a = alpha (last month + kappa), alpha = {ALPHA}, kappa = 1/2."
    return [ASSUMED, LOSS, _walked(study), FACTOR, prior, *load(study).notes]


def _walked(study: Study) -> str:
    """What the l2 walks did, and how many independent draws they are worth."""
    data, months, worth = load(study), list(months_of(study)), list[float]()
    for (method, _), (cases, deaths, _) in released(study, "l2").items():
        if method != "post-processing":
            away = (cases - data.cases[months][:, None]) ** 2
            away += (deaths - data.deaths[months][:, None]) ** 2
            far = np.sqrt(away.sum(axis=2).astype(float))
            worth += [float(effective_draws(chain[None, :, None])[0]) for chain in far]
    return (
        f"l2: one Metropolis walk per method, epsilon and month, {SWEEPS} moves of every cell "
        f"between two of {replicates_of(study)} draws. Judged by the distance from the truth "
        f"they are worth {min(worth):.0f} independent draws at least, {np.median(worth):.0f} in "
        "the middle."
    )


def figure1(study: Study) -> dict[str, Any]:
    """Distributions of released cases per 100,000 people, three counties; the truth beside them."""
    data, rows = load(study), []
    months = list(months_of(study))
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
            "columns": len(EPSILONS) * len(LOSSES),
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
        ((method, loss, epsilon), released(study, loss)[method, epsilon])
        for method in METHODS
        for loss in LOSSES
        for epsilon in EPSILONS
    ]


def _names(levels: tuple[float, ...]) -> list[str]:
    return [f"{100 * level:g} %" for level in levels]


def figure2(study: Study) -> dict[str, Any]:
    """Distribution of |y - x| / max(x, 1) over counties, months and replicates."""
    data, rows = load(study), []
    truth = data.cases[list(months_of(study))][:, None, :]
    for loss in LOSSES:
        for (method, epsilon), (cases, _, _) in released(study, loss).items():
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
    data, rows = load(study), []
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
    data, months = load(study), list(months_of(study))
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
    data, rows = load(study), []
    randomness = SeededRandomness(study.seed)
    months = list(months_of(study))
    alphas = (Fraction(1, 10), Fraction(1)) if study.quick else (
        Fraction(1, 100), Fraction(1, 10), Fraction(1), Fraction(10)
    )  # fmt: skip
    kappas = (Fraction(1, 2),) if study.quick else (Fraction(1, 10), Fraction(1, 2), Fraction(2))
    replicates = 3 if study.quick else 10
    truth = data.cases[months][:, None, :]
    for epsilon in EPSILONS:
        for alpha in alphas:
            for kappa in kappas:
                study.progress(f"epsilon = {float(epsilon):g}, alpha = {alpha}, kappa = {kappa}")
                cases = np.stack(
                    [
                        month(
                            law_of(data, t, "prior-congenial", epsilon, (alpha, kappa)),
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
            ASSUMED,
            FACTOR,
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
