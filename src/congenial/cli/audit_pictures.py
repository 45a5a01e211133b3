"""Pictures of `congenial audit --property`: CONFIDENTIAL, as they come from modelling data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOR_CURATOR = "CONFIDENTIAL: computed from the modelling data, for the curator only."
WIDTH = 560
BARS = "Bars: sampled statistics; lines: the normal distributions fitted to them."


def save(chart: Any, folder: Path, stem: str) -> list[Path]:
    """A picture as PNG and SVG."""
    written = [folder / f"{stem}.{ending}" for ending in ("png", "svg")]
    chart.save(str(written[0]), format="png", scale_factor=2)
    chart.save(str(written[1]), format="svg")
    return written


def laws_chart(title: str, rows: list[list[Any]]) -> Any:
    """Histograms as bars under the fitted curves: a panel per statistic, a colour per scenario.

    `rows` are those of `assumptions.histograms`; fields get plain names, so that no label is read
    as a Vega expression.
    """
    from congenial.report import pictures

    alt = pictures.altair()
    keys = ("statistic", "scenario", "from", "to", "sampled", "fitted")
    points = [dict(zip(keys, row, strict=True)) for row in rows]
    points = [one | {"middle": (one["from"] + one["to"]) / 2} for one in points]
    scenarios, statistics = (
        list(dict.fromkeys(one[key] for one in points)) for key in ("scenario", "statistic")
    )
    ticks = alt.Axis(tickCount=6, labelOverlap="greedy", labelSeparation=12)
    base = pictures.chart_of(points).encode(color=_colour(scenarios))
    x = {"title": None, "scale": alt.Scale(zero=False), "axis": ticks}
    bars = base.mark_rect(opacity=0.3).encode(
        x=alt.X("from:Q", **x),
        x2="to:Q",
        y=alt.Y("sampled:Q", title="density", axis=alt.Axis(labels=False, tickCount=4)),
        y2=alt.datum(0),
    )
    lines = base.mark_line(strokeWidth=1.8, interpolate="monotone").encode(
        x=alt.X("middle:Q", **x), y="fitted:Q"
    )
    panels = alt.Facet("statistic:N", title=None, sort=statistics)
    drawn = (
        alt.layer(bars, lines)
        .properties(width=WIDTH, height=160)
        .facet(facet=panels, columns=1)
        .resolve_scale(x="independent", y="independent")
    )
    told = alt.Title(title, subtitle=[FOR_CURATOR, BARS], anchor="start", offset=12)
    return pictures.styled(drawn.properties(title=told))


def _colour(scenarios: list[str]) -> Any:
    from congenial.report import pictures

    alt = pictures.altair()
    few = (pictures.BLUE, pictures.VERMILION, pictures.GREEN, pictures.PURPLE, pictures.GREY)
    colours = [few[at % len(few)] for at in range(len(scenarios))]
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=520)
    return alt.Color("scenario:N", scale=alt.Scale(domain=scenarios, range=colours), legend=legend)
