"""Post-processing instead of conditioning: nonnegative least squares, the l1 family, TopDown.

All of it looks only at a draw and at published figures, so between conforming databases it is free.
congenial-dp, section 4 (with errata: the post-processing theorem applies there, because S* is the
same for all of them).
"""

from __future__ import annotations

from congenial.mechanisms.projection.conforming_tables import ConformingTables
from congenial.mechanisms.projection.least_squares import least_squares
from congenial.mechanisms.projection.whole_tables import (
    nearest,
    nearest_in,
    rounded,
    topdown,
    unimodular,
)
from congenial.papers.post_processing.comparison import Comparison, compare
from congenial.papers.post_processing.least_absolute import least_absolute

__all__ = [
    "Comparison",
    "ConformingTables",
    "compare",
    "least_absolute",
    "least_squares",
    "nearest",
    "nearest_in",
    "rounded",
    "topdown",
    "unimodular",
]
