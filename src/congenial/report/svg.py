"""What pictures drawn by hand share. Without any library a page that `verify` writes again is the
same to the letter, pictures included; as an image an SVG can run no script and load nothing.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from html import escape
from textwrap import wrap

BLUE, INK, GREY, LINE = "#0072b2", "#1c2530", "#5b6673", "#e6eaee"
COLOURS = (BLUE, "#d55e00", "#009e73", "#cc79a7", "#9aa5b1")  # colour-blind readers tell them apart
FONT, LETTER, ROW = 13, 8, 20  # pixels: of letters, the width of one in wide fonts, a line of text
KEY = 36  # where the words of a legend begin
MOST_TICKS = 5  # beside the first


def address(width: int, height: float, drawn: Sequence[str]) -> str:
    """A picture as the address of an `img`.

    Pictures are about 390 wide, as wide as a telephone: a page makes them larger, never much
    smaller, so that letters stay readable.
    """
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'font-family="sans-serif" font-size="{FONT}">{"".join(drawn)}</svg>'
    )
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def words(x: float, y: float, said: str, colour: str = INK, anchor: str = "start") -> str:
    """A line of text; `anchor`: start, middle or end."""
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.0f}"{at} fill="{colour}">{escape(said)}</text>'


def short(said: str, pixels: float) -> str:
    """As much of a text as there is room for.

    >>> short("Northampton", 90), short("Northampton", 64)
    ('Northampton', 'Northam…')
    """
    most = int(pixels // LETTER)
    return said if len(said) <= most else said[: most - 1] + "…"


def ticks(low: float, high: float, least: float = 0.0) -> list[float]:
    """Round numbers around an interval, `least` apart or more.

    >>> ticks(0.12, 0.47), ticks(903, 947, least=1)
    ([0.1, 0.2, 0.3, 0.4, 0.5], [900.0, 910.0, 920.0, 930.0, 940.0, 950.0])
    """
    size = max(abs(low), abs(high))
    if high - low <= 1e-12 * size:  # one number, or two that differ in their last digits
        pad = max(least or 1, 1e-9 * size)
        low, high = low - pad, high + pad
    raw = max((high - low) / MOST_TICKS, least)
    power = math.floor(math.log10(raw))
    unit = 10.0**power
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * k, max(0, -power)) for k in range(first, max(last, first + 1) + 1)]


def legend(y: float, width: float, entries: Sequence[tuple[str, str]]) -> tuple[float, list[str]]:
    """Marks, drawn around (14, 0), and what they mean, below each other from `y` on; and where they
    end. Long texts are wrapped: scenarios may differ in their last word only.
    """
    drawn = []
    for mark, said in entries:
        drawn.append(f'<g transform="translate(0 {y + 8:.0f})">{mark}</g>')
        for line in wrap(said, int((width - KEY) // LETTER)) or [""]:
            drawn.append(words(KEY, y + 12, line, GREY))
            y += ROW
    return y, drawn


def room(values: Sequence[float]) -> float:
    """Half the width of the longest number at a tick, for the margins beside an axis."""
    return LETTER * max(len(_number(value)) for value in values) / 2 + 2


def axis(values: Sequence[float], left: float, right: float, top: float, bottom: float) -> str:
    """Vertical lines at ticks from `left` to `right`, their numbers below; as many as have room."""
    said = [_number(value) for value in values]
    apart = (right - left) / (len(values) - 1)
    every = math.ceil(LETTER * (max(map(len, said)) + 1) / apart)
    drawn = []
    for at, number in enumerate(said):
        x = left + apart * at
        drawn.append(f'<path d="M{x:.1f} {top:.0f}V{bottom:.0f}" stroke="{LINE}"/>')
        if at % every == 0:
            drawn.append(words(x, bottom + 16, number, GREY, "middle"))
    return "".join(drawn)


def _number(value: float) -> str:
    """The number at a tick.

    >>> _number(20000.0), _number(0.25), _number(-3.0), _number(0.00002)
    ('20,000', '0.25', '-3', '2e-05')
    """
    return f"{value:,.10g}"
