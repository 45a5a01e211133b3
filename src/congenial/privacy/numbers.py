"""Privacy parameters as numbers: reading, limits, storing, arithmetic that rounds one way, words.

Rationals stay rationals as long as they can; a float is rounded so that no loss is understated, and
what people read is rounded up, so that a promise never reads better than it is. Plain data (JSON,
ledgers, bundles) keep the exact rationals.

Beyond 500 an epsilon, rho, mu or M promises nothing that differs from publishing the data; a
positive parameter below 1e-100 asks for noise that drowns every count. The upper limit leaves
numerics room: exp(-epsilon) is 0 in double precision from 745 on, where the logarithm of a weight
is no number any more, and from 1e8 on noise is drawn with more digits than anybody waits for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from congenial.data.rational import fraction
from congenial.errors import GuaranteeError

Number = Fraction | float
FloatArray = NDArray[np.float64]

ULP = 2.0**-52
SMALLEST = math.ulp(0.0)
LARGEST_PARAMETER = 500
SMALLEST_PARAMETER = Fraction(1, 10**100)
LIMITED = ("epsilon", "rho", "mu", "delta", "M")
# fields of the families of trade-off functions -> what they are called
_FIELDS = {"eps": "epsilon", "rho": "rho", "mu": "mu", "dlt": "delta"}


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


def absurd(name: str, value: Fraction | float) -> str:
    """Why a parameter cannot be meant, as the end of a sentence; empty if it can.

    >>> absurd("epsilon", Fraction(10**8))
    'epsilon is above 500, which protects nobody; publish the table exactly, or use 0.1 to 10'
    >>> absurd("epsilon", Fraction(3)), absurd("epsilon", 0)
    ('', '')
    """
    if name not in LIMITED:
        return ""
    if value > LARGEST_PARAMETER:
        return (
            f"{name} is above {LARGEST_PARAMETER}, which protects nobody; publish the table "
            "exactly, or use 0.1 to 10"
        )
    if 0 < value < SMALLEST_PARAMETER:
        return f"{name} is below 1e-100, which no data can support; use 1e-12 or more"
    return ""


def absurd_promise(tradeoff: object) -> str:
    """Why the parameters of a promise cannot be meant; empty if they can."""
    reasons = (
        absurd(name, getattr(tradeoff, field))
        for field, name in _FIELDS.items()
        if hasattr(tradeoff, field)
    )
    return next(filter(None, reasons), "")


def refuse_absurd(tradeoff: object) -> None:
    """Raise GuaranteeError for a target that nobody can mean."""
    why = absurd_promise(tradeoff)
    if why:
        what, _, remedy = why.partition("; ")
        raise GuaranteeError(f"{what}.", remedy=f"{remedy[0].upper()}{remedy[1:]}.")


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


def times_in_100(share: float) -> str:
    """How often in 100 times, rounded up: a whole number, with decimals near 50 and near 100.

    >>> times_in_100(0.73106), times_in_100(0.50025), times_in_100(0.99966)
    ('74', '50.03', '99.97')
    """
    value = 100 * Decimal(repr(float(share)))
    return f"{float(_up(value, 2 if 51 <= value <= 99 else 4)):g}"


def _up(value: Decimal, digits: int) -> Decimal:
    return Context(prec=digits, rounding=ROUND_CEILING).plus(value)
