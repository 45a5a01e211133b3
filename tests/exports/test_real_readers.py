"""What is handed over is read by the readers people use, not only by our own tests.

frictionless validates a Data Package; pysdmx validates the structure message against the official
schemas and reads the data by it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from congenial.data.text_files import neutral
from congenial.exports.export_formats import FORMATS
from tests.exports.test_export_formats import SCHEMA, exported

__all__ = ["exported"]  # a fixture

LOCKED = "is in the development group; `make test` installs it"
NAME = "by-age-2026"


@pytest.fixture
def written(exported: Any, tmp_path: Path) -> Path:
    """Both formats, each in a folder of its own."""
    for name in ("datapackage", "sdmx"):
        (tmp_path / name).mkdir()
        for path, content in FORMATS[name].files(exported).items():
            (tmp_path / name / path).write_bytes(content)
    return tmp_path


def test_frictionless_reads_the_data_package(exported: Any, written: Path) -> None:
    frictionless = pytest.importorskip("frictionless", reason=f"frictionless {LOCKED}")
    path = written / "datapackage/datapackage.json"
    report = frictionless.validate(str(path))
    assert report.valid, report.to_summary()
    table, figures = frictionless.Package(str(path)).resources
    (expected,) = exported.tables
    for row, values in zip(table.read_rows(), expected.rows, strict=True):
        for column, value in zip(expected.columns, values, strict=True):
            told = row[neutral(column.name)]
            assert told == neutral(value) if isinstance(value, str) else float(told) == value
    assert len(figures.read_rows()) == 3


def test_frictionless_finds_a_label_that_is_not_in_the_description(written: Path) -> None:
    frictionless = pytest.importorskip("frictionless", reason=f"frictionless {LOCKED}")
    path = written / f"datapackage/{NAME}.csv"
    path.write_text(path.read_text().replace("10-14", "Oct 14", 1))
    report = frictionless.validate(str(written / "datapackage/datapackage.json"))
    assert [one[2] for one in report.flatten(["rowNumber", "fieldName", "type"])] == [
        "constraint-error"
    ]


def test_pysdmx_reads_data_by_their_structure(exported: Any, written: Path) -> None:
    io = pytest.importorskip("pysdmx.io", reason=f"pysdmx[data,xml] {LOCKED}")
    structure = written / "sdmx/structure.xml"
    message = io.read_sdmx(structure, validate=True)
    names = {one.id: {code.id: code.name for code in one.codes} for one in message.get_codelists()}
    (data,) = io.get_datasets(written / f"sdmx/{NAME}.csv", structure)
    assert [one.id for one in data.structure.components.dimensions] == [
        "COUNTY",
        "AGE",
        "TIME_PERIOD",
    ]
    table = data.data
    counts = exported.release.counts[0].reshape(-1).tolist()
    assert table["OBS_VALUE"].astype(float).tolist() == counts
    for axis in ("county", "age"):
        labels = [names[f"CL_BY_AGE_2026_{axis.upper()}"][code] for code in table[axis.upper()]]
        column = next(one for one in exported.tables[0].columns if one.name == axis)
        assert labels == list(column.values)
        assert set(labels) == set(SCHEMA.axis(axis).levels)
    for name in ("low_90", "high_90", "sd"):
        column = next(one for one in exported.tables[0].columns if one.name == name)
        assert table[name.upper()].astype(float).tolist() == list(column.values)


def test_pysdmx_refuses_a_structure_out_of_order(written: Path) -> None:
    io = pytest.importorskip("pysdmx.io", reason=f"pysdmx[data,xml] {LOCKED}")
    errors = pytest.importorskip("pysdmx.errors", reason=f"pysdmx[data,xml] {LOCKED}")
    structure = written / "sdmx/structure.xml"
    text = structure.read_text()
    lost = text.replace("<message:Test>false</message:Test>", "", 1)
    assert lost != text
    structure.write_text(lost)
    with pytest.raises(errors.Invalid):
        io.read_sdmx(structure, validate=True)
