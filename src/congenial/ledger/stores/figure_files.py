"""Large figures of a ledger in files beside it: the event holds their digest.

A nation publishes a figure for every one of its areas, and every release of it is recorded with the
figures that it was drawn given. From LARGE numbers on, an event has in their place

    "values": {"digest": SHA-256 of the file, "numbers": how many}

and the numbers are in FOLDER/DIGEST.npy, once however many events name them. A file is on disk
before its event is written, and is never changed; what is left of a run that failed is found again
by its digest. The chain of digests covers the digest, and reading a ledger compares the file with
it, so that a file that is missing or was changed is noticed before anything is worked out from it.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from congenial.data.durable_files import write_whole
from congenial.errors import LedgerError

LARGE = 100_000  # numbers of one figure that are written into a file
_KEY = "values"
_NAMED = re.compile(r'"values":\{"digest":"([0-9a-f]{64})"')  # as `Log` writes it


class FigureFiles:
    """The files of one ledger, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, tuple[int, int]] = {}  # digest -> size and time, when it was compared

    def put_away(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """What an event writes: large figures are written into files, and named."""
        written: Mapping[str, Any] = _changed(payload, self._written)
        return written

    def restored(self, payload: Mapping[str, Any], text: str) -> Any:
        """What an event says, with its figures; `text` is how it was written."""
        return _changed(payload, self._read) if _NAMED.search(str(text)) else payload

    def check(self, text: str) -> None:
        """LedgerError where a file that an event names is missing or is another."""
        for digest in set(_NAMED.findall(str(text))):
            path = self._path(digest)
            try:
                status = path.stat()
                now = (status.st_size, status.st_mtime_ns)
                if self._seen.get(digest) == now:
                    continue
                with path.open("rb") as file:
                    same = hashlib.file_digest(file, "sha256").hexdigest() == digest
            except FileNotFoundError:
                raise _refused(path, "is missing") from None
            if not same:
                raise _refused(path, "was changed")
            self._seen[digest] = now

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}.npy"

    def _written(self, values: Any) -> Any:
        """The digest of large figures, after their file is on disk; others as they are."""
        import numpy as np

        if not isinstance(values, list) or _many(values) < LARGE:
            return values
        array = np.asarray(values)
        if array.dtype != np.int64:
            return values
        content = io.BytesIO()
        np.save(content, array, allow_pickle=False)
        digest = hashlib.sha256(content.getvalue()).hexdigest()
        self.folder.mkdir(exist_ok=True)  # SQLite syncs the folder it is in before it commits
        write_whole(self._path(digest), content.getvalue())
        return {"digest": digest, "numbers": int(array.size)}

    def _read(self, values: Any) -> Any:
        import numpy as np

        if not isinstance(values, dict):
            return values
        return np.load(self._path(values["digest"]), allow_pickle=False).tolist()


def _many(values: Any) -> int:
    """How many numbers are in lists of lists of equal length."""
    many = 1
    while isinstance(values, list):
        many, values = many * len(values), values[0] if values else None
    return many


def _changed(data: Any, change: Callable[[Any], Any]) -> Any:
    """The same data, with figures changed; lists of numbers are not gone through."""
    if isinstance(data, Mapping):
        return {
            key: change(value) if key == _KEY else _changed(value, change)
            for key, value in data.items()
        }
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        return [_changed(item, change) for item in data]
    return data


def _refused(path: Path, why: str) -> LedgerError:
    return LedgerError(
        f"figures of the ledger are in the file '{path}', which {why}.",
        remedy="Restore the folder beside the ledger from the last good copy, and release nothing "
        "until then.",
    )
