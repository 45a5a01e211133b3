"""Steps of a nation by parts that fail after their work, with a note of what each attempt drew.

In a module of its own, which the workers of Spark import.
"""

from __future__ import annotations

import hashlib
import os
import signal
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

from congenial.kinds.parted_run import draw_part, finish_part
from congenial.mechanisms.tables_files import part_name

PART = 1  # the part whose first attempt fails


def notes_of(folder: Path, kind: str) -> dict[int, list[str]]:
    """Digests of what every attempt at a part drew or wrote."""
    found: dict[int, list[str]] = {}
    for note in folder.glob(f"{kind}-*"):
        found.setdefault(int(note.name.split("-")[1]), []).append(note.read_text())
    return found


def _noted(task: Any, kind: str, files: list[Path]) -> None:
    """Note what an attempt has done."""
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    (_notes(task) / f"{kind}-{task.number}-{uuid.uuid4().hex}").write_text(digest)


def _notes(task: Any) -> Path:
    folder = Path(task.folder).parent / "notes"
    folder.mkdir(exist_ok=True)
    return folder


def _fails(task: Any, kind: str) -> bool:
    """Whether this is the first attempt at the part that fails; of two at once one is the first."""
    if task.number != PART:
        return False
    try:
        (_notes(task) / f"first-{kind}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def draws_and_loses(task: Any, keys: Any) -> None:
    """Draw a part; the first attempt at one of them draws on a disk of its own and fails."""
    fails = _fails(task, "draw")
    here = _on_its_own_disk(task) if fails else task
    draw_part(here, keys)
    _noted(task, "draw", [here.file("drawn", "npz")])
    if fails:
        raise OSError("the disk of this worker is full")


def _on_its_own_disk(task: Any) -> Any:
    """The same task with files that nobody else sees."""
    folder = Path(task.folder) / "lost"
    (folder / "drawn").mkdir(parents=True)
    (folder / "counts").symlink_to(Path(task.folder).absolute() / "counts")
    return replace(task, folder=folder)


def writes_and_loses(task: Any, above: Any) -> None:
    """Finish a part; the first attempt at one of them loses its list of files and fails."""
    finish_part(task, above)
    files = sorted((task.folder / "parts").glob(f"*/{part_name(task.number)}"))
    _noted(task, "write", files)
    if _fails(task, "write"):
        task.file("done", "json").unlink()
        raise OSError("the disk of this worker is full")


def draws_and_kills(task: Any, keys: Any) -> None:
    """Draw a part; the first attempt at one of them loses its file, and its executor is killed."""
    try:
        draws_and_loses(task, keys)
    except OSError:
        # This process is forked by a daemon that the executor started.
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        executor = next(line for line in status.splitlines() if line.startswith("PPid"))
        os.kill(int(executor.split()[1]), signal.SIGKILL)
        os._exit(1)
