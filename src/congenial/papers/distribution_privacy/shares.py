"""Example 2.1: hide the share of low income earners to within an absolute error, on a count whose
law is known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.pairs.properties import Scenario, share, together
from congenial.pairs.stated_laws import pmf
from congenial.papers.item import Study
from congenial.transport.wasserstein import distance

RECORDS = 20
RENTS = (Fraction(7, 10), Fraction(2, 5))  # chance of a tenant, of low income and of other income
SHARES = tuple(Fraction(k, 10) for k in range(11))
LOW = "income = 'low'"


def _binomial(n: int, p: Fraction) -> list[Fraction]:
    """Exact probabilities of 0 .. n successes."""
    masses = [Fraction(1)]
    for _ in range(n):
        shifted = [Fraction(0), *masses]
        masses = [(1 - p) * a + p * b for a, b in zip([*masses, Fraction(0)], shifted, strict=True)]
    return masses


def tenants(low: int) -> list[Fraction]:
    """The law of the number of tenants among 20 records of which `low` have a low income."""
    parts = (_binomial(low, RENTS[0]), _binomial(RECORDS - low, RENTS[1]))
    first, other = (np.array(part, dtype=object) for part in parts)
    return list(np.convolve(first, other))


def reach(pairs: Sequence[tuple[Scenario, Scenario]], delta: Fraction) -> float:
    """The largest W over pairs of scenarios."""
    points = list(range(RECORDS + 1))
    laws = [
        [pmf(points, tenants(hidden_group.sizes(RECORDS)[0])) for hidden_group in pair]
        for pair in pairs
    ]
    return max(float(distance(a, b, delta=delta).value) for a, b in laws)


def example21(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """Pairs of shares at most k apart, and the noise that hides which of them holds."""
    hidden = {
        f"share of low income, k = {float(k):g}": share(LOW, values=SHARES, gap=k)
        for k in (Fraction(1, 10), Fraction(1, 5), Fraction(3, 10))
    }
    wide = share(LOW, between=(Fraction(1, 5), Fraction(4, 5)))
    hidden["two properties together"] = together(
        share(LOW, values=SHARES[:6], gap=Fraction(1, 10)), wide
    )
    rows = [
        [words, len(pair.pairs), reach(pair.pairs, Fraction(0)), reach(pair.pairs, Fraction(1, 10))]
        for words, pair in hidden.items()
    ]
    return {
        "columns": ["hidden", "pairs", "W_inf = scale at epsilon = 1", "W at delta = 0.1"],
        "rows": rows,
        "notes": [
            f"{RECORDS} records; a record is a tenant with chance 0.7 at low income and 0.4 "
            "otherwise; released: the number of tenants. Shares 0, 0.1, ..., 1.",
            "Psi holds every pair of shares at most k apart, in both orders. Several properties "
            "are hidden together by taking the pairs of all of them.",
            "A tenth of the mass left out, delta = 0.1, shortens the way at most by a step.",
        ],
    }
