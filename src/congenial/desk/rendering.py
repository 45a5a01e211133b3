"""HTML of the desk from the templates beside this module; every value is escaped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from congenial.privacy.numbers import number
from congenial.report.render import environment

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    made = environment("congenial.desk", address=address, number=number)
    made.filters["sentence"] = sentence
    return made


def sentence(words: str) -> str:
    """Words of an error as a sentence of a page; a key of the plan at their start stays as it is.

    >>> sentence("the plan has no release."), sentence("schema.age: has no levels.")
    ('The plan has no release.', 'schema.age: has no levels.')
    """
    return words[:1].upper() + words[1:] if words.partition(" ")[0].isalpha() else words


def address(*parts: str) -> str:
    """The address of a page: its parts, each made safe for an address.

    >>> address("plan", "a/b.toml", "price")
    '/plan/a%2Fb.toml/price'
    """
    return "/" + "/".join(quote(part, safe="") for part in parts)


def render(template: str, **shown: Any) -> str:
    """A page from one of the desk's templates."""
    return _environment().get_template(template).render(shown)
