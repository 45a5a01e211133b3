"""Exact draws from any log-concave law on the integers, by inversion or by rejection.

**Inversion.** The draw is the smallest x with F(x) > U, where the uniform U is refined only as far
as needed: when it is known to b bits it lies in [W, W + 1] / 2^b, and x is decided when that
interval lies in [F(x - 1), F(x)]. The bounds of F are rigorous, tails included. In a
round with b bits at most (number of boundaries + 2) / 2^b of the draws stay undecided, which tends
to 0, so the loop ends with probability one and the law is the stated one: H = 0 in the
sense of the guarantee.

**Bounds of F** come in two forms. `boundaries` is ball arithmetic (arb) at any resolution: slow to
build, as tight as asked, needed about once in a million draws or less. `word_bounds` is double
precision with every rounding error accounted for: built in well under a millisecond, one 64-bit
bound on each side of F(x), good for all but about 1e-9 of the draws of an ordinary law. What the
second cannot decide is handed to the first, so the second only has to be right, never sharp.

**Order of words**, the same for every law. Draws are made in chunks of 2^16. In round 0 each draw
of a chunk gets 16 bits: four draws share a word, the first takes the lowest bits, and what is left
of the last word is thrown away. In round 1, 2, ... each draw that is still undecided, in order,
gets one word of its own as the next 64 bits. So the draws are a function of the words and of F
alone: a table of all 65,536 answers, a search in 64-bit bounds and plain ball arithmetic give
the same draws.

**Rejection.** A law too wide for a table is drawn below a staircase (see `_draw_staircase`), also
exactly.
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
from flint import arb

from congenial.data.arrays import Floats, Ints
from congenial.data.loops import loop
from congenial.errors import GuaranteeError, RandomnessError
from congenial.sampling.exact_decisions import all_below, ball, exp_ball, working_precision
from congenial.sampling.randomness import Randomness

Words = npt.NDArray[np.uint64]

_TAIL_BITS = 80  # a ball table leaves out at most 2^-80 of its own resolution
_U = 2.0**-53  # unit round-off of a double
_LEAST = 2.0**-70  # a word table leaves out weights below this (the mode has weight 1)
_TOP = np.uint64(2**64 - 1)
UNDECIDED = -1  # certain: no x is decided by these bits
UNSURE = -2  # the bounds are not sharp enough to say
_SHIFTS = np.arange(0, 64, 16, dtype=np.uint64)  # of the four draws that share a word
_GUIDE_BITS = 12  # at most this many leading bits of a word narrow the search


def bits_at(level: int) -> int:
    """How many bits of U are known in round `level`: 16, 80, 144, ..."""
    return 16 + 64 * level


# --- ball arithmetic -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Boundaries:
    """Integer bounds lower[i] <= F(first + i) 2^bits <= upper[i]; `below` bounds F(first - 1)."""

    first: int
    below: int
    lower: list[int]
    upper: list[int]

    def locate(self, prefix: int) -> int | None:
        """Return the x decided by U in [prefix, prefix + 1] / 2^bits, or None."""
        i = bisect_right(self.lower, prefix)
        if i == len(self.lower) or prefix < (self.upper[i - 1] if i else self.below):
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


@lru_cache(maxsize=32)  # for the rare draw that a word table does not decide
def boundaries(law: ExactLaw, level: int) -> Boundaries:
    """The bounds of one round, by summing positive balls outwards from the mode."""
    bits = bits_at(level)
    with working_precision(bits + _TAIL_BITS + 64):
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
    return Boundaries(law.mode - len(left), below, lower, upper)


# --- double precision ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WordBounds:
    """lower[i] <= F(first + i) 2^64 <= upper[i + 1], and F(first - 1) 2^64 <= upper[0].

    Both arrays ascend. guide, of length 2^g, holds at t the first i with lower[i] > t 2^(64 - g).
    """

    first: int
    lower: Words
    upper: Words
    guide: npt.NDArray[np.int32]


def _outward(law: ExactLaw, step: int) -> tuple[Floats, float]:
    """Weights (mode = 1) on one side, nearest first, and an upper bound of the mass left out."""
    parts: list[Floats] = []
    x, w, size = law.mode, 1.0, 256
    while True:
        if step < 0 and law.lowest is not None:
            size = min(size, x - law.lowest)
            if size == 0:
                return np.concatenate([*parts, np.empty(0)]), 0.0
        away = np.arange(size, dtype=np.int64)
        with np.errstate(over="ignore", under="ignore"):
            r = law._ratios(x + away) if step > 0 else 1 / law._ratios(x - 1 - away)
            weights: Floats = w * np.cumprod(r, dtype=np.float64)
        if weights[-1] < _LEAST:
            end = int(np.argmax(weights < _LEAST))
            # far below the mode r is below 1 by much more than its error; 1e-300 is for underflow
            tail = 1.001 * float(weights[end]) / (1 - float(r[end])) + 1e-300
            return np.concatenate([*parts, weights[:end]]), tail
        parts.append(weights)
        x, w, size = x + step * size, float(weights[-1]), 2 * size


def _error(weights: Floats) -> Floats:
    """Relative error bound of weights made by `_outward`, nearest first.

    A ratio is off by (16 + 4 |log r|) u (the contract of `_ratios`), its inverse and the running
    product by u each; the |log r| up to a weight w sum to |log w|, up to errors far below the
    slack.
    """
    steps = np.arange(1, weights.size + 1)
    return np.asarray((20.0 * steps + 5 * np.abs(np.log(weights)) + 20) * _U)


def _to_words(fractions: Floats, up: bool) -> Words:
    """floor or ceiling of fractions x 2^64, at most 2^64 - 1."""
    scaled = np.maximum(np.ceil(fractions * 2.0**64) if up else np.floor(fractions * 2.0**64), 0.0)
    inside = scaled < 2.0**64
    return np.where(inside, np.where(inside, scaled, 0).astype(np.uint64), _TOP)


@lru_cache(maxsize=2048)
def word_bounds(law: ExactLaw, bits: int = 64) -> WordBounds:
    """Bounds of F as words. `bits` < 64 widens them to multiples of 2^(64 - bits), for tests.

    With A the mass up to x and B the mass beyond, F = A / (A + B) is bounded by giving every
    weight the error that favours one side, and every sum of m positive terms m u. The mass left
    out counts on the side that widens the bound.
    """
    left, left_tail = _outward(law, -1)
    right, right_tail = _outward(law, +1)
    weights = np.concatenate([left[::-1], [1.0], right])
    error = np.concatenate([_error(left)[::-1], [0.0], _error(right)])
    sums = (weights.size + 8) * _U  # rounding of a running sum and of the few operations on it
    small = np.cumsum(weights * (1 - error)) * (1 - sums)
    large = (left_tail + np.cumsum(weights * (1 + error))) * (1 + sums)
    beyond_small = np.append(np.cumsum((weights * (1 - error))[::-1])[::-1][1:], 0.0) * (1 - sums)
    beyond_large = np.append(np.cumsum((weights * (1 + error))[::-1])[::-1][1:], 0.0) * (1 + sums)
    lower = small / (small + (beyond_large + right_tail) * (1 + sums)) * (1 - 8 * _U)
    upper = np.append(left_tail / small[-1], large / (large + beyond_small)) * (1 + 8 * _U)
    lows = np.maximum.accumulate(_to_words(lower, up=False))
    highs = np.minimum.accumulate(_to_words(upper, up=True)[::-1])[::-1]
    if bits < 64:
        grain = np.uint64((1 << (64 - bits)) - 1)
        lows &= ~grain
        highs = np.where(highs > _TOP - grain, _TOP, (highs + grain) & ~grain)
    g = min(_GUIDE_BITS, max(4, lows.size.bit_length() + 1))
    starts = np.arange(1 << g, dtype=np.uint64) << np.uint64(64 - g)
    guide = np.searchsorted(lows, starts, side="right").astype(np.int32)
    highs = np.ascontiguousarray(highs)
    for array in (lows, highs, guide):
        array.flags.writeable = False
    return WordBounds(law.mode - left.size, lows, highs, guide)


_CHUNK = 1 << 16  # draws made at a time
_ENOUGH = 1 << 14  # draws at a time that pay for a table of all 65,536 answers
_LOG_ERROR = 2.0**-47  # relative error allowed for log weights in doubles, with room to spare
_HALF_WIDTH = 1 << 16  # a law that needs a wider first table is drawn by rejection
_LARGEST = 1 << 62  # a draw beyond this would not be a safe 64-bit integer


class ExactLaw(ABC):
    """A log-concave law on the integers (all, or those >= `lowest`), known up to a constant.

    A subclass gives its weights in ball arithmetic, and its mode where that is not 0; drawing is
    done here. A draw of one chunk is a function of `Randomness.words` alone, so laws may be drawn
    in several threads.
    """

    lowest: int | None = None

    @property
    def mode(self) -> int:
        """A point of largest probability: 0, unless a law says otherwise."""
        return 0

    @abstractmethod
    def _ratio(self, x: int) -> Any:
        """Return w(x + 1) / w(x) as a ball; decreasing in x (log-concavity)."""

    @abstractmethod
    def _log_weight(self, x: int) -> Any:
        """Return log w(x) - log w(mode) as a ball, for x >= lowest."""

    def _ratios(self, x: Ints) -> Floats:
        """Return w(x + 1) / w(x) in doubles, relative error at most (16 + 4 |log ratio|) 2^-53.

        Good for any law as it is; a law that is set up often gives a vectorised one.
        """
        with working_precision(128):
            return np.array([float(self._ratio(int(v))) for v in x])

    def _log_weights(self, x: Ints) -> Floats:
        """Return log w(x)/w(mode) in doubles, error at most 2^-49 (1 + its absolute value)."""
        with working_precision(192):
            return np.array([float(self._log_weight(int(v))) for v in x])

    def draw(self, randomness: Randomness, n: int) -> Ints:
        """Return n independent exact draws. Raises RandomnessError if the source fails."""
        if _fits_a_table(self):
            return _draw_inverse(self, randomness, n)
        return _draw_staircase(self, randomness, n)


# --- inversion -----------------------------------------------------------------------------------


@loop
def _answer(low: Any, high: Any, lower: Any, upper: Any, guide: Any, shift: Any) -> Any:
    """What is decided by U 2^64 in [low, high + 1]: the index i of x, UNDECIDED or UNSURE.

    lower[i] <= F(x) 2^64 <= upper[i + 1] and F(x - 1) 2^64 <= upper[i] for x = first + i.
    """
    i = np.int64(guide[low >> shift])
    while i < lower.size and lower[i] <= low:
        i += 1
    if i < lower.size:
        if upper[i] <= low and lower[i] > high:
            return i
        if upper[i + 1] <= high:  # low < F(x) 2^64 < high + 1: a boundary is strictly inside
            return UNDECIDED
    return UNSURE


@loop
def _shift(guide: Any) -> Any:
    """64 - g for a guide of length 2^g."""
    g = 0
    while (1 << g) < guide.size:
        g += 1
    return np.uint64(64 - g)


@loop
def _answer_lane(lane: Any, lower: Any, upper: Any, guide: Any, shift: Any) -> Any:
    low = np.uint64(lane) << np.uint64(48)
    return _answer(low, low | np.uint64((1 << 48) - 1), lower, upper, guide, shift)


@loop
def _lane(words: Any, j: int) -> Any:
    """The 16 bits of draw j: four draws share a word, the first takes the lowest bits."""
    return (words[j >> 2] >> np.uint64((j & 3) << 4)) & np.uint64(0xFFFF)


@loop
def search_lanes(words: Any, lower: Any, upper: Any, guide: Any, out: Any) -> Any:
    """Round 0 by search: answers into out; returns the places without an x."""
    places = np.empty(out.size, np.int64)
    count = 0
    shift = _shift(guide)
    for j in range(out.size):
        out[j] = _answer_lane(_lane(words, j), lower, upper, guide, shift)
        if out[j] < 0:
            places[count] = j
            count += 1
    return places[:count]


@loop
def look_up(words: Any, answers: Any, out: Any) -> Any:
    """Round 0 from the table of all answers: the same as `search_lanes`."""
    places = np.empty(out.size, np.int64)
    count = 0
    mask = np.uint64(0xFFFF)
    whole = out.size >> 2
    for i in range(whole):  # a word at a time; four answers share one branch
        word = words[i]
        a = answers[word & mask]
        b = answers[(word >> np.uint64(16)) & mask]
        c = answers[(word >> np.uint64(32)) & mask]
        d = answers[word >> np.uint64(48)]
        j = i << 2
        out[j], out[j + 1], out[j + 2], out[j + 3] = a, b, c, d
        if (a | b | c | d) < 0:
            for t in range(j, j + 4):
                places[count] = t
                count += out[t] < 0
    for j in range(whole << 2, out.size):
        out[j] = answers[_lane(words, j)]
        if out[j] < 0:
            places[count] = j
            count += 1
    return places[:count]


@loop
def search_words(
    lanes: Any, fresh: Any, lower: Any, upper: Any, guide: Any, places: Any, out: Any
) -> None:
    """Round 1: 80 bits of U are known, of which the first 64 are looked at."""
    shift = _shift(guide)
    for i in range(places.size):
        word = (lanes[i] << np.uint64(48)) | (fresh[i] >> np.uint64(16))
        out[places[i]] = _answer(word, word, lower, upper, guide, shift)


@lru_cache(maxsize=64)
def _answers(law: ExactLaw, bits: int) -> npt.NDArray[Any]:
    """What 16 bits decide, for each of their 65,536 values UNDECIDED and UNSURE included."""
    bounds, lanes = word_bounds(law, bits), np.arange(1 << 16, dtype=np.uint64)
    words, table = (
        np.bitwise_or.reduce(lanes.reshape(-1, 4) << _SHIFTS, axis=1),
        np.empty(1 << 16, np.int32),
    )
    search_lanes(words, bounds.lower, bounds.upper, bounds.guide, table)
    return table.astype(np.int16) if table.max() < 1 << 15 else table


def _draw_inverse(law: ExactLaw, randomness: Randomness, n: int, bits: int = 64) -> Ints:
    """n draws by inversion. `bits` < 64 widens the bounds; tests use it to reach every path."""
    out = np.empty(n, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        _fill(law, randomness, out[start : start + _CHUNK], bits)
    return out


def _fill(law: ExactLaw, randomness: Randomness, out: Ints, bits: int) -> None:
    """Draw one chunk: rounds 0 and 1 compiled, what these cannot decide in ball arithmetic.

    Until the last line `out` holds x - first, or a negative code where x is not known yet.
    """
    bounds = word_bounds(law, bits)
    search = bounds.lower, bounds.upper, bounds.guide
    words = randomness.words(-(-out.size // 4))
    if out.size >= _ENOUGH:
        places = look_up(words, _answers(law, bits), out)
    else:
        places = search_lanes(words, *search, out)
    if not places.size:
        out += bounds.first
        return
    lanes = (words[places >> 2] >> _SHIFTS[places & 3]) & np.uint64(0xFFFF)
    for j in np.flatnonzero(out[places] == UNSURE):
        x = boundaries(law, 0).locate(int(lanes[j]))
        out[places[j]] = UNDECIDED if x is None else x - bounds.first
    undecided = out[places] < 0
    places, lanes = places[undecided], lanes[undecided]
    if places.size:
        fresh = randomness.words(places.size)
        search_words(lanes, fresh, *search, places, out)
        slow = np.flatnonzero(out[places] < 0)
        prefixes = [(int(lanes[j]) << 64) | int(fresh[j]) for j in slow]
        values = _refine(law, prefixes, randomness)
        out[places[slow]] = np.array(values, dtype=np.int64) - bounds.first
    out += bounds.first


def _refine(law: ExactLaw, prefixes: list[int], randomness: Randomness) -> list[int]:
    """Decide draws whose first 80 bits are given, round by round."""
    numbers: list[int | None] = [None] * len(prefixes)
    level, pending = 1, list(range(len(prefixes)))
    while pending:
        table = boundaries(law, level)
        for i in pending:
            numbers[i] = table.locate(prefixes[i])
        pending = [i for i in pending if numbers[i] is None]
        for i, word in zip(pending, randomness.words(len(pending)), strict=True):
            prefixes[i] = (prefixes[i] << 64) | int(word)
        level += 1
    return [_checked(x) for x in numbers if x is not None]


def _checked(x: int) -> int:
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
    with working_precision(256):
        return bool(law._log_weight(x) <= bound)


@lru_cache(maxsize=1024)
def _fits_a_table(law: ExactLaw) -> bool:
    least = -math.ceil(144 * math.log(2))  # 80 bits, and 64 more that no table resolves
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

    Words, for up to 2^16 outstanding draws at a time: their b; a word each for place and sign
    (again for the few in the surplus); a word each for the acceptance of those in the support,
    and further words, in order, for those it does not decide.
    """
    s = _stair(law)
    accepted = [np.empty(0, dtype=np.int64)]
    missing = n
    while missing:
        b = _draw_inverse(_UNIT, randomness, min(missing, _CHUNK))
        _checked(int(b.max()) * s + s)
        place = _uniform_words(2 * s, randomness, b.size)
        i, negative = b * s + place // 2, place % 2 == 1
        x = law.mode + np.where(negative, -i, i)
        inside = ~(negative & (i == 0))
        if law.lowest is not None:
            inside &= x >= law.lowest
        x, b = x[inside], b[inside]
        accepted.append(x[_accepted(law, x, b, randomness)])
        missing -= accepted[-1].size
    return np.concatenate(accepted)


def _uniform_words(n: int, randomness: Randomness, size: int) -> Ints:
    """Integers uniform below n < 2^63, exactly: a word each, again where it is in the surplus."""
    from congenial.sampling import word_kernels

    out = np.empty(size, dtype=np.int64)
    places = np.arange(size)
    while places.size:
        places = word_kernels.scale_words(randomness.words(places.size), n, places, out)
    return out


def _accepted(law: ExactLaw, x: Ints, b: Ints, randomness: Randomness) -> npt.NDArray[np.bool_]:
    """True with probability w(x)/w(mode) e^b, for each x."""
    words = randomness.words(x.size)
    log_w = law._log_weights(x)
    slack = _LOG_ERROR * (2 + np.abs(log_w) + b)

    def exact(i: int) -> Callable[[], Any]:
        return lambda: law._log_weight(int(x[i])) + int(b[i])

    return all_below(words, log_w + b, slack, exact, randomness)
