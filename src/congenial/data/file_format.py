"""How a plan's records are read: where they are, how their files are written, what is derived."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from congenial.errors import DataError

if TYPE_CHECKING:
    from congenial.data.derive import Derivation

UTF_8 = "utf-8"


@dataclass(frozen=True)
class FileFormat:
    """How files are written: the separator and the encoding of CSV, the sheet of a workbook.

    None is the default: a comma, semicolon, tab or bar as the header shows, UTF-8, the only sheet.
    `skip_blank_rows` leaves out rows in which every column that is used is empty: of such a row
    only separators are left, and it is nobody's record.
    """

    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    skip_blank_rows: bool = False

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and (not 1 <= len(mark) <= 4 or set(mark) & {'"', "\n", "\r"}):
            raise DataError(
                f"the separator {mark!r} cannot separate fields.",
                remedy="Give one to four characters, none of them a quote or a line end.",
            )
        if self.encoding is not None and codec(self.encoding) is None:
            raise DataError(
                f"{self.encoding!r} is not a known encoding.",
                remedy='Write for example "cp1252", "latin-1", "utf-16" or "shift_jis".',
            )

    @property
    def transcodes(self) -> bool:
        """Whether files are written in anything but UTF-8."""
        return self.encoding is not None and codec(self.encoding) != UTF_8


def codec(encoding: str) -> str | None:
    """Python's name of a text encoding; None where it has none.

    >>> codec("UTF8"), codec("Windows-1252"), codec("rot13"), codec("klingon")
    ('utf-8', 'cp1252', None, None)
    """
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError):
        return None
    return found.name if getattr(found, "_is_text_encoding", True) else None


@dataclass(frozen=True)
class UnitFile:
    """A file with a row for each unit, joined to the rows by `key`.

    `never_empty`: a unit without rows is refused.
    """

    address: Path
    key: str
    never_empty: bool = False


@dataclass(frozen=True)
class PlannedSource:
    """Records at an address, read and derived as a plan says; `Microdata.open` takes it."""

    address: str | Path
    file_format: FileFormat = FileFormat()
    derivations: tuple[Derivation, ...] = ()
    units: UnitFile | None = None
