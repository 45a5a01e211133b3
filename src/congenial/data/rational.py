"""Exact numbers: from text from outside (plans, bundles, options of a command), and as text."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real

from congenial.errors import SchemaError

Number = int | Fraction

LARGEST = 10**300  # numbers stay within reach of double precision; so do their inverses
LONGEST = 10**60  # the largest denominator of a number that somebody wrote in a schema
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
            raise ValueError("the number is too long, or its exponent is out of range")
    number = Fraction(value)
    if number and not LARGEST > abs(number) > Fraction(1, LARGEST):
        raise ValueError("the number is not between 1e-300 and 1e300")
    return number


def exact(value: object, where: str) -> Number:
    """Return `value` as an exact number: an `int` where it is whole, otherwise a `Fraction`.

    A float is read as the shortest decimal that prints it, because 0.1 in a plan file means one
    tenth. Text may be a decimal ("0.1") or a ratio ("1/3"). Raises SchemaError for anything else
    and for numbers of 2^63 or more, which no database column compares exactly.

    >>> exact(0.1, "edges"), exact("2.50", "edges"), exact(3.0, "edges")
    (Fraction(1, 10), Fraction(5, 2), 3)
    """
    if type(value) is int and -(2**63) < value < 2**63:
        return value  # the common case, quickly: there may be millions of edges
    try:
        number = as_written(value)
    except (ValueError, ArithmeticError):
        number = None
    computed = isinstance(value, Fraction)  # which may have any number of digits
    long = number is not None and not computed and number.denominator > LONGEST
    if number is None or abs(number) >= 2**63 or long:
        raise SchemaError(
            f"{where}: {str(value)[:40]!r} is not a finite number below 2^63.",
            remedy="Write a whole number or a decimal.",
        )
    return number.numerator if number.denominator == 1 else number


def as_written(value: object) -> Fraction:
    """A number of any type, or its text, exactly; a float is the decimal it prints, not its binary
    neighbour. ValueError, OverflowError or ZeroDivisionError for what is no such number.

    >>> as_written(0.1), as_written("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        return fraction(repr(float(value)))
    if isinstance(value, str | Decimal):
        return fraction(value)
    raise ValueError("this is not a number")


def written(number: Number) -> str:
    """Write an exact number: decimal where that is finite, otherwise as a ratio.

    >>> written(5), written(Fraction(5)), written(Fraction(5, 2)), written(Fraction(1, 3))
    ('5', '5', '2.5', '1/3')
    """
    if number.denominator == 1:
        return str(number.numerator)
    rest, digits = number.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest //= prime
            power += 1
        digits = max(digits, power)
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"
    scaled = str(abs(number.numerator) * 10**digits // number.denominator).zfill(digits + 1)
    return f"{'-' if number < 0 else ''}{scaled[:-digits]}.{scaled[-digits:]}"
