"""How charts of commands (`infer`, `curve`, `audit`, `utility`, `reproduce`) look.

No bundle has them: the pictures of its report are drawn by hand (`svg.py`). Drawn with Altair and
rendered offline by vl-convert (extra `report`); `available` says whether both are there. Colours
are Okabe and Ito's, which colour-blind readers tell apart; exact figures also have their own shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

WIDTH = 290  # of what is plotted: with labels beside it a telephone shows all of it
PADDING = {"left": 24, "right": 12, "top": 4, "bottom": 4}
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


def altair() -> Any:
    """The module, loaded when a picture is drawn; untyped, because it may be absent."""
    import altair

    return altair


def chart_of(points: Iterable[Mapping[str, Any]]) -> Any:
    """A chart of some rows. All that is made of it shares them: altair copies a list each time."""
    alt = altair()
    return alt.Chart(alt.Data(values=tuple(points)))


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


def svg_of(chart: Any) -> str:
    """The chart as the text of an SVG file."""
    import vl_convert

    # Every part was checked against the schema when it was made; the rows need no check.
    version = altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2]
    plain = chart.to_dict(validate=False)
    return str(vl_convert.vegalite_to_svg(plain, vl_version="_".join(version)))
