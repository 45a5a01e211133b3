"""Titles and labels: where readers look, in no number, and in no digest of what lacks them."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from congenial import Plan, Schema, read
from congenial.data.about import About, ReliabilityLimits
from congenial.errors import SchemaError
from congenial.exports.export_formats import FORMATS
from congenial.exports.exported_tables import exported_bundle
from congenial.report.page_data import rows_of
from congenial.synthesis.record_files import dictionary, dictionary_rows
from tests.commands import run, write_plan

PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
area = { levels = ["01", "02", "03"], within = { state = ["N", "N", "S"] } }
sex = { levels = ["1", "2"] }
[publish]
"Population" = { total = true, by = ["area"] }
[[release]]
name = "single"
table = ["area", "sex"]
epsilon = 1
[[release]]
name = "several"
tables = [["area", "sex"], ["state", "sex"]]
epsilon = 1
[budget]
epsilon = 3
"""
WORDS = (
    PLAN.replace(
        'sex = { levels = ["1", "2"] }',
        'sex = { levels = ["1", "2"], label = "Sex & gender", labels = {1 = "women", 2 = "men"}}',
    ).replace(
        'within = { state = ["N", "N", "S"] } }',
        'within = { state = ["N", "N", "S"] }, labels = {01 = "Adams", 02 = "Bern", N = "North"}}',
    )
    + """
[about]
title = "People of <Arden>"
agency = "Office of Statistics"
date = 2020-04-01
contact = "desk@example.org"
reliability = [0.1, 0.2]
"""
)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger begun without words, and releases drawn with them."""
    folder = tmp_path_factory.mktemp("words")
    rows = [f"{n},0{1 + n % 3},{1 + n % 2}" for n in range(60)]
    (folder / "people.csv").write_text("\n".join(["id,area,sex", *rows]) + "\n")
    run("publish", write_plan(folder, PLAN))
    run("release", write_plan(folder, WORDS))
    return folder


@pytest.mark.parametrize("name", ["single", "several"])
def test_what_readers_see(released: Path, name: str) -> None:
    folder = released / "bundles" / name
    report, readme = (folder / "report.html").read_text(), (folder / "README.txt").read_text()
    assert "<h1>People of &lt;Arden&gt;</h1>" in report
    assert "Reference date: 2020-04-01" in report
    assert "Sex &amp; gender" in report
    for label in ("women", "men", "Adams", "Bern", "03"):
        assert f"<td>{label}</td>" in report
    assert readme.startswith("People of <Arden> (" + name + ")")
    assert "Published by: Office of Statistics" in readme
    assert '"Office of Statistics"' in (folder / "CITATION.cff").read_text()
    run("verify", folder)


def test_files_have_labels_beside_codes(released: Path) -> None:
    with (released / "bundles" / "single" / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("area", "area label", "sex", "Sex & gender"),
        *("count", "estimate", "sd", "low_90", "high_90", "reliability"),
    ]
    assert [rows[0][key] for key in ("area", "area label", "sex", "Sex & gender")] == [
        "01",
        "Adams",
        "1",
        "women",
    ]
    assert rows[-1]["area label"] == "03"  # a level without a label
    with (released / "bundles" / "several" / "table-2-state-sex.csv").open() as file:
        assert [row["state label"] for row in csv.DictReader(file)] == ["North"] * 2 + ["S"] * 2
    release = read(released / "bundles" / "single")
    names = release.to_arrow().column_names
    assert names[:3] == ["area", "sex", "count"]  # codes, for programs


def test_the_plan_says_what_is_reliable(released: Path) -> None:
    """In files, exports and words; `verify` follows it."""
    folder = released / "bundles" / "single"
    with (folder / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    digits = pq.read_table(folder / "table.parquet")["sd"].to_pylist()
    for row, deviation in zip(rows, digits, strict=True):
        relative = deviation / max(float(row["count"]), 1e-9)
        expected = "good" if relative <= 0.1 else "caution" if relative <= 0.2 else "poor"
        assert row["reliability"] == expected
    exported = exported_bundle(read(folder), {}, "", 0.9).tables[0].columns
    column = next(one for one in exported if one.name == "reliability")
    assert list(column.values) == [row["reliability"] for row in rows]
    words = "good: sd up to 10 % of the number; caution: up to 20 %; else poor"
    assert words in (folder / "README.txt").read_text()
    assert "reliable (good) up to 10 %" in (folder / "report.html").read_text()
    for wrong in ("[0.3, 0.2]", "[0.0, 0.2]"):
        plan = WORDS.replace("[0.1, 0.2]", wrong)
        with pytest.raises(SchemaError, match="two rising shares"):
            Plan.parse(plan, folder).schema  # noqa: B018


def test_estimates_and_exports_have_labels_beside_codes(released: Path) -> None:
    folder = released / "bundles" / "single"
    found = read(folder).estimate("count() by area").to_arrow()
    assert found["area"].to_pylist() == ["01", "02", "03"]
    assert found["area label"].to_pylist() == ["Adams", "Bern", "03"]
    bundle = exported_bundle(read(folder), {}, "", 0.9)
    names = [column.name for column in bundle.tables[0].columns]
    assert names[names.index("area") + 1] == "area label"
    assert names[names.index("sex") + 1] == "Sex & gender"
    structure = FORMATS["sdmx"].files(bundle)["structure.xml"].decode()
    assert all(f">{word}</common:Name>" in structure for word in ("Adams", "women", "men"))


def test_the_dictionary_of_records_has_labels() -> None:
    coded = {"levels": ["1", "2"], "labels": {"1": "women", "2": "men"}}
    schema = Schema.from_dict({"sex": coded, "age": {"edges": [0, 18], "top": "18+"}})
    written = dictionary(dictionary_rows(schema, ["sex", "age"]), schema).decode()
    rows = list(csv.DictReader(written.splitlines()))
    assert [row["label"] for row in rows] == ["women", "men", "0-17", "18+"]
    plain = dictionary(dictionary_rows(schema, ["age"]), schema).decode().splitlines()[0]
    assert plain == "column,type,level,from,below,written_as"


def test_a_changed_label_is_noticed(released: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(released / "bundles" / "single", copy)
    text = (copy / "table.csv").read_text()
    (copy / "table.csv").write_text(text.replace("Adams", "Alder"))
    run("verify", copy, code=1)


def test_words_change_no_population() -> None:
    plain, told = (Plan.parse(text, Path()) for text in (PLAN, WORDS))
    assert plain.schema == told.schema
    assert plain.schema.digest == told.schema.digest
    assert plain.digest != told.digest
    assert "$about" not in plain.schema.to_dict()
    again = Schema.from_dict(json.loads(json.dumps(told.schema.to_dict())))
    assert again.to_dict() == told.schema.to_dict()
    assert again.about == About(
        *("People of <Arden>", "Office of Statistics", "2020-04-01", "desk@example.org"),
        reliability=ReliabilityLimits(0.1, 0.2),
    )


def test_pictures_show_labels(released: Path) -> None:
    folder = released / "bundles" / "single"
    shown = str(rows_of((folder / "report.html").read_text()))  # what charts are drawn from
    assert "women" in shown
    assert "Adams" in shown
    release = read(folder)
    bare = replace(release.schema.attribute("sex"), labels={})
    assert bare == release.schema.attribute("sex")


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        ({"3": "x"}, "not one of its categories"),
        ({"1": "2"}, "more than once"),
        ({"1": "a\tb"}, "not a name"),
    ],
)
def test_labels_that_mislead(labels: dict[str, str], match: str) -> None:
    with pytest.raises(SchemaError, match=match):
        Schema.from_dict({"sex": {"levels": ["1", "2"], "labels": labels}})


@pytest.mark.parametrize("name", ["single", "several"])
def test_files_are_named_apart_and_numbers_are_short(released: Path, name: str) -> None:
    folder = released / "bundles" / name
    release = read(folder)
    readme = (folder / "README.txt").read_text()
    for file, what in release.contents:
        assert re.search(rf"^{re.escape(file)}\s+{re.escape(what[:20])}", readme, re.MULTILINE)
    for path in folder.glob("table*.csv"):
        rows = list(csv.DictReader(path.read_text().splitlines()))
        full = pq.read_table(path.with_suffix(".parquet")).to_pydict()
        for column in {"estimate", "sd"} & {*rows[0]}:
            told = np.array([float(row[column]) for row in rows])
            assert np.all(np.abs(told - full[column]) <= np.array(full["sd"]) / 100)
            assert max(len(row[column]) for row in rows) <= 9
    run("verify", folder, "--digest", (folder / "DIGEST.txt").read_text().split()[0])
