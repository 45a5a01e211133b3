"""Ties: groups of cells whose sums are fixed only together, such as the margins of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.figures import lattice
from congenial.figures.alike import KindByKind
from congenial.figures.integers import Ints


@dataclass(frozen=True, eq=False)
class Pattern:
    """Equations between the sums of some groups. Ties of which the same is said share one.

    `features`, for the margins of a table of groups: each group's level on each feature.
    """

    equations: Ints
    features: Ints | None = field(repr=False)
    _fixed: dict[bytes, bool] = field(default_factory=dict, repr=False)

    @cached_property
    def rank(self) -> int:
        """Number of independent equations."""
        return lattice.rank(sp.csr_matrix(self.equations))

    def fixes(self, weights: Any) -> bool:
        """Whether a sum over whole groups (0 or 1 for each, or weights) follows from them."""
        row: Ints = np.asarray(weights, dtype=np.int64)
        if row.tobytes() not in self._fixed:
            self._fixed[row.tobytes()] = self._follows(row)
        return self._fixed[row.tobytes()]

    def _follows(self, row: Ints) -> bool:
        """Exact. Under the margins of a table w(x) is a sum of functions of one feature each, so
        w(x) = w(0) + sum over k of w(x_k on feature k, 0 elsewhere) - w(0); other equations tell
        the sums that no whole vector of their kernel changes.
        """
        if self.features is None:
            return not np.any(self._moves @ row)
        assert self.shape is not None
        table: Ints = np.zeros(self.shape, dtype=np.int64)
        table[tuple(self.features.T)] = row
        fitted: Ints = np.full(self.shape, table.flat[0])
        for axis, levels in enumerate(self.shape):
            line = np.moveaxis(table, axis, 0).reshape(levels, -1)[:, 0] - table.flat[0]
            fitted = fitted + line.reshape([-1 if k == axis else 1 for k in range(table.ndim)])
        return bool(np.all(fitted == table))

    @cached_property
    def _moves(self) -> sp.csr_matrix:
        return lattice.kernel_rows(sp.csr_matrix(self.equations))

    @property
    def balanced(self) -> bool:
        """Whether the equations fix the total of all groups."""
        return self.fixes(np.ones(self.equations.shape[1]))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Levels of each feature, for the margins of a table of groups."""
        if self.features is None:
            return None
        return tuple(int(level.max()) + 1 for level in self.features.T)


@dataclass(frozen=True)
class Tie:
    """Groups whose sums T are fixed only together: `equations @ T = values`."""

    groups: Ints
    pattern: Pattern
    values: Ints | None = field(repr=False)

    @property
    def equations(self) -> Ints:
        """One row for each equation, one column for each group."""
        return self.pattern.equations

    @property
    def features(self) -> Ints | None:
        """Each group's level on each feature, for the margins of a table of groups."""
        return self.pattern.features

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Levels of each feature, for the margins of a table of groups."""
        return self.pattern.shape


@dataclass(frozen=True, eq=False)
class TieKind:
    """Ties of one pattern: the groups and the values of each (one tie a line)."""

    groups: Ints = field(repr=False)
    pattern: Pattern
    values: Ints | None = field(repr=False)


class Ties(KindByKind[TieKind, Tie]):
    """The ties of a table, kind by kind; single ones are made when they are asked for."""

    def __init__(self, kinds: Iterable[TieKind] = ()) -> None:
        super().__init__(kinds, lambda kind: len(kind.groups))

    def one(self, kind: TieKind, number: int) -> Tie:
        """A tie of one kind, by its number there."""
        values = None if kind.values is None else kind.values[number]
        return Tie(kind.groups[number], kind.pattern, values)
