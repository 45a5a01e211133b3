"""Exact arithmetic behind every draw: balls, and decisions by a lazily refined uniform.

**Balls** (flint's arb) enclose a real number by midpoint and radius. flint keeps the working
precision in one place for the whole process, so one thread sets it at a time: a ball computed while
another thread lowers it would still be a rigorous enclosure, but wider than its user counted on.

**Decisions.** U = 0.w1 w2 w3 ... starts with the bits a fast path has already looked at. As long as
what is known of U leaves the decision open, precision grows or one more word is taken; both end
with probability one. So a fast path in doubles may decide whatever is clear and hand the rest over:
the result is the same function of the words, and no rounding enters the law.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from congenial.errors import GuaranteeError
from congenial.sampling.randomness import Randomness, Words

_lock = threading.RLock()


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Run the block at this precision, alone: other threads wait at their own blocks."""
    with _lock, ctx.workprec(bits):
        yield


def _forked() -> None:
    global _lock
    _lock = threading.RLock()  # its owner may be a thread that does not exist in the child


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forked)


def ball(value: Fraction | int) -> Any:
    """Return the rational as an arb ball at the current working precision."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def exp_ball(value: Fraction) -> Any:
    """Return exp(value) as a ball at the working precision; remembered, since loops ask often."""
    return _exp(value.numerator, value.denominator, ctx.prec)


@lru_cache(maxsize=256)
def _exp(numerator: int, denominator: int, precision: int) -> Any:  # noqa: ARG001 - part of the key
    return arb(fmpq(numerator, denominator)).exp()


def positive_rational(name: str, value: Fraction | int) -> Fraction:
    """Return value as a Fraction; GuaranteeError unless it is an exact rational above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)) or value <= 0:
        raise GuaranteeError(
            f"{name} = {value!r} is not a positive rational.",
            remedy="Give a Fraction or an integer above 0, e.g. Fraction(1, 4).",
        )
    return Fraction(value)


def below(word: int, bits: int, log_p: Callable[[], Any], randomness: Randomness) -> bool:
    """Return U < p for a U whose first `bits` bits are `word`; log_p() is a ball at any precision.

    A word is added only if p is within its last place of U, which has probability below 2^-62 each.

    >>> from congenial.sampling.randomness import RecordedRandomness
    >>> below(1, 2, lambda: (arb(3) / 4).log(), RecordedRandomness([]))  # U in [1/4, 1/2]
    True
    """

    def open_or(p: Any) -> bool | None:
        if p >= word + 1:
            return True
        return False if p <= word else None

    guard = 64
    while True:
        with working_precision(bits + guard):
            p = log_p().exp() * arb(2) ** bits
            decided, narrow = open_or(p), p.rad() < 1
        if decided is not None:
            return decided
        if narrow:
            word, bits = (word << 64) | randomness.word(), bits + 64
        else:
            guard *= 2


def all_below(
    words: Words,
    log_p: npt.NDArray[np.float64],
    slack: npt.ArrayLike,
    exact: Callable[[int], Callable[[], Any]],
    randomness: Randomness,
) -> npt.NDArray[np.bool_]:
    """`below` for many words at once, by doubles where they are clear.

    log_p are doubles within `slack` of the exact logarithms; exact(i) is the log_p of `below`.
    """
    first = words.astype(np.float64)
    with np.errstate(divide="ignore"):  # a word of 0 is only bounded from above
        low, high = np.log(first) - 64 * math.log(2), np.log(first + 1) - 64 * math.log(2)
    margin = np.asarray(slack) + 2.0**-44  # for the logarithms, at most 45, and for the sum
    decided = np.asarray(high + margin <= log_p)
    for i in np.flatnonzero(~decided & (low - margin < log_p)).tolist():
        decided[i] = below(int(words[i]), 64, exact(i), randomness)
    return decided


def first_kept(
    n: int, most: int, batch: Callable[[int], npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    """The first n of those that batch(size) keeps of so many proposals, at most `most` at a time;
    the size of a batch follows from the share that was kept before.
    """
    drawn, survivors, tables = 1, 1, list[npt.NDArray[np.int64]]()
    while (missing := n - (survivors - 1)) > 0 or not tables:
        size = min(math.ceil(1.1 * missing * drawn / survivors) + 2, most)
        tables.append(batch(size))
        drawn, survivors = drawn + size, survivors + len(tables[-1])
    return np.concatenate(tables)[:n]


def happens(log_p: Callable[[], Any], randomness: Randomness) -> bool:
    """True with probability p, exactly, from a fresh word; log_p() <= 0 is a ball."""
    return below(randomness.word(), 64, log_p, randomness)


def bernoulli_exp(gamma: Fraction | int, randomness: Randomness) -> bool:
    """Return True with probability exp(-gamma), exactly, for a rational gamma >= 0.

    >>> from congenial.sampling.randomness import RecordedRandomness
    >>> bernoulli_exp(Fraction(1), RecordedRandomness([0]))
    True
    """
    if gamma < 0:
        raise GuaranteeError(
            "gamma < 0: exp(-gamma) is not a probability.", remedy="Give gamma >= 0."
        )
    return happens(lambda: -ball(gamma), randomness)


def pick(word: int, bits: int, weights: Callable[[], Sequence[Any]], randomness: Randomness) -> int:
    """Return index i with probability weights[i] / sum, by inversion in the order given.

    U starts with the `bits` bits of `word`; weights() are positive balls at any precision.

    >>> from congenial.sampling.randomness import RecordedRandomness
    >>> pick(2, 2, lambda: [arb(1), arb(1)], RecordedRandomness([]))  # U in [1/2, 3/4]
    1
    """
    guard = 64
    while True:
        with working_precision(bits + guard):
            ws = weights()
            total = sum(ws, arb(0))
            scale = arb(2) ** bits / total
            narrow, running, before = True, arb(0), arb(0)
            for i, w in enumerate(ws):
                running += w
                after = running * scale
                last = i == len(ws) - 1
                if before <= word and (last or after >= word + 1):
                    return i
                if not after <= word:
                    narrow = bool(after.rad() < 1)
                    break
                before = after
        if narrow:
            word, bits = (word << 64) | randomness.word(), bits + 64
        else:
            guard *= 2


def pick_fast(
    weights: npt.NDArray[np.float64],
    slack: float,
    exact: Callable[[], Sequence[Any]],
    randomness: Randomness,
) -> int:
    """As `pick` from a fresh word, by doubles where they are clear: `weights` are within the
    relative error `slack` of exact(), roundings of their sum included.
    """
    word = randomness.word()
    sums = np.cumsum(weights)
    low, high = word * 2.0**-64 * sums[-1], (word + 1) * 2.0**-64 * sums[-1]
    margin = 4 * slack * sums[-1]
    i = min(int(np.searchsorted(sums, high + margin)), len(sums) - 1)  # U < 1: the last one is it
    if i == 0 or sums[i - 1] + margin <= low:
        return i
    return pick(word, 64, exact, randomness)
