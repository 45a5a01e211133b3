"""Stopped in the middle, by a signal or a person: what was drawn is counted, nothing half there."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from congenial.publication import workflow
from congenial.publication.plan import Plan

KILLED = """
import os, signal, sys
from congenial.publication import bundle, workflow
from congenial.report import pictures
from congenial.cli import main

pictures.available = lambda: False
publish = bundle.PreparedBundle.publish

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

for moment, plan in zip(sys.argv[1::2], sys.argv[2::2]):
    child = os.fork()  # each child is a process of its own that dies at its moment
    if child == 0:
        early = moment == "before its name"
        late = lambda prepared: (publish(prepared), die())
        bundle.PreparedBundle.publish = die if early else late
        sys.argv[1:] = ["release", plan, "--name", "detail"]
        main()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""


@pytest.fixture
def killed(run: Callable[..., Any], plan: Path) -> dict[str, Path]:
    """Two copies of a population, each with a release killed at another moment."""
    plans = {}
    for moment in ("before its name", "before the commit"):
        folder = plan.parent / moment
        folder.mkdir()
        for name in ("plan.toml", "people.csv"):
            (folder / name).write_bytes((plan.parent / name).read_bytes())
        plans[moment] = folder / "plan.toml"
        assert run("publish", plans[moment]).code == 0
    words = [str(word) for pair in plans.items() for word in pair]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return plans


def test_killed_in_the_middle(run: Callable[..., Any], killed: dict[str, Path]) -> None:
    """What was drawn is counted once, and finished without drawing again."""
    for moment, plan in killed.items():
        (entry,) = run("ledger", "pending", plan, "--json").document["pending"]
        assert (entry["name"], entry["status"]) == ("detail", "drawn")
        final = plan.parent / "bundles" / "detail"
        assert final.exists() == (moment == "before the commit")
        again = run("release", plan, "--name", "detail")
        assert again.code == 6
        assert "ledger finish" in again.err or final.exists()
        finished = run("ledger", "finish", plan, "--json").document
        assert ([one["name"] for one in finished["finished"]], finished["pending"]) == (
            ["detail"],
            [],
        )
        assert run("verify", final, "--digest", finished["finished"][0]["digest"]).code == 0
        assert run("ledger", "show", plan, "--json").document["spent"] == "epsilon = 1"
        assert "Nothing that was drawn" in run("ledger", "finish", plan).out
        assert [path.name for path in final.parent.iterdir()] == ["detail"]


def test_what_was_given_up_stays_spent(run: Callable[..., Any], killed: dict[str, Path]) -> None:
    plan = killed["before its name"]
    (entry,) = run("ledger", "pending", plan, "--json").document["pending"]
    abandoned = run("ledger", "abandon", plan, entry["id"], "--json").document
    assert (abandoned["release"]["status"], abandoned["spent"]) == ("abandoned", "epsilon = 1")
    assert run("ledger", "finish", plan).code == 6
    assert run("release", plan, "--name", "detail").code == 0
    assert run("ledger", "show", plan, "--json").document["spent"] == "epsilon = 2"


def test_an_interrupt(run: Callable[..., Any], plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "check", interrupt)
    assert run("check", plan).code == 130


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as a person at a terminal has it: jobs in the background ignore it."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("ctrl_c")
def test_control_c_waits_until_what_was_drawn_is_published(
    plan: Path, run: Callable[..., Any]
) -> None:
    """It stays spent in any case; stopping between draw and bundle would lose it for nothing."""
    assert run("publish", plan).code == 0
    told: list[str] = []

    def press(text: str) -> None:
        told.append(text)
        if text == "writing the bundle":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        workflow.release(Plan.load(plan), "detail", progress=press)
    assert any("press again" in text for text in told)
    assert (plan.parent / "bundles" / "detail" / "report.html").exists()
    listed = run("ledger", "show", plan, "--json").document["releases"]
    assert [one["status"] for one in listed] == ["committed"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
