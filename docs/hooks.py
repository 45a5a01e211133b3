"""What the site's builder is told about our pages.

Pages are completed while the site is built, so that nothing on them is written twice: the command
line from the program's own help, the statements of the papers from `papers.toml`, and the names of
a package from its docstrings, with a page of its own for each class.
"""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

HERE = Path(__file__).resolve().parent
COMMANDS = "<!-- commands: written from the program's help -->"
STATEMENTS = "<!-- statements: written from papers.toml -->"
NAMES = "<!-- names: written from docstrings -->"
API = HERE / "reference" / "api"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Complete a page, and drop the words after a block's language (`run`, `exit=2`): they are for
    the tests.
    """
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands())
    if STATEMENTS in markdown:
        markdown = markdown.replace(STATEMENTS, statements())
    if NAMES in markdown:
        markdown = markdown.replace(NAMES, names(package_of(markdown)))
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


# ---- packages ---------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """A page for each public class."""
    from mkdocs.structure.files import File, InclusionLevel

    for page in sorted(API.glob("*.md")):
        package = package_of(page.read_text(encoding="utf-8"))
        for name in public(package, classes=True):
            content = f"# {name}\n\n[{package}](../{page.name})\n\n::: {package}.{name}\n"
            place = f"reference/api/{page.stem}/{name}.md"
            made = File.generated(config, place, content=content)
            made.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(made)
    return files


def package_of(markdown: str) -> str:
    """The package that a page is about: its heading."""
    return markdown.splitlines()[0].removeprefix("# ")


def public(package: str, *, classes: bool) -> list[str]:
    """Public names of a package: its classes, or all others."""
    module = import_module(package)
    listed = [name for name in module.__all__ if name != "__version__"]
    return [name for name in sorted(listed) if isinstance(getattr(module, name), type) is classes]


def names(package: str) -> str:
    """The classes of a package as a table of links, then everything else that is public."""
    module, folder = import_module(package), package.split(".")[-1]
    rows = [
        f"| [{name}]({folder}/{name}.md) | {first_sentence(getattr(module, name))} |"
        for name in public(package, classes=True)
    ]
    table = ["| class | what it is |", "|---|---|", *rows, ""] if rows else []
    heads = "    options:\n      show_root_heading: true\n      show_root_full_path: false\n"
    others = []
    for name in public(package, classes=False):
        thing = getattr(module, name)
        home = getattr(thing, "__module__", package) if callable(thing) else package
        others.append(f"::: {home}.{getattr(thing, '__name__', name)}\n{heads}")
    return "\n".join([*table, *others])


def first_sentence(thing: Any) -> str:
    """The first paragraph of a docstring, as a cell of a table."""
    return cell(" ".join((thing.__doc__ or "").strip().split("\n\n")[0].split()))


class Examples(griffe.Extension):
    """Examples in docstrings become blocks of code on the pages."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """After a package is read."""
        if obj.docstring:
            obj.docstring.value = with_blocks(obj.docstring.value)


def with_blocks(docstring: str) -> str:
    """A docstring with its examples as blocks of code; an example ends at an empty line.

    >>> with_blocks("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nMore.").split("\\n")
    ['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'More.']
    """
    return re.sub(r"^>>>.*(?:\n.+)*", r"```pycon\n\g<0>\n```", docstring, flags=re.MULTILINE)
