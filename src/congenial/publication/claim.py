"""A place for a bundle, claimed with its room on disk before anything is drawn, and what was drawn,
kept there until its bundle is out.

Beside the folder `name` there may be, under hidden names:

    .name.claim     locked by the one run that may write there; a crash gives the lock up
    .name.room      room for the bundle, given up when the bundle is written
    .name.drawing   room for the drawn values
    .name.drawn     the drawn values, whole and synced: what `congenial ledger finish` reads
    .name.partial   the bundle before it has its name

All of them hold what may be published. What may not, the private folder of a release that is drawn
part by part (`drawing_by_parts`), is in `runs` beside the plan.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from congenial.data.durable_files import rename_synced, sync, write_synced
from congenial.data.schema import Schema
from congenial.errors import BundleError
from congenial.mechanisms.released import Released
from congenial.privacy.descriptions import AnyDescription
from congenial.publication import bundle
from congenial.publication.plan_ledger import BUNDLES

if TYPE_CHECKING:
    from congenial.ledger.ledger import Ledger
    from congenial.publication.plan import Plan

TEXTS = 2**20  # bytes for a report without its rows, README and citation
RUNS = "runs"  # the folder beside a plan for what is CONFIDENTIAL until a release by parts is out
NUMBERS = 48  # bytes of one number of a cell: CSV, Parquet and the rows in the report


@dataclass(frozen=True)
class Claim:
    """One run's right to write the bundle `folder`.

    `run`: the private folder of a release that is drawn part by part.
    """

    folder: Path
    run: Path | None = None

    def _hidden(self, what: str) -> Path:
        return self.folder.with_name(f".{self.folder.name}.{what}")

    @property
    def kept(self) -> Path:
        """What was drawn and has no bundle yet."""
        return self._hidden("drawn")

    @property
    def partial(self) -> Path:
        """The bundle before it has its name."""
        return self._hidden("partial")

    def take_room(self, size: int) -> None:
        """Reserve disk space, half for the drawn values and half for the bundle."""
        try:
            for what in ("drawing", "room"):
                _allocate(self._hidden(what), size)
        except OSError as reason:
            self.give_room_up()
            raise BundleError(
                f"there is no room for the bundle in '{self.folder.parent}': {reason.strerror}; "
                f"it needs up to {2 * size / 2**20:.1f} MiB. Nothing was drawn.",
                remedy="Make room, or choose another folder with --out.",
            ) from None

    def give_room_up(self) -> None:
        """Remove what only held room, and bundles that were never finished, as far as possible:
        clean-up never hides the error that came first.
        """
        for what in ("drawing", "room"):
            with suppress(OSError):
                self._hidden(what).unlink(missing_ok=True)
        shutil.rmtree(self.partial, ignore_errors=True)

    def keep(self, drawn: Released, release: str) -> None:
        """Put what was drawn on disk, in the room that was reserved for it."""
        drawing = self._hidden("drawing")
        write_synced(drawing, _packed(drawn, release))
        rename_synced(drawing, self.kept)
        self._hidden("room").unlink(missing_ok=True)

    def done(self) -> None:
        """The bundle is out and recorded: nothing has to be kept beside it. What cannot be removed
        now is removed by the next run.
        """
        with suppress(OSError):
            self.kept.unlink(missing_ok=True)


@contextmanager
def claimed(folder: Path, run: Path | None = None) -> Iterator[Claim]:
    """Be the only run that writes the bundle `folder`, until the end of the block.

    Folders that were made for it and hold nothing in the end are removed.
    """
    lock = folder.with_name(f".{folder.name}.claim")
    with nothing_drawn(folder):
        bundle.check_parent(folder)
        new = [above for above in folder.parents if not above.exists()]
        handle = _locked(lock)
    if handle is None:
        raise BundleError(
            f"another run is writing '{folder}'. Nothing was drawn here.",
            remedy="Wait for it; for a second draw give it a new name or --out.",
        )
    claim = Claim(folder, run)
    try:
        with nothing_drawn(folder):
            for above in new:
                sync(above.parent)  # a bundle is on disk when all folders above it are
        claim.give_room_up()  # what a crash left behind
        yield claim
    finally:
        claim.give_room_up()
        with suppress(OSError):
            lock.unlink(missing_ok=True)
        _remove_empty(new)
        with suppress(OSError):
            os.close(handle)


@contextmanager
def nothing_drawn(folder: Path) -> Iterator[None]:
    """Say of a place that fails before the draw that nothing is lost by it."""
    try:
        yield
    except OSError as reason:
        raise BundleError(
            f"'{folder}' cannot be claimed: {reason.strerror}. Nothing was drawn.",
            remedy="Choose a folder on a local disk, which you can write to, with --out.",
        ) from None


def run_folder(plan: Plan, folder: Path) -> Path:
    """The private folder of a release by parts, beside the plan: `runs/NAME`, and for a bundle in
    another place than usual `runs/NAME-...`. A project that is moved as a whole keeps it.
    """
    place = os.path.relpath(folder.resolve(), plan.folder.resolve())
    usual = Path(place) == Path(BUNDLES, folder.name)
    ending = "" if usual else f"-{bundle.sha256(place.encode())[:8]}"
    return plan.folder.absolute() / RUNS / f"{folder.name}{ending}"


def begun(plan: Plan, folder: Path) -> bool:
    """Whether a release by parts for this place was begun and not finished."""
    return run_folder(plan, folder).exists()


def refuse_kept(claim: Claim, ledger: Ledger) -> None:
    """BundleError when something was drawn for this place and only has to be finished.

    What the ledger knows as published or given up is no longer needed, and is removed.
    """
    if not claim.kept.exists():
        return
    release = unpacked(claim.kept)[0]
    entry = ledger.find(release)
    if entry is not None and entry.status in ("committed", "abandoned"):
        claim.done()
        return
    raise BundleError(
        f"'{claim.folder.name}' was drawn before and is paid for; its bundle was not finished. "
        "Nothing was drawn now.",
        remedy="Run `congenial ledger finish PLAN`, which spends nothing.",
    )


def room_for(description: AnyDescription) -> int:
    """Bytes that texts, and the numbers of a table, take at most, drawn values included; what
    other kinds draw is in `Offer.room`.
    """
    size = TEXTS + 3 * len(json.dumps([description.to_dict(), description.support.to_dict()]))
    schema = description.support.schema
    size += len(json.dumps(schema.to_dict()))
    numbers = NUMBERS * description.columns
    return size + sum(_room_of_table(schema, names, numbers) for names in description.printed)


def _room_of_table(schema: Schema, names: tuple[str, ...], numbers: int) -> int:
    axes = schema.axes(names)
    labels = sum(max(len(level.encode()) for level in axis.levels) + 3 for axis in axes)
    return schema.size(names) * (labels + numbers)


def unpacked(kept: Path) -> tuple[str, Any]:
    """The release's id in the ledger, and what was drawn."""
    try:
        with zipfile.ZipFile(kept) as file:
            files = {name: file.read(name) for name in file.namelist()}
        index = json.loads(files[bundle.INDEX])
        release = bundle.assemble(index, lambda name: json.loads(files[name]), files, kept)
        return str(index["release"]), release
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        raise BundleError(
            f"'{kept}' cannot be read.",
            remedy="Check the disk. What it held is spent; if it is lost, abandon the release.",
        ) from None


def _packed(drawn: Released, release: str) -> bytes:
    out = io.BytesIO()
    files = bundle.drawn_files(drawn)
    digests = {name: bundle.sha256(files[name]) for name in files}
    index = bundle.index_of(drawn, "", digests, bundle.time_of(drawn))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
        file.writestr(bundle.INDEX, json.dumps(index | {"release": release}))
    return out.getvalue()


def _locked(lock: Path) -> int | None:
    """The handle of the locked file; None when another run holds it."""
    while True:
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # another run removed the folder in between, since it was empty
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(handle, lock):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        os.close(handle)  # its last holder removed it in between


def _remove_empty(folders: list[Path]) -> None:
    """Remove these folders, the innermost first, as far as they hold nothing."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _allocate(path: Path, size: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.posix_fallocate(handle, 0, size)
    finally:
        os.close(handle)
