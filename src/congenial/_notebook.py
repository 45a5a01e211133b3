"""Small tables for notebooks. Every text is escaped: labels may come from strangers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A heading and a table, as HTML.

    >>> grid("A & B", ["n"], [["<1>"]])
    '<h4>A &amp; B</h4><table><tr><th>n</th></tr><tr><td>&lt;1&gt;</td></tr></table>'
    """
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return f"<h4>{escape(title)}</h4><table>{''.join(lines)}</table>"


def facts(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A heading and a table of two columns: what, and its value.

    >>> facts("A", [("n", 1)])
    '<h4>A</h4><table><tr><th>n</th><td>1</td></tr></table>'
    """
    lines = (f"<tr><th>{escape(k)}</th><td>{escape(str(v))}</td></tr>" for k, v in rows)
    return f"<h4>{escape(title)}</h4><table>{''.join(lines)}</table>"


def _row(tag: str, values: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(v))}</{tag}>' for v in values)}</tr>"
