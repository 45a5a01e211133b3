"""Reading a report's page: text, tables, references, and the rows in its data block."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from itertools import product
from typing import Any

from congenial.report.page_data import rows_of


class Reader(HTMLParser):
    """Collects text, tables and references, and fails on unbalanced tags."""

    VOID = {"meta", "img", "br", "input"}

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
    page = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.split("</style>")[1])))


def cells_of(page: str, *names: str) -> list[dict[str, Any]]:
    """The cells of a table on a page: labels, `value`, `exact`, and every other column."""
    data = rows_of(page)
    (table,) = [one for one in data["tables"] if one["axes"] == list(names)]
    columns = table["columns"]
    near = columns["from"]
    labels = product(*(data["axes"][name]["levels"] for name in names))
    found = []
    for at, levels in enumerate(labels):
        base = columns["base"][at]
        more = {
            name: values[at] + (base if name in near else 0)
            for name, values in columns.items()
            if name not in ("from", "base")
        }
        exact = table["flags"][at : at + 1] == "e"
        found.append(dict(zip(names, levels, strict=True)) | {"value": base, "exact": exact} | more)
    return found
