"""What commands print: one JSON document, or the same content for people.

Text of people goes through `clean`: labels and bundles may come from strangers, and terminals obey
control characters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from congenial.report.words import Block

Document = dict[str, Any]
Tell = Callable[[str], Any]  # tells the person who waits how far it is: words, or an `Advance`

PLAIN_WIDTH = 100  # columns, where the output is not a terminal


def emit(document: Document | list[Document]) -> None:
    """Print the JSON document; exact fractions become decimals, rounded up as everywhere."""
    typer.echo(json.dumps(document, indent=1, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        from congenial.privacy.numbers import number

        return float(number(value))
    return str(value)


def clean(value: object) -> str:
    """Text that a terminal shows and does not obey."""
    return "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(value)
    )


def on_terminal() -> bool:
    """Whether a person reads the output and can answer; scripts and pipes get everything."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def console(*, stderr: bool = False) -> Console:
    """Where people read; colours and the real width on a terminal only."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


def answer(template: str, as_json: bool, **named: Any) -> None:
    """Print a document: as JSON, or what a template says of it. The template knows it by name."""
    (document,) = named.values()
    emit(document) if as_json else say(template, **named)


def say(template: str, **shown: Any) -> None:
    """Print what a template of `report/words` says."""
    from congenial.report.words import blocks

    show(blocks(template, **shown))


def show(written: Iterable[Block]) -> None:
    """Lay blocks out on a terminal: blank lines between them, except between lines."""
    from congenial.report.words import Facts, Heading, Paragraph, UnbrokenLine

    before: Block | None = None
    for block in written:
        below = isinstance(before, Heading) or (type(before) is type(block) is UnbrokenLine)
        if before is not None and not below and not isinstance(block, Heading):
            console().print()
        if isinstance(block, Heading):
            heading(block.text)
        elif isinstance(block, Paragraph):
            paragraph(block.text, style="bold red" if block.warns else "")
        elif isinstance(block, UnbrokenLine):
            console().print(clean(block.text), soft_wrap=True)
        elif isinstance(block, Facts):
            facts(dict(block.rows))
        else:
            numbers = {column.title for column in block.columns if column.number}
            table([column.title for column in block.columns], block.rows, numbers)
        before = block


def heading(text: str) -> None:
    """A heading with a line of space before it."""
    out = console()
    out.print()
    out.print(clean(text), style="bold")


def paragraph(text: str, *, style: str = "") -> None:
    """A paragraph, wrapped to the width of the screen."""
    console().print(clean(text), style=style or None)


def line(name: str, value: object) -> None:
    """A name and its value on one unbroken line: paths and digests are copied from it."""
    console().print(clean(f"{name}: {value}"), soft_wrap=True)


def facts(rows: Mapping[str, object]) -> None:
    """Names and values in two columns."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(clean(name), clean(value))
    console().print(grid)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Collection[str] = (),
) -> None:
    """A table; columns named in `numbers` are set flush right.

    No word is broken. Columns that do not fit side by side follow below, each time with the first
    columns that tell the rows apart.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.table import Table

    out = console()
    cells = [[clean(name) for name in columns], *([clean(value) for value in row] for row in rows)]
    texts = [list(column) for column in zip(*cells, strict=True)]
    lines = [[cell_len(max(text.split("\n"), key=cell_len)) for text in column] for column in texts]
    full, body = (
        [max(cell_lines) for cell_lines in lines],
        [max(cell_lines[1:], default=0) for cell_lines in lines],
    )
    least = [max(map(cell_len, _unbroken(column)), default=0) for column in texts]
    for number, part in enumerate(_side_by_side(cells[1:], least, out.width)):
        widths = [least[i] for i in part]
        for wanted in (body, full):  # a heading rather takes two lines than a cell
            widths = _widened(widths, [wanted[i] for i in part], out.width)
        grid = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
        for i, width in zip(part, widths, strict=True):
            side: Literal["left", "right"] = "right" if columns[i] in numbers else "left"
            grid.add_column(cells[0][i], justify=side, overflow="fold", width=width)
        for row in cells[1:]:
            grid.add_row(*(row[i] for i in part))
        if number:
            out.print()
        out.print(grid)


BETWEEN = 3  # columns of space between two columns of a table
SHORT = 12  # characters of a cell that stays on one line


def _unbroken(column: list[str]) -> Iterator[str]:
    """What must stay on one line: the words of a heading, short cells, the words of long ones."""
    head, *texts = column
    yield from head.split()
    for text in texts:
        yield from [text] if len(text) <= SHORT else text.split()


def _side_by_side(rows: list[list[str]], least: list[int], width: int) -> list[list[int]]:
    """Which columns stand side by side: all, or several groups that begin with the same ones."""
    every = list(range(len(least)))
    if sum(least) + BETWEEN * (len(least) - 1) <= width:
        return [every]
    apart = [k for k in every[1:] if len({tuple(row[:k]) for row in rows}) == len(rows)]
    first = every[: apart[0] if apart else 1]
    if sum(least[i] + BETWEEN for i in first) > width // 2:
        first = every[:1]
    parts = [list(first)]
    for i in every[len(first) :]:
        used = sum(least[j] + BETWEEN for j in parts[-1])
        if used + least[i] > width and len(parts[-1]) > len(first):
            parts.append(list(first))
        parts[-1].append(i)
    return parts


def _widened(widths: list[int], wanted: list[int], width: int) -> list[int]:
    """What is left of the width goes to the columns that need it, the narrowest first."""
    wider, left = list(widths), width - sum(widths) - BETWEEN * (len(widths) - 1)
    while left > 0 and (short := [i for i, w in enumerate(wider) if w < wanted[i]]):
        wider[min(short, key=lambda i: wider[i])] += 1
        left -= 1
    return wider


def complain(text: str, *, lead: str = "error: ") -> None:
    """One line on standard error."""
    typer.echo(clean(f"{lead}{text}"), err=True)


def warn(text: str) -> None:
    """A warning on standard error, which leaves a JSON document alone."""
    console(stderr=True).print(f"warning: {clean(text)}", style="bold yellow", soft_wrap=True)


@contextmanager
def working(text: str) -> Iterator[Tell]:
    """A spinner on standard error, on a terminal only; call what it gives to change the text.

    Told an `Advance`, it shows the share that is done and about how long the rest takes. Work
    inside that is not given it tells it too (`telling`).
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from congenial.data.advance import StepClock, telling

    clock = StepClock(text)
    with console(stderr=True).status(text) as status:

        def tell(now: str) -> None:
            clock.take(now)
            status.update(str(clock))

        with telling(tell):
            yield tell
