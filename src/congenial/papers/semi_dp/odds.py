"""Section 5.3: power of the private test of the odds ratio, its optimality, and the printed
direction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from congenial.inference.odds_ratio import OddsRatioTest
from congenial.papers.item import Study
from congenial.sampling.canonical import CanonicalNoise, CanonicalNormal, Tulap

ROWS, COLUMNS = (7, 5), (6, 6)


def best_power(test: OddsRatioTest, eps: float, delta: float, alpha: float, w: float) -> float:
    """The largest power at w of any (eps, delta)-private test of size alpha at 1: a linear
    programme over phi on the support (Lemma 34).
    """
    n = len(test.support)
    above, limits = [], []
    for x in range(n):
        for y in (x - 1, x + 1):
            if 0 <= y < n:
                for sign, free in ((1.0, delta), (-1.0, delta + np.exp(eps) - 1)):
                    # phi(x) <= e^eps phi(y) + delta, and the same for 1 - phi
                    row = np.zeros(n)
                    row[x], row[y] = sign, -sign * np.exp(eps)
                    above.append(row)
                    limits.append(free)
    solution = linprog(
        -test.law(w),
        A_ub=np.array(above),
        b_ub=np.array(limits),
        A_eq=test.law(1.0)[None, :],
        b_eq=[alpha],
        bounds=(0, 1),
        method="highs",
    )
    return float(-solution.fun)


def power(study: Study) -> dict[str, Any]:
    """Power curves at alpha = 0.05 against the linear programme."""
    noises: list[tuple[str, CanonicalNoise, tuple[float, float] | None]] = [
        ("epsilon = 1", Tulap(1), (1.0, 0.0)),
        ("epsilon = 0.5, delta = 0.01", Tulap(0.5, 0.01), (0.5, 0.01)),
        ("mu = 1", CanonicalNormal(1), None),
    ]
    points = (1.0, 2.0, 8.0) if study.quick else (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
    rows: list[list[Any]] = []
    for words, noise, private in noises:
        test = OddsRatioTest(ROWS, COLUMNS, noise)
        for w in points:
            best = None if private is None else best_power(test, *private, 0.05, w)
            rows.append(
                [words, w, float(test.power(0.05, w)), best, float(test.power(0.05, 1 / w))]
            )
    return {
        "columns": ["promise", "w", "power", "best possible", "power, printed direction"],
        "rows": rows,
        "notes": [
            f"alpha = 0.05, row totals {ROWS}, column totals {COLUMNS}; w = odds of row 1 / odds "
            "of row 2.",
            "best possible: a linear programme over all private tests of that size.",
            "The paper prints w = odds2 / odds1 with x11: that test has less power than its size.",
        ],
        "chart": {
            "kind": "line",
            "x": "w",
            "y": "power",
            "by": "promise",
            "x_log": True,
            "x_title": "w: odds of row 1 / odds of row 2",
        },
    }
