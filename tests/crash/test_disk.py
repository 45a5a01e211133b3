"""Full disks: at every write of `publish` and `release`, for real or injected."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from congenial.errors import CongenialError
from congenial.ledger.stores.sqlite import SqliteStore
from congenial.publication import bundle, claim, workflow
from tests.children import start
from tests.crash.population import Population

MANY = 1000
FAILED = 3  # exit code of a run that ended with one of our errors and a remedy
SPENT = 4  # the same, and the error says what is spent


def end_in_words(work: Callable[[], None]) -> None:
    """Run; leave with FAILED or SPENT where an error was raised on purpose and says what to do."""
    try:
        work()
    except CongenialError as error:
        spent = any(word in error.what for word in ("spent", "counted"))
        known = error.remedy and error.__suppress_context__
        os._exit((SPENT if spent else FAILED) if known else 1)
    except BaseException:  # noqa: BLE001 - a process of its own, which ends here
        traceback.print_exc()
        os._exit(1)


def finish(work: Callable[..., None], *args: object) -> int | None:
    process = start(work, *args)
    process.join(60)
    return process.exitcode


# ---- a real limit on the size of files: what is beyond it fails as on a full disk ----------------


def with_room(population: Population, room: int, name: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    def work() -> None:
        workflow.publish(population.plan(name, 2))
        population.quick_release(name)

    end_in_words(work)


ROOMS = (0, 2000, 5000, 40_000)


@pytest.mark.parametrize(
    "rooms", [ROOMS, pytest.param(tuple(range(0, 60_000, 512)), marks=pytest.mark.audit)]
)
def test_files_that_cannot_grow(
    populate: Callable[..., Population], tmp_path: Path, rooms: tuple[int, ...]
) -> None:
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=MANY)
    codes = []
    for i, room in enumerate(rooms):
        codes.append(finish(with_room, population, room, f"d{i}"))
        assert population.judge() == []
        population.recover()
        left = [path.name for path in (population.folder / "bundles").iterdir()]
        assert not any(name.startswith(".") for name in left)  # finished, or removed
    assert codes[0] == FAILED
    assert set(codes) <= {0, FAILED, SPENT}
    population.release("afterwards")
    assert population.judge() == []


# ---- one failing write at a time -----------------------------------------------------------------


class Failing:
    """The n-th write to a file or commit of a database fails with "no space left"; for good, what
    comes after it fails too, removing and looking included.
    """

    def __init__(self, number: int, *, for_good: bool = False) -> None:
        self.left = number
        self.for_good = for_good

    def plant(self) -> None:
        """In a process of its own: nothing is put back."""
        for name in ("mkdir", "write_bytes", "write_text", "rename", "replace", "hardlink_to"):
            setattr(Path, name, self._fails(getattr(Path, name)))
        if self.for_good:
            for name in ("unlink", "rmdir", "stat"):
                setattr(Path, name, self._fails(getattr(Path, name)))
            os.fsync = self._fails(os.fsync)  # type: ignore[assignment]
        bundle.write_synced = self._fails(bundle.write_synced)
        claim._allocate = self._fails(claim._allocate)
        claim.Claim.keep = self._fails(claim.Claim.keep)  # type: ignore[method-assign]
        connect = SqliteStore._connect
        SqliteStore._connect = lambda store: self._connection(connect(store))  # type: ignore[method-assign, assignment]

    def _now(self) -> bool:
        self.left -= 1
        return self.left <= 0 if self.for_good else self.left == 0

    def _fails(self, write: Callable[..., object]) -> Callable[..., object]:
        def attempt(*args: object, **kwargs: object) -> object:
            if self._now():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(*args, **kwargs)

        return attempt

    def _connection(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """SQLite finds the disk full where it writes: a limit on pages, for one transaction."""
        if self._now():
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection


def with_a_failing_write(population: Population, number: int, name: str) -> None:
    failing = Failing(number)
    failing.plant()

    def work() -> None:
        workflow.publish(population.plan(name, number + 2))
        population.quick_release(name)

    end_in_words(work)
    os._exit(0 if failing.left <= 0 else 9)  # 9: there are fewer writes than that


def with_a_disk_that_fails_for_good(population: Population, number: int, name: str) -> None:
    assert population.ready  # the data are read before the disk fails
    failing = Failing(number, for_good=True)
    failing.plant()
    end_in_words(lambda: population.quick_release(name))
    os._exit(0 if failing.left <= 0 else 9)


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.audit)])
def test_every_write_fails_once(
    populate: Callable[..., Population], tmp_path: Path, every: int
) -> None:
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=MANY)
    code, number, failed = 0, 1, 0
    while code != 9:
        code = finish(with_a_failing_write, population, number, f"w{number}") or 0
        assert code in (0, FAILED, SPENT, 9), number
        assert population.judge() == [], number
        failed += code in (FAILED, SPENT)
        population.recover()
        number += every
    assert failed > 0
    print(f"{number - every} writes, {failed} ended in words")
    population.release("afterwards")
    assert population.judge() == []


def test_a_new_ledger_on_a_full_disk_is_not_there(tmp_path: Path) -> None:
    """Nothing half-made stays where a ledger would be looked for."""

    def found() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
        end_in_words(lambda: Population.found(tmp_path / "p", str(tmp_path / "l.sqlite"), 3))

    assert finish(found) == FAILED
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    assert [path.name for path in (tmp_path / "p").iterdir()] == ["people.csv"]


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.audit)])
def test_a_disk_that_fails_for_good(
    populate: Callable[..., Population], tmp_path: Path, every: int
) -> None:
    """What is spent is said, whatever clean-up does; nothing that was spent goes without a word."""
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=MANY)
    code, number, said = 0, 1, 0
    while code != 9:
        before = population.draws
        code = finish(with_a_disk_that_fails_for_good, population, number, f"w{number}") or 0
        pending = population.ledger.pending()
        print(number, code, population.draws - before, [one.status for one in pending])
        assert code in (0, FAILED, SPENT, 9), number
        assert (code == SPENT) == bool(pending), number
        assert population.judge() == [], number
        said += code == SPENT
        population.recover()
        number += every
    assert said > 0
    print(f"{number - every} writes, {said} said what is spent")
