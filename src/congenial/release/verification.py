"""`verify`: is a bundle whole, and does what it says follow from what it holds?

Digests detect accidents. The checks of content read the bundle and work out again what can be
worked out: sums, labels, the promise. None of this detects a forger who rewrites everything; a
digest published elsewhere does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from congenial.errors import BundleError, CongenialError
from congenial.mechanisms.release import Release, table_csv
from congenial.public.support import support
from congenial.release.bundle import (
    DIGEST,
    INDEX,
    published_csv,
    read,
    read_index,
    read_text,
    sha256,
)


@dataclass(frozen=True)
class Check:
    """One line of `verify`: what was checked and whether it holds."""

    what: str
    holds: bool
    detail: str = ""


def verify(folder: str | Path, digest: str | None = None) -> list[Check]:
    """Check a bundle's digests (against one published elsewhere if given) and its content."""
    folder = Path(folder)
    index = read_index(folder)
    actual = sha256((folder / INDEX).read_bytes())
    stated = read_text(folder / DIGEST).strip()
    checks = [Check("release.json matches DIGEST.txt", actual == stated)]
    if digest is not None:
        checks.append(Check("release.json matches the digest you gave", actual == digest.strip()))
    for name, expected in sorted(_manifest(index).items()):
        path = folder / name
        same = path.is_file() and not path.is_symlink() and sha256(path.read_bytes()) == expected
        checks.append(Check(f"{name} is as released", same))
    known = {*_manifest(index), INDEX, DIGEST}
    extra = sorted(path.name for path in folder.iterdir() if path.name not in known)
    checks.append(Check("nothing was added", not extra, ", ".join(extra)))
    if all(check.holds for check in checks):
        checks.extend(_content(folder, index))
    return checks


def _content(folder: Path, index: Mapping[str, Any]) -> list[Check]:
    """What the bundle says, against what follows from its parts."""
    try:
        release = read(folder)
    except CongenialError as error:
        return [Check("the bundle can be read", False, str(error))]
    promised = release.guarantee
    told = index["guarantee"]["adjacency"]
    checks = [
        *(_table(folder, release) if isinstance(release, Release) else _payload(folder, release)),
        Check(
            "published.csv says the same as published.json",
            read_text(folder / "published.csv") == published_csv(release.published),
        ),
        Check("the promise is about the pairs it names", told == promised.adjacency.to_dict()),
        Check(
            "the promise in words is the one in numbers",
            str(index["promise"]).startswith(promised.explain()),
        ),
    ]
    if not release.publishable:
        checks.append(Check("drawn from the system's randomness", False, release.randomness))
    return checks


def _table(folder: Path, release: Release) -> list[Check]:
    """What a protected table must satisfy."""
    promised = release.guarantee.tradeoff
    signed = release.raw is None and not release.description.nonnegative
    return [
        Check("table.parquet has the schema's labels", _same_table(folder, release)),
        Check("table.csv says the same", _same_text(folder / "table.csv", release.to_arrow())),
        Check(
            "the table agrees with every published figure",
            _agrees(release, release.values) and _agrees(release, release.drawn),
        ),
        Check("counts said to be nonnegative are", signed or release.values.min() >= 0),
        Check(
            "the promise follows from the description",
            release.mechanism.guarantee.tradeoff == promised,
        ),
    ]


def _payload(folder: Path, release: Any) -> list[Check]:
    """What any other release must satisfy: it reads back as it was written."""
    again = release.payload()
    same = all((folder / name).read_bytes() == content for name, content in again.items())
    try:
        found = release.checks()
    except (CongenialError, KeyError, TypeError, ValueError):
        found = {"what it says of itself makes sense": False}
    return [
        Check("what was released reads back as written", same),
        *(Check(what, holds) for what, holds in found.items()),
    ]


def _agrees(release: Release, values: Any) -> bool:
    """Known sums are as published, and cells known to be empty are."""
    return support(release.description.support, release.table).agrees(values)


def _same_table(folder: Path, release: Release) -> bool:
    import pyarrow.parquet as pq

    return bool(pq.read_table(folder / "table.parquet").equals(release.to_arrow()))


def _same_text(path: Path, table: Any) -> bool:
    return path.read_bytes() == table_csv(table)


def _manifest(index: Mapping[str, Any]) -> dict[str, str]:
    files = index.get("files")
    if not isinstance(files, dict) or any(
        not isinstance(name, str) or Path(name).name != name or name in ("..", ".")
        for name in files
    ):
        raise BundleError(
            "release.json lists files outside the bundle's folder.",
            remedy="Do not use this bundle; get it from its publisher.",
        )
    return {name: str(value) for name, value in files.items()}
