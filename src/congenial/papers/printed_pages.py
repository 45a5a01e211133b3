"""One page per paper: each table, figure and study with the printed numbers beside ours.

`printed.toml` holds captions in our words and the numbers that the papers print, with the place
they are printed at and the reason of a difference. A page is Markdown, with a picture per item.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from congenial.papers import catalogue
from congenial.report import pictures
from congenial.report.charts import chart

REDUCED = "and this run is reduced"
UNREDUCED = "Reduced: nothing, this item is as quick without it."
MOST_ROWS = 12  # of a table shown on a page
ROUNDING = 1e-9  # of our own arithmetic, where the printed number is exact
TITLES = {
    "congenial-dp": "Gong and Meng, Congenial differential privacy under mandated disclosure",
    "semi-dp": "Cho and Awan, Formal privacy guarantees with invariant statistics",
    "partially-private-data": "Seeman, Reimherr and Slavkovic, Formal privacy for partially "
    "private data",
    "distribution-privacy": "Chen and Ohrimenko, Protecting global properties of datasets with "
    "distribution privacy mechanisms",
    "pseudo-posterior": "Savitsky, Williams and Hu, Bayesian pseudo posterior mechanism under "
    "asymptotic differential privacy",
}


@dataclass(frozen=True)
class Beside:
    """A printed number, ours, and the reason where they differ."""

    what: str
    at: str
    printed: str  # as the paper prints it: "0.500" is another statement than "0.5"
    ours: float | None
    why: str

    @property
    def agrees(self) -> bool:
        """Whether ours, rounded to the digits that are printed, is the printed number.

        A number without a decimal point ("19", "1/4") is exact: a count, or a constant.
        """
        if self.ours is None:
            return False
        if "." not in self.printed:
            return abs(self.away) <= ROUNDING
        printed = Decimal(self.printed)
        return Decimal(repr(self.ours)).quantize(printed, ROUND_HALF_UP) == printed

    @property
    def away(self) -> float:
        """Ours less the printed number; nan where ours was not computed."""
        return math.nan if self.ours is None else self.ours - float(Fraction(self.printed))

    @property
    def reason(self) -> str:
        """Why the two differ, or that they agree."""
        if self.ours is None:
            return "not computed in this run"
        return "agrees" if self.agrees else self.why


@cache
def table() -> dict[str, dict[str, Any]]:
    """What `printed.toml` says, by paper and item."""
    text = files("congenial.papers").joinpath("printed.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def beside(result: Mapping[str, Any]) -> list[Beside]:
    """The printed numbers of an item, each with ours from its result."""
    printed = table().get(result["paper"], {}).get(result["item"], {})
    comparisons = [
        Beside(
            number["what"],
            number["at"],
            number["printed"],
            _ours(result, number),
            number.get("why", ""),
        )
        for number in printed.get("numbers", ())
    ]
    if columns := printed.get("columns"):
        comparisons += _in_columns(result, columns)
    return [
        replace(comparison, why=f"{comparison.why}; {REDUCED}") if _reduced(result) else comparison
        for comparison in comparisons
    ]


def _reduced(result: Mapping[str, Any]) -> bool:
    """Whether a result is that of a reduced run, which is a reason of differences by itself."""
    notes = result.get("notes", ())
    return any(note.startswith("Reduced:") and note != UNREDUCED for note in notes)


def _ours(result: Mapping[str, Any], one: Mapping[str, Any]) -> float | None:
    """The number of the first row that has the values asked for."""
    at = {name: result["columns"].index(name) for name in (*one["row"], one["column"])}
    for row in result["rows"]:
        if all(row[at[name]] == value for name, value in one["row"].items()):
            return float(row[at[one["column"]]])
    return None


def _in_columns(result: Mapping[str, Any], columns: Mapping[str, Any]) -> list[Beside]:
    """Printed numbers that the result itself has beside its own."""
    printed, ours = (result["columns"].index(columns[name]) for name in ("printed", "ours"))
    named = [result["columns"].index(name) for name in columns["what"]]
    return [
        Beside(
            ", ".join(f"{result['columns'][i]} {row[i]}" for i in named if row[i] is not None),
            columns["at"],
            row[printed],
            None if row[ours] is None else float(row[ours]),
            columns["why"],
        )
        for row in result["rows"]
        if row[printed] is not None
    ]


def section(result: Mapping[str, Any], picture: str | None = None) -> str:
    """One item as Markdown: caption, picture, printed beside ours, the table, notes."""
    printed = table().get(result["paper"], {}).get(result["item"], {})
    parts = [
        f"## {result['item']}: {result['title']}",
        f"*{result['source']}.* {_caption(printed)}",
    ]
    if picture:
        parts.append(f"![{result['title']}]({picture})")
    if compared := beside(result):
        head = ("what", "printed at", "printed", "ours", "difference", "reason")
        parts.append(_markdown(head, [_compared(comparison) for comparison in compared]))
    rows = [[_number(v) for v in row] for row in result["rows"][:MOST_ROWS]]
    parts.append(_markdown(result["columns"], rows))
    if (left := len(result["rows"]) - MOST_ROWS) > 0:
        call = f"congenial reproduce {result['paper']} {result['item']}"
        parts.append(f"{left:,} more rows: `{call}`.")
    parts.append("\n".join(f"- {note}" for note in result["notes"] if note != UNREDUCED))
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _caption(told: Mapping[str, Any]) -> str:
    return str(told.get("caption", ""))


def _compared(one: Beside) -> list[str]:
    if one.ours is None:
        return [one.what, one.at, one.printed, "", "", one.reason]
    away = f"{one.away:.2g}"
    return [one.what, one.at, one.printed, f"{one.ours:.7g}", away, one.reason]


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _markdown(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A table; a bar in a cell would end it."""
    lines = [list(map(str, row)) for row in (head, ["---"] * len(head), *rows)]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines)


def page(paper: str, results: Sequence[Mapping[str, Any]], folder: Path | None = None) -> str:
    """The page of a paper; pictures are written to `folder`/PAPER where it is given."""
    head = (
        f"# {paper}: printed and ours\n\n{TITLES[paper]}. Each table, figure and study of "
        "`congenial reproduce`, with the numbers that the paper prints, ours, the difference and "
        "its reason; where a printed statement is wrong the corrected one is computed. Numbers "
        'are those of a reduced run where a note begins with "Reduced".\n'
    )
    sections = [section(result, _picture(result, folder)) for result in results]
    return "\n".join([head, *sections])


def _picture(result: Mapping[str, Any], folder: Path | None) -> str | None:
    """Draw an item's picture; its place relative to the page, or None without one."""
    if folder is None or not result.get("chart") or not pictures.available():
        return None
    place = folder / str(result["paper"]) / f"{result['item']}.svg"
    place.parent.mkdir(parents=True, exist_ok=True)
    chart(dict(result)).save(str(place), format="svg")
    return place.relative_to(folder).as_posix()


def write_page(paper: str, results: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    """Write PAPER.md and its pictures to a folder, which is made if need be."""
    catalogue.items(paper)  # refuses a paper that is not there
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{paper}.md"
    place.write_text(page(paper, results, folder), encoding="utf-8")
    return place
