"""Small tables for notebooks, from one template that escapes every text: labels may come from
strangers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("congenial", "report/templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    return made.get_template("notebook.html")


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A heading and a table, as HTML.

    >>> grid("A & B", ["n"], [["<1>"]])
    '<h4>A &amp; B</h4><table><tr><th>n</th></tr><tr><td>&lt;1&gt;</td></tr></table>'
    """
    return _template().render(title=title, warning="", head=head, rows=rows, text="")


def facts(title: str, rows: Iterable[tuple[str, object]], text: str = "", warning: str = "") -> str:
    """A heading and a table of two columns: what, and its value.

    >>> facts("A", [("n", 1)])
    '<h4>A</h4><table><tr><th>n</th><td>1</td></tr></table>'
    """
    return _template().render(title=title, warning=warning, head=(), rows=rows, text=text)
