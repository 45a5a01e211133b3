"""Everything that is wrong with the records of a plan, in one run. CONFIDENTIAL: for the curator.

    checked = check_data(plan.source, plan.schema, plan.unit, examples=5)
    checked.fits, [(problem.column, problem.kind, problem.rows) for problem in checked.problems]

Files are looked at first (encoding, separator, header, malformed rows), then the columns that are
there, all in one pass; columns with problems are read once more for their values. Nothing here is
meant for anybody but the curator, and nothing reaches a bundle.
"""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from congenial.data.advance import Advance
from congenial.data.attribute import Attribute
from congenial.data.data_problems import (
    DataCheck,
    DataProblem,
    Example,
    PlanLine,
    ProblemKind,
    Suggestion,
    for_dates,
    for_levels,
    for_numbers,
)
from congenial.data.derive import NO_DATE, DatePart, Derivation, derived, needed, used
from congenial.data.engines import open_source
from congenial.data.engines.duckdb_source import DuckDBSource, files_at, open_files, open_text
from congenial.data.engines.excel_sheet import sheet_header, sheet_names
from congenial.data.schema import Schema, Unit, closest
from congenial.data.source import (
    UTF_8,
    FileFormat,
    PlannedSource,
    Source,
    check_format,
    guarded,
    header_reading,
    one_kind,
)
from congenial.data.sql import ColumnType, Dialect, Refusal, check_type, coded
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
    return FilesFound(None, FileFormat(), (_unreadable(error),))


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
            values = self._values(self._numbered(opened), there)
            at = len(files.problems)
            self.problems[at:at] = _malformed(opened, self.examples)
        finally:
            opened.close()
        return values

    def _read_evened(
        self, there: Sequence[str], files: FilesFound, error: DataError
    ) -> tuple[DataProblem, tuple[int, list[str]] | None]:
        """Once more with line ends made alike; what was wrong, and what was read then."""
        if not isinstance(self.planned.address, Path):
            return _unreadable(error), None
        try:
            again = self._read(there, files, even=True)
        except DataError:
            return _unreadable(error), None
        words, remedy = "lines end in different ways", "Save the file with one kind of line ending."
        return DataProblem("line ends", "", None, words, remedy), again

    def _present(self, wanted: Sequence[str], columns: Sequence[str]) -> list[str]:
        """The wanted columns that the data have, or have what they are derived from."""
        absent = [name for name in needed(wanted, self.planned.derivations) if name not in columns]
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
        return [name for name in wanted if not set(needed([name], derivations)) & set(absent)]

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
                        refused = refused_values(
                            records, self.schema, name, reason, count, self.examples
                        )
                    self._add(*refused)
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
        settled = {line.key for line in self.lines} | {
            derivation.name for derivation in self.planned.derivations
        }
        self.lines += [line for line in lines if line.key not in settled]

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
    tidy = {column.strip().casefold(): column for column in columns}
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


# Values ----------------------------------------------------------------------------------------
#
# Values that have no cell: one pass counts them all, a second looks at the columns that have some.

ROW = "congenial_row"  # a column with the number of each record, where records have an order
MOST_VALUES = 1000  # values of one column that are looked at
AT_MOST_ROWS = 5  # row numbers shown for one value

KINDS: dict[Refusal, ProblemKind] = {
    Refusal.MISSING: "missing values",
    Refusal.OUTSIDE: "not in the schema",
    Refusal.NOT_A_NUMBER: "not a number",
}


@dataclass(frozen=True)
class OpenedRecords:
    """CONFIDENTIAL: an opened source under a name, and whether its rows are numbered."""

    source: Source
    name: str
    types: Mapping[str, ColumnType]
    numbered: bool

    def under(self, derivations: Sequence[Derivation]) -> OpenedRecords:
        """With derived columns."""
        name, types = derived(self.name, self.types, derivations, self.dialect)
        return OpenedRecords(self.source, name, types, self.numbered)

    @property
    def dialect(self) -> Dialect:
        """That of the source."""
        return self.source.dialect

    def column(self, name: str) -> str:
        """A column of `src` in SQL."""
        return f"src.{self.dialect.identifier(name)}"

    def text(self, name: str) -> str:
        """The text of a column of `src` in SQL."""
        return self.dialect.text_form(self.column(name), self.types[name])

    @property
    def beside(self) -> list[str]:
        """The number of each row, where there is one."""
        return [f"{self.column(ROW)} AS row_number"] if self.numbered else []

    def grouped(self, rows: str) -> tuple[list[Example], int]:
        """Values of a query with `value` and perhaps `row_number`, the most frequent first, and how
        many different ones there are.
        """
        at = f", min(row_number, {AT_MOST_ROWS}) AS at" if self.numbered else ""
        groups = self.source.run(
            f"SELECT value, COUNT(*) AS n, COUNT(*) OVER () AS every{at} FROM ({rows}) AS odd "
            f"GROUP BY value ORDER BY n DESC, value LIMIT {MOST_VALUES}"
        ).to_pylist()
        return [_example(row) for row in groups], int(groups[0]["every"]) if groups else 0

    def count(self, rows: str) -> int:
        """How many rows a query has."""
        counted = self.source.run(f"SELECT COUNT(*) AS n FROM ({rows}) AS counted")
        return int(counted["n"][0].as_py())


def _example(row: Mapping[str, Any]) -> Example:
    value = row["value"]
    return Example(None if value is None else str(value), int(row["n"]), tuple(row.get("at") or ()))


def count_refusals(records: OpenedRecords, schema: Schema, names: Sequence[str]) -> tuple[int, Any]:
    """The number of rows, and of rows without a level, by column and reason: one pass over all."""
    axes = [schema.axis(name) for name in names]
    rows = coded(records, axes, schema, ["1 AS one"])
    sums = [
        f"SUM(CASE WHEN c{at} = {int(reason)} THEN 1 ELSE 0 END) AS r{at}_{-int(reason)}"
        for at in range(len(axes))
        for reason in Refusal
    ]
    listed = ", ".join(["COUNT(*) AS n", *sums])
    counted = records.source.run(f"SELECT {listed} FROM ({rows}) AS coded").to_pylist()[0]
    return int(counted["n"]), {
        (name, reason): int(counted[f"r{at}_{-int(reason)}"] or 0)
        for at, name in enumerate(names)
        for reason in Refusal
    }


def refused_values(
    records: OpenedRecords,
    schema: Schema,
    column: str,
    reason: Refusal,
    count: int,
    examples: int,
) -> tuple[DataProblem | None, tuple[PlanLine, ...]]:
    """The values of one column that are refused for one reason, in `count` rows, as a problem.

    Text that is no date is left to `undated`.
    """
    beside = [f"{records.text(column)} AS value", *records.beside]
    axes = [schema.axis(column)]
    rows = coded(records, axes, schema, beside)
    refused = f"SELECT * FROM ({rows}) AS coded WHERE c0 = {int(reason)}"
    every, distinct = records.grouped(refused)
    examples_found = [example for example in every if example.value != NO_DATE]
    dateless = sum(example.rows for example in every) - sum(
        example.rows for example in examples_found
    )
    if not examples_found:
        return None, ()
    attribute = schema.attribute(column)
    values = {
        example.value: example.rows for example in examples_found if example.value is not None
    }
    suggestion = _suggestion(attribute, reason, values)
    listed = tuple(
        Example(example.value, example.rows, example.at, suggestion.meant.get(example.value or ""))
        for example in examples_found[:examples]
    )
    words, remedy = _words(attribute, reason)
    different = distinct - (len(every) - len(examples_found)) if values else 0
    problem = DataProblem(
        KINDS[reason],
        column,
        count - dateless,
        words,
        remedy,
        suggestion.pattern,
        different,
        listed,
    )
    return problem, suggestion.lines


def _suggestion(attribute: Attribute, reason: Refusal, values: Mapping[str, int]) -> Suggestion:
    if reason is Refusal.NOT_A_NUMBER:
        return for_numbers(attribute, values)
    if reason is Refusal.OUTSIDE and attribute.kind == "categorical":
        return for_levels(attribute.name, attribute.levels, values)
    return Suggestion("", {})


def _words(attribute: Attribute, reason: Refusal) -> tuple[str, str]:
    if reason is Refusal.MISSING:
        return "empty, and the schema has no category for it", (
            'Add a category for them in the schema: missing = "unknown".'
        )
    if reason is Refusal.NOT_A_NUMBER:
        return "text that is not a number", (
            "Where text means an open class, such as 85+, give that label as top or bottom in "
            "the schema. Recode text for a missing value to empty text, and give missing in the "
            "schema."
        )
    if attribute.kind == "categorical":
        return "values that are not a category of the schema", (
            "Recode them in [derive], add categories, or put them into one category: other = "
            '"other".'
        )
    return "numbers between or beyond those of the schema", (
        "Widen edges or integers, add top or bottom, or put them into one category: other = "
        '"other".'
    )


def undated(
    records: OpenedRecords, date_part: DatePart, examples: int
) -> tuple[DataProblem | None, tuple[PlanLine, ...]]:
    """Text in a column of dates that is no date in the layout that the plan gives."""
    name, stored = date_part.name, records.types[date_part.column]
    if stored.kind != "text":
        return None, ()
    read = records.dialect.read_date(records.column(date_part.column), date_part.layout)
    beside = ", ".join([f"{records.column(date_part.column)} AS value", *records.beside])
    where = f"{records.column(date_part.column)} IS NOT NULL AND ({read}) IS NULL"
    undated_rows = f"SELECT {beside} FROM {records.name} AS src WHERE {where}"
    undated_texts, distinct = records.grouped(undated_rows)
    if not undated_texts:
        return None, ()
    dated = f"SELECT 1 AS n FROM {records.name} AS src WHERE ({read}) IS NOT NULL"
    if date_part.invalid_is_missing and records.count(dated):
        return None, ()
    layouts = for_dates([value.value for value in undated_texts if value.value is not None])
    pattern = f"dates written as {' or '.join(layouts)}" if layouts else ""
    problem = DataProblem(
        "not a date",
        date_part.column,
        records.count(undated_rows),
        f"not a valid date in the format {date_part.layout or '%Y-%m-%d'}",
        f'Say how dates are written in derive.{name}: format = "{(*layouts, "%d.%m.%Y")[0]}". '
        "Where a few dates do not exist, correct them, or count them as missing: "
        f'invalid = "missing" in derive.{name} and missing = "unknown" in schema.{name}.',
        pattern,
        distinct,
        tuple(undated_texts[:examples]),
    )
    return problem, ()


def blank_rows(
    records: OpenedRecords, columns: Sequence[str]
) -> tuple[DataProblem | None, tuple[PlanLine, ...]]:
    """Rows in which every column that is used is empty."""
    blank = " AND ".join(f"{records.column(column)} IS NULL" for column in columns)
    count = records.count(f"SELECT 1 AS n FROM {records.name} AS src WHERE {blank}")
    if not count:
        return None, ()
    words = "rows that are completely empty"
    remedy = "Delete them in the file, or leave them out: skip_blank_rows = true in [data]."
    line = PlanLine("data", "skip_blank_rows", "true")
    return DataProblem("blank rows", "", count, words, remedy), (line,)


def unit_problems(records: OpenedRecords, unit: Unit, examples: int) -> list[DataProblem]:
    """Rows without a unit, and units with more rows than they may have."""
    assert unit.column is not None
    text = records.text(unit.column)
    grouped = f"SELECT {text} AS value, COUNT(*) AS k FROM {records.name} AS src GROUP BY {text}"
    sums = records.source.run(
        "SELECT SUM(CASE WHEN value IS NULL THEN k ELSE 0 END) AS missing, "
        f"SUM(CASE WHEN value IS NOT NULL AND k > {unit.rows} THEN k ELSE 0 END) AS many, "
        f"SUM(CASE WHEN value IS NOT NULL AND k > {unit.rows} THEN 1 ELSE 0 END) AS units "
        f"FROM ({grouped}) AS units"
    ).to_pylist()[0]
    problems = []
    if sums["missing"]:
        words = "rows without a value for the unit"
        remedy = "Every record needs a value that identifies its unit."
        missing = int(sums["missing"])
        problems.append(DataProblem("unit missing", unit.column, missing, words, remedy))
    if sums["many"] and not unit.truncate:
        limit = f"{unit.rows} row{'s' if unit.rows > 1 else ''}"
        words = f"rows of units that have more than {limit}"
        repeated = _repeated(records, unit, text) if examples else []
        problems.append(
            DataProblem(
                "unit repeated",
                unit.column,
                int(sums["many"]),
                words,
                unit.remedy,
                distinct=int(sums["units"]),
                examples=tuple(repeated[:examples]),
            )
        )
    return problems


def _repeated(records: OpenedRecords, unit: Unit, text: str) -> list[Example]:
    beside = ", ".join([f"{text} AS value", *records.beside])
    owned = f"SELECT {beside} FROM {records.name} AS src WHERE {text} IS NOT NULL"
    units, _ = records.grouped(owned)
    return [example for example in units if example.rows > unit.rows]


# Files -----------------------------------------------------------------------------------------
#
# How the files of a plan are really written: encoding, separator, header, sheets. Each check goes
# on with what it found, so that one run also sees what is wrong inside.

_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CANDIDATES = ("utf-8", "cp1252", "latin-1")
_PIECE = 1 << 20


@dataclass(frozen=True)
class FilesFound:
    """What the files are: the columns they have, how to go on reading them, what is wrong."""

    columns: tuple[str, ...] | None
    file_format: FileFormat
    problems: tuple[DataProblem, ...] = ()
    lines: tuple[PlanLine, ...] = ()


def look_at_files(
    path: Path, file_format: FileFormat, wanted: Sequence[str], examples: int
) -> FilesFound:
    """The columns of the files at `path`, and problems with how they are written."""
    try:
        files = files_at(path)
        kind = "csv" if file_format.separator is not None else one_kind(files, path.name)
    except DataError as error:
        return FilesFound(None, file_format, (_unreadable(error),))
    if kind == "excel":
        return _workbooks(files, file_format, examples)
    if kind == "parquet":
        return _parquet(files, file_format)
    decoded = _encoding(files, file_format, examples)
    return _header(files, decoded, wanted)


def _unreadable(error: DataError) -> DataProblem:
    """What is wrong where nothing can be read."""
    return DataProblem("file", "", None, error.what, error.remedy)


def _parquet(files: Sequence[Path], file_format: FileFormat) -> FilesFound:
    import pyarrow.parquet as pq

    names: dict[str, None] = {}
    try:
        for file in files:
            names |= dict.fromkeys(pq.read_schema(file).names)
    except Exception:  # noqa: BLE001 - a reader's error may quote a record
        broken = DataError(
            f"{file.name!r} cannot be read as parquet.", remedy="Check that it is complete."
        )
        return FilesFound(None, file_format, (_unreadable(broken),))
    return FilesFound(tuple(names), file_format)


def _workbooks(files: Sequence[Path], file_format: FileFormat, examples: int) -> FilesFound:
    try:
        return FilesFound(sheet_header(files[0], file_format.sheet), file_format)
    except DataError as error:
        problem = _unreadable(error)
    try:
        names = sheet_names(files[0])[: max(examples, 0)]
    except DataError:
        names = []
    sheets = tuple(Example(name, 0) for name in names)
    return FilesFound(None, file_format, (replace(problem, examples=sheets),))


def _encoding(files: Sequence[Path], file_format: FileFormat, examples: int) -> FilesFound:
    declared = file_format.encoding or UTF_8
    bad = [file for file in files if not decodes(file, declared)]
    if not bad:
        return FilesFound(None, file_format)
    guess = guessed_encoding(bad[0])
    lines = _undecodable_lines(bad[0], declared)
    more = sum(len(_undecodable_lines(file, declared)) for file in bad[1:])
    problem = DataProblem(
        "encoding",
        "",
        len(lines) + more,
        f"{bad[0].name!r} is not written in {declared}.",
        f"It can be read as {guess}; check that names and places then look right.",
        examples=(Example(None, len(lines), tuple(lines[:examples])),) if examples else (),
    )
    line = PlanLine("data", "encoding", f'"{guess}"')
    return FilesFound(None, replace(file_format, encoding=guess), (problem,), (line,))


def decodes(file: Path, encoding: str) -> bool:
    """Whether a whole file can be read in an encoding."""
    try:
        with open_text(file, encoding) as text:
            while text.read(_PIECE):
                pass
    except (UnicodeError, OSError, EOFError):
        return False
    return True


def guessed_encoding(file: Path) -> str:
    """The encoding a file is probably written in; every file can be read in the last of them."""
    with _open_bytes(file) as raw:
        start = raw.read(4096)
    if start.startswith(_BYTE_ORDER_MARKS):
        return "utf-16"
    if start[1::2].count(0) > len(start) // 4:
        return "utf-16-le"
    return next(encoding for encoding in _CANDIDATES if decodes(file, encoding))


def _undecodable_lines(file: Path, encoding: str) -> list[int]:
    """Numbers of the lines, from 1, that hold bytes which mean nothing in the encoding."""
    if codecs.lookup(encoding).name != UTF_8:
        return [1]  # lines can only be told apart where a line end is one byte
    with _open_bytes(file) as raw:
        return [number for number, line in enumerate(raw, 1) if not _is_utf_8(line)]


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _open_bytes(file: Path) -> Any:
    opener: Any = gzip.open if file.suffix.lower() == ".gz" else open
    return opener(file, "rb")


def _header(files: Sequence[Path], decoded: FilesFound, wanted: Sequence[str]) -> FilesFound:
    """The names in the header, read with the separator under which most wanted columns appear."""
    encoding = decoded.file_format.encoding or "utf-8-sig"
    with open_text(files[0], encoding, errors="replace") as text:
        line = text.readline(1_000_000).rstrip("\r\n").removeprefix("\ufeff")
    try:
        declared = header_reading(line, files[0].name, wanted, decoded.file_format.separator)
    except DataError as error:
        return replace(decoded, problems=(*decoded.problems, _unreadable(error)))
    best = _better_separator(line, wanted, declared)
    if best == declared:
        return replace(decoded, columns=declared[1])
    problem = DataProblem(
        "separator",
        "",
        None,
        f"the fields of {files[0].name!r} are not separated by the character in the plan.",
        "Name the right separator in [data].",
    )
    return FilesFound(
        best[1],
        replace(decoded.file_format, separator=best[0]),
        (*decoded.problems, problem),
        (*decoded.lines, PlanLine("data", "separator", json.dumps(best[0]))),
    )


def _better_separator(
    line: str, wanted: Sequence[str], declared: tuple[str, tuple[str, ...]]
) -> tuple[str, tuple[str, ...]]:
    """The reading of a header by any mark in it that finds more wanted columns, or the declared."""
    marks = dict.fromkeys(mark for mark in line if not mark.isalnum() and mark not in "\"_ '")
    readings = [header_reading(line, "", wanted, mark) for mark in marks]
    return max([declared, *readings], key=lambda reading: len(set(reading[1]) & set(wanted)))
