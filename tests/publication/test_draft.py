"""A drafted plan is a plan, comes from names and types alone, and overwrites nothing."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from congenial.data.data_problems import quoted
from congenial.errors import DataError, PlanError
from congenial.publication.draft import AHEAD, MOST_LEVELS, columns_of, draft, write_draft
from congenial.publication.plan import Plan
from tests.commands import refused, run
from tests.data.test_derive import write_workbook

MARKER = "S3CR3T-9137"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    table = pa.table(
        {
            "person_id": [1, 2, 3],
            "job title": pa.array([MARKER, "baker", None]).dictionary_encode(),
            "age": [3, 40, 71],
            "pay": [1.5, 2.5, None],
            "citizen": [True, False, True],
            "born": [datetime.date(2000, 1, 1)] * 3,
        }
    )
    pq.write_table(table, path)
    return path


def test_the_column_of_the_person_can_be_named(people: Path, tmp_path: Path) -> None:
    write_draft(people, tmp_path / "plan.toml", "job title")
    assert Plan.load(tmp_path / "plan.toml").data.unit == "job title"
    with pytest.raises(
        DataError, match=r"no column 'person'.*Its columns are person_id, job title"
    ):
        write_draft(people, tmp_path / "other.toml", "person")


def test_columns_become_attributes_by_type(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "plans" / "plan.toml"
    kinds = write_draft(people, out)
    assert kinds == {
        "person_id": "whole number",
        "job title": "text",
        "age": "whole number",
        "pay": "number",
        "citizen": "truth",
        "born": "other",
    }
    text = out.read_text()
    assert MARKER not in text
    assert "71" not in text
    plan = Plan.load(out)
    assert plan.source.address.resolve() == people.resolve()
    assert plan.data.unit == "person_id"
    assert tuple(plan.schema_) == ("job title", "age", "pay", "citizen")
    assert plan.schema_["age"]["whole"] is True  # stored as integers, pay is not
    assert "whole" not in plan.schema_["pay"]
    assert plan.schema_["citizen"]["levels"] == ["false", "true"]
    with pytest.raises(PlanError, match="placeholder"):
        _ = plan.schema
    assert plan.release[0].table == ["job title", "age"]


def test_levels_are_read_on_request_and_the_plan_says_so(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.toml"
    write_draft(people, out, levels_from_data=True)
    assert Plan.load(out).schema.axis("job title").levels == (MARKER, "baker")
    assert "WARNING" in out.read_text()


def test_too_many_levels_are_not_listed(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},level {i % (MOST_LEVELS + 1)}" for i in range(2 * MOST_LEVELS + 2))
    (tmp_path / "many.csv").write_text("id,code\n" + rows)
    write_draft(tmp_path / "many.csv", tmp_path / "plan.toml", levels_from_data=True)
    assert Plan.load(tmp_path / "plan.toml").schema_["code"]["levels"] == ["..."]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_a_csv_header_is_all_that_is_read(tmp_path: Path, mark: str) -> None:
    (tmp_path / "people.csv").write_text(f"id{mark}sex{mark}age\n1{mark}{MARKER}{mark}3\n")
    assert columns_of(tmp_path / "people.csv") == dict.fromkeys(("id", "sex", "age"), "text")


@pytest.mark.parametrize(
    "text",
    [
        f"17,{MARKER},3\n18,baker,4\n",  # numbers
        f"{MARKER},,x\n",  # an answer that is missing
        f"{MARKER},yes,yes\ncook,no,yes\n",  # the same answer twice
        f"{MARKER},Yes,yes\n",  # columns are told apart without case
        f"{MARKER},north\ncook,west\nclerk,north\n",  # an answer that others give too
        f"{MARKER},North \ncook,west\nclerk,north\n",  # in another case
        f'"{MARKER}, a",north\r\ncook,"south\r\nwest"\r\nclerk,north\r\n',
        f"{MARKER};north\ncook, so to say;west\nclerk;north",
        f"{MARKER},north\n" + "cook,west\n" * 90_000 + "clerk,north\n",
        f"{MARKER},north,{'x' * 200_000}\n",
    ],
    ids=[
        "numbers",
        "empty",
        "twice",
        "case",
        "again",
        "otherwise",
        "quoted",
        "semicolon",
        "late",
        "long",
    ],
)
def test_a_record_is_not_taken_for_a_header(tmp_path: Path, text: str) -> None:
    (tmp_path / "people.csv").write_text(text, newline="")
    with pytest.raises(DataError, match=r"header|CSV") as refused:
        write_draft(tmp_path / "people.csv", tmp_path / "plan.toml")
    assert MARKER not in str(refused.value)
    assert not (tmp_path / "plan.toml").exists()


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
def test_a_file_that_is_not_in_utf_8_is_drafted_with_its_encoding(
    tmp_path: Path, encoding: str
) -> None:
    rows = "id;Gemeinde;größe\n1;Zürich;x\n2;Genève;y\n"
    (tmp_path / "people.csv").write_text(rows, encoding=encoding)
    write_draft(tmp_path / "people.csv", tmp_path / "plan.toml", levels_from_data=True)
    plan = Plan.load(tmp_path / "plan.toml")
    assert tuple(plan.schema_) == ("Gemeinde", "größe")
    assert plan.schema_["Gemeinde"]["levels"] == ["Genève", "Zürich"]
    assert (plan.data.encoding is None) == (encoding == "utf-8-sig")


def test_a_column_without_a_name_is_said_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(f"id;;sex; \n1;{MARKER};f;x\n")
    with pytest.raises(DataError, match=r"header of 'people.csv' gives no name to column 2, 4"):
        write_draft(tmp_path / "people.csv", tmp_path / "plan.toml")


def test_a_long_file_is_looked_at_to_a_fixed_place(tmp_path: Path) -> None:
    """The last row that is looked at is cut off, and is not taken for a whole one."""
    header, row = "west,my_job\n", "wester,cook\n"
    assert (AHEAD - len(header)) % len(row) == len("west")
    (tmp_path / "people.csv").write_text(header + row * (AHEAD // len(row)))
    assert list(columns_of(tmp_path / "people.csv")) == ["west", "my_job"]


def test_a_folder_is_read_by_its_first_file(people: Path) -> None:
    assert columns_of(people.parent) == columns_of(people)


def test_nothing_is_overwritten(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.toml"
    out.write_text("mine")
    with pytest.raises(PlanError, match="already exists"):
        write_draft(people, out)
    assert out.read_text() == "mine"


@pytest.mark.parametrize("name", ["absent.parquet", "people.xlsx", "broken.parquet", "empty.csv"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    if name != "absent.parquet":
        (tmp_path / name).write_text("" if name == "empty.csv" else MARKER)
    with pytest.raises(DataError) as refused:
        write_draft(tmp_path / name, tmp_path / "plan.toml")
    assert MARKER not in str(refused.value)
    assert not (tmp_path / "plan.toml").exists()


def test_a_workbook_has_its_columns_drafted(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    sheet = [["sex", "job"], ["f", "cook"], ["m", "driver"]]
    write_workbook(tmp_path / "people.xlsx", {"people": sheet})
    write_draft(tmp_path / "people.xlsx", tmp_path / "plan.toml", levels_from_data=True)
    schema = tomllib.loads((tmp_path / "plan.toml").read_text())["schema"]
    assert {name: one["levels"] for name, one in schema.items()} == {
        "sex": ["f", "m"],
        "job": ["cook", "driver"],
    }


@pytest.mark.parametrize(
    "text", ['a"b', "back\\slash", "tab\t", "bell\x07", "del\x7f", "ü \U0001f600"]
)
def test_any_text_survives_toml(text: str) -> None:
    assert tomllib.loads(f"x = {quoted(text)}") == {"x": text}
    plan = tomllib.loads(draft("data.csv", None, {text: "text"}, {text: [text]}))
    assert plan["schema"][text]["levels"] == [text]


def test_levels_from_data_are_in_the_order_people_count(tmp_path: Path) -> None:
    rows = ["grade,room", *(f"g{i},{i}" for i in (11, 2, 0, 10, 1, 9))]
    (tmp_path / "pupils.csv").write_text("\n".join(rows) + "\n")
    write_draft(tmp_path / "pupils.csv", tmp_path / "plan.toml", levels_from_data=True)
    schema = tomllib.loads((tmp_path / "plan.toml").read_text())["schema"]
    assert schema["grade"]["levels"] == ["g0", "g1", "g2", "g9", "g10", "g11"]
    assert schema["room"]["levels"] == ["0", "1", "2", "9", "10", "11"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_an_id_is_never_in_a_table(tmp_path: Path, kind: str) -> None:
    """By its values, whatever it is called; and by its name, where there are too few rows."""
    columns = {
        "Fallnummer": [f"F{at:05}" for at in range(40)],
        "patient_id": [f"P{at // 2}" for at in range(40)],
        "sex": ["f", "m"] * 20,
        "ward": ["a", "b", "c", "d"] * 10,
        "born": [f"{1 + at % 28:02}.02.{1950 + at}" for at in range(40)],
        "income": [f"{at},50" for at in range(40)],
    }
    if kind == "parquet":
        columns = {name: columns[name] for name in list(columns)[:4]}  # which stores types
    path = tmp_path / f"people.{kind}"
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    if kind == "parquet":
        pq.write_table(pa.table(columns), path)
    elif kind == "csv":
        path.write_text("\n".join(";".join(row) for row in rows))
    else:
        pytest.importorskip("python_calamine")
        write_workbook(path, {"people": [list(row) for row in rows]})
    write_draft(path, tmp_path / "plan.toml")
    plan = Plan.load(tmp_path / "plan.toml")
    assert plan.data.unit == "patient_id"
    income = () if kind == "parquet" else ("income",)
    assert tuple(plan.schema_) == ("sex", "ward", *income)
    assert plan.release[0].table == ["sex", "ward"]
    assert "# Fallnummer: left out: it looks like an id" in (tmp_path / "plan.toml").read_text()
    write_draft(path, tmp_path / "case.toml", "Fallnummer")
    plan = Plan.load(tmp_path / "case.toml")
    assert (plan.data.unit, plan.release[0].table) == ("Fallnummer", ["sex", "ward"])


def test_two_ids_are_for_the_curator_to_choose_from(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("admission_id,patient_id,sex\n1,1,f\n2,1,f\n")
    write_draft(tmp_path / "people.csv", tmp_path / "plan.toml")
    plan = Plan.load(tmp_path / "plan.toml")
    assert (plan.data.unit, plan.release[0].table) == (None, ["sex"])
    assert "identifies a person: admission_id, patient_id?" in (tmp_path / "plan.toml").read_text()


def test_a_messy_file_from_draft_to_bundle(tmp_path: Path) -> None:
    """Semicolons, Latin-1, ages such as 90+, an impossible date, a patient who is there twice."""
    rows = ["Fall;Patient;Geschlecht;Geburt;Alter;Diagnose;Klinik"]
    for at in range(60):
        age = "90+" if at % 7 == 0 else str(at)
        born = "31.02.1950" if at == 3 else f"01.{1 + at % 12:02}.{1960 + at}"
        patient = 58 if at == 59 else at
        words = (f"F{at:03}", f"P{patient:03}", "wmW"[at % 3], born, age, "AB"[at % 2], "Zürich")
        rows.append(";".join(words))
    (tmp_path / "admissions.csv").write_text("\r\n".join(rows) + "\r\n", encoding="latin-1")
    (tmp_path / "icd.csv").write_text("code,name\nA,Appendicitis\nB,Bronchitis\n")
    plan = tmp_path / "plan.toml"
    run("init", tmp_path / "admissions.csv", "--unit", "Patient", "--out", plan)
    text = plan.read_text()
    assert 'table = ["Geschlecht", "Alter"]' in text
    assert 'encoding = "cp1252"' in text

    def change(line: str, new: str) -> None:
        nonlocal text
        (old,) = [one for one in text.splitlines() if one.startswith(line)]
        text = text.replace(f"\n{old}\n", f"\n{new}\n")
        plan.write_text(text)

    change("[schema]", '[derive]\nJahre = { age = "Geburt", at = 2023-01-01 }\n\n[schema]')
    change("# Geburt", 'Jahre = { edges = [0, 18], top = "18+", whole = true, bottom = "none" }')
    change("Geschlecht =", 'Geschlecht = { levels = ["w", "m"] }')
    change("Alter =", 'Alter = { edges = [0, 18, 90], top = "90+" }')
    change("Diagnose =", 'Diagnose = { labels_file = "icd.csv" }')
    change("Klinik =", 'Klinik = { levels = ["Zürich"] }')
    change("table =", 'table = ["Diagnose", "Alter"]')
    run("check", plan)
    found = run("data", plan, "--json", code=1)
    assert {(one["column"], one["kind"], one["rows"]) for one in found["problems"]} == {
        ("Geschlecht", "not in the schema", 20),
        ("Geburt", "not a date", 60),
        ("Patient", "unit repeated", 2),
    }
    words = refused(plan, "release", 3)
    assert "Duplicates: remove them" in words
    assert "P058" not in words
    change("[derive]", '[derive]\nGeschlecht = { tidy = "Geschlecht", case = "lower" }')
    change("unit =", 'unit = "Patient"\nmax_rows = 2')
    date = 'age = "Geburt", at = 2023-01-01, format = "%d.%m.%Y"'
    change("Jahre = { age", f"Jahre = {{ {date} }}")
    (problem,) = run("data", plan, "--json", code=1)["problems"]
    assert (problem["kind"], problem["rows"]) == ("not a date", 1)
    assert 'invalid = "missing" in derive.Jahre' in problem["remedy"]
    change("Jahre = { age", f'Jahre = {{ {date}, invalid = "missing" }}')
    change(
        "Jahre = { edges", 'Jahre = { edges = [0, 18], top = "18+", bottom = "-", missing = "?" }'
    )
    run("data", plan)
    run("release", plan)
    run("verify", tmp_path / "bundles/first-table")
    table = (tmp_path / "bundles/first-table/table.csv").read_text()
    assert '"A","Appendicitis","90+"' in table
