"""Names that other formats allow: for files, for identifiers."""

from __future__ import annotations

import re
from collections.abc import Sequence


def plain_name(text: str) -> str:
    """A name of small letters, digits, points and dashes.

    >>> plain_name("Sex by age (2026)"), plain_name("..."), plain_name("Größe")
    ('sex-by-age-2026', 'table', 'gr-e')
    """
    found = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")
    return found or "table"


def identifier(text: str, capital: bool = True) -> str:
    """An identifier of letters, digits and underscores that begins with a letter or underscore.

    >>> identifier("age group"), identifier("85+", capital=False), identifier("10-14", False)
    ('AGE_GROUP', '_85_', '_10_14')
    """
    found = re.sub(r"[^A-Za-z0-9_]+", "_", text.upper() if capital else text)
    return found if found and not found[0].isdigit() else f"_{found}"


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, with a number where one occurs again.

    >>> unique_names(["a", "b", "a", "a_2"])
    ['a', 'b', 'a_2', 'a_2_2']
    """
    found: list[str] = []
    for name in names:
        one, number = name, 2
        while one in found:
            one, number = f"{name}_{number}", number + 1
        found.append(one)
    return found
