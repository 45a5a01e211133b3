"""Steps of a nation by parts that fail after their work, with a note of what each attempt drew.

In a module of its own, which the workers of Spark import.
"""

from __future__ import annotations

import hashlib
import os
import signal
import uuid
from pathlib import Path
from typing import Any

from congenial.mechanisms import parted_steps

PART = 1  # the part whose first attempt fails


def notes_of(folder: Path, kind: str) -> dict[int, list[str]]:
    """Digests of what every attempt at a part drew or wrote."""
    found: dict[int, list[str]] = {}
    for note in folder.glob(f"{kind}-*"):
        found.setdefault(int(note.name.split("-")[1]), []).append(note.read_text())
    return found


def _noted(task: Any, kind: str, files: list[Path]) -> bool:
    """Note what an attempt has done; whether it is the first one at the part that fails."""
    folder = task.folder.parent / "notes"
    folder.mkdir(exist_ok=True)
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    (folder / f"{kind}-{task.number}-{uuid.uuid4().hex}").write_text(digest)
    return task.number == PART and len(notes_of(folder, kind)[PART]) == 1


def draws_and_loses(task: Any, secret: bytes) -> None:
    """Draw a part; the first attempt at one of them loses its file and fails."""
    parted_steps.draw_part(task, secret)
    file = task.file("drawn", "npz")
    if _noted(task, "draw", [file]):
        file.unlink()
        raise OSError("the disk of this worker is full")


def writes_and_loses(task: Any, above: Any) -> None:
    """Finish a part; the first attempt at one of them loses its list of files and fails."""
    parted_steps.finish_part(task, above)
    files = sorted((task.folder / "parts").glob(f"*/{parted_steps.part_name(task.number)}"))
    if _noted(task, "write", files):
        task.file("done", "json").unlink()
        raise OSError("the disk of this worker is full")


def draws_and_kills(task: Any, secret: bytes) -> None:
    """Draw a part; the first attempt at one of them loses its file, and its executor is killed."""
    try:
        draws_and_loses(task, secret)
    except OSError:
        # This process is forked by a daemon that the executor started.
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        executor = next(line for line in status.splitlines() if line.startswith("PPid"))
        os.kill(int(executor.split()[1]), signal.SIGKILL)
        os._exit(1)
