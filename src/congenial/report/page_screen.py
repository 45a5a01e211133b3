"""What commands write for people, collected for a page: the same words on a screen and in HTML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from congenial.report.page import PageColumn, PageTable, table


@dataclass(frozen=True)
class PagePart:
    """A paragraph, a list of facts, or a table; the other two are empty."""

    paragraph: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    table: PageTable | None = None
    warns: bool = False


@dataclass
class PageSection:
    """A heading and what stands below it."""

    heading: str
    parts: list[PagePart] = field(default_factory=list)


class PageScreen:
    """Collects sections; it has the methods that commands write with."""

    def __init__(self) -> None:
        self.sections: list[PageSection] = []

    def heading(self, text: str) -> None:
        """A new section."""
        self.sections.append(PageSection(text))

    def paragraph(self, text: str, *, style: str = "") -> None:
        """A paragraph; space between paragraphs is the page's own."""
        if text:
            self._add(PagePart(paragraph=text, warns="red" in style))

    def line(self, name: str, value: object) -> None:
        """A name and its value."""
        self._add(PagePart(facts=((name, str(value)),)))

    def facts(self, rows: Mapping[str, object]) -> None:
        """Names and values in two columns."""
        self._add(PagePart(facts=tuple((name, str(value)) for name, value in rows.items())))

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        numbers: Collection[str] = (),
        whole: Collection[str] = (),  # noqa: ARG002 - a page wraps as it is wide
    ) -> None:
        """A table; columns named in `numbers` are set flush right."""
        heads = [PageColumn(name, name in numbers) for name in columns]
        self._add(PagePart(table=table(heads, rows)))

    def _add(self, part: PagePart) -> None:
        if not self.sections:
            self.heading("")
        self.sections[-1].parts.append(part)
