"""Exact draws from any log-concave law on the integers, by inversion or by rejection.

**Inversion.** The draw is the smallest x with F(x) > U, where U = 0.w1 w2 w3 ... in base 2^64 is
refined only as far as needed: after L words U is known to lie in [W, W + 1] / 2^(64 L), and x is
decided when that interval lies in [F(x - 1), F(x)]. A table holds integer bounds of F(x) 2^(64 L),
computed in ball arithmetic (arb), tails included as balls; whatever it cannot decide takes one
more word and a finer table. The bounds are rigorous and the undecided words have probability at
most 2 (number of boundaries + 2) / 2^(64 L), which tends to 0, so the loop ends with probability
one and the law is the stated one: H = 0, tau = 0 in the sense of the guarantee.

**Rejection.** A law too wide for a table is drawn below a staircase (see `_draw_staircase`), also
exactly.

**Order of words.** A bulk draw of n values takes n words first; the undecided ones then take
further words one at a time, in order. The compiled search and plain ball arithmetic are the same
function of the words.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from congenial.errors import GuaranteeError, RandomnessError
from congenial.sampling.randomness import Randomness, uniform_below

Ints = npt.NDArray[np.int64]

_TAIL_BITS = 80  # a table leaves out at most 2^-80 of its own resolution
_HALF_WIDTH = 1 << 16  # a law that needs a wider first table is drawn by rejection
_LARGEST = 1 << 62  # a draw beyond this would not be a safe 64-bit integer


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


class ExactLaw(ABC):
    """A log-concave law on the integers (all, or those >= `lowest`), known up to a constant.

    A subclass gives its mode and its weights in ball arithmetic; drawing is done here.
    """

    lowest: int | None = None

    @property
    @abstractmethod
    def mode(self) -> int:
        """A point of largest probability."""

    @abstractmethod
    def _ratio(self, x: int) -> Any:
        """Return w(x + 1) / w(x) as a ball; decreasing in x (log-concavity)."""

    @abstractmethod
    def _log_weight(self, x: int) -> Any:
        """Return log w(x) - log w(mode) as a ball, for x >= lowest."""

    def draw(self, randomness: Randomness, n: int) -> Ints:
        """Return n independent exact draws. Raises RandomnessError if the source fails."""
        if _fits_a_table(self):
            return _draw_inverse(self, randomness, n)
        return _draw_staircase(self, randomness, n)


# --- inversion -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Boundaries:
    """Integer bounds lower[i] <= F(first + i) 2^(64 level) <= upper[i]; `below` bounds F(first
    - 1).
    """

    first: int
    below: int
    lower: list[int]
    upper: list[int]

    def locate(self, word: int) -> int | None:
        """Return the x decided by U in [word, word + 1] / 2^(64 level), or None."""
        i = bisect_right(self.lower, word)
        if i == len(self.lower) or word < (self.upper[i - 1] if i else self.below):
            return None
        return self.first + i


def _side(law: ExactLaw, step: int, tiny: Any) -> tuple[list[Any], Any]:
    """Weights (mode = 1) away from the mode on one side, and a ball that holds the mass left out.

    Ratios decrease away from the mode, so the mass beyond x is at most w(x) r / (1 - r) with the
    next r.
    """
    weights: list[Any] = []
    x, w = law.mode, arb(1)
    while True:
        if step < 0 and x == law.lowest:
            return weights, arb(0)
        r = law._ratio(x) if step > 0 else 1 / law._ratio(x - 1)
        w_next = w * r
        if w_next < tiny and r < 1:
            beyond = w_next / (1 - r)
            if beyond < tiny:
                return weights, arb(0).union(beyond)
        weights.append(w_next)
        x, w = x + step, w_next


def _integer_bounds(value: Any) -> tuple[int, int]:
    """Integers around a ball, one apart unless the ball touches an integer."""
    whole = value.floor().unique_fmpz()
    if whole is not None:
        return int(whole), int(whole) + 1
    return int(value.lower().floor().unique_fmpz()), int(value.upper().ceil().unique_fmpz())


@lru_cache(maxsize=32)  # drawing keeps `_word_table`; this is for the rare undecided word
def _boundaries(law: ExactLaw, level: int) -> _Boundaries:
    """The table of one level, by summing positive balls outwards from the mode."""
    bits = 64 * level
    with ctx.workprec(bits + _TAIL_BITS + 64):
        tiny = arb(2) ** -(bits + _TAIL_BITS)
        left, left_tail = _side(law, -1, tiny)
        right, right_tail = _side(law, +1, tiny)
        weights = [*reversed(left), arb(1), *right]
        total = left_tail + right_tail
        for w in weights:
            total += w
        scale = arb(2) ** bits / total
        below = int((left_tail * scale).upper().ceil().unique_fmpz())
        lower, upper, running = [], [], left_tail
        for w in weights:
            running += w
            low, high = _integer_bounds(running * scale)
            lower.append(low)
            upper.append(min(1 << bits, high))  # F <= 1
    return _Boundaries(law.mode - len(left), below, lower, upper)


@lru_cache(maxsize=1024)
def _word_table(law: ExactLaw, bits: int) -> tuple[int, npt.NDArray[Any], npt.NDArray[Any], Ints]:
    """The first level as arrays: first x, lower bounds, upper bounds shifted by one, guide.

    `bits` < 64 coarsens the bounds outwards; a test uses it to send most words to the slow path.
    guide[t] is the first index whose lower bound exceeds the smallest word with leading bits t.
    """
    table = _boundaries(law, 1)
    grain = 1 << (64 - bits)
    lower = [v // grain * grain for v in table.lower]
    before = [-(-v // grain) * grain for v in [table.below, *table.upper[:-1]]]
    # F < 1, so lower bounds fit a word; an index whose predecessor may reach 2^64 decides no word
    keep = sum(v < 1 << 64 for v in before)
    lows = np.array(lower[:keep], dtype=np.uint64)
    guide_bits = min(16, max(4, keep.bit_length() + 1))
    starts = np.arange(1 << guide_bits, dtype=np.uint64) << np.uint64(64 - guide_bits)
    guide = np.searchsorted(lows, starts, side="right").astype(np.int64)
    return table.first, lows, np.array(before[:keep], dtype=np.uint64), guide


def _draw_inverse(law: ExactLaw, randomness: Randomness, n: int, bits: int = 64) -> Ints:
    """n draws by inversion: compiled search on one word each, then the undecided ones in order."""
    from congenial.sampling import _kernels  # numba only when something is drawn

    first, lower, before, guide = _word_table(law, bits)
    words = randomness.words(n)
    out: Ints = _kernels.locate(words, lower, before, guide)
    undecided = np.flatnonzero(out < 0)
    out += first
    for i in undecided:
        out[i] = _refine(law, int(words[i]), randomness)
    return out


def _refine(law: ExactLaw, word: int, randomness: Randomness) -> int:
    """Decide one draw whose first word is given, taking further words as long as F is too close."""
    level = 1
    while True:
        x = _boundaries(law, level).locate(word)
        if x is not None:
            break
        word = (word << 64) | randomness.word()
        level += 1
    if abs(x) >= _LARGEST:
        raise RandomnessError(
            "a draw does not fit 64 bits; nothing was released.", remedy="Try again."
        )
    return x


# --- rejection -----------------------------------------------------------------------------------


def _log_weight_at_most(law: ExactLaw, x: int, bound: int) -> bool:
    """Whether log w(x)/w(mode) <= bound is certain."""
    if law.lowest is not None and x < law.lowest:
        return True
    with ctx.workprec(256):
        return bool(law._log_weight(x) <= bound)


@lru_cache(maxsize=1024)
def _fits_a_table(law: ExactLaw) -> bool:
    least = -math.ceil((64 + _TAIL_BITS) * math.log(2))
    return all(_log_weight_at_most(law, law.mode + s * _HALF_WIDTH, least) for s in (-1, 1))


@lru_cache(maxsize=1024)
def _stair(law: ExactLaw) -> int:
    """The smallest s found with w(mode - s) and w(mode + s) both at most w(mode) / e."""

    def low_enough(s: int) -> bool:
        return all(_log_weight_at_most(law, law.mode + sign * s, -1) for sign in (-1, 1))

    high = 1
    while not low_enough(high):
        high *= 2
        if high > _LARGEST >> 16:
            raise GuaranteeError(
                "the noise asked for is so wide that it may not fit 64 bits.",
                remedy="Ask for a larger epsilon (a smaller variance).",
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if low_enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class _Geometric(ExactLaw):
    """p(x) = (1 - a) a^x on x >= 0, a = exp(-eps)."""

    eps: Fraction
    lowest = 0

    @property
    def mode(self) -> int:
        return 0

    def _ratio(self, x: int) -> Any:  # noqa: ARG002 - the ratio is constant
        return exp_ball(-self.eps)

    def _log_weight(self, x: int) -> Any:
        return -ball(self.eps * x)


_UNIT = _Geometric(Fraction(1))


def _draw_staircase(law: ExactLaw, randomness: Randomness, n: int) -> Ints:
    """n draws by rejection below a staircase, for laws of any width.

    With s as in `_stair`, log w is concave and 0 at the mode, so w(mode +- i) <= e^-b for
    b = floor(i / s). Propose b with probability ~ e^-b, the place in the step and the sign
    uniformly (a negative zero is refused, else 0 would count twice), accept with probability w e^b
    <= 1. More than half of the proposals survive (.56 for a Gaussian, .63 for a double geometric).

    Words: the b of all outstanding draws, then for each in order place, sign and acceptance.
    """
    s = _stair(law)
    accepted: list[int] = []
    while len(accepted) < n:
        for b in _draw_inverse(_UNIT, randomness, n - len(accepted)).tolist():
            place, negative = divmod(uniform_below(2 * s, randomness), 2)
            i = b * s + place
            x = law.mode - i if negative else law.mode + i
            if (negative and i == 0) or (law.lowest is not None and x < law.lowest):
                continue
            if abs(x) >= _LARGEST:
                raise RandomnessError(
                    "a draw does not fit 64 bits; nothing was released.", remedy="Try again."
                )
            if _accepted(law, x, b, randomness):
                accepted.append(x)
    return np.array(accepted, dtype=np.int64)


def _accepted(law: ExactLaw, x: int, b: int, randomness: Randomness) -> bool:
    """True with probability w(x)/w(mode) e^b."""
    return _bernoulli(lambda: law._log_weight(x) + b, randomness)


def _bernoulli(log_p: Callable[[], Any], randomness: Randomness) -> bool:
    """Return U < p for a lazily refined uniform U, where log_p() <= 0 is a ball at any precision.

    Precision grows until the ball is narrow; then a word is added only if p is that close to U,
    which has probability below 2^-62 per word taken.
    """
    word, level, guard = randomness.word(), 1, 64
    while True:
        with ctx.workprec(64 * level + guard):
            p = log_p().exp() * arb(2) ** (64 * level)
            if p >= word + 1:
                return True
            if p <= word:
                return False
            narrow = p.rad() < 1
        if narrow:
            word = (word << 64) | randomness.word()
            level += 1
        else:
            guard *= 2


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
    return _bernoulli(lambda: -ball(gamma), randomness)
