"""Reading a report's page: text, tables, references."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser


class Reader(HTMLParser):
    """Collects text, tables and references, and fails on unbalanced tags."""

    VOID = {"meta", "img", "br"}

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.references: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        given = dict(attrs)
        self.references += [given[key] or "" for key in ("src", "href", "data") if key in given]
        assert not any(key.startswith("on") for key in given)
        if tag == "img":
            self.images.append(given)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def words(page: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.split("</style>")[1])))
