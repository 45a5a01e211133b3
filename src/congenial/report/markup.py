"""Our own HTML, taken apart by a parser: what must be the same to the letter, and what may differ.

Two kinds of passages may differ from a page that is written anew: pictures, and sections that rest
on something no bundle holds. A picture is an `img` with an SVG as its address and a caption that we
know, and stands in the one section that has it. Such a section keeps its title and uses the tags of
our own tables and paragraphs, spelled as we spell them: no link, form, script or further heading.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser

_ADDRESS = re.compile(r"data:image/svg\+xml;base64,[A-Za-z0-9+/]*={0,2}")
_TAGS = {
    "<p>", '<p class="soft">', "<ul>", "<li>", "<code>", "<h2>", "<details>", "<summary>",
    '<div class="wide">', "<table>", "<caption>", "<thead>", "<tbody>", "<tr>", "<td>",
    '<td class="number">', '<th scope="col">', '<th scope="col" class=number>', '<th scope="row">',
}  # fmt: skip


@dataclass(frozen=True)
class Loose:
    """Where a page may differ: sections by their anchors, and captions of the picture in one."""

    sections: Collection[str] = ()
    pictured: str = ""
    captions: Collection[str] = ()


def same_page(page: str, again: str, loose: Loose) -> bool:
    """Whether a page is the one written anew, apart from what may differ."""
    found, expected = _taken_apart(page, loose), _taken_apart(again, loose)
    return found is not None and expected is not None and found == expected


def _taken_apart(page: str, loose: Loose) -> list[str] | None:
    """The parts that must be the same, in order; None for a page that is not ours."""
    reader = _Reader(loose)
    reader.feed(page)
    reader.close()
    return None if reader.foreign or reader.section or reader.figure else reader.kept


@dataclass
class _Reader(HTMLParser):
    """Collects pieces as written; `foreign` is set by what we never write."""

    loose: Loose
    kept: list[str] = field(default_factory=list)
    section: str = ""
    figure: list[str] = field(default_factory=list)
    pictures: int = 0
    foreign: bool = False
    in_title: bool = False

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=False)

    @property
    def _free(self) -> bool:
        return self.section in self.loose.sections and not self.in_title

    def _keep(self, piece: str) -> None:
        if self.figure:
            self.figure.append(piece)
        elif not self._free:
            self.kept.append(piece)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag as written; pictures and the content of loose sections are held to their rules."""
        raw = self.get_starttag_text() or ""
        if tag == "section":
            self.foreign |= bool(self.section)
            self._keep(raw)
            self.section = dict(attrs).get("id") or ""
        elif raw == "<figure>" and self.section == self.loose.pictured != "":
            self.foreign |= bool(self.figure)
            self.figure = [raw]
        elif self.figure:
            self.figure.append(_picture(attrs) if tag == "img" else raw)
        else:
            self.foreign |= self._free and raw not in _TAGS
            self.in_title |= tag == "h2"
            self._keep(raw)

    def handle_endtag(self, tag: str) -> None:
        """The end of a tag; of a picture it decides whether that is one of ours."""
        if tag == "section":
            self.section = ""
        self._keep(f"</{tag}>")
        self.in_title &= tag != "h2"
        if tag == "figure" and self.figure:
            self.pictures += 1
            known = {_figure(caption) for caption in self.loose.captions}
            self.foreign |= "".join(self.figure) not in known or self.pictures > 1
            self.figure = []

    def handle_data(self, data: str) -> None:
        """Text; ours never holds a bare angle bracket, and line ends beside a picture are free."""
        self.foreign |= "<" in data and self.lasttag != "style"
        near = self.section == self.loose.pictured and not data.strip("\n")
        if not near:
            self._keep(data)

    def handle_entityref(self, name: str) -> None:
        """An escaped character."""
        self._keep(f"&{name};")

    def handle_charref(self, name: str) -> None:
        """The same by number."""
        self._keep(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        """The document's type."""
        self.foreign |= self._free
        self._keep(f"<!{decl}>")

    def handle_comment(self, data: str) -> None:
        """We write none, nor processing instructions or other declarations."""
        del data
        self.foreign = True

    handle_pi = unknown_decl = handle_comment


def _picture(attributes: list[tuple[str, str | None]]) -> str:
    """An `img` without its address, where that is a picture; anything else as it is not ours."""
    told = dict(attributes)
    if len(attributes) != 2 or set(told) != {"alt", "src"}:
        return "foreign"
    if not _ADDRESS.fullmatch(told["src"] or ""):
        return "foreign"
    return f"<img {escape(told['alt'] or '')}>"


def _figure(caption: str) -> str:
    """A picture of ours, taken apart."""
    told = escape(caption)
    return f"<figure><img {told}><figcaption>{told}</figcaption></figure>"
