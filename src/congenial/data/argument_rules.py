"""What public calls take, told once at their head and checked before anything else.

    @takes(release=Release, condition=TEXT, level=SHARE)
    def power(release, condition, level): ...

A class stands for its instances. Messages name the argument and the type it has, and a value only
where a rule about numbers refused it: what is confidential (data, tables) is refused by type alone.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from congenial.data.arguments import NUMBER, WHOLE
from congenial.data.rational import fraction
from congenial.errors import CongenialError

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
        found = np.asarray(value)
    except ValueError:
        return False
    return found.ndim > 0 and found.size > 0 and found.dtype.kind in "iuf"


TEXT = Rule("text", lambda one: isinstance(one, str))
FLAG = Rule("true or false", lambda one: isinstance(one, bool | np.bool_))
CALL = Rule("a function", lambda one: callable(one) and not isinstance(one, type))
FINITE = Rule("a finite number", _finite)
POSITIVE = Rule("a finite number above 0", lambda one: _finite(one) and one > 0)
EXACT = Rule("a positive fraction or whole number", _exact)
RATIONAL = Rule("a positive fraction, such as 1/2", _rational)
REAL = Rule("a number", lambda one: _is(one, NUMBER) and one == one)  # may be infinite
NOT_NEGATIVE = Rule("a finite number, 0 or more", lambda one: _finite(one) and one >= 0)
SHARE = Rule("a number between 0 and 1", lambda one: _finite(one) and 0 < one < 1)
COUNT = Rule("a whole number, 0 or more", lambda one: _is(one, WHOLE) and 0 <= one < 2**63)
SEVERAL = Rule("a whole number, 1 or more", lambda one: _is(one, WHOLE) and 0 < one < 2**63)
INTEGER = Rule("a whole number", lambda one: _is(one, WHOLE))
EXACT_NUMBER = Rule("a fraction or whole number", lambda one: _is(one, EXACT_KINDS))
NAMES = Rule("a list of names", lambda one: _all(one, TEXT))
PLAIN_NAMES = Rule("a tuple of names", lambda one: isinstance(one, tuple) and _all(one, TEXT))
ARRAY = Rule("an array or a list of numbers", _numeric)
VECTOR = Rule("a list of numbers", lambda one: _numeric(one) and np.ndim(one) == 1)
SEQUENCE = Rule(
    "a list",
    lambda one: isinstance(one, list | tuple) or (isinstance(one, np.ndarray) and one.ndim == 1),
)
RANGE = Rule("two finite numbers, [low, high]", _range)
NUMBERS = Rule("a list of finite numbers", lambda one: _all(one, FINITE))


def listed(rule: Rule | type) -> Rule:
    """A list of such values."""
    wanted = _rule(rule)
    return Rule(f"a list, each entry {wanted.words}", lambda one: _all(one, wanted))


def optional(rule: Rule | type) -> Rule:
    """Such a value, or None."""
    wanted = _rule(rule)
    return Rule(f"{wanted.words}, or None", lambda one: one is None or wanted.holds(one))


def one_of(*kinds: type) -> Rule:
    """An instance of one of these classes."""
    words = " or ".join(f"a {kind.__name__}" for kind in kinds)
    return Rule(words, lambda one: isinstance(one, kinds))


def either(*rules: Rule | type) -> Rule:
    """What one of these rules allows."""
    wanted = [_rule(one) for one in rules]
    words = " or ".join(one.words for one in wanted)
    return Rule(words, lambda value: any(one.holds(value) for one in wanted))


def pairs_of(first: Rule | type, second: Rule | type) -> Rule:
    """A list of pairs, each of one value of the first kind and one of the second."""
    wanted = _rule(first), _rule(second)
    return Rule(
        f"a list of pairs, each {wanted[0].words} and {wanted[1].words}",
        lambda value: (
            isinstance(value, list | tuple)
            and all(isinstance(one, list | tuple) and len(one) == 2 for one in value)
            and all(
                rule.holds(part) for one in value for rule, part in zip(wanted, one, strict=True)
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
            and all(_all(one, wanted) and len(one) == 2 for one in value)
        ),
    )


def _rule(rule: Rule | type) -> Rule:
    return rule if isinstance(rule, Rule) else one_of(rule)


def check_arguments(
    where: str,
    given: Mapping[str, object],
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
        if name in given and not wanted.holds(given[name]):
            value = given[name]
            shown = f"{name} = {value!r}" if _finite(value) else f"{name}"
            kind = "" if _finite(value) else f" but has type {type(value).__name__}"
            raise error(
                f"{where}: {shown} is not {wanted.words}{kind}.", remedy=f"Give {wanted.words}."
            )


def takes(
    error: type[CongenialError] = CongenialError, /, **rules: Rule | type
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the arguments of a function by name before it runs."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs).arguments
            check_arguments(function.__name__, given, rules, error)
            return function(*args, **kwargs)

        return checked

    return decorated


def check_fields(
    one: object, error: type[CongenialError] = CongenialError, /, **rules: Rule | type
) -> None:
    """The same for the fields of a dataclass: first thing in `__post_init__`."""
    given = {name: getattr(one, name) for name in rules}
    check_arguments(type(one).__name__, given, rules, error)
