"""Least absolute deviations onto the conforming tables: the paper's l1 family, indexed by beta.

The minimiser of ||m - y||_1 over S* is not unique. The paper's two bins keep the first as drawn
(beta = 1), or the second (beta = 0), or mix: m_1 = s_1 + beta u_1 - (1 - beta) u_2 (erratum: the
printed sign of the last term is wrong, which leaves its law as it is). For any figures we take the
two minimisers that put the correction as far back (beta = 1) and as far forward (beta = 0) in the
order of cells as an optimum allows, and mix those: minimisers form a convex set, so the mixture is
one too, and two bins give the paper's family.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from congenial.errors import FigureError, StructureError
from congenial.tables.conforming_tables import FAR, ConformingTables
from congenial.tables.measurements import Floats


def least_absolute(
    values: npt.ArrayLike, conforming: ConformingTables, beta: float = 0.5
) -> Floats:
    """A conforming real table of least ||m - values||_1, member beta of the family.

    Assumes 0 <= beta <= 1. FigureError if no table conforms. Source: congenial-dp, Example 4.1.

    >>> least_absolute([5, 4], ConformingTables.of([[1, 1]], [7]), beta=1.0).tolist()
    [5.0, 2.0]
    """
    if not 0.0 <= beta <= 1.0:
        raise StructureError(f"beta = {beta} is not in [0, 1].", remedy="Use a share.")
    y = np.asarray(values, dtype=float).reshape(-1)
    place = np.arange(y.size) / max(1, y.size - 1)
    least = float(np.abs(_moved(y, conforming, np.ones(y.size), None)).sum())
    ends = []
    for share, weight in ((beta, 2.0 - place), (1.0 - beta, 1.0 + place)):
        if share > 0.0:
            ends.append(share * _moved(y, conforming, weight, least))
    return np.asarray(y + np.sum(ends, axis=0), dtype=float)


def _moved(y: Floats, conforming: ConformingTables, weight: Floats, budget: float | None) -> Floats:
    """d of least weighted size with y + d conforming and, if given, ||d||_1 <= budget."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = conforming.rows.astype(float)
    at = rows @ y
    low = np.where(conforming.low <= -FAR, -np.inf, conforming.low - at)
    high = np.where(conforming.high >= FAR, np.inf, conforming.high - at)
    identity = sp.identity(y.size, format="csr")
    floor = np.where(conforming.lower <= -FAR, -np.inf, conforming.lower - y)
    roof = np.where(conforming.upper >= FAR, np.inf, conforming.upper - y)
    both = sp.hstack([identity, -identity], format="csr")
    constraints = [
        LinearConstraint(rows @ both, low, high),
        LinearConstraint(both, floor, roof),
    ]
    if budget is not None:
        slack = 1e-9 * max(1.0, budget)
        constraints.append(LinearConstraint(np.ones((1, 2 * y.size)), -np.inf, budget + slack))
    solution = milp(
        np.concatenate([weight, weight]), bounds=Bounds(0.0, np.inf), constraints=constraints
    )
    if solution.x is None:
        raise FigureError(
            "no table within the bounds satisfies the figures.", remedy="Correct or drop a figure."
        )
    return np.asarray(solution.x[: y.size] - solution.x[y.size :], dtype=float)
