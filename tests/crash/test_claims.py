"""Several runs into one folder, volumes of every size, and the order in which files reach the disk:
nothing is drawn that cannot be kept, and nothing that was drawn is lost or paid for twice.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from congenial.errors import BundleError, CongenialError
from congenial.ledger.ledger import Reservation
from congenial.publication import bundle, claim, drawing
from congenial.report.render import stated
from tests.children import start
from tests.crash.population import EACH, Population

RACERS = 8
AUDIT = pytest.mark.audit


def race(population: Population, gate: Path, name: str) -> None:
    """Wait for the gate, then release; a loser must say that it drew nothing."""
    while not gate.exists():
        pass
    try:
        population.quick_release(name)
    except BundleError as error:
        os._exit(3 if "othing was drawn" in str(error) else 1)


@pytest.mark.parametrize("rounds", [1, pytest.param(25, marks=AUDIT)])
def test_eight_releases_into_one_folder_draw_once(
    populate: Callable[..., Population], tmp_path: Path, rounds: int
) -> None:
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=1000)
    _ = population.ready
    for i in range(rounds):
        gate = tmp_path / f"gate{i}"
        racing = [start(race, population, gate, f"same{i}") for _ in range(RACERS)]
        gate.touch()
        for process in racing:
            process.join(60)
        assert sorted(process.exitcode or 0 for process in racing) == [0] + [3] * (RACERS - 1)
        assert population.judge() == []
        assert population.draws == i + 2  # the first release, and one of each race
        assert population.ledger.spent().epsilon == (i + 2) * EACH


def test_folders_made_for_nothing_are_removed(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    with claim.claimed(tmp_path / "before" / "new" / "newer" / "out"):
        assert (tmp_path / "before" / "new" / "newer").is_dir()
    assert list(tmp_path.iterdir()) == [tmp_path / "before"]  # what was there stays
    assert list((tmp_path / "before").iterdir()) == []
    with claim.claimed(tmp_path / "new" / "out"):
        (tmp_path / "new" / "out").mkdir()
    assert (tmp_path / "new" / "out").is_dir()


def test_a_crashed_run_leaves_no_claim(tmp_path: Path) -> None:
    def die() -> None:
        with claim.claimed(tmp_path / "out"):
            os._exit(9)

    process = start(die)
    process.join(60)
    out = tmp_path / "out"
    with (
        claim.claimed(out),
        pytest.raises(BundleError, match="another run"),
        claim.claimed(out),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


# ---- volumes of every size -----------------------------------------------------------------------


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a volume of so many kB; skipped where the tests may not."""
    place = tmp_path / "volume"
    place.mkdir()
    mounted = []

    def mount(size: int) -> Path:
        if mounted:
            subprocess.run(["umount", place], check=True)
            mounted.clear()
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(place)]
        if subprocess.run(words, capture_output=True).returncode:
            pytest.skip("volumes cannot be mounted here")
        mounted.append(place)
        return place

    yield mount
    if mounted:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize(
    "sizes", [(64, 4000), pytest.param((*range(16, 400, 12), *range(400, 4400, 100)), marks=AUDIT)]
)
def test_a_full_volume_loses_nothing_that_was_drawn(
    populate: Callable[..., Population],
    tmp_path: Path,
    volume: Callable[[int], Path],
    sizes: tuple[int, ...],
) -> None:
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=1000)
    done = 0
    for size in sizes:
        before = population.draws
        told = ""
        try:
            population.quick_release(f"v{size}", volume(size))
            done += 1
        except CongenialError as error:
            told = str(error)
        assert population.draws == before + (not told)
        assert not told or "Nothing was drawn" in told
        assert len(population.ledger.pending()) == 0
    assert 0 < done < len(sizes)


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


SPENT = rf"'late' \(epsilon = {float(EACH):g}\) was drawn and its cost is spent.*ledger finish"


def test_a_disk_that_fills_after_the_draw(
    populate: Callable[..., Population], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody is told that it is spent and kept; it is finished, and spent once."""
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=10)
    with monkeypatch.context() as patch:
        patch.setattr(bundle, "write_synced", full)
        with pytest.raises(BundleError, match=SPENT) as told:
            population.quick_release("late")
        assert "--out" not in str(told.value)
        with pytest.raises(BundleError, match=r"paid for.*Nothing was drawn.*ledger finish"):
            population.quick_release("late")
    kept = population.folder / "bundles" / ".late.drawn"
    assert kept.stat().st_mode & 0o777 == 0o600
    spent = population.ledger.spent()
    (done,) = drawing.finish(population.ledger, kept.parent, lambda _, words: stated(words))
    assert (done.name, population.draws, population.ledger.spent()) == ("late", 2, spent)
    assert not kept.exists()
    assert population.judge() == []


def watch_syncs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and folders that are waited for, in order."""
    waited: list[Path] = []
    fsync = os.fsync

    def synced(handle: int) -> None:
        waited.append(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    return waited


def test_new_folders_above_a_bundle_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = watch_syncs(monkeypatch)
    with claim.claimed(tmp_path / "new" / "newer" / "out"):
        assert waited == [tmp_path / "new", tmp_path]
    with claim.claimed(tmp_path / "out"):
        assert len(waited) == 2


def test_parts_that_cannot_be_linked_are_copied_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part").write_bytes(b"counts")
    (tmp_path / "partial").mkdir()
    release: Any = SimpleNamespace(
        part_files={"table/part": SimpleNamespace(path=tmp_path / "part", digest="")}
    )
    monkeypatch.setattr(os, "link", full)
    waited = watch_syncs(monkeypatch)
    bundle._link_parts(release, tmp_path / "partial")
    place = tmp_path / "partial" / "table"
    assert waited == [place / "part", place]


def test_bundle_and_folders_are_on_disk_before_the_commit(
    populate: Callable[..., Population], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    population = populate(str(tmp_path / "ledger.sqlite"), allowed=10)
    steps: list[str] = []
    fsync, rename, commit = os.fsync, Path.rename, Reservation.commit

    def synced(handle: int) -> None:
        steps.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().name}")
        fsync(handle)

    def renamed(path: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(path, target)

    def committed(reservation: Reservation, digest: str) -> None:
        steps.append("commit")
        commit(reservation, digest)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Reservation, "commit", committed)
    population.quick_release("synced")
    files = sorted(path.name for path in (population.folder / "bundles" / "synced").iterdir())
    kept, written = steps[:3], steps[3:]
    assert kept == ["sync .synced.drawing", "rename", "sync bundles"]
    assert sorted(written[: len(files)]) == [f"sync {name}" for name in files]
    assert written[len(files) :] == ["sync .synced.partial", "rename", "sync bundles", "commit"]
