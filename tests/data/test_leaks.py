"""Bad data are refused with a message that names the column and keeps every value."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from congenial.data.predicate import parse
from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import tabulate
from congenial.errors import CongenialError, DataError

MARK = "S3CR3T-9137"
NUMBER = 913_791_379
SCHEMA = Schema.from_dict(
    {"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 99]}, "size": {"integers": [1, 3]}}
)
GOOD: dict[str, list[Any]] = {"sex": ["f", "m"], "age": [3, 20], "size": [1, 2]}


def arrow(**columns: Any) -> Callable[[Path], Any]:
    return lambda folder: pa.table(GOOD | columns)


def csv(text: str, name: str = "people.csv") -> Callable[[Path], Any]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text, encoding="utf-8")
        return folder / name

    return write


def raw(content: bytes, name: str) -> Callable[[Path], Any]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def mixed_folder(folder: Path) -> Path:
    csv("sex,age,size\n")(folder)
    raw(b"x", "b.parquet")(folder)
    return folder


def nested_folder(folder: Path) -> Path:
    (folder / "inner").mkdir()
    return folder


def failing_relation(folder: Path) -> Any:
    connection = duckdb.connect()
    return connection.sql(
        f"SELECT 'f' AS sex, CAST(v AS INTEGER) AS age, 1 AS size FROM (VALUES ('{MARK}')) AS t(v)"
    )


def closed_relation(folder: Path) -> Any:
    connection = duckdb.connect()
    relation = connection.from_arrow(pa.table(GOOD))
    connection.close()
    return relation


def failing_lazy_frame(folder: Path) -> Any:
    frame = pl.LazyFrame(GOOD | {"age": [MARK, "3"]})
    return frame.with_columns(pl.col("age").cast(pl.Int64))


def failing_reader(folder: Path) -> Any:
    schema = pa.table(GOOD).schema

    def batches() -> Any:
        raise ValueError(MARK)
        yield

    return pa.RecordBatchReader.from_batches(schema, batches())


HEADER = "sex,age,size\n"
CASES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "level outside": (arrow(sex=["f", MARK]), "column 'sex' has values that are not in"),
    "number outside": (arrow(age=[3, NUMBER]), "column 'age' has values between or beyond"),
    "integer outside": (arrow(size=[1, NUMBER]), "column 'size' has values between or beyond"),
    "integer between": (arrow(size=[1.0, 1.5]), "column 'size' has values between or beyond"),
    "missing": (arrow(sex=["f", None]), "column 'sex' has missing values"),
    "nan": (arrow(age=[3.0, float("nan")]), "column 'age' has missing values"),
    "text numbers": (arrow(age=["3", MARK]), "column 'age' holds text that is not a number"),
    "enumeration": (
        lambda f: pd.DataFrame(GOOD | {"age": pd.Categorical([MARK, "x"])}),
        "column 'age' holds text that is not a number",
    ),
    "truth values": (arrow(age=[True, False]), "column 'age' is stored as truth values"),
    "float labels": (arrow(sex=[1.5, 2.5]), "column 'sex' is stored as floating-point"),
    "lists": (arrow(sex=[[MARK], []]), "column 'sex' is stored as lists"),
    "absent": (lambda f: pa.table({"Sex": [MARK], "age": [1], "size": [1]}), "Did you mean 'Sex'"),
    "capitals": (
        lambda f: pa.table({"SEX": [MARK], "AGE": [1], "SIZE": [1]}),
        "Did you mean 'SEX' for 'sex', 'AGE' for 'age', 'SIZE' for 'size'?",
    ),
    "an index": (
        lambda f: pd.DataFrame(GOOD).set_index("age"),
        "'age': it is the index of the frame",
    ),
    "several absent": (lambda f: pa.table({"sex": [MARK]}), "no column 'age', 'size'"),
    "twice": (
        lambda f: pa.table([[MARK], [1], [1], [1]], names=["sex", "age", "size", "sex"]),
        "column 'sex' twice",
    ),
    "empty": (lambda f: pa.table(GOOD).slice(0, 0), "no records"),
    "mixed objects": (
        lambda f: pd.DataFrame(GOOD | {"age": pd.Series([3, MARK], dtype=object)}),
        "column 'age' mixes types",
    ),
    "csv number": (csv(HEADER + f"f,{MARK},1\n"), "column 'age' holds text that is not a number"),
    "csv late number": (
        csv(HEADER + "f,3,1\n" * 30_000 + f"f,{MARK},1\n"),
        "column 'age' holds text that is not a number",
    ),
    "csv level": (csv(HEADER + f"{MARK},3,1\n"), "column 'sex' has values"),
    "csv ragged": (csv(HEADER + f"f,3,1\n{MARK}\n"), "cannot be read to the end"),
    "csv long row": (csv(HEADER + f"f,3,1,{MARK}\n"), "cannot be read to the end"),
    "csv quote": (csv(HEADER + f'"{MARK},3,1\n'), "cannot be read to the end"),
    "csv encoding": (
        raw(HEADER.encode() + MARK.encode() + b"\xff,3,1\n", "p.csv"),
        "cannot be read",
    ),
    "csv no header": (csv(f"{MARK},3,1\n"), "no column 'sex', 'age', 'size'"),
    "csv same names": (csv("sex,age,size,x,X\n"), "the same name twice"),
    "csv empty": (csv(""), "is empty"),
    "csv header only": (csv(HEADER), "no records"),
    "parquet broken": (raw(MARK.encode(), "p.parquet"), "cannot be read as parquet"),
    "parquet cut": (raw(b"PAR1" + MARK.encode() * 9 + b"PAR1", "p.parquet"), "cannot be read"),
    "kind unknown": (raw(MARK.encode(), "p.docx"), "name of a CSV, Parquet or Excel"),
    "no file": (lambda f: f / "none.csv", "no file or folder"),
    "network": (lambda f: "https://example.org/people.csv", "no file or folder"),
    "empty folder": (lambda f: f, "has no files"),
    "mixed folder": (mixed_folder, "has files of different kinds"),
    "nested folder": (nested_folder, "has folders inside"),
    "relation": (failing_relation, "cannot be read to the end"),
    "closed relation": (closed_relation, "cannot be read"),
    "no table": (lambda f: (duckdb.connect(), "nothing"), "no table 'nothing'"),
    "lazy frame": (failing_lazy_frame, "frame cannot be read"),
    "reader": (failing_reader, "frame cannot be read"),
    "no source": (lambda f: {"sex": [MARK]}, "'dict' is not a source"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_without_a_value(case: str, tmp_path: Path) -> None:
    make, match = CASES[case]
    source = make(tmp_path)
    with pytest.raises(DataError, match=match) as caught:
        tabulate(source, SCHEMA)
    error = caught.value
    shown = "".join(traceback.format_exception_only(error)) + repr(error.__dict__)
    assert MARK not in shown
    assert str(NUMBER) not in shown
    assert error.__cause__ is None
    # Stronger than `raise ... from None`: the reader's error is not even reachable.
    assert error.__context__ is None


def test_unit_values_stay_hidden() -> None:
    data = pa.table(GOOD | {"id": [MARK, MARK]})
    with pytest.raises(DataError) as caught:
        tabulate(data, SCHEMA, unit=Unit("id"))
    assert MARK not in str(caught.value)


def test_the_reader_itself_would_leak() -> None:
    """Negative control: the marker is in DuckDB's own message."""
    with pytest.raises(duckdb.Error, match=MARK):
        duckdb.connect().sql(f"SELECT CAST('{MARK}' AS INTEGER)").fetchall()


# ---- files that a plan names: a plan may name the data by mistake -----------------------------

LEVELS = f"county,state\n{MARK},{MARK}-P\n{MARK}-2,{MARK}-Q\n"


@pytest.mark.parametrize(
    ("text", "condition", "words"),
    [
        (LEVELS, f"county = '{MARK[:-1]}'", "2 categories"),
        (LEVELS, "state in ('Q', 'P')", "2 categories"),
        (LEVELS + f"{MARK},x\n{MARK}-2,x\n", "", "have the same level"),
        (LEVELS + f"{MARK}\x07,x\n", "", "row 4 of 'levels.csv'"),
        (LEVELS + f"x,{MARK}\x07\n", "", "row 4 of 'levels.csv'"),
        (LEVELS + f"{MARK}\n", "", "row 4 of 'levels.csv'"),
        (LEVELS + " ,x\n", "", "row 4 of 'levels.csv'"),
    ],
)
def test_levels_of_a_file_are_not_quoted(
    tmp_path: Path, text: str, condition: str, words: str
) -> None:
    """The level that a condition names comes from the plan, the others from a file."""
    (tmp_path / "levels.csv").write_text(text)
    with pytest.raises(CongenialError) as caught:
        parse(condition, Schema.from_dict({"county": {"levels_file": "levels.csv"}}, tmp_path))
    assert words in str(caught.value)
    assert MARK not in str(caught.value).replace(repr(MARK[:-1]), "")
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_levels_of_the_plan_are_quoted() -> None:
    with pytest.raises(CongenialError, match="Did you mean 'female'"):
        parse("sex = 'femal'", Schema.from_dict({"sex": {"levels": ["female", "male"]}}))
