"""The page of a paper: printed numbers beside ours, differences with their reasons."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from congenial.papers import catalogue
from congenial.papers import printed_pages as page
from congenial.papers.distribution_privacy import distribution_tables
from congenial.papers.item import Study
from congenial.papers.pseudo_posterior import expenditure

RUNNER = CliRunner()
DATA = {
    (paper, name)
    for paper in catalogue.PAPERS
    for name, item in catalogue.items(paper).items()
    if item.files
}
WITHOUT = [
    (paper, name)
    for paper, told in page.table().items()
    for name in told
    if (paper, name) not in DATA
]


def test_everything_in_the_table_is_an_item():
    for paper, told in page.table().items():
        assert set(told) <= set(catalogue.items(paper)), paper
    assert set(page.TITLES) == set(catalogue.PAPERS)


def test_every_table_and_figure_has_a_caption():
    for paper in catalogue.PAPERS:
        for name in catalogue.items(paper):
            if name.startswith(("figure-", "table-")):
                assert page.table()[paper][name]["caption"], f"{paper} {name}"


@pytest.mark.parametrize(("paper", "name"), WITHOUT)
def test_printed_numbers_are_found_and_differences_have_a_reason(paper, name):
    result = catalogue.run(paper, name, Study(quick=True))
    for one in page.beside(result):
        assert one.ours is not None, one.what
        assert one.agrees or one.why, one.what
        assert one.at


def test_an_erratum_is_a_difference_and_a_number_that_agrees_has_none():
    result = catalogue.run("semi-dp", "example-7", Study(quick=True))
    told = {one.what: one for one in page.beside(result)}
    assert told["Delta_1 of a 2 x 2 table"].reason == "agrees"
    wrong = told["Delta_1 of a 3 x 3 table"]
    assert (wrong.printed, wrong.ours) == ("4", 6)
    assert wrong.reason.startswith("erratum")


@pytest.mark.parametrize(
    ("printed", "ours", "agrees"),
    [
        ("17.91528", 17.9152839, True),
        ("17.91528", 17.91529, False),
        ("10.24", 10.24, True),
        ("0.500", 0.5096, False),  # 0.5 in a float: the digits that decide are those printed
        ("0.500", 0.50049, True),
        ("0.5", 0.5096, True),
        ("10.10", 10.104, True),
        ("10.10", 10.12, False),
        ("4", 4.3, False),  # a count is exact
        ("1/4", 0.25, True),
        ("1/4", 0.2512, False),
    ],
)
def test_agreement_is_decided_on_the_digits_as_printed(printed, ours, agrees):
    assert page.Beside("w", "here", printed, ours, "why").agrees is agrees


def test_a_number_that_was_not_computed_says_so():
    assert page.Beside("w", "here", "2", None, "why").reason == "not computed in this run"


def printed_numbers():
    """Every printed number: of `printed.toml`, and of results that have a column of them."""
    told = [one for items in page.table().values() for one in items.values()]
    yield from (number["printed"] for one in told for number in one.get("numbers", ()))
    yield from expenditure.PRINTED.values()
    yield from (x for row in distribution_tables.PRINTED_ERRORS.values() for x in row)
    yield from (x for row in distribution_tables.PRINTED_ATTACK.values() for x in row)


def test_printed_numbers_keep_their_digits():
    """A float would lose trailing zeros; 0.500 says more than 0.5."""
    found = list(printed_numbers())
    assert all(isinstance(one, str) for one in found)
    assert {"0.500", "10.10", "13.40", "7.30"} <= set(found)


def test_printed_numbers_in_a_column_of_the_result():
    result = {
        "paper": "distribution-privacy",
        "item": "table-2",
        "columns": ["mechanism", "epsilon", "printed", "drawn", "expected l2 error"],
        "rows": [["ExpM (G)", 1.0, "34.98", 1.0, 35.5], ["optimum", 1.0, None, 1.0, 9.0]],
    }
    (one,) = page.beside(result)
    assert (one.what, one.printed, one.ours) == ("mechanism ExpM (G), epsilon 1.0", "34.98", 35.5)
    assert "Monte Carlo" in one.reason


def test_a_reduced_run_is_a_reason_too():
    result = catalogue.run("congenial-dp", "figure-2", Study(quick=True))
    (one,) = page.beside(result)
    assert one.reason.endswith("and this run is reduced")
    whole = result | {"notes": []}
    assert "reduced" not in page.beside(whole)[0].reason


@pytest.mark.parametrize(
    ("item", "printed"), [("figure-3", ["0.12", "0.28"]), ("figure-5", ["18.31", "18.03"])]
)
def test_numbers_in_the_text_about_a_figure_are_compared_too(shared, item, printed):
    study = Study(data=shared / "data", quick=True, seed=1)
    compared = page.beside(catalogue.run("distribution-privacy", item, study))
    assert [one.printed for one in compared] == printed
    for one in compared:
        assert one.ours == pytest.approx(float(one.printed), rel=0.35)  # 200 subsets, 4 gaps
        assert one.agrees or one.why


def test_a_gap_is_below_until_the_first_that_is_not():
    rows = [["p", "m", gap, error] for gap, error in ((0.1, 3), (0.2, 9), (0.3, 8), (0.4, 12))]
    rows += [["p", "never", 0.1, 11]]
    assert distribution_tables._below(rows, 8.5) == {("p", "m"): 0.1}
    assert distribution_tables._below(rows, 10) == {("p", "m"): 0.3}


def test_a_section_has_caption_picture_numbers_table_and_notes():
    result = catalogue.run("distribution-privacy", "figure-1", Study(quick=True))
    text = page.section(result, "one.svg")
    assert text.startswith("## figure-1: W_inf against (W, delta)-closeness\n")
    assert "![W_inf against (W, delta)-closeness](one.svg)" in text
    assert "| W_inf | Figure 1 | 97 | 97 | 0 | agrees |" in text
    assert "| 0.1 | 1 |" in text
    assert "- mu = (0.6" in text
    assert "Reduced" not in text


def test_bars_in_cells_do_not_end_them():
    result = catalogue.run("semi-dp", "example-7", Study(quick=True))
    assert "| \\|S\\| |" in page.section(result)


@pytest.mark.usefixtures("with_charts")
def test_the_command_writes_a_page_and_its_pictures(tmp_path, monkeypatch):
    kept = {n: catalogue.items("semi-dp")[n] for n in ("figure-1", "section-6", "figure-2")}
    kept["census-allocation"] = catalogue.items("semi-dp")["census-allocation"]
    monkeypatch.setattr(catalogue, "items", lambda _: kept)
    shown = RUNNER.invoke(app, ["reproduce", "semi-dp", "--page", "--out", str(tmp_path)])
    assert shown.exit_code == 0, shown.output
    assert "left out: census-allocation" in shown.output  # no data were given
    text = (tmp_path / "semi-dp.md").read_text()
    assert "40.95057 | 40.95057 |" in text
    assert "Reduced: k = 2 to 4" in text  # a page is quick unless asked otherwise
    assert (tmp_path / "semi-dp" / "figure-1.svg").is_file()
    assert "](semi-dp/figure-1.svg)" in text


def test_a_page_of_one_item_is_refused():
    shown = RUNNER.invoke(app, ["reproduce", "semi-dp", "figure-1", "--page"])
    assert shown.exit_code == 2
    assert "whole paper" in shown.output + shown.stderr
