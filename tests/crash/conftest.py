"""Places for ledgers, shared with the ledger's own tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.population import Population
from tests.ledger.conftest import make_schema, place, postgres  # noqa: F401 - fixtures


@pytest.fixture
def populate(tmp_path: Path) -> Callable[..., Population]:
    """Make a population whose ledger is at a place: populate(place, allowed=5)."""

    def make(where: str, allowed: int) -> Population:
        return Population.found(tmp_path / "population", where, allowed)

    return make
