"""Algorithms 1 and 2 on a model with a known posterior: X ~ Bin(4, theta), theta on a grid.

Y | X ~ exp(-|y - X| / 2) on 0 .. 4. As printed, Algorithm 1 accepts the wrong way round and takes
its bound over the wrong variable, and Algorithm 2 weights draws from the prior as if they came from
a proposal. inference/ has the corrected ones.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from congenial.inference.models.model import Model
from congenial.inference.observation import Observation
from congenial.inference.samplers.data_rejection import rejection
from congenial.inference.samplers.importance import importance
from congenial.papers.item import Study

GRID = np.arange(1, 10) / 10
COUNTS = np.arange(5)
CHOOSE = np.array([1, 4, 6, 4, 1])  # C(4, x)


def law() -> Any:
    """p(y | x), rows x, columns y."""
    weights = np.exp(-np.abs(COUNTS[:, None] - COUNTS) / 2)
    return weights / weights.sum(axis=1, keepdims=True)


def likelihood() -> Any:
    """p(x | theta), rows theta, columns x."""
    return CHOOSE * GRID[:, None] ** COUNTS * (1 - GRID[:, None]) ** (4 - COUNTS)


def exact(y: int) -> float:
    """E[theta | Y = y]."""
    return _mean(law()[:, y])


def printed(y: int) -> dict[str, float]:
    """Limits of the algorithms as printed, in closed form."""
    p = law()
    per_x = p[:, y] / p.max(axis=1)
    weighted = (
        likelihood() @ p[:, y] / GRID
    )  # draws from the prior, weighted by prior / g, g ~ theta
    return {
        "Algorithm 1, bound over y": _mean(per_x),
        "Algorithm 1, as printed": _mean(1 - per_x),
        "Algorithm 2, as printed": float(GRID @ weighted / weighted.sum()),
    }


def _mean(keep: Any) -> float:
    posterior = likelihood() @ keep
    return float(GRID @ posterior / posterior.sum())


def model() -> Model:
    """theta uniform on the grid, X binomial."""
    return Model(
        ("share",),
        draw_prior=lambda rng, n: rng.choice(GRID, (n, 1)),
        draw_data=lambda rng, theta: rng.binomial(4, theta),
        log_density=_log_likelihood,
    )


def _log_likelihood(x: Any, theta: Any) -> Any:
    """log p(x | theta) for each row; a chain that moves x needs the binomial coefficient too."""
    counts = np.clip(np.asarray(x, dtype=int), 0, 4)
    logs = np.log(CHOOSE[counts]) + counts * np.log(theta) + (4 - counts) * np.log(1 - theta)
    return np.where(counts == x, logs, -np.inf)[:, 0]


def _look_up(column: Any, x: Any) -> Any:
    """log p(y | x) for each row of x."""
    return column[np.asarray(x, dtype=int)[:, 0]]


def run(study: Study) -> dict[str, Any]:
    """Posterior means: exact, corrected samplers, and what the printed ones converge to."""
    draws = 20_000 if study.quick else 400_000
    rng, logs, rows = np.random.default_rng(study.seed), np.log(law()), []
    for y in COUNTS.tolist():
        column = logs[:, y]
        observed = Observation.of_density(
            [y], partial(_look_up, column), log_bound=float(column.max())
        )
        bound = model().bind(observed)
        accepted = rejection(bound, draws, rng)
        theta, _, weights = importance(bound, draws, rng)
        estimates = {
            "exact": exact(y),
            "Algorithm 1, corrected": float(accepted.theta.mean()),
            "Algorithm 2, corrected": float(weights @ theta[:, 0]),
            **printed(y),
        }
        rows += [[y, name, value] for name, value in estimates.items()]
    return {
        "columns": ["y", "method", "posterior_mean"],
        "rows": rows,
        "notes": [
            f"Corrected: accept with p(y | x) / max over x, or weight by p(y | x); {draws:,} "
            "draws. "
            "The printed rows are limits in closed form (Algorithm 2 with g proportional to theta)."
        ],
        "chart": {
            "kind": "line",
            "x": "y",
            "y": "posterior_mean",
            "by": "method",
            "as_points": [name for name in estimates if name != "exact"],
        },
    }
