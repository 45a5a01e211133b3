"""`congenial audit` on a plan and on a bundle: words, JSON, files, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from tests.cli.conftest import PLAN, write_people

SEED = 3
FEW = ("--draws", 4000, "--pairs", 2, "--seed", SEED)


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    write_people(folder / "people.csv")
    path = folder / "plan.toml"
    path.write_text(PLAN)
    assert run("publish", path).exit_code == 0
    assert run("release", path, "--name", "detail", "--seed", 1).exit_code == 0
    (folder / "people.csv").unlink()  # an audit does not read the data
    return path


def test_a_plan(plan: Path) -> None:
    result = run("audit", plan, *FEW, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)["audits"]
    assert [one["name"] for one in told] == ["detail", "summary"]
    assert not any(one["violated"] for one in told)
    assert told[0]["allowed"]["epsilon"] == 1
    assert len(told[0]["pairs"]) == 2
    ledger = json.loads(run("ledger", "show", plan, "--json").stdout)
    assert len(ledger["releases"]) == 1  # nothing was spent


def test_a_bundle_in_words(plan: Path) -> None:
    result = run("audit", plan.parent / "bundles" / "detail", *FEW)
    assert result.exit_code == 0, result.stderr
    for words in (
        "cells change by",
        "No attack does better than promised",
        "not a proof of privacy",
    ):
        assert words in " ".join(result.stdout.split())


def test_a_bundle_that_promises_too_much(plan: Path, tmp_path: Path) -> None:
    """Its law is right for epsilon = 1, and it says 1/4."""
    folder = tmp_path / "detail"
    shutil.copytree(plan.parent / "bundles" / "detail", folder)
    index = json.loads((folder / "release.json").read_text())
    index["guarantee"]["tradeoff"]["epsilon"] = "1/4"
    (folder / "release.json").write_text(json.dumps(index))
    result = run("audit", folder, "--draws", 40_000, "--pairs", 3, "--seed", SEED)
    assert result.exit_code == 1
    told = " ".join(result.stdout.split())
    assert "The promise is broken: epsilon is at least" in told
    assert "Do not release" in told


@pytest.mark.usefixtures("with_charts")
def test_pictures_and_files(plan: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    result = run("audit", plan, "--name", "summary", *FEW, "--out", place, "--json")
    assert {Path(name).name for name in json.loads(result.stdout)["files"]} == {
        f"audit-summary.{ending}" for ending in ("json", "svg", "png")
    }
    one = json.loads((place / "audit-summary.json").read_text())
    assert one["curve"]["columns"] == ["1 - type I error", "promised", "measured", "low", "high"]
    assert "whole band" in one["curve"]["words"]
    drawn = (place / "audit-summary.svg").read_text()
    for words in (
        "type II error",
        "1 - type I error",
        "the promise is broken only if the whole 95 % band is",
    ):
        assert words in drawn


def test_refusals(plan: Path, tmp_path: Path) -> None:
    unknown = run("audit", plan, "--name", "other")
    assert unknown.exit_code == 2
    assert "Known: detail, summary" in unknown.stderr
    nothing = run("audit", tmp_path)
    assert nothing.exit_code != 0
    assert "release.json" in nothing.stderr
    (tmp_path / "file").write_text("")
    barred = run("audit", plan, "--name", "summary", *FEW, "--out", tmp_path / "file")
    assert barred.exit_code != 0
    assert "cannot write" in barred.stderr
