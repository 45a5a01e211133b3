"""The bundle: a folder that can be published as it is, and that an analyst can read back.

It holds released values, schema with labels, published figures, mechanism description, guarantee, a
report, a citation and a digest, and nothing else. The digest detects accidents, not forgery:
compare it with one published elsewhere.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, overload

from congenial._version import __version__
from congenial.data.arguments import PATH, expect
from congenial.data.durable_files import rename_synced, sync, write_synced
from congenial.data.schema import Schema
from congenial.data.text_files import indented
from congenial.errors import BundleError, CongenialError
from congenial.figures.figures import Figures, in_place
from congenial.mechanisms.released import PartFile, ReadFrom, Released
from congenial.privacy.descriptions import read_description
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import absurd_promise

FORMAT = 1
INDEX = "release.json"
DIGEST = "DIGEST.txt"
COMMON = (
    "schema.json",
    "published.json",
    "published.csv",
    "report.html",
    "README.txt",
    "CITATION.cff",
)
LARGEST_INDEX = 256 * 2**20  # bytes of JSON that a reader will parse
LARGEST_FILE = 2**35  # bytes of any file that a reader will look into


def write(
    release: Released, folder: Path, promise: str, report: str, partial: Path | None = None
) -> PreparedBundle:
    """Write the bundle, synced, under a temporary name; `PreparedBundle.publish` moves it."""
    check_absent(folder)
    created = time_of(release)
    if partial is None:
        partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        partial.mkdir(parents=True)
        for name, content in files_of(release, promise, report, created).items():
            write_synced(partial / name, content)
        _link_parts(release, partial)
        digest = _write_index(release, partial, promise, created)
        sync(partial)
    except OSError as reason:
        shutil.rmtree(partial, ignore_errors=True)
        raise BundleError(
            f"cannot write to '{folder.parent}': {reason.strerror}.",
            remedy="Choose a folder you can write to with --out.",
        ) from None
    return PreparedBundle(partial, folder, digest)


def _link_parts(release: Released, partial: Path) -> None:
    """Give the files that were written apart their place, without copying where that can be."""
    for name, file in release.part_files.items():
        place = partial / name
        place.parent.mkdir(exist_ok=True)
        try:
            os.link(file.path, place)
        except OSError:  # another file system, or one without links
            shutil.copyfile(file.path, place)
            sync(place)
    for folder in folders_of(release):
        sync(partial / folder)


def folders_of(release: Released) -> dict[str, dict[str, str]]:
    """Digests of the files in folders, by folder and name."""
    digests: dict[str, dict[str, str]] = {}
    for name, file in release.part_files.items():
        folder, _, inside = name.partition("/")
        digests.setdefault(folder, {})[inside] = file.digest
    return digests


def check_absent(folder: Path) -> None:
    """Refuse to overwrite anything, and find out early whether the place can be written to."""
    if folder.exists():
        raise BundleError(
            f"'{folder}' already exists. A bundle is never overwritten, and a second draw would "
            "spend budget again. Nothing was drawn.",
            remedy="Choose other releases with --name. To draw this one again, give it a new name "
            "in the plan, or another folder with --out.",
        )
    check_parent(folder)


def check_parent(folder: Path) -> None:
    """Refuse a place that cannot be written to."""
    parent = folder.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise BundleError(
            f"'{parent}' cannot be written to.", remedy="Choose another folder with --out."
        )


@dataclass(frozen=True)
class PreparedBundle:
    """A complete bundle under its temporary name."""

    partial: Path
    folder: Path
    digest: str

    def publish(self) -> None:
        """Give the bundle its name, in one step, and wait until that is on disk."""
        try:
            rename_synced(self.partial, self.folder)
        except OSError as reason:
            raise BundleError(
                f"cannot move the finished bundle to '{self.folder}': {reason.strerror}.",
                remedy=f"It is complete at '{self.partial}'; move it by hand.",
            ) from None


def drawn_files(release: Released) -> dict[str, bytes]:
    """The files that hold what was released, and what it takes to read them."""
    return {
        **release.payload(),
        "schema.json": as_json(release.schema.to_dict()),
        "published.json": as_json(release.everything.to_dict()),
    }


def time_of(release: Released) -> str:
    """When its bundle was made: what the bundle says that it was read from, or now."""
    origin = release.origin
    return origin.created if origin else datetime.now(UTC).isoformat(timespec="seconds")


def files_of(release: Released, promise: str, report: str, created: str) -> dict[str, bytes]:
    """Every file of a bundle but its index and digest."""
    from congenial.publication.bundle_texts import citation, published_csv, readme

    return {
        **drawn_files(release),
        "published.csv": published_csv(release.everything).encode(),
        "report.html": report.encode(),
        "README.txt": readme(release, promise).encode(),
        "CITATION.cff": citation(release, created).encode(),
    }


def _write_index(release: Released, folder: Path, promise: str, created: str) -> str:
    plain = [path for path in sorted(folder.iterdir()) if not path.is_dir()]
    files = {path.name: sha256(path.read_bytes()) for path in plain}
    content = as_json(index_of(release, promise, files, created))
    write_synced(folder / INDEX, content)
    digest = sha256(content)
    write_synced(folder / DIGEST, (digest + "\n").encode())
    return digest


def index_of(
    release: Released, promise: str, files: Mapping[str, str], created: str
) -> dict[str, Any]:
    """What release.json says; `files` are the digests by name."""
    folders = folders_of(release)
    return {
        "bundle": FORMAT,
        "kind": release.kind,
        "name": release.name,
        "software": f"congenial {__version__}",
        "created": created,
        "description": release.description.to_dict(),
        "guarantee": release.guarantee.to_dict(),
        "promise": promise,
        "randomness": release.randomness,
        "publishable": release.publishable,
        "files": dict(files),
        **({"folders": folders} if folders else {}),
    }


R = TypeVar("R", bound=Released)


@overload
def read(folder: str | Path) -> Released: ...
@overload
def read(folder: str | Path, expected: type[R]) -> R: ...
def read(folder: str | Path, expected: type[Released] = Released) -> Released:
    """Read a bundle back; what is damaged or unknown is refused.

    expected: the class of the release that you expect. A bundle of another kind is then refused,
    and type checkers know what is returned. Without it every kind is read, as a `Released`: a
    `TablesRelease` for protected tables, one or several, a `StatisticsRelease`, `ValuesRelease` or
    `SyntheticRelease` for statistics, counts given public information, synthetic records. A nation
    drawn by parts is a `PartedRelease`, whose files are opened when asked for.

    Reading checks form only; `verify` checks digests, words and the promise.

    >>> from tempfile import TemporaryDirectory
    >>> from congenial import Guarantee, ReplaceOne, Schema, Table, TablesRelease, calibrate
    >>> from congenial import release_table
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> drawn = release_table(mechanism, Table(schema, ["sex"], [90, 110]), name="sex")
    >>> with TemporaryDirectory() as folder:
    ...     digest = drawn.save(Path(folder) / "sex")
    ...     release = read(Path(folder) / "sex", TablesRelease)
    >>> release.interval("sex = 'f'", 0.90) == drawn.interval("sex = 'f'", 0.90)
    True
    """
    expect(folder, PATH, "the folder", "Give its path.", BundleError)
    folder = Path(folder)
    index = read_index(folder)
    release = assemble(index, lambda name: _parse(folder / name), FilesOf(folder, index), folder)
    promise, created = str(index.get("promise")), str(index.get("created"))
    page = partial(read_text, folder / "report.html")
    vars(release)["origin"] = ReadFrom(folder, promise, created, page)
    if not isinstance(release, expected):
        raise BundleError(
            f"'{folder}' is a bundle of kind '{release.kind}', read as {type(release).__name__}, "
            f"not as {expected.__name__}.",
            remedy=f"Use read(folder, {type(release).__name__}), or leave the class out.",
        )
    return release


def assemble(
    index: Mapping[str, Any],
    parsed: Callable[[str], Any],
    payload: Mapping[str, bytes],
    where: Path,
) -> Released:
    """The release that an index, two JSON files and the files it names describe."""
    release_class = _class_of(index.get("kind"), index.get("description"))
    try:
        schema = Schema.from_dict(parsed("schema.json"), None)
        published = Figures.from_dict(schema, parsed("published.json"))
        description = read_description(schema, index["description"])
        units = getattr(description, "units", False)
        published.join(in_place(description.support, units))  # refuses one with other figures
        release = release_class.from_payload(
            name=str(index["name"]),
            description=description,
            guarantee=_promise(published, index["guarantee"]),
            randomness=str(index["randomness"]),
            publishable=bool(index["publishable"]),
            payload=payload,
        )
        _ = release.guarantee.explain(), release.guarantee.to_dict()  # fields of the wrong kind
    except CongenialError:
        raise
    except Exception as reason:  # noqa: BLE001 - a stranger's bundle may be wrong in any way
        raise BundleError(
            f"'{where}' cannot be read as a bundle ({type(reason).__name__}).",
            remedy="Run `congenial verify` on it, or get a fresh copy.",
        ) from None
    return release


def _class_of(kind: Any, description: Any) -> type[Released]:
    """What reads bundles of a kind; tables are read without loading how plans are written."""
    from congenial.mechanisms.tables_release import TablesRelease

    if kind == TablesRelease.kind:
        if not isinstance(description, dict) or not description.get("parts"):
            return TablesRelease
        from congenial.mechanisms.parted_release import PartedRelease

        return PartedRelease
    from congenial.kinds.registry import by_name

    return by_name(kind).release_class


def _promise(published: Figures, told: Any) -> Guarantee:
    """The promise, refused before anything is worked out of it where nobody can mean it."""
    promise = Guarantee.from_dict(published, told)
    why = absurd_promise(promise.tradeoff)
    if why:
        raise BundleError(
            f"the stated promise is not possible: {why.partition(';')[0]}.",
            remedy="Do not use this bundle; ask its publisher.",
        )
    return promise


class FilesOf(Mapping[str, bytes]):
    """The files that the index of a bundle names, read when they are asked for."""

    def __init__(self, folder: Path, index: Mapping[str, Any]) -> None:
        self._folder, self.index = folder, index

    @cached_property
    def part_files(self) -> dict[str, PartFile]:
        """The files in folders, by `folder/name`."""
        return {
            f"{folder}/{name}": PartFile(self._folder / folder / name, digest)
            for folder, files in checked_folders(self.index).items()
            for name, digest in files.items()
        }

    @property
    def _names(self) -> set[str]:
        return set(self.index["files"])

    def __getitem__(self, name: str) -> bytes:
        if name not in self._names or Path(name).name != name:
            raise KeyError(name)
        return read_bytes(self._folder / name)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names))

    def __len__(self) -> int:
        return len(self._names)


def checked_folders(index: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The folders that release.json names; BundleError if one lies elsewhere."""
    folders = index.get("folders", {})
    plain = isinstance(folders, dict) and all(
        isinstance(digests, dict) for digests in folders.values()
    )
    names = (
        [*folders, *(name for digests in folders.values() for name in digests)] if plain else [""]
    )
    if not plain or any(
        not isinstance(name, str) or Path(name).name != name or name in ("", ".", "..")
        for name in names
    ):
        raise BundleError(
            "release.json lists folders outside the bundle's folder.",
            remedy="Do not use this bundle; get it from its publisher.",
        )
    return {
        folder: {name: str(digest) for name, digest in files.items()}
        for folder, files in folders.items()
    }


def read_index(folder: Path) -> dict[str, Any]:
    """The bundle's release.json, after checking that it is one."""
    if not folder.is_dir() or not any((folder / name).exists() for name in (INDEX, DIGEST)):
        raise BundleError(
            f"there is no bundle in '{folder}'.",
            remedy=f"Give the bundle's own folder, the one with {INDEX}.",
        )
    index = _parse(folder / INDEX)
    if not isinstance(index, dict) or index.get("bundle") != FORMAT:
        raise BundleError(
            f"'{folder}' was written by another version of congenial, and this version cannot "
            "read it.",
            remedy="Read it with the version that wrote it, or get a new copy from its publisher.",
        )
    return index


def as_json(value: Any) -> bytes:
    """A document of a bundle, as written."""
    text = io.BytesIO()  # a nation's document is large: one copy of it
    for piece in indented(value, ensure_ascii=False):
        text.write(piece.encode())
    text.write(b"\n")
    return text.getvalue()


def _parse(path: Path) -> Any:
    text = read_text(path)
    try:
        document = json.loads(text)
        if "\\ud" in text or "\\uD" in text:  # half a character: it can be written nowhere
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except (ValueError, RecursionError):
        raise BundleError(
            f"'{path}' is not valid JSON.", remedy="Get a fresh copy of the bundle."
        ) from None


def read_text(path: Path) -> str:
    """A text file of a bundle, refused when it cannot be read or is far too large."""
    try:
        return read_bytes(path, LARGEST_INDEX).decode()
    except UnicodeDecodeError:
        raise BundleError(
            f"'{path}' cannot be read.", remedy="Get a fresh copy of the bundle."
        ) from None


def read_bytes(path: Path, largest: int = LARGEST_FILE) -> bytes:
    """A file of a bundle, refused when it cannot be read, is far too large, or is no file at all:
    a device or a pipe would never end.
    """
    try:
        if path.is_file():
            if path.stat().st_size > largest:
                raise BundleError(f"'{path}' is too large to be part of a bundle.")
            return path.read_bytes()
    except (OSError, ValueError):  # ValueError: a name no file system allows
        pass
    raise BundleError(f"'{path}' cannot be read.", remedy="Get a fresh copy of the bundle.")


def sha256(content: bytes) -> str:
    """The digest of a file's content."""
    return hashlib.sha256(content).hexdigest()


# ---- folders for confidential numbers, never inside a bundle -------------------------------------


def private_folder(folder: Path) -> Path:
    """Make a folder for confidential numbers; BundleError inside a bundle, or where it cannot be.

    A folder that is there already keeps its mode: what is put into it is to be made private too.
    """
    if any((parent / INDEX).exists() for parent in (folder, *folder.resolve().parents)):
        raise BundleError(
            "confidential numbers must not be written into a bundle.",
            remedy="Choose another folder with --out.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as reason:
        raise BundleError(f"'{folder}' cannot be written: {reason.strerror}.") from None
    return folder


def private_file(path: Path) -> Path:
    """The file at `path`, made if need be, that only its owner may read."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    return path
