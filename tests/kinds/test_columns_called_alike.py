"""An axis that is called like a column of numbers: neither takes the place of the other."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from congenial import read
from congenial.exports.exported_tables import exported_bundle
from congenial.mechanisms.cell_labels import label_names
from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.publication.verification import verify

LEVELS = ("a", "b", "c")
SECTIONS = {
    "table": 'table = ["AXIS", "sex"]\nepsilon = 1\nnonnegative = "project"',
    "tables": 'tables = [["AXIS", "sex"], ["AXIS"]]\nepsilon = 1',
    "values": (
        'table = ["AXIS", "sex"]\nscenarios = { believe = "independent records" }\n'
        'base_measure = { prior = "earlier.csv", alpha = 0.1, kappa = 0.5 }\nepsilon = 1'
    ),
}
PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
AXIS = { levels = ["a", "b", "c"] }
sex = { levels = ["f", "m"] }
[publish]
"Population" = { total = true }
[[release]]
name = "made"
SECTION
[budget]
epsilon = 2
"""


def released(folder: Path, kind: str, axis: str) -> Path:
    """A bundle of 60 people whose first axis has that name."""
    rows = [f"{i},{LEVELS[i % 3]},{'fm'[i % 2]}" for i in range(60)]
    (folder / "people.csv").write_text("\n".join([f"id,{axis},sex", *rows]) + "\n")
    label = label_names([axis], ["count"])[0]
    earlier = [f"{level},{sex},9" for level in LEVELS for sex in "fm"]
    (folder / "earlier.csv").write_text("\n".join([f"{label},sex,count", *earlier]) + "\n")
    text = PLAN.replace("SECTION", SECTIONS[kind]).replace("AXIS", axis)
    (folder / "plan.toml").write_text(text)
    plan = Plan.load(folder / "plan.toml")
    workflow.publish(plan)
    return workflow.release(plan, "made").folder


@pytest.mark.parametrize(
    ("kind", "axis"),
    [
        *(("table", "count"), ("table", "estimate"), ("table", "low_90")),
        *(("tables", "sd"), ("tables", "count_as_drawn"), ("values", "count"), ("values", "value")),
    ],
)
def test_labels_and_numbers_are_all_there(kind: str, axis: str, tmp_path: Path) -> None:
    bundle = released(tmp_path, kind, axis)
    assert [one.what for one in verify(bundle) if not one.holds] == []
    release = read(bundle)
    found = release.to_arrow()
    assert len(set(found.column_names)) == len(found.column_names)
    assert set(found.columns[0].to_pylist()) == set(LEVELS)
    assert found.column_names[0] in (axis, f"{axis} (label)")
    for file in bundle.glob("[tv]*.csv"):
        with file.open() as lines:
            header, *cells = csv.reader(lines)
        assert len(set(header)) == len(header)
        assert {row[0] for row in cells} == set(LEVELS)


@pytest.mark.parametrize(("kind", "axis"), [("table", "estimate"), ("tables", "exact")])
def test_intervals_and_exports(kind: str, axis: str, tmp_path: Path) -> None:
    release = read(released(tmp_path, kind, axis))
    found = release.intervals([axis, "sex"], 0.9)  # type: ignore[attr-defined]
    assert found.column_names == [f"{axis} (label)", "sex", "estimate", "low", "high", "exact"]
    assert set(found.columns[0].to_pylist()) == set(LEVELS)
    for table in exported_bundle(release, {}, "", 0.9).tables:
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert set(table.columns[0].values) == set(LEVELS)


@pytest.mark.parametrize("axis", ["value", "method"])
def test_estimates_by_such_an_axis(axis: str, tmp_path: Path) -> None:
    found = read(released(tmp_path, "table", axis)).estimate(f"count(sex = 'f') by {axis}")
    assert found.to_arrow()[f"{axis} (label)"].to_pylist() == list(LEVELS)
    assert [row[f"{axis} (label)"] for row in found.to_dicts()] == list(LEVELS)
    assert all(isinstance(row["value"], float) for row in found.to_dicts())


def test_names_stay_apart_whatever_they_are() -> None:
    assert label_names(("a", "b"), ("count",)) == ("a", "b")
    assert label_names((), ("count",)) == ()
    both = label_names(("count", "count (label)"), ("count",))
    assert both == ("count (label) (label)", "count (label)")
