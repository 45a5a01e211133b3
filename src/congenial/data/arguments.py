"""Arguments of public calls: refused in words where they are of the wrong type.

A message names the argument and the type it has, never its content: it may be confidential.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.errors import CongenialError

NUMBER = (int, float, Fraction, np.integer, np.floating)
WHOLE = (int, np.integer)
PATH = (str, Path)


def expect(
    value: object,
    kinds: type | tuple[type, ...],
    what: str,
    remedy: str,
    error: type[CongenialError] = CongenialError,
) -> None:
    """Refuse a value that is of none of these types; a truth value is no number.

    >>> expect({"age": 65}, str, "condition", 'Give text such as "age >= 65".')
    Traceback (most recent call last):
    congenial.errors.CongenialError: condition has type dict. Give text such as "age >= 65".
    """
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise error(f"{what} has type {type(value).__name__}.", remedy=remedy)


def texts(
    value: object, what: str, error: type[CongenialError] = CongenialError
) -> tuple[str, ...]:
    """One name or several as a tuple of texts.

    >>> texts("sex", "by"), texts(["sex", "age"], "by")
    (('sex',), ('sex', 'age'))
    """
    remedy = 'Give a name or a list of names, such as ["sex", "age"].'
    if isinstance(value, str):
        return (value,)
    expect(value, Iterable, what, remedy, error)
    found: tuple[Any, ...] = tuple(value)  # type: ignore[arg-type]
    for one in found:
        expect(one, str, f"an entry of {what}", remedy, error)
    return found


def flags(value: object, shape: tuple[int, ...], what: str, error: type[CongenialError]) -> Any:
    """Truth values in an array of this shape."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        array = np.empty(0)
    if array.dtype != np.bool_ or array.shape != shape:
        raise error(
            f"{what} are not truth values in an array of shape {shape}.",
            remedy="Mark the cells with true; for a condition in words use release.interval.",
        )
    return array


def numbers(value: object, what: str, error: type[CongenialError]) -> NDArray[np.float64]:
    """An array of floating-point numbers."""
    try:
        return np.asarray(value, dtype=float)
    except (ValueError, TypeError, OverflowError):
        raise error(f"{what} has values that are not numbers.", remedy="Give numbers.") from None
