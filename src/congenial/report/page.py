"""Pieces of a self-contained HTML page: escaping, tables, folding, style.

Every text passes through `text`, so a label such as "<script>" shows as written. The page forbids
itself to load anything (Content-Security-Policy), runs no script and prints well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

LARGEST_TABLE = 200  # rows of one table that the page carries; the rest is in the bundle's files

STYLE = """
:root { --ink: #1c2530; --soft: #5b6673; --line: #d5dbe1; --wash: #f4f6f8; --accent: #0072b2; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 54rem; color: var(--ink);
  background: #fff; font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue",
  Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 3rem 0 .75rem; padding-top: .75rem;
  border-top: 2px solid var(--ink); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .4rem; overflow-wrap: anywhere; }
p, ul { margin: .5rem 0 .9rem; max-width: 46rem; }
ul { padding-left: 1.3rem; }
li { margin: .2rem 0; }
.lead { font-size: 1.12rem; }
.soft, figcaption, caption { color: var(--soft); font-size: .9rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0 1.2rem; font-size: .95rem;
  list-style: none; padding: 0; }
a { color: var(--accent); }
.whole { white-space: nowrap; }
.banner { margin: 0 0 1.75rem; padding: .9rem 1.1rem; border: 3px solid #a63600;
  background: #fdf0e7; max-width: none; }
.banner b { color: #a63600; }
blockquote { margin: .75rem 0 1.25rem; padding: .9rem 1.2rem; background: var(--wash);
  border-left: 4px solid var(--accent); overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .4rem 0; font-size: .92rem; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { padding: .28rem .9rem .28rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { border-bottom: 1.5px solid var(--ink); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 600; min-width: 9.5rem; }
.number { text-align: right; padding-left: .9rem; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
details { margin: .3rem 0 1rem; }
summary { cursor: pointer; color: var(--accent); font-size: .92rem; }
figure { margin: 1rem 0 .5rem; }
figure img { max-width: 100%; height: auto; display: block; }
figcaption { margin-top: .4rem; max-width: 46rem; }
pre { background: var(--wash); padding: .8rem 1rem; overflow-x: auto; font-size: .9rem;
  line-height: 1.5; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .94em; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  h2, h3, caption { break-after: avoid; }
  figure, tr, blockquote { break-inside: avoid; }
}
"""

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def text(value: object) -> str:
    """Any value as HTML text, safe inside an element or a quoted attribute."""
    return escape(str(value))


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

    def cell(self, value: object) -> str:
        """One `td`."""
        if not self.number:
            return f"<td>{text(value)}</td>"
        shown = amount(value) if isinstance(value, (int, float)) else text(value)
        return f'<td class="number">{shown}</td>'


def table(
    columns: Sequence[PageColumn], rows: Iterable[Sequence[object]], caption: str = ""
) -> str:
    """A table with a heading row."""
    head = "".join(
        f'<th scope="col"{" class=number" if c.number else ""}>{text(c.title)}</th>'
        for c in columns
    )
    body = "\n".join(
        "<tr>" + "".join(c.cell(v) for c, v in zip(columns, row, strict=True)) + "</tr>"
        for row in rows
    )
    told = f"<caption>{text(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide"><table>{told}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def folded_table(
    columns: Sequence[PageColumn],
    rows: Sequence[Sequence[object]],
    of: int,
    file: str,
    first: int = 8,
) -> str:
    """The first rows in sight, more on request, and past `LARGEST_TABLE` a reference to `file`.

    `of` is how many rows there are in all; `rows` need not hold more than `LARGEST_TABLE` of them.
    """
    if of <= first + 2:
        return table(columns, rows)
    kept = rows[:LARGEST_TABLE]
    which = "all" if len(kept) == of else "the first"
    more = "" if len(kept) == of else f'<p class="soft">All {of:,} rows are in {text(file)}.</p>'
    return (
        f"{table(columns, kept[:first])}\n<details><summary>Show {which} {len(kept):,} rows"
        f"</summary>\n{table(columns, kept)}\n{more}</details>"
    )


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and what they are."""
    body = "\n".join(
        f'<tr><th scope="row">{text(name)}</th><td>{text(what)}</td></tr>' for name, what in rows
    )
    return f'<div class="wide"><table><tbody>\n{body}\n</tbody></table></div>'


def bullets(items: Iterable[object]) -> str:
    """A list."""
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"


def section(anchor: str, title: str, *parts: str) -> str:
    """A section that the contents can point to."""
    body = "\n".join(part for part in parts if part)
    return f'<section id="{text(anchor)}">\n<h2>{text(title)}</h2>\n{body}\n</section>'


def page(title: str, body: Iterable[str]) -> str:
    """The whole document."""
    content = "\n".join(part for part in body if part)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{text(title)}</title>
<style>{STYLE}</style>
</head>
<body>
{content}
</body>
</html>
"""
