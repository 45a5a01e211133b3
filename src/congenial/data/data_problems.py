"""What may be wrong with records, all of it at once. CONFIDENTIAL: for the curator alone.

Unlike an error, which stops at the first problem and carries no value, a problem says how many rows
it has and, on request, which values and which rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"value": self.value, "rows": self.rows, "at": list(self.at), "meant": self.meant}


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

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "kind": self.kind,
            "column": self.column,
            "rows": self.rows,
            "words": self.words,
            "pattern": self.pattern,
            "remedy": self.remedy,
            "distinct": self.distinct,
            "examples": [one.to_dict() for one in self.examples],
        }


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
            "problems": [one.to_dict() for one in self.problems],
            "lines": [
                {"section": one.section, "line": str(one), "shows_values": one.shows_values}
                for one in self.lines
            ],
            "unread": list(self.unread),
        }
