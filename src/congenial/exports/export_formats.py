"""The formats, and the one protocol they follow. A new one is a new file and a line here."""

from __future__ import annotations

from typing import Protocol

from congenial.data.advance import Tell, quiet
from congenial.errors import BundleError
from congenial.exports.data_package import DataPackage
from congenial.exports.exported_tables import ExportedBundle
from congenial.exports.registry_entry import RegistryEntry
from congenial.exports.sdmx import Sdmx
from congenial.exports.workbook import Workbook


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
    one.name: one for one in (DataPackage(), Sdmx(), Workbook(), RegistryEntry())
}


def format_called(name: str) -> ExportFormat:
    """The format of that name."""
    if name not in FORMATS:
        raise BundleError(
            f"there is no format '{name}'.", remedy=f"Use one of {', '.join(FORMATS)}."
        )
    return FORMATS[name]
