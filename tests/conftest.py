"""Options of the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shared",
        default=os.environ.get("CONGENIAL_SHARED"),
        help="folder with data/ and oracles/; tests that need it skip without it",
    )


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if "spark" in getattr(item, "fixturenames", ()) or parameters.get("engine") == "spark":
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path:
    """The folder of real data and oracles."""
    given = request.config.getoption("--shared")
    if given is None:
        pytest.skip("needs real data or oracles: run with --shared DIR or CONGENIAL_SHARED=DIR")
    return Path(given)
