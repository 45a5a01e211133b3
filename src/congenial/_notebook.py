"""Small tables and pictures for notebooks, from templates that escape every text: labels may come
from strangers.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


Row = tuple[str, float, float, float]  # label, value, low, high; nan where there is none

MOST_ROWS = 40  # of a picture
_WIDTH, _LEFT, _RIGHT, _STEP = 460, 170, 20, 18
_LONGEST = 26  # letters of a label


@cache
def _template(name: str = "notebook.html") -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("congenial", "report/templates")
    jinja = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return jinja.get_template(name)


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A heading and a table, as HTML.

    >>> grid("A & B", ["n"], [["<1>"]])
    '<h4>A &amp; B</h4><table><tr><th>n</th></tr><tr><td>&lt;1&gt;</td></tr></table>'
    """
    return _template().render(title=title, warning="", head=head, rows=rows, text="")


def facts(title: str, rows: Iterable[tuple[str, object]], text: str = "", warning: str = "") -> str:
    """A heading and a table of two columns: what, and its value.

    >>> facts("A", [("n", 1)])
    '<h4>A</h4><table><tr><th>n</th><td>1</td></tr></table>'
    """
    return _template().render(title=title, warning=warning, head=(), rows=rows, text=text)


def intervals_picture(title: str, rows: Sequence[Row]) -> str:
    """A line from low to high with a dot at the value, row by row; nothing where nothing is finite.

    >>> intervals_picture("shares", [("a", 0.5, 0.4, 0.6)]).count("<circle")
    1
    """
    rows = rows[:MOST_ROWS]
    finite = [x for row in rows for x in row[1:] if math.isfinite(x)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)

    def place(x: float) -> float | None:
        if not math.isfinite(x):
            return None
        part = (x - low) / (high - low) if high > low else 0.5
        return round(_LEFT + part * (_WIDTH - _LEFT - _RIGHT), 1)

    drawn = [
        {"label": _short(label), "y": 12 + _STEP * at}
        | ({"x": place(value)} | _ends(place(least), place(most)))
        for at, (label, value, least, most) in enumerate(rows)
    ]
    marks = [{"x": place(x), "label": _number(x)} for x in dict.fromkeys((low, high))]
    return _template("notebook_intervals.svg").render(
        title=title, rows=drawn, ends=marks, width=_WIDTH, left=_LEFT, height=_STEP * len(rows) + 30
    )


@dataclass(frozen=True)
class Picture:
    """A drawing with its caption: notebooks and pages show it, `save` writes it as an SVG file."""

    svg: str = field(repr=False)
    title: str

    @classmethod
    def of_intervals(cls, title: str, rows: Sequence[Row]) -> Picture:
        """Values with their intervals, the first 40 of them."""
        return cls(intervals_picture(title, rows), title)

    @property
    def address(self) -> str:
        """A data URI for an `img`, where an SVG can run no script and load nothing."""
        return "data:image/svg+xml;base64," + b64encode(self.svg.encode()).decode()

    def save(self, path: str | Path) -> None:
        """Write it to a file, which is replaced if there is one."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


def _ends(low: float | None, high: float | None) -> dict[str, float | None]:
    there = low is not None and high is not None
    return {"low": low, "high": high} if there else {"low": None, "high": None}


def _number(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def curve_picture(title: str, across: str, up: str, points: Iterable[tuple[float, float]]) -> str:
    """A curve in the unit square, below the dashed line from (0, 1) to (1, 0).

    >>> "30.0,10.0" in curve_picture("t", "x", "y", [(0.0, 1.0), (1.0, 0.0)])
    True
    """
    placed = [(round(30 + 160 * x, 1), round(170 - 160 * y, 1)) for x, y in points]
    return _template("notebook_curve.svg").render(title=title, across=across, up=up, points=placed)
