"""Processes killed with SIGKILL at random moments of `publish` and `release`, and at every step."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from congenial.publication import bundle, drawing, workflow
from tests.children import start
from tests.crash.population import Population, work_until_killed

SEED = 20_250_117
AUDIT = pytest.mark.audit
MANY = 10_000  # releases the budget allows: it is not what ends these runs


def length_of_a_run(release: Callable[[str], None]) -> float:
    """Seconds from the start of a process to the end of its first release."""
    began = time.perf_counter()
    process = start(release, "timed")
    process.join(60)
    return time.perf_counter() - began


def test_draws_of_both_kinds_are_noticed(
    populate: Callable[..., Population], tmp_path: Path
) -> None:
    """What is judged below rests on it: whole releases went unnoticed for a while."""
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=MANY)
    before = population.draws
    population.quick_release("quick")
    assert population.draws == before + 1
    population.release("whole")
    assert population.draws == before + 2


@pytest.mark.parametrize(
    ("place", "kills", "whole", "seed"),
    [
        ("sqlite", 16, False, SEED),
        ("postgresql", 4, False, SEED),
        *(pytest.param("sqlite", 40, True, SEED + i, marks=AUDIT) for i in range(6)),
        *(pytest.param("sqlite", 40, False, SEED - i, marks=AUDIT) for i in range(4)),
        *(pytest.param("postgresql", 40, True, SEED + i, marks=AUDIT) for i in range(4)),
    ],
    indirect=["place"],
)
def test_killed_at_random_moments(
    populate: Callable[..., Population],
    attempt: Callable[..., None],
    place: str,
    kills: int,
    whole: bool,
    seed: int,
) -> None:
    print(f"seed {seed}")
    attempt("kills", kills=kills)
    chance = random.Random(seed)
    population = populate(place, allowed=MANY)
    release = population.release if whole else population.quick_release
    longest = 2 * length_of_a_run(release)
    found: Counter[str] = Counter()
    for kill in range(kills):
        before = population.draws
        process = start(work_until_killed, population, release, 1000 * kill, seed + kill)
        time.sleep(chance.uniform(0.0, longest))
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        assert population.judge() == []
        pending = population.ledger.pending()
        assert len(pending) <= 1  # what the killed process had in hand
        found.update(entry.status for entry in pending)
        population.recover()
        # About every second run is to come as far as a draw, however busy the machine is.
        longest *= 1 / 1.2 if population.draws > before else 1.2
    assert population.judge() == []
    print(f"{kills} kills, {population.draws} draws, found pending: {dict(found)}")
    assert population.draws > kills // 10  # the runs came far enough to be worth killing
    release("afterwards")
    assert population.judge() == []


# ---- every step --------------------------------------------------------------------------------

WRITES = ("open", "os.mkdir", "os.rename", "os.remove", "sqlite3.connect", "os.link", "os.rmdir")


def die_at(population: Population, step: int) -> None:
    """Run, and be killed at the step-th time that a file or a database is touched."""
    left = step

    def touch(event: str, _: object) -> None:
        nonlocal left
        if event in WRITES:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(touch)
    workflow.publish(population.plan("first", step + 1))
    population.quick_release(f"s{step}")


def sweep(populate: Callable[..., Population], place: str, every: int) -> tuple[int, Population]:
    """Kill a run at its first, second, ... step until one gets through; count the kills."""
    population = populate(place, allowed=MANY)
    step = 1
    while True:
        process = start(die_at, population, step)
        process.join(60)
        assert population.judge() == [], step
        population.recover()
        if process.exitcode == 0:
            return step, population
        assert process.exitcode == -signal.SIGKILL
        step += every


@pytest.mark.parametrize(
    ("place", "every"),
    [("sqlite", 13), pytest.param("sqlite", 1, marks=pytest.mark.audit)],
    indirect=["place"],
)
def test_killed_at_every_touch_of_a_file(
    populate: Callable[..., Population], attempt: Callable[..., None], place: str, every: int
) -> None:
    steps_taken, population = sweep(populate, place, every)
    attempt("kills", kills=steps_taken // every)
    print(f"{steps_taken} steps, {population.draws} draws")
    assert steps_taken > 20
    # What a run leaves behind is under hidden names, never under a bundle's own.
    left = [path.name for path in (population.folder / "bundles").iterdir()]
    whole = [name for name in left if not name.startswith(".")]
    assert len(whole) <= population.draws


# ---- negative controls: the same judge rejects orders that are wrong ----------------------------


def draw_first(population: Population) -> None:
    """Planted defect: noise is drawn before the ledger says so."""
    population.note()
    os.kill(os.getpid(), signal.SIGKILL)


def name_first(population: Population) -> None:
    """Planted defect: the bundle gets its name before the draw is on record."""
    write = bundle.write

    def write_and_die(*told: object) -> bundle.PreparedBundle:
        prepared = write(*told)  # type: ignore[arg-type]
        prepared.publish()
        os.kill(os.getpid(), signal.SIGKILL)
        return prepared

    bundle.write = write_and_die  # type: ignore[assignment]
    drawing.Ledger.reserve = _reserve_nothing  # type: ignore[method-assign, assignment]
    workflow.release(population.plan("planted"), "planted")


class _Nothing:
    id = ""

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def mark_drawn(self) -> None:
        return None

    def commit(self, _: str) -> None:
        return None


def _reserve_nothing(*_: object, **__: object) -> _Nothing:
    return _Nothing()


@pytest.mark.parametrize(
    ("defect", "fault"),
    [(draw_first, "noise was drawn without a record"), (name_first, "has no record")],
)
def test_the_judge_rejects_planted_defects(
    populate: Callable[..., Population],
    tmp_path: object,
    defect: Callable[[Population], None],
    fault: str,
) -> None:
    population = populate(f"{tmp_path}/ledger.sqlite", allowed=3)
    process = start(defect, population)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    (found,) = population.judge()
    assert fault in found
