"""What a page shows, before it is HTML: numbers for people and tables.

The templates of `render` lay these out; every text in them is escaped there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

LARGEST_TABLE = 200  # rows of one table that the page carries; the rest is in the bundle's files
FIRST_ROWS = 8  # in sight before a longer table is opened


def amount(value: float) -> str:
    """A number for people: digits in groups of three, decimals only when it has them.

    >>> amount(1840), amount(-3.14159), amount(0.004)
    ('1,840', '-3.14', '0.004')
    """
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.2g}"


def counted(many: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "cell"), counted(1840, "cell")
    ('1 cell', '1,840 cells')
    """
    return f"{many:,} {noun}" if many == 1 else f"{many:,} {noun}s"


@dataclass(frozen=True)
class PageColumn:
    """Heading of a table column; numbers are aligned to the right and grouped."""

    title: str
    number: bool = False

    def shown(self, value: object) -> str:
        """A value as the column shows it.

        >>> PageColumn("people", number=True).shown(1840), PageColumn("code").shown(1840)
        ('1,840', '1840')
        """
        grouped = self.number and isinstance(value, (int, float))
        return amount(value) if grouped else str(value)  # type: ignore[arg-type]  # a number


@dataclass(frozen=True)
class PageTable:
    """A table with a heading row; `rows` are texts, as shown."""

    kind: ClassVar = "table"
    columns: tuple[PageColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    of: int = 0  # rows there are in all
    file: str = ""  # that has them, where the page cannot

    @property
    def folds(self) -> bool:
        """Whether it is long enough to show its first rows only, and the others on request."""
        return bool(self.file) and self.of > FIRST_ROWS + 2

    @property
    def first(self) -> tuple[tuple[str, ...], ...]:
        """The rows in sight."""
        return self.rows[:FIRST_ROWS] if self.folds else self.rows

    @property
    def whole(self) -> bool:
        """Whether the page has every row."""
        return len(self.rows) == self.of


def table(
    columns: Sequence[PageColumn], rows: Iterable[Sequence[object]], caption: str = ""
) -> PageTable:
    """A table that is shown as a whole."""
    texts = tuple(
        tuple(column.shown(value) for column, value in zip(columns, row, strict=True))
        for row in rows
    )
    return PageTable(tuple(columns), texts, caption, len(texts))


def folded_table(
    columns: Sequence[PageColumn], rows: Sequence[Sequence[object]], of: int, file: str
) -> PageTable:
    """The first rows in sight, more on request, and past `LARGEST_TABLE` a reference to `file`.

    `of` is how many rows there are in all; `rows` need not hold more than `LARGEST_TABLE` of them.
    """
    first_rows = table(columns, rows[:LARGEST_TABLE])
    return PageTable(first_rows.columns, first_rows.rows, of=of, file=file)
