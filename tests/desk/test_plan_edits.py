"""Edits of a plan's text by a form: comments stay, and what cannot be done is not done."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from congenial.desk import plan_edits
from congenial.desk.derived_columns import derive_column
from congenial.desk.plan_editor import form_of
from congenial.errors import PlanError
from congenial.publication.draft import draft
from congenial.publication.plan import Plan
from tests.desk.desks import PLAN


def test_a_value_is_set_and_comments_stay() -> None:
    text = plan_edits.set_parameter(PLAN, "people", "0.5")
    assert "epsilon = 0.5   # per person" in text
    assert text == PLAN.replace("epsilon = 1.0   #", "epsilon = 0.5   #")
    text = plan_edits.set_value(PLAN, "budget", "epsilon", "7")
    assert text == PLAN.replace("epsilon = 4.0", "epsilon = 7")
    text = plan_edits.set_value(PLAN, "data", "source", 'a "b".csv')
    assert plan_edits.read(text)["data"]["source"] == 'a "b".csv'


def test_figures_and_releases_come_and_go() -> None:
    text = plan_edits.add_figure(PLAN, 'Adults "18+"', "county", "statute", "sex = 'male'")
    added = plan_edits.read(text)["publish"]['Adults "18+"']
    assert added == {"count": "sex = 'male'", "by": ["county"], "because": "statute"}
    assert plan_edits.remove_figure(text, 'Adults "18+"') == PLAN
    without = plan_edits.remove_figure(PLAN, "Population")
    assert "publish" not in plan_edits.read(without)
    again = plan_edits.add_figure(without, "All", "", "")
    assert plan_edits.read(again)["publish"] == {"All": {"total": True}}
    text = plan_edits.add_release(PLAN, "by-sex", "sex", "rho", "0.1")
    assert [one["name"] for one in plan_edits.read(text)["release"]] == ["people", "by-sex"]
    fewer = plan_edits.remove_release(text, "people")
    assert [one["name"] for one in plan_edits.read(fewer)["release"]] == ["by-sex"]
    assert "# Who lives where" in fewer


def test_lists_over_several_lines_are_left_alone() -> None:
    text = PLAN.replace(
        'table = ["county", "sex"]', 'tables = [\n  ["county", "sex"],\n  ["sex"],\n]'
    )
    changed = plan_edits.set_parameter(text, "people", "2")
    assert changed == text.replace("epsilon = 1.0", "epsilon = 2")


COARSER = PLAN.replace('"male"] }', '"male"], within = { all = ["x", "x"] } }')
DRAFT = draft("people.csv", None, {"person": "text", "sex": "text", "the age": "text"})


def test_a_draft_is_filled_in_by_the_form_alone() -> None:
    text = plan_edits.set_value(DRAFT, "data", "unit", "person")
    assert "person" not in plan_edits.read(text)["schema"]
    assert plan_edits.read(text)["release"][0]["table"] == ["sex"]
    text = plan_edits.set_column(text, "sex", "levels", "f, m")
    text = plan_edits.set_column(text, "the age", "edges", "0, 18, 65")
    text = plan_edits.set_column(text, "county", "levels", "A, B")
    text = plan_edits.set_table(text, "first-table", "sex, the age")
    assert "FILL IN levels" not in text
    assert "# unit" not in text
    assert Plan.parse(text, Path()).schema.axis("the age").levels == ("0-17", "18-64", "65+")
    assert Plan.parse(text, Path()).schema.names == ("sex", "the age", "county")
    assert plan_edits.remove_column(text, "county").count("\n") == text.count("\n") - 1


def test_what_else_is_said_of_a_column_stays() -> None:
    text = PLAN.replace('"male"] }', '"male"], label = "Sex" }  # of the register')
    changed = plan_edits.set_column(text, "sex", "levels", "f, m", "unknown")
    line = 'sex = { levels = ["f", "m"], missing = "unknown", label = "Sex" }  # of the register'
    assert line in changed
    assert "missing" not in plan_edits.set_column(changed, "sex", "levels", "f, m")
    other = plan_edits.set_column(text, "sex", "levels", "f, m", "", "other")
    assert 'sex = { levels = ["f", "m"], other = "other", label = "Sex" }' in other
    assert "other" not in plan_edits.set_column(other, "sex", "levels", "f, m")


def test_a_line_is_added_to_its_section() -> None:
    line = 'sex = { tidy = "sex", case = "lower" }'
    text = plan_edits.add_line(PLAN, "derive", line)
    assert plan_edits.read(text)["derive"] == {"sex": {"tidy": "sex", "case": "lower"}}
    assert text.index("[derive]") < text.index("[schema]")
    text = plan_edits.add_line(text, "data", 'encoding = "cp1252"')
    assert plan_edits.read(text)["data"]["encoding"] == "cp1252"


@pytest.mark.parametrize(
    "edit",
    [
        lambda: plan_edits.set_parameter(PLAN, "people", "1; x"),
        lambda: plan_edits.set_parameter(PLAN, "nobody", "1"),
        lambda: plan_edits.set_value(PLAN, "budget", "epsilon", "1]\n[x"),
        lambda: plan_edits.set_value("x = [", "budget", "epsilon", "1"),
        lambda: plan_edits.set_value(PLAN, "nothing", "source", "x"),
        lambda: plan_edits.add_figure(PLAN, "Population", "", ""),
        lambda: plan_edits.add_figure(PLAN, " ", "", ""),
        lambda: plan_edits.remove_figure(PLAN, "Nothing"),
        lambda: plan_edits.remove_release("[budget]\n", "people"),
        lambda: plan_edits.add_release(PLAN, "x", "", "rho", "1"),
        lambda: plan_edits.add_release(PLAN, "x", "sex", "sigma", "1"),
        lambda: plan_edits.set_column(COARSER, "sex", "levels", "f, m"),  # what of `all` then?
        lambda: plan_edits.set_column(PLAN, "sex", "levels", " , "),
        lambda: plan_edits.set_column(PLAN, "sex", "edges", "a, b"),
        lambda: plan_edits.set_column("schema = 1\n", "sex", "levels", "a"),
        lambda: plan_edits.remove_column(PLAN, "age"),
        lambda: plan_edits.set_table(PLAN, "people", ""),
        lambda: plan_edits.add_line(PLAN, "data", 'unit = "x"'),
        lambda: plan_edits.add_line(PLAN, "derive", "no line"),
        # written in a way the edits do not know
        lambda: plan_edits.set_value("budget.epsilon = 1\n", "budget", "epsilon", "2"),
        lambda: plan_edits.remove_figure('[publish."All"]\ntotal = true\n', "All"),
    ],
)
def test_what_cannot_be_done_is_refused(edit) -> None:
    with pytest.raises(PlanError):
        edit()


def test_a_number_that_cannot_be_read_is_no_toml() -> None:
    assert plan_edits.read(f"x = 1e-{'9' * 30}") == {}


def test_columns_are_made_from_others_by_the_form(tmp_path: Path) -> None:
    names = ("person", "tract", "block", "born")
    text = draft("people.csv", None, dict.fromkeys(names, "text"))
    text = plan_edits.set_value(text, "data", "unit", "person")
    text = derive_column(text, "area", "join", "tract, block", "", "2020-12-31", "-")
    text = derive_column(text, "age", "age", "born", "2020-04-01", "31.12.2020", "")
    (tmp_path / "areas.csv").write_text("area\n1-1\n1-2\n")
    text = plan_edits.set_column(text, "area", "levels_file", "areas.csv")
    area = next(one for one in form_of(text)["columns"] if one["name"] == "area")
    assert (area["kind"], area["listed"], area["open"]) == ("levels_file", "areas.csv", False)
    text = plan_edits.set_column(text, "age", "edges", "0, 18, 65")
    plan = Plan.parse(text, tmp_path)
    assert plan.schema.names == ("area", "age")
    assert plan.release[0].table == ["area"]  # the drafted one showed the tract
    read = plan_edits.read(text)["derive"]
    assert read["area"] == {"join": ["tract", "block"], "between": "-"}
    assert read["age"] == {"age": "born", "at": date(2020, 4, 1), "format": "%d.%m.%Y"}
    assert form_of(text)["derived"] == ["area: join of tract + block", "age: age of born"]


@pytest.mark.parametrize(
    ("column", "way", "sources", "at"),
    [
        ("", "year", "born", ""),
        ("y", "year", "", ""),
        ("y", "year", "a, b", ""),
        ("y", "sum", "a", ""),
        ("y", "age", "a", "4/1/20"),
    ],
)
def test_what_no_column_is_made_from_is_refused(
    column: str, way: str, sources: str, at: str
) -> None:
    with pytest.raises(PlanError, match=r"made from|is not a day"):
        derive_column(PLAN, column, way, sources, at, "2020-12-31", "")
