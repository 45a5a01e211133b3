"""Axes and legends: labels that do not touch, numbers that say what they count."""

from __future__ import annotations

import pytest

from congenial.report import charts
from congenial.report.charts import chart

POINTS = [{"x": x, "y": x / 2, "by": n} for x in (0.0, 0.05, 0.4) for n in (2, 10)]
SPEC = {"kind": "line", "x": "gap", "y": "error", "by": "people"}


def test_labels_of_numbers_do_not_touch():
    axis = charts.x_axis(SPEC, POINTS).to_dict()["axis"]
    assert axis == {"labelOverlap": "greedy", "labelSeparation": 4}


def test_a_legend_of_numbers_has_a_title_and_one_of_names_none():
    named = [{**p, "by": f"method {p['by']}"} for p in POINTS]
    titles = [
        charts.colour(SPEC, points)["color"].to_dict()["legend"]["title"]
        for points in (POINTS, named)
    ]
    assert titles == ["people", None]
    entitled = charts.colour({**SPEC, "by_title": "n people"}, POINTS)
    assert entitled["color"].to_dict()["legend"]["title"] == "n people"


@pytest.mark.usefixtures("with_charts")
def test_a_panel_of_a_number_is_named_by_its_column():
    rows = [[delta, x, x / 2] for delta in (0.001, 0.01) for x in (1.0, 2.0)]
    spec = {"kind": "points", "x": "gap", "y": "error", "facet": "delta"}
    drawn = chart({"title": "t", "columns": ["delta", "gap", "error"], "rows": rows, "chart": spec})
    named = {point["facet"] for point in drawn.to_dict()["data"]["values"]}
    assert named == {"delta = 0.001", "delta = 0.01"}
