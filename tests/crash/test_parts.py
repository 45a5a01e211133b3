"""A nation by parts through power cuts: what was not synced is lost or empty, and the next run
either publishes what an undisturbed one would have, or refuses in words with nothing lost.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from congenial import Ledger, Plan, SeededRandomness, verify
from congenial.errors import BundleError
from congenial.kinds import parted_run
from congenial.ledger.ledger import Reservation
from congenial.publication import bundle as bundles
from congenial.publication import drawing_by_parts, workflow
from congenial.publication.claim import run_folder
from tests.children import start
from tests.kinds.nation_plan import spent, written

SEED = 4
RUN = Path("runs/nation")
SEEDED = "drawn from the system's randomness"  # what `verify` says of a seeded release


class Disk:
    """Which contents and which names have reached the disk, by the calls of fsync."""

    def __init__(self) -> None:
        self.contents: dict[int, tuple[int, int]] = {}
        self.names: dict[int, set[tuple[str, int]]] = {}

    def watch(self) -> None:
        """Take note of every fsync of this process from now on."""
        real = os.fsync

        def fsync(handle: Any) -> None:
            real(handle)
            found = os.fstat(handle)
            if stat.S_ISDIR(found.st_mode):
                with os.scandir(handle) as names:
                    self.names[found.st_ino] = {(one.name, one.inode()) for one in names}
            else:
                self.contents[found.st_ino] = (found.st_size, found.st_mtime_ns)

        os.fsync = fsync

    def unsynced(self, folder: Path, only: tuple[str, ...] = ()) -> Iterator[tuple[Path, str]]:
        """What a power cut may do: names that are gone, files that are empty."""
        for one in sorted(folder.iterdir()):
            if only and one.name not in only:
                continue
            found = one.stat()
            if (one.name, found.st_ino) not in self.names.get(folder.stat().st_ino, set()):
                yield one, "lost"
            if one.is_dir():
                yield from self.unsynced(one)
            elif self.contents.get(found.st_ino) != (found.st_size, found.st_mtime_ns):
                yield one, "empty"


def harm(path: Path, how: str) -> None:
    """Lose a file or a folder, or empty a file, if it is still there."""
    if how == "lost" and path.is_dir():
        shutil.rmtree(path)
    elif how == "lost":
        path.unlink(missing_ok=True)
    elif path.exists():
        os.truncate(path, 0)


STAGES: dict[str, tuple[Any, str, bool]] = {  # where the power fails: before or after which call
    "after the counts": (parted_run, "count_parts", True),
    "after the preparation": (parted_run.NationRun, "prepare", True),
    "before the mark": (Reservation, "mark_drawn", False),
    "after the mark": (Reservation, "mark_drawn", True),
    "after a part": (parted_run, "draw_part", True),
    "before a file": (parted_run, "finish_part", False),
    "after a file": (parted_run, "finish_part", True),
    "before the bundle": (bundles, "write", False),
    "before the rename": (bundles.PreparedBundle, "publish", False),
    "after the rename": (bundles.PreparedBundle, "publish", True),
    "after the commit": (Reservation, "commit", True),
}
QUICK = ("after the preparation", "after a part", "after a file")
EACH = [one if one in QUICK else pytest.param(one, marks=pytest.mark.audit) for one in STAGES]


def cut_off(folder: Path, stage: str) -> Disk:
    """Release in a process that is killed at a stage; what had reached the disk by then."""
    where, name, after = STAGES[stage]
    real, disk = getattr(where, name), Disk()
    note = folder / "disk"

    def die(*given: Any, **named: Any) -> None:
        if after:
            real(*given, **named)
        note.write_bytes(pickle.dumps(disk))
        os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        setattr(where, name, die)
        disk.watch()
        released(folder)

    process = start(run)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    found: Disk = pickle.loads(note.read_bytes())
    note.unlink()
    return found


def released(folder: Path) -> dict[str, Any]:
    """Release from a seed; the digests of all files but report and citation."""
    plan = Plan.load(folder / "plan.toml")
    done = workflow.release(plan, "nation", randomness=SeededRandomness(SEED))
    return numbers_in(done.folder)


def numbers_in(folder: Path) -> dict[str, Any]:
    """The digests of a bundle's files, which must be whole."""
    assert [one.what for one in verify(folder) if not one.holds] == [SEEDED]
    index = bundles.read_index(folder)
    return {"folders": index["folders"], "files": index["files"]}


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan whose figures are published."""
    plan = written(tmp_path_factory.mktemp("ready"))
    workflow.publish(Plan.load(plan))
    return plan.parent


@pytest.fixture(scope="module")
def undisturbed(ready: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return released(copied(ready, tmp_path_factory.mktemp("undisturbed")))


def copied(folder: Path, to: Path) -> Path:
    """A copy with the times of its files, by which a run knows its data."""
    return Path(shutil.copytree(folder, to, symlinks=True, dirs_exist_ok=True))


@pytest.mark.parametrize("stage", EACH)
def test_a_power_cut_changes_nothing(
    ready: Path, undisturbed: dict[str, Any], tmp_path: Path, stage: str
) -> None:
    """Everything unsynced is lost, or is empty, or one of it is: four kinds of power cut."""
    at_stage = copied(ready, tmp_path / "cut")
    disk = cut_off(at_stage, stage)
    harms = [
        (one.relative_to(at_stage), how)
        for one, how in disk.unsynced(at_stage, ("runs", "bundles"))
        if not one.name.endswith(".claim")
    ]
    together = [harms, [(one, "empty") for one, how in harms if how == "empty"]]
    for number, cut in enumerate([[], *together, *([one] for one in harms)]):
        here = copied(at_stage, tmp_path / str(number))
        for path, how in cut:
            harm(here / path, how)
        if stage == "after the commit":
            with pytest.raises(BundleError, match="already exists"):
                released(here)
            assert numbers_in(here / "bundles" / "nation") == undisturbed
        else:
            assert released(here) == undisturbed, cut
        assert spent(Plan.load(here / "plan.toml")) == ["committed"], cut
        assert not (here / RUN).exists()


@pytest.mark.parametrize("how", ["lost", "empty"])
def test_whatever_is_damaged_is_made_again(
    ready: Path, undisturbed: dict[str, Any], tmp_path: Path, how: str
) -> None:
    """Any one file of the private folder, synced or not; run.json alone cannot be made again."""
    at_stage = copied(ready, tmp_path / "cut")
    cut_off(at_stage, "after a file")
    files = sorted(one for one in (at_stage / RUN).rglob("*") if one.is_file())
    kinds = {one.relative_to(at_stage / RUN).parts[0] for one in files}
    assert {"counts", "drawn", "parts", "done", "run.json"} <= kinds
    for number, file in enumerate(files):
        here = copied(at_stage, tmp_path / str(number))
        harm(here / file.relative_to(at_stage), how)
        if file.name != "run.json":
            assert released(here) == undisturbed, file
            continue
        before = sorted((here / RUN).rglob("*"))
        with pytest.raises(BundleError, match=r"run\.json.*Nothing was drawn or removed"):
            released(here)
        assert sorted((here / RUN).rglob("*")) == before
        assert spent(Plan.load(here / "plan.toml")) == ["drawn"]
        shutil.copy2(file, here / RUN / "run.json")
        assert released(here) == undisturbed


# ---- what is not there, and what is not known ---------------------------------------------------


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan without figures: nothing published says how many people there are."""
    return written(tmp_path_factory.mktemp("bare"), publish="").parent


@pytest.fixture(scope="module")
def begun(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with one part drawn."""
    folder = copied(bare, tmp_path_factory.mktemp("begun"))
    cut_off(folder, "after a part")
    return folder


@pytest.fixture(scope="module")
def expected(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return released(copied(bare, tmp_path_factory.mktemp("expected")))


def test_the_people_of_a_state_are_not_lost_with_its_counts(
    begun: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    here = copied(begun, tmp_path / "here")
    shutil.rmtree(here / RUN / "counts" / "part=1")
    assert released(here) == expected


def test_nothing_private_is_among_the_bundles(begun: Path) -> None:
    assert [one.name for one in (begun / "bundles").iterdir()] == [".nation.claim"]
    assert (begun / RUN / "run.json").exists()


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of the private folder."""
    files = sorted(one for one in (folder / RUN).rglob("*") if one.is_file())
    return {str(one.relative_to(folder)): one.read_bytes() for one in files}


def test_a_paid_run_is_kept_when_another_ledger_is_named(
    begun: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    here = copied(begun, tmp_path / "here")
    before, text = files_of(here), (here / "plan.toml").read_text()
    (here / "plan.toml").write_text(text.replace("[budget]", '[budget]\nledger = "other.sqlite"'))
    with pytest.raises(
        BundleError, match=r"no such release.*Nothing was drawn or removed"
    ) as reason:
        released(here)
    assert "ledger.sqlite" in reason.value.what
    assert "other.sqlite" in reason.value.what
    assert files_of(here) == before
    assert spent(Plan.load(here / "plan.toml")) == []
    (here / "plan.toml").write_text(text)
    assert released(here) == expected
    assert spent(Plan.load(here / "plan.toml")) == ["committed"]


def test_a_paid_run_is_kept_when_the_ledger_is_an_older_copy(
    ready: Path, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    here = copied(ready, tmp_path / "here")
    cut_off(here, "after a part")
    before = files_of(here)
    (here / "ledger.sqlite").rename(here / "newer.sqlite")
    shutil.copy2(ready / "ledger.sqlite", here / "ledger.sqlite")
    with pytest.raises(BundleError, match=r"older copy.*Nothing was drawn or removed"):
        released(here)
    assert files_of(here) == before
    (here / "newer.sqlite").replace(here / "ledger.sqlite")
    assert released(here) == undisturbed


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"release": "x"}', '{"secret'])
def test_a_paid_run_whose_record_is_damaged_is_kept(begun: Path, tmp_path: Path, text: str) -> None:
    here = copied(begun, tmp_path / "here")
    (here / RUN / "run.json").write_text(text)
    before = files_of(here)
    with pytest.raises(
        BundleError, match=r"run\.json' is missing or damaged.*Nothing was drawn or removed"
    ):
        released(here)
    assert files_of(here) == before


def test_a_run_that_is_given_up_is_begun_anew(begun: Path, tmp_path: Path) -> None:
    here = copied(begun, tmp_path / "here")
    plan = Plan.load(here / "plan.toml")
    ledger = Ledger.open(plan.ledger)
    ledger.abandon(ledger.entries()[0].id)
    released(here)
    assert spent(plan) == ["abandoned", "committed"]


def test_records_that_changed_are_refused_however_they_are_stored(
    begun: Path, expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of Spark has no size and no time by which a change shows: the counts do."""
    here = copied(begun, tmp_path / "here")
    told = json.loads((here / RUN / "run.json").read_text())
    run = parted_run.NationRun
    monkeypatch.setattr(run, "fingerprint", property(lambda _: told["fingerprint"]))
    people = (here / "people.csv").read_text()
    (here / "people.csv").write_text("\n".join(people.splitlines()[:-1]) + "\n")
    shutil.rmtree(here / RUN / "counts" / "part=1")
    for _ in range(2):
        with pytest.raises(
            BundleError, match=r"its cost is recorded.*not those that it was begun with"
        ):
            released(here)
    (here / "people.csv").write_text(people)
    assert released(here) == expected


def test_a_folder_that_cannot_be_removed_is_said(
    begun: Path, expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = copied(begun, tmp_path / "here")

    def refuses(_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    refusing = SimpleNamespace(rmtree=refuses, disk_usage=shutil.disk_usage)

    with monkeypatch.context() as broken:
        broken.setattr(drawing_by_parts, "shutil", refusing)
        with pytest.raises(BundleError, match=r"is published.*runs/nation' cannot be deleted"):
            released(here)
    assert spent(Plan.load(here / "plan.toml")) == ["committed"]
    assert numbers_in(here / "bundles" / "nation") == expected
    assert (here / RUN / "run.json").exists()
    with pytest.raises(BundleError, match="already exists"):
        released(here)
    assert not (here / RUN).exists()


def test_bundles_in_two_places_have_a_private_folder_each(bare: Path, tmp_path: Path) -> None:
    plan = Plan.load(copied(bare, tmp_path / "here") / "plan.toml")
    usual, here = plan.folder / "bundles" / "nation", plan.folder / "out" / "nation"
    elsewhere = tmp_path / "elsewhere" / "nation"
    places = [run_folder(plan, one) for one in (usual, here, elsewhere)]
    assert places[0] == plan.folder / RUN
    assert {one.parent for one in places} == {plan.folder / "runs"}
    assert len(set(places)) == 3
    moved = Plan.load(copied(plan.folder, tmp_path / "moved") / "plan.toml")
    assert run_folder(moved, moved.folder / "out" / "nation").name == places[1].name


def test_a_worker_is_given_the_keys_of_its_part_alone(
    begun: Path, expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = copied(begun, tmp_path / "here")
    secret = bytes.fromhex(json.loads((here / RUN / "run.json").read_text())["secret"])
    real, given = parted_run.draw_part, []

    def draw(*task: Any) -> None:
        given.append(pickle.dumps(task))
        real(*task)

    monkeypatch.setattr(parted_run, "draw_part", draw)
    assert released(here) == expected
    assert len(given) == 2
    assert not any(secret in one or secret.hex().encode() in one for one in given)
