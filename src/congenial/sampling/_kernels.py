"""Compiled loops. They read words from an array, say how many they used, and never look at a word
twice for two different results."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, error_model="numpy")
def locate(words: Any, lower: Any, before: Any, guide: Any) -> Any:
    """Return for each word the index i with before[i] <= word < lower[i], or -2**62 if
    undecided.
    """
    out = np.empty(words.size, np.int64)
    bits = 0
    while (1 << bits) < guide.size:
        bits += 1
    shift = np.uint64(64 - bits)
    for j in range(words.size):
        w = words[j]
        i = guide[w >> shift]
        while i < lower.size and lower[i] <= w:
            i += 1
        if i < lower.size and w >= before[i]:
            out[j] = i
        else:
            out[j] = -(1 << 62)
    return out


@numba.njit(cache=True, error_model="numpy")
def lane_bits(n: int) -> int:
    """Width of the random lanes used below n: 16, 32 or 64 bits, so that rejection stays under
    1/16.
    """
    if n <= 1 << 12:
        return 16
    return 32 if n <= 1 << 28 else 64


@numba.njit(cache=True, error_model="numpy")
def _high_low(x: Any, n: Any) -> Any:
    """Return the two words of the 128-bit product x n."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x0, x1, n0, n1 = x & mask, x >> half, n & mask, n >> half
    low = x0 * n0
    middle = x1 * n0 + (low >> half)
    other = x0 * n1 + (middle & mask)
    return x1 * n1 + (middle >> half) + (other >> half), (other << half) | (low & mask)


@numba.njit(cache=True, error_model="numpy")
def _scale(x: Any, n: Any, lane: int) -> Any:
    """Return (floor(x n / 2^lane), whether x is to be drawn again) for a lane x below 2^lane."""
    zero = np.uint64(0)
    if lane == 64:
        high, low = _high_low(x, n)
        return high, low < n and low < (zero - n) % n
    mask = (np.uint64(1) << np.uint64(lane)) - np.uint64(1)
    product = x * n
    low = product & mask
    again = low < n and low < (mask - n + np.uint64(1)) % n
    return product >> np.uint64(lane), again


@numba.njit(cache=True, error_model="numpy")
def _below(words: Any, at: int, word: Any, left: int, n: int, lane: int) -> Any:
    """Return (uniform below n, at, word, left); at = -1 when the words ran out.

    `word` holds `left` unread bits; lanes are cut from its low end.
    """
    while True:
        if left == 0:
            if at >= words.size:
                return 0, -1, word, left
            word, left = words[at], 64
            at += 1
        x = word
        if lane < 64:
            x = word & ((np.uint64(1) << np.uint64(lane)) - np.uint64(1))
            word >>= np.uint64(lane)
        left -= lane
        t, again = _scale(x, np.uint64(n), lane)
        if not again:
            return np.int64(t), at, word, left


@numba.njit(cache=True, error_model="numpy")
def _mark_subset(words: Any, at: int, n: int, size: int, marks: Any) -> int:
    """Mark a uniform `size`-subset of 0 .. n - 1 (Floyd's method); return the next unread word,
    or -1.
    """
    lane = lane_bits(n)
    word, left = np.uint64(0), 0
    for j in range(n - size, n):
        if lane == 16:  # the common case, with a constant the compiler can see
            pick, at, word, left = _below(words, at, word, left, j + 1, 16)
        else:
            pick, at, word, left = _below(words, at, word, left, j + 1, lane)
        if at < 0:
            marks[:n] = 0
            return -1
        place = np.uint64(pick + marks[pick] * (j - pick))  # j itself if pick is taken; no branch
        marks[place] = 1
    return at


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
def _list_subset(words: Any, at: int, n: int, size: int, places: Any) -> int:
    """As `_mark_subset`, for n too large for a bitmap: the subset, sorted, in places[:size]."""
    lane = lane_bits(n)
    slots = 2
    while slots < 2 * size:
        slots *= 2
    chosen = np.full(slots, -1, np.int64)
    word, left = np.uint64(0), 0
    for j in range(n - size, n):
        pick, at, word, left = _below(words, at, word, left, j + 1, lane)
        if at < 0:
            return -1
        slot = _find(chosen, pick)
        if chosen[slot] >= 0:
            pick = j
            slot = _find(chosen, pick)
        chosen[slot] = pick
        places[j - n + size] = pick
    places[:size].sort()
    return at


@numba.njit(cache=True, error_model="numpy")
def _add_composition(
    words: Any, at: int, q: int, cells: Any, sign: int, marks: Any, places: Any
) -> int:
    """Add sign x (a uniform weak composition of q) to cells; return the next unread word, or -1.

    Compositions of q into k parts are the (k - 1)-subsets ("bars") of q + k - 1 places; the
    smaller of bars and stars is drawn. More than 64 places per cell: no bitmap, the bars are
    listed.
    """
    k = cells.size
    n = q + k - 1
    if n <= 64 * k:
        bars = k - 1 <= q
        at = _mark_subset(words, at, n, k - 1 if bars else q, marks)
        if at < 0:
            return at
        flip = np.uint8(0 if bars else 1)
        c: Any = np.uint64(0)
        for i in range(n):  # no branch: the last write to places[c] is the c-th bar
            places[c] = i
            c += np.uint64(marks[i] ^ flip)
            marks[i] = 0
    else:
        at = _list_subset(words, at, n, k - 1, places)
        if at < 0:
            return at
    last = -1
    for i in range(k - 1):
        cells[i] += sign * (places[i] - last - 1)
        last = places[i]
    cells[k - 1] += sign * (n - last - 1)
    return at


@numba.njit(cache=True, error_model="numpy")
def fill_groups(
    out: Any, q: Any, order: Any, offsets: Any, task: int, words: Any, widest: int, tallest: int
) -> Any:
    """Fill out[draw, cells of group] from task number `task` = draw x groups + group on.

    Each task takes two compositions of q[draw, group]; the noise is their difference. Returns the
    first task not completed (all, unless the words ran out inside it) and the number of words used
    by completed tasks.
    """
    groups = q.shape[1]
    marks = np.zeros(tallest, np.uint8)
    places = np.empty(widest, np.int64)
    cells = np.empty(widest, np.int64)
    used = 0
    while task < q.size:
        draw, g = task // groups, task % groups
        k = offsets[g + 1] - offsets[g]
        cells[:k] = 0
        at = used
        for sign in (1, -1):
            at = _add_composition(words, at, q[draw, g], cells[:k], sign, marks, places)
            if at < 0:
                return task, used
        used = at
        for c in range(k):
            out[draw, order[offsets[g] + c]] = cells[c]
        task += 1
    return task, used
