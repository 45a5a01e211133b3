"""What a long count keeps on disk, so that it can go on after an interruption.

CONFIDENTIAL: the running counts of the files finished so far, in one file (mode 0600) of a folder
that belongs to the caller alone (mode 0700). It is deleted when the count is complete. Until then
it is as sensitive as the records: keep the folder on the disk that holds them, out of backups.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from congenial.data.schema import Schema
from congenial.errors import DataError

_STATE = "congenial-counts.npz"


class Checkpoint:
    """The state of one count: which files are in, and their counts.

    It is tied to the schema, the axes and the files (name, size, time of change). If any of them is
    not what it was, the state is dropped and the count starts anew.
    """

    def __init__(
        self, folder: Path, schema: Schema, names: Sequence[str], files: Sequence[Path]
    ) -> None:
        self.folder = folder
        self.state = folder / _STATE
        self._files = {_stamp(file): file for file in files}
        about = json.dumps([schema.digest, list(names), list(self._files)])
        self._key = hashlib.sha256(about.encode()).hexdigest()
        self._done: list[str] = []
        _private_folder(folder)

    def load(self, counts: NDArray[np.int64]) -> set[Path]:
        """Add what was kept to `counts`; the files it covers."""
        kept = self._read(counts.shape)
        if kept is None:
            self._drop()
            return set()
        done, values = kept
        counts += values
        self._done = done
        return {self._files[stamp] for stamp in done}

    def _read(self, shape: tuple[int, ...]) -> tuple[list[str], NDArray[np.int64]] | None:
        try:
            with self.state.open("rb") as file, np.load(file, allow_pickle=False) as kept:
                about = json.loads(str(kept["about"]))
                values = kept["counts"]
        except (OSError, ValueError, KeyError, BadZipFile):  # absent, damaged, or not ours
            return None
        fits = about.get("key") == self._key and values.shape == shape
        return (list(about["done"]), values) if fits else None

    def save(self, file: Path, counts: NDArray[np.int64]) -> None:
        """Keep the running counts, which now include `file`."""
        self._done.append(_stamp(file))
        about = json.dumps({"key": self._key, "done": self._done})
        partial = self.state.with_suffix(".partial")
        reason = None
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                np.savez(out, about=np.array(about), counts=counts)
                out.flush()
                os.fsync(out.fileno())
            partial.replace(self.state)
        except OSError as error:
            reason = error.strerror
        if reason is not None:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise DataError(
                f"the counts so far cannot be kept in {str(self.folder)!r}: {reason}.",
                remedy="Free some space, or count without resume.",
            )

    def delete(self) -> None:
        """Remove the state and, if nothing else is in it, the folder."""
        self._drop()
        with suppress(OSError):
            self.folder.rmdir()

    def _drop(self) -> None:
        self.state.unlink(missing_ok=True)
        self.state.with_suffix(".partial").unlink(missing_ok=True)


def _stamp(file: Path) -> str:
    found: Any = file.stat()
    return f"{file.name}:{found.st_size}:{found.st_mtime_ns}"


def _private_folder(folder: Path) -> None:
    """Make the folder, or check that it is private."""
    reason = None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        raise DataError(
            f"the folder {str(folder)!r} for unfinished counts cannot be made: {reason}.",
            remedy="Name a folder you may write to.",
        )
    wide = stat.S_IMODE(found.st_mode) & 0o077
    if hasattr(os, "getuid") and (wide or found.st_uid != os.getuid()):
        raise DataError(
            f"the folder {str(folder)!r} for unfinished counts is open to others.",
            remedy="Name a new folder, or run chmod 700 on it.",
        )
