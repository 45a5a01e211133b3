"""Distance between two laws: W_inf, and the least W for (W, delta)-closeness.

Two laws are (W, delta)-close when some coupling (X, Y) has P(||X - Y|| > W) <= delta; W_inf is
the least W for delta = 0 (partially-private-data, section 2.3; distribution-privacy, section 3).
On the line, W_inf matches equal quantiles at the jumps of both laws, and (W, delta) is a greedy
sweep, bisected; in several dimensions it is a threshold on distances and a flow. A distance that is
returned is never too small: it is rounded up, and a proof comes with it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

from congenial.data.arguments import expect
from congenial.errors import GuaranteeError
from congenial.pairs.stated_laws import (
    Law,
    StatedBinomial,
    StatedContinuous,
    StatedDiscrete,
    StatedLogDiscrete,
    StatedNormal,
    probability,
)
from congenial.transport.certificates import (
    NORMS,
    Distance,
    Dominance,
    Norm,
    Translation,
    empirical,
)
from congenial.transport.line import (
    OneDimensional,
    law_dimension,
    levels,
    on_the_line,
    subtracted,
    w_infinity,
)
from congenial.transport.several import in_several_dimensions


def distance(
    left: Law, right: Law, *, delta: Fraction | float | int | str = 0, norm: Norm = "l1"
) -> Distance:
    """W_inf of two laws, or the least W for which they are (W, delta)-close.

    >>> from congenial.pairs.stated_laws import pmf
    >>> mu = pmf([1, 2, 3, 100], [0.6, 0.2, 0, 0.2])
    >>> nu = pmf([1, 2, 3, 100], [0.4, 0.3, 0.2, 0.1])
    >>> distance(mu, nu).value, distance(mu, nu, delta=0.1).value
    (97.0, 1.0)

    On the line l1, l2 and linf agree; "hamming" counts the coordinates that change.
    """
    share = probability(delta, "delta")
    for law in (left, right):
        expect(law, get_args(Law), "a law", "Give for example pmf(points, masses).", GuaranteeError)
    expect(norm, str, "norm", f"Use {', '.join(NORMS)}.", GuaranteeError)
    if norm not in NORMS:
        raise GuaranteeError(f"norm '{norm}' is not known.", remedy=f"Use {', '.join(NORMS)}.")
    if share == 1:
        raise GuaranteeError("delta = 1 promises nothing.", remedy="Give a small delta.")
    moved = _translation(left, right)
    if moved is not None and share == 0 and norm != "hamming":
        proof = Translation(moved, abs(moved))
        return Distance(abs(moved), abs(moved), share, norm, empirical(left), lambda: proof)
    a, b = _tabulated(left), _tabulated(right)
    if law_dimension(a) != law_dimension(b):
        raise GuaranteeError(
            f"the two distributions have {law_dimension(a)} and {law_dimension(b)} dimensions.",
            remedy="Compare distributions of the same statistic.",
        )
    if law_dimension(a) > 1 or norm == "hamming":
        return in_several_dimensions(a, b, share, norm)
    if share == 0 and (isinstance(a, StatedLogDiscrete) or isinstance(b, StatedLogDiscrete)):
        return _on_log_scale(a, b, norm)
    return on_the_line(a, b, share, norm)


def _tabulated(law: Law) -> OneDimensional:
    return law.tabulated() if isinstance(law, StatedBinomial) else law


def _translation(left: Law, right: Law) -> float | None:
    """By how much the right law is the left one moved, where their form shows it."""
    if isinstance(left, StatedBinomial) and isinstance(right, StatedBinomial):
        return float(right.shift - left.shift) if (left.n, left.p) == (right.n, right.p) else None
    if isinstance(left, StatedNormal) and isinstance(right, StatedNormal) and left.sd == right.sd:
        return subtracted(right.mean, left.mean)
    if isinstance(left, StatedContinuous) and isinstance(right, StatedContinuous) and left.family:
        return subtracted(right.location, left.location) if left.family == right.family else None
    return 0.0 if left is right else None


def _on_log_scale(a: OneDimensional, b: OneDimensional, norm: Norm) -> Distance:
    if not (
        isinstance(a, StatedDiscrete | StatedLogDiscrete)
        and isinstance(b, StatedDiscrete | StatedLogDiscrete)
    ):
        raise GuaranteeError(
            "W_inf between a rounded pmf and a continuous law cannot be certified.",
            remedy="Give the masses as fractions, or ask for (W, delta)-closeness.",
        )
    f, g = levels(a), levels(b)
    value, at_least = w_infinity(f, g)
    proof = Dominance(f[:2], g[:2], value, f[2] + g[2])
    return Distance(value, at_least, Fraction(0), norm, empirical(a, b), lambda: proof)
