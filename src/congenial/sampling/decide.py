"""Decisions by a lazily refined uniform: exact whatever the probabilities, no rounding in the law.

U = 0.w1 w2 w3 ... starts with the bits a fast path has already looked at. As long as what is known
of U leaves the decision open, precision grows or one more word is taken; both end with probability
one. So a fast path in doubles may decide whatever is clear and hand the rest over: the result is
the same function of the words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from congenial.sampling.ball_precision import working_precision
from congenial.sampling.randomness import Randomness


def below(word: int, bits: int, log_p: Callable[[], Any], randomness: Randomness) -> bool:
    """Return U < p for a U whose first `bits` bits are `word`; log_p() is a ball at any precision.

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
