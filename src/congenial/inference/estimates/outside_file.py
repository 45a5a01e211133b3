"""Outside numbers that rates are taken against, such as another office's population estimates."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from congenial.data.schema import Schema
from congenial.data.text_files import original
from congenial.errors import DataError, InferenceError, SchemaError, some_of
from congenial.inference.estimates.cell_estimates import Floats


@dataclass(frozen=True)
class Outside:
    """A CSV file: columns named like axes of the schema hold levels, the others hold numbers.

    Its numbers are taken as exact.
    """

    file: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, path: str | Path) -> Outside:
        """Read the file; refused where it is no CSV file in UTF-8."""
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                rows = [tuple(map(original, row)) for row in csv.reader(file, strict=True) if row]
        except OSError as reason:
            raise DataError(
                f"'{path}' cannot be opened: {reason.strerror}.",
                remedy="Give the path of a CSV file with a header row.",
            ) from None
        except (UnicodeDecodeError, csv.Error):
            raise DataError(
                f"'{path}' cannot be read as a CSV file in UTF-8.",
                remedy="Give a file with a header row.",
            ) from None
        if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
            raise DataError(
                f"'{path}' has no rows, or rows that are not as long as its header.",
                remedy="Give one row for each group, with a category or number in every column.",
            )
        return cls(str(path), rows[0], tuple(rows[1:]))

    def per_group(self, column: str, schema: Schema, by: Sequence[str]) -> Floats:
        """The column summed over the rows of each group; every group must have a positive sum."""
        for name in (column, *by):
            if name not in self.header:
                raise InferenceError(
                    f"'{self.file}' has no column '{name}'.",
                    remedy=f"It has {some_of(self.header)}.",
                )
        axes = schema.axes(tuple(by))
        found = np.zeros(tuple(axis.size for axis in axes))
        at = [self.header.index(axis.name) for axis in axes]
        codes = [{level: i for i, level in enumerate(axis.levels)} for axis in axes]
        for row in self.rows:
            place = tuple(self._code(code, row[i]) for code, i in zip(codes, at, strict=True))
            found[place] += self._number(row[self.header.index(column)])
        if not np.all(found > 0):
            raise InferenceError(
                f"'{column}' of '{self.file}' is 0 or missing for some group, so its rate cannot "
                "be computed.",
                remedy="Give a positive number for every group after 'by'.",
            )
        return found.reshape(-1)

    def _code(self, codes: dict[str, int], level: str) -> int:
        if level not in codes:
            raise SchemaError(
                f"'{self.file}' has the category {level[:80]!r}, which is not in the bundle.",
                remedy="Use the categories of the bundle's schema.",
            )
        return codes[level]

    def _number(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = np.nan
        if not np.isfinite(number) or number < 0:
            raise DataError(
                f"'{self.file}' has {text[:40]!r} where a number of people is expected.",
                remedy="Write numbers that are 0 or more, with a point for decimals.",
            )
        return number
