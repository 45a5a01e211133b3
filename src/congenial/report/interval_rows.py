"""A picture of values: one row per cell, a point for its value, a bar for its interval, and a
hollow diamond for what is exact or was public before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from congenial.report.svg import (
    BLUE,
    INK,
    LETTER,
    ROW,
    address,
    axis,
    legend,
    room,
    short,
    ticks,
    words,
)

WIDTH, LABELS, FOOT = 390, 180, 26


@dataclass(frozen=True)
class IntervalRow:
    """A value and its interval; `low` = `high` where there is none. Exact: figures tell it.

    `before`: what was public before, where something was.
    """

    label: str
    value: float
    low: float
    high: float
    exact: bool = False
    before: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number that is drawn."""
        drawn = [self.low, self.high, self.value]
        drawn += [] if self.before is None else [self.before]
        return min(drawn), max(drawn)


def interval_rows(rows: Sequence[IntervalRow], point: str = "", diamond: str = "") -> str:
    """The picture as the address of an `img`; exact values are hollow diamonds.

    `point`, `diamond`: what these marks are, for a legend below.
    """
    lows, highs = zip(*(row.ends for row in rows), strict=True)
    low, high = min(lows), max(highs)
    low = 0 if 0 < low < 0.6 * high else low  # the axis begins at 0 where that costs little room
    values = ticks(low, high, least=1)
    bottom = ROW * len(rows) + 6
    left = min(LABELS, 30 + LETTER * max(len(row.label) for row in rows))
    right = WIDTH - room(values)

    def across(value: float) -> float:
        return left + (value - values[0]) / (values[-1] - values[0]) * (right - left)

    drawn = [axis(values, left, right, 0, bottom)]
    for at, row in enumerate(rows):
        y = ROW * at + 12
        drawn.append(words(left - 12, y + 4, short(row.label, LABELS - 12), anchor="end"))
        if row.before is not None:
            drawn.append(_diamond(across(row.before), y))
        drawn.append(_mark(row, across(row.value), (across(row.low), across(row.high)), y))
    marks = ((_point(14, 0), point), (_diamond(14, 0), diamond))
    end, below = legend(bottom + FOOT, WIDTH, [(mark, said) for mark, said in marks if said])
    return address(WIDTH, end, [*drawn, *below])


def _mark(row: IntervalRow, x: float, ends: tuple[float, float], y: float) -> str:
    """A point on its bar, or a hollow diamond."""
    if row.exact:
        return _diamond(x, y)
    low, high = (f"{end:.1f}" for end in ends)
    path = f"M{low} {y:.0f}H{high}M{low} {y - 4:.0f}v8M{high} {y - 4:.0f}v8"
    bar = f'<path d="{path}" stroke="{BLUE}" stroke-width="1.6"/>' if low != high else ""
    return bar + _point(x, y)


def _point(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.0f}" r="3.4" fill="{BLUE}"/>'


def _diamond(x: float, y: float) -> str:
    return f'<path d="M{x - 5:.1f} {y:.0f}l5 -5l5 5l-5 5z" fill="white" stroke="{INK}"/>'
