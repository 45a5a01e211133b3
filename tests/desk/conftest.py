"""What tests of the desk share: its folder, requests that are counted, and patience.

Pages are waited for: how long one takes depends on the machine that tests run on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.desk.desks import Client, Colleague, entered, write_folder


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("congenial.desk.visit.PATIENCE", 60.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A desk's folder with a plan and its data."""
    return write_folder(tmp_path / "desk")


@pytest.fixture
def at_own_desk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Colleague]:
    """Somebody who opens the same folder at a desk of their own."""
    return lambda who: Colleague(entered(folder).client, who, monkeypatch)


@pytest.fixture
def counted_requests(attempt: Callable[..., None]) -> Iterator[None]:
    """Requests are told to the audit."""
    before = Client.sent
    yield
    attempt("desk", requests=Client.sent - before)
