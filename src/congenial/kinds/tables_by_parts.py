"""Several tables of a nation, drawn part by part: [[release]] with `tables` and `parts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, model_validator

from congenial.kinds.kind import Check, Files
from congenial.kinds.loaded_kind import LoadedKind, Offers, Words
from congenial.kinds.tables import TablesSection

if TYPE_CHECKING:
    from congenial.mechanisms.tables_by_parts_release import PartedRelease


class PartsSection(TablesSection):
    """[[release]] with `tables` and `parts`: the same tables, drawn and written part by part."""

    parts: str
    workers: int | None = Field(default=None, ge=1, le=1024)

    @model_validator(mode="after")
    def _as_they_are(self) -> PartsSection:
        if self.keep:
            raise ValueError("keep: whole counts by parts follow the areas of the tables only")
        if self.accuracy is not None:
            raise ValueError("accuracy: state rho or epsilon for a release by parts")
        return self


class TablesByParts(LoadedKind[PartsSection]):
    """Tables of a nation under one promise, drawn, estimated and written part by part."""

    key = "parts"
    name = "tables by parts"
    section = PartsSection
    instead: ClassVar[str] = (
        "Ask one part of it with --part: docs/how-to/from-a-county-to-a-nation."
    )

    def offers(self) -> Offers:
        """`tables_by_parts_offer`."""
        from congenial.kinds import tables_by_parts_offer

        return tables_by_parts_offer

    def words(self) -> Words:
        """`tables_by_parts_words`."""
        from congenial.kinds import tables_by_parts_words

        return tables_by_parts_words

    def shown(self, section: PartsSection) -> Sequence[str]:
        """The axes of all tables."""
        tables = section.tables if isinstance(section.tables, list) else [section.table or []]
        return [name for names in tables for name in names]

    @property
    def release_class(self) -> type[PartedRelease]:
        """`PartedRelease`."""
        from congenial.mechanisms.tables_by_parts_release import PartedRelease

        return PartedRelease

    def report(self, release: PartedRelease, promise: str) -> str:
        """The report: the tables above the parts, and what there is of the others."""
        from congenial.report.tables_by_parts_report import render

        return render(release, promise)

    def part_file(self, files: Files, part: str) -> str:
        """The name of a part's file in the folder of every table."""
        from congenial.kinds.tables_by_parts_verification import part_file

        return part_file(files, part)

    def verify(self, files: Files, release: PartedRelease) -> list[Check]:
        """Promise, design, estimates, whole counts and files, all worked out anew."""
        from congenial.kinds.tables_by_parts_verification import verify

        return verify(files, release)

    def verify_part(self, files: Files, release: PartedRelease, part: str) -> list[Check]:
        """The same for one part, given what is printed of its top."""
        from congenial.kinds.tables_by_parts_verification import verify_part

        return verify_part(files, release, part)


KIND = TablesByParts()
