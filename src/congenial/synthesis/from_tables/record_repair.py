"""Change as few records as possible so that every exact figure holds in them.

Records are put into classes that the figures cannot tell apart. A mixed-integer programme finds the
nearest numbers of records by class that agree with all figures, among classes that the fitted
distribution allows; then surplus records take the figures' attributes of a class that lacks some,
as they are in a record of that class, or in its most probable cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from congenial.errors import StructureError
from congenial.synthesis.from_tables.junction_tree import Axes, Ints, Reals

SECONDS = 60.0  # for the solver
LIMIT_REACHED = 1  # what the solver says then


@dataclass(frozen=True, eq=False)
class FigureCells:
    """Figures on the cells of one table: `matrix @ cells = values`, whole numbers.

    `axes`, `shape`: the attributes that some figure mentions; `likely`: how probable the fit finds
    each cell, 0 where nobody can be.
    """

    axes: Axes
    shape: tuple[int, ...]
    matrix: sp.csr_matrix
    values: Ints
    likely: Reals


def repair(
    columns: dict[str, Ints], figures: FigureCells, rng: np.random.Generator
) -> tuple[dict[str, Ints], int]:
    """Columns in which all figures hold, and how many records were changed.

    StructureError where no whole numbers of records agree with all figures.

    >>> columns = {"sex": np.array([0, 0, 0, 1])}
    >>> two = FigureCells(("sex",), (2,), sp.csr_matrix([[1, 0], [0, 1]]), np.array([2, 2]),
    ...     np.array([0.5, 0.5]))
    >>> made, moved = repair(columns, two, np.random.default_rng(1))
    >>> np.bincount(made["sex"]), moved
    (array([2, 2]), 1)
    """
    cell = np.ravel_multi_index([columns[name] for name in figures.axes], figures.shape)
    classes, first = _classes(figures)
    have = np.bincount(classes[cell], minlength=len(first)).astype(np.int64)
    number = sp.csr_matrix(np.ones((1, len(first)), dtype=np.int64))  # of records stays
    matrix = sp.vstack([figures.matrix[:, first], number], format="csr")
    values = np.append(figures.values, len(cell))
    want = _nearest(matrix, values, have, _possible(figures, classes))
    changed = _move(cell, classes, want - have, figures.likely, rng)
    new = np.unravel_index(changed, figures.shape)
    made = columns | {name: np.asarray(new[i]) for i, name in enumerate(figures.axes)}
    return made, int(np.count_nonzero(changed != cell))


def _classes(figures: FigureCells) -> tuple[Ints, Ints]:
    """Which class each cell is in, and one cell of each class."""
    columns = figures.matrix.tocsc()
    seen: dict[tuple[bytes, bytes], int] = {}
    classes = np.empty(columns.shape[1], dtype=np.int64)
    first: list[int] = []
    for j in range(columns.shape[1]):
        part = slice(columns.indptr[j], columns.indptr[j + 1])
        key = (columns.indices[part].tobytes(), columns.data[part].tobytes())
        if key not in seen:
            seen[key] = len(first)
            first.append(j)
        classes[j] = seen[key]
    return classes, np.array(first, dtype=np.int64)


def _possible(figures: FigureCells, classes: Ints) -> NDArray[np.bool_]:
    return np.bincount(classes, weights=figures.likely) > 0


def _nearest(matrix: sp.csr_matrix, values: Ints, have: Ints, possible: NDArray[np.bool_]) -> Ints:
    """The whole z >= 0 with matrix z = values that is nearest to `have` in l1; solved exactly."""
    if np.array_equal(matrix @ have, values):
        return have
    k = len(have)
    free = np.where(possible, np.inf, 0.0)
    rows = sp.hstack([matrix, -matrix]).tocsr()
    gap = values - matrix @ have
    found = milp(
        np.ones(2 * k),
        constraints=LinearConstraint(rows, gap, gap),
        integrality=np.ones(2 * k),
        bounds=Bounds(0, np.concatenate([free, have])),
        options={"time_limit": SECONDS},
    )
    if found.x is None and found.status == LIMIT_REACHED:
        raise StructureError(
            f"no whole numbers of records that agree with all figures were found in {SECONDS:.0f} "
            "seconds.",
            remedy="Publish fewer figures that cross, or synthesise fewer of their columns.",
        )
    if found.x is None:
        raise StructureError(
            "no whole numbers of records agree with all figures.",
            remedy="Compute the figures from one dataset, and synthesise every attribute they use.",
        )
    move = np.rint(found.x).astype(np.int64)
    want: Ints = have + move[:k] - move[k:]
    if not np.array_equal(matrix @ want, values) or want.min(initial=0) < 0:
        raise StructureError(
            "the solver's records do not agree with the figures.",
            remedy="Use fewer figures, or coarser ones.",
        )
    return want


def _move(cell: Ints, classes: Ints, change: Ints, likely: Reals, rng: np.random.Generator) -> Ints:
    """Cells after surplus records were given to classes that lack some."""
    made, own = cell.copy(), classes[cell]
    leave: list[Ints] = [
        rng.choice(np.flatnonzero(own == k), size=-change[k], replace=False)
        for k in np.flatnonzero(change < 0)
    ]
    if not leave:
        return made
    surplus = rng.permutation(np.concatenate(leave))
    at = 0
    for k in np.flatnonzero(change > 0):
        inside = np.flatnonzero(classes == k)
        weights = likely[inside] / likely[inside].sum()
        made[surplus[at : at + change[k]]] = rng.choice(inside, size=change[k], p=weights)
        at += change[k]
    return made
