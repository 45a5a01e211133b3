"""A kind of release that is defined outside src goes from a plan to a verified bundle."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import congenial
from congenial.errors import BundleError, InferenceError, PlanError
from congenial.kinds import registry
from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from tests.commands import refused, run
from tests.kinds.toy import FILE, CountRelease, HowMany

PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
sex = { levels = ["f", "m"] }
age = { levels = ["child", "adult", "old"] }
[[release]]
name = "adults"
how_many = "age = 'adult'"
epsilon = 0.5
[[release]]
name = "by-sex"
table = ["sex"]
epsilon = 1
[budget]
epsilon = 4
"""
ADULTS = 40


@pytest.fixture
def toy() -> Iterator[HowMany]:
    kind = registry.register(HowMany())
    yield kind
    registry.forget(kind)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    rows = ["adult"] * ADULTS + ["child"] * 25 + ["old"] * 10
    people = [f"{i},{'fm'[i % 2]},{age}" for i, age in enumerate(rows)]
    (tmp_path / "people.csv").write_text("\n".join(["id,sex,age", *people]) + "\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_from_a_plan_to_a_verified_bundle(toy: HowMany, plan: Path) -> None:
    told = run("check", plan, "--json")
    assert [one["kind"] for one in told["releases"]] == ["how many", "tables"]
    assert told["releases"][0]["per_person"] == "epsilon = 0.5"
    assert told["budget"]["asked"] == "epsilon = 1.5"
    assert "Release 'adults': how many" in run("check", plan, "--full")
    assert "epsilon = 0.5 per person" in " ".join(run("explain", plan).split())
    done = run("release", plan, "--json")["releases"]
    assert [Path(one["folder"]).name for one in done] == ["adults", "by-sex"]
    folder = plan.parent / "bundles" / "adults"
    checks = run("verify", folder, "--json")
    assert checks["holds"]
    assert {
        "report.html contains no unexpected text or pictures",
        "the data files match what was drawn",
    } <= {one["what"] for one in checks["checks"]}
    read = congenial.read(folder)
    assert isinstance(read, CountRelease)
    assert abs(read.value - ADULTS) < 200  # 1e-43 beyond
    assert run("explain", folder, "--json")["failed"] == []
    assert "under description" in refused(
        folder, "infer", InferenceError.exit_code, ("--model", "poisson")
    )
    assert run("ledger", "show", plan.parent / "ledger.sqlite", "--json")


def test_what_is_changed_is_noticed(toy: HowMany, plan: Path, tmp_path: Path) -> None:
    """The negative control: another number, or another sentence, does not verify."""
    run("release", plan, "--name", "adults", "--json")
    good = plan.parent / "bundles" / "adults"
    for name in (FILE, "report.html"):
        bad = tmp_path / f"bad-{name}"
        shutil.copytree(good, bad)
        (bad / name).write_bytes((bad / name).read_bytes().replace(b"adult", b"child"))
        run("verify", bad, code=1)


def test_a_drawn_number_without_a_bundle_is_finished(
    toy: HowMany, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ledger finish` writes the report of a kind it has never heard of."""

    def broken(*_: object) -> None:
        raise BundleError("the disk is full.")

    monkeypatch.setattr(workflow.bundle, "write", broken)
    refused(plan, "release", BundleError.exit_code, ("--name", "adults"))
    monkeypatch.undo()
    run("ledger", "finish", plan)
    run("verify", plan.parent / "bundles" / "adults")


def test_errors_name_the_keys_of_the_kind(toy: HowMany, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="release 'adults': how_mani: unknown key"):
        Plan.parse(PLAN.replace("epsilon = 0.5", "epsilon = 0.5\nhow_mani = 1"), tmp_path)


def test_without_the_kind_neither_plan_nor_bundle_is_known(plan: Path) -> None:
    kind = registry.register(HowMany())
    run("release", plan, "--name", "adults", "--json")
    registry.forget(kind)
    with pytest.raises(PlanError, match="how_many: unknown key"):
        Plan.load(plan)
    with pytest.raises(BundleError, match="cannot read bundles of the kind 'how many'"):
        congenial.read(plan.parent / "bundles" / "adults")


def test_a_kind_is_registered_once(toy: HowMany) -> None:
    with pytest.raises(TypeError, match="how many"):
        registry.register(HowMany())


def test_a_report_that_cannot_be_written_spends_nothing(
    toy: HowMany, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A law without words is a bug of the kind; it must come out before the draw."""

    def without_words(*_: object) -> str:
        raise KeyError("no words for this law")

    monkeypatch.setattr(toy, "report", without_words)
    loaded = Plan.load(plan)
    with pytest.raises(KeyError):
        workflow.release(loaded, "adults")
    assert open_ledger(loaded, create=False) is None
    assert not (plan.parent / "bundles").exists()
