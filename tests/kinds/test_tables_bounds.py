"""Tables with public bounds: priced over databases that keep them, kept by whole counts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial import Guarantee, Plan, Schema, SeededRandomness, Table, calibrate, verify
from congenial.cli import output
from congenial.cli import publish as publish_command
from congenial.errors import PlanError
from congenial.figures import Figures, at_least, at_most, count, limits, margin, publish, total
from congenial.kinds import tables_verification
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.pairs import SemiAdjacent
from congenial.publication import workflow
from congenial.publication.check_document import examine, words
from congenial.publication.plan_ledger import open_ledger
from congenial.publication.published_document import published_words
from congenial.tables import Workload, difference_types, general_fit, joint_epsilon, joint_rho
from tests.commands import refused, run
from tests.kinds.several_tables_plan import written
from tests.tables.brute import by_figures, cells_of, figures_of, maximal_types
from tests.worlds import schema_of

BOUNDS = """
[publish.old]
count = "age = 'old'"
at_least = 60
by = ["county"]
[publish.women]
count = "sex = 'f' and age = 'young'"
at_most = 45
by = ["county"]
[[release]]
"""


def bounded(folder: Path) -> Path:
    plan = written(folder)
    plan.write_text(plan.read_text().replace("[[release]]", BOUNDS))
    return plan


def test_printed_counts_keep_public_bounds(tmp_path: Path) -> None:
    path = bounded(tmp_path)
    run("publish", path)
    told = run("check", path, "--json")["releases"][0]
    assert told["whole_counts"] is None
    assert told["types"]["footing"] == "upper bound"
    run("release", path)
    bundle = tmp_path / "bundles" / "people"
    release = congenial.read(bundle)
    counts = release.margin("county", "sex", "age")
    assert counts.sum(axis=1)[:, 3].min() >= 60
    assert counts[:, 0, 1].max() <= 45
    assert all(check.holds for check in verify(bundle))


def test_bounds_that_nothing_printed_would_keep_are_refused(tmp_path: Path, monkeypatch) -> None:
    path = bounded(tmp_path)
    run("publish", path)
    monkeypatch.setattr(general_fit, "LARGEST", 10)
    monkeypatch.setattr("congenial.tables.whole_counts.LARGEST", 10)
    told = refused(path)
    assert "only whole counts keep bounds" in told
    assert "leave out the bound" in told
    refused(path, "release")
    assert not (tmp_path / "bundles").exists()
    assert run("ledger", "show", path, "--json")["spent"] == "rho = 0"


SCHEMA = schema_of(x=2, y=3)
FIGURES = (
    (total(), at_least(count("y = 'y0'"), 2)),
    (margin("x"), at_most(count("y = 'y0'"), 1)),
    (margin("x"), at_most(count("x = 'x0' and y = 'y1'"), 1), at_least(count("y = 'y2'"), 1)),
)


@pytest.mark.parametrize("statements", FIGURES)
def test_a_joint_promise_under_bounds_is_never_below_the_enumerated_loss(statements) -> None:
    assert not any(below_enumerated(statements, SemiAdjacent(Figures(SCHEMA, statements))))


def test_planted_a_promise_that_forgets_the_bounds_is_too_low() -> None:
    """Where a bound keeps a person's record from changing alone, more people must change."""
    statements = FIGURES[0]
    forgetful = SemiAdjacent(Figures(SCHEMA, statements[:1]))
    assert any(below_enumerated(statements, forgetful))


def below_enumerated(statements, adjacency: SemiAdjacent) -> list[bool]:
    """For every value of the figures and some parameters, whether the loss is above the promise."""
    work = Workload.of(SCHEMA, [["x", "y"], ["y"], ["x"]])
    records = SemiAdjacent(Figures(SCHEMA, statements)).records
    found, below = difference_types(adjacency, work), []
    equalities = tuple(one for one in statements if one.relation == "=")
    for databases in by_figures(SCHEMA, equalities, 3).values():
        inside = [one for one in databases if keeps(statements, one)]
        squares, absolutes = maximal_types(SCHEMA, work.tables, inside, records)
        for p in ((1, 1, 1), (5, 1, 0), (1, 2, 7)):
            shares = [Fraction(value, 7) for value in p]
            below.append(2 * joint_rho(found, shares).value < worst(squares, shares))
            below.append(joint_epsilon(found, shares).value < worst(absolutes, shares))
    assert len(below) >= 6
    return below


def worst(vectors, shares) -> Fraction:
    sums = (sum(c * v for c, v in zip(row, shares, strict=True)) for row in vectors)
    return max(sums, default=Fraction(0))


def keeps(statements, chosen) -> bool:
    """Whether a list of records, as numbers of cells, keeps every bound."""
    people = [cells_of(SCHEMA)[i] for i in chosen]
    for one in (one for one in statements if one.relation != "="):
        counted = dict(figures_of(SCHEMA, (one,), people)[0]).get((), 0)
        if counted < one.bound if one.relation == ">=" else counted > one.bound:
            return False
    return True


# ---- one table ---------------------------------------------------------------------------------

PLAN = """
[data]
source = "people.csv"
[schema]
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"All" = { total = true }
"Adults" = { count = "age >= 18" }
"Few old" = { count = "age >= 65", at_most = 4 }
[[release]]
name = "t"
table = ["sex", "age"]
epsilon = 1
nonnegative = "condition"
[budget]
epsilon = 1
"""
PEOPLE = "sex,age\nf,3\nm,9\nf,30\nm,44\nm,22\nf,70\nm,80\n"


def loaded(folder, text: str = PLAN, people: str = PEOPLE) -> Plan:
    (folder / "people.csv").write_text(people, encoding="utf-8")
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return Plan.load(folder / "plan.toml")


def test_bounds_alone_are_kept_by_projection(tmp_path):
    """No figure is exact, so no sum is known; what is released keeps the bound, and says so."""
    exact = '"All" = { total = true }\n"Adults" = { count = "age >= 18" }\n'
    text = PLAN.replace(exact, "").replace('"condition"', '"project"')
    made = loaded(tmp_path, text)
    workflow.publish(made)
    folder = workflow.release(made, "t", randomness=SeededRandomness(4)).folder
    release = congenial.read(folder)
    (counts,) = release.counts
    assert counts[:, 2].sum() <= 4
    checks = {check.what: check.holds for check in verify(folder)}
    assert checks["the printed counts keep every published bound"]
    vars(release)["counts"] = (counts + 9,)
    assert not tables_verification._bounded(release)


def test_bounds_from_a_plan(tmp_path, capsys):
    made = loaded(tmp_path)
    (before,) = examine(made)["releases"]
    assert before["normaliser_price"]["basis"].startswith("the paper's factor 2")
    assert before["normaliser_price"]["bounds_kept"] == {
        "cells": False,
        "sums": 1,
        "acceptance": None,
    }
    workflow.publish(made)
    (after,) = examine(made)["releases"]
    price = after["normaliser_price"]
    assert price["basis"] == "exact, by enumeration of 150 tables"
    assert 0 < price["epsilon"] < price["proved_bound"]
    assert after["eps_per_cell"] > before["eps_per_cell"]
    assert [cost["label"] for cost in after["figure_costs"]] == [
        *("Adults", "Few old", "all figures together")
    ]
    output.show(words(examine(made), full=True))
    told = capsys.readouterr().out
    assert "exact, by enumeration of 150 tables" in " ".join(told.split())
    assert before["inference"]["slow"]
    assert before["inference"]["minutes"] is None  # not before figures are out
    assert not after["inference"]["slow"]  # 150 tables are listed
    result = workflow.release(made, "t", randomness=SeededRandomness(4))
    release = congenial.read(result.folder)
    named = "Public bounds: Few old at most 4."
    assert named in after["promise"]
    assert named in (result.folder / "README.txt").read_text()
    assert "keep the public bounds (Few old at most 4)" in release.guarantee.universe.words
    assert "Few old,,4,,at most\n" in (result.folder / "published.csv").read_text()
    report = (result.folder / "report.html").read_text()
    assert "congenial infer this-folder --model multinomial" in report
    assert "counts &gt;= 0 and public bounds" in report
    assert release.description.only_law.nonnegative
    (counts,) = release.counts
    assert limits(release.description.support, release.tables[0]).hold(counts.reshape(-1))
    assert counts[:, 2].sum() <= 4
    failed = [check.what for check in verify(result.folder) if not check.holds]
    assert failed == ["drawn from the system's randomness"]
    assert open_ledger(made, create=False).spent().epsilon == Fraction(1)


MANY = (
    PLAN.replace('"All" = { total = true }', '"By sex" = { total = true, by = ["sex"] }')
    .replace('"Adults" = { count = "age >= 18" }\n', "")
    .replace("at_most = 4", "at_most = 100")
)


def test_what_infer_cannot_do_is_said_before_anything_is_spent(tmp_path, capsys):
    rows = "".join(f"{sex},{age}\n" for sex in "fm" for age in (3, 30, 30, 70) for _ in range(40))
    made = loaded(tmp_path, MANY, "sex,age\n" + rows)
    output.show(published_words(publish_command.carry_out(made), made.schema))
    assert "Few old" in capsys.readouterr().out
    document = examine(made)
    assert document["figures"][1]["bound"] == "at most 100"
    (one,) = document["releases"]
    assert not one["inference"]["works"]
    output.show(words(document, full=True))
    assert "congenial infer does not work on it" in " ".join(capsys.readouterr().out.split())
    result = workflow.release(made, "t", randomness=SeededRandomness(4))
    report = (result.folder / "report.html").read_text()
    assert "infer this-folder" not in report
    assert "does not work on this release" in report


def test_nothing_keeps_bounds_without_signs(tmp_path):
    made = loaded(tmp_path, PLAN.replace('"condition"', '"no"'))
    with pytest.raises(PlanError, match="'Few old' is a bound"):
        workflow.check(made)


def test_counts_as_near_that_miss_a_published_sum_are_no_tie():
    """Group "a" is 1 too large and "b" 1 too small, at the same distance from the draw."""
    schema = Schema.from_dict({"g": {"levels": ["a", "b"]}, "x": {"integers": [1, 3]}})
    table = Table(schema, schema.names, np.array([[0, 5, 5], [4, 4, 4]]))
    figures = publish(table, total(by="g"), at_most(count("x = 1"), 9))
    made = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), schema.names)
    estimator = MeasuredTables.of_one(made).estimator
    drawn = np.array([[-1, 6, 5], [4, 4, 4]])
    honest, missing = np.array([[0, 5, 5], [4, 4, 4]]), np.array([[0, 6, 5], [3, 4, 4]])
    assert estimator.order is None
    assert estimator.as_near([drawn], [honest])
    assert not estimator.as_near([drawn], [missing])
