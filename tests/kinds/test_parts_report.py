"""The report of a nation by parts: labels in its headings, maps of the tables above the parts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands import run
from tests.data.test_map_shapes import collection, feature, moved
from tests.kinds.nation_plan import SECTION, written
from tests.plain_reports import plain_reports

MAP = '\n[about]\nmap = { file = "states.geojson", property = "code", axis = "state" }\n'


def test_labels_and_maps(tmp_path: Path) -> None:
    plan = written(tmp_path, SECTION.replace('["sex", "age"],\n]', '["state", "sex"],\n]'))
    text = plan.read_text().replace('"m"] }', '"m"], label = "Sex & gender" }')
    plan.write_text(text + MAP)
    areas = (tmp_path / "areas.csv").read_text().splitlines()[1:]
    states = sorted({one.split(",")[2] for one in areas})
    shapes = [feature(name, [moved(2 * at, 0)]) for at, name in enumerate(states)]
    (tmp_path / "states.geojson").write_text(json.dumps(collection(*shapes)))
    with plain_reports():
        run("publish", plan)
        run("release", plan)
    bundle = tmp_path / "bundles" / "nation"
    page = (bundle / "report.html").read_text()
    assert "<h3>state × Sex &amp; gender × age</h3>" in page
    assert page.count('<img alt="Map: ') == 4  # counts and uncertainty of women and of men
    with plain_reports():
        assert run("verify", bundle, "--json")["holds"]
