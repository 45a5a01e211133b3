"""Pictures of results, drawn with Altair and rendered offline like those of a release.

`chart` takes a result with its specification. Each kind of drawing takes the specification and the
points (one dictionary per row, with the plain names of `FIELDS`) and has no title and no panels.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from congenial.errors import BundleError
from congenial.report import pictures

WIDE = 100  # characters that the labels of an axis may have between them and still stand upright
LONG = 52  # characters of a legend's label that still leave room for another beside it
_COLOURS = (
    pictures.BLUE,
    pictures.VERMILION,
    pictures.GREEN,
    pictures.PURPLE,
    "#E69F00",
    "#56B4E9",
    pictures.GREY,
    pictures.INK,
    "#8B5A2B",
    "#44AA99",
)


def seen(points: list[dict[str, Any]], key: str) -> list[Any]:
    """Values in the order they come: the order of the rows is the order of the picture."""
    return list(dict.fromkeys(p[key] for p in points))


def title_of(spec: dict[str, Any], axis: str) -> str:
    """The title of an axis: its own, or the column's name in words."""
    return str(spec.get(f"{axis}_title", str(spec[axis]).replace("_", " ")))


def x_axis(spec: dict[str, Any], points: list[dict[str, Any]]) -> Any:
    """The horizontal axis: numbers, or names in the order they come."""
    alt = pictures.altair()
    numbers = all(isinstance(p["x"], int | float) for p in points)
    title = title_of(spec, "x")
    if spec["x"] == spec.get("by"):  # the legend says it
        return alt.X("x:N", sort=seen(points, "x"), axis=None)
    if not numbers or spec["kind"] in ("bar", "box"):
        flat = sum(len(str(label)) + 2 for label in seen(points, "x")) <= WIDE
        sparse = {"labelOverlap": "parity"} if spec.get("x_sparse") else {}
        axis = alt.Axis(labelAngle=0 if flat else -60, labelLimit=140 if flat else 200, **sparse)
        return alt.X("x:N", title=title, sort=seen(points, "x"), axis=axis)
    scale = _log() if spec.get("x_log") else alt.Scale(zero=False)
    values = sorted(seen(points, "x"))
    few = len(values) <= 12 and all(isinstance(x, int) for x in values) and not spec.get("x_log")
    whole = {"values": values, "format": ",d"} if few else {}  # no ticks between wholes
    axis = alt.Axis(labelOverlap="greedy", labelSeparation=4, **whole)
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def _log() -> Any:
    """A logarithmic scale with some room at its ends."""
    return pictures.altair().Scale(type="log", nice=False, padding=14)


def y_axis(spec: dict[str, Any]) -> Any:
    """The vertical axis; bars begin at 0."""
    alt = pictures.altair()
    zero = spec["kind"] == "bar"
    scale = _log() if spec.get("y_log") else alt.Scale(zero=zero)
    if spec.get("y_symlog"):  # logarithmic, and 0 has a place
        ticks = [0, *(sign * 10**k for k in range(7) for sign in (1, -1))]
        scale, axis = alt.Scale(type="symlog", constant=1), alt.Axis(values=ticks)
        return alt.Y("y:Q", title=title_of(spec, "y"), scale=scale, axis=axis)
    return alt.Y("y:Q", title=title_of(spec, "y"), scale=scale)


def colour(spec: dict[str, Any], points: list[dict[str, Any]]) -> dict[str, Any]:
    """A colour for each value of `by`, a legend below, bars beside each other.

    `named`: every series of several pictures, in one order, so that one series has one colour in
    all of them.
    """
    alt, kinds = pictures.altair(), seen(points, "by")
    order = [*spec.get("named", ()), *kinds]
    colours = [_COLOURS[order.index(kind) % len(_COLOURS)] for kind in kinds]
    columns = 2 if max(len(str(kind)) for kind in kinds) <= LONG else 1
    numbers = all(isinstance(kind, int | float) for kind in kinds)  # mean nothing without a title
    title = title_of(spec, "by") if numbers else None
    legend = alt.Legend(title=title, orient="bottom", columns=columns, labelLimit=640 // columns)
    scale = alt.Scale(domain=kinds, range=colours)
    encoding = {"color": alt.Color("by:N", scale=scale, legend=legend)}
    if spec["kind"] == "points" or spec.get("as_points"):
        encoding["shape"] = alt.Shape("by:N", scale=alt.Scale(domain=kinds), legend=legend)
    if (spec["kind"] in ("bar", "box") or spec.get("dodge")) and spec["x"] != spec["by"]:
        encoding["xOffset"] = alt.XOffset("by:N", sort=kinds)
    return encoding


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
    copy_of_y = y.copy()
    copy_of_y.shorthand = f"{column}:Q"
    return copy_of_y


def _hues(spec: dict[str, Any], points: Points) -> dict[str, Any]:
    """Colours, and boxes of several colours beside each other."""
    if not spec.get("by"):
        return {}
    alt = pictures.altair()
    encoding = colour(spec, points)
    if spec["x"] != spec["by"]:
        encoding["xOffset"] = alt.XOffset("by:N", sort=seen(points, "by"))
    return encoding


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
    largest: dict[tuple[Any, ...], float] = {}
    for p in points:
        largest[_key(p)] = max(largest.get(_key(p), 0.0), p["low"])
    return largest


def histograms(spec: dict[str, Any], points: Points) -> Any:
    """Bars from x to x2 of height y, and a line of column `line` through their middles."""
    alt = pictures.altair()
    rows = [p | {"middle": (p["x"] + p["x2"]) / 2} for p in points]
    base = pictures.chart_of(rows).encode(**colour(spec, points))
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


WIDTH = 560  # of what is plotted, on a page of its own
KINDS = ("line", "bar", "points", "box", *LAW_KINDS)
FIELDS = ("x", "y", "x2", "low", "q1", "q3", "high", "line", "value", "by", "facet")  # columns


def chart(result: dict[str, Any]) -> Any:
    """The result's picture: column y against x, a colour for each value of `by`, panels by `facet`.

    Points may have a bar from column `low` to column `high`, lines a band; `dodge` sets points of
    several colours beside each other; `rule` is the height of a horizontal line, or several by
    their names; series in `as_points` are points among lines. Kinds of distributions are in
    `law_charts`. A chart may bring its own `data` (columns and rows) instead of the table's.
    A logarithmic axis leaves 0 out.
    Fields get plain names (x, y, by, facet), so that no label is read as a Vega expression.
    """
    if not pictures.available():
        raise BundleError(
            "pictures need the extra 'report'.",
            remedy="Install it: pip install 'congenial[report]'.",
        )
    alt, spec = pictures.altair(), result["chart"]
    points = [p for p in _points(result, FIELDS) if _present(p) and not _off(spec, p)]
    kind = spec["kind"]
    drawn = LAW_KINDS[kind](spec, points) if kind in LAW_KINDS else _plain(spec, points)
    title = alt.Title(result["title"], **_subtitle(result), anchor="start", offset=12)
    width, height = spec.get("width", WIDTH), spec.get("height", 300)
    if spec.get("facet"):
        drawn = _panels(drawn, spec, seen(points, "facet"))
    else:
        drawn = drawn.properties(width=width, height=height)
    return pictures.styled(drawn.properties(title=title))


def _points(result: dict[str, Any], fields: tuple[str, ...]) -> list[dict[str, Any]]:
    """One dictionary per row of the chart's data, with plain names."""
    spec = result["chart"]
    table = spec.get("data", result)
    at = {key: table["columns"].index(spec[key]) for key in fields if spec.get(key)}
    points = [{key: row[i] for key, i in at.items()} for row in table["rows"]]
    for point in points:
        if isinstance(point.get("facet"), int | float):  # a panel named 0.01 says nothing
            point["facet"] = f"{title_of(spec, 'facet')} = {point['facet']}"
    return points


def _plain(spec: dict[str, Any], points: list[dict[str, Any]]) -> Any:
    """Lines, bars, points and boxes of the data themselves, with bands, bars and rules."""
    alt, coloured = pictures.altair(), bool(spec.get("by"))
    data = pictures.chart_of(points)
    base = data.encode(x=x_axis(spec, points), y=y_axis(spec))
    if coloured:
        base = base.encode(**colour(spec, points))
    drawn = _marked(base, spec["kind"], coloured)
    if spec.get("as_points"):
        drawn = _mixed(base, spec["as_points"])
    if spec.get("low"):
        within = _with_band if spec["kind"] == "line" else _with_bars
        drawn = within(base, drawn, coloured)
    if spec.get("rule") is not None:
        drawn = alt.layer(drawn, *_rules(data, spec["rule"]))
    return drawn


def _mixed(base: Any, names: list[str]) -> Any:
    """Lines, and the named series as open points in front of them."""
    alt = pictures.altair()
    chosen = alt.FieldOneOfPredicate(field="by", oneOf=list(names))
    lines = base.transform_filter({"not": chosen}).mark_line(strokeWidth=1.8)
    return alt.layer(lines, base.transform_filter(chosen).mark_point(size=36, filled=False))


def _panels(drawn: Any, spec: dict[str, Any], names: list[Any]) -> Any:
    """One panel for each value of `facet`, in the order of the rows, row by row."""
    alt = pictures.altair()
    columns = spec.get("columns", 1 if len(names) % 2 else 2)  # an odd number is a column
    width = spec.get("width", WIDTH if columns == 1 else 520 // columns)
    panels = alt.Facet("facet:N", title=None, sort=names)
    sized = drawn.properties(width=width, height=spec.get("height", 180))
    free = {axis: "independent" if spec.get(f"{axis}_free") else "shared" for axis in "xy"}
    return sized.facet(facet=panels, columns=columns).resolve_scale(**free)


def off_scale(result: dict[str, Any]) -> int:
    """How many rows of a result its picture leaves out, because a logarithmic axis has no 0."""
    if not result.get("chart"):
        return 0
    points = _points(result, ("x", "y"))
    return sum(_off(result["chart"], p) for p in points if _present(p))


def _present(point: dict[str, Any]) -> bool:
    return point["x"] is not None and point["y"] is not None


def _off(spec: dict[str, Any], point: dict[str, Any]) -> bool:
    return any(spec.get(f"{axis}_log") and point[axis] <= 0 for axis in "xy")


def _marked(base: Any, kind: str, coloured: bool) -> Any:
    """Marks of one kind; a single series is blue."""
    plain = {} if coloured else {"color": pictures.BLUE}
    if kind == "bar":
        return base.mark_bar(**plain)
    if kind == "box":
        return base.mark_boxplot(size=14, **plain)
    if kind == "line":
        return base.mark_line(strokeWidth=1.8, point={"size": 18}, **plain)
    if coloured:  # points of several series may coincide: open marks, of different shapes
        return base.mark_point(filled=False, size=60, strokeWidth=1.8, opacity=1)
    return base.mark_point(filled=True, size=22, opacity=0.6, **plain)


def _with_band(base: Any, drawn: Any, coloured: bool) -> Any:
    """Lines, each in front of a band from low to high."""
    alt = pictures.altair()
    plain = {} if coloured else {"color": pictures.BLUE}
    band = base.mark_area(opacity=0.14, **plain).encode(y=alt.Y("low:Q"), y2="high:Q")
    return alt.layer(band, drawn)


def _with_bars(base: Any, _: Any, coloured: bool) -> Any:
    """Points, each on a bar from low to high."""
    alt = pictures.altair()
    plain = {} if coloured else {"color": pictures.BLUE}
    bars = base.mark_rule(strokeWidth=1.6, **plain).encode(y=alt.Y("low:Q"), y2="high:Q")
    return alt.layer(bars, base.mark_point(filled=True, size=44, opacity=1, **plain))


def _rules(data: Any, rule: float | dict[str, float]) -> list[Any]:
    """Horizontal lines, each drawn once in a panel and not once for every point."""
    alt = pictures.altair()
    heights = rule.values() if isinstance(rule, dict) else [rule]
    once = data.transform_aggregate(points="count()")
    mark = once.mark_rule(color=pictures.INK, strokeDash=[5, 4])
    return [mark.encode(y=alt.datum(height)) for height in heights]


def _subtitle(result: dict[str, Any]) -> dict[str, list[str]]:
    """Where a result comes from, and what its dashed lines are."""
    subtitle, rule = [result["source"]] if result.get("source") else [], result["chart"].get("rule")
    if isinstance(rule, dict):
        subtitle.append("Dashed: " + ", ".join(f"{words} ({v:.3g})" for words, v in rule.items()))
    return {"subtitle": subtitle} if subtitle else {}
