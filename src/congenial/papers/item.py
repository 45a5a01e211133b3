"""What every table, figure and study looks like: a title, a source, and a function of a `Study`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from congenial.errors import DataError


def _silent(_: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Study:
    """How an item is to be run.

    data: the folder of public data files (`--data DIR`), or None when none was given.
    seed: the seed of every draw; results of one seed are the same on every run.
    quick: a reduced version, for tests; the notes of the result say what was reduced.
    progress: told one line per step of a long run.
    """

    data: Path | None = None
    seed: int = 0
    quick: bool = False
    progress: Callable[[str], None] = field(default=_silent, compare=False)

    def file(self, name: str) -> Path:
        """Path of the data file `name` under `data`; refused if there is none.

        >>> Study().file("a.csv")
        Traceback (most recent call last):
        congenial.errors.DataError: this item reads a.csv. Give its folder: --data DIR.
        """
        if self.data is None:
            raise DataError(f"this item reads {name}.", remedy="Give its folder: --data DIR.")
        path = Path(self.data) / name
        if not path.is_file():
            raise DataError(
                f"{name} is not in the data folder.",
                remedy="Give the folder that holds it: --data DIR.",
            )
        return path


@dataclass(frozen=True)
class Item:
    """One table, figure or study.

    title: what it shows. source: where it comes from ("Table 2", "our study, data: census/...").
    run: gives {"columns": [...], "rows": [[...], ...], "notes": [...]} and, where a picture helps,
    "chart": {"kind": one of `report.charts.KINDS`, "x": column, "y": column, "by": column or
    None}, with optional "low", "high", "q1", "q3", "line", "x2", "value", "facet" (columns), "data"
    (columns and rows of its own), "rule" (a value of y, or values by name), "as_points" (series
    without a line), "named" (every series of several pictures: one colour in all), "x_log",
    "y_log", "x_sparse" (bool: names of an axis that may be left out where they touch), "x_free",
    "y_free" (bool: panels with a scale of their own), "columns" (of panels), "x_title", "y_title"
    (text).
    files: the data files it reads, relative to the data folder.
    reduced: what a quick study does less of, "" where it changes nothing; a note of the result.
    """

    title: str
    source: str
    run: Callable[[Study], dict[str, Any]]
    files: tuple[str, ...] = ()
    reduced: str = ""
