"""Exact numbers from the text of strangers: plans, bundles, options of a command."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

LARGEST = 10**300  # numbers stay within reach of double precision; so do their inverses
MAX_DIGITS = 4000  # below the limit Python itself sets for reading whole numbers

_EXPONENT = re.compile(r"[eE]([+-]?[0-9_]+)")


def fraction(value: Fraction | int | float | str | Decimal) -> Fraction:
    """`Fraction(value)` for zero and numbers of a size between 1e-300 and 1e300, and any fraction.

    Others raise ValueError before they are written out: 1e999999999 has a billion digits. What
    `Fraction` itself refuses raises ValueError, TypeError, OverflowError or ZeroDivisionError.

    >>> fraction("1/3"), fraction("2.5e3")
    (Fraction(1, 3), Fraction(2500, 1))
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Decimal):
        if value.is_finite() and abs(value.adjusted()) > MAX_DIGITS:
            raise ValueError("the exponent is out of range")
    elif isinstance(value, str):
        exponent = _EXPONENT.search(value)
        if len(value) > MAX_DIGITS or (exponent and abs(int(exponent[1])) > MAX_DIGITS):
            raise ValueError("the number is too long or its exponent out of range")
    found = Fraction(value)
    if found and not LARGEST > abs(found) > Fraction(1, LARGEST):
        raise ValueError("the number is not between 1e-300 and 1e300")
    return found
