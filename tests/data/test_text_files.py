"""CSV files: no text is a formula, every text reads back, numbers are as they are."""

from __future__ import annotations

import csv
import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from congenial.data.text_files import (
    neutral,
    original,
    read_rows,
    rounded,
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


def test_numbers_have_the_digits_that_their_errors_justify() -> None:
    sd = [0.012345, 2.71828, 31.4159, 2718.28, 0.0, 9.999]
    value = [1.23456789, 1838.4285714, 271.828182, 31415.9265, 7.25, -0.0004]
    table = pa.table({"estimate": value, "sd": sd, "low": [1, 2, 3, 4, 5, 6]})
    found = rounded(table, "estimate").to_pydict()
    assert found["sd"] == [0.0123, 2.72, 31.4, 2718.0, 0.0, 10.0]
    assert found["estimate"] == [1.2346, 1838.43, 271.8, 31416.0, 7.25, 0.0]
    assert "-" not in str(found["estimate"])
    assert found["low"] == [1, 2, 3, 4, 5, 6]
    off = np.abs(np.array(found["estimate"]) - value)
    assert np.all(off <= np.array(sd) / 100)
    text = table_csv(rounded(table, "estimate")).decode()
    assert max(len(cell) for row in text.split("\n")[1:] for cell in row.split(",")) <= 7
    labels = pa.table({"sd": ["an axis"], "estimate": [1.23456]})
    assert rounded(labels, "estimate").equals(labels)
