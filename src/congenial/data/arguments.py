"""Arguments of public calls: refused in words, before anything else, where they are wrong.

    @takes(release=Release, condition=TEXT, level=SHARE)   what a function takes, by name
    check_fields(self, people=COUNT)                       the same for the fields of a dataclass
    expect(name, str, "the name of an axis", "Give text.") one value, with a remedy of its own

A class stands for its instances. Messages name the argument and the type it has, and a value only
where a rule about numbers refused it: what is confidential (data, tables) is refused by type alone.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from congenial.data.rational import fraction
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
    names: tuple[Any, ...] = tuple(value)  # type: ignore[arg-type]
    for name in names:
        expect(name, str, f"an entry of {what}", remedy, error)
    return names


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


EXACT_KINDS = (Fraction, *WHOLE)
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Rule:
    """What a value must be, in words, and whether it is."""

    words: str
    holds: Callable[[Any], bool]


def _is(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool | np.bool_)


def _finite(value: Any) -> bool:
    try:
        return _is(value, NUMBER) and math.isfinite(value)
    except OverflowError:  # a whole number beyond floats
        return False


def _exact(value: Any) -> bool:
    return _is(value, EXACT_KINDS) and _finite(value) and bool(value > 0)


def _rational(value: Any) -> bool:
    try:
        return _is(value, (str, *EXACT_KINDS)) and fraction(value) > 0
    except (ValueError, ZeroDivisionError):
        return False


def _range(value: Any) -> bool:
    """Whether it is two finite numbers."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(map(_finite, value))


def _all(value: Any, rule: Rule) -> bool:
    """Whether a list, tuple or array in one dimension holds such values only."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and all(map(rule.holds, value.tolist()))
    return isinstance(value, list | tuple) and all(map(rule.holds, value))


def _numeric(value: Any) -> bool:
    """Whether it is an array of numbers in at least one dimension; some may be infinite."""
    try:
        array = np.asarray(value)
    except ValueError:
        return False
    return array.ndim > 0 and array.size > 0 and array.dtype.kind in "iuf"


TEXT = Rule("text", lambda value: isinstance(value, str))
FLAG = Rule("true or false", lambda value: isinstance(value, bool | np.bool_))
CALL = Rule("a function", lambda value: callable(value) and not isinstance(value, type))
FINITE = Rule("a finite number", _finite)
POSITIVE = Rule("a finite number above 0", lambda value: _finite(value) and value > 0)
EXACT = Rule("a positive fraction or whole number", _exact)
RATIONAL = Rule("a positive fraction, such as 1/2", _rational)
REAL = Rule("a number", lambda value: _is(value, NUMBER) and value == value)  # may be infinite
NOT_NEGATIVE = Rule("a finite number, 0 or more", lambda value: _finite(value) and value >= 0)
SHARE = Rule("a number between 0 and 1", lambda value: _finite(value) and 0 < value < 1)
COUNT = Rule("a whole number, 0 or more", lambda value: _is(value, WHOLE) and 0 <= value < 2**63)
SEVERAL = Rule("a whole number, 1 or more", lambda value: _is(value, WHOLE) and 0 < value < 2**63)
INTEGER = Rule("a whole number", lambda value: _is(value, WHOLE))
EXACT_NUMBER = Rule("a fraction or whole number", lambda value: _is(value, EXACT_KINDS))
NAMES = Rule("a list of names", lambda value: _all(value, TEXT))
PLAIN_NAMES = Rule("a tuple of names", lambda value: isinstance(value, tuple) and _all(value, TEXT))
ARRAY = Rule("an array or a list of numbers", _numeric)
VECTOR = Rule("a list of numbers", lambda value: _numeric(value) and np.ndim(value) == 1)
SEQUENCE = Rule(
    "a list",
    lambda value: (
        isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)
    ),
)
RANGE = Rule("two finite numbers, [low, high]", _range)
NUMBERS = Rule("a list of finite numbers", lambda value: _all(value, FINITE))


def listed(rule: Rule | type) -> Rule:
    """A list of such values."""
    wanted = _rule(rule)
    return Rule(f"a list, each entry {wanted.words}", lambda value: _all(value, wanted))


def optional(rule: Rule | type) -> Rule:
    """Such a value, or None."""
    wanted = _rule(rule)
    return Rule(f"{wanted.words}, or None", lambda value: value is None or wanted.holds(value))


def one_of(*kinds: type) -> Rule:
    """An instance of one of these classes."""
    words = " or ".join(f"a {kind.__name__}" for kind in kinds)
    return Rule(words, lambda value: isinstance(value, kinds))


def either(*rules: Rule | type) -> Rule:
    """What one of these rules allows."""
    wanted = [_rule(rule) for rule in rules]
    words = " or ".join(rule.words for rule in wanted)
    return Rule(words, lambda value: any(rule.holds(value) for rule in wanted))


def pairs_of(first: Rule | type, second: Rule | type) -> Rule:
    """A list of pairs, each of one value of the first kind and one of the second."""
    wanted = _rule(first), _rule(second)
    return Rule(
        f"a list of pairs, each {wanted[0].words} and {wanted[1].words}",
        lambda value: (
            isinstance(value, list | tuple)
            and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value)
            and all(
                rule.holds(part) for pair in value for rule, part in zip(wanted, pair, strict=True)
            )
        ),
    )


def paired(rule: Rule | type) -> Rule:
    """A list that is not empty, of pairs of such values."""
    wanted = _rule(rule)
    return Rule(
        f"a list of pairs, each of them twice {wanted.words}",
        lambda value: (
            isinstance(value, list | tuple)
            and len(value) > 0
            and all(_all(pair, wanted) and len(pair) == 2 for pair in value)
        ),
    )


def _rule(rule: Rule | type) -> Rule:
    return rule if isinstance(rule, Rule) else one_of(rule)


def check_arguments(
    where: str,
    values: Mapping[str, object],
    rules: Mapping[str, Rule | type],
    error: type[CongenialError] = CongenialError,
) -> None:
    """Refuse the first value that its rule does not allow.

    >>> check_arguments("power", {"level": 95}, {"level": SHARE})
    Traceback (most recent call last):
    congenial.errors.CongenialError: power: level = 95 is not a number between 0 and 1. Give a \
number between 0 and 1.
    """
    for name, rule in rules.items():
        wanted = _rule(rule)
        if name in values and not wanted.holds(values[name]):
            value = values[name]
            named = f"{name} = {value!r}" if _finite(value) else name
            kind = "" if _finite(value) else f" but has type {type(value).__name__}"
            raise error(
                f"{where}: {named} is not {wanted.words}{kind}.", remedy=f"Give {wanted.words}."
            )


def takes(
    error: type[CongenialError] = CongenialError, /, **rules: Rule | type
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments of a function by name before it runs."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            values = signature.bind(*args, **kwargs).arguments
            check_arguments(function.__name__, values, rules, error)
            return function(*args, **kwargs)

        return checked

    return decorated


def check_fields(
    record: object, error: type[CongenialError] = CongenialError, /, **rules: Rule | type
) -> None:
    """The same for the fields of a dataclass: first thing in `__post_init__`."""
    values = {name: getattr(record, name) for name in rules}
    check_arguments(type(record).__name__, values, rules, error)
