"""The files a plan names besides its data: lists of levels, recodings, counts to lean on.

They are part of what is planned, so that the plan's digest covers what they hold. A key names such
a file if it ends in `_file`, is `file` (of recodings), or `prior` (the counts that a base measure
leans on).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from congenial.errors import PlanError


def named_files(plan: Any) -> Iterator[str]:
    """The files that a plan names, as it writes them.

    >>> sorted(named_files({"schema": {"county": {"levels_file": "counties.csv"}}}))
    ['counties.csv']
    """
    if isinstance(plan, Mapping):
        for key, value in plan.items():
            if isinstance(value, str) and _names_a_file(str(key)):
                yield value
            else:
                yield from named_files(value)
    elif isinstance(plan, list | tuple):
        for value in plan:
            yield from named_files(value)


def _names_a_file(key: str) -> bool:
    return key in ("file", "prior") or key.endswith("_file")


def file_digests(plan: Any, folder: Path) -> dict[str, str]:
    """SHA-256 of every file that a plan in `folder` names, by the name it gives it."""
    return {name: _digest(folder / name, name) for name in sorted(set(named_files(plan)))}


def _digest(path: Path, name: str) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as reason:
        raise PlanError(
            f"'{name}', named in the plan, cannot be read: {reason.strerror}.",
            remedy="Check the path; it is relative to the plan's folder.",
        ) from None
