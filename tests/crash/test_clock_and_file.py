"""Clocks that jump, and ledgers that were cut, flipped or swapped: noticed, never read as less."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from congenial.errors import LedgerError
from congenial.ledger.ledger import Ledger
from congenial.ledger.stores import store
from congenial.publication import bundle
from tests.crash.population import EACH, Population

SEED = 7_301


# ---- clocks --------------------------------------------------------------------------------------


class Jumping:
    """A clock that is somewhere else whenever it is read: the year 1 to the year 9999."""

    chance = random.Random(SEED)

    @classmethod
    def now(cls, zone: object) -> datetime:
        # `verify` refuses days that are still to come
        days = cls.chance.randrange(datetime.now(UTC).toordinal() - 2)
        return datetime(1, 1, 1, tzinfo=UTC) + timedelta(days=days)


def test_a_jumping_clock_changes_no_account(
    populate: Callable[..., Population], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "datetime", Jumping)
    monkeypatch.setattr(bundle, "datetime", Jumping)
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=4)
    for name in ("a", "b", "c"):
        population.quick_release(name)
        assert population.judge() == []
    times = [event.at for event in population.ledger.events()]
    assert times != sorted(times)  # the clock did jump
    assert population.ledger.spent().epsilon == 4 * EACH
    with pytest.raises(LedgerError):
        population.quick_release("beyond")


# ---- damaged files -------------------------------------------------------------------------------


@pytest.fixture
def spent(populate: Callable[..., Population], tmp_path: Path) -> Population:
    """A population whose whole budget is spent."""
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=3)
    population.quick_release("a")
    population.quick_release("b")
    return population


def reads_as(place: Path) -> object:
    """What the ledger says is spent and its last digest; or None where it is refused in words."""
    try:
        ledger = Ledger.open(place)
        return ledger.spent().epsilon, ledger.events()[-1].digest
    except LedgerError as error:
        return None if error.remedy else "refused without a remedy"


@pytest.mark.parametrize("cuts", [40, pytest.param(1500, marks=pytest.mark.audit)])
def test_a_truncated_ledger_is_refused_with_what_to_do(spent: Population, cuts: int) -> None:
    place = Path(spent.place)
    whole = place.read_bytes()
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    for keep in [0, 1, 100, *(chance.randrange(len(whole)) for _ in range(cuts))]:
        place.write_bytes(whole[:keep])
        assert reads_as(place) is None, keep
        assert place.read_bytes() == whole[:keep]  # nobody made it worse
    result = CliRunner().invoke(app, ["ledger", "show", str(place)])
    assert result.exit_code == LedgerError.exit_code
    assert "restore the last good copy" in " ".join(result.stderr.split()).lower()
    with pytest.raises(LedgerError, match=r"[Rr]estore"):
        spent.release("c")
    assert not (spent.folder / "bundles" / "c").exists()
    place.write_bytes(whole)
    assert spent.judge() == []


@pytest.mark.parametrize("flips", [60, pytest.param(3000, marks=pytest.mark.audit)])
def test_a_flipped_byte_is_noticed_or_means_nothing(spent: Population, flips: int) -> None:
    place = Path(spent.place)
    whole = place.read_bytes()
    truth = reads_as(place)
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    noticed = 0
    for _ in range(flips):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 4, 64))):
            damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        place.write_bytes(damaged)
        found = reads_as(place)
        assert found in (None, truth)
        noticed += found is None
    assert noticed > flips // 3


def test_a_ledger_that_lost_its_journal_is_noticed_or_whole(spent: Population) -> None:
    """A copy taken without the journal in the middle of a write: the file before or after it."""
    place = Path(spent.place)
    truth = reads_as(place)
    ledger = Ledger.open(place)
    with ledger._store.writing() as log:
        log.append("budget", None, {"epsilon": "9", "delta": None, "rho": None})
        log._connection.exec_driver_sql("PRAGMA cache_spill = 1")
        middle = place.read_bytes()
    after = reads_as(place)
    place.write_bytes(middle)
    assert reads_as(place) in (None, truth, after)
