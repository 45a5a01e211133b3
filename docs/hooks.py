"""What the site's builder is told about our pages.

Two pages are completed while the site is built, so that nothing on them is written twice: the
command line from the program's own help, and the statements of the papers from `papers.toml`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COMMANDS = "<!-- commands: written from the program's help -->"
STATEMENTS = "<!-- statements: written from papers.toml -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Complete a page, and drop the words after a block's language (`run`, `exit=2`): they are for
    the tests.
    """
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands())
    if STATEMENTS in markdown:
        markdown = markdown.replace(STATEMENTS, statements())
    return re.sub(r"^```(\w+)[^\S\n]+[^\n]*$", r"```\1", markdown, flags=re.MULTILINE)


def commands() -> str:
    """Every command with its help, its options and its examples."""
    import typer

    from congenial.cli import app

    root: Any = typer.main.get_command(app)
    sections = [section("congenial", root)]
    for name, command in root.commands.items():
        for inner, subcommand in getattr(command, "commands", {"": command}).items():
            sections.append(section(f"congenial {name} {inner}".rstrip(), subcommand))
    return "\n".join(sections)


def section(name: str, command: Any) -> str:
    """One command as Markdown."""
    arguments = [p.name.upper() for p in command.params if p.opts[0][:2] != "--"]
    options = [p for p in command.params if p.opts[0].startswith("--") and "--help" not in p.opts]
    rows = [f"| `{' '.join(p.opts)}` | {cell(p.help)}{default(p)} |" for p in options]
    lines = [f"### {name}", "", f"`{' '.join([name, *arguments])}`: {command.help.strip()}", ""]
    lines += ["| option | meaning |", "|---|---|", *rows, ""] if rows else []
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line[:1] == " "]
    return "\n".join([*lines, "```sh", *examples, "```", ""] if examples else lines)


def cell(text: str) -> str:
    """Text that a table can hold."""
    return text.replace("|", "\\|")


def default(option: Any) -> str:
    """The value an option has if it is left out, where its help does not say so."""
    if option.default in (None, False, (), [], "") or "[default" in option.help:
        return ""
    return f" [default: {getattr(option.default, 'value', option.default)}]"


def papers() -> dict[str, dict[str, Any]]:
    """Where each numbered statement lives, by paper."""
    return tomllib.loads((HERE / "papers.toml").read_text(encoding="utf-8"))


def statements() -> str:
    """A table of statements for each paper."""
    parts = []
    for paper, entry in papers().items():
        rows = [statement(label, row) for label, row in entry["statements"].items()]
        link = f"Numbers side by side: [{paper}](papers/{paper}.md)."
        head = [f"## {paper}", "", f"{entry['title']}. {link}", ""]
        parts.append("\n".join([*head, "| statement | says | where |", "|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def statement(label: str, row: dict[str, Any]) -> str:
    """One line of a paper's table."""
    places = ", ".join(map(place, row.get("where", ())))
    return f"| {label} | {row['says']} | {places or 'nothing to implement: ' + row['why_not']} |"


def place(text: str) -> str:
    """One place as Markdown.

    >>> place("item: semi-dp figure-2")
    '`reproduce semi-dp figure-2`'
    """
    kind, _, name = text.partition(": ")
    if kind == "page":
        return f"[{Path(name).stem}]({name})"
    return {"item": f"`reproduce {name}`", "command": f"`congenial {name}`"}.get(kind, f"`{name}`")
