"""Real processes that race for one budget, and processes killed at any moment of a release."""

from __future__ import annotations

import os
import random
import signal
import time
from fractions import Fraction
from pathlib import Path

import pytest

from congenial import Budget, Figures, Guarantee, Ledger, ReplaceOne, Schema
from congenial.errors import BudgetError, LedgerError
from congenial.ledger.stores import store as store_module
from congenial.privacy.description import Description
from tests.children import FORK, start

SEED = 20_240_611
KILLS = 15
SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "county": {"levels": ["A", "B", "C"]}})
EACH = Fraction(1, 10)  # what one release costs: two cells change by one, eps_cell = 1/20
DESCRIPTION = Description("plain", ("sex",), "double_geometric", EACH / 2, Figures(SCHEMA))
PROMISE = Guarantee.pure(EACH, under=ReplaceOne(SCHEMA))


def note(path: Path) -> None:
    """One draw has happened: one byte, written straight to the file."""
    handle = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    os.write(handle, b"x")
    os.close(handle)


def drawn(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def counts_every_draw(ledger: Ledger, draws: Path) -> bool:
    """The check of this file: no draw that happened is missing from what is spent."""
    entries = ledger.entries()
    marked = sum(entry.status in ("drawn", "committed", "abandoned") for entry in entries)
    counted = sum(entry.counted for entry in entries)
    return marked >= drawn(draws) and ledger.spent().epsilon == counted * EACH


# ---- races -------------------------------------------------------------------------------------


def compete(path: str, draws: Path, tries: int) -> None:
    ledger = Ledger.open(path, timeout=120)
    for _ in range(tries):
        try:
            reservation = ledger.reserve(DESCRIPTION, PROMISE, "race")
        except BudgetError:
            continue
        reservation.mark_drawn()
        note(draws)
        reservation.commit("d")


@pytest.mark.parametrize(
    ("processes", "tries", "allowed"),
    [
        (2, 4, 5),
        (4, 3, 7),
        pytest.param(16, 12, 100, marks=pytest.mark.audit),
    ],
)
def test_processes_racing_never_overspend(
    place: str, tmp_path: Path, processes: int, tries: int, allowed: int
) -> None:
    draws = tmp_path / "draws"
    Ledger.open(place, SCHEMA, budget=Budget(epsilon=allowed * EACH))
    running = [start(compete, place, draws, tries) for _ in range(processes)]
    for process in running:
        process.join(120)
    assert [process.exitcode for process in running] == [0] * processes
    ledger = Ledger.open(place)
    assert drawn(draws) == allowed
    assert [entry.status for entry in ledger.entries()] == ["committed"] * allowed
    assert ledger.spent().epsilon == allowed * EACH


def careless(path: str, draws: Path, ready: object) -> None:
    """Planted defect: the budget is checked first and the release recorded after."""
    ledger = Ledger.open(path, timeout=30)
    if ledger.preview(DESCRIPTION).allowed:
        ready.wait()  # type: ignore[attr-defined]
        note(draws)


def test_the_race_test_rejects_checking_before_recording(place: str, tmp_path: Path) -> None:
    draws = tmp_path / "draws"
    Ledger.open(place, SCHEMA, budget=Budget(epsilon=EACH))
    ready = FORK.Barrier(2)
    running = [start(careless, place, draws, ready) for _ in range(2)]
    for process in running:
        process.join(30)
    assert drawn(draws) == 2 > 1


def create(path: str, start: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    Ledger.open(path, SCHEMA, budget=Budget(epsilon=1), timeout=30)


def test_processes_creating_one_ledger_agree_on_it(place: str, tmp_path: Path) -> None:
    gate = FORK.Barrier(4)
    running = [start(create, place, gate) for _ in range(4)]
    for process in running:
        process.join(30)
    assert [process.exitcode for process in running] == [0] * 4
    assert [event.kind for event in Ledger.open(place).events()] == ["open", "budget"]
    assert len(list(tmp_path.iterdir())) <= 1  # no drafts are left


# ---- kill -9 -------------------------------------------------------------------------------------


def work_until_killed(path: str, draws: Path, seed: int) -> None:
    chance = random.Random(seed)
    ledger = Ledger.open(path, timeout=30)
    while True:
        with ledger.reserve(DESCRIPTION, PROMISE, "r") as reservation:
            if chance.random() < 0.2:
                continue  # given back
            reservation.mark_drawn()
            note(draws)
            if chance.random() < 0.8:
                reservation.commit("d")
            else:
                ledger.abandon(reservation.id)


def test_kill_at_random_moments_never_under_counts(place: str, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    path, draws = place, tmp_path / "draws"
    Ledger.open(path, SCHEMA)
    for kill in range(KILLS if place.endswith(".sqlite") else KILLS // 3):
        process = start(work_until_killed, path, draws, SEED + kill)
        while drawn(draws) == 0 and process.is_alive():  # a busy machine may start slowly
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.13))
        os.kill(process.pid, signal.SIGKILL)
        process.join(30)
        assert process.exitcode == -signal.SIGKILL
        ledger = Ledger.open(path)
        assert counts_every_draw(ledger, draws)
        assert len(ledger.pending()) <= 1  # what the killed process had in hand
        for entry in ledger.pending():
            ledger.abandon(entry.id)
    assert drawn(draws) > 0


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_when(path: str, draws: Path, moment: str) -> None:
    ledger = Ledger.open(path)
    if moment == "inside reserve":
        append = store_module.Log.append
        store_module.Log.append = lambda *told: (append(*told), die())  # type: ignore[assignment]
    reservation = ledger.reserve(DESCRIPTION, PROMISE, "r")
    if moment == "after reserve":
        die()
    if moment == "drawn without a mark":  # planted defect
        note(draws)
        die()
    if moment == "inside draw":
        append = store_module.Log.append
        store_module.Log.append = lambda *told: (append(*told), die())  # type: ignore[assignment]
    reservation.mark_drawn()
    if moment == "after mark":
        die()
    note(draws)
    if moment == "after draw":
        die()
    reservation.commit("d")
    die()


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("inside reserve", None),
        ("after reserve", "reserved"),
        ("inside draw", "reserved"),
        ("after mark", "drawn"),
        ("after draw", "drawn"),
        ("after commit", "committed"),
        ("drawn without a mark", "reserved"),
    ],
)
def test_kill_at_each_step(place: str, tmp_path: Path, moment: str, status: str | None) -> None:
    path, draws = place, tmp_path / "draws"
    Ledger.open(path, SCHEMA, budget=Budget(epsilon=EACH))
    process = start(die_when, path, draws, moment)
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    ledger = Ledger.open(path)
    assert [entry.status for entry in ledger.entries()] == ([] if status is None else [status])
    # The negative control: drawing before `mark_drawn` is what the check must reject.
    assert counts_every_draw(ledger, draws) == (moment != "drawn without a mark")
    assert ledger.preview(DESCRIPTION).allowed == (status is None)


def test_a_mark_that_fails_says_what_stays_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is drawn, but the share is counted until somebody gives it up."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    ledger = Ledger.open(tmp_path / "ledger.sqlite", SCHEMA, budget=Budget(epsilon=1))
    said = r"No space left.*Nothing was drawn now, but release \w+ stays counted"
    with ledger.reserve(DESCRIPTION, PROMISE, "r") as reservation, monkeypatch.context() as patched:
        patched.setattr(store_module.Log, "append", full)
        with pytest.raises(LedgerError, match=said):
            reservation.mark_drawn()
    (entry,) = ledger.pending()
    assert (entry.status, entry.counted) == ("reserved", True)
    ledger.abandon(entry.id)  # the remedy
    assert ledger.spent().epsilon == 0
