"""Derived columns and files written otherwise: the same counts as from data that were tidy."""

from __future__ import annotations

import csv
import gzip
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from congenial.data.derive import (
    DatePart,
    Derivation,
    Joined,
    NumberWritten,
    Recoded,
    Tidied,
    needed,
    used,
)
from congenial.data.schema import Schema, Unit
from congenial.data.source import FileFormat, PlannedSource
from congenial.data.tabulate import Microdata
from congenial.errors import DataError

WHOLE = {"integers": [-5, 120]}


def counted(
    path: Path, name: str, spec: dict[str, Any], *steps: Derivation, form: FileFormat | None = None
) -> dict[str, int]:
    """Counts of one column by level, levels without records left out."""
    schema = Schema.from_dict({name: spec})
    source = PlannedSource(path, form or FileFormat(), steps)
    with Microdata.open(source, schema) as data:
        table = data.tabulate([name])
    levels = schema.axis(name).levels
    return {level: int(n) for level, n in zip(levels, table.counts, strict=True) if n}


def people(folder: Path, **columns: list[str]) -> Path:
    path = folder / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_age_is_counted_in_full_years(tmp_path: Path) -> None:
    born = ["2000-04-01", "2000-04-02", "2004-02-29", "2020-04-02", "1900-04-01"]
    path = people(tmp_path, born=born)
    at = date(2020, 4, 1)
    assert counted(path, "age", WHOLE, DatePart("age", "born", "age", at)) == {
        "-1": 1,
        "16": 1,
        "19": 1,
        "20": 1,
        "120": 1,
    }


@pytest.mark.parametrize(("at", "age"), [(date(2019, 2, 28), "14"), (date(2019, 3, 1), "15")])
def test_who_is_born_on_leap_day_is_older_on_the_first_of_march(
    tmp_path: Path, at: date, age: str
) -> None:
    path = people(tmp_path, born=["2004-02-29"])
    assert counted(path, "age", WHOLE, DatePart("age", "born", "age", at)) == {age: 1}


def test_year_and_month_in_another_layout(tmp_path: Path) -> None:
    path = people(tmp_path, day=["31.12.1999", "01.02.2003", "01.12.2003"])
    months = DatePart("m", "day", "month", layout="%d.%m.%Y")
    years = DatePart("y", "day", "year", layout="%d.%m.%Y")
    assert counted(path, "m", {"integers": [1, 12]}, months) == {"2": 1, "12": 2}
    levels = {"levels": ["1999", "2003"]}
    assert counted(path, "y", levels, years) == {"1999": 1, "2003": 2}


@pytest.mark.parametrize("text", ["1999-13-01", "yesterday", "infinity"])
def test_text_that_is_no_date_is_refused_and_not_taken_for_missing(
    tmp_path: Path, text: str
) -> None:
    path = people(tmp_path, id=["1", "2"], born=["1990-01-01", text])
    spec = {**WHOLE, "missing": "unknown"}
    with pytest.raises(DataError, match="not a number") as caught:
        counted(path, "age", spec, DatePart("age", "born", "age", date(2020, 4, 1)))
    assert text not in str(caught.value)


def test_a_missing_date_is_missing(tmp_path: Path) -> None:
    path = people(tmp_path, id=["1", "2"], born=["1990-01-01", ""])
    step = DatePart("y", "born", "year")
    spec = {"integers": [1990, 1990], "missing": "unknown"}
    assert counted(path, "y", spec, step) == {"1990": 1, "unknown": 1}


def test_joined_keys(tmp_path: Path) -> None:
    path = people(tmp_path, tract=["01", "01", "02", ""], block=["1", "2", "1", "1"])
    spec = {"levels": ["01-1", "01-2", "02-1"], "missing": "unknown"}
    step = Joined("key", ("tract", "block"), "-")
    assert counted(path, "key", spec, step) == {"01-1": 1, "01-2": 1, "02-1": 1, "unknown": 1}


def test_recoding_leaves_other_texts_and_can_make_values_missing(tmp_path: Path) -> None:
    path = people(tmp_path, id=list("1234"), sex=["1", "2", "m", "NA"])
    spec = {"levels": ["f", "m"], "missing": "unknown"}
    step = Recoded("sex", "sex", {"1": "f", "2": "m", "NA": ""})
    assert counted(path, "sex", spec, step) == {"f": 1, "m": 2, "unknown": 1}


def test_tidying(tmp_path: Path) -> None:
    path = people(tmp_path, id=list("123"), code=[" 7", "07", "123 "])
    step = Tidied("code", "code", trim=True, width=2)
    assert counted(path, "code", {"levels": ["07", "123"]}, step) == {"07": 2, "123": 1}
    upper = Tidied("name", "code", trim=True, case="upper")
    other = people(tmp_path, code=["ab", "AB "])
    assert counted(other, "name", {"levels": ["AB"]}, upper) == {"AB": 2}


def test_texts_are_written_as_levels_are(tmp_path: Path) -> None:
    path = people(tmp_path, id=list("12345"), region=["Nord", " NORD", "süd", "SÜD ", "x"])
    spec = {"levels": ["Nord", "Süd"], "other": "other"}
    step = Tidied("region", "region", trim=True, case="levels", levels=("Nord", "Süd"))
    assert counted(path, "region", spec, step) == {"Nord": 2, "Süd": 2, "other": 1}
    with pytest.raises(DataError, match="differ only in upper and lower case"):
        Tidied("c", "c", case="levels", levels=("a", "A"))


def test_numbers_with_other_marks(tmp_path: Path) -> None:
    path = people(tmp_path, income=["1.234,5", "12,0", "7"])
    step = NumberWritten("income", "income", decimal=",", thousands=".")
    spec = {"edges": [0, 12, 1234], "top": "1234+"}
    assert counted(path, "income", spec, step) == {"0-11": 1, "12-1233": 1, "1234+": 1}


def test_steps_follow_each_other_and_only_what_is_used_is_read() -> None:
    steps = [
        Recoded("plain", "raw", {}),
        Joined("key", ("plain", "b")),
        Tidied("c", "d", trim=True),
    ]
    assert needed(["key", "e"], steps) == ["e", "b", "raw"]
    assert [one.name for one in used(["key"], steps)] == ["plain", "key"]


def test_a_unit_may_be_derived(tmp_path: Path) -> None:
    path = people(tmp_path, house=["1", "1", "2"], line=["1", "2", "1"], sex=["f", "m", "f"])
    source = PlannedSource(path, derivations=(Joined("person", ("house", "line"), "-"),))
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    with Microdata.open(source, schema, Unit("person")) as data:
        assert data.tabulate().counts.tolist() == [2, 1]
    with Microdata.open(source, schema, Unit("house")) as data, pytest.raises(DataError):
        data.tabulate()


def test_parquet_dates_and_texts(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"born": [date(1990, 5, 1), None, date(2001, 1, 1)], "a": ["x ", "x", "y"]})
    path = tmp_path / "people.parquet"
    pq.write_table(table, path)
    spec = {"integers": [1990, 2001], "missing": "unknown"}
    years = counted(path, "y", spec, DatePart("y", "born", "year"))
    assert years == {"1990": 1, "2001": 1, "unknown": 1}
    assert counted(path, "a", {"levels": ["x", "y"]}, Tidied("a", "a", trim=True)) == {
        "x": 2,
        "y": 1,
    }


@pytest.mark.parametrize("mark", ["^", "::", "\t", " "])
def test_any_separator(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "people.txt"
    path.write_text(f"id{mark}sex\n1{mark}f\n2{mark}m\n3{mark}f\n")
    form = FileFormat(separator=mark)
    assert counted(path, "sex", {"levels": ["f", "m"]}, form=form) == {"f": 2, "m": 1}


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "mac_roman", "utf-8"])
@pytest.mark.parametrize("packed", [False, True])
def test_any_encoding(tmp_path: Path, encoding: str, packed: bool) -> None:
    path = tmp_path / ("people.csv.gz" if packed else "people.csv")
    content = "id,city\n1,Zürich\n2,Genève\n3,Zürich\n".encode(encoding)
    path.write_bytes(gzip.compress(content) if packed else content)
    form = FileFormat(encoding=encoding)
    spec = {"levels": ["Zürich", "Genève"]}
    assert counted(path, "city", spec, form=form) == {"Zürich": 2, "Genève": 1}


def test_the_wrong_encoding_is_refused_without_a_value(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"city\nS3CR3T\xff\xfe\n")
    with pytest.raises(DataError, match="not written in ascii") as caught:
        counted(path, "city", {"levels": ["a"]}, form=FileFormat(encoding="ascii"))
    assert "S3CR3T" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"separator": '"'}, "cannot separate fields"),
        ({"encoding": "rot13"}, "not a known encoding"),
    ],
)
def test_formats_that_mean_nothing(words: dict[str, str], match: str) -> None:
    with pytest.raises(DataError, match=match):
        FileFormat(**words)


def test_workbooks(tmp_path: Path) -> None:
    """Whole numbers, truth values, dates and empty cells read as in a CSV file."""
    pytest.importorskip("python_calamine")
    path = tmp_path / "people.xlsx"
    write_workbook(
        path,
        {
            "people": [
                ["id", "sex", "born", "member"],
                [1, "f", date(1990, 5, 1), True],
                [2, "m", date(1991, 6, 2), False],
                [3, None, None, None],
            ],
            "notes": [["nothing"]],
        },
    )
    form = FileFormat(sheet="people")
    unknown = {"missing": "unknown"}
    levels = {"levels": ["f", "m"], **unknown}
    assert counted(path, "sex", levels, form=form) == {"f": 1, "m": 1, "unknown": 1}
    assert counted(path, "id", {"levels": ["1", "2", "3"]}, form=form) == {"1": 1, "2": 1, "3": 1}
    truth = {"levels": ["false", "true"], **unknown}
    assert counted(path, "member", truth, form=form) == {"false": 1, "true": 1, "unknown": 1}
    years = {"integers": [1990, 1991], **unknown}
    step = DatePart("year", "born", "year")
    assert counted(path, "year", years, step, form=form) == {"1990": 1, "1991": 1, "unknown": 1}
    with pytest.raises(DataError, match="has 2 sheets"):
        counted(path, "sex", levels)
    with pytest.raises(DataError, match="no sheet 'People'"):
        counted(path, "sex", levels, form=FileFormat(sheet="People"))


def write_workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> None:
    """A small .xlsx file, written by hand: inline texts, numbers, truth values and dated cells."""
    import zipfile
    from xml.sax.saxutils import escape

    def cell(value: Any) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, bool):
            return f'<c t="b"><v>{int(value)}</v></c>'
        if isinstance(value, date):
            return f'<c s="1"><v>{(value - date(1899, 12, 30)).days}</v></c>'
        if isinstance(value, int | float):
            return f"<c><v>{value}</v></c>"
        return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'

    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    names = list(sheets)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{at}" r:id="r{at}"/>' for at, name in enumerate(names, 1)
    )
    links = "".join(
        f'<Relationship Id="r{at}" Type="{office}/worksheet" Target="worksheets/s{at}.xml"/>'
        for at in range(1, len(names) + 1)
    )
    types = "".join(
        f'<Override PartName="/xl/worksheets/s{at}.xml" ContentType="{kind}.worksheet+xml"/>'
        for at in range(1, len(names) + 1)
    )
    styles = (
        f'<styleSheet xmlns="{main}"><fonts><font/></fonts><fills><fill/></fills><borders>'
        '<border/></borders><cellXfs><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/>'
        "</cellXfs></styleSheet>"
    )
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="'
            'application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
            f'ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="'
            f'{kind}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="'
            f'{kind}.styles+xml"/>{types}</Types>',
        )
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" '
            f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{links}<Relationship Id="styles" '
            f'Type="{office}/styles" Target="styles.xml"/></Relationships>',
        )
        book.writestr("xl/styles.xml", styles)
        for at, rows in enumerate(sheets.values(), 1):
            body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
            book.writestr(
                f"xl/worksheets/s{at}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>',
            )
