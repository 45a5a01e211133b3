"""Pictures of results, drawn with Altair and rendered offline like those of a release."""

from __future__ import annotations

from typing import Any

from congenial.errors import BundleError
from congenial.report import pictures
from congenial.report.chart_axes import colour, seen, title_of, x_axis, y_axis
from congenial.report.law_charts import LAW_KINDS

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
    told, rule = [result["source"]] if result.get("source") else [], result["chart"].get("rule")
    if isinstance(rule, dict):
        told.append("Dashed: " + ", ".join(f"{words} ({v:.3g})" for words, v in rule.items()))
    return {"subtitle": told} if told else {}
