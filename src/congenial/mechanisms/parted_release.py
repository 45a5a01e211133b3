"""What a nation drawn by parts is released as: tables above the parts, and one release per part.

Tables above the parts are in memory; those below them are folders of Parquet files, one file per
part, which are read when they are asked for. Either way the numbers of a cell (count, estimate,
interval) are those printed: they follow from the draws of the whole nation, which nobody holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from congenial._exports import public
from congenial.data.area_parts import AreaParts
from congenial.data.arrays import Floats
from congenial.data.schema import near
from congenial.data.table import cell_index
from congenial.data.workload import Workload
from congenial.errors import BundleError, InferenceError, PredicateError, some_of
from congenial.figures.figures import Figures
from congenial.figures.restricted_figures import above_parts, of_part, summed_out
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.mechanisms.released import LEVEL, Interval, PartFile, Released, axis_names
from congenial.mechanisms.tables_files import TableFile, file_name, part_name, said
from congenial.mechanisms.tables_release import TablesRelease, reordered, showing
from congenial.pairs.adjacency import AddRemove, SemiAdjacent
from congenial.pairs.pairs import Adjacency, Pairs
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.tables.covariance import Deviations
from congenial.tables.joint_estimator import BASES, JointEstimator

Names = tuple[str, ...]
Columns = Mapping[str, Any]  # of one table, by the name of the column
SUMMARY = "parts.json"


# ---- one part, or what lies above all parts ------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PrintedEstimator(JointEstimator):
    """What the tables of one place say together; of printed cells, the printed standard deviations.

    Tables of other places made the printed estimates a little better than the tables at hand can
    tell, so that standard deviations of other sums are bounds: least squares from more measurements
    has no larger variance.
    """

    sds: Mapping[Names, Floats] = field(default_factory=dict, repr=False)

    def deviations(self, names: Sequence[str]) -> Deviations:
        """Standard deviation of every cell of a table."""
        for table, values in self.sds.items():
            if set(table) == set(names):
                return Deviations(reordered(values, table, names), "bound")
        return super().deviations(names)

    def basis_of_sum(self, names: Sequence[str], cells: Any) -> str:  # noqa: ARG002
        """What the interval of a sum rests on."""
        return BASES["bound"]

    def prints(self, names: Sequence[str]) -> bool:
        """Whether a table is printed as whole counts: every one that is in the files."""
        return frozenset(names) in map(frozenset, self.sds)


@dataclass(frozen=True, repr=False)
class PieceRelease(TablesRelease):
    """The tables of one part of a nation, or those above all parts, as printed: everything that
    several tables can be asked, under the promise of the nation's release.

    `columns`: what is printed of each table; `figures`: those published, as this place sees them.
    Look-alikes of a part are look-alikes of the nation in which nobody else moves, so that the
    promise to people of the part is the nation's.
    """

    drawn: tuple[Any, ...] = field(init=False, repr=False)
    columns: Mapping[Names, Columns] = field(repr=False)
    figures: Figures = field(repr=False)

    def __post_init__(self) -> None:
        laws = self.description.measured
        drawn = (self.columns.get(law.table, {}).get("count_as_drawn") for law in laws)
        object.__setattr__(self, "drawn", tuple(drawn))

    @property
    def tables(self) -> tuple[Names, ...]:
        """Axes of every table that is printed here."""
        return tuple(self.columns)

    @cached_property
    def estimator(self) -> PrintedEstimator:
        """What the tables of this place say together."""
        workload = Workload.of(self.figures.schema, self.tables)
        scales = {law.table: law.scale for law in self.description.measured}
        family = self.description.family
        assert family in ("discrete_gaussian", "double_geometric")
        return PrintedEstimator(
            workload,
            family,
            tuple(scales.get(names) for names in self.tables),
            summed_out(self.figures, workload.axes),
            sds={names: columns["sd"] for names, columns in self.columns.items()},
        )

    @cached_property
    def estimates(self) -> tuple[Any, ...]:
        """The estimates as printed."""
        return tuple(table["estimate"] for table in self.columns.values())

    @cached_property
    def counts(self) -> tuple[Any, ...]:
        """The whole counts as printed."""
        return tuple(table["count"] for table in self.columns.values())

    @cached_property
    def deviations(self) -> tuple[Floats, ...]:
        """The standard deviations as printed."""
        return tuple(table["sd"] for table in self.columns.values())

    @property
    def _figures(self) -> Figures:
        return self.figures

    def estimates_of(self, *names: str) -> Floats:
        """Estimates of a table: as printed, or sums of what is printed of the finest cells."""
        axes = axis_names(names)
        if self._place(axes) is not None:
            return super().estimates_of(*axes)
        finest = max(self.columns, key=lambda one: self.columns[one]["estimate"].size)
        cells = self.columns[finest]["estimate"]
        places = np.broadcast_to(cell_index(self.schema, finest, axes), cells.shape)
        sums = np.bincount(places.reshape(-1), cells.reshape(-1), self.schema.size(axes))
        shape = [axis.size for axis in self.schema.axes(axes)]
        return np.asarray(sums, dtype=np.float64).reshape(shape)

    def own_estimates_of(self, *names: str) -> Floats:
        """Estimates from the tables of this place alone: those printed rest on others too."""
        return np.asarray(self.fitted.table(axis_names(names)))

    def _file(self, at: int) -> TableFile:
        place = self.description.tables.index(self.tables[at])
        return TableFile.of(self.schema, self.description, place, True)


# ---- the nation ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PartedRelease(Released):
    """Several tables of a nation that agree with each other and with every published figure.

    `above` has the tables above the parts, `of_part` those of one part; each is a release of
    several tables. `upper`: the columns of every table above the parts, by its place among the
    tables. `worst`: the largest standard deviation in each table below them. `files`: the parts'
    files by name.
    """

    kind: ClassVar[str] = TablesRelease.kind
    name: str
    description: TablesDescription
    guarantee: Guarantee
    randomness: str
    publishable: bool
    upper: Mapping[int, Columns] = field(repr=False)
    worst: Mapping[int, float] = field(repr=False)
    files: Mapping[str, PartFile] = field(default_factory=dict, repr=False)

    @property
    def tables(self) -> tuple[Names, ...]:
        """Axes of every table."""
        return self.description.tables

    @cached_property
    def parts(self) -> AreaParts:
        """How the geography is cut."""
        return AreaParts(self.schema, self.description.parts)

    @property
    def largest_sds(self) -> list[float]:
        """The largest standard deviation in each table, in order."""
        above = {
            at: float(np.max(columns["sd"], initial=0.0)) for at, columns in self.upper.items()
        }
        largest = above | dict(self.worst)
        return [largest[at] for at in range(len(self.tables))]

    @property
    def part_files(self) -> Mapping[str, PartFile]:
        """The files of the parts, by their name in the bundle."""
        return self.files

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """Files and what they hold."""
        rows = []
        for at, names in enumerate(self.tables):
            form = TableFile.of(self.schema, self.description, at, True)
            where = f"{form.name}.csv, .parquet" if at in self.upper else f"{form.name}/"
            each = "" if at in self.upper else f", one file per {self.description.parts}"
            rows.append(
                (where, f"{said(names)}, one row per cell: {', '.join(form.columns)}{each}")
            )
        return (*rows, (SUMMARY, f"the file of every {self.description.parts}, and its areas"))

    @property
    def usage(self) -> tuple[str, ...]:
        """How to begin, as lines of code."""
        names = ", ".join(repr(name) for name in self.tables[min(self.worst)])
        return (
            f"release.dataset({names})  # an Arrow dataset: nothing is read yet",
            f"release.to_arrow({names}, part={self.parts.labels[0]!r})",
        )

    def __repr__(self) -> str:
        tables = "; ".join(map(said, self.tables))
        parts = f"{len(self.parts.labels)} parts"
        return f"PartedRelease({self.name!r}: {tables}; {parts}; {self.guarantee.tradeoff.words})"

    def _title(self) -> str:
        return f"Release '{self.name}': {'; '.join(map(said, self.tables))}"

    # ---- its pieces --------------------------------------------------------------------------

    @cached_property
    def above(self) -> PieceRelease:
        """The tables above the parts as a release of several tables.

        Sums of their cells have estimates from the tables drawn there alone (`congenial.estimate`).
        """
        columns = {self.tables[at]: values for at, values in self.upper.items()}
        figures = above_parts(self.description.support, self.parts)
        common = self.name, self.description, self.guarantee, self.randomness, self.publishable
        return PieceRelease(*common, columns, figures)

    def of_part(self, part: str) -> PieceRelease:
        """One part as a release of several tables: sums, shares, tests, models.

        Its files are read, and those of other parts are not opened. Keep it to ask several
        questions. Its tables are those below the parts, and its rows of tables by parts.
        """
        number = self.number(part)
        figures = of_part(self.description.support, self.parts, number)
        columns = {
            names: self._columns(at, number)
            for at, names in enumerate(self.tables)
            if at in self.worst or self.parts.parts in names
        }
        laws = [law for law in self.description.measured if law.table in columns]
        description = replace(
            self.description,
            measured=tuple(replace(law, support=figures) for law in laws),
            tables=tuple(columns),
            design={},
        )
        promise = replace(self.guarantee, adjacency=_within(self.guarantee.adjacency, figures))
        return PieceRelease(
            f"{self.name}: {part}",
            description,
            promise,
            self.randomness,
            self.publishable,
            columns,
            figures,
        )

    def _columns(self, at: int, number: int) -> Columns:
        """What is printed of a table: the part's own file, or its rows of a table by parts."""
        if at in self.worst:
            form = self._part_form(at, number)
            return form.read({f"{form.name}.parquet": self._content(at, number)})
        axis = self.tables[at].index(self.parts.parts)
        return {name: np.take(values, [number], axis) for name, values in self.upper[at].items()}

    def number(self, part: str) -> int:
        """The number of a part."""
        if part not in self.parts.labels:
            raise InferenceError(
                f"there is no {self.description.parts} {part!r}.",
                remedy=near(str(part), self.parts.labels),
            )
        return self.parts.labels.index(part)

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
            return self.above.to_arrow(*self.tables[at])
        numbers = range(len(self.parts.labels)) if part is None else [self.number(part)]
        return pa.concat_tables(
            self._part_form(at, number).expected.read(self._content(at, number))
            for number in numbers
        )

    def to_pandas(self, *names: str, part: str | None = None) -> Any:
        """The same as a pandas frame (extra `frames`)."""
        return self.to_arrow(*names, part=part).to_pandas()

    def to_polars(self, *names: str, part: str | None = None) -> Any:
        """The same as a Polars frame (extra `frames`)."""
        import polars as pl

        return pl.from_arrow(self.to_arrow(*names, part=part))

    def _part_form(self, at: int, number: int) -> TableFile:
        return TableFile.of(self.parts.schema_of(number), self.description, at, True)

    def _content(self, at: int, number: int) -> bytes:
        try:
            return self._path(at, number).read_bytes()
        except OSError:
            raise BundleError(
                f"the file of {self.parts.labels[number]!r} cannot be read.",
                remedy="Get a fresh copy of the bundle.",
            ) from None

    def _path(self, at: int, number: int) -> Path:
        return self.files[f"{file_name(self.tables, at)}/{part_name(number)}"].path

    def _refuse_uncut(self, at: int, part: str | None) -> None:
        if part is not None:
            raise InferenceError(
                f"the table over {said(self.tables[at])} is not cut into parts.",
                remedy="Leave out part.",
            )

    def _place(self, names: Sequence[str]) -> int:
        wanted = set(axis_names(names))
        for at, table in enumerate(self.tables):
            if set(table) == wanted:
                return at
        raise InferenceError(
            f"the table over {', '.join(sorted(wanted)) or 'nothing'} is not one of this release.",
            remedy=f"Printed: {some_of(map(said, self.tables), '; ')}.",
        )

    # ---- numbers -----------------------------------------------------------------------------

    def count(self, condition: str, part: str | None = None) -> float:
        """People who meet a condition: the printed count of a cell, of a table above the parts or
        of one below in a part; of other sums in a part, the estimate.
        """
        return self._asked(condition, part).count(condition)

    def estimate(
        self, what: Any, level: float = LEVEL, part: str | None = None, **options: Any
    ) -> Any:
        """Estimates with intervals, an `EstimateTable`: of one part, or from the tables drawn above
        the parts alone. See `congenial.estimate`.
        """
        if part is not None:
            return self.of_part(part).estimate(what, level, **options)
        try:
            return public("estimate")(self, what, level, **options)
        except PredicateError:  # about areas that no table above the parts shows
            raise self._unanswered(what) from None

    def interval(self, what: str, /, level: float = LEVEL, part: str | None = None) -> Interval:
        """Interval for the true number of people in one cell of a table above the parts, or with
        `part` in any sum of a part's cells: the files of that part are read and no others.
        """
        return self._asked(what, part).interval(what, level)

    def intervals(
        self, names: str | Sequence[str], level: float = LEVEL, part: str | None = None
    ) -> Any:
        """Intervals for every cell of a table, of one part where it is cut: an Arrow table of
        estimate, low, high, exact.
        """
        at = self._place([names] if isinstance(names, str) else names)
        if at in self.upper:
            self._refuse_uncut(at, part)
            return self.above.intervals(self.tables[at], level)
        if part is None:
            raise InferenceError(
                f"the table over {said(self.tables[at])} is cut into parts.",
                remedy=f"Name one of them, for example part={self.parts.labels[0]!r}.",
            )
        return self.of_part(part).intervals(self.tables[at], level)

    def measured_tables(self) -> tuple[DrawnTable, ...]:
        """Each table drawn above the parts, with its own law."""
        return self.above.measured_tables()

    def _asked(self, condition: str, part: str | None) -> PieceRelease:
        """Where a condition is asked about; above the parts it must be one cell of a table."""
        if part is not None:
            return self.of_part(part)
        try:
            cells = showing(self.above.estimator.workload, condition)[1] if self.upper else None
        except PredicateError:
            cells = None
        if cells is None or np.count_nonzero(cells) != 1:
            raise self._unanswered(condition)
        return self.above

    def instead(self) -> str:
        """What can be asked of it."""
        return (
            "Ask for one cell of a table above the parts, or with part=... for any sum in a part; "
            "congenial.estimate() takes sums of cells above the parts."
        )

    # ---- files -------------------------------------------------------------------------------

    def payload(self) -> dict[str, bytes]:
        """The files of a bundle beside the folders of the parts."""
        parts = [
            {self.description.parts: label, "file": part_name(number)}
            for number, label in enumerate(self.parts.labels)
        ]
        worst = {file_name(self.tables, at): sd for at, sd in sorted(self.worst.items())}
        summary = json.dumps({"parts": parts, "largest_sd": worst}, indent=1, ensure_ascii=False)
        return self.above.payload() | {SUMMARY: (summary + "\n").encode()}

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> PartedRelease:
        """Inverse of `payload`; the parts' files are named and not opened."""
        description: TablesDescription = common["description"]
        schema = common["guarantee"].adjacency.schema
        parts = AreaParts(schema, description.parts)
        upper, worst = {}, {}
        summary = json.loads(payload[SUMMARY])
        for at, names in enumerate(description.tables):
            form = TableFile.of(schema, description, at, True)
            if parts.is_below(names):
                worst[at] = float(summary["largest_sd"][form.name])
            else:
                upper[at] = form.read(payload)
        files = getattr(payload, "part_files", {})
        return cls(**common, upper=upper, worst=worst, files=files)


def _within(pairs: Pairs, figures: Figures) -> Pairs:
    """The same unit of protection among the people of the part."""
    assert isinstance(pairs, Adjacency)
    if isinstance(pairs, AddRemove):
        return replace(pairs, schema=figures.schema)
    assert isinstance(pairs, SemiAdjacent | SeveralRows)
    return replace(pairs, published=figures)
