"""Maps of a plan that names outlines: in the report, checked to the letter, in no number."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from congenial import read
from congenial.errors import PlanError, SchemaError
from congenial.publication.plan import Plan
from congenial.report.page_data import packed, rows_of
from tests.commands import run, write_plan
from tests.data.test_map_shapes import collection, feature, moved
from tests.publication.forging import NOT_OURS, forged
from tests.publication.reading import cells_of

PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
area = { levels = ["1", "2", "3", "4"], labels = { 4 = "<abroad>" } }
sex = { levels = ["f", "m"], labels = { f = "women & girls" } }
[publish]
"Population" = { total = true }
[[release]]
name = "single"
table = ["area", "sex"]
epsilon = 1
[[release]]
name = "several"
tables = [["area", "sex"], ["area"]]
epsilon = 1
[budget]
epsilon = 3
"""
PLAIN, WITH_WORDS = "3d1b71414eb576c1", "3b0b784d14879ad1"
MAPPED = PLAN + '[about]\nmap = { file = "areas.geojson", property = "code", axis = "area" }\n'


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maps")
    rows = [f"{n},{1 + n % 7 % 4},{'fm'[n % 2]}" for n in range(700)]
    (folder / "people.csv").write_text("\n".join(["id,area,sex", *rows]) + "\n")
    areas = [feature(str(1 + n), [moved(2 * n, 0)]) for n in range(3)]  # the fourth has no outline
    (folder / "areas.geojson").write_text(json.dumps(collection(*areas)))
    run("publish", write_plan(folder, PLAN))  # a map comes later to the same population
    run("release", write_plan(folder, MAPPED))
    return folder


@pytest.mark.parametrize("name", ["single", "several"])
def test_outlines_and_counts_are_in_the_report(released: Path, name: str) -> None:
    page = (released / "bundles" / name / "report.html").read_text()
    shown = rows_of(page)["map"]
    assert shown["axis"] == "area"
    assert sorted(shown["paths"]) == ["1", "2", "3"]  # the fourth has no outline
    assert all(re.fullmatch(r"(M\d+ \d+(L\d+ \d+)+Z)+", path) for path in shown["paths"].values())
    counts = read(released / "bundles" / name).margin("area").tolist()
    assert [one["value"] for one in cells_of(page, "area")] == counts
    run("verify", released / "bundles" / name)


@pytest.mark.parametrize("name", ["single", "several"])
def test_a_map_that_shows_something_else_is_noticed(
    released: Path, tmp_path: Path, name: str
) -> None:
    def change(_: Any, bundle: Path) -> None:
        page = (bundle / "report.html").read_text()
        (block,) = re.findall(r'id="rows">([^<]+)', page)
        data = rows_of(page)
        paths = data["map"]["paths"]
        paths["1"], paths["2"] = paths["2"], paths["1"]
        (bundle / "report.html").write_text(page.replace(block, packed(data)))

    assert forged(released / "bundles" / name, tmp_path, change) == {NOT_OURS}


def test_a_map_is_planned_and_in_no_number(released: Path, tmp_path: Path) -> None:
    plain, mapped = (Plan.parse(text, released) for text in (PLAN, MAPPED))
    assert mapped.schema == plain.schema
    assert mapped.schema.digest == plain.schema.digest
    assert list(mapped.file_digests) == ["areas.geojson"]
    moved_file = tmp_path / "areas.geojson"
    moved_file.write_text((released / "areas.geojson").read_text() + " ")
    other = Plan.parse(MAPPED, tmp_path)
    assert other.digest != mapped.digest


def test_a_map_that_does_not_fit_is_refused(released: Path) -> None:
    changes = (("areas.geo", "none.geo"), ('"code"', '"name"'), ('axis = "area"', 'axis = "x"'))
    for old, new in changes:
        with pytest.raises(SchemaError):
            _ = Plan.parse(MAPPED.replace(old, new), released).schema
    with pytest.raises(PlanError, match="map"):
        Plan.parse(MAPPED.replace("property", "key"), released)
