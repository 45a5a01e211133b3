"""Pictures of a release: points with intervals, and the law of the noise in one cell.

Drawn with Altair and rendered offline by vl-convert (extra `report`); `available` says whether both
are there. Colours are Okabe and Ito's, which colour-blind readers tell apart; exact figures also
have their own shape.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from congenial.mechanisms.single_table_release import Release
from congenial.report.views import BARE, EXACT, NOISY, CellNoise, Shown, View, piece_of

WIDTH = 290  # of what is plotted: with labels beside it a telephone shows all of it
PADDING = {"left": 24, "right": 12, "top": 4, "bottom": 4}
LETTER, LONGEST = 6, 190  # pixels of a label: of a letter, and of all of it
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INK, GREY = "#1c2530", "#9aa5b1"


def available() -> bool:
    """Whether the extra `report` is installed."""
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError:
        return False
    return True


class Pen(Protocol):
    """What draws the pictures of a report: this module, or nothing (`Blank`)."""

    def available(self) -> bool:
        """Whether there are pictures at all."""

    def draw(self, chart: Callable[..., Any], /, *of: Any) -> str:
        """The address of a picture: of the chart that `chart` makes of the rest."""


@dataclass(frozen=True)
class Blank:
    """Pictures left empty, so that the words around them can be compared."""

    drawn: bool

    def available(self) -> bool:
        """Whether the page has them."""
        return self.drawn

    def draw(self, *_: Any) -> str:
        """Nothing."""
        return ""


def draw(chart: Callable[..., Any], /, *of: Any) -> str:
    """A picture as an address: of the chart that `chart` makes of the rest."""
    return svg_uri(chart(*of))


def altair() -> Any:
    """The module, loaded when a picture is drawn; untyped, because it may be absent."""
    import altair

    return altair


def chart_of(points: Iterable[Mapping[str, Any]]) -> Any:
    """A chart of some rows. All that is made of it shares them: altair copies a list each time."""
    alt = altair()
    return alt.Chart(alt.Data(values=tuple(points)))


def _points(rows: Sequence[Shown], kinds: Sequence[str], panelled: bool) -> list[dict[str, Any]]:
    """Plain rows under fixed field names, so that no label is read as a Vega expression."""
    return [
        {
            "row": one.labels[0],
            "panel": one.labels[1] if panelled else "",
            "value": one.drawn,
            "low": one.low,
            "high": one.high,
            "kind": kind,
        }
        for one, kind in zip(rows, kinds, strict=True)
    ]


def _exactness(release: Release, rows: Sequence[Shown]) -> list[str]:
    other = NOISY if release.mechanism.additive else BARE
    return [EXACT if one.exact else other for one in rows]


def margin_chart(release: Release, name: str, rows: Sequence[Shown]) -> Any:
    """Points with intervals for one axis."""
    levels = list(release.schema.shown_levels(name))
    points = _points(rows, _exactness(release, rows), panelled=False)
    return styled(_panel(points, levels, plot_width(levels), _domain(points)))


def pair_chart(release: Release, piece: View, rows: Sequence[Shown]) -> Any:
    """Points with intervals for the margin over the view's two axes."""
    points = _points(rows, _exactness(release, rows), panelled=True)
    return styled(_panels(release, piece, points))


def cells_chart(release: Release, piece: View) -> Any:
    """Single cells of one piece of the table, coloured by the published sum they add up to."""
    rows, kinds = piece_of(release, piece)
    points = _points(rows, kinds, panelled=piece.panels is not None)
    return styled(_panels(release, piece, points))


def _panels(release: Release, piece: View, points: list[dict[str, Any]]) -> Any:
    """Panels in rows of two; axes run the same way in all of them."""
    alt = altair()
    levels = list(release.schema.shown_levels(piece.rows))
    domain = _domain(points)
    if piece.panels is None:
        return _panel(points, levels, plot_width(levels), domain)
    columns = release.schema.shown_levels(piece.panels)
    title = release.schema.shown(piece.panels)
    parts = []
    for i, column in enumerate(columns):
        part = _panel(
            [point for point in points if point["panel"] == column],
            levels,
            plot_width(levels, panels=2),
            domain,
            labelled=i % 2 == 0,
            kinds=list(dict.fromkeys(point["kind"] for point in points)),
        )
        parts.append(part.properties(title=alt.Title(f"{title}: {column}", anchor="middle")))
    return alt.concat(*parts, columns=2, spacing=16)


def plot_width(labels: Sequence[str], panels: int = 1) -> int:
    """The width of each panel beside these labels, so that the whole fits a telephone."""
    beside = min(LONGEST, LETTER * max(map(len, labels)))
    return max(90, (WIDTH + 60 - beside - 16 * (panels - 1)) // panels)


def _domain(points: Sequence[dict[str, Any]]) -> list[float]:
    """Common x range; zero is included when it is near enough to cost little room."""
    low = min(min(point["low"], point["value"]) for point in points)
    high = max(max(point["high"], point["value"]) for point in points)
    if 0 < low < 0.6 * high:
        low = 0
    room = 0.03 * (high - low) or 1.0
    return [low if low == 0 else low - room, high + room]


def _panel(
    points: list[dict[str, Any]],
    levels: list[str],
    width: int,
    domain: list[float],
    *,
    labelled: bool = True,
    kinds: list[str] | None = None,
) -> Any:
    """One panel: a rule with end caps for each interval, a point for each value as drawn."""
    alt = altair()
    kinds = kinds or list(dict.fromkeys(point["kind"] for point in points))
    axis = alt.Axis(title=None, labelLimit=LONGEST, labelPadding=6) if labelled else None
    y = alt.Y("row:N", sort=levels, scale=alt.Scale(domain=levels), axis=axis)
    scale = alt.Scale(domain=domain, nice=False, zero=False)
    ticks = alt.Axis(
        title="people",
        format="~s" if domain[1] >= 1e5 else ",~f",
        tickCount=5 if width > 200 else 3,
    )
    x = alt.X("value:Q", scale=scale, axis=ticks)
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=WIDTH)
    colours = _colours(kinds)
    fills = ["white" if kind == EXACT else c for kind, c in zip(kinds, colours, strict=True)]
    shapes = ["diamond" if kind == EXACT else "circle" for kind in kinds]
    stroke = alt.Stroke("kind:N", scale=alt.Scale(domain=kinds, range=colours), legend=legend)
    fill = alt.Fill("kind:N", scale=alt.Scale(domain=kinds, range=fills), legend=legend)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=shapes), legend=legend)
    base = chart_of(points).encode(y=y, stroke=stroke)
    point = 8 / width * (domain[1] - domain[0])  # a bar inside its point only spoils the shape
    noisy = base.transform_filter(alt.datum.high - alt.datum.low > point)
    return alt.layer(
        noisy.mark_rule(strokeWidth=1.6).encode(x=alt.X("low:Q", scale=scale), x2="high:Q"),
        noisy.mark_tick(thickness=1.6, size=8, opacity=1).encode(x=alt.X("low:Q", scale=scale)),
        noisy.mark_tick(thickness=1.6, size=8, opacity=1).encode(x=alt.X("high:Q", scale=scale)),
        base.mark_point(opacity=1, size=34, strokeWidth=1.4).encode(x=x, fill=fill, shape=shape),
    ).properties(width=width, height=max(16 * len(levels), 56))


def _colours(kinds: Sequence[str]) -> list[str]:
    spare = iter((BLUE, VERMILION, GREEN, PURPLE))
    return [INK if kind == EXACT else next(spare) for kind in kinds]


def styled(chart: Any) -> Any:
    """The look all our pictures share."""
    # Text is laid out before the reader's fonts are known: fonts as wide as Arial, and spare room.
    font = "Arial, Helvetica, Liberation Sans, Arimo, sans-serif"
    return chart.configure(
        font=font,
        background="white",
        padding=PADDING,
        view={"stroke": None},
        axis={
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelColor": INK,
            "titleColor": INK,
            "gridColor": "#e6eaee",
            "domain": False,
            "ticks": False,
            "titlePadding": 8,
        },
        legend={
            "labelFontSize": 12,
            "labelColor": INK,
            "symbolSize": 70,
            "symbolOpacity": 1,
            "offset": 8,
        },
        title={
            "fontSize": 12,
            "fontWeight": "normal",
            "color": INK,
            "subtitleColor": "#5b6673",
            "offset": 6,
        },
    )


def noise_chart(noise: CellNoise) -> Any:
    """The law of one cell's noise; the middle part, which has 90%, is darker."""
    alt = altair()
    step = float(noise.at[1] - noise.at[0]) if len(noise.at) > 1 else 1.0
    points = [
        {
            "at": u,
            "from": u - 0.45 * step,
            "to": u + 0.45 * step,
            "weight": w,
            "inside": abs(u) <= noise.half_width,
        }
        for u, w in zip(noise.at.tolist(), noise.weight.tolist(), strict=True)
    ]
    what = "probability" if noise.whole else "density"
    if noise.simulated:
        what += ", simulated"
    title = "noise added to the count"
    ticks = alt.Axis(format=",~f", tickCount=5)
    y = alt.Y("weight:Q", title=what, axis=alt.Axis(tickCount=4))
    data = chart_of(points)
    if noise.whole:
        x = alt.X("from:Q", title=title, axis=ticks)
        shade = alt.condition(alt.datum.inside, alt.value(BLUE), alt.value(GREY))
        drawn = data.mark_rect().encode(x=x, x2="to:Q", y=y, y2=alt.datum(0), color=shade)
    else:
        x = alt.X("at:Q", title=title, axis=ticks)
        middle = data.mark_area(color=BLUE).transform_filter(alt.datum.inside)
        drawn = alt.layer(data.mark_area(color=GREY).encode(x=x, y=y), middle.encode(x=x, y=y))
    return styled(drawn.properties(width=WIDTH, height=150))


def svg_uri(chart: Any) -> str:
    """The chart as a data URI for an `img`, where an SVG can run no script and load nothing."""
    import vl_convert

    # Every part was checked against the schema when it was made; the rows need no check.
    version = altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2]
    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=False), vl_version="_".join(version))
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
