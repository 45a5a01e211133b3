"""Options of the whole suite."""

from __future__ import annotations

import gc
import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from hypothesis import settings

# A change is judged on the same examples every time; `make audit` looks for new ones. None has a
# limit of time: machines of automatic runs are slow at times.
settings.register_profile("same-every-time", derandomize=True, deadline=None)
settings.register_profile("new-every-time", deadline=None)
settings.load_profile("same-every-time")

# The program's tree of commands is built once, not for each of some thousand commands.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shared",
        default=os.environ.get("CONGENIAL_SHARED"),
        help="folder with data/, real data; tests that need it skip without it",
    )
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write tests/golden again from what is said"
    )
    parser.addoption("--attempts", help="file to write what the audit attempted to, for its table")


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if "spark" in getattr(item, "fixturenames", ()) or parameters.get("engine") == "spark":
            if item.path.parent.name != "engines":
                raise pytest.UsageError(f"{item.nodeid} uses Spark: `make test` looks in engines/")
            item.add_marker(pytest.mark.spark)
        if "attempt" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.attempt)  # belongs to the audit, in whichever size


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before fixtures of the module are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    _same_draws(item, item.path.name)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    _same_draws(item, item.nodeid)  # whichever test of the module came first


def _same_draws(item: pytest.Item, name: str) -> None:
    if item.config.getoption("--attempts") is None:
        from tests import same_draws  # the process that only hands out tests does without

        same_draws.begin(item.path.name, name)


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path:
    """The folder of real data."""
    given = request.config.getoption("--shared")
    if given is None:
        pytest.skip("needs real data: run with --shared DIR or CONGENIAL_SHARED=DIR")
    return Path(given)


@pytest.fixture(scope="session")
def oracles() -> Path:
    """Numbers computed independently: by enumeration, exact rationals or 30-digit arithmetic."""
    return Path(__file__).parent / "oracles"


@pytest.fixture(scope="session", autouse=True)
def _without_charts() -> Iterator[None]:
    """Charts of commands, which no bundle has, are drawn where a test asks for `with_charts`."""
    from congenial.report import pictures

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "available", lambda: False)
        yield


@pytest.fixture
def with_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts of commands, for tests about them; without the extra `report` the test skips."""
    from congenial.report import pictures

    if not all(map(find_spec, ("altair", "vl_convert"))):
        pytest.skip("needs the extra 'report'")
    monkeypatch.setattr(pictures, "available", lambda: True)


@pytest.fixture(scope="module")
def short_bootstrap() -> Iterator[None]:
    """Few draws for the error of fitted laws, where it is not the point."""
    from congenial.mechanisms.distribution import sampling_error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling_error, "DRAWS", 19)
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium of the machine, or the one that CONGENIAL_BROWSER names; without one, skip."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    named = os.environ.get("CONGENIAL_BROWSER")
    path = named or next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(names)} is installed")
    quiet = ["--disable-gpu", "--disable-quic", "--disable-background-networking"]
    quiet += ["--no-sandbox", "--no-first-run", "--disable-component-update", "--disable-sync"]
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=path, args=quiet)
        yield opened
        opened.close()


@pytest.fixture
def attempt(record_property: Callable[[str, Any], None]) -> Callable[..., None]:
    """Report what a test attempted, as numbers under a name of docs/audit.py."""

    def report(part: str, **numbers: int) -> None:
        record_property("attempt", {"part": part, **numbers})

    return report


class Attempts:
    """Collects what the tests of a session attempted, from all workers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.run: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)  # also one that did not come as far as its report
        if report.when == "call" and not report.skipped:
            self.run.add(report.nodeid)
        if report.when == "teardown":  # everything is told by then
            for name, value in report.user_properties:
                if name == "attempt":
                    assert isinstance(value, dict)
                    self.rows.append({"passed": report.nodeid not in self.failed, **value})

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        told = {
            "run": len(self.run | self.failed),
            "failed": sorted(self.failed),
            "complete": exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED),
            "attempts": self.rows,
        }
        self.path.write_text(json.dumps(told, indent=1) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--attempts")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Attempts(Path(path)))
