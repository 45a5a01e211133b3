"""Pictures of distributions: boxes from given quartiles, violins, histograms, moved mass; and
tables as coloured cells.

Each function takes the chart's specification and its points (one dictionary per row, with the plain
names of `charts.FIELDS`) and gives a drawing without title and panels.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from congenial.report import pictures
from congenial.report.chart_axes import colour, seen, x_axis, y_axis

Points = list[dict[str, Any]]
HALF = 0.44  # of the room between two violins that one may fill to either side


def quartiles(spec: dict[str, Any], points: Points) -> Any:
    """Boxes from given numbers: whiskers from low to high, a box from q1 to q3, a tick at y.

    `line`: a column drawn as a line through the boxes (what is true, for example).
    """
    alt = pictures.altair()
    data = pictures.chart_of(points)
    base = data.encode(x=x_axis(spec | {"kind": "box"}, points), **_hues(spec, points))
    plain = {} if spec.get("by") else {"color": pictures.BLUE}
    size = float(spec.get("size", 12))
    y = y_axis(spec)
    whisker = base.mark_rule(strokeWidth=1, **plain)
    layers = [
        whisker.encode(y=_shared(y, "low"), y2="q1:Q"),
        whisker.encode(y=_shared(y, "q3"), y2="high:Q"),
        base.mark_bar(size=size, opacity=0.55, **plain).encode(y=_shared(y, "q1"), y2="q3:Q"),
        base.mark_tick(size=size, thickness=2, color=pictures.INK).encode(y=_shared(y, "y")),
    ]
    if spec.get("line"):
        own = data.encode(x=x_axis(spec | {"kind": "box"}, points), **colour(spec, points))
        layers.append(own.mark_line(strokeWidth=1.6, **plain).encode(y=_shared(y, "line")))
    return alt.layer(*layers)


def _shared(y: Any, column: str) -> Any:
    """The same axis for another column."""
    made = y.copy()
    made.shorthand = f"{column}:Q"
    return made


def _hues(spec: dict[str, Any], points: Points) -> dict[str, Any]:
    """Colours, and boxes of several colours beside each other."""
    if not spec.get("by"):
        return {}
    alt = pictures.altair()
    found = colour(spec, points)
    if spec["x"] != spec["by"]:
        found["xOffset"] = alt.XOffset("by:N", sort=seen(points, "by"))
    return found


def violins(spec: dict[str, Any], points: Points) -> Any:
    """Mirrored densities: column y the value, `low` its density, one violin for each x (and `by`).

    Each violin is as wide as its room; violins of several colours at one x stand side by side.
    """
    alt = pictures.altair()
    names, largest, places = seen(points, "x"), _largest(points), _places(points)
    drawn = [
        {
            "x": places[_key(p)][0] - places[_key(p)][1] * p["low"] / largest[_key(p)],
            "x2": places[_key(p)][0] + places[_key(p)][1] * p["low"] / largest[_key(p)],
            "y": p["y"],
            "of": str(_key(p)),
            **{k: p[k] for k in ("by", "facet") if k in p},
        }
        for p in points
    ]
    labels = f"{json.dumps([str(name) for name in names])}[datum.value]"
    flat = sum(len(str(name)) + 2 for name in names) <= 100
    axis = alt.Axis(
        values=list(range(len(names))), labelExpr=labels, grid=False, ticks=False,
        labelAngle=0 if flat else -60, labelLimit=200,
    )  # fmt: skip
    scale = alt.Scale(domain=[-0.6, len(names) - 0.4], nice=False)
    base = pictures.chart_of(drawn).encode(
        x=alt.X("x:Q", axis=axis, scale=scale, title=spec.get("x_title")),
        x2="x2:Q",
        y=y_axis(spec),
        detail="of:N",
    )
    if spec.get("by"):
        hue = colour(spec, points)
        if all(p["by"] == p["x"] for p in points):  # the axis says it
            hue["color"].legend = None
        return base.encode(**hue).mark_area(orient="horizontal", opacity=0.45)
    return base.mark_area(orient="horizontal", opacity=0.75, color=pictures.BLUE)


def _key(point: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(point.get(k) for k in ("facet", "x", "by"))


def _places(points: Points) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Centre and half the width of each violin: those of one x share its room."""
    names, beside = seen(points, "x"), dict[tuple[Any, ...], list[Any]]()
    for key in dict.fromkeys(_key(p) for p in points):
        beside.setdefault(key[:2], []).append(key)
    return {
        key: (names.index(x) + HALF * ((2 * at + 1) / len(keys) - 1), HALF / len(keys))
        for (_, x), keys in beside.items()
        for at, key in enumerate(keys)
    }


def _largest(points: Points) -> dict[tuple[Any, ...], float]:
    found: dict[tuple[Any, ...], float] = {}
    for p in points:
        found[_key(p)] = max(found.get(_key(p), 0.0), p["low"])
    return found


def histograms(spec: dict[str, Any], points: Points) -> Any:
    """Bars from x to x2 of height y, and a line of column `line` through their middles."""
    alt = pictures.altair()
    made = [p | {"middle": (p["x"] + p["x2"]) / 2} for p in points]
    base = pictures.chart_of(made).encode(**colour(spec, points))
    scale = alt.Scale(zero=False)
    x = alt.X("x:Q", title=spec.get("x_title", ""), scale=scale)
    bars = base.mark_bar(opacity=0.4).encode(
        x=x, x2="x2:Q", y=y_axis(spec | {"kind": "bar"}), y2=alt.datum(0)
    )
    line = base.mark_line(strokeWidth=2).encode(x=alt.X("middle:Q", scale=scale), y="line:Q")
    return alt.layer(bars, line)


def cells(spec: dict[str, Any], points: Points) -> Any:
    """A table as coloured cells with their numbers, rows downwards."""
    alt = pictures.altair()
    base = pictures.chart_of(points).encode(
        x=alt.X(
            "x:O", title=spec.get("x_title", spec["x"]), axis=alt.Axis(orient="top", labelAngle=0)
        ),
        y=alt.Y("y:O", title=spec.get("y_title", spec["y"])),
    )
    top = max(abs(p["value"]) for p in points) or 1
    colours = [pictures.VERMILION, "#ffffff", pictures.BLUE]
    scale = alt.Scale(domain=[-top, 0, top], range=colours, interpolate="rgb")
    boxes = base.mark_rect(stroke=pictures.GREY).encode(
        color=alt.Color("value:Q", scale=scale, legend=None)
    )
    dark = abs(alt.datum.value) > top / 2  # ink on a dark cell cannot be read
    ink = alt.condition(dark, alt.value("#ffffff"), alt.value(pictures.INK))
    words = base.mark_text(fontSize=15, fontWeight="bold").encode(text="value:Q", color=ink)
    return alt.layer(boxes, words)


def moved_mass(spec: dict[str, Any], points: Points) -> Any:
    """Bars of two laws beside each other, and arrows for the mass that moves between their points.

    `moves`: [from, to, mass, left out]; a move that is left out is dashed.
    """
    alt = pictures.altair()
    places = seen(points, "x")
    scale = alt.Scale(domain=places)  # one order for bars and arrows
    x = alt.X("x:N", scale=scale, title=spec.get("x_title"), axis=alt.Axis(labelAngle=0))
    top = max(p["y"] for p in points)
    bars = pictures.chart_of(points).encode(
        x=x, y=y_axis(spec | {"kind": "bar"}), **_hues(spec, points)
    )
    arrows = [
        {
            "x": start, "to": end, "y": top * (1.08 + 0.09 * k), "dash": "left out" if out else "",
            "first": min(start, end, key=places.index),
            "text": f"{mass:g} moves from {start} to {end}" + (", left out" if out else ""),
        }
        for k, (start, end, mass, out) in enumerate(spec["moves"])
    ]  # fmt: skip
    base = pictures.chart_of(arrows).encode(x=alt.X("x:N", scale=scale), y="y:Q")
    dash = alt.StrokeDash(
        "dash:N",
        scale=alt.Scale(domain=["", "left out"], range=[[1, 0], [5, 4]]),
        legend=None,
    )
    rules = base.mark_rule(strokeWidth=1.6, color=pictures.INK).encode(x2="to:N", strokeDash=dash)
    heads = pictures.chart_of(arrows).encode(x=alt.X("to:N", scale=scale), y="y:Q")
    points_at = heads.mark_point(shape="diamond", filled=True, size=60, color=pictures.INK)
    words = base.mark_text(align="left", dy=-8, color=pictures.INK).encode(
        x=alt.X("first:N", scale=scale), text="text:N"
    )
    return alt.layer(bars.mark_bar(), rules, points_at, words)


Drawing = Callable[[dict[str, Any], Points], Any]
LAW_KINDS: dict[str, Drawing] = {
    "quartiles": quartiles,
    "violin": violins,
    "histogram": histograms,
    "cells": cells,
    "moved mass": moved_mass,
}
