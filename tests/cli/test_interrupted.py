"""Stopped in the middle, by a signal or a person: what was drawn is counted, nothing half there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from congenial.cli import app
from congenial.publication import bundle, workflow
from congenial.publication.claim import Claim
from congenial.publication.plan import Plan
from tests.children import start


def release_and_die(moment: str, plan: Path) -> None:
    """A release that is killed before its bundle has its name, or after that."""
    publish = bundle.PreparedBundle.publish

    def die(prepared: Any) -> None:
        if moment == "before the commit":
            publish(prepared)
        os.kill(os.getpid(), signal.SIGKILL)

    bundle.PreparedBundle.publish = die  # type: ignore[method-assign]
    app(["release", str(plan), "--name", "detail"])


@pytest.fixture
def killed(run: Callable[..., Any], plan: Path) -> Callable[[str], Path]:
    """killed(moment): a copy of a population, with a release that was killed at that moment."""

    def make(moment: str) -> Path:
        folder = plan.parent / moment
        folder.mkdir()
        for name in ("plan.toml", "people.csv"):
            (folder / name).write_bytes((plan.parent / name).read_bytes())
        copy = folder / "plan.toml"
        assert run("publish", copy).code == 0
        process = start(release_and_die, moment, copy)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        return copy

    return make


@pytest.mark.parametrize("moment", ["before its name", "before the commit"])
def test_killed_in_the_middle(
    run: Callable[..., Any], killed: Callable[[str], Path], moment: str
) -> None:
    """What was drawn is counted once, and finished without drawing again."""
    plan = killed(moment)
    (entry,) = run("ledger", "pending", plan, "--json").document["pending"]
    assert (entry["name"], entry["status"]) == ("detail", "drawn")
    final = plan.parent / "bundles" / "detail"
    assert final.exists() == (moment == "before the commit")
    again = run("release", plan, "--name", "detail")
    assert again.code == 6
    assert "ledger finish" in again.err or final.exists()
    finished = run("ledger", "finish", plan, "--json").document
    assert ([one["name"] for one in finished["finished"]], finished["pending"]) == (["detail"], [])
    assert run("verify", final, "--digest", finished["finished"][0]["digest"]).code == 0
    assert run("ledger", "show", plan, "--json").document["spent"] == "epsilon = 1"
    assert "Nothing that was drawn" in run("ledger", "finish", plan).out
    assert [path.name for path in final.parent.iterdir()] == ["detail"]


def test_what_was_given_up_stays_spent(
    run: Callable[..., Any], killed: Callable[[str], Path]
) -> None:
    plan = killed("before its name")
    (entry,) = run("ledger", "pending", plan, "--json").document["pending"]
    abandoned = run("ledger", "abandon", plan, entry["id"], "--json").document
    assert (abandoned["abandoned"]["status"], abandoned["spent"]) == ("abandoned", "epsilon = 1")
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


def release_and_stop(number: int, plan: Path) -> None:
    """A release that a signal reaches between draw and keeping, three times."""
    keep = Claim.keep

    def stopped(*told: Any) -> None:
        for _ in range(3):
            os.kill(os.getpid(), number)
        keep(*told)

    Claim.keep = stopped  # type: ignore[method-assign]
    workflow.release(Plan.load(plan), "detail")
    os._exit(0)  # it was ignored


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("ignored", [False, True])
def test_a_session_that_ends_loses_no_paid_draw(
    plan: Path, run: Callable[..., Any], number: signal.Signals, ignored: bool
) -> None:
    assert run("publish", plan).code == 0
    usual = signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
    process = start(release_and_stop, number, plan)
    signal.signal(number, usual)
    process.join()
    assert process.exitcode == (0 if ignored else 128 + number)
    assert [path.name for path in (plan.parent / "bundles").iterdir()] == ["detail"]
    listed = run("ledger", "show", plan, "--json").document["releases"]
    assert [one["status"] for one in listed] == ["committed"]


@pytest.mark.usefixtures("ctrl_c")
def test_a_second_control_c_says_what_is_spent(
    plan: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("publish", plan).code == 0

    def press(*_: object) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Claim, "keep", press)
    ran = run("release", plan, "--name", "detail")
    assert ran.code == 130
    told = " ".join(ran.err.split())
    assert "'detail' (epsilon = 1) counts as spent, because its noise may have been drawn" in told
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
