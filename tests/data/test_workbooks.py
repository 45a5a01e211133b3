"""Workbooks that ask for more memory than their records need; normal ones are in test_derive.py."""

from __future__ import annotations

import re
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from congenial.data.engines import excel_sheet, sheet_reader
from congenial.data.engines.excel_sheet import read_sheets, sheet_header, sheet_names, sheet_texts
from congenial.errors import DataError
from congenial.publication.draft import write_draft
from tests.data.test_derive import write_workbook

pytest.importorskip("python_calamine")

SHEET = "xl/worksheets/s1.xml"
STRINGS = "xl/sharedStrings.xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def changed(path: Path, part: str, change: Callable[[str], str]) -> None:
    """Change one part of a workbook, packed as tightly as it goes."""
    copy = path.with_suffix(".copy")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.namelist():
            text = old.read(one).decode()
            new.writestr(one, change(text) if one == part else text)
    shutil.move(copy, path)


def stray_cell(path: Path) -> None:
    """One cell in the last row and the last column that Excel has: 549 GB, all at once."""
    changed(
        path,
        SHEET,
        lambda text: text.replace(
            "</sheetData>", '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
        ),
    )


def forged_size(path: Path) -> None:
    """A stray cell, and a size that denies it."""
    changed(
        path, SHEET, lambda text: text.replace("<sheetData>", '<dimension ref="A1:B3"/><sheetData>')
    )
    stray_cell(path)


def packed_cells(path: Path) -> None:
    """Cells over and over in little packed text."""
    more = "<row><c><v>1</v></c></row>" * 1_000_000
    changed(path, SHEET, lambda text: text.replace("</sheetData>", f"{more}</sheetData>"))


def shared_text(path: Path) -> None:
    """One long text that many cells share."""
    cells = '<row><c t="s"><v>0</v></c></row>' * 2000
    changed(path, SHEET, lambda text: text.replace("</sheetData>", f"{cells}</sheetData>"))
    changed(
        path,
        "xl/_rels/workbook.xml.rels",
        lambda text: text.replace(
            "</Relationships>",
            '<Relationship Id="strings" Type="http://schemas.openxmlformats.org/officeDocument/'
            '2006/relationships/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
        ),
    )
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book:
        book.writestr(STRINGS, f'<sst xmlns="{MAIN}"><si><t>{"x" * 1_000_000}</t></si></sst>')


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "people.xlsx"
    write_workbook(path, {"people": [["id", "sex"], [1, "f"], [2, "m"]]})
    return path


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reader that may take a fortieth, so that a test needs not fill gigabytes."""
    source = Path(sheet_reader.__file__).read_text()
    smaller = re.sub(r"^MEMORY = 4 << 30", "MEMORY = 100 << 20", source, flags=re.M)
    smaller = re.sub(r"^MOST_TEXT = 1 << 30", "MOST_TEXT = 100 << 20", smaller, flags=re.M)
    assert smaller.count(" << 20") == 2
    script = tmp_path / "reader.py"
    script.write_text(smaller)
    monkeypatch.setattr(sheet_reader, "__file__", str(script))


@pytest.mark.parametrize("spoil", [stray_cell, forged_size])
def test_a_stray_cell_is_refused(book: Path, spoil: Callable[[Path], None]) -> None:
    spoil(book)
    assert book.stat().st_size < 4000
    for ask in (
        lambda: read_sheets([book], ["sex"], None),
        lambda: sheet_header(book, "people"),
        lambda: sheet_texts(book),
    ):
        with pytest.raises(
            DataError, match=r"'people.xlsx' takes more than 4 GB of memory to read"
        ):
            ask()
    assert sheet_names(book) == ["people"]


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("spoil", [packed_cells, shared_text])
def test_packed_text_is_refused(book: Path, spoil: Callable[[Path], None]) -> None:
    spoil(book)
    assert book.stat().st_size < 300_000
    with pytest.raises(DataError, match="to read"):
        read_sheets([book], ["id", "sex"], None)


def test_thousands_of_sheets(tmp_path: Path) -> None:
    path = tmp_path / "many.xlsx"
    write_workbook(path, {f"sheet {at}": [["id"], [1]] for at in range(3000)})
    with pytest.raises(DataError, match="has 3000 sheets"):
        read_sheets([path], ["id"], None)
    assert read_sheets([path], ["id"], "sheet 2999")["id"].to_pylist() == ["1"]
    assert len(sheet_names(path)) == sheet_reader.MOST_NAMES


def test_a_normal_workbook_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "normal.xlsx"
    rows = [[at, "f" if at % 3 else "m", None] for at in range(20_000)]
    write_workbook(path, {"people": [["id", "sex", "note"], *rows]})
    started = time.perf_counter()
    table = read_sheets([path, path], ["sex", "id"], "people")
    assert time.perf_counter() - started < 10
    assert table.num_rows == 40_000
    assert table["sex"].to_pylist()[:4] == ["m", "f", "f", "m"]
    assert table["id"].to_pylist()[-1] == "19999"


def test_blank_rows_and_leading_ones(tmp_path: Path) -> None:
    path = tmp_path / "blank.xlsx"
    sheet = [[None] * 3, [None, "id", "sex"], [None] * 3, [None, 1, "f"], [None, 2, None]]
    write_workbook(path, {"people": sheet})
    assert sheet_header(path, None) == ("id", "sex")
    assert sheet_texts(path) == [["id", "sex"], ["1", "f"], ["2", ""]]
    write_workbook(path, {"people": [[None]]})
    with pytest.raises(DataError, match="is empty"):
        read_sheets([path], ["id"], None)


def test_what_is_no_workbook(tmp_path: Path) -> None:
    path = tmp_path / "text.xlsx"
    path.write_text("id,sex\n1,f\n")
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        read_sheets([path], ["id"], None)
    assert sheet_names(path) == []


def test_a_reader_that_dies_says_so(
    book: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "dies.py"
    script.write_text(
        'print(\'{"sheets": 1, "names": []}\\n["id"\', end="", flush=True)\nimport os\nos.abort()'
    )
    monkeypatch.setattr(excel_sheet.sheet_reader, "__file__", str(script))
    with pytest.raises(DataError, match="takes more than"):
        read_sheets([book], ["id"], None)


def test_errors_list_a_handful_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "wide.xlsx"
    names = [f"column {at} {'x' * 300}" for at in range(5000)]
    write_workbook(path, {"people": [names, list(range(5000))]})
    with pytest.raises(DataError, match="has no column 'nobody'") as caught:
        write_draft(path, tmp_path / "plan.toml", "nobody")
    assert "and 4992 more" in str(caught.value)
    assert len(str(caught.value)) < 1000
    with pytest.raises(DataError, match=r"have no column 'a0'.* and 292 more") as caught:
        read_sheets([path], [f"a{at}" for at in range(300)], None)
    assert len(str(caught.value)) < 1000
    wanted = [f"Column {at} {'x' * 300}" for at in range(300)]
    with pytest.raises(DataError, match="Did you mean") as caught:
        read_sheets([path], wanted, None)
    assert len(str(caught.value)) < 2000
    write_workbook(path, {"people": [[None] * 4000 + ["last"], [1] * 4001]})
    with pytest.raises(DataError, match="and 3992 more"):
        write_draft(path, tmp_path / "plan.toml")
