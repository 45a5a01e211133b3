"""Where in its file a plan says something: errors name the file and the line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

Place = tuple[int | str, ...]

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_TEXT = re.compile(r""""[^"]*"|'[^']*'|#.*""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


@dataclass(frozen=True)
class PlanText:
    """The text of a plan and the name of its file, both empty for a plan that has none.

    >>> PlanText("plan.toml", "[data]\\nsource = 'a'").at("data", "source")
    'plan.toml, line 2: '
    """

    name: str = ""
    text: str = ""

    def at(self, *where: int | str) -> str:
        """File and line of a place, or of the closest table around it, as an error begins."""
        if not self.name:
            return ""
        around = (where[:length] for length in range(len(where), 0, -1))
        line = next((self._lines[place] for place in around if place in self._lines), None)
        return f"{self.name}, line {line}: " if line else f"{self.name}: "

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """The line on which each table and key begins."""
        begins: dict[Place, int] = {}
        entries: dict[Place, int] = {}  # how many [[...]] of a name there were
        table: Place = ()
        quoted = ""  # what ends the text over several lines that this line is in
        depth = 0  # of the list over several lines that this line is in
        for number, line in enumerate(self.text.splitlines(), 1):
            inside = bool(quoted or depth)
            if not inside and (header := _HEADER.match(line)):
                parts = _parts(header[2])
                if header[1] == "[[":
                    entries[parts] = entries.get(parts, 0) + 1
                table = ()
                for length, part in enumerate(parts, 1):
                    table = (*table, part)
                    if parts[:length] in entries:
                        table = (*table, entries[parts[:length]] - 1)
                begins.setdefault(table, number)
            elif not inside and (key := _KEY.match(line)):
                place = (*table, *_parts(key[1]))
                for length in range(len(table) + 1, len(place) + 1):
                    begins.setdefault(place[:length], number)
            bare = _TEXT.sub("", line)  # without texts and the comment
            depth = max(0, depth + bare.count("[") - bare.count("]"))
            for mark in ('"""', "'''"):
                if quoted in ("", mark) and line.count(mark) % 2:
                    quoted = "" if quoted else mark
        return begins


NO_FILE = PlanText()


def _parts(key: str) -> Place:
    return tuple(part.strip("\"'") for part in _PART.findall(key))
