"""A ledger that went missing, however it is spelled, is not a fresh budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial.errors import LedgerError
from congenial.publication import workflow
from tests.crash.population import Population


@pytest.mark.parametrize("again", ["ledger.sqlite", "./ledger.sqlite", "other.sqlite"])
def test_figures_recorded_in_a_ledger_refuse_a_fresh_one(tmp_path: Path, again: str) -> None:
    folder = tmp_path / "population"
    folder.mkdir()
    rows = "".join(f"{i},{'AB'[i % 2]},{'fm'[i % 3 % 2]},{i}\n" for i in range(60))
    (folder / "people.csv").write_text("id,county,sex,age\n" + rows)
    workflow.publish(Population(folder, "ledger.sqlite", 3).plan("first"))
    (folder / "ledger.sqlite").unlink()
    plan = Population(folder, again, 3).plan("first")
    for call in (lambda: workflow.publish(plan), lambda: workflow.release(plan, "first")):
        with pytest.raises(LedgerError, match="what was spent is unknown"):
            call()
    assert not (folder / again).exists()
