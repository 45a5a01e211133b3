"""`congenial desk` as a process: its link opens it, it logs nothing, and Ctrl-C ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from congenial.desk.access import DeskSettings
from congenial.desk.jobs import Jobs
from congenial.desk.server import listen, serve
from tests.children import start
from tests.commands import refused
from tests.desk.desks import MARKER, write_folder


def visit(link: str) -> None:
    """One browser enters once, and comes back by the same link; another one cannot use it."""
    with httpx.Client(follow_redirects=True, trust_env=False) as client:
        for _ in range(2):
            assert "plan.toml" in client.get(link, timeout=30).text
        assert client.get(link.partition("/enter")[0] + f"/{MARKER}").status_code == 404
    assert httpx.get(link, trust_env=False).status_code == 401


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "desk")
    command = [sys.executable, "-m", "congenial.cli", "desk", str(folder)]
    piped = subprocess.PIPE
    with subprocess.Popen(command, stdout=piped, stderr=piped, text=True, env=os.environ) as desk:
        assert desk.stdout is not None
        link = desk.stdout.readline().removeprefix("Desk: ").strip()
        assert link.startswith("http://127.0.0.1:")
        try:
            visit(link)
            desk.send_signal(signal.SIGINT)
            out, err = desk.communicate(timeout=60)
        finally:
            desk.kill()  # nothing waits for a desk that a failed test left open
    assert desk.returncode in (0, 130)
    assert MARKER not in out + err
    assert "Traceback" not in err


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no folder" in refused(tmp_path / "none", "desk")


def serve_with_a_job(folder: Path) -> None:
    """A desk that is told to end while a job runs; the job takes a little longer."""
    number = int((folder / "signal").read_text())
    signal.signal(
        number, signal.SIG_DFL
    )  # the tests may run under nohup, and children inherit that

    def work(_: object) -> None:
        time.sleep(0.5)
        for _ in range(2):
            os.kill(os.getpid(), number)
        time.sleep(1)
        (folder / "done").touch()

    Jobs().start("Releasing", "plan.toml", "/", work)
    settings = DeskSettings(folder)
    with listen(settings) as opened:
        serve(settings, opened)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_desk_that_is_ended_finishes_what_runs(tmp_path: Path, number: signal.Signals) -> None:
    """A job may be between draw and keeping."""
    folder = write_folder(tmp_path / "desk")
    (folder / "signal").write_text(str(int(number)))
    process = start(serve_with_a_job, folder)
    process.join(60)
    assert (folder / "done").exists()
    assert process.exitcode is not None
    assert process.exitcode >= 0
