"""Exact audit: the worst likelihood ratio over all adjacent pairs of a small universe.

Nothing here trusts the mechanism's own arithmetic: databases are enumerated from the schema and the
published figures, adjacency is counted record by record, and densities are summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from congenial.data.table import Table
from congenial.mechanisms.protocol import Mechanism
from congenial.privacy.tradeoff import Tradeoff
from congenial.public.adjacency import Adjacency
from congenial.public.universe import Universe


@dataclass(frozen=True)
class PairAudit:
    """What one ordered pair of tables shows: largest log ratio, delta at each epsilon."""

    worst: float
    deltas: tuple[float, ...]
    missing: float  # probability outside the outputs that were enumerated


@dataclass(frozen=True)
class ExactAudit:
    """The worst over all pairs, against the promise."""

    pairs: int
    outputs: int
    worst: float
    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    missing: float

    def violations(self, promised: Tradeoff, tolerance: float = 1e-9) -> list[str]:
        """Where the promise is exceeded, in words; empty when it holds.

        Mass outside the enumerated outputs is counted in favour of the mechanism, so a violation is
        real.
        """
        found = []
        for epsilon, delta in zip(self.epsilons, self.deltas, strict=True):
            if delta > promised.delta(epsilon) + tolerance:
                found.append(
                    f"delta({epsilon:g}) = {delta:.3g} exceeds the promised "
                    f"{promised.delta(epsilon):.3g}"
                )
        pure = promised.epsilon(0.0)
        if self.worst > pure + tolerance:
            found.append(f"a log ratio of {self.worst:.6g} exceeds the promised {pure:.6g}")
        return found


def adjacent_pairs(adjacency: Adjacency, n: int) -> Iterator[tuple[Table, Table]]:
    """Ordered pairs of different tables whose databases can be adjacent, n people in the first.

    Two tables have databases at Hamming distance d when ||s - s'||_1 = 2d, and at symmetric
    difference d when it is d.
    """
    universe = Universe(adjacency.mandates)
    tables = list(universe.tables(n))
    if adjacency.metric == "symmetric difference":
        limit = adjacency.records
        others = [t for m in range(max(0, n - limit), n + limit + 1) for t in universe.tables(m)]
    else:
        limit, others = 2 * adjacency.records, tables
    for left in tables:
        for right in others:
            if 0 < int(np.abs(left.counts - right.counts).sum()) <= limit:
                yield left, right


def outputs(mechanism: Mechanism, tables: Sequence[Table], radius: int) -> Any:
    """All integer tables in the box around the true answers, widened by `radius`; stacked."""
    answers = np.stack([mechanism.query(table) for table in tables])
    ranges = [
        range(int(low) - radius, int(high) + radius + 1)
        for low, high in zip(
            answers.min(axis=0).reshape(-1), answers.max(axis=0).reshape(-1), strict=True
        )
    ]
    return np.array(list(product(*ranges)), dtype=np.int64).reshape(-1, *mechanism.shape)


def exact_audit(
    mechanism: Mechanism,
    pairs: Sequence[tuple[Table, Table]],
    radius: int,
    epsilons: Sequence[float] = (),
) -> ExactAudit:
    """Worst log ratio and largest delta(epsilon) over all pairs, from the density."""
    tables = {table.counts.tobytes(): table for pair in pairs for table in pair}
    ys = outputs(mechanism, list(tables.values()), radius)
    logs = {key: mechanism.log_density(ys, table) for key, table in tables.items()}
    found = [
        _audit_pair(logs[left.counts.tobytes()], logs[right.counts.tobytes()], epsilons)
        for left, right in pairs
    ]
    return ExactAudit(
        pairs=len(found),
        outputs=len(ys),
        worst=max(one.worst for one in found),
        epsilons=tuple(epsilons),
        deltas=tuple(np.max([one.deltas for one in found], axis=0)) if epsilons else (),
        missing=max(one.missing for one in found),
    )


def _audit_pair(p: Any, q: Any, epsilons: Sequence[float]) -> PairAudit:
    """Log ratio and hockey-stick divergence of two laws given by log masses on the same outputs."""
    seen = p > -np.inf
    with np.errstate(invalid="ignore"):
        ratio = np.where(seen, p - q, -np.inf)
    mass, other = np.exp(p), np.exp(q)
    deltas = tuple(float(np.maximum(mass - np.exp(e) * other, 0).sum()) for e in epsilons)
    return PairAudit(float(ratio.max()), deltas, float(1 - mass.sum()))
