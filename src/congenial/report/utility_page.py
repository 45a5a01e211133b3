"""The curator's page about synthetic records, and the picture of their errors.

They show the documents of `synthesis.utility_documents`. The tables of the page are those that
`congenial utility` prints. CONFIDENTIAL: every number comes from the confidential records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from congenial._notebook import Picture
from congenial.report import pictures
from congenial.report.charts import chart
from congenial.report.page import PageColumn, PageTable, table
from congenial.report.release_page import Facts
from congenial.report.render import page

MOST_BARS = 40  # levels that can be labelled side by side
DATA, DRAWN = "data", "synthetic, mean over copies"


@dataclass(frozen=True)
class UtilityColumn:
    """One column: how far its levels are off, and its quantiles where it has them."""

    name: str
    distance: str
    shares: Picture | None
    quantiles: PageTable | None
    open_levels: tuple[str, ...]
    ranges: Picture | None


@dataclass(frozen=True)
class UtilityRisk:
    """What the records of one column weigh."""

    column: str
    words: tuple[str, ...]
    picture: Picture | None


def render(document: dict[str, Any]) -> str:
    """The page as one HTML document."""
    return page(
        "utility.html",
        document=document,
        overall=overall(document),
        columns=[
            _column(document, column) for column in document["columns"] if not column["copied"]
        ],
        correlations=correlations(document),
        coefficients=coefficients(document),
        risk=[_risk(risk) for risk in document["risk"]],
    )


def overall(document: dict[str, Any]) -> Facts:
    """What is said of all columns together."""
    return [
        ("Copies", document["copies"]),
        ("pMSE", f"{document['pmse']['synthetic']:.3g}"),
        ("pMSE, ratio to equal laws", f"{document['pmse_ratio']['synthetic']:.2f}"),
        ("Unique combinations of levels", document["uniques"]),
        ("Of these replicated in a copy", _spread(document["replicated"])),
        ("Records of weight 0", document["weightless"]),
    ]


def _spread(over: dict[str, float]) -> str:
    """A mean over copies with its range, where the copies differ."""
    mean, low, high = (_short(over[key]) for key in ("synthetic", "least", "largest"))
    return mean if low == high else f"{mean} ({low} to {high})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _column(document: dict[str, Any], one: dict[str, Any]) -> UtilityColumn:
    rows = [row for row in document["quantiles"] if row["column"] == one["name"]]
    said = (words for words in document["open_levels"] if words.startswith(f"{one['name']}: "))
    ranges = "Quantiles; lines are the sampling interval of the data and the range over copies."
    return UtilityColumn(
        name=one["name"],
        distance=_spread(one["distance"]),
        shares=_figure(shares_chart(one), "Share of records by level."),
        quantiles=quantiles(rows) if rows else None,
        open_levels=tuple(said),
        ranges=_figure(quantiles_chart(rows), ranges) if rows else None,
    )


def quantiles(rows: list[dict[str, Any]]) -> PageTable:
    """Quantiles of one column, in the data and over the copies."""
    columns = [
        PageColumn("quantile"),
        PageColumn("data", number=True),
        PageColumn("its 95 % sampling interval", number=True),
        PageColumn("synthetic", number=True),
    ]
    quantile_rows = [
        (
            f"{row['at']:g}",
            _short(row["original"]),
            f"{_short(row['low'])} to {_short(row['high'])}",
            _spread(row["copies"]),
        )
        for row in rows
    ]
    return table(columns, quantile_rows)


def correlations(document: dict[str, Any]) -> PageTable | None:
    """Correlations of pairs of columns with numbers."""
    rows = [
        (" and ".join(row["columns"]), f"{row['original']:.3f}", _spread(row))
        for row in document["correlations"]
    ]
    columns = [
        PageColumn("correlation of"),
        PageColumn("data", number=True),
        PageColumn("synthetic", number=True),
    ]
    return table(columns, rows) if rows else None


def coefficients(document: dict[str, Any]) -> PageTable | None:
    """Coefficients of the linear regression that was asked for."""
    rows = [
        (row["name"], *(_short(row[key]) for key in _COEFFICIENT), f"{row['overlap']:.2f}")
        for row in document["coefficients"]
    ]
    columns = [
        PageColumn("coefficient"),
        PageColumn("data", number=True),
        PageColumn("standard error", number=True),
        PageColumn("synthetic, combined", number=True),
        PageColumn("standard error", number=True),
        PageColumn("overlap of intervals", number=True),
    ]
    words = f"Linear regression of {document['response']}"
    return table(columns, rows, words) if rows else None


_COEFFICIENT = ("original", "original_se", "synthetic", "synthetic_se")


def _risk(one: dict[str, Any]) -> UtilityRisk:
    words = (
        f"{one['records']:,} records count like {one['sum_of_weights']:,.1f} with weight 1",
        f"{one['downweighted']:,} of them weigh less than 1",
    )
    caption = "Weight of the records of each level; areas are numbers of records."
    return UtilityRisk(one["column"], words, _figure(risk_chart(one), caption))


# ---- pictures ------------------------------------------------------------------------------------


def _figure(drawn: Any, words: str) -> Picture | None:
    """A picture with its caption; none without the extra `report`."""
    return None if drawn is None else Picture(pictures.svg_of(drawn), words)


def shares_chart(one: dict[str, Any]) -> Any:
    """Shares by level, data beside synthetic; None where levels are too many to be told apart."""
    if not pictures.available() or len(one["levels"]) > MOST_BARS:
        return None
    alt = pictures.altair()
    points = [
        {"level": level, "share": share, "whose": whose}
        for whose, shares in ((DATA, one["original"]), (DRAWN, one["synthetic"]))
        for level, share in zip(one["levels"], shares, strict=True)
    ]
    bars = (
        pictures.chart_of(points)
        .mark_bar()
        .encode(
            x=_levels(one["levels"], one["name"]),
            xOffset=alt.XOffset("whose:N", sort=[DATA, DRAWN]),
            y=alt.Y("share:Q", title="share of records", axis=alt.Axis(format="~%", tickCount=5)),
            color=_whose(),
        )
    )
    return pictures.styled(bars.properties(width=pictures.WIDTH, height=200))


def _levels(levels: list[str], title: str) -> Any:
    alt = pictures.altair()
    angle = 0 if sum(len(level) + 2 for level in levels) < 44 else -60
    axis = alt.Axis(labelAngle=angle, labelLimit=140)
    return alt.X("level:N", sort=levels, scale=alt.Scale(domain=levels), title=title, axis=axis)


def _whose() -> Any:
    alt = pictures.altair()
    scale = alt.Scale(domain=[DATA, DRAWN], range=[pictures.INK, pictures.VERMILION])
    return alt.Color("whose:N", scale=scale, legend=alt.Legend(title=None, orient="bottom"))


def quantiles_chart(rows: list[dict[str, Any]]) -> Any:
    """Quantiles of data and copies, one under the other, with their ranges."""
    if not pictures.available():
        return None
    alt = pictures.altair()
    points, order = [], [f"{row['at']:g}" for row in rows]
    for row in rows:
        at, copies = f"{row['at']:g}", row["copies"]
        points += [
            {"at": at, "whose": DATA} | {k: row[f] for k, f in _OF_DATA.items()},
            {"at": at, "whose": DRAWN} | {k: copies[f] for k, f in _OF_COPIES.items()},
        ]
    base = pictures.chart_of(points).encode(
        y=alt.Y("at:N", title="quantile", sort=order, axis=alt.Axis(labelPadding=8)),
        yOffset=alt.YOffset("whose:N", sort=[DATA, DRAWN]),
        color=_whose(),
    )
    x = alt.X("value:Q", title=rows[0]["column"], scale=alt.Scale(zero=False))
    drawn = alt.layer(
        base.mark_rule(strokeWidth=1.8).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_point(filled=True, opacity=1, size=40).encode(x=x),
    )
    return pictures.styled(drawn.properties(width=pictures.WIDTH, height=36 * len(rows)))


_OF_DATA = {"value": "original", "low": "low", "high": "high"}
_OF_COPIES = {"value": "synthetic", "low": "least", "high": "largest"}


def risk_chart(one: dict[str, Any]) -> Any:
    """Weight by level, the area of a point being the number of records that have it."""
    if not pictures.available() or len(one["levels"]) > MOST_BARS:
        return None
    alt = pictures.altair()
    legend = alt.Legend(title="records", orient="right", symbolFillColor=pictures.GREY)
    color = alt.Color(
        "used:Q",
        scale=alt.Scale(domain=[0, 1], range=["#cfe3f1", pictures.BLUE]),
        legend=alt.Legend(title="part of M", orient="right", gradientLength=90),
    )
    dots = (
        pictures.chart_of(one["rows"])
        .mark_circle(opacity=1, stroke=pictures.INK, strokeWidth=0.6)
        .encode(
            x=_levels(one["levels"], one["column"]),
            y=alt.Y("weight:Q", title="weight of a record", scale=alt.Scale(zero=True)),
            size=alt.Size("records:Q", scale=alt.Scale(range=[0, 600]), legend=legend),
            color=color,
        )
    )
    return pictures.styled(dots.properties(width=pictures.WIDTH - 70, height=220))


# ---- errors of several mechanisms ----------------------------------------------------------------

MEASURES = {"columns": "mean over columns", "pairs": "mean over pairs of columns"}
LABELS = {"local": "local (estimate, no guarantee)"}


def errors_chart(document: dict[str, Any]) -> Any:
    """Errors with bands of two standard errors, a line for each mechanism; None without pictures.

    Records from models: root mean square against epsilon. Records from tables: mean total variation
    against the promise.
    """
    if not pictures.available():
        return None
    if "promise" in document:
        x, y, at, error = "times the promise", "total variation", "times", "mean"
        more = " No privacy: drawn from the data with replacement."
    else:
        x, y, at, error = "epsilon", "root mean square error", "epsilon", "rms"
        more = ""
    columns = ["measure", "mechanism", x, y, "low", "high"]
    rows = []
    for row in document["rows"]:
        value, band = row[f"{error}_error"], 2 * (row[f"{error}_se"] or 0.0)
        measure = MEASURES.get(row["measure"], row["measure"])
        mechanism = LABELS.get(row["mechanism"], row["mechanism"])
        rows.append([measure, mechanism, row[at], value, max(0.0, value - band), value + band])
    axes = {"x": x, "y": y, "low": "low", "high": "high", "by": "mechanism", "facet": "measure"}
    return chart(
        {
            "title": f"{document['release']}: error against {x}",
            "source": f"CONFIDENTIAL: for the curator alone. Bands: two standard errors.{more}",
            "columns": columns,
            "rows": rows,
            "chart": {"kind": "line", **axes, "y_free": True, "x_log": True},
        }
    )
