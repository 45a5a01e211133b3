"""Bundles with claims made better and everything around them made to fit.

Digests are fresh, and the promise is rewritten wherever it is told, as a careful forger would.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import escape

from congenial import read, verify
from congenial.publication.bundle import as_json, sha256
from congenial.publication.verification import further_promise_of

Change = Callable[[Any, Path], None]
NOT_OURS = "report.html contains no unexpected text or pictures"
ADDED = {
    "heading": "<h2>Epsilon is 0.0001</h2>",
    "link": '<a href="https://example.org">correction</a>',
    "form": '<form action="https://example.org"><input name="password"></form>',
    "script": "<script>alert(1)</script>",
    "comment": "<!-- epsilon is 0.0001 -->",
    "style": '<p style="font-size:9em">',
}


def failed(bundle: Path) -> set[str]:
    """The checks that do not hold."""
    return {check.what for check in verify(bundle) if not check.holds}


def told(bundle: Path) -> list[str]:
    """The paragraphs that state a promise: the release's own, and the one about persons."""
    release = read(bundle)
    persons = further_promise_of(release)
    return [release.guarantee.explain(), "" if persons is None else persons.explain()]


def forged(bundle: Path, place: Path, change: Change) -> set[str]:
    """What `verify` notices in a copy that was changed, with its promise told anew."""
    copy = place / "forged"
    shutil.copytree(bundle, copy)
    before = told(copy)
    index = json.loads((copy / "release.json").read_text())
    change(index, copy)
    (copy / "release.json").write_bytes(as_json(index))
    for old, new in zip(before, told(copy), strict=True):
        index["promise"] = index["promise"].replace(old, new) if old else index["promise"]
        for name in ("README.txt", "report.html"):
            text = (copy / name).read_text()
            text = text.replace(old, new).replace(escape(old), escape(new)) if old else text
            (copy / name).write_text(text)
    refit(index, copy)
    return failed(copy)


def altered(bundle: Path, place: Path, change: Change) -> set[str]:
    """The same for changes that leave the promise alone, and may leave nothing to be read."""
    copy = place / "altered"
    shutil.copytree(bundle, copy)
    index = json.loads((copy / "release.json").read_text())
    change(index, copy)
    refit(index, copy)
    return failed(copy)


def refit(index: Any, copy: Path) -> None:
    """Fresh digests."""
    index["files"] = {name: sha256((copy / name).read_bytes()) for name in index["files"]}
    for folder, files in index.get("folders", {}).items():
        files.update({name: sha256((copy / folder / name).read_bytes()) for name in files})
    (copy / "release.json").write_bytes(as_json(index))
    (copy / "DIGEST.txt").write_text(sha256((copy / "release.json").read_bytes()) + "\n")


# ---- the same numbers, written otherwise ---------------------------------------------------------


def parquet_forgeries(table: Any) -> Iterator[tuple[str, bytes]]:
    """Parquet files that hold what is ours in other types, with words, or with lies about it."""
    for kind in (pa.int32(), pa.uint64(), pa.float32(), pa.large_string(), pa.binary()):
        for at, field in enumerate(table.schema):
            if pa.types.is_string(field.type) == (kind in (pa.large_string(), pa.binary())):
                column = table.column(at).cast(kind, safe=False)
                if column.type != field.type:
                    changed = table.set_column(at, field.name, column)
                    yield f"{field.name} as {kind}", written(changed)
    yield "a column more", written(table.append_column("note", table.column(0)))
    yield "a column less", written(table.drop_columns(table.column_names[-1]))
    yield "other order", written(table.select(table.column_names[::-1]))
    yield "a row more", written(pa.concat_tables([table, table.slice(0, 1)]))
    yield "text in its footer", written(table.replace_schema_metadata({"note": "epsilon is 0"}))
    content = written(table)
    for which in (slice(0, 1), slice(1, 2), slice(0, None)):
        for rows in (0, 1, 2**20 - 1):
            yield f"footer says {rows}", lie(content, table.num_rows, rows, which)
    many = pa.concat_tables([table] * 200)
    yield "footer hides rows", lie(written(many), many.num_rows, table.num_rows, slice(0, None))


def written(table: Any) -> bytes:
    """A Parquet file."""
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def varint(number: int, length: int = 0) -> bytes:
    """A number in the footer's notation, made longer with empty digits where asked."""
    left, digits = 2 * number, []
    while left or not digits or len(digits) < length:
        digits.append(left & 127 | 128)
        left >>= 7
    digits[-1] &= 127
    return bytes(digits)


def lie(content: bytes, true: int, told: int, which: slice) -> bytes:
    """The same file with some mentions of a number in its footer changed.

    The footer begins with the version of the format, which no file of ours claims anything by.
    """
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert content[start] == 0x15  # a whole number, the first field
    start += 2
    pieces = content[start:].split(varint(true))
    assert len(pieces) > 3  # file, column and group say it
    marks = [varint(true)] * (len(pieces) - 1)
    marks[which] = [varint(told, len(varint(true)))] * len(marks[which])
    return content[:start] + b"".join(a + b for a, b in zip(pieces, [*marks, b""], strict=True))


def text_forgeries(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """CSV and JSON files that say the same numbers in other letters, or a word more."""
    text = content.decode()
    if name.endswith(".csv"):
        yield "a line more", f"{text}epsilon is 0\n".encode()
        yield "a comment", f"# epsilon is 0\n{text}".encode()
        yield "a column more", text.replace("\n", ",0\n").encode()
        digits = re.compile(r"(?<=,)(-?)(\d+)(?=[,.\n])")
        if digits.search(text):
            yield "a zero in front", digits.sub(r"\g<1>0\2", text, count=1).encode()
        yield "other ends of lines", text.replace("\n", "\r\n").encode()
        yield "a mark of order", b"\xef\xbb\xbf" + content
        return
    told = json.loads(text)
    yield "a key more", as_json(told | {"note": "epsilon is 0"})
    yield "spaces", json.dumps(told, indent=2, ensure_ascii=False).encode()
    yield "a key twice", text.replace("{", '{"note": 1,', 1).encode()
    whole = re.compile(r"(?<=[ \[])(-?\d+)(?=[,\n\]])")
    if whole.search(text):
        yield "a whole number with a point", whole.sub(r"\1.0", text, count=1).encode()
