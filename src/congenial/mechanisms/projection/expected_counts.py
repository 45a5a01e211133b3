"""What to expect of printed counts before anything is drawn, on tables made up from public figures.

The error of counts made nonnegative depends on the confidential table: where everybody is in few
cells most noise is cut off, where all cells are large nothing changes. So it is simulated on two
extremes that agree with the published figures: *sparse*, everybody of a known sum in one of its
cells, and *even*, spread over all of them. The data are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np

from congenial.data.table import cell_index
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.projection.node_fit import node_order_of, node_tables
from congenial.mechanisms.projection.projection import around, made_up_table, project
from congenial.privacy.description import Fit
from congenial.sampling.randomness import SeededRandomness

MOST_CELLS = 200_000  # of a table that is simulated
FEW_CELLS = 20_000  # up to which it is drawn often
DRAWS = 8
FEW_DRAWS = 2


@dataclass(frozen=True)
class PrintedRow:
    """Root mean square errors of the sums of one table: as drawn, and printed on made-up tables."""

    what: tuple[str, ...]
    sums: int
    drawn: float
    sparse: float
    even: float


@dataclass(frozen=True)
class ExpectedCounts:
    """How counts will be fitted, the tables settled on the way, and simulated errors.

    `unknown` says why there are none.
    """

    fit: Fit
    tables: tuple[tuple[str, ...], ...]
    rows: tuple[PrintedRow, ...] = ()
    unknown: str = ""


def expected_counts(mechanism: Mechanism) -> ExpectedCounts:
    """What `nonnegative = "project"` will do to a mechanism's draws, from public figures alone."""
    description, figures = mechanism.description, mechanism.adjacency.figures
    order = None if figures.bounds else node_order_of(description.support, description.table)
    fit: Fit = "cells" if order is None else "nodes"
    tables = (description.table,) if order is None else node_tables(order, description.table)
    why = _unknown(mechanism)
    if why:
        return ExpectedCounts(fit, tables, unknown=why)
    return ExpectedCounts(fit, tables, _simulated(mechanism, fit, tables))


def _unknown(mechanism: Mechanism) -> str:
    figures = mechanism.adjacency.figures
    if figures.statements and figures.values is None:
        return "simulated once the figures are published"
    if int(np.prod(mechanism.shape)) > MOST_CELLS:
        return f"not simulated beyond {MOST_CELLS:,} cells"
    if mechanism.description.norm not in ("l1", "l2") or figures.bounds:
        return "not simulated for this law or under public bounds, where draws or fits take long"
    return ""


def _simulated(
    mechanism: Mechanism, fit: Fit, tables: tuple[tuple[str, ...], ...]
) -> tuple[PrintedRow, ...]:
    randomness = SeededRandomness(20)
    draws = DRAWS if int(np.prod(mechanism.shape)) <= FEW_CELLS else FEW_DRAWS
    noise = mechanism.noise(randomness, draws)
    far = ceil(10 * float(np.sqrt(np.mean(np.square(noise.astype(float))))))

    def printed(loose: int | None) -> Any:
        """Errors of printed counts around one made-up table."""
        table = made_up_table(mechanism, randomness, loose)
        made = (around(mechanism, table + one, randomness) for one in noise)
        return np.array([project(one, randomness, fit).values - table for one in made])

    errors = (noise, printed(None), printed(far))
    return tuple(PrintedRow(one, *_row(mechanism, one, errors)) for one in tables)


def _row(
    mechanism: Mechanism, names: tuple[str, ...], errors: tuple[Any, Any, Any]
) -> tuple[int, float, float, float]:
    schema = mechanism.adjacency.schema
    sums = schema.size(names)
    index = np.broadcast_to(
        cell_index(schema, mechanism.description.table, names), mechanism.shape
    ).reshape(-1)
    drawn, sparse, even = (_root_mean_square(one, index, sums) for one in errors)
    return sums, drawn, sparse, even


def _root_mean_square(errors: Any, index: Any, sums: int) -> float:
    """Over all sums and draws; `index` is the sum that each cell belongs to."""
    squares = [np.bincount(index, one.reshape(-1), minlength=sums) ** 2 for one in errors]
    return sqrt(float(np.mean(squares)))
