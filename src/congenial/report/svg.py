"""Pictures drawn by hand: laws, values with their intervals.

Without any library a page that `verify` writes again is the same to the letter, pictures included;
as an image an SVG can run no script and load nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from textwrap import wrap

BLUE, INK, GREY, LINE = "#0072b2", "#1c2530", "#5b6673", "#e6eaee"
COLOURS = (BLUE, "#d55e00", "#009e73", "#cc79a7", "#9aa5b1")  # colour-blind readers tell them apart
FONT, LETTER, ROW = 13, 8, 20  # pixels: of letters, the width of one in wide fonts, a line of text
WIDTH = 390  # pixels of a picture
KEY = 36  # where the words of a legend begin
MOST_TICKS = 5  # beside the first


def document(width: int, height: float, drawn: Sequence[str]) -> str:
    """A picture as the text of an SVG file.

    Pictures are about 390 wide, as wide as a telephone: a page makes them larger, never much
    smaller, so that letters stay readable.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'font-family="sans-serif" font-size="{FONT}">{"".join(drawn)}</svg>'
    )


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


# ---- Gaussian laws: a panel for each statistic ---------------------------------------------------


PANEL, PLOT = 172, 120
POINTS, REACH = 81, 3.2  # of a curve: points, and standard deviations to either side
DASHED = ' stroke-dasharray="5 4"'


@dataclass(frozen=True)
class LawCurve:
    """A statistic in one scenario: its mean, its standard deviation as fitted and with noise."""

    scenario: str
    mean: float
    fitted: float
    noisy: float


def law_curves(panels: Sequence[tuple[str, Sequence[LawCurve]]]) -> str:
    """The picture as the address of an `img`: for each statistic its name and its curves."""
    scenarios = list(dict.fromkeys(curve.scenario for _, curves in panels for curve in curves))
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(scenarios)}
    drawn = list(
        chain.from_iterable(
            _panel(PANEL * at, name, curves, colours) for at, (name, curves) in enumerate(panels)
        )
    )
    keys = [(colours[name], "", name) for name in scenarios]
    keys += [(INK, "", "as fitted"), (INK, DASHED, "with noise")]
    marks = [
        (f'<path d="M0 0h28" stroke="{colour}" stroke-width="2"{dash}/>', said)
        for colour, dash, said in keys
    ]
    end, below = legend(PANEL * len(panels) + 4, WIDTH, marks)
    return document(WIDTH, end, [*drawn, *below])


def _panel(top: float, name: str, curves: Sequence[LawCurve], colours: dict[str, str]) -> list[str]:
    """One statistic: its name, the axis of its values, and its curves; densities begin at 0."""
    ends = [curve.mean + side * REACH * curve.noisy for curve in curves for side in (-1, 1)]
    values = ticks(min(ends), max(ends))
    start, width = values[0], (values[-1] - values[0]) or 1.0
    least = min(min(curve.fitted, curve.noisy) for curve in curves)  # highest where it is narrowest
    plot, bottom, edge = top + 24, top + 24 + PLOT, room(values)
    drawn = [words(0, top + 14, short(name, WIDTH)), axis(values, edge, WIDTH - edge, plot, bottom)]
    for curve in curves:
        for deviation, dash in ((curve.fitted, ""), (curve.noisy, DASHED)):
            places = []
            for at in range(POINTS):
                z = REACH * (2 * at / (POINTS - 1) - 1)
                share = (curve.mean + z * deviation - start) / width
                height = least / deviation * math.exp(-z * z / 2)
                x = edge + share * (WIDTH - 2 * edge)
                places.append(f"{x:.1f} {bottom - (PLOT - 4) * height:.1f}")
            drawn.append(
                f'<path d="M{"L".join(places)}" fill="none" stroke="{colours[curve.scenario]}" '
                f'stroke-width="1.8"{dash}/>'
            )
    return drawn


# ---- values: a point, its interval, a hollow diamond for what is exact ---------------------------


LABELS, FOOT = 180, 26


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
    return document(WIDTH, end, [*drawn, *below])


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
