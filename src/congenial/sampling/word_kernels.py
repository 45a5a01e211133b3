"""Compiled loops for uniform integers, subsets and compositions. They read words from an array, say
how many they used, and never look at a word twice for two different results.

**Integers below n** (Lemire 2019). The high word of x n, x uniform on 64 bits, is uniform below n
once the x whose low word is below 2^64 mod n are thrown away. The low word of a product is uniform
again given the high one, so that one x serves several bounds.

**Subsets of size m of n places** (Floyd; Bentley and Floyd 1987). For j = n - m .. n - 1 a place
uniform on 0 .. j is added, or j itself where that place is taken already: by induction the set is
uniform among the subsets of 0 .. j of its size after each step.

**Compositions** of q into k parts are the subsets of k - 1 bars among q + k - 1 places."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending

types: Any = numba.types


# --- uniform subsets and compositions ------------------------------------------------------------


def _multiply_code(typing_context: Any, x: Any, n: Any) -> Any:  # noqa: ARG001 - numba's protocol
    """The 128-bit product of two words, as (high word, low word)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in args))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
        low = builder.trunc(product, ir.IntType(64))
        return context.make_tuple(builder, signature.return_type, (high, low))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


_multiply: Any = extending.intrinsic(_multiply_code)


def _lowest_bit_code(typing_context: Any, x: Any) -> Any:  # noqa: ARG001 - numba's protocol
    """The position of the lowest set bit of a word (64 if there is none)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


_lowest_bit: Any = extending.intrinsic(_lowest_bit_code)


@numba.njit(cache=True, error_model="numpy")
def per_word(n: int) -> int:
    """How many integers below n >= 2 are cut from one word: the most with n^m <= 2^60, at least
    one.
    """
    most = (1 << 60) // n
    m, product = 1, n
    while product <= most:
        product *= n
        m += 1
    return m


_PER_WORD = np.array([1, 1, *(per_word.py_func(n) for n in range(2, 1024))], dtype=np.uint8)


@numba.njit(cache=True, error_model="numpy")
def _draw_picks(words: Any, at: int, n: int, size: int, picks: Any) -> Any:
    """Fill picks[i] with an integer uniform below n - size + i + 1, for i < size; return the next
    unread word, or -1.

    Words serve `per_word(n)` integers each. A word x is multiplied by the first bound: the high
    word is the first integer, the low word goes on to the next bound. With N the product of the
    bounds the integers are the digits of floor(x N / 2^64); a word whose last low word is below
    2^64 mod N is thrown away, which leaves equally many x for every result (Lemire's rejection).
    """
    m: Any = per_word(n) if n >= _PER_WORD.size else np.int64(_PER_WORD[n])
    done = 0
    while done < size:
        if at >= words.size:
            return -1
        x = words[at]
        at += 1
        end = min(done + m, size)
        product = np.uint64(1)
        for i in range(done, end):
            bound = np.uint64(n - size + i + 1)
            picks[i], x = _multiply(x, bound)
            product *= bound
        if x >= product or x >= (np.uint64(0) - product) % product:
            done = end
    return at


@numba.njit(cache=True, error_model="numpy")
def scale_words(words: Any, n: int, places: Any, out: Any) -> Any:
    """Make each word an integer below n, into out at its place; return the places still open.

    As in `_draw_picks`, with one integer to a word.
    """
    bound = np.uint64(n)
    surplus = (np.uint64(0) - bound) % bound
    again = np.empty(places.size, np.int64)
    count = 0
    for i in range(places.size):
        high, low = _multiply(words[i], bound)
        out[places[i]] = high
        again[count] = places[i]
        count += low < surplus
    return again[:count]


@numba.njit(cache=True, error_model="numpy")
def _bars_in_a_word(picks: Any, n: int, k: int, places: Any) -> None:
    """The k - 1 bars among n <= 64 places; the set is one word (Floyd's method)."""
    unit = np.uint64(1)
    size = min(k - 1, n - k + 1)
    chosen = np.uint64(0)
    for i in range(size):
        j = np.uint64(n - size + i)
        taken = (chosen >> picks[i]) & unit
        chosen |= unit << (picks[i] + taken * (j - picks[i]))  # j itself if the pick is taken
    if size < k - 1:
        chosen ^= ~np.uint64(0) >> np.uint64(64 - n)
    for i in range(k - 1):
        places[i] = _lowest_bit(chosen)
        chosen &= chosen - unit


@numba.njit(cache=True, error_model="numpy")
def _bars_by_marks(picks: Any, n: int, k: int, places: Any, marks: Any) -> None:
    """As `_bars_in_a_word`, with a byte per place."""
    size = min(k - 1, n - k + 1)
    for i in range(size):
        j = n - size + i
        pick = np.int64(picks[i])
        place = np.uint64(pick + marks[pick] * (j - pick))  # j itself if pick is taken; no branch
        marks[place] = 1
    flip = np.uint8(size < k - 1)
    c: Any = np.uint64(0)
    for i in range(n):  # no branch: the last write to places[c] is the c-th bar
        places[c] = i
        c += np.uint64(marks[i] ^ flip)
    marks[:n] = 0


@numba.njit(cache=True, error_model="numpy")
def _find(chosen: Any, value: int) -> Any:
    """Slot of value in an open-addressing set (-1 = empty): the one that holds it, or a free
    one.
    """
    mask = chosen.size - 1
    slot = (value ^ (value >> 17)) & mask
    while chosen[slot] >= 0 and chosen[slot] != value:
        slot = (slot + 1) & mask
    return slot


@numba.njit(cache=True, error_model="numpy")
def _bars_by_list(picks: Any, n: int, k: int, places: Any) -> None:
    """As `_bars_in_a_word`, for many more places than bars: a hashed set, then sorted."""
    slots = 2
    while slots < 2 * k:
        slots *= 2
    chosen = np.full(slots, -1, np.int64)
    for i in range(k - 1):
        pick: Any = np.int64(picks[i])
        slot = _find(chosen, pick)
        if chosen[slot] >= 0:
            pick = n - k + 1 + i
            slot = _find(chosen, pick)
        chosen[slot] = pick
        places[i] = pick
    places[: k - 1].sort()


@numba.njit(cache=True, error_model="numpy")
def draw_bars(words: Any, at: Any, q: Any, k: Any, places: Any, picks: Any, marks: Any) -> Any:
    """Draw a uniform weak composition of q into k parts; return the next unread word, or -1.

    Compositions are the (k - 1)-subsets ("bars") of n = q + k - 1 places; part i is the number of
    places between bars i - 1 and i. Of bars and stars the smaller set is drawn, by Floyd's method
    from the integers of `_draw_picks`. The bars go to places, in order; places[k - 1] is
    overwritten.
    """
    n = q + k - 1
    at = _draw_picks(words, at, n, min(k - 1, q), picks)
    if at < 0:
        return at
    if n <= 64:
        _bars_in_a_word(picks, n, k, places)
    elif n <= 64 * k:
        _bars_by_marks(picks, n, k, places, marks)
    else:
        _bars_by_list(picks, n, k, places)
    return at


@numba.njit(cache=True, error_model="numpy")
def fill_groups(
    out: Any, q: Any, order: Any, offsets: Any, task: Any, words: Any, widest: int, tallest: int
) -> Any:
    """Fill out[draw, cells of group] from task number `task` = draw x groups + group on.

    Each task takes two compositions g, g' of q[draw, group]; the noise is g - g', which is the
    difference of the bars, differenced. Returns the first task not completed (all, unless the
    words ran out inside it) and the number of words used by completed tasks.
    """
    groups = q.shape[1]
    marks = np.zeros(tallest, np.uint8)
    picks = np.empty(widest, np.uint64)
    bars, bars_ = np.empty(widest, np.int64), np.empty(widest, np.int64)
    used: Any = 0
    draw, g = task // groups, task % groups
    while task < q.size:
        start, k = offsets[g], offsets[g + 1] - offsets[g]
        at: Any = draw_bars(words, used, q[draw, g], k, bars, picks, marks)
        if at >= 0:
            at = draw_bars(words, at, q[draw, g], k, bars_, picks, marks)
        if at < 0:
            return task, used
        used = at
        last = 0
        for c in range(k - 1):
            lead = bars[c] - bars_[c]
            out[draw, order[start + c]] = lead - last
            last = lead
        out[draw, order[start + k - 1]] = -last
        task += 1
        g += 1
        if g == groups:
            draw, g = draw + 1, 0
    return task, used
