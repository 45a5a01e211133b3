"""Privacy parameters as numbers: reading and storing them, and arithmetic that rounds one way.

Rationals stay rationals as long as they can; a float is rounded so that no loss is understated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from congenial.data.rational import fraction
from congenial.errors import GuaranteeError

Number = Fraction | float
FloatArray = NDArray[np.float64]

ULP = 2.0**-52
SMALLEST = math.ulp(0.0)


def parameter(value: object, name: str) -> Number:
    """Read a privacy parameter: finite and not negative; rationals stay rationals.

    Integers, `Decimal` and strings such as "1/8" become a `Fraction`, floats stay floats.

    >>> parameter("1/8", "rho"), parameter(2, "epsilon")
    (Fraction(1, 8), Fraction(2, 1))
    """
    number = _read(value, name)
    if not math.isfinite(number) or number < 0:
        raise GuaranteeError(
            f"{name} = {value} is not a privacy parameter: it must be finite and not negative.",
            remedy=f"Give {name} >= 0.",
        )
    return number


def _read(value: object, name: str) -> Number:
    try:
        if isinstance(value, float | np.floating):
            return float(value)
        if isinstance(value, Fraction | int | np.integer | str | Decimal) and not isinstance(
            value, bool
        ):
            return fraction(int(value) if isinstance(value, np.integer) else value)
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise GuaranteeError(
        f"{name} = {value!r} is not a number.", remedy="Give an int, a Fraction or a float."
    )


def probability(delta: float) -> float:
    """Read a delta: 0 <= delta <= 1."""
    value = float(parameter(delta, "delta"))
    if value > 1:
        raise GuaranteeError(f"delta = {delta} is above 1.", remedy="Give 0 <= delta <= 1.")
    return value


def group_size(k: int) -> int:
    """Read the size of a group: a whole number, at least 1."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise GuaranteeError(f"a group of {k}.", remedy="Give a whole number, at least 1.")
    return int(k)


def stored(value: Number) -> str | float:
    """A parameter for JSON: a rational as "p/q", a float as it is."""
    return f"{value.numerator}/{value.denominator}" if isinstance(value, Fraction) else value


def above(value: Number) -> float:
    """Return the least float that is not below `value`."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def below(value: Number) -> float:
    """Return the greatest float that is not above `value`."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


def add_up(first: Number, second: Number) -> Number:
    """Add two parameters: exactly when both are rational, otherwise rounded upwards."""
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return first + second
    return above(Fraction(first) + Fraction(second))


def multiply_up(first: Number, second: Number) -> Number:
    """Multiply two parameters: exactly when both are rational, otherwise rounded upwards."""
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return first * second
    return above(Fraction(first) * Fraction(second))


def smallest(holds: Callable[[float], bool], *, start: float = 1.0) -> float:
    """Return the least x >= 0 at which a monotone condition holds, rounded up; inf if none.

    `holds` is false below some point and true above it; the returned x was tested and holds.
    """
    if holds(0.0):
        return 0.0
    high = start
    while not holds(high):
        high *= 4
        if high > 1e300:
            return math.inf
    low = 0.0
    while high > SMALLEST and holds(high / 4096):  # reach tiny answers in few steps
        high /= 4096
    while high - low > 4 * ULP * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
        if not low < (low + high) / 2 < high:
            break
    return high


def largest(holds: Callable[[float], bool], *, start: float = 1.0) -> float:
    """Return the greatest x >= 0 at which a monotone condition still holds, rounded down."""
    high = smallest(lambda x: x > 0 and not holds(x), start=start)
    if math.isinf(high):
        return high
    low = high * (1 - 8 * ULP)
    while low > 0 and not holds(low):
        low = low * (1 - 64 * ULP) if low > 1e-290 else 0.0
    return low
