"""reassess, infer, reproduce and check --suppose, as a user runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def released(run: Callable[..., Any], plan: Path) -> Path:
    assert run("publish", plan).code == 0
    assert run("release", plan, "--name", "detail").code == 0
    return plan


def test_reassess_says_what_old_promises_are_worth_now(
    run: Callable[..., Any], plan: Path, released: Path
) -> None:
    told = run("reassess", plan, "--rho", "2.56", "--delta", "1e-10", "--json").document
    robust = {row["reading"]: row for row in told["rows"]}
    assert robust["advertised"]["promise"].startswith("rho = 2.56 ")
    assert robust["robust"]["records"] == 2
    assert robust["robust"]["promise"].startswith("rho = 10.24 ")
    assert robust["existential"]["promise"].startswith("rho = 2.56 ")
    own = run("reassess", plan, "--json").document["rows"]
    assert {row["release"] for row in own} == {"detail"}
    assert run("reassess", plan, "--rho", "x").code != 0
    shown = run("reassess", plan, "--bundle", released.parent / "bundles" / "detail")
    assert "existential" in shown.out


def test_suppose_treats_side_information_as_one_more_figure(
    run: Callable[..., Any], plan: Path
) -> None:
    told = run("check", plan, "--suppose", "sex = 'f'", "--json").document["supposed"]
    assert told["known"] == ["sex = 'f'"]
    assert told["records"] > 2
    assert all(one["supposed"] for one in told["releases"])


def test_infer_from_a_bundle_alone(run: Callable[..., Any], plan: Path, tmp_path: Path) -> None:
    assert run("publish", plan).code == 0
    # Few draws must be enough for this very table.
    assert run("release", plan, "--name", "detail", "--seed", "1").code == 0
    bundle = plan.parent / "bundles" / "detail"
    ran = run(
        *("infer", bundle, "--model", "poisson", "--set", "draws=400", "--set", "seed=1"),
        *("--naive", "--simulations", "3", "--out", tmp_path / "found", "--json"),
    )
    assert ran.code == 0, ran.err
    told = ran.document
    assert told["summary"][0]["low"] < told["summary"][0]["mean"] < told["summary"][0]["high"]
    assert len(told["naive"]) == len(told["summary"])
    assert (tmp_path / "found" / "draws.parquet").is_file()
    assert run("infer", bundle, "--model", "nonsense").code != 0
    assert run("infer", bundle, "--model", "poisson", "--set", "draws").code != 0


def test_reproduce_lists_runs_and_writes(run: Callable[..., Any], tmp_path: Path) -> None:
    listed = run("reproduce", "--list", "--json").document["items"]
    assert {row["paper"] for row in listed} >= {"congenial-dp", "semi-dp"}
    ran = run("reproduce", "congenial-dp", "stopped-chain", "--out", tmp_path, "--json")
    (result,) = ran.document["results"]
    losses = {row[0]: row[2] for row in result["rows"] if row[1] == "stopped chain"}
    assert losses[1] == pytest.approx(4.84, abs=0.01)
    assert (tmp_path / "congenial-dp-stopped-chain.csv").is_file()
    assert run("reproduce", "congenial-dp", "nothing").code != 0
    assert run("reproduce").code != 0
