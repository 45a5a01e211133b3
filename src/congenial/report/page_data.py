"""Rows of tables as a page carries them: columns, compressed, once; and the page's own script.

A page opened from a disk can read no other file, so the rows that its reader may ask for are in a
data block of the page. Numbers of one column lie together, in the order of the cells (last axis
fastest), so that labels are not repeated. The script that reads them is ours: its SHA-256 stands
in the policy of the page, which forbids every other one.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

MOST_ROWS = 300_000  # of all tables on a page together
LEVEL_OF_GZIP = 6
_BLOCK = re.compile(r'(<script type="application/gzip" id="rows">)([A-Za-z0-9+/=]*)(</script>)')
SCRIPTS = ("charts.js", "rows.js", "report.js")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@cache
def script(names: tuple[str, ...] = SCRIPTS) -> str:
    """The script of a page with rows: by default that of a report."""
    folder = files("congenial.report") / "static"
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


@cache
def script_source(names: tuple[str, ...] = SCRIPTS) -> str:
    """What a policy calls that script: its SHA-256."""
    digest = hashlib.sha256(script(names).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def packed(document: Mapping[str, Any]) -> str:
    """A document as text for the data block: JSON, compressed, in base64."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), LEVEL_OF_GZIP, mtime=0)).decode()


def rows_of(page: str) -> Any:
    """The document in a page's data block; None where it has none."""
    match = _BLOCK.search(page)
    return None if match is None else json.loads(_unpacked(match[2], 2**31))


def _unpacked(block: str, most: int) -> str:
    """What is in a block, at most so many bytes of it: a page may come from anywhere."""
    with gzip.GzipFile(fileobj=io.BytesIO(base64.b64decode(block))) as file:
        return file.read(most).decode()


def with_equal_rows(page: str, again: str) -> str:
    """`page` with the data block of `again` where both hold the same text, so that pages can be
    compared to the letter although compressors differ; otherwise `page`.
    """
    match, expected = _BLOCK.search(page), _BLOCK.search(again)
    if match is None or expected is None or match[2] == expected[2]:
        return page
    text = _unpacked(expected[2], 2**31)
    try:
        same = _unpacked(match[2], len(text.encode()) + 1) == text
    except (OSError, EOFError, ValueError, gzip.zlib.error):  # type: ignore[attr-defined]
        return page
    return page[: match.start(2)] + expected[2] + page[match.end(2) :] if same else page


def columns(base: Any, **others: Any) -> dict[str, Any]:
    """Numbers of a table as plain data: `base` as it is, whole numbers beside whole ones as how far
    they lie from it (`from`: which of them), others with two decimals; None is left out.

    >>> columns(np.array([7, 9]), low=np.array([5, 9]), sd=np.array([1.25, 0.0]), high=None)
    {'base': [7, 9], 'low': [-2, 0], 'sd': [1.25, 0.0], 'from': ['low']}
    """
    flat = np.reshape(base, -1)
    whole = np.issubdtype(flat.dtype, np.integer)
    plain: dict[str, Any] = {"base": _listed(flat)}
    near = []
    for name, values in others.items():
        if values is None:
            continue
        raveled = np.reshape(values, -1)
        if whole and np.issubdtype(raveled.dtype, np.integer):
            near.append(name)
            raveled = raveled - flat
        plain[name] = _listed(raveled)
    return plain | {"from": near}


def _listed(values: Any) -> list[Any]:
    """Numbers as JSON has them: none that is not finite, floats with two decimals."""
    if not np.issubdtype(values.dtype, np.floating):
        return list(values.tolist())
    with np.errstate(over="ignore", invalid="ignore"):
        hundredths = values.astype(float) * 100
        rounded = np.rint(hundredths)
        sure = (np.abs(hundredths) < 1e9) & (np.abs(hundredths - rounded) < 0.499999)
    listed: list[Any] = (rounded / 100).tolist()
    for i in np.flatnonzero(~sure).tolist():  # halves, as `round` has them, and very large ones
        value = float(values[i])
        listed[i] = round(value, 2) if math.isfinite(value) else None
    return listed


def marks(flags: Any) -> str:
    """How reliable cells are, the first letter each; empty where none is known.

    >>> marks(np.array(["exact", "good", ""], dtype=object)), marks(np.array([""], dtype=object))
    ('eg-', '')
    """
    letters = "".join(flag[:1] or "-" for flag in np.reshape(flags, -1).tolist())
    return letters if letters.strip("-") else ""


def within_room(sizes: Sequence[int], most: int = MOST_ROWS) -> set[int]:
    """Which tables a page carries: the smallest, as long as all of them together have room.

    >>> sorted(within_room([50, 9, 3], 20))
    [1, 2]
    """
    taken, room = set(), most
    for at in sorted(range(len(sizes)), key=sizes.__getitem__):
        if sizes[at] > room:
            break
        taken.add(at)
        room -= sizes[at]
    return taken
