"""Parameters of a promise that nobody can mean: one place for the limits of a plan.

Beyond 500 an epsilon, rho or mu promises nothing that differs from publishing the data, and a
delta below 1e-100 nothing that differs from zero; both only make numerics slow or overflow.
"""

from __future__ import annotations

from fractions import Fraction

LARGEST = 500
SMALLEST = Fraction(1, 10**100)
LIMITED = ("epsilon", "rho", "mu", "delta")


def absurd(name: str, value: Fraction) -> str:
    """Why a parameter cannot be meant, as the end of a sentence; empty if it can.

    >>> absurd("epsilon", Fraction(10**8))
    'epsilon is above 500, which protects nobody; publish the table exactly, or use 0.1 to 10'
    >>> absurd("epsilon", Fraction(3))
    ''
    """
    if name not in LIMITED:
        return ""
    if value > LARGEST:
        return (
            f"{name} is above {LARGEST}, which protects nobody; publish the table exactly, or "
            "use 0.1 to 10"
        )
    if value < SMALLEST:
        return f"{name} is below 1e-100, which no data can bear; use 1e-12 or more"
    return ""
