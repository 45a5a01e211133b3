"""The catalogue: names, lazy imports, results as files, pictures."""

from __future__ import annotations

import ast
import csv
import json
from pathlib import Path

import pytest

from congenial.errors import CongenialError, DataError
from congenial.papers import catalogue, item
from congenial.papers.item import Item, Study
from congenial.report import charts
from congenial.report.charts import KINDS, LAW_KINDS, chart

charted = pytest.mark.usefixtures("with_charts")

RESULT = {
    "paper": "congenial-dp",
    "item": "made-up",
    "title": "A title",
    "source": "our test",
    "columns": ["method", "x", "y", "panel"],
    "rows": [
        ["a.b", 1, 2.5, "p"],
        ["a.b", 2, 3.5, "q"],
        ["c[0]", 1, 1.5, "p"],
        ["c[0]", 2, None, "q"],
    ],
    "notes": [],
}


def test_unknown_names_say_what_there_is():
    with pytest.raises(CongenialError, match=r"no paper is called 'census'.*congenial-dp"):
        catalogue.items("census")
    with pytest.raises(CongenialError, match=r"has no item 'table-9'.*table-1"):
        catalogue.run("congenial-dp", "table-9", Study())


def test_papers_are_imported_when_asked_for():
    """No module of the catalogue imports a paper; a name there is only text."""
    for module in (catalogue, charts, item):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        names = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        assert not [name for name in names if name in catalogue.PAPERS.values()]


def test_listing_names_files_and_sources():
    rows = {row["item"]: row for row in catalogue.listing(["congenial-dp"])}
    assert rows["table-2"]["source"] == "Table 2, corrected"
    assert rows["counties"]["files"].endswith("sf1_2010_P12_counties.csv.gz")
    assert all(row["title"] for row in rows.values())


def test_data_files_are_asked_for(tmp_path):
    with pytest.raises(DataError, match=r"reads census/.*--data DIR"):
        catalogue.run("congenial-dp", "counties", Study(quick=True))
    with pytest.raises(DataError, match="not in the data folder"):
        catalogue.run("congenial-dp", "counties", Study(data=tmp_path, quick=True))


@charted
def test_a_run_is_written_as_json_csv_and_pictures(tmp_path):
    result = catalogue.run("congenial-dp", "quantile", Study(seed=5, quick=True))
    files = catalogue.write(result, tmp_path / "new" / "folder")
    names = {path.name for path in files}
    assert names == {f"congenial-dp-quantile.{ending}" for ending in ("json", "csv", "png", "svg")}
    told = json.loads(files[0].read_text())
    assert (told["paper"], told["item"], told["seed"]) == ("congenial-dp", "quantile", 5)
    with files[1].open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == told["columns"]
    assert len(rows) == 1 + len(told["rows"])
    assert all(path.stat().st_size > 0 for path in files)


def test_results_repeat_with_their_seed():
    first, second = (catalogue.run("congenial-dp", "table-1", Study(seed=8)) for _ in range(2))
    other = catalogue.run("congenial-dp", "table-1", Study(seed=9))
    assert first == second
    assert first["rows"] != other["rows"]


@charted
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in LAW_KINDS])
def test_every_plain_kind_of_chart_is_drawn(kind, tmp_path):
    spec = {"kind": kind, "x": "x", "y": "y", "by": "method", "facet": "panel"}
    options = {"y_log": True} if kind == "line" else {}
    plain = chart(RESULT | {"chart": spec | options}).to_dict()
    values = plain["data"]["values"] if "data" in plain else plain["datasets"]
    assert len(values) == 3  # the row without a value is left out
    same = chart(RESULT | {"chart": {"kind": kind, "x": "method", "y": "y", "by": "method"}})
    same.save(str(tmp_path / "one.svg"), format="svg")
    assert "a.b" in (tmp_path / "one.svg").read_text()


@charted
def test_intervals_and_a_rule_are_drawn_in_every_panel():
    """A result need not say where it comes from; bars and the rule are in each panel."""
    rows = [[p, x, 1.5, 1.0, 2.0] for p in "pq" for x in ("before", "after")]
    spec = {"kind": "points", "x": "x", "y": "y", "low": "low", "high": "high", "rule": 1.2}
    result = {"title": "A title", "columns": ["panel", "x", "y", "low", "high"], "rows": rows}
    for more in ({}, {"facet": "panel", "x_free": True}):
        plain = chart(result | {"chart": spec | more}).to_dict()
        text = json.dumps(plain)
        assert '"low"' in text
        assert '"datum": 1.2' in text
        assert "subtitle" not in plain["title"]
        chart(result | {"chart": spec | more}).to_json()


@charted
def test_whole_numbers_have_no_ticks_between_them():
    spec = {"kind": "line", "x": "x", "y": "y", "by": "method"}
    drawn = chart(RESULT | {"chart": spec}).to_dict()
    assert drawn["encoding"]["x"]["axis"]["values"] == [1, 2]
    halves = RESULT | {"rows": [["a", 1.5, 1.0, "p"], ["a", 2.0, 1.0, "p"]], "chart": spec}
    assert "values" not in chart(halves).to_dict()["encoding"]["x"]["axis"]


@charted
def test_a_series_keeps_its_colour_where_others_are_left_out():
    spec = {"kind": "line", "x": "x", "y": "y", "by": "method", "named": ("z", "c[0]", "a.b")}
    whole = chart(RESULT | {"chart": spec}).to_dict()["encoding"]["color"]["scale"]
    part = RESULT | {"rows": RESULT["rows"][2:]}
    less = chart(part | {"chart": spec}).to_dict()["encoding"]["color"]["scale"]
    hues = dict(zip(whole["domain"], whole["range"], strict=True))
    assert less == {"domain": ["c[0]"], "range": [hues["c[0]"]]}


def luminance(hue: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2)."""
    parts = [int(hue[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@charted
def test_numbers_of_cells_can_be_read_on_their_colours():
    """A contrast of 3 or more for large bold digits, on the darkest cells and on white ones."""
    drawn = chart(catalogue.run("semi-dp", "figure-1", Study())).to_dict()
    boxes, words = drawn["layer"]
    ink = words["encoding"]["color"]
    assert "> 0.5" in ink["condition"]["test"]
    assert words["mark"]["fontSize"] >= 14
    low, white, high = boxes["encoding"]["color"]["scale"]["range"]
    for ground, digits in (
        (low, ink["condition"]["value"]), (high, ink["condition"]["value"]), (white, ink["value"]),
    ):  # fmt: skip
        light, dark = sorted((luminance(ground), luminance(digits)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, (ground, digits)


@pytest.mark.parametrize(
    ("paper", "name"), [("semi-dp", "figure-3"), ("pseudo-posterior", "figure-1")]
)
def test_panels_that_are_compared_have_one_axis(paper, name):
    found = catalogue.run(paper, name, Study(quick=True))["chart"]
    assert found["facet"]
    assert not found.get("y_free")


@pytest.mark.parametrize(
    ("paper", "name", "panels"),
    [
        ("distribution-privacy", "figure-2", 3),
        ("distribution-privacy", "figure-3", 2),
        ("partially-private-data", "figure-2", 4),
        ("partially-private-data", "prior-sweep", 2),
    ],
)
def test_panels_of_real_data_that_are_compared_have_one_axis(paper, name, panels, shared):
    result = catalogue.run(paper, name, Study(data=shared / "data", quick=True))
    found = result["chart"]
    table = found.get("data", result)
    at = table["columns"].index(found["facet"])
    assert len({row[at] for row in table["rows"]}) == panels
    assert not found.get("y_free")
    if (paper, name) == ("distribution-privacy", "figure-2"):
        assert found["y_log"]


@charted
def test_a_logarithmic_picture_leaves_0_out_and_the_result_keeps_it(monkeypatch):
    found = {
        "columns": ["x", "y"],
        "rows": [[1, 0.0], [2, 3.0], [3, None]],
        "notes": [],
        "chart": {"kind": "points", "x": "x", "y": "y", "y_log": True},
    }
    one = Item("t", "s", lambda _: found)
    monkeypatch.setattr(catalogue, "items", lambda _: {"one": one})
    result = catalogue.run("congenial-dp", "one", Study())
    assert result["rows"][0] == [1, 0.0]
    assert result["notes"] == [
        "Values of 0 (1 here) are not in the picture: its axis is logarithmic."
    ]
    assert chart(result).to_dict()["data"]["values"] == [{"x": 2, "y": 3.0}]
    linear = result | {"chart": {"kind": "points", "x": "x", "y": "y"}}
    assert len(chart(linear).to_dict()["data"]["values"]) == 2


@charted
def test_lines_have_bands_and_named_rules():
    rows = [[x, 1.5, 1.0, 2.0] for x in (1.5, 2.5)]
    spec = {"kind": "line", "x": "x", "y": "y", "low": "low", "high": "high"}
    result = {"title": "A title", "source": "ours", "columns": ["x", "y", "low", "high"]}
    drawn = chart(result | {"rows": rows, "chart": spec | {"rule": {"a coin": 0.5}}}).to_dict()
    marks = [layer["mark"]["type"] for layer in drawn["layer"][0]["layer"]]
    assert marks == ["area", "line"]
    assert drawn["title"]["subtitle"] == ["ours", "Dashed: a coin (0.5)"]


class AskedError(Exception):
    """Raised instead of saying whether a study is quick."""


class Asking(Study):
    """A study that stops an item as soon as it wants to know whether to be quick."""

    @property
    def quick(self):
        raise AskedError

    @quick.setter
    def quick(self, value):
        pass


def asks(one: Item, folder: Path | None = None) -> bool:
    try:
        one.run(Asking(data=folder))
    except AskedError:
        return True
    return False


@pytest.mark.parametrize("paper", catalogue.PAPERS)
def test_every_item_that_is_reduced_says_how(paper):
    """`reduced` is there if and only if the item looks at `quick`."""
    known = {name: one for name, one in catalogue.items(paper).items() if not one.files}
    assert {n: asks(one) for n, one in known.items()} == {n: bool(known[n].reduced) for n in known}


@pytest.mark.audit
@pytest.mark.parametrize("paper", catalogue.PAPERS)
def test_every_item_with_data_that_is_reduced_says_how(paper, shared):
    known = {name: one for name, one in catalogue.items(paper).items() if one.files}
    found = {n: asks(one, shared / "data") for n, one in known.items()}
    assert found == {n: bool(known[n].reduced) for n in known}


def test_a_quick_result_says_what_was_reduced():
    names = ("example-5", "example-2")
    told = [catalogue.run("semi-dp", n, Study(quick=True))["notes"][-1] for n in names]
    assert told == [
        "Reduced: 2 and 3 people instead of 2 to 5.",
        "Reduced: nothing, this item is as quick without it.",
    ]
    assert not any("Reduced" in n for n in catalogue.run("semi-dp", "example-2", Study())["notes"])


def test_ragged_results_are_refused(monkeypatch):
    bad = Item("t", "s", lambda _: {"columns": ["a"], "rows": [[1, 2]], "notes": []})
    monkeypatch.setattr(catalogue, "items", lambda _: {"bad": bad})
    with pytest.raises(AssertionError, match="ragged"):
        catalogue.run("congenial-dp", "bad", Study())
