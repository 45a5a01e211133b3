"""Edits of a plan's text by a form: comments stay, and what cannot be done is not done."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from congenial.desk import plan_edits
from congenial.desk.plan_editor import _column, _words
from congenial.errors import PlanError
from congenial.publication.draft import draft
from congenial.publication.plan import Plan
from tests.desk.desks import PLAN


def test_a_value_is_set_and_comments_stay() -> None:
    text = plan_edits.set_key(PLAN, "release", "people", "epsilon", "0.5")
    assert "epsilon = 0.5   # per person" in text
    assert text == PLAN.replace("epsilon = 1.0   #", "epsilon = 0.5   #")
    text = plan_edits.set_key(PLAN, "budget", "", "epsilon", "7")
    assert text == PLAN.replace("epsilon = 4.0", "epsilon = 7")
    text = plan_edits.set_key(PLAN, "data", "", "source", 'a "b".csv')
    assert plan_edits.read(text)["data"]["source"] == 'a "b".csv'


def test_figures_and_releases_come_and_go() -> None:
    text = plan_edits.add_figure(PLAN, 'Adults "18+"', "county", "statute", "sex = 'male'")
    added = plan_edits.read(text)["publish"]['Adults "18+"']
    assert added == {"count": "sex = 'male'", "by": ["county"], "because": "statute"}
    assert plan_edits.remove(text, "publish", 'Adults "18+"') == PLAN
    without = plan_edits.remove(PLAN, "publish", "Population")
    assert plan_edits.read(without)["publish"] == {}
    again = plan_edits.add_figure(without, "All", "", "")
    assert plan_edits.read(again)["publish"] == {"All": {"total": True}}
    text = plan_edits.add_release(PLAN, "by-sex", "sex", "rho", "0.1")
    assert [one["name"] for one in plan_edits.read(text)["release"]] == ["people", "by-sex"]
    fewer = plan_edits.remove(text, "release", "people")
    assert [one["name"] for one in plan_edits.read(fewer)["release"]] == ["by-sex"]
    assert "# Who lives where" in fewer


def test_lists_over_several_lines_are_left_alone() -> None:
    text = PLAN.replace(
        'table = ["county", "sex"]', 'tables = [\n  ["county", "sex"],\n  ["sex"],\n]'
    )
    changed = plan_edits.set_key(text, "release", "people", "epsilon", "2")
    assert changed == text.replace("epsilon = 1.0", "epsilon = 2")


COARSER = PLAN.replace('"male"] }', '"male"], within = { all = ["x", "x"] } }')
DRAFT = draft("people.csv", None, {"person": "text", "sex": "text", "the age": "text"})


def test_a_draft_is_filled_in_by_the_form_alone() -> None:
    text = plan_edits.set_key(DRAFT, "data", "", "unit", "person")
    assert "person" not in plan_edits.read(text)["schema"]
    assert plan_edits.read(text)["release"][0]["table"] == ["sex"]
    text = plan_edits.set_column(text, "sex", "levels", "f, m")
    text = plan_edits.set_column(text, "the age", "edges", "0, 18, 65")
    text = plan_edits.set_column(text, "county", "levels", "A, B")
    text = plan_edits.set_key(text, "release", "first-table", "table", "sex, the age")
    assert "FILL IN levels" not in text
    assert "# unit" not in text
    assert Plan.parse(text, Path()).schema.axis("the age").levels == ("0-17", "18-64", "65+")
    assert Plan.parse(text, Path()).schema.names == ("sex", "the age", "county")
    wrong = DRAFT.replace('table = ["person", "sex"]', 'table = "person"')
    assert 'table = "person"' in plan_edits.set_key(wrong, "data", "", "unit", "person")
    assert plan_edits.remove(text, "schema", "county").count("\n") == text.count("\n") - 1


def test_what_else_is_said_of_a_column_stays() -> None:
    text = PLAN.replace('"male"] }', '"male"], label = "Sex" }  # of the register')
    changed = plan_edits.set_column(text, "sex", "levels", "f, m", "unknown")
    line = 'sex = { levels = ["f", "m"], missing = "unknown", label = "Sex" }  # of the register'
    assert line in changed
    assert "missing" not in plan_edits.set_column(changed, "sex", "levels", "f, m")
    other = plan_edits.set_column(text, "sex", "levels", "f, m", "", "other")
    assert 'sex = { levels = ["f", "m"], other = "other", label = "Sex" }' in other
    assert "other" not in plan_edits.set_column(other, "sex", "levels", "f, m")


def test_sums_are_counted_beside_or_bounded_by_class_and_taken_back() -> None:
    text = plan_edits.set_sum(PLAN, "people", "cost", "0", "100", "")
    beside = plan_edits.set_key(text, "release", "people", "counts", "true")
    assert plan_edits.read(beside)["release"][0]["counts"] is True
    by_class = text.replace("between = [0, 100]", "between_by = { sex = { f = [0, 1] } }")
    one_bound = plan_edits.set_sum(by_class, "people", "cost", "0", "9", "")
    assert plan_edits.read(one_bound)["release"][0]["between"] == [0, 9]
    assert "between_by" not in one_bound
    people = plan_edits.set_sum(beside, "people", "", "", "", "")
    assert not {"sum", "counts", "between"} & plan_edits.read(people)["release"][0].keys()


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
        lambda: plan_edits.set_key(PLAN, "release", "people", "epsilon", "1; x"),
        lambda: plan_edits.set_key(PLAN, "release", "nobody", "epsilon", "1"),
        lambda: plan_edits.set_key(PLAN, "budget", "", "epsilon", "1]\n[x"),
        lambda: plan_edits.set_key("x = [", "budget", "", "epsilon", "1"),
        lambda: plan_edits.set_key(PLAN, "nothing", "", "source", "x"),
        lambda: plan_edits.add_figure(PLAN, "Population", "", ""),
        lambda: plan_edits.add_figure(PLAN, " ", "", ""),
        lambda: plan_edits.remove(PLAN, "publish", "Nothing"),
        lambda: plan_edits.remove("[budget]\n", "release", "people"),
        lambda: plan_edits.add_release(PLAN, "x", "", "rho", "1"),
        lambda: plan_edits.add_release(PLAN, "x", "sex", "sigma", "1"),
        lambda: plan_edits.set_column(COARSER, "sex", "levels", "f, m"),  # what of `all` then?
        lambda: plan_edits.set_column(PLAN, "sex", "levels", " , "),
        lambda: plan_edits.set_column(PLAN, "sex", "edges", "a, b"),
        lambda: plan_edits.set_column("schema = 1\n", "sex", "levels", "a"),
        lambda: plan_edits.remove(PLAN, "schema", "age"),
        lambda: plan_edits.toggle_axis(PLAN, "people", "7", "sex"),
        lambda: plan_edits.remove_table(PLAN, "people", "0"),
        lambda: plan_edits.set_sum(PLAN, "people", "cost", "", "100", ""),
        lambda: plan_edits.set_sum(PLAN, "people", "cost", "0", "1e3", ""),
        lambda: plan_edits.set_promise(PLAN, "release", "people", "sigma", "1"),
        lambda: plan_edits.recode('[derive]\nsex = { year = "born" }\n', "sex", "F", "female"),
        lambda: plan_edits.add_line(PLAN, "data", 'unit = "x"'),
        lambda: plan_edits.add_line(PLAN, "derive", "no line"),
        # it may hold comments that are about what follows
        lambda: plan_edits.remove('[publish."All"]\ntotal = true\n', "publish", "All"),
        lambda: plan_edits.set_key(PLAN, "data", "", "max_rows", "2.5"),
        lambda: plan_edits.set_key(PLAN, "data", "", "skip_blank_rows", "yes"),
        lambda: plan_edits.add_release("release = []\n", "x", "sex", "rho", "1"),
        lambda: plan_edits.remove('[[release]]\nname = "x"\n# of what\n', "release", "x"),
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
    text = plan_edits.set_key(text, "data", "", "unit", "person")
    text = plan_edits.derive_column(text, "area", "join", "tract, block", "", "2020-12-31", "-")
    text = plan_edits.derive_column(text, "age", "age", "born", "2020-04-01", "31.12.2020", "")
    (tmp_path / "areas.csv").write_text("area\n1-1\n1-2\n")
    text = plan_edits.set_column(text, "area", "levels_file", "areas.csv")
    area = _column("area", plan_edits.read(text)["schema"]["area"])
    assert (area["kind"], area["listed"], area["open"]) == ("levels_file", "areas.csv", False)
    text = plan_edits.set_column(text, "age", "edges", "0, 18, 65")
    plan = Plan.parse(text, tmp_path)
    assert plan.schema.names == ("area", "age")
    assert plan.release[0].table == ["area"]  # the drafted one showed the tract
    read = plan_edits.read(text)["derive"]
    assert read["area"] == {"join": ["tract", "block"], "between": "-"}
    assert read["age"] == {"age": "born", "at": date(2020, 4, 1), "format": "%d.%m.%Y"}
    assert {name: _words(entry) for name, entry in read.items()} == {
        "area": "join tract + block, between -",
        "age": "age born, at 2020-04-01, format %d.%m.%Y",
    }


@pytest.mark.parametrize(
    ("column", "way", "sources", "at", "words"),
    [
        ("", "year", "born", "", "empty, or .derive. has it already"),
        ("y", "year", "", "", "from one column"),
        ("y", "year", "a, b", "", "from one column"),
        ("y", "join", "a", "", "join needs two or more columns"),
        ("y", "sum", "a", "", "cannot be computed by 'sum'"),
        ("y", "format", "a", "", "cannot be computed by 'format'"),
        ("y", "age", "a", "", "age needs the day"),
        ("y", "age", "a", "4/1/20", "is not a day"),
    ],
)
def test_what_no_column_is_computed_from_is_refused(
    column: str, way: str, sources: str, at: str, words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        plan_edits.derive_column(PLAN, column, way, sources, at, "2020-12-31", "")


def test_what_the_plan_model_refuses_is_not_added() -> None:
    """In the model's own words: the form has no rules of its own."""
    with pytest.raises(PlanError, match=r"release 'a b': name .* must begin with a letter"):
        plan_edits.add_release(PLAN, "a b", "sex", "rho", "0.1")
    with pytest.raises(PlanError, match="release 'x': epsilon"):
        plan_edits.add_release(PLAN, "x", "sex", "epsilon", "0")
    with pytest.raises(PlanError, match=r"\[release\] has no key 'sigma'"):
        plan_edits.add_release(PLAN, "x", "sex", "sigma", "1")


COMMENTED = """# Who lives where

# of the register
[data]
source = "people.csv"  # of 2020

# columns
[schema]
sex = { levels = ["female", "male"] }  # as registered
# more to come

# What is released
[[release]]
name = "first"
table = ["sex"]
epsilon = 1

# by county, some day

# the second one
[[release]]
name = "second"
table = ["sex"]
epsilon = 1
# after the second one

# Money
[budget]
epsilon = 4.0  # in all
"""


def _comments(text: str) -> list[str]:
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: plan_edits.set_key(text, "data", "", "unit", "person"),
        lambda text: plan_edits.set_key(text, "data", "", "source", "a.csv"),
        lambda text: plan_edits.set_key(text, "budget", "", "epsilon", "3"),
        lambda text: plan_edits.set_key(text, "release", "second", "delta", "0.001"),
        lambda text: plan_edits.set_column(text, "sex", "levels", "f, m"),
        lambda text: plan_edits.set_column(text, "county", "levels", "A, B"),
        lambda text: plan_edits.add_figure(text, "All", "", ""),
        lambda text: plan_edits.add_release(text, "third", "sex", "rho", "1"),
        lambda text: plan_edits.derive_column(text, "y", "year", "born", "", "20201231", ""),
        lambda text: plan_edits.remove(text, "release", "first"),
        lambda text: plan_edits.remove(text, "release", "second"),
        lambda text: plan_edits.add_line(text, "about", 'title = "People"'),
        lambda text: plan_edits.toggle_axis(text, "second", "0", "county"),
        lambda text: plan_edits.add_table(text, "first"),
        lambda text: plan_edits.set_promise(text, "release", "first", "rho", "0.1"),
    ],
)
def test_every_comment_survives_an_edit(edit) -> None:
    """Those of their own lines too, in their order; and the layout of what is not changed."""
    changed = edit(COMMENTED)
    assert changed != COMMENTED
    assert _comments(changed) == _comments(COMMENTED)
    kept = changed.splitlines()
    assert all(f"{line}\n[" in changed for line in ("# of the register", "# columns", "# Money"))
    assert all(kept.count(line) >= 1 for line in COMMENTED.splitlines() if line.startswith("["))
    Plan.parse(changed.replace('["..."]', '["1", "2"]'), Path())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("budget.epsilon = 1\n", "budget.epsilon = 2\n"),
        ("budget = { epsilon = 1 } # all\n", "budget = { epsilon = 2 } # all\n"),
        ("[budget]\nepsilon=1", "[budget]\nepsilon=2"),
        ("x = 1\n", "x = 1\n\n[budget]\nepsilon = 2\n"),
    ],
)
def test_any_way_to_write_a_section_is_edited(text: str, wanted: str) -> None:
    assert plan_edits.set_key(text, "budget", "", "epsilon", "2") == wanted


def test_entries_that_are_sections_of_their_own() -> None:
    text = PLAN.replace(
        'sex = { levels = ["female", "male"] }', '[schema.sex] # both\nlevels = ["f", "m"]'
    )
    changed = plan_edits.set_column(text, "sex", "edges", "0, 18")
    assert plan_edits.read(changed)["schema"]["sex"] == {"edges": [0, 18], "top": "18+"}
    assert "[schema.sex] # both" in changed
    added = plan_edits.set_column(text, "age", "levels", "a, b")
    assert plan_edits.read(added)["schema"]["age"] == {"levels": ["a", "b"]}


PIECES = ("[data]", "[schema]", "[[release]]", "[budget]", "[schema.sex]", "[[release.x]]", "# c")
LINES = ('name = "people"', "x = 1", "table = ['sex']", "sex.levels = ['a']", "", "a = { b = 1 }")
EDITS = (  # which sections they change, and how
    ("data schema release", lambda text: plan_edits.set_key(text, "data", "", "unit", "sex")),
    ("release", lambda text: plan_edits.set_key(text, "release", "people", "epsilon", "2")),
    ("release", lambda text: plan_edits.remove(text, "release", "people")),
    ("schema", lambda text: plan_edits.remove(text, "schema", "sex")),
    ("publish", lambda text: plan_edits.add_figure(text, "All", "", "")),
    ("release", lambda text: plan_edits.add_release(text, "x", "sex", "rho", "1")),
    ("schema", lambda text: plan_edits.set_column(text, "sex", "levels", "a, b")),
    (
        "derive schema release",
        lambda text: plan_edits.derive_column(text, "y", "join", "sex, x", "", "", ""),
    ),
    ("derive", lambda text: plan_edits.add_line(text, "derive", "z = { year = 'b' }")),
    ("derive", lambda text: plan_edits.recode(text, "sex", 'a "b"', "c")),
    ("release", lambda text: plan_edits.toggle_axis(text, "people", "0", "age")),
    ("release", lambda text: plan_edits.add_table(text, "people")),
    ("release", lambda text: plan_edits.set_sum(text, "people", "cost", "0", "9.5", "0.5")),
    ("budget", lambda text: plan_edits.set_promise(text, "budget", "", "rho", "1")),
)


@given(text=st.lists(st.sampled_from(PIECES + LINES), max_size=12).map("\n".join))
def test_an_edit_is_done_or_refused_whatever_the_plan_is(text: str) -> None:
    for sections, edit in EDITS:
        try:
            changed = edit(text)
        except PlanError:
            continue
        before, after = plan_edits.read(text), plan_edits.read(changed)
        others = (before.keys() | after.keys()) - set(sections.split())
        assert {name: before[name] for name in others} == {name: after[name] for name in others}
        if len(after.get("release", [])) >= len(before.get("release", [])):
            comments = [one for one in _comments(changed) if plan_edits.BY_LOOKING not in one]
            assert comments == _comments(text)  # a release goes with those inside it
