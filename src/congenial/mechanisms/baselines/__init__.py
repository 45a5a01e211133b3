"""Post-processing instead of conditioning: nonnegative least squares, the l1 family, TopDown.

All of it looks only at a draw and at published figures, so between conforming databases it is free.
congenial-dp, section 4 (with errata: the post-processing theorem applies there, because S* is the
same for all of them).
"""

from __future__ import annotations

from congenial.mechanisms.baselines.absolute import least_absolute
from congenial.mechanisms.baselines.compare import Comparison, compare
from congenial.mechanisms.baselines.conforming import Conforming
from congenial.mechanisms.baselines.quadratic import least_squares
from congenial.mechanisms.baselines.whole import nearest, nearest_in, rounded, topdown, unimodular

__all__ = [
    "Comparison",
    "Conforming",
    "compare",
    "least_absolute",
    "least_squares",
    "nearest",
    "nearest_in",
    "rounded",
    "topdown",
    "unimodular",
]
