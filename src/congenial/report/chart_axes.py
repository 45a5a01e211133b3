"""Axes and colours of a chart: what its specification says, in the words of the columns."""

from __future__ import annotations

from typing import Any

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
    found = {"color": alt.Color("by:N", scale=scale, legend=legend)}
    if spec["kind"] == "points" or spec.get("as_points"):
        found["shape"] = alt.Shape("by:N", scale=alt.Scale(domain=kinds), legend=legend)
    if (spec["kind"] in ("bar", "box") or spec.get("dodge")) and spec["x"] != spec["by"]:
        found["xOffset"] = alt.XOffset("by:N", sort=kinds)
    return found
