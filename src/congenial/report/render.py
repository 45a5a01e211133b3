"""HTML from the templates beside this module: the one place where pages are written and compared.

Every value is escaped (a label such as "<script>" shows as written), and a name that a template
does not know is an error. A page that `verify` writes again must be the same to the letter,
pictures included. What a page says that no bundle holds (its basis: earlier counts, what was fitted
and tried) stands in its head as data, so that the sentences about it can be written again too.
"""

from __future__ import annotations

import json
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any

from congenial._version import __version__
from congenial.report.page_data import SCRIPTS, script, script_source, with_equal_rows

if TYPE_CHECKING:
    from jinja2 import Environment, Template

BASIS = "congenial-basis"
_BASIS_OPENS = f'<meta name="{BASIS}" content="'
_SECTION_OPENS = '<section id="'


def environment(package: str, **shown: Any) -> Environment:
    """The templates of a package: every value is escaped, an unknown one is an error.

    `shown` are values that every template of it may use. Those of other packages find the ones of
    this room under "report/".
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

    ours = PrefixLoader({"report": PackageLoader("congenial.report")})
    jinja = Environment(
        loader=ChoiceLoader([PackageLoader(package), ours]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.globals |= {"version": __version__, **shown}
    return jinja


@cache
def _environment() -> Environment:
    return environment(
        "congenial.report", basis_name=BASIS, script=script, script_source=script_source
    )


@cache
def _template(text: str) -> Template:
    return _environment().from_string(text)


def page(template: str, **shown: Any) -> str:
    """A page from one of our templates, by its name.

    `basis`, if given, is what the page rests on besides the bundle: plain data for its head.
    """
    return _environment().get_template(template).render(_with_basis(shown))


def page_from(template: str, **shown: Any) -> str:
    """A page from the text of a template, for kinds of release that are defined elsewhere.

    The text begins with {% extends "report.html" %} and uses what our own templates use.
    """
    return _template(template).render(_with_basis(shown))


def _with_basis(shown: dict[str, Any]) -> dict[str, Any]:
    """Plain data as the text of an attribute."""
    told = shown.get("basis")
    basis = "" if told is None else json.dumps(told, ensure_ascii=False)
    return {"scripts": SCRIPTS} | shown | {"basis": basis}


def stated(promise: str) -> str:
    """The block of a page that states a promise."""
    parts: Any = _environment().get_template("parts.html").module
    return str(parts.stated(promise))


# ---- reading pages of ours -----------------------------------------------------------------------


def basis_of(page: str) -> Any:
    """What the page says it rests on besides the bundle; None where it says nothing.

    Text on our pages holds no bare quotation mark, so what is found stands in the page's head.
    """
    _, opening, rest = page.partition(_BASIS_OPENS)
    return json.loads(unescape(rest.partition('"')[0])) if opening else None


def differences(page: str, again: str) -> list[str]:
    """The sections in which a page differs from the one written again."""
    page = with_equal_rows(page, again)
    if page == again:
        return []
    own_sections, expected = _sections(page), _sections(again)
    names = dict.fromkeys((*expected, *own_sections))
    return [n for n in names if own_sections.get(n) != expected.get(n)] or [
        "what surrounds the sections"
    ]


def _sections(page: str) -> dict[str, str]:
    """The sections of a page of ours by their names."""
    pieces = (piece.partition('"') for piece in page.split(_SECTION_OPENS)[1:])
    return {name: content.partition("</section>")[0] for name, _, content in pieces}
