"""The folder of a desk: the plans and data files in it, by keys that an address can hold.

A key is looked up among the files that were found; it is never made into a path.
"""

from __future__ import annotations

import difflib
import fcntl
import hashlib
import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from congenial.data.durable_files import write_whole
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
        candidates = (path for path in self._files() if path.suffix == ".toml")
        return {self.key(path): path for path in candidates if _looks_like_a_plan(path)}

    def data_files(self) -> dict[str, Path]:
        """Every file that may hold records, by its key."""
        return {
            self.key(path): path for path in self._files() if path.suffix.lower() in KINDS_OF_FILE
        }

    def key(self, path: Path) -> str:
        """The name of a file below the folder, without slashes."""
        return path.relative_to(self.folder).as_posix().replace("/", ":")

    def _files(self) -> Iterator[Path]:
        top = self.folder.resolve()
        visited = 0
        for place, folders, names in os.walk(self.folder):
            here = Path(place)
            depth = len(here.relative_to(self.folder).parts)
            folders[:] = sorted(
                inner
                for inner in folders
                if not _hidden(inner) and depth < DEPTH and inner not in RESULTS
            )
            for name in sorted(names):
                visited += 1
                if visited > MOST_FILES:
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


def changed_lines(old: str, new: str) -> list[str]:
    """What changed from one plan's text to another, as the lines of a diff without its head."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
    return list(lines)[2:]


def save(path: Path, text: str, opened: str, why: str = "text") -> None:
    """Replace a plan's text, if it is still the one with the digest `opened`, and keep the text
    before it, with what was done (`why`), in the plan's history.

    PlanConflictError if somebody else saved it in between; PlanError for invalid TOML.
    """
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError) as reason:
        raise PlanError(
            f"the plan is not valid TOML: {reason}.", remedy="Correct that; nothing was saved."
        ) from None
    try:
        with _locked(path.parent):
            before = path.read_text(encoding="utf-8")
            if text_digest(before) != opened:
                raise PlanConflictError(
                    f"'{path.name}' was changed by somebody else since you opened it.",
                    remedy="Compare both below, then save what should stay.",
                )
            if text == before:
                return
            write_whole(path, text.encode(), mode=path.stat().st_mode & 0o777)
            _write_history(path, [*history(path), EarlierText(_now(), why, before)])
    except OSError as reason:
        raise _unwritable(path, reason) from None


# ---- history -------------------------------------------------------------------------------------


MOST_EARLIER = 100  # texts of a plan that are kept


@dataclass(frozen=True)
class EarlierText:
    """A plan's text as it was until `at`, when it was changed, and what changed it."""

    at: str
    why: str
    text: str


def history(path: Path) -> list[EarlierText]:
    """Earlier texts of a plan, the oldest first; none where they cannot be read."""
    try:
        lines = _history_file(path).read_text(encoding="utf-8").splitlines()
        return [EarlierText(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError):
        return []


def undo(path: Path, opened: str, back: int = 1) -> None:
    """Take back the last `back` changes of a plan; they leave its history.

    PlanConflictError if the plan is not the one with the digest `opened`.
    """
    earlier = history(path)
    if not 1 <= back <= len(earlier):
        raise PlanError("there is no such earlier text of the plan.", remedy="Open the page again.")
    save(path, earlier[-back].text, opened)
    _write_history(path, earlier[:-back])


def _history_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.history")


def _write_history(path: Path, earlier: list[EarlierText]) -> None:
    lines = "".join(f"{json.dumps(vars(text_before))}\n" for text_before in earlier[-MOST_EARLIER:])
    write_whole(_history_file(path), lines.encode(), mode=0o600)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Have others who save in this folder wait; a crash gives the lock up."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _unwritable(path: Path, reason: OSError) -> PlanError:
    return PlanError(
        f"'{path.name}' cannot be saved: {reason.strerror}.",
        remedy="Check access to its folder; nothing was saved.",
    )
