"""`congenial estimate`, from words on the command line to numbers."""

from __future__ import annotations

import csv
import gc
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import congenial


def test_estimates_and_tests(run: Callable[..., Any], finished: Path, tmp_path: Path) -> None:
    bundle, out = finished.parent / "bundles" / "detail", tmp_path / "out.csv"
    asked = "share(sex = 'f' | age >= 65) by county"
    ran = run("estimate", bundle, "--of", asked, "--of", "count()", "--out", out, "--json")
    assert ran.code == 0
    rows = ran.document["estimates"]
    release = congenial.read(bundle)
    assert rows == release.estimate([asked, "count()"]).to_dicts()
    with out.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["county"] for row in written] == ["A", "B", "C", ""]
    tests = run("estimate", bundle, "--test", "independent(sex, age)", "--json").document["tests"]
    assert 0 < tests[0]["p_value"] <= 1


def test_two_bundles_of_one_population_make_one_better_estimate(
    run: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished.parent, tmp_path / "copy")
    plan = tmp_path / "copy" / "plan.toml"
    assert run("release", plan, "--name", "summary", "--seed", 2).code == 0
    asked = "count(age >= 65) by state"
    detail, summary = (tmp_path / "copy" / "bundles" / name for name in ("detail", "summary"))
    found = [
        run("estimate", *bundles, "--of", asked, "--json").document["estimates"]
        for bundles in ((detail,), (summary,), (detail, summary))
    ]
    for first, second, both in zip(*found, strict=True):
        assert 0 < both["sd"] < min(first["sd"], second["sd"])
        assert both["low"] < both["high"]
    releases = [congenial.read(detail), congenial.read(summary)]
    assert found[2] == congenial.estimate(releases, asked).to_dicts()


def test_refusals(run: Callable[..., Any], finished: Path, tmp_path: Path) -> None:
    bundle = finished.parent / "bundles" / "detail"
    for words, message in (
        ((), "there is no question"),
        (("--of", "count(age >= 20)"), "cuts the class"),
        (("--of", "count()", "--level", "2"), "not between 0 and 1"),
        (("--of", "count()", "--out", tmp_path / "no" / "out.csv"), "cannot write"),
        (("--of", "growth(count())"), "two bundles"),
        (("--test", "equal(age)"), "two conditions"),
    ):
        ran = run("estimate", bundle, *words)
        assert ran.code == 2, message
        assert message in ran.err
    assert "the same release" in run("estimate", bundle, bundle, "--of", "count()").err
    assert gc.isenabled()  # whoever calls the command goes on as before
