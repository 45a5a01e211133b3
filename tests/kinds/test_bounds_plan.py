"""A plan whose counts are conditioned on published bounds: check, publish, release, verify."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import Guarantee, Schema, SemiAdjacent, Table, at_most, calibrate, count, total
from congenial import publish as published
from congenial.cli import output, publish
from congenial.errors import PlanError
from congenial.figures.limits import limits
from congenial.kinds import tables, tables_document
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.publication import bundle, workflow
from congenial.publication.check_document import examine
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.publication.verification import verify
from congenial.sampling.randomness import SeededRandomness
from tests.plain_reports import plain_reports

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


def plan(folder, text: str = PLAN, people: str = PEOPLE) -> Plan:
    (folder / "people.csv").write_text(people, encoding="utf-8")
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return Plan.load(folder / "plan.toml")


def test_bounds_alone_are_kept_by_projection(tmp_path):
    """No figure is exact, so no sum is known; what is released keeps the bound, and says so."""
    exact = '"All" = { total = true }\n"Adults" = { count = "age >= 18" }\n'
    text = PLAN.replace(exact, "").replace('"condition"', '"project"')
    made = plan(tmp_path, text)
    workflow.publish(made)
    with plain_reports():
        folder = workflow.release(made, "t", randomness=SeededRandomness(4)).folder
    release = bundle.read(folder)
    (counts,) = release.counts
    assert counts[:, 2].sum() <= 4
    checks = {check.what: check.holds for check in verify(folder)}
    assert checks["printed counts keep every published bound"]
    vars(release)["counts"] = (counts + 9,)
    assert not tables._bounded(release)


def test_bounds_from_a_plan(tmp_path, capsys):
    made = plan(tmp_path)
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
    assert [cost["label"] for cost in after["mandate_costs"]] == ["Adults", "Few old"]
    tables_document.show(after, output)
    told = capsys.readouterr().out
    assert "exact, by enumeration of 150 tables" in " ".join(told.split())
    assert before["inference"]["slow"]
    assert before["inference"]["minutes"] is None  # not before figures are out
    assert not after["inference"]["slow"]  # 150 tables are listed
    with plain_reports():
        result = workflow.release(made, "t", randomness=SeededRandomness(4))
    release = bundle.read(result.folder)
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
    made = plan(tmp_path, MANY, "sex,age\n" + rows)
    publish.show(publish.carry_out(made), made.schema)
    assert "Few old" in capsys.readouterr().out
    document = examine(made)
    assert document["mandates"][1]["bound"] == "at most 100"
    (one,) = document["releases"]
    assert not one["inference"]["works"]
    tables_document.show(one, output)
    assert "congenial infer will not work" in " ".join(capsys.readouterr().out.split())
    with plain_reports():
        result = workflow.release(made, "t", randomness=SeededRandomness(4))
    report = (result.folder / "report.html").read_text()
    assert "infer this-folder" not in report
    assert "does not work on this release" in report


def test_nothing_keeps_bounds_without_signs(tmp_path):
    made = plan(tmp_path, PLAN.replace('"condition"', '"no"'))
    with pytest.raises(PlanError, match="'Few old' bounds a statistic"):
        workflow.check(made)


def test_counts_as_near_that_miss_a_published_sum_are_no_tie():
    """Group "a" is 1 too large and "b" 1 too small, at the same distance from the draw."""
    schema = Schema.from_dict({"g": {"levels": ["a", "b"]}, "x": {"integers": [1, 3]}})
    table = Table(schema, schema.names, np.array([[0, 5, 5], [4, 4, 4]]))
    figures = published(table, total(by="g"), at_most(count("x = 1"), 9))
    made = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), schema.names)
    estimator = MeasuredTables.of_one(made).estimator
    drawn = np.array([[-1, 6, 5], [4, 4, 4]])
    honest, missing = np.array([[0, 5, 5], [4, 4, 4]]), np.array([[0, 6, 5], [3, 4, 4]])
    assert estimator.order is None
    assert estimator.as_near([drawn], [honest])
    assert not estimator.as_near([drawn], [missing])
