"""Exact figures as records from tables must keep them: targets of the fit, strata, and repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.synthesis.columns import shown
from congenial.synthesis.from_tables.junction_tree import Axes, Reals
from congenial.synthesis.from_tables.maximum_entropy import FitTarget, Fitted
from congenial.synthesis.from_tables.whole_records import Strata

# ---- Change as few records as possible so that every exact figure holds in them ----
# Records are put into classes that the figures cannot tell apart. A mixed-integer programme finds
# the nearest numbers of records by class that agree with all figures, among classes that the
# fitted distribution allows; then surplus records take the figures' attributes of a class that
# lacks some, as they are in a record of that class, or in its most probable cell.

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
    moved = columns | {name: np.asarray(new[i]) for i, name in enumerate(figures.axes)}
    return moved, int(np.count_nonzero(changed != cell))


def _classes(figures: FigureCells) -> tuple[Ints, Ints]:
    """Which class each cell is in, and one cell of each class."""
    columns = figures.matrix.tocsc()
    classes_seen: dict[tuple[bytes, bytes], int] = {}
    classes = np.empty(columns.shape[1], dtype=np.int64)
    first: list[int] = []
    for j in range(columns.shape[1]):
        part = slice(columns.indptr[j], columns.indptr[j + 1])
        key = (columns.indices[part].tobytes(), columns.data[part].tobytes())
        if key not in classes_seen:
            classes_seen[key] = len(first)
            first.append(j)
        classes[j] = classes_seen[key]
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
    solution = milp(
        np.ones(2 * k),
        constraints=LinearConstraint(rows, gap, gap),
        integrality=np.ones(2 * k),
        bounds=Bounds(0, np.concatenate([free, have])),
        options={"time_limit": SECONDS},
    )
    if solution.x is None and solution.status == LIMIT_REACHED:
        raise StructureError(
            f"no whole numbers of records that agree with all figures were found in {SECONDS:.0f} "
            "seconds.",
            remedy="Publish fewer figures that cross, or synthesise fewer of their columns.",
        )
    if solution.x is None:
        raise StructureError(
            "no whole numbers of records agree with all figures.",
            remedy="Compute the figures from one dataset, and synthesise every attribute they use.",
        )
    move = np.rint(solution.x).astype(np.int64)
    want: Ints = have + move[:k] - move[k:]
    if not np.array_equal(matrix @ want, values) or want.min(initial=0) < 0:
        raise StructureError(
            "the solver's records do not agree with the figures.",
            remedy="Use fewer figures, or coarser ones.",
        )
    return want


def _move(cell: Ints, classes: Ints, change: Ints, likely: Reals, rng: np.random.Generator) -> Ints:
    """Cells after surplus records were given to classes that lack some."""
    changed, own = cell.copy(), classes[cell]
    leave: list[Ints] = [
        rng.choice(np.flatnonzero(own == k), size=-change[k], replace=False)
        for k in np.flatnonzero(change < 0)
    ]
    if not leave:
        return changed
    surplus = rng.permutation(np.concatenate(leave))
    at = 0
    for k in np.flatnonzero(change > 0):
        inside = np.flatnonzero(classes == k)
        weights = likely[inside] / likely[inside].sum()
        changed[surplus[at : at + change[k]]] = rng.choice(inside, size=change[k], p=weights)
        at += change[k]
    return changed


LARGEST_FIGURES = 5_000_000  # cells of all attributes that figures mention together


@dataclass(frozen=True)
class KeptFigures:
    """What records over the columns `names` show of the published figures and rules.

    Figures about other columns enter the price and keep nothing here; of a table of people by more
    columns than the records have, its margin is kept.
    """

    published: Figures
    names: Axes

    def __post_init__(self) -> None:
        figures = self.published
        if figures.bounds:
            raise StructureError(
                f"'{figures.bounds[0].label}' is a bound, and records from tables cannot keep "
                "bounds.",
                remedy="Publish the figure exactly, or leave out the bound.",
            )
        for rule in figures.zeros if figures.equalities else ():
            bases = set(Cells(figures.schema, (rule,)).bases)
            if bases & set(self.names) and not bases <= set(self.names):
                lost = ", ".join(sorted(bases - set(self.names)))
                raise StructureError(
                    f"'{rule.label}' ties a column of the records to {lost}, about which figures "
                    "may be published: what they say of the records could not be kept.",
                    remedy=f"Synthesise {lost} too.",
                )
        about = Cells(figures.schema, self.statements)
        if about.size > LARGEST_FIGURES:
            raise StructureError(
                f"figures and rules mention {', '.join(about.bases)}: {about.size:,} cells, more "
                f"than {LARGEST_FIGURES:,}.",
                remedy="Give these columns fewer categories, or synthesise fewer of them.",
            )
        self._refuse_nobody()
        labels = {s.label for s in self.seen.statements}
        for statement in figures.equalities:
            own = set(Cells(figures.schema, (statement,)).bases)
            if statement.label not in labels and own & set(self.names):
                lost = ", ".join(sorted(own - set(self.names)))
                raise StructureError(
                    f"'{statement.label}' is published, and records without {lost} cannot keep it.",
                    remedy=f"Synthesise {lost} too.",
                )

    def _refuse_nobody(self) -> None:
        """Refuse rules that no record could keep."""
        cells = Cells(self.published.schema, self.rules)
        never = cells.matrix(self.rules, np.arange(cells.size)) if self.rules else None
        if never is not None and np.all(np.asarray(abs(never).sum(axis=0)) > 0):
            labels = "; ".join(rule.label for rule in self.rules)
            raise StructureError(
                f"the structural zeros leave no record possible: {labels}.",
                remedy="Leave out one of them, or narrow its condition.",
            )

    @cached_property
    def seen(self) -> Figures:
        """The figures that records show."""
        return shown(self.published, self.names)

    @cached_property
    def rules(self) -> tuple[Statement, ...]:
        """What is impossible by definition, as far as records show it."""
        schema, names = self.published.schema, set(self.names)
        zeros = self.published.zeros
        return tuple(s for s in zeros if set(Cells(schema, (s,)).bases) <= names)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Figures, then rules."""
        return (*self.seen.equalities, *self.rules)

    def axes(self, statement: Statement) -> Axes:
        """The columns that one statement mentions."""
        return Cells(self.published.schema, (statement,)).bases

    @cached_property
    def values(self) -> tuple[Ints, ...]:
        """The values of `statements`, flat; FigureError before figures are published."""
        values = self.seen.values
        if values is None and self.seen.equalities:
            raise StructureError(
                "records from tables need the figures' values.", remedy="Publish them first."
            )
        flat = [np.asarray(value, dtype=np.int64).reshape(-1) for value in values or ()]
        return (*flat, *(np.zeros(1, dtype=np.int64) for _ in self.rules))

    @cached_property
    def targets(self) -> tuple[FitTarget, ...]:
        """Figures and rules for the fit; the number of people needs none."""
        targets = []
        for statement, values in zip(self.statements, self.values, strict=True):
            cells = Cells(self.published.schema, (statement,))
            if cells.bases:
                matrix = cells.matrix([statement], np.arange(cells.size)).astype(np.float64)
                targets.append(
                    FitTarget(cells.bases, values.astype(np.float64), 0.0, matrix.tocsr())
                )
        return tuple(targets)

    @cached_property
    def largest(self) -> Statement | None:
        """The table of all people with most values: its cells are the strata of the records."""
        tables = [s for s in self.seen.equalities if s.terms == (("", 1),) and s.by]
        size = self.published.schema.size
        return max(tables, key=lambda s: size(s.by), default=None)

    @cached_property
    def strata(self) -> Strata | None:
        """The groups whose numbers of records are known from the largest table."""
        if self.largest is None:
            return None
        cells = Cells(self.published.schema, (self.largest,))
        rows = cells.matrix([self.largest], np.arange(cells.size)).tocsc()
        at = self.statements.index(self.largest)
        return Strata(cells.bases, rows.indices.astype(np.int64), self.values[at])

    def cells(self, fitted: Fitted) -> FigureCells | None:
        """All figures on one table, for the repair of records."""
        if not self.statements:
            return None
        schema = self.published.schema
        all_cells = Cells(schema, self.statements)
        if not all_cells.bases:
            return None
        matrix = all_cells.matrix(self.statements, np.arange(all_cells.size))
        values = np.concatenate(self.values)
        likely = _likely(fitted, all_cells.bases, all_cells.shape)
        never = matrix[np.flatnonzero((values == 0) & _nonnegative(matrix))]
        likely[np.asarray(abs(never).sum(axis=0)).reshape(-1) > 0] = 0.0
        return FigureCells(all_cells.bases, all_cells.shape, matrix, values, likely)


def _nonnegative(matrix: sp.csr_matrix) -> NDArray[np.bool_]:
    return np.asarray(matrix.min(axis=1).todense()).reshape(-1) >= 0


def _likely(fitted: Fitted, axes: Sequence[str], shape: tuple[int, ...]) -> Reals:
    """How probable each cell is; as if columns were independent where no clique holds them all."""
    try:
        shares = fitted.probabilities(tuple(axes))
    except StructureError:
        shares = np.ones(())
        for name in axes:
            shares = np.multiply.outer(shares, fitted.probabilities((name,)))
    return np.maximum(np.asarray(shares, dtype=np.float64).reshape(prod(shape)), 1e-300)
