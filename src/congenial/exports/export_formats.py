"""The formats, and the one protocol they follow. A new one is a new file and a line here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from congenial.data.advance import Tell, quiet
from congenial.errors import BundleError
from congenial.exports.data_package import DataPackage
from congenial.exports.exported_tables import ExportedBundle, exported_bundle
from congenial.exports.registry_entry import RegistryEntry
from congenial.exports.sdmx import Sdmx
from congenial.exports.workbook import Workbook
from congenial.publication.bundle import DIGEST, read, read_index, read_text


class ExportFormat(Protocol):
    """A way to write a bundle for other tools."""

    @property
    def name(self) -> str:
        """What `--to` calls it."""

    @property
    def words(self) -> str:
        """What it is, for people."""

    def files(self, bundle: ExportedBundle, progress: Tell = quiet) -> dict[str, bytes]:
        """The files to write, by name; `progress` is told how far it is."""

    def left_open(self, bundle: ExportedBundle) -> list[str]:
        """What a person has to fill in, because no bundle says it."""


FORMATS: dict[str, ExportFormat] = {
    export_format.name: export_format
    for export_format in (DataPackage(), Sdmx(), Workbook(), RegistryEntry())
}


def export_bundle(
    folder: Path, to: str, out: Path, level: float, part: str | None = None, progress: Tell = quiet
) -> dict[str, Any]:
    """Write a bundle in a format; what was written and what is left to fill in."""
    if to not in FORMATS:
        raise BundleError(f"there is no format '{to}'.", remedy=f"Use one of {', '.join(FORMATS)}.")
    release, digest = read(folder), read_text(folder / DIGEST).strip()
    progress("working out intervals")
    bundle = exported_bundle(release, read_index(folder), digest, level, part)
    return {
        "bundle": str(folder),
        "format": to,
        "files": [str(path) for path in _write(FORMATS[to].files(bundle, progress), out)],
        "left_open": FORMATS[to].left_open(bundle),
        "publishable": release.publishable,
    }


def _write(files: dict[str, bytes], out: Path) -> list[Path]:
    """The files, none of them in place of another."""
    paths = {out / name: content for name, content in files.items()}
    there = [path for path in paths if path.exists()]
    if there:
        raise BundleError(f"'{there[0]}' already exists.", remedy="Choose another --out.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, content in paths.items():
            path.write_bytes(content)
    except OSError as reason:
        raise BundleError(
            f"cannot write to '{out}': {reason.strerror}.", remedy="Choose another --out."
        ) from None
    return list(paths)
