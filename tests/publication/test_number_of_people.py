"""The number of people is an exact figure of a replace-one plan, without anybody stating it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from congenial import AddRemove, Figures, Guarantee, Ledger, Plan, calibrate, read
from congenial.errors import BudgetError, FigureError, LedgerError
from congenial.kinds.registry import of_section
from congenial.publication import workflow
from congenial.publication.number_of_people import PEOPLE
from tests.commands import refused, run, write_plan

PLAN = """\
[data]
source = "people.csv"
unit = "id"

[schema]
x = { levels = ["a", "b"] }
g = { levels = ["p", "q", "r"], within = { side = ["left", "left", "right"] } }

[budget]
epsilon = 20
delta = 1e-9

FIGURES
[[release]]
name = "one"
table = ["x"]
epsilon = 1
"""
SEVERAL = 'tables = [["g", "x"], ["g"]]\nrho = 0.1\n'
TABLE = 'table = ["x"]\nepsilon = 1\n'
N = 25


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{i},{'ab'[i % 2]},{'pqr'[i % 3]}" for i in range(N)]
    (tmp_path / "people.csv").write_text("id,x,g\n" + "\n".join(rows) + "\n")
    return tmp_path


def plan(folder: Path, figures: str = "", *changes: tuple[str, str]) -> Path:
    return write_plan(folder, PLAN, ("FIGURES\n", figures), *changes)


def labels(path: Path) -> list[str]:
    return [one["label"] for one in run("check", path, "--json")["figures"]]


def test_two_commands_and_a_table_that_adds_up(folder: Path) -> None:
    path = plan(folder)
    told = run("check", path, "--json")
    assert [one["label"] for one in told["figures"]] == ["Number of people"]
    assert told["adjacency"]["records"] == 1
    cell = next(row for row in told["releases"][0]["errors"] if row["what"] == "x")
    assert cell["standard_deviation"] == pytest.approx(1.36, abs=0.005)
    assert told["releases"][0]["per_person"] == "epsilon = 1"
    said = " ".join(run("check", path, "--full").split())
    assert "Nothing except the number of people, which tables add up to" in said
    assert "Next: congenial release" in said
    said = " ".join(run("release", path).split())
    assert "The promise makes the number of people public" in said
    bundle = folder / "bundles" / "one"
    assert read(bundle).drawn[0].sum() == N
    run("verify", bundle)
    assert (
        f"Number of people,,{N},public under such a promise"
        in (bundle / "published.csv").read_text()
    )
    assert "Number of people" in run("ledger", "show", folder / "ledger.sqlite")
    ledger = Ledger.open(folder / "ledger.sqlite")
    assert ledger.figures.told == (PEOPLE,)
    assert ledger.spent().epsilon == 1
    said = " ".join(run("check", path, "--full").split())
    assert "The first release records" not in said


@pytest.mark.parametrize("changes", [((TABLE, SEVERAL),), (("epsilon = 1\n", "rho = 0.1\n"),)])
def test_other_tables_add_up_too(folder: Path, changes: tuple[tuple[str, str], ...]) -> None:
    path = plan(folder, "", *changes)
    run("release", path)
    run("verify", folder / "bundles" / "one")
    for file in (folder / "bundles" / "one").glob("table*.csv"):
        with file.open(newline="") as lines:
            assert sum(int(row["count"]) for row in csv.DictReader(lines)) == N


@pytest.mark.parametrize("promise", ["rho = 0.1", "epsilon = 1"])
def test_the_coarsest_of_several_tables_gains_most(folder: Path, promise: str) -> None:
    """At the same promise, against the same tables with nothing stated."""
    several = f'tables = [["g", "x"], ["x"]]\n{promise}\naim = "even"\n'
    loaded = Plan.load(plan(folder, "", (TABLE, several)))
    section = loaded.release[0]
    kind = of_section(section)
    without, given = (
        kind.examine(kind.check(loaded, section, figures))
        for figures in (Figures(loaded.schema), loaded.figures)
    )
    assert given["per_person"] == without["per_person"]
    fine, coarse = (
        before["standard_deviation"] / after["standard_deviation"]
        for before, after in zip(without["tables"], given["tables"], strict=True)
    )
    assert fine >= 1
    assert 1.3 < coarse < 1.7


def test_it_can_be_published_like_any_figure(folder: Path) -> None:
    path = plan(folder)
    told = run("publish", path, "--json")
    assert told["new"] == ["Number of people"]
    assert told["figures"][0]["cells"] == [{"for": [], "value": N}]
    assert "is public by this promise" not in run("release", path)


def test_a_second_release_says_nothing_new(folder: Path) -> None:
    both = PLAN.split("FIGURES\n")[1].replace('"one"', '"two"')
    path = plan(folder)
    path.write_text(path.read_text() + both)
    first, second = run("release", path, "--json")["releases"]
    assert (first["states_people"], second["states_people"]) == (True, False)


def test_a_later_plan_over_the_same_ledger_sees_it(folder: Path) -> None:
    run("release", plan(folder))
    other = plan(folder, "", ('"one"', '"two"'), ('["x"]', '["g"]'))
    assert labels(other) == ["Number of people"]
    assert run("check", other, "--json")["published"]
    run("release", other)
    assert read(folder / "bundles" / "two").drawn[0].sum() == N


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ('[publish."Everybody"]\ntotal = true\n\n', ["Everybody"]),
        ('[publish."By g"]\ntotal = true\nby = ["g"]\n\n', ["By g"]),
        ('[publish."A"]\ncount = "x = \'a\'"\n\n', ["A", "Number of people"]),
    ],
)
def test_it_is_stated_only_where_the_figures_do_not_tell_it(
    folder: Path, figures: str, expected: list[str]
) -> None:
    finer = ('["x"]', '["g", "x"]')
    path = plan(folder, figures, finer)
    assert labels(path) == expected
    if len(expected) == 2:  # figures of the plan are published first, with the number of people
        assert "not published yet: A." in refused(path, "release", FigureError.exit_code)
    run("publish", path)
    assert labels(path) == expected
    run("release", path)
    run("verify", folder / "bundles" / "one")
    later = plan(folder, "", finer, ('"one"', '"two"'))
    assert labels(later) == expected  # and no second time for a plan that does not name them


@pytest.mark.parametrize(
    "changes",
    [
        (("epsilon = 1\n", 'epsilon = 1\nmechanism = "plain_geometric"\n'),),
        (("epsilon = 1\n", 'epsilon = 1\nnonnegative = "condition"\n'),),  # signs would cost more
        ((TABLE, 'tables = [["g", "x"], ["side", "x"]]\nrho = 0.1\nparts = "side"\n'),),
        ((TABLE, 'synthesise = ["g", "x"]\nrho = 0.1\nrecords = 99\n'),),
        (('unit = "id"\n', 'unit = "id"\nmax_rows = 2\n'),),
    ],
    ids=["a mechanism that keeps no figures", "signs", "parts", "other records", "several rows"],
)
def test_it_is_left_out_where_a_release_cannot_use_it(
    folder: Path, changes: tuple[tuple[str, str], ...]
) -> None:
    assert labels(plan(folder, "", *changes)) == []


def test_signs_given_a_stated_total_are_still_possible(folder: Path) -> None:
    signs = ("epsilon = 1\n", 'epsilon = 1\nnonnegative = "condition"\n')
    path = plan(folder, '[publish."Everybody"]\ntotal = true\n\n', signs)
    assert labels(path) == ["Everybody"]


def test_rows_that_come_and_go_are_refused_beside_it(folder: Path) -> None:
    run("release", plan(folder))
    later = plan(folder, "", ('unit = "id"\n', 'unit = "id"\nmax_rows = 1\n'), ('"one"', '"two"'))
    said = " ".join(refused(later, "release", LedgerError.exit_code).split())
    assert "replace-one" in said
    assert "add-remove" in said
    ledger = Ledger.open(folder / "ledger.sqlite")
    rows = AddRemove(Plan.load(plan(folder)).schema)
    release = calibrate("auto", Guarantee.pure(1, under=rows), ("x",))
    with pytest.raises(LedgerError, match="Number of people"):
        ledger.reserve(release.description, release.guarantee, "three")


def test_nothing_is_recorded_where_the_release_is_refused(folder: Path) -> None:
    """The number is recorded last, after everything that can fail."""
    path = plan(folder, "", ("epsilon = 20\n", "epsilon = 0.5\n"))
    refused(path, "release", BudgetError.exit_code)
    assert not (folder / "ledger.sqlite").exists()
    run("propose", path)  # starts the ledger
    refused(path, "release", BudgetError.exit_code)
    assert not Ledger.open(folder / "ledger.sqlite").figures.told
    (folder / "ledger.sqlite").unlink()
    (folder / "people.csv").write_text("id,x,g\n0,a,p\n1,other,p\n")
    refused(plan(folder), "release", 3)
    assert not (folder / "ledger.sqlite").exists()


def test_other_data_are_noticed(folder: Path) -> None:
    run("release", plan(folder))
    with (folder / "people.csv").open("a") as file:
        file.write("99,a,p\n")
    other = plan(folder, "", ('"one"', '"two"'))
    assert "do not agree" in refused(other, "release", FigureError.exit_code)


def test_the_figures_so_far_have_it_before_it_is_public(folder: Path) -> None:
    """For commands that try a release out: they draw as the release will."""
    found = workflow.published_so_far(Plan.load(plan(folder)))
    assert found.told == (PEOPLE,)
    assert int(found.told_values[0]) == N
    assert not (folder / "ledger.sqlite").exists()


def test_who_may_not_publish_is_sent_to_somebody_who_may(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = plan(folder)
    loaded = Plan.load(path)
    ledger = Ledger.open(loaded.ledger, loaded.schema, budget=loaded.budget.budget(), who="ada")
    ledger.grant("ben", "releaser")
    ledger.grant("ada", "owner")
    monkeypatch.setattr("getpass.getuser", lambda: "ben")
    said = " ".join(refused(path, "release", FigureError.exit_code).split())
    assert "not published yet: Number of people. Run `congenial publish`" in said
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    run("publish", path)
    monkeypatch.setattr("getpass.getuser", lambda: "ben")
    run("release", path)
