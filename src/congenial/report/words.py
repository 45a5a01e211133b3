"""Words for people, from templates: the same sentences on a terminal, on a page and at the desk.

A template in `words/` is plain text that Jinja fills in. The first characters of a line say what it
is, so that one text is laid out for a terminal (`cli.output.show`) and for HTML (`parts.html`):

    # text             a heading
    text               a paragraph, to the next blank line
    ! text             a warning
    > text             a line that is not broken: paths, digests and commands are copied from it
    = name :: value    a row of facts
    | name | name >    a table: its first row names the columns, those that end in > hold numbers

Labels and bundles come from outside. A value stays inside its place: it can neither begin a line
nor end a cell, because each is marked while the text is read (`_marked`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from congenial.privacy.numbers import number
from congenial.report.page import PageColumn, PageTable, counted, table

if TYPE_CHECKING:
    from jinja2 import Environment

_VALUE, _BAR, _COLONS = "\ue000", "\ue001", "\ue002"  # private use: no terminal shows them


@dataclass(frozen=True)
class Heading:
    """Begins a section."""

    kind: ClassVar = "heading"
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Sentences; `warns`: the reader must not miss them."""

    kind: ClassVar = "paragraph"
    text: str
    warns: bool = False


@dataclass(frozen=True)
class UnbrokenLine:
    """A line that is not broken."""

    kind: ClassVar = "line"
    text: str


@dataclass(frozen=True)
class Facts:
    """Names and values in two columns."""

    kind: ClassVar = "facts"
    rows: tuple[tuple[str, str], ...]


Block = Heading | Paragraph | UnbrokenLine | Facts | PageTable


def blocks(template: str, **shown: Any) -> list[Block]:
    """What a template says, block by block.

    >>> blocks("next.txt", command="congenial release plan.toml")
    [UnbrokenLine(text='Next: congenial release plan.toml')]
    """
    return list(_read(_environment().get_template(template).render(shown)))


def sections(written: Sequence[Block]) -> list[tuple[str, list[Block]]]:
    """The blocks below each heading, for a page; those before the first heading come without."""
    sections: list[tuple[str, list[Block]]] = []
    for block in written:
        if isinstance(block, Heading):
            sections.append((block.text, []))
        else:
            if not sections:
                sections.append(("", []))
            sections[-1][1].append(block)
    return sections


def axes(names: Sequence[str]) -> str:
    """A table by its axes.

    >>> axes(["county", "sex"]), axes([])
    ('county x sex', 'total')
    """
    return " x ".join(names) or "total"


def people(value: float) -> str:
    """A margin of error in people: two digits are enough, and small ones keep a decimal.

    >>> people(1843.2), people(15.88), people(2.31), people(0)
    ('1,843', '16', '2.3', '0')
    """
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def per_cent(share: float) -> str:
    """A share of one, for people.

    >>> per_cent(0.123), per_cent(0.0312), per_cent(0.0002), per_cent(23)
    ('12 %', '3.1 %', 'under 0.1 %', '2,300 %')
    """
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.1f} %" if share < 0.095 else f"{100 * share:,.0f} %"


def rounded_up(value: float) -> str:
    """A margin of error that promises coverage: two decimals, never rounded down.

    >>> rounded_up(41), rounded_up(2.301)
    ('41', '2.31')
    """
    return f"{value:g}" if value == int(value) else f"{ceil(100 * value) / 100:.2f}"


def duration(minutes: float) -> str:
    """Seconds, minutes or hours, none of them to the last digit.

    >>> duration(0.1), duration(1.2), duration(45), duration(600)
    ('6 seconds', 'a minute', '45 minutes', '10 hours')
    """
    if minutes < 0.9:
        return f"{max(60 * minutes, 1):.0f} seconds"
    if minutes < 1.5:
        return "a minute"
    return f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.0f} hours"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    jinja = Environment(
        loader=PackageLoader("congenial.report", "words"),
        autoescape=False,  # noqa: S701 - not HTML; `_marked` keeps values in their place
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_marked,
    )
    jinja.filters |= {
        "axes": axes,
        "counted": counted,
        "number": number,
        "duration": duration,
        "people": people,
        "per_cent": per_cent,
        "rounded_up": rounded_up,
    }
    return jinja


def _marked(value: Any) -> str:
    """A value as a template writes it: one line, and none of our marks."""
    if value is None:
        raise TypeError("a template shows a value that is missing")
    text = " ".join(str(value).splitlines())
    return _VALUE + text.replace("|", _BAR).replace("::", _COLONS)


def _plain(text: str) -> str:
    return text.replace(_VALUE, "").replace(_BAR, "|").replace(_COLONS, "::").strip()


def _read(text: str) -> Iterator[Block]:
    """The blocks of a text: runs of lines of the same kind."""
    run: list[str] = []
    mark = ""
    for line in [*text.split("\n"), ""]:
        now = line[:1] if line[:1] in "#!>=|" and line.strip() else ("text" if line.strip() else "")
        if run and (now != mark or now in "#!>"):
            yield _block(mark, run)
            run = []
        mark = now
        if now:
            run.append(line)


def _block(mark: str, lines: Sequence[str]) -> Block:
    if mark == "|":
        (*names,), *rows = (line.strip().strip("|").split("|") for line in lines)
        columns = [PageColumn(_plain(n).removesuffix(">").strip(), _numeric(n)) for n in names]
        return table(columns, [[_plain(cell) for cell in row] for row in rows])
    if mark == "=":
        pairs = (line[1:].partition("::") for line in lines)
        return Facts(tuple((_plain(name), _plain(value)) for name, _, value in pairs))
    if mark == "text":
        return Paragraph(_plain(" ".join(line.strip() for line in lines)))
    only = _plain(lines[0][1:])
    if mark == "#":
        return Heading(only)
    return Paragraph(only, warns=True) if mark == "!" else UnbrokenLine(only)


def _numeric(name: str) -> bool:
    return name.strip().endswith(">")
