"""A picture of errors: one bar per table, its length the logarithm of the error."""

from __future__ import annotations

import math
from collections.abc import Sequence

from congenial.report.svg import BLUE, GREY, LETTER, address, short, words

WIDTH, ROW, BAR = 390, 40, 16
NUMBERS = 90  # room for a number behind the longest bar


def error_bars(rows: Sequence[tuple[str, float]]) -> str:
    """Bars for positive numbers, as the address of an `img`; 0 is said to be exact."""
    largest = max((value for _, value in rows), default=0.0)
    drawn = []
    for at, (label, value) in enumerate(rows):
        y = ROW * at
        length = (WIDTH - NUMBERS) * _share(value, largest)
        number = f"{value:,.2f}" if value else "exact"
        drawn += [
            words(0, y + 14, short(label, WIDTH)),
            f'<rect x="0" y="{y + 19}" width="{length:.1f}" height="{BAR}" fill="{BLUE}"/>',
            words(length + (LETTER - 1) * bool(length), y + 32, number, GREY),
        ]
    return address(WIDTH, ROW * len(rows) + 4, drawn)


def _share(value: float, largest: float) -> float:
    """log(1 + value), relative to the largest."""
    return math.log1p(value) / math.log1p(largest) if largest > 0 else 0.0
