"""Picture and figures of "Why the sums are right" are those that the benchmark gives."""

from __future__ import annotations

from benchmarks import sums

from tests.docs.pages import DOCS

PAGE = DOCS / "explanation" / "why-the-sums-are-right.md"


def test_the_sums_picture_is_the_one_drawn() -> None:
    assert (DOCS / "images" / "sums.svg").read_text(encoding="utf-8") == sums.picture()


def test_the_sums_table_is_the_one_measured() -> None:
    printed = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and "language |" in line
    ]
    rows = sums.run()
    assert [row[0] for row in printed] == [row["table"] for row in rows]
    for cells, row in zip(printed, rows, strict=True):
        measured = list(row.values())[1:]
        for told, value in zip(map(float, cells[1:]), measured, strict=True):
            assert abs(told - value) <= 0.05 * abs(value) + 0.0005


def test_fitting_together_beats_one_by_one_on_every_table() -> None:
    for row in sums.run():
        assert row["together: error"] < row["one by one: error"]
        assert abs(row["together: rarest"]) < 0.01 * row["one by one: rarest"]
