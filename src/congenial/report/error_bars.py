"""A small picture without any library: one bar per table, its length the logarithm of an error.

Drawn by hand as SVG, so that a page written anew is the same to the letter.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from html import escape as text

WIDTH, ROW, BAR = 400, 40, 16  # as wide as a telephone: a page makes it larger, never smaller
NUMBERS = 90  # room for a number behind the longest bar


def error_bars(rows: Sequence[tuple[str, float]]) -> str:
    """Bars for positive numbers, as the address of an `img`; 0 is said to be exact."""
    largest = max((value for _, value in rows), default=0.0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ROW * len(rows) + 4}" '
        'font-family="sans-serif" font-size="13">'
    ]
    for at, (label, value) in enumerate(rows):
        y = ROW * at
        length = (WIDTH - NUMBERS) * _share(value, largest)
        lines.append(f'<text x="0" y="{y + 14}" fill="#1c2530">{text(_short(label))}</text>')
        lines.append(
            f'<rect x="0" y="{y + 19}" width="{length:.1f}" height="{BAR}" fill="#0072b2"/>'
        )
        said = f"{value:,.2f}" if value else "exact"
        lines.append(
            f'<text x="{length + 6 * bool(length):.1f}" y="{y + 32}" fill="#5b6673">{said}</text>'
        )
    svg = "".join([*lines, "</svg>"])
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _share(value: float, largest: float) -> float:
    """log(1 + value), relative to the largest."""
    return math.log1p(value) / math.log1p(largest) if largest > 0 else 0.0


def _short(label: str) -> str:
    return label if len(label) <= 52 else label[:51] + "…"
