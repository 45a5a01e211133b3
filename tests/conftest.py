"""Options of the whole suite."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from hypothesis import settings

from tests.plain_reports import plain_reports

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


@pytest.fixture
def without_pictures() -> Iterator[None]:
    """Reports with tables alone; name it in `usefixtures` where pictures are not the point."""
    with plain_reports():
        yield


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
