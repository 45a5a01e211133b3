"""Text files in any encoding that Python knows, copied into UTF-8 for the engine that counts."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from congenial.data.source import guarded

_PIECE = 1 << 20  # characters at once


def open_text(
    file: Path, encoding: str, *, errors: str = "strict", newline: str | None = ""
) -> Any:
    """A text file, packed or not; its line ends as they are, or made alike by newline = None."""
    opener: Any = gzip.open if file.suffix.lower() == ".gz" else open
    return opener(file, "rt", encoding=encoding, errors=errors, newline=newline)


def in_utf_8(
    files: Sequence[Path], encoding: str, owner: object, newline: str | None = ""
) -> list[Path]:
    """CONFIDENTIAL copies in a folder that only its owner may enter; they go when `owner` does."""
    folder = Path(tempfile.mkdtemp(prefix="congenial-"))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    made = []
    for number, file in enumerate(files):
        copy = folder / str(number) / file.name.removesuffix(".gz")
        guarded(
            lambda file=file, copy=copy: _copy(file, copy, encoding, newline),  # type: ignore[misc]
            f"{file.name!r} is not written in {encoding}.",
            "Name its encoding in [data]; `congenial data` suggests one.",
        )
        made.append(copy)
    return made


def _copy(file: Path, copy: Path, encoding: str, newline: str | None) -> None:
    copy.parent.mkdir()
    with (
        open_text(file, encoding, newline=newline) as read,
        copy.open("w", encoding="utf-8", newline="") as written,
    ):
        while text := read.read(_PIECE):
            written.write(text)
