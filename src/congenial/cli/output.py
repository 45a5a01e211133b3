"""What commands print: one JSON document, or the same content for people.

Text of people goes through `clean`: labels and bundles may come from strangers, and terminals obey
control characters.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

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
    console().print(f"{name}: {clean(value)}", soft_wrap=True)


def facts(rows: Mapping[str, object]) -> None:
    """Names and values in two columns."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(name, clean(value))
    console().print(grid)


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Collection[str] = (),
    whole: Collection[str] = (),
) -> None:
    """A table; columns named in `numbers` are set flush right, those in `whole` are not wrapped."""
    from rich import box
    from rich.table import Table

    grid = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    for name in columns:
        flush = name in numbers
        side: Literal["left", "right"] = "right" if flush else "left"
        grid.add_column(name, justify=side, overflow="fold", no_wrap=name in whole)
    for row in rows:
        grid.add_row(*(clean(value) for value in row))
    console().print(grid)


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
