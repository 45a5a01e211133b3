"""CSV files: no text is a formula, every text reads back, numbers are as they are."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from congenial.data.csv_text import (
    neutral,
    original,
    read_rows,
    rows_csv,
    table_csv,
)

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "-5 to -1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    " =1+1",
    "-",
    "\uff1d1+1",
    "\uff20SUM(A1)",
    "-1/3",
]
HARMLESS = ["", "a", "a=b", "O'Brien", "'quoted'", "5-9", "65+", "1=1", "é", "#1"]
NUMBERS = ["-5", "-2.5", "+3", "-1e-5", "-.5"]
TEXTS = st.text(alphabet="'=+-@\t\r\n 15.ea\uff1d", max_size=6)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert neutral(text) == "'" + text
    assert original(neutral(text)) == text


@pytest.mark.parametrize("text", [*HARMLESS, *NUMBERS])
def test_other_texts_and_negative_numbers_stay(text: str) -> None:
    assert neutral(text) == text == original(text)


@given(TEXTS)
def test_every_text_reads_back(text: str) -> None:
    assert original(neutral(text)) == text


@given(TEXTS, TEXTS)
def test_two_texts_never_become_one(one: str, other: str) -> None:
    assert (neutral(one) == neutral(other)) == (one == other)


def test_rows_and_names_read_back_and_numbers_are_not_texts() -> None:
    text = rows_csv([["=name", "count"], ["@x", -3], ["'=y", 2.5]])
    assert text == "'=name,count\n'@x,-3\n''=y,2.5\n"
    assert read_rows(io.StringIO(text)) == [
        {"=name": "@x", "count": "-3"},
        {"=name": "'=y", "count": "2.5"},
    ]


def test_an_arrow_table_has_neutral_texts_in_all_its_chunks() -> None:
    labels = pa.chunked_array([["=a", None, "b"], ["-1", "=a"]])
    table = pa.table({"=label": labels, "count": [-1, 2, 3, 4, 5]})
    rows = list(csv.reader(io.StringIO(table_csv(table).decode())))
    assert rows[0] == ["'=label", "count"]
    assert [row[0] for row in rows[1:]] == ["'=a", "", "b", "-1", "'=a"]
    assert [row[1] for row in rows[1:]] == ["-1", "2", "3", "4", "5"]
