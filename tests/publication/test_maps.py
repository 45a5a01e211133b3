"""Maps of a plan that names outlines: in the report, checked to the letter, in no number."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from congenial import read
from congenial.errors import PlanError, SchemaError
from congenial.publication.plan import Plan
from congenial.report.map_section import BLUES, NOTHING, ORANGES
from tests.commands import run, write_plan
from tests.data.test_map_shapes import collection, feature, moved
from tests.plain_reports import plain_reports
from tests.publication.forging import NOT_OURS, forged

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
    with plain_reports():
        run("publish", write_plan(folder, PLAN))  # a map comes later to the same population
        run("release", write_plan(folder, MAPPED))
    return folder


def pictures(bundle: Path) -> list[tuple[str, ElementTree.Element]]:
    """Alternative text and drawing of every map."""
    page = (bundle / "report.html").read_text()
    found = re.findall(r'<img alt="(Map: [^"]*)" src="data:image/svg\+xml;base64,([^"]+)"', page)
    return [(told, ElementTree.fromstring(base64.b64decode(image))) for told, image in found]


def shades(drawing: ElementTree.Element) -> list[str]:
    return [one.get("fill", "") for one in drawing.iter("{http://www.w3.org/2000/svg}path")]


@pytest.mark.parametrize(("name", "maps"), [("single", 6), ("several", 6)])
def test_counts_and_their_uncertainty_are_drawn(released: Path, name: str, maps: int) -> None:
    found = pictures(released / "bundles" / name)
    assert len(found) == maps
    for told, drawing in found:
        fills = shades(drawing)
        assert len(fills) == 3
        assert set(fills) <= set(ORANGES if "interval" in told else BLUES)
        assert NOTHING not in fills
    page = (released / "bundles" / name / "report.html").read_text()
    assert "Not on the map: &lt;abroad&gt;." in page
    run("verify", released / "bundles" / name)


def test_shades_follow_the_counts(released: Path) -> None:
    release = read(released / "bundles" / "single")
    counts = release.margin("area").tolist()[:3]
    (_, drawing), *_ = pictures(released / "bundles" / "single")
    order = [BLUES.index(one) for one in shades(drawing)]
    assert sorted(range(3), key=counts.__getitem__) == sorted(range(3), key=order.__getitem__)


@pytest.mark.parametrize("name", ["single", "several"])
def test_a_map_that_shows_something_else_is_noticed(
    released: Path, tmp_path: Path, name: str
) -> None:
    def change(_: Any, bundle: Path) -> None:
        page = (bundle / "report.html").read_text()
        first = re.search(r'base64,([^"]+)"><figcaption>Darker', page)
        assert first
        svg = base64.b64decode(first[1]).decode()
        drawn = shades(ElementTree.fromstring(svg))[0]
        other = next(blue for blue in BLUES if blue != drawn)
        svg = svg.replace(f'fill="{drawn}"', f'fill="{other}"', 1)
        page = page.replace(first[1], base64.b64encode(svg.encode()).decode())
        (bundle / "report.html").write_text(page)

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
