"""Files that outlive a kill, a full disk and a power cut. Whatever has to be there afterwards is
written by this module: a ledger's figures, drawn values, bundles, parts, plans saved at the desk.

`write_whole` does four things, in this order:

    1. write the content under a hidden name in the same folder (`.NAME.….partial`)
    2. fsync the file: its content is on disk
    3. rename it: in one step readers see all of it, or what was there before
    4. fsync the folder: its name is on disk

and what can go wrong leaves

    a kill       before 3 the hidden file, which nobody reads; after 3 the whole file
    a full disk  nothing: it shows in 1 or 2, before the name is taken, and the hidden file goes
    a power cut  before 4 the old or the new file, whole; after 4 the new file

Without 2 a power cut could leave the name on an empty file, since a disk may write names before
contents. Without 4 it could take the name back after the caller has gone on, and perhaps spent
something because of it. A caller therefore goes on only when the call has returned.

A folder of files is done likewise by `bundle` and `claim`: each file by `write_synced`, the folder
by `sync`, and `rename_synced` at the end. A folder that was just made has a name to sync too, in
the folder above it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

Content = bytes | Callable[[BinaryIO], Any]  # or what writes it into an open file


def write_whole(path: Path, content: Content, mode: int | None = None) -> None:
    """Put a file on disk with its name: whole, or not at all; one that is there is replaced.

    Several processes, on several machines perhaps, may write the same name at once: one content
    stays, and nobody sees half of one. `mode`: the file's permissions, if not the usual ones.
    """
    with _draft(path, content, mode) as draft:
        rename_synced(draft, path)


def write_new(path: Path, content: Content) -> None:
    """The same for a name that must be free; FileExistsError if it is taken."""
    with _draft(path, content) as draft:
        name_new(draft, path)
        sync(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until its content is on disk; its name is synced, or changed, later.

    Room that was reserved under this name is used, so that a full disk does not refuse it.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:
        file.write(content)
        file.truncate()
        _finish(file)


def rename_synced(old: Path, new: Path) -> None:
    """Give a file or folder that is on disk its name, in one step, and wait until that is too."""
    old.rename(new)
    sync(new.parent)


def name_new(draft: Path, path: Path) -> None:
    """Name a file that is on disk without replacing another; FileExistsError if there is one.

    The folder is not synced: SQLite, whose ledgers are named so, does that at every commit.
    """
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: claim the name, then move onto the claim
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        draft.rename(path)


def sync(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Wait until a folder with everything in it is on disk, its own name included."""
    for path in (*folder.rglob("*"), folder, folder.parent):
        sync(path)


@contextmanager
def _draft(path: Path, content: Content, mode: int | None = None) -> Iterator[Path]:
    """A file that is on disk under a hidden name, until it is renamed or the block ends."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(draft, flags, 0o666 if mode is None else mode), "wb") as file:
            if mode is not None and os.fstat(file.fileno()).st_mode & 0o777 != mode:
                os.fchmod(file.fileno(), mode)  # the umask of the process took some of it away
            if callable(content):
                content(file)
            else:
                file.write(content)
            _finish(file)
        yield draft
    finally:
        with suppress(OSError):  # clean-up never hides the error that came first
            draft.unlink(missing_ok=True)


def _finish(file: BinaryIO) -> None:
    """Wait until everything written is on disk."""
    file.flush()
    os.fsync(file.fileno())
