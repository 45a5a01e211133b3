"""Post-processing instead of conditioning: nonnegative least squares, the l1 family, TopDown.

All of it looks only at a draw and at published figures, so between conforming databases it is free.
congenial-dp, section 4 (with errata: the post-processing theorem applies there, because S* is the
same for all of them).
"""

from __future__ import annotations

from congenial.papers.post_processing.comparison import Comparison, compare
from congenial.papers.post_processing.methods import least_absolute, least_squares, rounded, topdown
from congenial.tables.conforming_tables import ConformingTables
from congenial.tables.general_fit import nearest_in

__all__ = [
    "Comparison",
    "ConformingTables",
    "compare",
    "least_absolute",
    "least_squares",
    "nearest_in",
    "rounded",
    "topdown",
]
