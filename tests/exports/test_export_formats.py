"""Bundles in formats of other tools: the numbers are the bundle's, labels stay text."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import congenial as cg
from congenial.errors import BundleError
from congenial.exports.export_formats import FORMATS, export_bundle
from congenial.exports.exported_tables import RELIABILITIES, exported_bundle
from congenial.exports.registry_entry import FILL_IN, yaml_lines
from congenial.publication import bundle

SEED = 20260404
SCHEMA = cg.Schema.from_dict(
    {
        "county": {"levels": ["=A&B", "Größe <1>", "a"], "within": {"state": ["X", "X", "Y"]}},
        "age": {"edges": [0, 10, 15], "top": "15+"},
    }
)
COUNTS = np.array([[90, 60, 30], [0, 5, 12], [300, 200, 100]])


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    table = cg.Table(SCHEMA, ["county", "age"], COUNTS)
    under = cg.SemiAdjacent(
        cg.publish(table, replace(cg.total(by="county"), because="statute & law"))
    )
    mechanism = cg.calibrate("auto", cg.Guarantee.pure(1, under=under))
    drawn = cg.release_table(mechanism, table, cg.SeededRandomness(SEED), name="By age/2026")
    folder = tmp_path_factory.mktemp("exports") / "bundle"
    prepared = bundle.write(drawn, folder, "the promise", "the report")
    prepared.publish()
    return exported_bundle(cg.read(folder), bundle.read_index(folder), prepared.digest, 0.9)


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_every_cell_has_its_interval_and_coarser_names(exported):
    (table,) = exported.tables
    names = [one.name for one in table.columns]
    assert names == [
        "state",
        "county",
        "age",
        "count",
        "estimate",
        "sd",
        "low_90",
        "high_90",
        "reliability",
    ]
    release = exported.release
    for row in table.rows:
        told = dict(zip(names, row, strict=True))
        condition = f"county = '{told['county']}' and age = '{told['age']}'"
        one = release.interval(condition, 0.9)
        assert (told["estimate"], told["low_90"], told["high_90"]) == (
            one.estimate,
            one.low,
            one.high,
        )
        assert told["count"] == release.count(condition)
        assert told["state"] == ("Y" if told["county"] == "a" else "X")


def test_data_package(exported):
    files = FORMATS["datapackage"].files(exported)
    told = json.loads(files["datapackage.json"])
    assert {one["path"] for one in told["resources"]} == {*files} - {"datapackage.json"}
    for resource in told["resources"]:
        rows = rows_of(files[resource["path"]])
        fields = resource["schema"]["fields"]
        assert [one["name"] for one in fields] == list(rows[0])
        for row in rows:
            for one in fields:
                value = row[one["name"]]
                if "constraints" in one:
                    assert value in one["constraints"]["enum"]
                elif one["type"] != "string":
                    float(value)
    assert "'=A&B" in files["by-age-2026.csv"].decode()  # no formula in a spreadsheet


def test_sdmx_data_fit_their_structure(exported):
    files = FORMATS["sdmx"].files(exported)
    root = ElementTree.fromstring(files["structure.xml"])
    space = {"s": "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure"}
    label = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common}Name"
    dimensions = [one.get("id") for one in root.iterfind(".//s:Dimension", space)]
    assert dimensions == ["COUNTY", "AGE"]
    codes = {
        one.get("id"): {c.get("id"): c.find(label).text for c in one.iterfind("s:Code", space)}
        for one in root.iterfind(".//s:Codelist", space)
    }
    rows = rows_of(files["by-age-2026.csv"])
    values = np.array([int(row["OBS_VALUE"]) for row in rows]).reshape(COUNTS.shape)
    assert np.array_equal(values, exported.release.counts[0])
    for row, (county, age) in zip(rows, np.ndindex(3, 3), strict=True):
        assert row["DATAFLOW"] == "PUBLISHER:BY_AGE_2026(1.0)"
        found = [codes[f"CL_BY_AGE_2026_{name}"][row[name]] for name in dimensions]
        assert found == [SCHEMA.axis("county").levels[county], SCHEMA.axis("age").levels[age]]


def test_sdmx_says_when_of_what_and_how_reliable(exported):
    files = FORMATS["sdmx"].files(exported)
    rows, table = rows_of(files["by-age-2026.csv"]), exported.tables[0]
    flags = next(one.values for one in table.columns if one.name == "reliability")
    assert {"good", "poor"} <= set(flags) <= set(RELIABILITIES)
    for row, flag in zip(rows, flags, strict=True):
        assert row["OBS_STATUS"] == ("U" if flag in ("caution", "poor") else "A")
        assert (row["UNIT_MEASURE"], row["TIME_PERIOD"]) == ("PS", exported.date)
    assert "TIME_PERIOD" in " ".join(FORMATS["sdmx"].left_open(exported))
    root = ElementTree.fromstring(files["structure.xml"])
    space = {"s": "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure"}
    parents = [
        one.get("id")
        for one in root.iterfind(".//s:Codelist[@id='CL_BY_AGE_2026_COUNTY']/s:Code//Ref", space)
    ]
    assert parents == ["state_X", "state_X", "state_Y"]


def test_a_workbook_is_for_reading(exported):
    (content,) = FORMATS["xlsx"].files(exported).values()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {one.compress_type for one in archive.infolist()} == {zipfile.ZIP_DEFLATED}
        sheet = archive.read("xl/worksheets/sheet2.xml").decode()
        promise = archive.read("xl/worksheets/sheet1.xml").decode()
    for part in ('state="frozen"', '<autoFilter ref="A1:I10"/>', '<cols><col min="1"'):
        assert part in sheet
    assert sheet.count('s="1"') == 9  # the header is bold
    assert "low_90 to high_90" in promise
    assert "exact: the noise does not depend" in promise


def test_workbook_keeps_labels_as_text(exported):
    (content,) = FORMATS["xlsx"].files(exported).values()
    assert content == next(iter(FORMATS["xlsx"].files(exported).values()))
    space = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))
        index = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        names = [one.get("name") for one in index.iterfind(".//m:sheet", space)]
        assert names == ["promise", "By age-2026", "published", "dictionary"]
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet2.xml"))
    rows = [
        [
            one.find(".//m:t", space).text if one.get("t") else float(one.find("m:v", space).text)
            for one in row
        ]
        for row in sheet.iterfind(".//m:row", space)
    ]
    assert rows[0][:3] == ["state", "county", "age"]
    assert rows[2][:3] == ["X", "=A&B", "10-14"]
    assert [row[3] for row in rows[1:]] == exported.release.counts[0].reshape(-1).tolist()


def test_registry_entry(exported):
    (content,) = FORMATS["registry"].files(exported).values()
    told = yaml.safe_load(content)
    deployment = told["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert "statute & law" in deployment["dp_variant"]["unprotected_quantities"]
    assert isinstance(deployment["basic"]["publication_date"], str)
    required = "name data_curators description intended_use data_product_type data_product_region"
    assert {*required.split(), "publication_date"} <= set(deployment["basic"])
    assert all(FILL_IN in str(at(deployment, where)) for where in opened(exported))


def opened(exported) -> list[str]:
    return FORMATS["registry"].left_open(exported)


def at(deployment, where):
    found = {"deployment": deployment}
    for key in where.split("."):
        found = found[key]
    return found


def test_yaml_is_read_back_as_it_was():
    value = {"a": "x: y\n- 'z' \"w\" #", "b": {"c": 1.5, "d": ["é", "no"], "e": True}, "f": {}}
    assert yaml.safe_load("\n".join(yaml_lines(value))) == value


def test_what_cannot_be_exported_is_refused(exported):
    with pytest.raises(BundleError, match="datapackage, sdmx, xlsx, registry"):
        export_bundle(Path(), "pdf", Path(), 0.9)

    class Records:
        kind = "synthetic records"

    with pytest.raises(BundleError, match="no table to export"):
        exported_bundle(Records(), {}, "", 0.9)


def test_the_command(tmp_path: Path, exported):
    from typer.testing import CliRunner

    from congenial.cli import app

    folder = tmp_path / "bundle"
    bundle.write(exported.release, folder, "the promise", "the report").publish()
    words = ["export", str(folder), "--to", "xlsx", "--out", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0
    assert "NOT FOR PUBLICATION" in ran.stdout
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 6
    assert "already exists" in again.stderr
    assert CliRunner().invoke(app, [*words[:-1], "x", "--level", "7"]).exit_code == 2


def test_several_tables_are_handed_over_one_by_one():
    from fractions import Fraction

    from congenial.mechanisms.measured_tables import MeasuredTables

    table = cg.Table(SCHEMA, ["county", "age"], COUNTS)
    under = cg.SemiAdjacent(cg.publish(table, cg.total(by="county")))
    tables, scales = [("county", "age"), ("age",)], [Fraction(9), Fraction(25)]
    mechanism = MeasuredTables.of(under, tables, "discrete_gaussian", scales)
    release = mechanism.release(table, cg.SeededRandomness(SEED), name="several")
    told = exported_bundle(release, {"promise": "the promise"}, "", 0.9)
    assert [one.name for one in told.tables] == ["county by age", "age"]
    for at, one in enumerate(told.tables):
        columns = {column.name: column.values for column in one.columns}
        assert columns["count"] == release.counts[at].reshape(-1).tolist()
        assert columns["estimate"] == release.estimates[at].reshape(-1).tolist()
        assert all(
            low <= high for low, high in zip(columns["low_90"], columns["high_90"], strict=True)
        )
    assert set(FORMATS["sdmx"].files(told)) == {"county-by-age.csv", "age.csv", "structure.xml"}
