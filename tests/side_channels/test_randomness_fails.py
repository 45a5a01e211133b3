"""When the system's generator fails, nothing is released, whichever kind of release it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from congenial.errors import LedgerError, RandomnessError
from congenial.sampling import randomness
from tests.confidentiality.scenes import SCENES, Scene

CODES = (RandomnessError.exit_code, LedgerError.exit_code)  # a release's id is random, too


pytestmark = pytest.mark.usefixtures("short_bootstrap")


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def raising(_: int) -> bytes:
    raise OSError("no entropy")


def missing(_: int) -> bytes:
    raise NotImplementedError


def short(n: int) -> bytes:
    return b"\0" * (n // 2)


@pytest.fixture(params=SCENES, ids=[scene.kind for scene in SCENES])
def plan(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A plan of each kind, its figures published."""
    scene = request.param
    columns = SCENES[-1].columns if scene.kind == "table" else scene.columns
    path = Scene(scene.kind, scene.plan, columns, ()).write(tmp_path)
    if "[publish]" in scene.plan:
        assert run("publish", path).exit_code == 0
    return path


def released_in(plan: Path) -> list[Path]:
    """What lies in the folder of bundles."""
    return list(plan.parent.glob("bundles/*"))


@pytest.mark.parametrize(
    "urandom",
    [
        pytest.param(raising, id="raising"),
        pytest.param(missing, id="missing", marks=pytest.mark.audit),
        pytest.param(short, id="short", marks=pytest.mark.audit),
    ],
)
def test_a_failing_source_stops_the_release(
    plan: Path, urandom: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:  # of the noise alone: names of files are random as well
        patch.setattr(randomness, "os", SimpleNamespace(urandom=urandom, getpid=os.getpid))
        ran = run("release", plan)
    assert ran.exit_code == RandomnessError.exit_code, ran.stderr
    assert "nothing was released" in ran.stderr
    assert released_in(plan) == []
    # Found out in the rehearsal, nothing is spent. If it was about to be drawn, it counts, and can
    # be given up: spent for good.
    ledger = json.loads(run("ledger", "show", plan, "--json").stdout)
    if not ledger["releases"]:
        return
    [status] = [one["status"] for one in ledger["releases"]]
    assert status in ("drawn", "cancelled")
    if status == "cancelled":  # before the mark: nothing is spent
        assert ledger["spent"] == "rho = 0"
        return
    abandoned = run("ledger", "abandon", plan, ledger["releases"][0]["id"], "--json")
    assert json.loads(abandoned.stdout)["abandoned"]["status"] == "abandoned"


def test_a_machine_without_any_randomness(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", raising)
        ran = run("release", plan)
    assert ran.exit_code in CODES, ran.stderr
    assert released_in(plan) == []
    ledger = json.loads(run("ledger", "show", plan, "--json").stdout) if _has_ledger(plan) else {}
    assert all(one["status"] == "drawn" for one in ledger.get("releases", []))


def _has_ledger(plan: Path) -> bool:
    return (plan.parent / "ledger.sqlite").exists()
