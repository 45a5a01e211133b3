"""Loops over numbers: plain Python while they are short, compiled by numba from then on.

Compiling takes seconds on a new machine, importing numba half a second on every one; a small table
is done in less. So a `loop` runs as it is written until those of its module took `BRIEF` seconds if
it was compiled by an earlier run, `PLAIN` seconds if not, or it is called with more than `LARGE`
numbers at once; then it is compiled, and kept for later runs.
Both give the same bits, which holds as long as a loop keeps to operations that both round alike:
+ - * / and comparisons, `math.exp` and its like (`np.exp` rounds differently), integers of 64 bits.
So it is of no consequence when a loop is compiled: `tests/data/test_loops.py` compares the two.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

BRIEF, PLAIN = 0.05, 2.0  # seconds of a processor
LARGE = 50_000


class Loop:
    """A function that is compiled when it pays; `plain` is the function as written."""

    seconds: ClassVar[dict[str, float]] = {}  # that plain loops took, by module
    _since: ClassVar[float | None] = None  # when the plain loop that runs now began

    def __init__(self, plain: Callable[..., Any], options: dict[str, Any]) -> None:
        self.plain, self._options, self._pays = plain, options, False
        self.__doc__, self.__name__, self.__module__ = (
            plain.__doc__, plain.__name__, plain.__module__,
        )  # fmt: skip

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop, compiled if that is quicker on the whole."""
        if self._pays:
            return self.compiled(*arguments)
        now, since = time.thread_time(), Loop._since
        taken = Loop.seconds.get(self.__module__, 0.0) + (0.0 if since is None else now - since)
        large = since is None and _numbers(arguments) > LARGE
        if large or (taken > BRIEF and (taken > PLAIN or self._is_kept)):
            self._pays = True
            return self.compiled(*arguments)
        if since is not None:  # called by a plain loop
            return self.plain(*arguments)
        Loop._since = now
        try:
            with np.errstate(all="ignore"):  # compiled loops warn of nothing either
                return self.plain(*arguments)
        finally:
            Loop._since = None
            Loop.seconds[self.__module__] = taken + time.thread_time() - now

    @cached_property
    def _is_kept(self) -> bool:
        """Whether an earlier run has compiled it."""
        cache = getattr(self.compiled, "_cache", None)  # numba has no public way to ask
        return cache is not None and bool(cache._cache_file._load_index())

    @cached_property
    def compiled(self) -> Any:
        """The loop compiled, with those that it calls."""
        import numba

        plain: Any = self.plain
        names = dict(plain.__globals__)
        for name in plain.__code__.co_names:
            if isinstance(names.get(name), Loop):
                names[name] = names[name].compiled
        copy = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__)
        copy.__module__, copy.__qualname__ = plain.__module__, plain.__qualname__
        return numba.njit(cache=True, **self._options)(copy)


def loop(plain: Callable[..., Any] | None = None, /, **options: Any) -> Callable[..., Any]:
    """Make a function a `Loop`; options as of `numba.njit`.

    >>> @loop
    ... def total(numbers):
    ...     s = 0.0
    ...     for number in numbers:
    ...         s += number
    ...     return s
    >>> float(total(np.ones(3)))
    3.0
    """
    options = {"error_model": "numpy"} | options
    if plain is None:
        return lambda function: Loop(function, options)
    return Loop(plain, options)


def _numbers(arguments: tuple[Any, ...]) -> int:
    """How many numbers arrays among the arguments hold."""
    total = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            total += argument.size
        elif isinstance(argument, tuple):
            total += _numbers(argument)
    return total
