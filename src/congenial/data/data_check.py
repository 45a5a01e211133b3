"""Everything that is wrong with the records of a plan, in one run. CONFIDENTIAL: for the curator.

    found = check_data(plan.source, plan.schema, plan.unit, examples=5)
    found.fits, [(one.column, one.kind, one.rows) for one in found.problems]

Files are looked at first (encoding, separator, header, malformed rows), then the columns that are
there, all in one pass; columns with problems are read once more for their values. Nothing here is
meant for anybody but the curator, and nothing reaches a bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from congenial.data.advance import Advance
from congenial.data.data_problems import DataCheck, DataProblem, Example, PlanLine
from congenial.data.derive import DatePart, derived, needed, used
from congenial.data.engines.duckdb_source import DuckDBSource, open_files
from congenial.data.file_format import FileFormat, PlannedSource
from congenial.data.file_problems import FilesFound, look_at_files
from congenial.data.schema import Schema, Unit, closest
from congenial.data.source import Source, check_format, guarded, open_source
from congenial.data.sql import ColumnType, Refusal, check_type
from congenial.data.value_problems import (
    ROW,
    OpenedRecords,
    blank_rows,
    count_refusals,
    refused_values,
    undated,
    unit_problems,
)
from congenial.errors import DataError

Tell = Callable[[str], Any]


def check_data(
    source: PlannedSource,
    schema: Schema,
    unit: Unit,
    examples: int = 0,
    progress: Tell = lambda _: None,
) -> DataCheck:
    """Every problem with the records, with the number of rows; `examples` values and rows of each.

    Refuses nothing: what cannot be read is a problem too.
    """
    wanted = [*schema.columns]
    if unit.column is not None and unit.column not in wanted:
        wanted.append(unit.column)
    progress("reading the files")
    files = _look(source, needed(wanted, source.derivations), examples)
    if files.columns is None:
        return DataCheck(None, files.problems, files.lines, tuple(wanted))
    return _Check(source, schema, unit, examples, progress).run(wanted, files)


def _look(source: PlannedSource, raw: Sequence[str], examples: int) -> FilesFound:
    """What is in the files, or which columns a database has of those that are needed."""
    if source.units is not None:
        return _look_at_both(source, raw)
    if isinstance(source.address, Path):
        return look_at_files(source.address, source.file_format, raw, examples)
    try:
        check_format(source)
        there = [name for name in raw if _has(source.address, name)]
    except DataError as error:
        return _unopened(error)
    return FilesFound(tuple(there), FileFormat())


def _has(address: object, column: str) -> bool:
    """Whether a database has a column; DataError if it cannot be opened at all."""
    try:
        open_source(address, [column]).close()
    except DataError as error:
        if not error.what.startswith("the data have"):
            raise
        return False
    return True


def _look_at_both(source: PlannedSource, raw: Sequence[str]) -> FilesFound:
    """A file of rows and one of units: whether they can be joined, or what is in the way."""
    try:
        open_source(replace(source, derivations=()), raw).close()
    except DataError as error:
        return _unopened(error)
    return FilesFound(tuple(raw), FileFormat())


def _unopened(error: DataError) -> FilesFound:
    """Nothing can be looked at, and why."""
    problem = DataProblem("file", "", None, error.what, error.remedy)
    return FilesFound(None, FileFormat(), (problem,))


class _Check:
    """One check: what is asked, and the problems and lines found so far."""

    def __init__(
        self, source: PlannedSource, schema: Schema, unit: Unit, examples: int, progress: Tell
    ) -> None:
        self.planned, self.schema, self.unit = source, schema, unit
        self.examples, self.progress = examples, progress
        self.problems: list[DataProblem] = []
        self.lines: list[PlanLine] = []

    def run(self, wanted: Sequence[str], files: FilesFound) -> DataCheck:
        assert files.columns is not None
        self.problems += files.problems
        self.lines += files.lines
        there = self._present(wanted, files.columns)
        if not there:
            return DataCheck(None, tuple(self.problems), tuple(self.lines), tuple(wanted))
        before = len(self.problems)
        try:
            rows, looked_at = self._read(there, files)
        except DataError as error:
            del self.problems[before:]
            problem, again = self._read_evened(there, files, error)
            self.problems.insert(len(files.problems), problem)
            if again is None:
                return DataCheck(None, tuple(self.problems), tuple(self.lines), tuple(wanted))
            rows, looked_at = again
        if rows == 0 and not self.problems:
            remedy = "Check the file, and that it has records below its header."
            self.problems.append(DataProblem("file", "", 0, "there are no records.", remedy))
        unread = tuple(name for name in wanted if name not in looked_at)
        return DataCheck(rows, tuple(self.problems), tuple(self.lines), unread)

    def _read(
        self, there: Sequence[str], files: FilesFound, *, even: bool = False
    ) -> tuple[int, list[str]]:
        """Look at all values; the number of rows, and the columns that were looked at."""
        opened = self._open(needed(there, self.planned.derivations), files, even)
        try:
            found = self._values(self._numbered(opened), there)
            at = len(files.problems)
            self.problems[at:at] = _malformed(opened, self.examples)
        finally:
            opened.close()
        return found

    def _read_evened(
        self, there: Sequence[str], files: FilesFound, error: DataError
    ) -> tuple[DataProblem, tuple[int, list[str]] | None]:
        """Once more with line ends made alike; what was wrong, and what was read then."""
        unreadable = DataProblem("file", "", None, error.what, error.remedy)
        if not isinstance(self.planned.address, Path):
            return unreadable, None
        try:
            again = self._read(there, files, even=True)
        except DataError:
            return unreadable, None
        words, remedy = "lines end in different ways", "Save the file with one kind of line ending."
        return DataProblem("line ends", "", None, words, remedy), again

    def _present(self, wanted: Sequence[str], columns: Sequence[str]) -> list[str]:
        """The wanted columns that the data have, or have what they are derived from."""
        absent = [one for one in needed(wanted, self.planned.derivations) if one not in columns]
        for name in absent:
            like = _like(name, columns)
            words = "the data have no such column"
            remedy = "Check the names in the header, or derive the column from others in [derive]."
            if like:
                remedy = (
                    f"The data have {like!r}: use the same name in both, or derive one from the "
                    "other."
                )
            self.problems.append(DataProblem("column absent", name, None, words, remedy))
        derivations = self.planned.derivations
        return [one for one in wanted if not set(needed([one], derivations)) & set(absent)]

    def _open(self, columns: Sequence[str], files: FilesFound, even: bool) -> Source:
        address = self.planned.address
        if self.planned.units is not None:
            return open_source(replace(self.planned, derivations=()), columns)
        if isinstance(address, Path):
            return open_files(
                address, columns, files.file_format, keep_rejects=True, even_line_ends=even
            )
        return open_source(address, columns)

    def _numbered(self, opened: Source) -> OpenedRecords:
        """The records, with the number of each where files have an order and it is asked for."""
        if not self.examples or not isinstance(opened, DuckDBSource):
            return OpenedRecords(opened, opened.name, opened.types, False)
        name = f"(SELECT *, row_number() OVER () AS {ROW} FROM {opened.name})"
        types = {**opened.types, ROW: ColumnType("whole")}
        return OpenedRecords(opened, name, types, True)

    def _values(self, plain: OpenedRecords, there: Sequence[str]) -> tuple[int, list[str]]:
        """Look at the values of every column; the number of rows, and the columns looked at."""
        readable = self._readable(plain, there)
        steps = used(readable, self.planned.derivations)
        records = plain.under(steps)
        names = [name for name in self.schema.names if name in readable]
        with self._telling(records, "reading the records"):
            rows, counts = count_refusals(records, self.schema, names)
        for name in names:
            for reason in Refusal:
                count = counts[name, reason]
                if count:
                    with self._telling(records, f"checking column {name!r}"):
                        found = refused_values(
                            records, self.schema, name, reason, count, self.examples
                        )
                    self._add(*found)
        for at, step in enumerate(steps):
            if isinstance(step, DatePart):
                self._add(*undated(plain.under(steps[:at]), step, self.examples))
        if isinstance(self.planned.address, Path):
            self._add(*blank_rows(plain, list(plain.types)))
        if self.unit.column in readable:
            with self._telling(records, "counting the rows of each unit"):
                self.problems += unit_problems(records, self.unit, self.examples)
        return rows, readable

    @contextmanager
    def _telling(self, records: OpenedRecords, step: str) -> Iterator[None]:
        """Tell how much of a step over all records is done."""
        self.progress(step)
        with records.source.watched(lambda share: self.progress(Advance(step, share))):
            yield

    def _add(self, problem: DataProblem | None, lines: tuple[PlanLine, ...]) -> None:
        self.problems += [] if problem is None else [problem]
        # one line for one column; a column that is derived already is for the curator to mend
        known = {line.key for line in self.lines} | {one.name for one in self.planned.derivations}
        self.lines += [line for line in lines if line.key not in known]

    def _readable(self, plain: OpenedRecords, there: Sequence[str]) -> list[str]:
        """Columns stored in a form that their levels, or what is derived, can be read from."""
        readable = []
        for name in there:
            steps = used([name], self.planned.derivations)
            try:
                types = derived("", plain.types, steps, plain.source.dialect)[1]
                if name in self.schema.names:
                    check_type(self.schema.attribute(name), types[name])
            except DataError as error:
                words = error.what.removeprefix(f"column {name!r} ").rstrip(".")
                problem = DataProblem("stored otherwise", name, None, words, error.remedy)
                self.problems.append(problem)
            else:
                readable.append(name)
        return readable


def _like(name: str, columns: Sequence[str]) -> str | None:
    """The column that is probably meant: but for blanks and case, or close to it."""
    tidy = {one.strip().casefold(): one for one in columns}
    return tidy.get(name.casefold()) or closest(name, columns)


def _malformed(opened: Source, examples: int) -> list[DataProblem]:
    """Rows of CSV files that have too few or too many fields, or a quote that does not end."""
    if not isinstance(opened, DuckDBSource) or opened.connection is None:
        return []
    connection = opened.connection
    query = (
        "SELECT error_type, COUNT(DISTINCT (file_path, line)), "
        f"list_slice(list_sort(list(DISTINCT line)), 1, {max(1, examples)}) "
        "FROM reject_errors JOIN reject_scans USING (scan_id, file_id) "
        "GROUP BY error_type ORDER BY error_type"
    )
    try:
        rows = guarded(lambda: connection.sql(query).fetchall(), "no row was skipped.")
    except DataError:
        return []  # no CSV file was read
    return [
        replace(
            DataProblem("malformed rows", "", int(number), _MALFORMED.get(kind, _OTHERWISE), _MEND),
            examples=(Example(None, int(number), tuple(at)),) if examples else (),
        )
        for kind, number, at in rows
    ]


_MALFORMED = {
    "MISSING COLUMNS": "rows with fewer fields than the header",
    "TOO MANY COLUMNS": "rows with more fields than the header",
    "UNQUOTED VALUE": "rows with a quotation mark that is not closed, or closed too early",
}
_OTHERWISE = "rows that cannot be read"
_MEND = (
    "Correct the file: put a field that contains the separator, a quote or a line end in quotes."
)
