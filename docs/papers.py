"""Write docs/papers.md from docs/papers.toml: where each statement of the five papers lives.

Run `python docs/papers.py` after a change of the table; a test holds that the page is up to date.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TABLE, PAGE = HERE / "papers.toml", HERE / "papers.md"
HEAD = """# The five papers, statement by statement

Every numbered statement, what it says in our words, and where it lives: an item of
`congenial reproduce` (`PAPER ITEM`), a command, a public Python name, a test, or a page. Where a
printed statement is wrong the [errata](errata.md) are named, and the place computes the corrected
one.
Tables and figures with the printed numbers beside ours are on the pages of each paper, and
`congenial reproduce PAPER --page` writes them anew.
"""


def read() -> dict[str, dict[str, Any]]:
    """The table by paper."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def place(text: str) -> str:
    """One place as Markdown.

    >>> place("item: semi-dp figure-2")
    '`reproduce semi-dp figure-2`'
    """
    kind, _, name = text.partition(": ")
    if kind == "page":
        return f"[{Path(name).stem}]({name})"
    return {"item": f"`reproduce {name}`", "command": f"`congenial {name}`"}.get(kind, f"`{name}`")


def row(label: str, one: dict[str, Any]) -> str:
    """One line of a paper's table."""
    where = one.get("where", ())
    told = ", ".join(map(place, where)) if where else f"not a claim to implement: {one['why_not']}"
    return f"| {label} | {one['says']} | {told} |"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for paper, told in read().items():
        lines = [row(label, one) for label, one in told["statements"].items()]
        link = f"Numbers side by side: [{paper}](papers/{paper}.md)."
        head = ["| statement | says | where |", "|---|---|---|"]
        parts.append("\n".join([f"## {paper}\n\n{told['title']}. {link}\n", *head, *lines]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
