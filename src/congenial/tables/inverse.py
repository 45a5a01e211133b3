"""The inverse of sum_b p_b T_b' T_b on the kernel of the figures, for estimates and covariances.

`apply` takes vectors over tables and returns M^+ sum_b T_b' w_b, of which any table's totals can be
asked. With w_b = p_b (y_b - T_b x0) these are the estimates (less x0, some cells with the figures);
with one w it is the covariance of w' T_b x with everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from congenial.data.arrays import Floats
from congenial.data.workload import Margin
from congenial.errors import StructureError

Terms = Sequence[tuple[Margin, Floats]]


class Solution(Protocol):
    """M^+ h: a vector over the cells that may be too long to write down."""

    def totals(self, margin: Margin) -> Floats:
        """Its sums over the cells of a table, shaped (batch, *margin.shape)."""
        ...


class Inverse(Protocol):
    """M^+ on the kernel of the figures, by one of several methods."""

    @property
    def method(self) -> str:
        """How the normal equations are solved."""
        ...

    @property
    def reason(self) -> str:
        """Why this method serves."""
        ...

    def apply(self, terms: Terms) -> Solution:
        """M^+ times the sum of T_b' w_b; every w_b is shaped (batch, *margin.shape)."""
        ...

    def variances(self, margin: Margin) -> Floats | None:
        """The diagonal of T_b M^+ T_b', where it is known without solving cell by cell."""
        ...


def not_determined(names: Sequence[str], margin: Margin) -> StructureError:
    """The error for a table that measurements and figures do not determine."""
    named = [name for name, size in zip(names, margin.shape, strict=True) if size > 1]
    return StructureError(
        f"the measured tables do not determine the table over {', '.join(named) or 'nothing'}.",
        remedy="Measure it, or a table that it is a sum of.",
    )
