"""What opening a ledger costs does not grow faster than its history."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial.figures.figures import Figures
from congenial.ledger.ledger import Ledger, append_reserve
from congenial.privacy.description import _support
from tests.ledger.ledgers import COUNTIES, SCHEMA, described, promise


def test_figures_that_releases_share_are_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite", SCHEMA)
    ledger.publish(COUNTIES)
    law, words = described("county", "sex", support=ledger.figures), promise(ledger)
    with ledger._store.writing() as log:
        for i in range(60):
            log.append("draw", append_reserve(log, law, words, f"r{i}", ""), {})
    checked = []
    usual = Figures.refuse_clash
    monkeypatch.setattr(Figures, "refuse_clash", lambda one: (checked.append(1), usual(one)))
    _support.cache_clear()
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert len(again.entries()) == 60
    assert [entry.name for entry in again.entries()] == [f"r{i}" for i in range(60)]
    assert len(checked) == 2  # the published figures, and those of all releases
