"""Pictures of distributions show the numbers they are given."""

from __future__ import annotations

from typing import Any

import pytest

from congenial.report.charts import LAW_KINDS, chart

pytestmark = pytest.mark.usefixtures("with_charts")

FIVE = {"low": "a", "q1": "b", "y": "c", "q3": "d", "high": "e"}
BOXES = [["m", 100, 1.0, 1.2, 1.7, 2.7, 9.0], ["m", 400, 1.0, 1.1, 1.5, 2.0, 7.0]]
CURVE = [["one", "A", 1.0, 0.2], ["one", "A", 2.0, 0.4], ["two", "B", 1.5, 3.0]]
BARS = [["x", 0.0, 1.0, 0.3, 0.2], ["x", 1.0, 2.0, 0.7, 0.6], ["y", 0.0, 1.0, 0.9, 0.8]]
MASS = [["1", "mu", 0.6], ["100", "mu", 0.4], ["1", "nu", 0.4], ["100", "nu", 0.6]]
CASES: dict[str, tuple[list[str], list[list[Any]], dict[str, Any]]] = {
    "quartiles": (["by", "n", *"abcde"], BOXES, {"x": "n", "by": "by", **FIVE}),
    "violin": (["x", "by", "v", "h"], CURVE, {"x": "x", "y": "v", "low": "h", "by": "by"}),
    "histogram": (
        ["law", "from", "to", "seen", "fit"],
        BARS,
        {"x": "from", "x2": "to", "y": "seen", "line": "fit", "by": "law"},
    ),
    "cells": (["r", "c", "v"], [[1, 2, -1], [2, 2, 0]], {"x": "c", "y": "r", "value": "v"}),
    "moved mass": (
        ["point", "law", "p"],
        MASS,
        {"x": "point", "y": "p", "by": "law", "moves": [["100", "1", 0.2, True]]},
    ),
}


def result(kind: str, **more: Any) -> dict[str, Any]:
    columns, rows, spec = CASES[kind]
    told = {"title": "A title", "source": "ours", "columns": columns, "rows": rows}
    return told | {"chart": {"kind": kind} | spec | more}


def values(plain: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of a drawing, wherever they stand."""
    return [one for data in _data(plain) for one in data]


def _rows(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(one, dict) for one in found)


def _data(node: Any) -> list[Any]:
    if isinstance(node, dict):
        here = [node["values"]] if _rows(node.get("values")) else []
        return here + [d for key, part in node.items() if key != "values" for d in _data(part)]
    return [d for part in node for d in _data(part)] if isinstance(node, list) else []


def test_every_kind_has_a_case() -> None:
    assert set(CASES) == set(LAW_KINDS)


@pytest.mark.parametrize("kind", LAW_KINDS)
def test_every_kind_is_drawn(kind: str, tmp_path: Any) -> None:
    chart(result(kind)).save(str(tmp_path / "one.svg"), format="svg")
    assert "A title" in (tmp_path / "one.svg").read_text()


@pytest.mark.parametrize("kind", ["quartiles", "violin", "histogram"])
def test_panels_keep_the_order_of_the_rows(kind: str) -> None:
    columns, rows, _ = CASES[kind]
    told = result(kind, facet="panel", columns=2)
    told |= {"columns": [*columns, "panel"], "rows": [[*r, p] for p in ("b", "a") for r in rows]}
    plain = chart(told).to_dict()
    assert plain["facet"]["sort"] == ["b", "a"]
    assert plain["columns"] == 2


def test_a_box_shows_its_quartiles_and_is_no_box_of_five_numbers() -> None:
    plain = chart(result("quartiles")).to_dict()
    assert "boxplot" not in str(plain)
    drawn = [(v["q1"], v["y"], v["q3"]) for v in values(plain) if "q1" in v and v["x"] == 100]
    assert set(drawn) == {(1.2, 1.7, 2.7)}


def test_a_violin_is_as_wide_as_its_density_and_stands_at_its_name() -> None:
    drawn = [v for v in values(chart(result("violin")).to_dict()) if "of" in v]
    first, second, other = drawn
    assert second["x2"] - second["x"] == pytest.approx(2 * (first["x2"] - first["x"]))
    assert [(v["x"] + v["x2"]) / 2 for v in drawn] == pytest.approx([0, 0, 1])
    assert other["x2"] - other["x"] == pytest.approx(second["x2"] - second["x"])


def test_bars_of_a_histogram_stand_on_zero() -> None:
    bars = chart(result("histogram")).to_dict()["layer"][0]
    assert bars["encoding"]["y2"] == {"datum": 0}


def test_a_move_that_is_left_out_is_dashed_and_points_keep_their_order() -> None:
    plain = chart(result("moved mass")).to_dict()
    (arrow,) = {v["dash"]: v for v in values(plain) if "dash" in v}.values()
    assert (arrow["x"], arrow["to"], arrow["dash"]) == ("100", "1", "left out")
    assert plain["layer"][0]["encoding"]["x"]["scale"]["domain"] == ["1", "100"]


def test_a_chart_may_bring_its_own_data() -> None:
    told = {"title": "t", "columns": ["other"], "rows": [[1]]}
    spec = {"kind": "bar", "x": "k", "y": "v", "data": {"columns": ["k", "v"], "rows": [["a", 2]]}}
    plain = chart(told | {"chart": spec}).to_dict()
    assert values(plain) == [{"x": "a", "y": 2}]


def test_a_series_among_lines_can_be_points() -> None:
    rows = [[x, s, 1.0] for s in ("curve", "check") for x in (0.5, 1.5)]
    spec = {"kind": "line", "x": "x", "y": "y", "by": "s", "as_points": ["check"]}
    told = {"title": "t", "columns": ["x", "s", "y"], "rows": rows, "chart": spec}
    layers = chart(told).to_dict()["layer"]
    assert [layer["mark"]["type"] for layer in layers] == ["line", "point"]


def test_axes_are_titled_in_words() -> None:
    told = {"title": "t", "columns": ["a_b", "c_d"], "rows": [[1.5, 2.0]]}
    plain = chart(told | {"chart": {"kind": "points", "x": "a_b", "y": "c_d"}}).to_dict()
    assert [plain["encoding"][axis]["title"] for axis in "xy"] == ["a b", "c d"]


def test_violins_at_one_place_stand_side_by_side() -> None:
    """Three mechanisms at one setting: none hides another, and each keeps to its share."""
    rows = [
        [place, by, v, h]
        for place, mechanisms in (("alone", ("a",)), ("three", ("a", "b", "c")))
        for by in mechanisms
        for v, h in ((0.0, 0.5), (1.0, 2.0), (2.0, 0.1))
    ]
    shown = result("violin") | {"rows": rows}
    drawn = [v for v in values(chart(shown).to_dict()) if "of" in v]
    reach: dict[str, tuple[float, float]] = {}
    for one in drawn:
        low, high = reach.get(one["of"], (9.0, -9.0))
        reach[one["of"]] = (min(low, one["x"]), max(high, one["x2"]))
    alone, *three = sorted(reach.values())
    assert alone == pytest.approx((-0.44, 0.44))
    assert [b for _, b in three[:2]] == pytest.approx([a for a, _ in three[1:]])
    assert (three[0][0], three[2][1]) == pytest.approx((0.56, 1.44))
