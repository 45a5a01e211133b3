"""The check of data: every problem at once, with the right number of rows, values and places."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from congenial.data.attribute import Attribute
from congenial.data.data_check import check_data
from congenial.data.data_problems import DataCheck, for_dates, for_levels, for_numbers
from congenial.data.derive import DatePart, Recoded
from congenial.data.schema import Schema, Unit
from congenial.data.source import FileFormat, PlannedSource
from congenial.data.tabulate import Microdata
from congenial.errors import DataError

SCHEMA = Schema.from_dict(
    {
        "sex": {"levels": ["f", "m"]},
        "city": {"levels": ["Zürich", "Bern"]},
        "age": {"edges": [0, 18], "top": "18+", "whole": True},
        "income": {"edges": [0, 10], "top": "10+"},
    }
)
AT = date(2020, 4, 1)
ROWS = [
    # id, sex, city, born, income
    ("1", "f", "Bern", "1990-01-01", "5"),
    ("2", "F", "Zürich", "1990-01-01", "NA"),
    ("3", " m", "Brn", "01.02.1999", "7"),
    ("3", "", "Brn", "1990-01-01", "8"),
    ("", "x", "Bern", "2030-01-01", "-3"),
]


def source(path: Path, form: FileFormat | None = None) -> PlannedSource:
    return PlannedSource(path, form or FileFormat(), (DatePart("age", "born", "age", AT),))


def written(folder: Path, mark: str = ",", encoding: str = "utf-8", extra: str = "") -> Path:
    rows = [("id", "sex", "city", "born", "income"), *ROWS]
    path = folder / "people.csv"
    path.write_bytes((extra.join(mark.join(row) + "\n" for row in rows) + extra).encode(encoding))
    return path


def found(check: DataCheck) -> dict[tuple[str, str], int | None]:
    return {(one.column, one.kind): one.rows for one in check.problems}


VALUES = {
    ("sex", "missing values"): 1,
    ("sex", "not in the schema"): 3,
    ("city", "not in the schema"): 2,
    ("age", "not in the schema"): 1,
    ("income", "not a number"): 1,
    ("income", "not in the schema"): 1,
    ("born", "not a date"): 1,
    ("id", "unit missing"): 1,
    ("id", "unit repeated"): 2,
}


def test_every_problem_is_found_in_one_run(tmp_path: Path) -> None:
    check = check_data(source(written(tmp_path)), SCHEMA, Unit("id"))
    assert check.rows == len(ROWS)
    assert found(check) == VALUES
    assert not check.fits
    assert not any(one.examples for one in check.problems)


def test_a_file_written_otherwise_hides_nothing(tmp_path: Path) -> None:
    """Separator, encoding and malformed rows are problems, and what is inside is seen as well."""
    path = written(tmp_path, "^", "cp1252")
    path.write_bytes(path.read_bytes() + b"x^y\n")
    check = check_data(source(path), SCHEMA, Unit("id"))
    outside = {("", "encoding"): 1, ("", "separator"): None, ("", "malformed rows"): 1}
    assert found(check) == outside | VALUES
    lines = {str(line) for line in check.lines if line.section == "data"}
    assert lines == {'encoding = "cp1252"', 'separator = "^"'}
    mended = FileFormat(separator="^", encoding="cp1252")
    assert not {("", "encoding"), ("", "separator")} & set(
        found(check_data(source(path, mended), SCHEMA, Unit("id")))
    )


def test_examples_name_values_rows_and_what_was_meant(tmp_path: Path) -> None:
    check = check_data(source(written(tmp_path)), SCHEMA, Unit("id"), examples=5)
    by_place = {(one.column, one.kind): one for one in check.problems}
    cities = by_place["city", "not in the schema"].examples
    assert [(one.value, one.rows, one.at, one.meant) for one in cities] == [
        ("Brn", 2, (3, 4), "Bern")
    ]
    assert by_place["sex", "missing values"].examples[0].at == (4,)
    assert by_place["born", "not a date"].examples[0].value == "01.02.1999"
    repeated = by_place["id", "unit repeated"].examples
    assert [(one.value, one.at) for one in repeated] == [("3", (3, 4))]


def test_lines_end_in_two_ways(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"id,sex\r\n1,f\n2,m\r\n")
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    planned = PlannedSource(path)
    with Microdata.open(planned, schema) as data, pytest.raises(DataError, match="line ending"):
        data.tabulate()
    check = check_data(planned, schema, Unit("id"))
    assert (check.rows, found(check)) == (2, {("", "line ends"): None})


def test_absent_columns_are_all_named_and_the_others_still_read(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,Sex ,born\n1,f,1990-01-01\n")
    check = check_data(source(path), SCHEMA, Unit("id"))
    absent = {name for name, kind in found(check) if kind == "column absent"}
    assert absent == {"sex", "city", "income"}
    assert set(check.unread) == absent
    assert "'Sex '" in next(one.remedy for one in check.problems if one.column == "sex")
    assert check.rows == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no file or folder"), (b"", "is empty"), (b"sex\n", "no records")],
)
def test_what_cannot_be_read_is_a_problem_too(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "people.csv"
    if content is not None:
        path.write_bytes(content)
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    check = check_data(PlannedSource(path), schema, Unit())
    assert [one.kind for one in check.problems] == ["file"]
    assert words in check.problems[0].words


def test_columns_stored_otherwise(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"sex": [0.5], "age": ["x"]}), path)
    schema = Schema.from_dict({"sex": {"levels": ["f"]}, "age": {"integers": [0, 9]}})
    check = check_data(PlannedSource(path), schema, Unit())
    assert found(check) == {("sex", "stored otherwise"): None, ("age", "not a number"): 1}


def test_tidy_data_fit(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,sex,city,born,income\n1,f,Bern,1990-01-01,5\n")
    check = check_data(source(path), SCHEMA, Unit("id"), examples=3)
    assert (check.fits, check.rows, check.lines) == (True, 1, ())


@pytest.mark.parametrize(
    ("levels", "strangers", "line"),
    [
        (["f", "m"], ["F", "M"], '{ tidy = "c", case = "lower" }'),
        (["f", "m"], [" f", "m "], '{ tidy = "c", trim = true }'),
        (["Nord", "Süd"], ["NORD", " süd "], '{ tidy = "c", trim = true, case = "levels" }'),
        (["f", "m"], ["F", "?"], '{ tidy = "c", trim = true, case = "levels" }'),
        (["a", "A"], ["a "], '{ tidy = "c", trim = true }'),
        (["001", "020"], ["1", "20"], '{ tidy = "c", width = 3 }'),
        (["Bern", "Köln"], ["KÃ¶ln"], '{ recode = "c", to = { "KÃ¶ln" = "Köln" } }'),
        (["1", "2"], ["1.0"], '{ recode = "c", to = { "1.0" = "1" } }'),
        (["Allegheny"], ["Alegheny"], '{ recode = "c", to = { "Alegheny" = "Allegheny" } }'),
    ],
)
def test_what_strangers_were_meant_to_be(
    levels: list[str], strangers: list[str], line: str
) -> None:
    suggestion = for_levels("c", levels, dict.fromkeys(strangers, 1))
    assert [one.value for one in suggestion.lines] == [line]


def test_rows_of_separators_only(tmp_path: Path) -> None:
    """They are told apart from records with gaps, and a line of the plan leaves them out."""
    path = tmp_path / "people.csv"
    path.write_text("id,sex\n1,f\n,\n2,\n,\n")
    schema, unit = Schema.from_dict({"sex": {"levels": ["f", "m"], "missing": "?"}}), Unit("id")
    check = check_data(source(path), schema, unit)
    assert [(one.kind, one.rows) for one in check.problems] == [
        ("blank rows", 2),
        ("unit missing", 2),
    ]
    assert [str(one) for one in check.lines] == ["skip_blank_rows = true"]
    mended = PlannedSource(path, FileFormat(skip_blank_rows=True))
    assert check_data(mended, schema, unit).fits
    with Microdata.open(mended, schema, unit) as data:
        assert data.tabulate(["sex"]).counts.tolist() == [1, 0, 1]


def test_no_guess_where_nothing_is_near() -> None:
    assert for_levels("c", ["f", "m"], {"divers": 2}).lines == ()
    assert for_numbers(Attribute("n", "integers", low=0, high=9), {"twelve": 1}).lines == ()
    assert for_dates(["31.12.1999", "1999/12/31"]) == ()
    assert for_dates(["01/02/1999"]) == ("%m/%d/%Y", "%d/%m/%Y")


def test_the_label_of_the_top_is_a_value(tmp_path: Path) -> None:
    """Also where another text means the same: nobody over 90 becomes missing."""
    path = tmp_path / "people.csv"
    path.write_text("age\n3\n90+\n90+\n>= 90\n")
    schema = Schema.from_dict({"age": {"edges": [0, 18, 90], "top": "90+", "missing": "unknown"}})
    check = check_data(PlannedSource(path), schema, Unit(), examples=3)
    assert found(check) == {("age", "not a number"): 1}
    (problem,), (line,) = check.problems, check.lines
    assert (problem.pattern, problem.examples[0].meant) == ("an open class, such as 85+", "90+")
    assert str(line) == 'age = { recode = "age", to = { ">= 90" = "90+" } }'
    recoded = PlannedSource(path, derivations=(Recoded("age", "age", {">= 90": "90+"}),))
    with Microdata.open(recoded, schema) as data:
        assert data.tabulate(["age"]).counts.tolist() == [1, 0, 3, 0]
    other = Schema.from_dict({"age": {"edges": [0, 18, 100]}})
    check = check_data(PlannedSource(path), other, Unit())
    assert (check.lines, check.problems[0].pattern) == (
        (),
        "an open class, such as 85+: end the edges at its number, and give its label as top",
    )


def test_impossible_dates_can_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,born\n1,01.05.1990\n2,31.02.1990\n3,\n4,02.03.2001\n")
    schema = Schema.from_dict({"age": {"edges": [0, 18], "top": "18+", "missing": "unknown"}})
    strict, unit = DatePart("age", "born", "age", AT, "%d.%m.%Y"), Unit("id")
    check = check_data(PlannedSource(path, derivations=(strict,)), schema, unit)
    assert found(check) == {("born", "not a date"): 1}
    assert check.problems[0].words == "not a valid date in the format %d.%m.%Y"
    assert 'invalid = "missing" in derive.age' in check.problems[0].remedy
    assert 'missing = "unknown" in schema.age' in check.problems[0].remedy
    lenient = replace(strict, invalid_is_missing=True)
    assert check_data(PlannedSource(path, derivations=(lenient,)), schema, unit).fits
    with Microdata.open(PlannedSource(path, derivations=(lenient,)), schema) as data:
        assert data.tabulate(["age"]).counts.tolist() == [0, 2, 2]
    wrong = replace(lenient, layout="%Y/%m/%d")  # no text is a date: the format is wrong
    check = check_data(PlannedSource(path, derivations=(wrong,)), schema, unit)
    assert found(check) == {("born", "not a date"): 3}
    refusing = Schema.from_dict({"age": {"edges": [0, 18], "top": "18+"}})
    check = check_data(PlannedSource(path, derivations=(lenient,)), refusing, unit)
    assert found(check) == {("age", "missing values"): 2}


def test_a_repeated_id_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,sex\n1,f\n1,f\n2,m\n")
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    (problem,) = check_data(PlannedSource(path), schema, Unit("id")).problems
    with pytest.raises(DataError) as caught, Microdata.open(path, schema, Unit("id")) as data:
        data.tabulate()
    for remedy in (problem.remedy, caught.value.remedy):
        assert "Duplicates: remove them" in remedy
        assert "leave out unit" in remedy
        assert "max_rows" in remedy
