"""Markers, and everything a reader of folders and output would see of them."""

from __future__ import annotations

import base64
import json
import re
import struct
from pathlib import Path

# What the data hold and nothing may show: an identifier, an answer, a column no plan names.
MARK = "S3CR3T"
IDENTIFIER, ANSWER, ASIDE = f"{MARK}-id-9137", f"{MARK}-answer-4471", f"{MARK}-aside-2290"
NUMBER = 8_675_309  # an age or an income, in the open bin of its column
COUNT = 31_337  # people in one cell

# SHA-256 anywhere: in a SQLite file the columns of a row follow each other without a mark between.
_DIGEST = re.compile(r"[0-9a-f]{64}|(?<![0-9a-zA-Z])(?:[0-9a-f]{40}|[0-9a-f]{32})(?![0-9a-zA-Z])")
_EMBEDDED = re.compile(r"base64,([A-Za-z0-9+/=]{16,})")


def told(*places: Path, texts: tuple[str, ...] = ()) -> str:
    """All text in folders and output, Parquet spelled out and pictures unpacked."""
    found = list(texts)
    files = [file for place in places for file in sorted(place.rglob("*")) if file.is_file()]
    for file in files:
        found.append(str(file))
        content = file.read_bytes()
        found.append(content.decode("utf-8", "replace"))
        found.append(content.decode("latin-1"))
        if file.suffix == ".parquet":
            found.append(_parquet(file))
        for packed in _EMBEDDED.findall(found[-1]):
            found.append(base64.b64decode(packed + "==").decode("latin-1"))
    return "\n".join(found)


def _parquet(file: Path) -> str:
    import pyarrow.parquet as pq

    table = pq.read_table(file)
    return json.dumps(table.to_pylist()) + str(pq.read_metadata(file).to_dict())


def shown(number: int) -> tuple[str, ...]:
    """A number as it may be printed or packed."""
    packed = (struct.pack("<q", number), struct.pack("<d", float(number)))
    return (
        *(
            rf"(?<!\d){text}(?!\d)"
            for text in (str(number), f"{number:,}", re.escape(f"{number:e}"))
        ),
        *(re.escape(content.decode("latin-1")) for content in packed),
    )


def leaks(text: str, numbers: tuple[int, ...] = (NUMBER, COUNT)) -> list[str]:
    """The markers that are in a text; the digits inside a digest are nobody's number."""
    found = [MARK] if MARK in text else []
    plain = _DIGEST.sub(" ", text)
    return found + [str(n) for n in numbers if any(re.search(how, plain) for how in shown(n))]
