"""Pictures of results, drawn with Altair and rendered offline like those of a release."""

from __future__ import annotations

from typing import Any

from congenial.errors import BundleError
from congenial.report import pictures

KINDS = ("line", "bar", "points", "box")
FIELDS = ("x", "y", "low", "high", "by", "facet")  # of a chart: each names a column
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
)


def chart(result: dict[str, Any]) -> Any:
    """The result's picture: column y against x, a colour for each value of `by`, panels by `facet`.

    Points may have a bar from column `low` to column `high`, lines a band; `dodge` sets points of
    several colours beside each other; `rule` is the height of a horizontal line, or several by
    their names. A logarithmic axis leaves 0 out.
    Fields get plain names (x, y, by, facet), so that no label is read as a Vega expression.
    """
    if not pictures.available():
        raise BundleError(
            "pictures need the extra 'report'.",
            remedy="Install it: pip install 'congenial[report]'.",
        )
    alt, spec = pictures.altair(), result["chart"]
    named = {key: spec[key] for key in FIELDS if spec.get(key)}
    at = {key: result["columns"].index(column) for key, column in named.items()}
    points = [{key: row[i] for key, i in at.items()} for row in result["rows"]]
    points = [p for p in points if _present(p) and not _off(spec, p)]
    data = alt.Chart(alt.Data(values=points))
    base = data.encode(x=_x(spec, points), y=_y(spec))
    if "by" in at:
        base = base.encode(**_colour(spec, points))
    drawn = _marked(base, spec["kind"], "by" in at)
    if "low" in at:
        within = _with_band if spec["kind"] == "line" else _with_bars
        drawn = within(base, drawn, "by" in at)
    if spec.get("rule") is not None:
        drawn = alt.layer(drawn, *_rules(data, spec["rule"]))
    title = alt.Title(result["title"], **_subtitle(result), anchor="start", offset=12)
    if "facet" in at:
        seen = _seen(points, "facet")
        columns = 1 if len(seen) % 2 else 2  # an odd number of panels is a column of wide ones
        width = pictures.WIDTH if columns == 1 else 260
        panels = alt.Facet("facet:N", title=None, sort=seen)
        drawn = drawn.properties(width=width, height=180).facet(facet=panels, columns=columns)
        free = {axis: "independent" if spec.get(f"{axis}_free") else "shared" for axis in "xy"}
        drawn = drawn.resolve_scale(**free)
    else:
        drawn = drawn.properties(width=pictures.WIDTH, height=300)
    return pictures.styled(drawn.properties(title=title))


def off_scale(result: dict[str, Any]) -> int:
    """How many rows of a result its picture leaves out, because a logarithmic axis has no 0."""
    spec = result.get("chart")
    if not spec:
        return 0
    at = {key: result["columns"].index(spec[key]) for key in ("x", "y")}
    points = [{key: row[i] for key, i in at.items()} for row in result["rows"]]
    return sum(_off(spec, p) for p in points if _present(p))


def _present(point: dict[str, Any]) -> bool:
    return point["x"] is not None and point["y"] is not None


def _off(spec: dict[str, Any], point: dict[str, Any]) -> bool:
    return any(spec.get(f"{axis}_log") and point[axis] <= 0 for axis in "xy")


def _seen(points: list[dict[str, Any]], key: str) -> list[Any]:
    """Values in the order they come: the order of the rows is the order of the picture."""
    return list(dict.fromkeys(p[key] for p in points))


def _x(spec: dict[str, Any], points: list[dict[str, Any]]) -> Any:
    alt = pictures.altair()
    numbers = all(isinstance(p["x"], int | float) for p in points)
    title = spec.get("x_title", spec["x"])
    if spec["x"] == spec.get("by"):  # the legend says it
        return alt.X("x:N", sort=_seen(points, "x"), axis=None)
    if not numbers or spec["kind"] in ("bar", "box"):
        flat = sum(len(str(label)) + 2 for label in _seen(points, "x")) <= WIDE
        axis = alt.Axis(labelAngle=0 if flat else -60, labelLimit=140 if flat else 200)
        return alt.X("x:N", title=title, sort=_seen(points, "x"), axis=axis)
    scale = _log() if spec.get("x_log") else alt.Scale(zero=False)
    seen = sorted(_seen(points, "x"))
    few = len(seen) <= 12 and all(isinstance(x, int) for x in seen) and not spec.get("x_log")
    axis = alt.Axis(values=seen, format=",d") if few else alt.Axis()  # no ticks between wholes
    return alt.X("x:Q", title=title, scale=scale, axis=axis)


def _log() -> Any:
    """A logarithmic scale with some room at its ends."""
    return pictures.altair().Scale(type="log", nice=False, padding=14)


def _y(spec: dict[str, Any]) -> Any:
    alt = pictures.altair()
    zero = spec["kind"] == "bar"
    scale = _log() if spec.get("y_log") else alt.Scale(zero=zero)
    return alt.Y("y:Q", title=spec.get("y_title", spec["y"]), scale=scale)


def _colour(spec: dict[str, Any], points: list[dict[str, Any]]) -> dict[str, Any]:
    alt, kinds = pictures.altair(), _seen(points, "by")
    colours = [_COLOURS[i % len(_COLOURS)] for i in range(len(kinds))]
    columns = 2 if max(len(str(kind)) for kind in kinds) <= LONG else 1
    legend = alt.Legend(title=None, orient="bottom", columns=columns, labelLimit=640 // columns)
    scale = alt.Scale(domain=kinds, range=colours)
    found = {"color": alt.Color("by:N", scale=scale, legend=legend)}
    if (spec["kind"] in ("bar", "box") or spec.get("dodge")) and spec["x"] != spec["by"]:
        found["xOffset"] = alt.XOffset("by:N", sort=kinds)
    return found


def _marked(base: Any, kind: str, coloured: bool) -> Any:
    """Marks of one kind; a single series is blue."""
    colour = {} if coloured else {"color": pictures.BLUE}
    if kind == "bar":
        return base.mark_bar(**colour)
    if kind == "box":
        return base.mark_boxplot(size=14, **colour)
    if kind == "line":
        return base.mark_line(strokeWidth=1.8, point={"size": 18}, **colour)
    return base.mark_point(filled=True, size=22, opacity=0.6, **colour)


def _with_band(base: Any, drawn: Any, coloured: bool) -> Any:
    """Lines, each in front of a band from low to high."""
    alt = pictures.altair()
    colour = {} if coloured else {"color": pictures.BLUE}
    band = base.mark_area(opacity=0.14, **colour).encode(y=alt.Y("low:Q"), y2="high:Q")
    return alt.layer(band, drawn)


def _with_bars(base: Any, _: Any, coloured: bool) -> Any:
    """Points, each on a bar from low to high."""
    alt = pictures.altair()
    colour = {} if coloured else {"color": pictures.BLUE}
    bars = base.mark_rule(strokeWidth=1.6, **colour).encode(y=alt.Y("low:Q"), y2="high:Q")
    return alt.layer(bars, base.mark_point(filled=True, size=44, opacity=1, **colour))


def _rules(data: Any, rule: float | dict[str, float]) -> list[Any]:
    """Horizontal lines, each drawn once in a panel and not once for every point."""
    alt = pictures.altair()
    heights = rule.values() if isinstance(rule, dict) else [rule]
    once = data.transform_aggregate(points="count()")
    mark = once.mark_rule(color=pictures.INK, strokeDash=[5, 4])
    return [mark.encode(y=alt.datum(height)) for height in heights]


def _subtitle(result: dict[str, Any]) -> dict[str, list[str]]:
    """Where a result comes from, and what its dashed lines are."""
    told, rule = [result["source"]] if result.get("source") else [], result["chart"].get("rule")
    if isinstance(rule, dict):
        told.append("Dashed: " + ", ".join(f"{words} ({v:.3g})" for words, v in rule.items()))
    return {"subtitle": told} if told else {}
