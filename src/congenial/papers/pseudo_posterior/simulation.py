"""Section 4.4: local Lipschitz bounds of Poisson samples as n grows (Figures 1 and 2).

All three mechanisms have Gamma posteriors, drawn independently. The bound of a record is the
largest |log p(x | mu)| over S draws of mu. log p is concave in mu and negative, so the largest is
at the least or the largest draw: two likelihoods per record in place of S, with the same result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.papers.item import Study
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.local import LABEL, estimate, min_max, probabilistic, risks, truncated
from congenial.synthesis.models import PoissonColumn
from congenial.synthesis.record_model import Floats, generator_of

MEAN, M, S = 100.0, 3.5, 1000
SIZES = (100, 400, 1600, 6400)
REPLICATIONS = 400
MECHANISMS = ("Unweighted", "Weighted", "Weighted-M")
FIVE = {"minimum": 0.0, "lower quartile": 0.25, "median": 0.5, "upper quartile": 0.75, "maximum": 1}
PRINTED = {100: (3.28, 3.44, 3.91), 6400: (3.42, 3.52, 3.60)}  # Weighted-M, recomputed at R = 400
MODEL = PoissonColumn()


def extremes(theta: Floats) -> Floats:
    """The least and the largest draw: |log p| over all draws is largest at one of them."""
    return np.array([[theta.min()], [theta.max()]])


def one_dataset(y: Floats, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Delta and the mean of mu for the three mechanisms on one dataset."""
    theta = MODEL.posterior(y, np.ones(len(y)), S, generator)
    risk = risks(MODEL.log_likelihood(extremes(theta), y))
    plain = min_max()
    weights = (plain(risk), truncated(plain, M)(risk))
    deltas, means = [float(risk.max())], [float(theta.mean())]
    for w in weights:
        theta = MODEL.posterior(y, w, S, generator)
        deltas.append(estimate(MODEL.log_likelihood(extremes(theta), y), w).delta)
        means.append(float(theta.mean()))
    return np.array(deltas), np.array(means)


def simulate(study: Study) -> dict[int, tuple[Floats, Floats]]:
    """For each n: Delta and the mean of mu, both (replications, mechanisms)."""
    sizes = SIZES[:3] if study.quick else SIZES
    repeats = 40 if study.quick else REPLICATIONS
    generator = generator_of(SeededRandomness(study.seed))
    bounds = {}
    for n in sizes:
        study.progress(f"n = {n}: {repeats} datasets")
        runs = [
            one_dataset(generator.poisson(MEAN, n).astype(float), generator) for _ in range(repeats)
        ]
        bounds[n] = np.array([d for d, _ in runs]), np.array([m for _, m in runs])
    return bounds


def _summary(found: dict[int, tuple[Floats, Floats]], which: int) -> list[list[Any]]:
    """Five numbers of each distribution, one row each."""
    return [
        [mechanism, n, *np.quantile(values[which][:, at], list(FIVE.values())).round(4).tolist()]
        for at, mechanism in enumerate(MECHANISMS)
        for n, values in found.items()
    ]


def _boxes(y_title: str) -> dict[str, Any]:
    """Boxes of the five numbers, a panel for each mechanism as in the paper."""
    names = dict(zip(("low", "q1", "y", "q3", "high"), FIVE, strict=True))
    panels = {"facet": "mechanism", "columns": 3, "width": 170, "size": 22}
    return {"kind": "quartiles", "x": "n", "by": None, "y_title": y_title, **names, **panels}


def _notes(found: dict[int, tuple[Floats, Floats]]) -> list[str]:
    repeats = len(next(iter(found.values()))[0])
    return [
        LABEL,
        f"R = {repeats} datasets per n, S = {S} draws each, Jeffreys prior, M = {M}",
    ]


def figure1(study: Study) -> dict[str, Any]:
    """Distribution of the local Lipschitz bound over datasets."""
    simulated = simulate(study)
    notes = _notes(simulated)
    for n, printed in PRINTED.items():
        if n in simulated:
            ours = simulated[n][0][:, 2]
            ours_now = "/".join(f"{v:.2f}" for v in (ours.min(), np.median(ours), ours.max()))
            earlier = "/".join(f"{v:.2f}" for v in printed)
            notes.append(
                f"Weighted-M, n = {n}: min/median/max {ours_now}; an earlier run gave {earlier}"
            )
    last = max(simulated)
    spread = np.ptp(simulated[last][0][:, 1])
    notes.append(
        f"Weighted does not contract: at n = {last} its bounds still range over {spread:.2f}, and "
        "their median has grown"
    )
    share = probabilistic(simulated[last][0][:, 2], 2 * M)
    notes.append(
        f"Definition 4 at n = {last}: epsilon = 2 M = {2 * M:g} is exceeded in {share.exceeding} "
        f"of {share.datasets} datasets (95 % upper bound of the share {share.upper():.3f}) of this "
        "one law; other laws are not covered"
    )
    return {
        "columns": ["mechanism", "n", *FIVE],
        "rows": _summary(simulated, 0),
        "notes": notes,
        "chart": _boxes("local Lipschitz bound") | {"y_log": True},
    }


def figure2(study: Study) -> dict[str, Any]:
    """Distribution of the posterior mean of mu over datasets."""
    simulated = simulate(study)
    notes = [
        *_notes(simulated),
        "M-truncation removes records of middling risk: those of high risk have a weight near 0, "
        "so weight times risk is largest in between",
    ]
    return {
        "columns": ["mechanism", "n", *FIVE],
        "rows": _summary(simulated, 1),
        "notes": notes,
        "chart": _boxes("posterior mean of mu"),
    }
