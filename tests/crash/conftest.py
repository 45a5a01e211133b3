"""Places for ledgers, shared with the ledger's own tests, and reports without pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.population import Population
from tests.ledger.conftest import make_schema, place, postgres  # noqa: F401 - fixtures
from tests.plain_reports import plain_reports


@pytest.fixture(autouse=True)
def without_pictures() -> Iterator[None]:
    """A release takes a tenth of a second without them."""
    with plain_reports():
        yield


@pytest.fixture
def populate(tmp_path: Path) -> Callable[..., Population]:
    """Make a population whose ledger is at a place: populate(place, allowed=5)."""

    def make(where: str, allowed: int) -> Population:
        return Population.found(tmp_path / "population", where, allowed)

    return make
