"""Numbers of promises for people: rounded up, so that a promise never reads better than it is.

Plain data (JSON, ledgers, bundles) keep the exact rationals.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction


def number(value: Fraction | float) -> str:
    """A privacy parameter in decimals, rounded up to six digits when it has more.

    >>> number(Fraction(1, 3)), number(0.1), number(Fraction(5, 2))
    ('0.333334', '0.1', '2.5')
    """
    if isinstance(value, Fraction):
        exact = Context(prec=40, rounding=ROUND_CEILING).divide(
            Decimal(value.numerator), Decimal(value.denominator)
        )
    else:
        exact = Decimal(repr(float(value)))
    return format(_up(exact, 6).normalize(), "f")


def odds(epsilon: Fraction | float) -> str:
    """e^epsilon to three digits, rounded up."""
    value = float(epsilon)
    if value > 50:
        return f"e^{number(epsilon)}"
    exact = Decimal(value).exp(Context(prec=30, rounding=ROUND_CEILING))
    if epsilon > 0 and exact == 1:
        return "1.01"
    return format(_up(exact, 3).normalize(), "f")


def small(value: float) -> str:
    """A probability to three digits, rounded up."""
    return f"{float(_up(Decimal(repr(float(value))), 3)):g}"


def percent(value: float) -> str:
    """A share in per cent to three digits, rounded up.

    >>> percent(0.73106), percent(0.5)
    ('73.2 %', '50 %')
    """
    return f"{float(_up(100 * Decimal(repr(float(value))), 3)):g} %"


def _up(value: Decimal, digits: int) -> Decimal:
    return Context(prec=digits, rounding=ROUND_CEILING).plus(value)
