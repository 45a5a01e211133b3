"""The folder of a desk: the plans and data files in it, by keys that an address can hold.

A key is looked up among the files that were found; it is never made into a path.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from congenial.data.source import KINDS_OF_FILE
from congenial.errors import PlanError

DEPTH = 2  # folders below the desk's own that are looked into
MOST_FILES = 2000
RESULTS = ("bundles", "published", "data-check", "audits")  # folders that the program writes
NOT_PLANS = ("pyproject.toml", "mkdocs.toml")


class PlanConflictError(PlanError):
    """A plan changed on disk since the page that saves it was opened."""


@dataclass(frozen=True)
class Workspace:
    """The files of one folder."""

    folder: Path

    def plans(self) -> dict[str, Path]:
        """Every plan by its key."""
        found = (one for one in self._files() if one.suffix == ".toml")
        return {self.key(one): one for one in found if _looks_like_a_plan(one)}

    def data_files(self) -> dict[str, Path]:
        """Every file that may hold records, by its key."""
        return {self.key(one): one for one in self._files() if one.suffix.lower() in KINDS_OF_FILE}

    def key(self, path: Path) -> str:
        """The name of a file below the folder, without slashes."""
        return path.relative_to(self.folder).as_posix().replace("/", ":")

    def _files(self) -> Iterator[Path]:
        top = self.folder.resolve()
        seen = 0
        for place, folders, names in os.walk(self.folder):
            here = Path(place)
            depth = len(here.relative_to(self.folder).parts)
            folders[:] = sorted(
                one for one in folders if not _hidden(one) and depth < DEPTH and one not in RESULTS
            )
            for name in sorted(names):
                seen += 1
                if seen > MOST_FILES:
                    return
                path = here / name
                if not _hidden(name) and path.resolve().is_relative_to(top):
                    yield path


def _hidden(name: str) -> bool:
    return name.startswith(".")


def _looks_like_a_plan(path: Path) -> bool:
    if path.name in NOT_PLANS:
        return False
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return "budget" in text and "data" in text


def text_digest(text: str) -> str:
    """What tells one version of a plan's text from another."""
    return hashlib.sha256(text.encode()).hexdigest()


def save(path: Path, text: str, opened: str) -> None:
    """Replace a plan's text, if it is still the one with the digest `opened`.

    PlanConflictError if somebody else saved it in between; PlanError if the text is not valid TOML.
    """
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as reason:
        raise PlanError(
            f"the plan is not valid TOML: {reason}.", remedy="Correct it; nothing was saved."
        ) from None
    try:
        with _locked(path.parent):
            if text_digest(path.read_text(encoding="utf-8")) != opened:
                raise PlanConflictError(
                    f"'{path.name}' was changed by somebody else since you opened it.",
                    remedy="Compare both below, then save what should stay.",
                )
            _replace(path, text)
    except OSError as reason:
        raise _unwritable(path, reason) from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Have others who save in this folder wait; a crash gives the lock up."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        Path(draft).chmod(mode)
        Path(draft).replace(path)
    finally:
        Path(draft).unlink(missing_ok=True)


def _unwritable(path: Path, reason: OSError) -> PlanError:
    return PlanError(
        f"'{path.name}' cannot be saved: {reason.strerror}.",
        remedy="Check access to its folder; nothing was saved.",
    )
