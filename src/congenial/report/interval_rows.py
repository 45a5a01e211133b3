"""A picture without any library: one row per cell, a point for its value, a bar for its interval.

Drawn by hand as SVG, so that a page written anew is the same to the letter.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as text

WIDTH, ROW, LABELS, RIGHT, FOOT = 420, 20, 180, 24, 26  # a telephone shows it at nine tenths
LETTER = 7  # pixels of a letter, at most in most words
BLUE, INK, GREY, LINE = "#0072b2", "#1c2530", "#5b6673", "#e6eaee"
TICKS = 5  # at most, beside the first


@dataclass(frozen=True)
class IntervalRow:
    """A value and its interval; `low` = `high` where there is none. Exact: figures tell it."""

    label: str
    value: float
    low: float
    high: float
    exact: bool = False


def interval_rows(rows: Sequence[IntervalRow]) -> str:
    """The picture as the address of an `img`; exact values are hollow diamonds."""
    ticks = nice_ticks(
        min(min(one.low, one.value) for one in rows), max(max(one.high, one.value) for one in rows)
    )
    bottom = ROW * len(rows) + 6
    left = min(LABELS, 30 + LETTER * max(len(one.label) for one in rows))
    most = max(len(f"{tick:,}") for tick in ticks)
    apart = (WIDTH - left - RIGHT) / (len(ticks) - 1)
    every = math.ceil(LETTER * (most + 1) / apart)  # so that their numbers stay apart

    def across(value: float) -> float:
        share = (value - ticks[0]) / (ticks[-1] - ticks[0])
        return left + share * (WIDTH - left - RIGHT)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + FOOT}" '
        'font-family="sans-serif" font-size="12">'
    ]
    for place, tick in enumerate(ticks):
        x = f"{across(tick):.1f}"
        lines.append(f'<path d="M{x} 0V{bottom}" stroke="{LINE}"/>')
        if place % every:
            continue
        lines.append(
            f'<text x="{x}" y="{bottom + 16}" text-anchor="middle" fill="{GREY}">{tick:,}</text>'
        )
    for at, one in enumerate(rows):
        y = ROW * at + 12
        ends = across(one.low), across(one.high)
        lines.append(_label(one, left, y) + _mark(one.exact, across(one.value), ends, y))
    svg = "".join([*lines, "</svg>"])
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _label(one: IntervalRow, left: int, y: int) -> str:
    most = LABELS // LETTER - 1
    said = one.label if len(one.label) <= most else one.label[: most - 1] + "…"
    return f'<text x="{left - 12}" y="{y + 4}" text-anchor="end" fill="{INK}">{text(said)}</text>'


def _mark(exact: bool, x: float, ends: tuple[float, float], y: int) -> str:
    """A point on its bar, or a hollow diamond."""
    if exact:
        return f'<path d="M{x - 5:.1f} {y}l5 -5l5 5l-5 5z" fill="white" stroke="{INK}"/>'
    low, high = (f"{end:.1f}" for end in ends)
    path = f"M{low} {y}H{high}M{low} {y - 4}v8M{high} {y - 4}v8"
    bar = f'<path d="{path}" stroke="{BLUE}" stroke-width="1.6"/>' if low != high else ""
    return f'{bar}<circle cx="{x:.1f}" cy="{y}" r="3.4" fill="{BLUE}"/>'


def nice_ticks(low: float, high: float) -> list[int]:
    """Round whole numbers around an interval; from 0 where that costs little room.

    >>> nice_ticks(3, 97), nice_ticks(903, 947), nice_ticks(5, 5)
    ([0, 20, 40, 60, 80, 100], [900, 910, 920, 930, 940, 950], [4, 5, 6])
    """
    low = 0 if 0 < low < 0.6 * high else low
    if low == high:
        low, high = low - 1, high + 1
    raw = max((high - low) / TICKS, 1.0)
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= raw * (1 - 1e-9))
    return [step * k for k in range(math.floor(low / step), math.ceil(high / step) + 1)]
