"""The paper's local mechanism for columns on schema levels, to compare with the certified one.

Posterior draws are made in doubles on the same Theta; weights are min-max over all records. The
epsilon is an estimate for this dataset (`local.LABEL`). A record's log likelihood is the sum over
columns, so the Deltas of several columns add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.synthesis.column_kernels import ColumnKernel, GridKernel, SettledKernel
from congenial.synthesis.local import Weighting, estimate, min_max, risks
from congenial.synthesis.models.category_columns import MultinomialColumn
from congenial.synthesis.record_model import Floats, Ints


def draw_locally(
    kernels: Sequence[ColumnKernel],
    counts: Sequence[Ints],
    setting: dict[str, float],
    draws: int,
    replicates: int,
    generator: np.random.Generator,
) -> tuple[list[list[Floats]], float]:
    """Laws of the levels by replicate and column, each (contexts, levels), and 2 sum of Delta."""
    weigh = min_max(setting["c"], setting["g"])
    laws: list[list[Floats]] = [[] for _ in range(replicates)]
    delta = 0.0
    for kernel, table in zip(kernels, counts, strict=True):
        if isinstance(kernel, SettledKernel):
            for law in laws:
                law.append(kernel.probabilities([]))
            continue
        weights, found = _weighted(kernel, table, weigh, draws, generator)
        seen = table > 0
        delta += estimate(found[:, seen], weights[seen]).delta
        for at, row in enumerate(generator.choice(draws, size=replicates)):
            laws[at].append(np.exp(found[row]))
    return laws, 2 * delta


@dataclass(frozen=True)
class LocalColumn:
    """CONFIDENTIAL: the paper's weights and estimate for one column of these data."""

    records: int
    downweighted: int
    sum_of_weights: float
    least_weight: float
    delta: float
    epsilon: float


def local_column(
    kernel: ColumnKernel, table: Ints, draws: int, generator: np.random.Generator
) -> LocalColumn:
    """Min-max weights (c = 1, g = 0) of one column's records, and the local estimate they give.

    Records of one level share a weight, so everything is counted by level.
    """
    weights, found = _weighted(kernel, table, min_max(), draws, generator)
    seen = table > 0
    told = estimate(found[:, seen], weights[seen])
    return LocalColumn(
        int(table.sum()),
        int(table[seen & (weights < 1)].sum()),
        float((table * weights).sum()),
        float(weights[seen].min()),
        told.delta,
        told.epsilon,
    )


def _weighted(
    kernel: ColumnKernel,
    table: Ints,
    weigh: Weighting,
    draws: int,
    generator: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Weights by context and level from the unweighted posterior, and log laws at draws of the
    weighted one.
    """
    seen = table > 0
    risk = risks(_log_laws(kernel, table.astype(float), draws, generator)[:, seen])
    weights = np.zeros(table.shape)
    weights[seen] = weigh(risk)
    return weights, _log_laws(kernel, table * weights, draws, generator)


def _log_laws(
    kernel: ColumnKernel, weighted: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """log P(level | context, theta_s) at posterior draws, (draws, contexts, levels)."""
    if isinstance(kernel, GridKernel):
        return _on_grid(kernel, weighted, draws, generator)
    assert isinstance(kernel.model, MultinomialColumn)
    found = np.full((draws, *weighted.shape), -np.inf)
    for at, (row, allowed) in enumerate(zip(weighted, kernel.allowed, strict=True)):
        prior = kernel.model.per_level(int(allowed.sum()))
        p = generator.dirichlet(prior + row[allowed], size=draws)
        found[:, at, allowed] = np.log(np.maximum(p, 1e-300))
    return found


def _on_grid(
    kernel: GridKernel, weighted: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    found = np.empty((draws, *weighted.shape))
    tables: list[Any] = [kernel.log_table(at) for at in range(kernel.contexts)]
    scores = [
        np.where(row > 0, table, 0.0) @ row for table, row in zip(tables, weighted, strict=True)
    ]
    shared = np.sum(scores, axis=0)
    for at, table in enumerate(tables):
        log_w = kernel.log_prior + (shared if kernel.model.shared else scores[at])
        if at == 0 or not kernel.model.shared:
            p = np.exp(log_w - log_w.max())
            chosen = generator.choice(len(p), size=draws, p=p / p.sum())
        found[:, at] = table[chosen]
    return found
