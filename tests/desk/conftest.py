"""Pages of the desk are waited for: how long one takes depends on the machine that tests run on."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("congenial.desk.visit.PATIENCE", 60.0)
