"""JSON with one item on a line, as `json.dumps(value, indent=1)` writes it, of long lists as well.

With an indent the standard library writes every item in Python and keeps all of them until the end:
for the areas of a nation half a minute, and a hundred bytes an item. Here a list of texts and
numbers is written in one step, with the beginning of a line as part of the comma between items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_PLAIN = {str, int, float, bool, type(None)}


def indented(value: Any, *, ensure_ascii: bool = True, depth: int = 0) -> Iterator[str]:
    """Pieces of `json.dumps(value, indent=1, ensure_ascii=ensure_ascii)`, `depth` levels deep.

    >>> print("".join(indented({"areas": ["a", "b"], "n": 2})))
    {
     "areas": [
      "a",
      "b"
     ],
     "n": 2
    }
    """
    line, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, dict) and value:
        for place, (key, one) in enumerate(value.items()):
            yield ("," if place else "{") + line + _key(key, ensure_ascii)
            yield from indented(one, ensure_ascii=ensure_ascii, depth=depth + 1)
        yield end + "}"
    elif isinstance(value, list | tuple) and value:
        yield "[" + line
        if set(map(type, value)) <= _PLAIN:
            between = ("," + line, ": ")
            yield json.dumps(value, ensure_ascii=ensure_ascii, separators=between)[1:-1]
        else:
            for place, one in enumerate(value):
                yield "," + line if place else ""
                yield from indented(one, ensure_ascii=ensure_ascii, depth=depth + 1)
        yield end + "]"
    else:
        yield json.dumps(value, ensure_ascii=ensure_ascii)


def _key(key: Any, ensure_ascii: bool) -> str:
    """A key with its colon; the standard library turns numbers into text."""
    return json.dumps({key: 0}, ensure_ascii=ensure_ascii)[1:-2]
