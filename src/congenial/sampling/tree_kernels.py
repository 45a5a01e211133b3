"""Compiled loops of `tree_messages`, `tree_splitter` and `elimination`. They read words from an
array and say how many they used.

**Down a tree.** A split of a frequent sum x is drawn by Walker's alias method from 16 bits. Its
integer weights n(y) out of 2^62 fill 2^k columns of 2^(62 - k) each; a column holds two outcomes. k
bits choose the column, the other 16 - k are the first bits of a number below 2^(62 - k) that
chooses between the two; where they equal those of the threshold, 46 more bits decide. Outcomes with
n < 2^48 share one place, REST, which sends the draw on to a walk through them. So every y has
probability n(y) / 2^62.

Splits go through the tree in the outer loop, draws in the inner one: the tables of one node stay in
the nearest cache, and draws do not wait for each other.

**Elimination.** One step per atom, in order: state coordinates before (c) and after (c') the atom
joins, c = (grid c')/scale - turn x total, the total itself given by (fixed c')/scale where
`is_fixed` (derived in `joining_order.Component`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.data.loops import loop
from congenial.sampling.tree_messages import DONE, OUT_OF_WORDS, RARE, WHOLE

_BYTE = WHOLE - 8


@loop
def modes(left: Any, right: Any, lo: int, n: int) -> Any:
    """For x = lo .. lo + n - 1 (counted from the sum of both window starts): the index y into
    `left` near which left[y] right[x - y] is largest. Climbs, since it moves right with x.
    """
    out = np.empty(n, np.int32)
    y = 0
    for i in range(n):
        x = lo + i
        first, last = max(0, x - right.size + 1), min(left.size - 1, x)
        y = min(max(y, first), last)
        while y < last and left[y + 1] * right[x - y - 1] >= left[y] * right[x - y]:
            y += 1
        out[i] = y
    return out


@loop
def scan(p: Any, q: Any, bounds: Any, start: int, index: Any, factor: float, r: Any) -> Any:
    """Walk outcomes away from `start` (start, -1, +1, -2, ...) until r falls in the weight of one.

    Outcome y in bounds = (first, last) weighs floor(p[y] q[i + j y] factor) + 1, index = (i, j).
    Returns (y, weight, sum of weights before it); y = -1 if r is beyond all.
    """
    return scan_beside(p, q, bounds, (start, start), index, factor, r)


@loop
def scan_beside(p: Any, q: Any, bounds: Any, gap: Any, index: Any, factor: float, r: Any) -> Any:
    """`scan` through the outcomes outside gap[0] <= y < gap[1], nearest first."""
    first, last = bounds
    i, j = index
    down, up = gap[0] - 1, gap[1]
    before: Any = 0
    upwards = True
    while True:
        if (upwards and up <= last) or down < first:
            if up > last:
                return -1, 0, before
            y = up
            up += 1
        else:
            y = down
            down -= 1
        upwards = not upwards
        n = np.int64(p[y] * q[i + j * y] * factor) + 1
        if r < before + n:
            return y, n, before
        before += n


@loop
def guide_row(p: Any, q: Any, bounds: Any, start: int, index: Any, factor: float, row: Any) -> None:
    """row[b] = y - start + 127 if every r with leading byte b gives y in `scan`, else 255."""
    first, last = bounds
    i, j = index
    row[:] = 255
    up, down = start, start - 1
    before: Any = 0
    upwards = True
    while up <= last or down >= first:
        if (upwards and up <= last) or down < first:
            y = up
            up += 1
        else:
            y = down
            down -= 1
        upwards = not upwards
        if abs(y - start) > 126:
            return
        after = before + np.int64(p[y] * q[i + j * y] * factor) + 1
        for b in range((before + (1 << _BYTE) - 1) >> _BYTE, min(after >> _BYTE, 256)):
            row[b] = y - start + 127
        before = after


@loop
def build_program(roots: Any, nodes: Any, slots: Any, spare: int, depth: int) -> Any:
    """Splits in the order of drawing (a node, its left part, its right part), as rows (node, slot
    of its sum, slots of its parts), and the slots of the roots. A leaf's slot is given by `slots`,
    leaves from left to right; other slots are numbered from `spare` on. nodes: children first.
    """
    program = np.empty((slots.size, 4), np.int32)
    of_root = np.empty(roots.size, np.int64)
    waiting = np.empty((depth, 2), np.int64)  # node, place of its slot in the flat program
    length, leaf = 0, 0
    flat = program.reshape(-1)
    for r in range(roots.size):
        waiting[0, 0], waiting[0, 1] = roots[r], -1
        top = 1
        while top > 0:
            top -= 1
            t, where = waiting[top]
            if nodes[t, 0] < 0:
                slot = slots[leaf]
                leaf += 1
            else:
                slot = spare
                spare += 1
                program[length, 0], program[length, 1] = t, slot
                waiting[top, 0], waiting[top, 1] = nodes[t, 1], 4 * length + 3
                waiting[top + 1, 0], waiting[top + 1, 1] = nodes[t, 0], 4 * length + 2
                top += 2
                length += 1
            if where < 0:
                of_root[r] = slot
            else:
                flat[where] = slot
    return program[:length], of_root


REST = 255  # stands for all outcomes of a row without a code of their own
FREQUENT = 1 << 48  # the least weight of an outcome with a code
_MOST = 254  # outcomes of a row with a code
_FINE = WHOLE - 16  # bits of a threshold beyond the first 16
# what a flag is about: an unlikely outcome; a sum, or a part of it, beyond its window; all factors
UNLIKELY, OUTSIDE, LUMP, CHECK = 3, 4, 5, 6
_FOUND = 7
# columns of the arrays of nodes, of their tables, and of the rows of these
LEFT, RIGHT, LO, SIZE, AT = range(5)
FIRST, ROWS, BITS, AT_ROW, AT_ENTRY = range(5)
BASE, WIDTH, LEFT_OVER = range(3)


@loop
def frequent(m: Any, bounds: Any, start: int, x: int, factor: float) -> Any:
    """(first, number) of the outcomes y round `start` that get a code: n(y) >= FREQUENT.

    n(y) is floor(m[y] m[x - y] factor) + 1.
    """
    first, last = bounds
    if np.int64(m[start] * m[x - start] * factor) + 1 < FREQUENT:
        return start, 0
    down, up = start, start
    while up - down + 1 < _MOST:
        below, above = np.int64(0), np.int64(0)
        if down > first:
            below = np.int64(m[down - 1] * m[x - down + 1] * factor) + 1
        if up < last:
            above = np.int64(m[up + 1] * m[x - up - 1] * factor) + 1
        if max(below, above) < FREQUENT:
            break
        if below > above:
            down -= 1
        else:
            up += 1
    return down, up - down + 1


@loop
def find_codes(nodes: Any, m: Any, s: Any, mode: Any, tables: Any, of_row: Any) -> None:
    """Fill base (y of code 0) and width (number of codes) of every row, and the bits per node."""
    whole = 2.0**WHOLE * (1 + 2.0**-48)
    for t in range(nodes.shape[0]):
        a, b = nodes[t, LEFT], nodes[t, RIGHT]
        most, bits = 0, 0
        for g in range(tables[t, ROWS]):
            row, x = tables[t, AT_ROW] + g, tables[t, FIRST] + g
            i = nodes[t, AT] + x - nodes[t, LO]
            j, shift = x - nodes[a, LO] - nodes[b, LO], nodes[a, AT]
            first, last = max(0, j - nodes[b, SIZE] + 1), min(nodes[a, SIZE] - 1, j)
            y, number = frequent(
                m, (shift + first, shift + last), shift + mode[i], shift + nodes[b, AT] + j,
                whole / s[i],
            )  # fmt: skip
            of_row[row, BASE], of_row[row, WIDTH] = nodes[a, LO] + y - shift, number
            most = max(most, number)
        while tables[t, ROWS] > 0 and (bits == 0 or (1 << bits) <= most):  # one more for REST
            bits += 1
        tables[t, BITS] = bits


@loop
def fill_columns(
    weights: Any, codes: Any, columns: int, entries: Any, exact: Any, here: int
) -> None:
    """Alias columns of integer weights that add up to 2^62, one column each; weights are used up.

    An entry is: first 16 bits of the threshold, code below it, code from it on.
    """
    full = (np.int64(1) << WHOLE) // columns
    short, tall = np.empty(columns, np.int64), np.empty(columns, np.int64)
    n_short, n_tall = 0, 0
    other = np.empty(columns, np.int64)
    for i in range(columns):
        other[i] = i
        if weights[i] < full:
            short[n_short] = i
            n_short += 1
        else:
            tall[n_tall] = i
            n_tall += 1
    while n_short > 0:
        n_short -= 1
        i, j = short[n_short], tall[n_tall - 1]
        other[i] = j
        weights[j] -= full - weights[i]
        if weights[j] < full:
            n_tall -= 1
            short[n_short] = j
            n_short += 1
    # what is tall now is exactly full
    for i in range(columns):
        high = weights[i] >> _FINE
        entries[here + i] = high | (codes[i] << 16) | (codes[other[i]] << 24)
        exact[here + i] = weights[i]


@loop
def build_aliases(
    nodes: Any, m: Any, s: Any, tables: Any, of_row: Any, entries: Any, exact: Any
) -> None:
    """Fill the weight of REST, the entries and the thresholds of every row."""
    whole = 2.0**WHOLE * (1 + 2.0**-48)
    weights, codes = np.empty(256, np.int64), np.empty(256, np.int64)
    for t in range(nodes.shape[0]):
        a, b, columns = nodes[t, LEFT], nodes[t, RIGHT], 1 << tables[t, BITS]
        for g in range(tables[t, ROWS]):
            row, x = tables[t, AT_ROW] + g, tables[t, FIRST] + g
            factor = whole / s[nodes[t, AT] + x - nodes[t, LO]]
            left_over = np.int64(1) << WHOLE
            for k in range(columns):
                weights[k], codes[k] = 0, REST
                if k < of_row[row, WIDTH]:
                    y = of_row[row, BASE] + k
                    p = m[nodes[a, AT] + y - nodes[a, LO]]
                    q = m[nodes[b, AT] + x - y - nodes[b, LO]]
                    weights[k], codes[k] = np.int64(p * q * factor) + 1, k
                    left_over -= weights[k]
            weights[of_row[row, WIDTH]] = left_over
            of_row[row, LEFT_OVER] = left_over
            here = tables[t, AT_ENTRY] + g * columns
            fill_columns(weights, codes, columns, entries, exact, here)


@loop(inline="always")  # a call would copy all arrays' heads
def resolve(
    nodes: Any, m: Any, s: Any, mode: Any, tables: Any, of_row: Any, entries: Any, exact: Any,
    t: Any, x: Any, lane: Any, words: Any, at: Any,
) -> Any:  # fmt: skip
    """y given x where 16 bits (lane) do not decide: (kind, words used so far, y, weight of y).

    kind OUTSIDE: x is beyond the window. LUMP: a part of it would be; y is then what is left of r.
    """
    if x < nodes[t, LO] or x >= nodes[t, LO] + nodes[t, SIZE]:
        return OUTSIDE, at, np.int64(0), np.int64(0)
    a, b = nodes[t, LEFT], nodes[t, RIGHT]
    i, g = nodes[t, AT] + x - nodes[t, LO], x - tables[t, FIRST]
    begin, end, most, spare = np.int64(mode[i]), np.int64(mode[i]), np.int64(1) << WHOLE, 2
    if 0 <= g < tables[t, ROWS]:
        fine, row = 16 - tables[t, BITS], tables[t, AT_ROW] + g
        place = tables[t, AT_ENTRY] + (g << tables[t, BITS]) + (lane >> fine)
        part, e = lane & ((1 << fine) - 1), np.int64(entries[place])
        under = part < e & 0xFFFF
        if part == e & 0xFFFF:
            if at >= words.size:
                return OUT_OF_WORDS, at, np.int64(0), np.int64(0)
            more = np.int64(words[at] >> np.uint64(64 - _FINE))
            under = ((part << _FINE) | more) < exact[place]
            at += 1
        code = (e >> 16) & 255 if under else e >> 24
        if code != REST:
            return _FOUND, at, of_row[row, BASE] + code, np.int64(FREQUENT)
        begin, most = of_row[row, BASE] - nodes[a, LO], of_row[row, LEFT_OVER]
        end = begin + of_row[row, WIDTH]
        while spare < 63 and (most - 1) >> (63 - spare) == 0:
            spare += 1
    r = most  # a uniform number below it: as many bits as it has, again if it is too large
    while r >= most:
        if at >= words.size:
            return OUT_OF_WORDS, at, np.int64(0), np.int64(0)
        r = np.int64(words[at] >> np.uint64(spare))
        at += 1
    # y is counted from the start of `m` here: slices of it would cost more than many a walk
    j, shift = x - nodes[a, LO] - nodes[b, LO], nodes[a, AT]
    first, last = max(0, j - nodes[b, SIZE] + 1), min(nodes[a, SIZE] - 1, j)
    y, n, before = scan_beside(
        m, m, (shift + first, shift + last), (shift + begin, shift + end),
        (shift + nodes[b, AT] + j, -1), 2.0**WHOLE * (1 + 2.0**-48) / s[i], r,
    )  # fmt: skip
    if y < 0:
        return LUMP, at, r - before, np.int64(0)
    return _FOUND, at, y - shift + nodes[a, LO], n


@loop
def draw_down(
    out: Any, sums: Any, plan: Any, tree: Any, alias: Any, numbers: Any,
    words: Any, lanes: Any, task: int, flags: Any, saved: Any,
) -> Any:  # fmt: skip
    """Fill out from draw `task` on, some draws at a time: split each root's sum down to the leaves.

    lanes: the words as 16-bit numbers. A block of draws has a lane for each split and draw, and one
    for each draw that decides over all likely factors at once; then whole words as needed. Returns
    (status, first draw not completed, words used by completed draws, flags used). A flag is (kind,
    draw, split, x or r, y or row of `saved`); `saved` has all sums of a draw that Python finishes.
    """
    program, of_root, base_of, slots = plan
    nodes, m, s, mode = tree
    tables, of_row, entries, exact = alias
    check, block, guided = numbers
    splits, cells = program.shape[0], base_of.size
    value = np.zeros((slots, block), np.int64)
    left_off = np.zeros(block, np.bool_)
    used, remembered, stored = 0, 0, 0
    while task < out.shape[0]:
        n = min(block, out.shape[0] - task)
        of_last = splits * n if guided else 0
        at = used + (of_last + n + 3) // 4
        if at > words.size:
            return OUT_OF_WORDS, task, used, remembered
        fresh, lane_at = remembered, 4 * used
        for d in range(n):
            left_off[d] = False
            for root in range(of_root.size):
                value[of_root[root], d] = sums[task + d if sums.shape[0] > 1 else 0, root]
        for step in range(splits):
            t = program[step, 0]
            above, left, right = program[step, 1], program[step, 2], program[step, 3]
            start, many = tables[t, FIRST], np.uint64(tables[t, ROWS])
            k = np.uint64(tables[t, BITS])
            fine = np.uint64(16) - k
            mask = (np.uint64(1) << fine) - np.uint64(1)
            entry, row = np.uint64(tables[t, AT_ENTRY]), np.uint64(tables[t, AT_ROW])
            for d in range(n):
                x = value[above, d]
                g = np.uint64(x - start)
                lane = np.uint64(0)
                if g < many:
                    lane = np.uint64(lanes[lane_at + d])
                    e = np.uint64(entries[entry + (g << k) + (lane >> fine)])
                    part, limit = lane & mask, e & np.uint64(0xFFFF)
                    code = (e >> np.uint64(16)) & np.uint64(255)
                    if part >= limit:
                        code = e >> np.uint64(24)
                    if part != limit and code != np.uint64(REST):
                        y = of_row[row + g, BASE] + np.int64(code)
                        value[left, d] = y
                        value[right, d] = x - y
                        continue
                kind, at, y, weight = resolve(
                    nodes, m, s, mode, tables, of_row, entries, exact,
                    t, x, np.int64(lane), words, at,
                )  # fmt: skip
                if kind == OUT_OF_WORDS or fresh >= flags.shape[0] - 1 - n:
                    return OUT_OF_WORDS, task, used, remembered
                if kind != _FOUND or weight < RARE:
                    if not left_off[d]:
                        flags[fresh, 0] = UNLIKELY if kind == _FOUND else kind
                        flags[fresh, 1], flags[fresh, 2] = task + d, step
                        flags[fresh, 3], flags[fresh, 4] = y if kind == LUMP else x, y
                        fresh += 1
                    if kind != _FOUND:
                        left_off[d], y = True, np.int64(0)
                value[left, d] = y
                value[right, d] = x - y
            if guided:
                lane_at += n
        for d in range(n):
            last = np.uint64(lanes[lane_at + d])
            if last == np.uint64(0xFFFF):
                if at >= words.size:
                    return OUT_OF_WORDS, task, used, remembered
                last = (last << np.uint64(48)) | (words[at] >> np.uint64(16))
                at += 1
                if last >= check:
                    flags[fresh, 0], flags[fresh, 1], flags[fresh, 2] = CHECK, task + d, splits
                    flags[fresh, 3], flags[fresh, 4] = np.int64(last - check), 0
                    fresh += 1
        for f in range(remembered, fresh):
            if flags[f, 0] != UNLIKELY:
                if stored >= saved.shape[0]:
                    return OUT_OF_WORDS, task, used, remembered
                for slot in range(slots):
                    saved[stored, slot] = value[slot, flags[f, 1] - task]
                flags[f, 4] = stored
                stored += 1
        for d in range(n):
            for c in range(cells):
                out[task + d, c] = value[c, d] + base_of[c]
        used, remembered = at, fresh
        task += n
    return DONE, task, used, remembered


# One step per atom, in order. Integer tables, one row per step: state coordinates before (c) and
# after (c') the atom joins, c = (grid c')/scale - turn x total, the total itself given by
# (fixed c')/scale where `is_fixed`.


@loop
def options(step: Any, state: Any) -> Any:
    """(first, last, base, slope): totals (as indices into the atom's window) that a state allows,
    and where the message before is read: base + slope x index. first > last: none.
    """
    dims, lo_before, size_before, grid, scale, turn, fixed, is_fixed, window_lo, window = step
    first, last = 0, window - 1
    if is_fixed:
        total = 0
        for k in range(dims[1]):
            total += fixed[k] * state[k]
        if total % scale != 0:
            return 0, -1, 0, 0
        first = last = total // scale - window_lo
        if first < 0 or first >= window:
            return 0, -1, 0, 0
    base, slope, stride = 0, 0, 1
    for k in range(dims[0]):
        at = 0
        for j in range(dims[1]):
            at += grid[k, j] * state[j]
        if at % scale != 0:
            return 0, -1, 0, 0
        at = at // scale - turn[k] * window_lo - lo_before[k]
        t = turn[k]
        if t == 0:
            if at < 0 or at >= size_before[k]:
                return 0, -1, 0, 0
        elif t > 0:  # 0 <= at - t i < size
            first = max(first, -((size_before[k] - 1 - at) // t))
            last = min(last, at // t)
        else:
            first = max(first, -(at // -t))
            last = min(last, (size_before[k] - 1 - at) // -t)
        base += at * stride
        slope -= t * stride
        stride *= size_before[k]
    return first, last, base, slope


@loop
def eliminate(step: Any, lo: Any, size: Any, before: Any, weights: Any, s: Any, mode: Any) -> None:
    """s[c'] = sum over totals of weights x before; mode = where a term is largest."""
    dims = step[0]
    state = np.zeros(3, np.int64)
    for flat in range(s.size):
        rest = flat
        for k in range(dims[1]):
            state[k] = lo[k] + rest % size[k]
            rest //= size[k]
        first, last, base, slope = options(step, state)
        total, best, where = 0.0, -1.0, max(first, 0)
        for i in range(first, last + 1):
            term = weights[i] * before[base + slope * i]
            total += term
            if term > best:
                best, where = term, i
        s[flat] = total
        mode[flat] = where


@loop
def draw_states(
    steps: Any, boxes: Any, tables: Any, numbers: Any, out: Any, columns: Any,
    words: Any, task: int, flags: Any,
) -> Any:  # fmt: skip
    """Fill out[draw, columns] with atom totals, last atom first; one more word per draw is kept in
    out[draw, last column] for the decisions that take all of a draw.

    `guide` decides most of the first choice by its leading byte (as in `guide_row`). Returns
    (status, first draw not done, words used by done draws, flags used); flag = (draw, step,
    state flat, index of the total).
    """
    ints, grids = steps  # ints: dims 2, scale, is_fixed, window_lo, window, start of its tables
    lo_of, size_of, turns, fixeds = boxes
    weights_of, s_of, m_of, mode_of, guide = tables
    whole = numbers
    n_steps = ints.shape[0]
    state, after = np.zeros(3, np.int64), np.zeros(3, np.int64)
    used, stored_states = 0, 0
    while task < out.shape[0]:
        at, fresh = used, stored_states
        state[:] = 0
        for j in range(n_steps - 1, -1, -1):
            scale = ints[j, 2]
            if ints[j, 3] == 1:  # the state determines the total
                total = np.int64(0)
                for k in range(ints[j, 1]):
                    total += fixeds[j, k] * state[k]
                total = total if scale == 1 else total // scale
            else:
                if at >= words.size:
                    return OUT_OF_WORDS, task, used, stored_states
                r = np.int64(words[at] >> np.uint64(64 - WHOLE))
                at += 1
                code = guide[r >> (WHOLE - 8)] if j == n_steps - 1 else 255
                if code != 255:
                    i = mode_of[ints[j, 8]] + np.int64(code) - 127
                else:
                    flat, stride = 0, 1
                    for k in range(ints[j, 1]):
                        flat += (state[k] - lo_of[j + 1, k]) * stride
                        stride *= size_of[j + 1, k]
                    step = (
                        ints[j, :2], lo_of[j], size_of[j], grids[j], scale, turns[j], fixeds[j],
                        False, ints[j, 4], ints[j, 5],
                    )  # fmt: skip
                    first, last, base, slope = options(step, state)
                    p = weights_of[ints[j, 6] : ints[j, 6] + ints[j, 5]]
                    q = m_of[ints[j, 7] : ints[j, 8]]
                    here = ints[j, 8] + flat
                    i, n, _ = scan(
                        p, q, (first, last), mode_of[here], (base, slope), whole / s_of[here], r
                    )
                    if i >= 0 and q[base + slope * i] == 0.0:
                        i = -1  # no totals lead here: the weight 1 is rounding only
                    if i < 0 or n < RARE:
                        if fresh >= flags.shape[0] - 1:
                            return OUT_OF_WORDS, task, used, stored_states
                        flags[fresh, 0], flags[fresh, 1] = task, j
                        flags[fresh, 2], flags[fresh, 3] = flat, i
                        fresh += 1
                        if i < 0:
                            break
                total = ints[j, 4] + i
            out[task, columns[j]] = total
            for k in range(ints[j, 0]):
                c = np.int64(0)
                for d in range(ints[j, 1]):
                    c += grids[j, k, d] * state[d]
                after[k] = (c if scale == 1 else c // scale) - turns[j, k] * total
            state[:] = after
        if at >= words.size:
            return OUT_OF_WORDS, task, used, stored_states
        out[task, columns[n_steps]] = np.int64(words[at] >> np.uint64(1))
        at += 1
        used, stored_states = at, fresh
        task += 1
    return DONE, task, used, stored_states
