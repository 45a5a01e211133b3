"""What a nation drawn by parts is released as: tables above the parts in memory, those below them
as folders of Parquet files, one file per part, which are read when they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from congenial.data.area_parts import AreaParts
from congenial.data.arguments import texts
from congenial.data.schema import Schema, near
from congenial.data.table import select
from congenial.errors import BundleError, InferenceError, PredicateError, some_of
from congenial.figures.figures_by_part import above_parts, of_part
from congenial.figures.invariants import Invariants
from congenial.figures.sum_ranges import table_ranges
from congenial.mechanisms.cell_labels import label_columns
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.mechanisms.parted_steps import part_folder, part_name
from congenial.mechanisms.released import LEVEL as DEFAULT_LEVEL
from congenial.mechanisms.released import Interval, PartFile, Released, check_level
from congenial.mechanisms.tables_files import TableFile, said
from congenial.mechanisms.tables_release import INTERVAL
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.tables.intervals import ends
from congenial.tables.joint_estimator import BASES

if TYPE_CHECKING:
    from congenial.mechanisms.release_of_part import ReleaseOfPart

SUMMARY = "parts.json"


@dataclass(frozen=True)
class PartedRelease(Released):
    """Several tables of a nation that agree with each other and with every published figure.

    `upper`: columns of every table above the parts, by its place among the tables. `worst`: the
    largest standard deviation in each table below them. `files`: the parts' files by name;
    `folder` is where they are.
    """

    kind: ClassVar[str] = "tables by parts"
    name: str
    description: TablesDescription
    guarantee: Guarantee
    randomness: str
    publishable: bool
    upper: Mapping[int, Mapping[str, Any]] = field(repr=False)
    worst: Mapping[int, float] = field(repr=False)
    files: Mapping[str, PartFile] = field(default_factory=dict, repr=False)

    # ---- what it is about --------------------------------------------------------------------

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Axes of every table."""
        return self.description.tables

    @cached_property
    def parts(self) -> AreaParts:
        """How the geography is cut."""
        return AreaParts(self.schema, self.description.parts)

    @property
    def largest_sds(self) -> list[float]:
        """The largest standard deviation in each table, in order."""
        above = {at: float(np.max(one["sd"], initial=0.0)) for at, one in self.upper.items()}
        told = above | dict(self.worst)
        return [told[at] for at in range(len(self.tables))]

    @property
    def part_files(self) -> Mapping[str, PartFile]:
        """The files of the parts, by their name in the bundle."""
        return self.files

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """Files and what they hold."""
        rows = []
        for at, names in enumerate(self.tables):
            columns = ", ".join(self._form(at).columns)
            folder = part_folder(self.tables, at)
            where = f"{folder}.csv, .parquet" if at in self.upper else f"{folder}/"
            each = "" if at in self.upper else f", one file per {self.description.parts}"
            rows.append((where, f"{said(names)}, one row per cell: {columns}{each}"))
        return (*rows, (SUMMARY, f"the file of every {self.description.parts}, and its areas"))

    @property
    def usage(self) -> tuple[str, ...]:
        """How to begin, as lines of code."""
        below = next(at for at in range(len(self.tables)) if at not in self.upper)
        names = ", ".join(repr(name) for name in self.tables[below])
        return (
            f"release.dataset({names})  # an Arrow dataset: nothing is read yet",
            f"release.to_arrow({names}, part={self.parts.labels[0]!r})",
        )

    def __repr__(self) -> str:
        tables = "; ".join(map(said, self.tables))
        return (
            f"PartedRelease({self.name!r}: {tables}; {len(self.parts.labels)} parts; "
            f"{self.guarantee.tradeoff.words})"
        )

    def _repr_html_(self) -> str:
        tables = "; ".join(escape(said(names)) for names in self.tables)
        warning = "" if self.publishable else f"<p><b>{escape(self.randomness)}</b></p>"
        return f"<h4>{escape(self.name)}: {tables}</h4>{warning}{self.guarantee._repr_html_()}"

    # ---- tables ------------------------------------------------------------------------------

    def dataset(self, *names: str) -> Any:
        """A table below the parts as an Arrow dataset: filters and columns are read from disk as
        they are needed; DuckDB and Polars take it as it is.
        """
        import pyarrow.dataset as ds

        at = self._place(names)
        if at in self.upper:
            return ds.dataset(self.to_arrow(*names))
        paths = [str(self._path(at, number)) for number in range(len(self.parts.labels))]
        return ds.dataset(paths, format="parquet")

    def to_arrow(self, *names: str, part: str | None = None) -> Any:
        """One row per cell of a table (the first if none is named), of all parts or of one."""
        import pyarrow as pa

        at = self._place(names) if names else 0
        if at in self.upper:
            self._refuse_uncut(at, part)
            return self._form(at).table(self.upper[at])
        if part is not None:
            return self.part_table(at, self.number(part))
        pieces = [self.part_table(at, number) for number in range(len(self.parts.labels))]
        return pa.concat_tables(pieces)

    def to_pandas(self, *names: str, part: str | None = None) -> Any:
        """The same as a pandas frame (extra `frames`)."""
        return self.to_arrow(*names, part=part).to_pandas()

    def to_polars(self, *names: str, part: str | None = None) -> Any:
        """The same as a Polars frame (extra `frames`)."""
        import polars as pl

        return pl.from_arrow(self.to_arrow(*names, part=part))

    def part_table(self, at: int, number: int) -> Any:
        """The rows of one part of a table; BundleError if the file is another."""
        return self._part_form(at, number).expected.read(self._content(at, number))

    def _part_form(self, at: int, number: int) -> TableFile:
        schema = self.parts.schema_of(number)
        return TableFile(schema, self.tables, at, True, self._is_drawn(at))

    def _content(self, at: int, number: int) -> bytes:
        try:
            return self._path(at, number).read_bytes()
        except OSError:
            raise BundleError(
                f"the file of {self.parts.labels[number]!r} cannot be read.",
                remedy="Get a fresh copy of the bundle.",
            ) from None

    def _refuse_uncut(self, at: int, part: str | None) -> None:
        if part is not None:
            raise InferenceError(
                f"the table over {said(self.tables[at])} is not cut into parts.",
                remedy="Leave out part.",
            )

    def number(self, part: str) -> int:
        """The number of a part."""
        if part not in self.parts.labels:
            raise InferenceError(
                f"there is no {self.description.parts} {part!r}.",
                remedy=near(str(part), self.parts.labels),
            )
        return self.parts.labels.index(part)

    def _place(self, names: Sequence[str]) -> int:
        wanted = {name for one in names for name in texts(one, "the list of axes", InferenceError)}
        for at, table in enumerate(self.tables):
            if set(table) == wanted:
                return at
        raise InferenceError(
            f"the table over {', '.join(sorted(wanted)) or 'nothing'} is not one of this release.",
            remedy=f"Printed: {some_of(map(said, self.tables), '; ')}.",
        )

    def _path(self, at: int, number: int) -> Path:
        return self.files[f"{part_folder(self.tables, at)}/{part_name(number)}"].path

    def _is_drawn(self, at: int) -> bool:
        return self.tables[at] in {one.table for one in self.description.measured}

    def _form(self, at: int) -> TableFile:
        return TableFile(self.schema, self.tables, at, True, self._is_drawn(at))

    # ---- numbers -----------------------------------------------------------------------------

    def of_part(self, part: str) -> ReleaseOfPart:
        """One part as a release of several tables: sums, shares, tests, models.

        Its files are read, and those of other parts are not opened. Keep it to ask several
        questions.
        """
        from congenial.mechanisms.release_of_part import release_of_part  # reads what this writes

        return release_of_part(self, part)

    def count(self, condition: str, part: str | None = None) -> float:
        """People who meet a condition: the printed count of a cell, of a table above the parts or
        of one below in a part; of other sums in a part, the estimate.
        """
        found = self._cell(condition, part)
        if found is None:
            return self._summed(condition, part).count(condition)
        at, cells = found
        return int(np.asarray(self.numbers(at, part)[1]["count"])[cells][0])

    def estimate(self, what: str, /, part: str | None = None) -> float:
        """The estimated number of people in one cell of a table, or in a sum of cells of a part.

        `congenial.estimate` takes sums above the parts, from the tables drawn there alone, and any
        expression from `of_part(part)`.
        """
        return self.interval(what, part=part).estimate

    def interval(
        self, what: str, /, level: float = DEFAULT_LEVEL, part: str | None = None
    ) -> Interval:
        """Interval for the true number of people in one cell of a table above the parts, or with
        `part` in any sum of a part's cells: the files of that part are read and no others.
        """
        check_level(level)
        found = self._cell(what, part)
        if found is None:
            return self._summed(what, part).interval(what, level)
        at, cells = found
        columns = self.at_level(at, level, part)[1]
        value, low, high, sd = (
            float(np.asarray(columns[c])[cells][0]) for c in ("estimate", "low", "high", "sd")
        )
        return Interval(value, low, high, level, sd == 0, BASES["bound"])

    def intervals(self, names: str | Sequence[str], level: float, part: str | None = None) -> Any:
        """Intervals for every cell of a table, of one part where it is cut: an Arrow table of
        estimate, low, high, exact.
        """
        import pyarrow as pa

        check_level(level)
        at = self._place([names] if isinstance(names, str) else names)
        schema, columns = self.at_level(at, level, part)
        found = label_columns(schema, self.tables[at], INTERVAL)
        for name in INTERVAL[:3]:
            found[name] = pa.array(np.reshape(columns[name], -1))
        return pa.table(found | {"exact": pa.array(np.reshape(columns["sd"] == 0, -1))})

    def measured_tables(self) -> tuple[DrawnTable, ...]:
        """Each table drawn above the parts, with its own law."""
        return tuple(
            DrawnTable(
                f"{self.name}: {said(one.table)}", one, self.guarantee, self._drawn(one.table)
            )
            for one in self.description.measured
            if self.tables.index(one.table) in self.upper
        )

    def _drawn(self, names: tuple[str, ...]) -> Any:
        return self.upper[self.tables.index(names)]["count_as_drawn"]

    def numbers(self, at: int, part: str | None) -> tuple[Schema, Mapping[str, Any]]:
        """A table's schema and columns, of one part if it is cut into parts."""
        if at in self.upper:
            self._refuse_uncut(at, part)
            return self.schema, self.upper[at]
        if part is None:
            raise InferenceError(
                f"the table over {said(self.tables[at])} is cut into parts.",
                remedy=f"Name one of them, for example part={self.parts.labels[0]!r}.",
            )
        number = self.number(part)
        form = self._part_form(at, number)
        return form.schema, form.read({f"{form.name}.parquet": self._content(at, number)})

    def at_level(self, at: int, level: float, part: str | None) -> tuple[Schema, Mapping[str, Any]]:
        """The same with intervals at a level, cut to what the published figures allow."""
        schema, columns = self.numbers(at, part)
        given = (columns["estimate"], columns["sd"], level, columns["count"])
        low, high = ends(*given, table_ranges(self._figures(part), self.tables[at]))
        return schema, {**columns, "low": low, "high": high}

    def _figures(self, part: str | None) -> Invariants:
        """The figures as a part sees them; None: as tables above the parts do."""
        told = self.description.support
        if part is None:
            return above_parts(told, self.parts)
        return of_part(told, self.parts, self.number(part))

    def _summed(self, condition: str, part: str | None) -> ReleaseOfPart:
        """The part in which a sum is asked for; refused above the parts."""
        if part is None:
            raise self._unanswered(condition)
        return self.of_part(part)

    def _cell(self, condition: str, part: str | None) -> tuple[int, Any] | None:
        """The table of which a condition is one cell, and that cell."""
        tables = self.upper if part is None else self.worst
        schema = self.schema if part is None else self.parts.schema_of(self.number(part))
        refusal: PredicateError | None = None
        for at in tables:
            try:
                cells = select(condition, schema, self.tables[at])
            except PredicateError as reason:
                refusal = reason
                continue
            if np.count_nonzero(cells) == 1:
                return at, cells
        if refusal is not None and not tables:
            raise refusal
        return None

    def instead(self) -> str:
        """What can be asked of it."""
        return (
            "Ask for one cell of a table above the parts, or with part=... for any sum in a part; "
            "congenial.estimate() takes sums of cells above the parts."
        )

    # ---- files -------------------------------------------------------------------------------

    def payload(self) -> dict[str, bytes]:
        """The files of a bundle beside the folders of the parts."""
        files: dict[str, bytes] = {}
        for at in sorted(self.upper):
            files |= self._form(at).written(self.upper[at])
        return files | {SUMMARY: self._summary()}

    def _summary(self) -> bytes:
        parts = [
            {self.description.parts: label, "file": part_name(number)}
            for number, label in enumerate(self.parts.labels)
        ]
        worst = {part_folder(self.tables, at): sd for at, sd in sorted(self.worst.items())}
        told = {"parts": parts, "largest_sd": worst}
        return (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> PartedRelease:
        """Inverse of `payload`; the parts' files are named and not opened."""
        told: TablesDescription = common["description"]
        schema = common["guarantee"].adjacency.schema
        parts = AreaParts(schema, told.parts)
        measured = {one.table for one in told.measured}
        upper, worst = {}, {}
        summary = json.loads(payload[SUMMARY])
        for at, names in enumerate(told.tables):
            if parts.is_below(names):
                worst[at] = float(summary["largest_sd"][part_folder(told.tables, at)])
            else:
                form = TableFile(schema, told.tables, at, True, names in measured)
                upper[at] = form.read(payload)
        files = getattr(payload, "part_files", {})
        return cls(**common, upper=upper, worst=worst, files=files)
