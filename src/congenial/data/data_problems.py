"""What may be wrong with records, all of it at once. CONFIDENTIAL: for the curator alone.

Unlike an error, which stops at the first problem and carries no value, a problem says how many rows
it has and, on request, which values and which rows.
"""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from congenial.data.attribute import Attribute
from congenial.data.rational import written

ProblemKind = Literal[
    "file",
    "encoding",
    "separator",
    "line ends",
    "malformed rows",
    "column absent",
    "stored otherwise",
    "missing values",
    "not a number",
    "not a date",
    "not in the schema",
    "unit missing",
    "unit repeated",
    "blank rows",
]


@dataclass(frozen=True)
class Example:
    """CONFIDENTIAL: a value that does not fit, how many rows have it, and some of those rows."""

    value: str | None
    rows: int
    at: tuple[int, ...] = ()
    meant: str | None = None  # the level it probably stands for


@dataclass(frozen=True)
class DataProblem:
    """One kind of problem in one column (or in a file, where `column` is empty).

    `rows` is None where rows cannot be counted. `pattern` says what most of the values have in
    common with the schema, without a value.
    """

    kind: ProblemKind
    column: str
    rows: int | None
    words: str
    remedy: str
    pattern: str = ""
    distinct: int = 0
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class PlanLine:
    """A line that a plan could have: in which section, under which key, what it says.

    `shows_values`: whether it quotes a value of the data, which a plan that travels would show.
    """

    section: str
    key: str
    value: str
    shows_values: bool = False

    def __str__(self) -> str:
        return f"{self.key} = {self.value}"


@dataclass(frozen=True)
class DataCheck:
    """CONFIDENTIAL: everything found wrong with the records of a plan, and lines that mend it.

    `rows` is None where the records could not be read at all; `unread` names columns that could
    not be looked at because of a problem listed.
    """

    rows: int | None
    problems: tuple[DataProblem, ...]
    lines: tuple[PlanLine, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the records can be tabulated as the plan stands."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rows": self.rows,
            "fits": self.fits,
            "problems": [asdict(problem) for problem in self.problems],
            "lines": [
                {"section": line.section, "line": str(line), "shows_values": line.shows_values}
                for line in self.lines
            ],
            "unread": list(self.unread),
        }


# Suggestions -----------------------------------------------------------------------------------
#
# What values that do not fit were probably meant to be, and the line of a plan that fixes them. A
# guess is only ever shown to the curator; nothing is mended without a line in the plan.

MISSING_WORDS = frozenset(
    ("na", "n/a", "nan", "null", "none", "nil", ".", "-", "--", "?", "missing", "unknown", "#n/a")
)
LAYOUTS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y%m%d", "%Y/%m/%d", "%d-%m-%Y", "%d %B %Y")
_MARKS = ((".", ","), (",", ""), (",", "."), (",", " "), (".", " "), (".", "'"))
_MOST_COMPARED = 5000  # levels that a stranger is compared with letter by letter


@dataclass(frozen=True)
class Suggestion:
    """What strangers have in common with levels, which level each stands for, and a remedy."""

    pattern: str
    meant: Mapping[str, str]
    lines: tuple[PlanLine, ...] = ()


def for_levels(column: str, levels: Sequence[str], strangers: Mapping[str, int]) -> Suggestion:
    """Which levels values that are none probably stand for: by blanks, case, zeros, encoding.

    `strangers`: values, and the rows that have each.

    >>> for_levels("sex", ["female", "male"], {"Female": 3, " male": 2}).pattern
    'match a category except for spaces and upper or lower case'
    """
    tidied = _tidied(column, levels, strangers)
    if tidied is not None:
        return tidied
    meant = {value: level for value in strangers if (level := _nearest(value, levels)) is not None}
    if not meant:
        return Suggestion("", {})
    spelled = _spelled(column, levels, strangers)
    if spelled is not None and len(spelled.meant) == len(meant):
        return spelled  # it quotes no value
    pairs = ", ".join(f"{quoted(value)} = {quoted(level)}" for value, level in meant.items())
    line = PlanLine(
        "derive", _key(column), f"{{ recode = {quoted(column)}, to = {{ {pairs} }} }}", True
    )
    some = "all of them look" if len(meant) == len(strangers) else f"{len(meant)} of them look"
    return Suggestion(f"{some} like a category in another spelling", meant, (line,))


def _tidied(column: str, levels: Sequence[str], strangers: Mapping[str, int]) -> Suggestion | None:
    """The simplest tidying after which every value is a level; None where none does that."""
    categories = set(levels)
    for pattern, keys, mend in _tidyings(levels):
        stay = all(mend(level) == level for level in categories)
        if stay and all(mend(value) in categories for value in strangers):
            line = PlanLine("derive", _key(column), f"{{ tidy = {quoted(column)}, {keys} }}")
            return Suggestion(pattern, {value: mend(value) for value in strangers}, (line,))
    return None


def _tidyings(levels: Sequence[str]) -> list[tuple[str, str, Callable[[str], str]]]:
    """Tidyings that leave these levels as they are, the simplest first: words, keys, function."""
    cases = {"lower": str.lower, "upper": str.upper}
    tidyings: list[tuple[str, str, Callable[[str], str]]] = [
        ("match a category except for spaces around it", "trim = true", str.strip)
    ]
    for name, change in cases.items():
        case = f'case = "{name}"'
        tidyings.append(("match a category except for upper or lower case", case, change))
        tidyings.append(
            (
                "match a category except for spaces and upper or lower case",
                f"trim = true, {case}",
                lambda value, change=change: change(value.strip()),  # type: ignore[misc]
            )
        )
    width = len(levels[0]) if levels else 0
    if width and all(len(level) == width for level in levels):
        tidyings.append(
            (
                "match a category except for zeros in front",
                f"width = {width}",
                lambda value: value.rjust(width, "0"),
            )
        )
    return tidyings


def _spelled(column: str, levels: Sequence[str], strangers: Mapping[str, int]) -> Suggestion | None:
    """Values that are levels but for blanks and case; None where that does not tell levels apart.

    >>> _spelled("region", ["Nord", "Ost"], {"NORD": 3, " ost": 1, "?": 1}).lines[0].value
    '{ tidy = "region", trim = true, case = "levels" }'
    """
    written = {level.lower(): level for level in levels}
    if len(written) < len(levels):
        return None
    folded = {value: value.strip().lower() for value in strangers}
    meant = {value: written[key] for value, key in folded.items() if key in written}
    some = "" if len(meant) == len(strangers) else f"{len(meant)} of them "
    line = PlanLine(
        "derive", _key(column), f'{{ tidy = {quoted(column)}, trim = true, case = "levels" }}'
    )
    return Suggestion(
        f"{some}match a category except for spaces and upper or lower case", meant, (line,)
    )


def _nearest(value: str, levels: Sequence[str]) -> str | None:
    """The level that a value is, but for how it is written; None where none is near."""
    plain = {_plain(level): level for level in reversed(levels)}
    for reading in (_plain(value), _plain(_reread(value))):
        if reading in plain:
            return plain[reading]
    close = difflib.get_close_matches(_plain(value), list(plain)[:_MOST_COMPARED], 1, 0.8)
    return plain[close[0]] if close else None


def _plain(text: str) -> str:
    """Without case, blanks, accents written in two ways, a decimal part of zero, zeros in front."""
    text = unicodedata.normalize("NFKC", text).strip().casefold()
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"^([0-9]+)\.0+$", r"\1", text)
    return re.sub(r"^0+([0-9])", r"\1", text)


def _reread(text: str) -> str:
    """UTF-8 that was once taken for cp1252, mended: "ZÃ¼rich" is "Zürich"."""
    try:
        return text.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return text


def for_numbers(attribute: Attribute, strangers: Mapping[str, int]) -> Suggestion:
    """What text that is not a number probably is: everything from a number on, a mark for
    "missing", or a number written otherwise.

    >>> income = Attribute("income", "bins", edges=(0, 1000), top="1000+")
    >>> for_numbers(income, {"1.234,5": 4, "12,0": 1}).lines[0].value
    '{ number = "income", decimal = ",", thousands = "." }'
    """
    column = attribute.name
    open_ended = [value for value in strangers if _AND_MORE.fullmatch(value.strip().casefold())]
    if open_ended:
        return _from_a_number_on(attribute, open_ended)
    missing = {value: "" for value in strangers if value.strip().casefold() in MISSING_WORDS}
    if missing:
        pairs = ", ".join(f'{quoted(value)} = ""' for value in missing)
        line = PlanLine(
            "derive", _key(column), f"{{ recode = {quoted(column)}, to = {{ {pairs} }} }}", True
        )
        some = (
            "all of them are" if len(missing) == len(strangers) else f"{len(missing)} of them are"
        )
        return Suggestion(f"{some} words for a missing value", missing, (line,))
    for decimal, thousands in _MARKS:
        if strangers and all(_is_number(value, decimal, thousands) for value in strangers):
            keys = [f'decimal = "{decimal}"'] if decimal != "." else []
            keys += [f'thousands = "{thousands}"'] if thousands else []
            line = PlanLine(
                "derive", _key(column), f"{{ number = {quoted(column)}, {', '.join(keys)} }}"
            )
            return Suggestion("numbers with other marks", {}, (line,))
    return Suggestion("", {})


_AND_MORE = re.compile(
    r"(?:>=?|≥|over )\s*[0-9.]+|[0-9.]+ *(?:\+|plus|and (?:over|older|more|above))"
)


def _from_a_number_on(attribute: Attribute, values: Sequence[str]) -> Suggestion:
    """Text such as "90+": it is a value where the schema has it as its label."""
    pattern = "an open class, such as 85+"
    last = attribute.edges[-1] if attribute.edges else 0
    own = [value for value in values if re.findall(r"[0-9.]+", value) == [written(last)]]
    if attribute.top is None or len(own) != len(values):
        return Suggestion(f"{pattern}: end the edges at its number, and give its label as top", {})
    pairs = ", ".join(f"{quoted(value)} = {quoted(attribute.top)}" for value in own)
    value = f"{{ recode = {quoted(attribute.name)}, to = {{ {pairs} }} }}"
    line = PlanLine("derive", _key(attribute.name), value, True)
    return Suggestion(pattern, dict.fromkeys(own, attribute.top), (line,))


def _is_number(text: str, decimal: str, thousands: str) -> bool:
    """Whether a text is a number with these marks, thousands in threes."""
    whole = rf"[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+|[0-9]+" if thousands else "[0-9]+"
    return re.fullmatch(rf"\s*-?(?:{whole})(?:{re.escape(decimal)}[0-9]+)?\s*", text) is not None


def for_dates(values: Sequence[str]) -> tuple[str, ...]:
    """Layouts in which every one of these texts is a date.

    >>> for_dates(["31.12.1999", "01.02.2003"])
    ('%d.%m.%Y',)
    """
    return tuple(layout for layout in LAYOUTS if all(_is_date(value, layout) for value in values))


def _is_date(text: str, layout: str) -> bool:
    try:
        datetime.strptime(text.strip(), layout)
    except ValueError:
        return False
    return True


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
