"""DuckDB, embedded: files, folders and frames become one relation that can be read many times."""

from __future__ import annotations

import glob
import gzip
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.dataset

from congenial.data.advance import bytes_read, watching
from congenial.data.engines.excel_sheet import read_sheets
from congenial.data.source import (
    UTF_8,
    FileFormat,
    Source,
    UnitFile,
    check_columns,
    guarded,
    one_kind,
    read_header,
)
from congenial.data.sql import DUCKDB, ColumnKind, ColumnType, Dialect
from congenial.errors import DataError, some_of

_KINDS: dict[str, ColumnKind] = {
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint", "hugeint"), "whole"),
    **dict.fromkeys(("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"), "whole"),
    "decimal": "decimal",
    "float": "float",
    "double": "double",
    **dict.fromkeys(("varchar", "enum", "uuid"), "text"),
    "boolean": "boolean",
    **dict.fromkeys(("date", "time", "timestamp"), "date"),
}
_VIEW = "congenial_source"
_MEMORY, _MEMORY_OF_A_THREAD = 1_000, 125  # MB that a query may take before it spills, at least


@dataclass(frozen=True)
class DuckDBSource(Source):
    """A relation with the needed columns; `types` says how each is stored."""

    relation: duckdb.DuckDBPyRelation
    types: dict[str, ColumnType]
    # Ours if we made it: it must outlive the relation, and its folder goes when it does.
    connection: duckdb.DuckDBPyConnection | None = None
    size: int = 0  # bytes of the files that are read, where they are files

    dialect: ClassVar[Dialect] = DUCKDB
    name: str = DUCKDB.identifier(_VIEW)

    def spill(self) -> None:
        """As in `Source`, where the connection is ours; its private folder takes what is spilt."""
        if self.connection is not None:
            room = max(_MEMORY, _MEMORY_OF_A_THREAD * (os.cpu_count() or 1))
            self.connection.execute(f"SET memory_limit = '{room}MB'")

    def watched(self, tell: Callable[[float], Any]) -> AbstractContextManager[None]:
        """As in `Source`, for files: by the bytes that this process has read since.

        DuckDB itself is not asked: its answer may wait for the query, and the query for Python.
        """
        before = bytes_read()
        if not self.size or before is None:
            return nullcontext()

        def look() -> float | None:
            now = bytes_read()
            return None if now is None else (now - before) / self.size % 1  # some read it twice

        return watching(look, tell)

    def copy(self, query: Callable[[str], str], beside: Any, folder: Path, by: str) -> None:
        """As in `Source`, spilling to a private folder beyond some memory where the connection is
        ours.
        """
        import pyarrow.parquet as pq

        self.spill()
        if self.connection is not None:
            self.connection.execute("SET preserve_insertion_order = false")
        file = folder.with_name(f"{folder.name}-beside.parquet")
        pq.write_table(beside, file)
        rows = query(f"read_parquet({DUCKDB.text(str(file))})")
        place = DUCKDB.text(str(folder))
        self.run(f"COPY ({rows}) TO {place} (FORMAT parquet, PARTITION_BY ({by}))")

    def run(self, query: str) -> Any:
        """The result of a query on the relation."""

        def run() -> Any:
            try:
                result = self.relation.query(_VIEW, query)
                return None if result is None else result.to_arrow_table()
            finally:
                # DuckDB leaves a temporary view behind; the connection may be the caller's.
                self.relation.query(_VIEW, f"DROP VIEW IF EXISTS {_VIEW}")

        return guarded(
            run,
            "the records cannot be read to the end.",
            "Check that every file is complete, in UTF-8, has one kind of line ending and as "
            "many fields in each row as in its header.",
        )

    def close(self) -> None:
        """Nothing to do: a connection of ours goes with the last reference to it."""

    def under(self, name: str, types: Mapping[str, ColumnType]) -> DuckDBSource:
        """The same records under another name."""
        return replace(self, name=name, types=dict(types))


def open_duckdb(source: object, columns: Sequence[str]) -> DuckDBSource:
    """Open a path, a frame, a relation or (connection, table name)."""
    if isinstance(source, (str, Path)):
        return open_files(Path(source), columns)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return _from_relation(source, columns)
    if isinstance(source, tuple) and len(source) == 2:
        connection, name = source
        if isinstance(connection, duckdb.DuckDBPyConnection) and isinstance(name, str):
            relation = guarded(
                lambda: connection.table(name),
                f"the connection has no table {name!r}, or is closed.",
                "Give an open connection and the name of a table or view.",
            )
            return _from_relation(relation, columns)
    return _from_arrow(_arrow(source, columns), columns)


def _connect() -> duckdb.DuckDBPyConnection:
    """A private in-memory database: no extension is fetched, no Python variable is read."""
    # DuckDB spills to the working directory by default; records belong in a private folder.
    folder = tempfile.mkdtemp(prefix="congenial-")
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "python_enable_replacements": False,
            "temp_directory": folder,
        },
    )
    weakref.finalize(connection, shutil.rmtree, folder, ignore_errors=True)
    return connection


def _from_relation(relation: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> DuckDBSource:
    unreadable = "the DuckDB relation cannot be read."
    remedy = "Keep its connection open."
    check_columns(columns, guarded(lambda: relation.columns, unreadable, remedy))
    listed = ", ".join(DUCKDB.identifier(column) for column in columns)
    needed = guarded(lambda: relation.project(listed), unreadable, remedy)
    types = {c: _column_type(t) for c, t in zip(columns, needed.types, strict=True)}
    return DuckDBSource(needed, types)


def _column_type(stored: Any) -> ColumnType:
    if stored.id == "decimal":
        return ColumnType("decimal", dict(stored.children)["scale"])
    if str(stored.id) == "sqlnull":
        return ColumnType("whole")
    name = str(stored.id).split(" ")[0].split("_")[0]
    return ColumnType(_KINDS.get(name, "nested"))


# Frames --------------------------------------------------------------------------------------


def _arrow(source: object, columns: Sequence[str]) -> Any:
    """An Arrow table or dataset of the needed columns."""
    library = type(source).__module__.split(".")[0]
    name = type(source).__name__
    if isinstance(source, pyarrow.dataset.Dataset):
        check_columns(columns, source.schema.names)
        return source
    if isinstance(source, pa.RecordBatchReader):
        check_columns(columns, source.schema.names)
        reader = source  # one pass only, so its columns are kept in memory
        return guarded(lambda: reader.read_all().select(list(columns)), _BROKEN)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        check_columns(columns, source.column_names)
        return source.select(list(columns))
    if library == "pandas" and name == "DataFrame":
        return _from_pandas(source, columns)
    if library == "polars" and name in ("DataFrame", "LazyFrame"):
        return _from_polars(source, columns)
    raise DataError(
        f"{name!r} is not a source of records.",
        remedy="Give a CSV or Parquet path or folder, an Arrow, pandas, Polars or Spark frame, a "
        "DuckDB relation, (DuckDB connection, table name), postgresql://... or spark:...",
    )


_BROKEN = "the frame cannot be read."


def _from_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
    _refuse_index(columns, frame)
    check_columns(columns, list(frame.columns))
    arrays = [
        guarded(
            lambda name=column: pa.Array.from_pandas(frame[name]),  # type: ignore[misc]
            f"column {column!r} mixes types.",
            "Convert it to one type, for example with astype('string') or astype('Int64').",
        )
        for column in columns
    ]
    return pa.table(dict(zip(columns, arrays, strict=True)))


def _refuse_index(columns: Sequence[str], frame: Any) -> None:
    """pandas keeps an index apart from its columns, though it prints them alike."""
    inside = [name for name in columns if name in frame.index.names and name not in frame.columns]
    if inside:
        raise DataError(
            f"the data have no column {some_of(map(repr, inside))}: it is the index of the frame.",
            remedy="Give frame.reset_index().",
        )


def _from_polars(frame: Any, columns: Sequence[str]) -> pa.Table:
    names = guarded(lambda: frame.collect_schema().names(), _BROKEN)
    check_columns(columns, names)
    # A lazy frame runs once, on the needed columns only; those are kept in memory.
    return guarded(lambda: frame.lazy().select(list(columns)).collect().to_arrow(), _BROKEN)


def _from_arrow(data: Any, columns: Sequence[str]) -> DuckDBSource:
    connection = _connect()
    relation = guarded(lambda: connection.from_arrow(data), _BROKEN)
    return replace(_from_relation(relation, columns), connection=connection)


# Files ---------------------------------------------------------------------------------------


def open_files(
    path: Path,
    columns: Sequence[str],
    file_format: FileFormat = FileFormat(),  # noqa: B008 - frozen
    *,
    keep_rejects: bool = False,
    even_line_ends: bool = False,
) -> DuckDBSource:
    """Open a file, or a flat folder of files of one kind, written as `file_format` says.

    `keep_rejects`: malformed rows of CSV files are passed over and noted in DuckDB's own table
    `reject_errors`, for the check of data; otherwise the first of them is an error.
    `even_line_ends`: CSV files are read from private copies that have one kind of line end.
    """
    files = files_at(path)
    kind = "csv" if file_format.separator is not None else one_kind(files, path.name)
    if kind == "excel":
        opened = _from_arrow(read_sheets(files, columns, file_format.sheet), columns)
        opened = _without_blank_rows(opened, columns) if file_format.skip_blank_rows else opened
        return replace(opened, types=dict.fromkeys(columns, ColumnType("text")))
    connection = _connect()
    if kind == "csv" and (file_format.transcodes or even_line_ends):
        encoding = file_format.encoding or UTF_8
        files = in_utf_8(files, encoding, connection, None if even_line_ends else "")
    # A name such as "a[1].csv" is a file, not a pattern.
    names = {file: DUCKDB.text(glob.escape(str(file))) for file in files}
    if kind == "parquet":
        query = f"SELECT * FROM read_parquet([{', '.join(names.values())}], union_by_name = true, "
        query += "hive_partitioning = false)"
    else:
        query = _csv_query(names, columns, file_format.separator, keep_rejects)
    relation = guarded(
        lambda: connection.sql(query),
        f"{path.name!r} cannot be read as {kind}.",
        "Check that every file is complete and is what its name says.",
    )
    size = sum(file.stat().st_size for file in files)
    opened = replace(_from_relation(relation, columns), connection=connection, size=size)
    if file_format.skip_blank_rows:
        opened = _without_blank_rows(opened, columns)
    if kind == "csv":
        return replace(opened, types=dict.fromkeys(columns, ColumnType("text")))
    return opened


def files_at(path: Path) -> list[Path]:
    """The file, or the files of a flat folder by name."""
    if not path.exists():
        raise DataError(f"there is no file or folder {str(path)!r}.", remedy="Check the path.")
    if not path.is_dir():
        return [path]
    # Names such as _SUCCESS and .part.crc are other programs' notes.
    inside = sorted(entry for entry in path.iterdir() if entry.name[0] not in "._")
    if not inside:
        raise DataError(f"folder {path.name!r} has no files.", remedy="Check the path.")
    if any(entry.is_dir() for entry in inside):
        raise DataError(
            f"folder {path.name!r} has folders inside.",
            remedy="Give a folder with files only, or a pyarrow dataset.",
        )
    return inside


def _without_blank_rows(opened: DuckDBSource, columns: Sequence[str]) -> DuckDBSource:
    listed = " OR ".join(f"{DUCKDB.identifier(column)} IS NOT NULL" for column in columns)
    return replace(opened, relation=opened.relation.filter(listed))


def _csv_query(
    names: dict[Path, str],
    columns: Sequence[str],
    separator: str | None = None,
    keep_rejects: bool = False,
) -> str:
    """One SELECT per distinct header, all columns as text.

    Nothing is guessed from the records: a guess turns "01" into 1, or skips rows.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for file, name in names.items():
        header = read_header(first_line(file), file.name, columns, separator)
        groups.setdefault(header, []).append(name)
    listed = ", ".join(DUCKDB.identifier(column) for column in columns)
    parts = []
    for (delimiter, names_there), files in groups.items():
        types = ", ".join(f"{DUCKDB.text(column)}: 'VARCHAR'" for column in names_there)
        parts.append(
            f"SELECT {listed} FROM read_csv([{', '.join(files)}], auto_detect = false, "
            f"header = true, delim = {DUCKDB.text(delimiter)}, quote = '\"', escape = '\"', "
            f"comment = '', strict_mode = true, store_rejects = {str(keep_rejects).lower()}, "
            f"columns = {{{types}}})"
        )
    return " UNION ALL ".join(parts)


def first_line(path: Path) -> str:
    """The first line of a text file in UTF-8, packed or not."""
    return guarded(
        lambda: _first_line(path),
        f"{path.name!r} cannot be read as csv.",
        "Check that you may read it and that it is text in UTF-8, or name its encoding in [data].",
    )


def _first_line(path: Path) -> str:
    with open_text(path, "utf-8-sig", newline=None) as text:
        return str(text.readline(1_000_000)).rstrip("\n")


_PIECE = 1 << 20  # characters at once


def open_text(
    file: Path, encoding: str, *, errors: str = "strict", newline: str | None = ""
) -> Any:
    """A text file, packed or not; its line ends as they are, or made alike by newline = None."""
    opener: Any = gzip.open if file.suffix.lower() == ".gz" else open
    return opener(file, "rt", encoding=encoding, errors=errors, newline=newline)


def in_utf_8(
    files: Sequence[Path], encoding: str, owner: object, newline: str | None = ""
) -> list[Path]:
    """CONFIDENTIAL copies in a folder that only its owner may enter; they go when `owner` does."""
    folder = Path(tempfile.mkdtemp(prefix="congenial-"))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    copies = []
    for number, file in enumerate(files):
        copy = folder / str(number) / file.name.removesuffix(".gz")
        guarded(
            lambda file=file, copy=copy: _copy(file, copy, encoding, newline),  # type: ignore[misc]
            f"{file.name!r} is not written in {encoding}.",
            "Name its encoding in [data]; `congenial data` suggests one.",
        )
        copies.append(copy)
    return copies


def _copy(file: Path, copy: Path, encoding: str, newline: str | None) -> None:
    copy.parent.mkdir()
    with (
        open_text(file, encoding, newline=newline) as read,
        copy.open("w", encoding="utf-8", newline="") as written,
    ):
        while text := read.read(_PIECE):
            written.write(text)


# Two files that belong together: rows, and the units that own them, joined by the unit's key. The
# file of units has one row for each unit: its key, and what all rows of a unit share. A column is
# in one file only. What does not fit is refused without saying which unit it is: a key that is
# missing or named twice among the units, rows whose unit is not there, and, where units are counted
# that have a row, units without rows.

_UNITS = "congenial_units"


def open_joined(
    rows: Path, units: UnitFile, columns: Sequence[str], file_format: FileFormat
) -> DuckDBSource:
    """The rows of one file, each with the columns of its unit from the other."""
    key = units.key
    open_files(units.address, [key], file_format)  # refuses a file without the key
    about = [
        column for column in columns if column != key and _has(units.address, column, file_format)
    ]
    for name in about:
        if _has(rows, name, file_format):
            raise DataError(
                f"column {name!r} is both in the file of rows and in the file of units.",
                remedy="Keep it in one of them; in the file of units if all rows of a unit agree.",
            )
    own = [column for column in columns if column not in about]
    opened = open_files(rows, own, file_format)
    owners = open_files(units.address, [key, *about], file_format)
    assert opened.connection is not None
    opened.connection.register(_UNITS, owners.run(f"SELECT * FROM {owners.name} AS src"))
    _refuse_unmatched(opened, owners, units)
    return _joined(opened, owners, key, about)


def _has(path: Path, column: str, file_format: FileFormat) -> bool:
    """Whether a file has a column; what is wrong otherwise is found when all are opened."""
    try:
        open_files(path, [column], file_format)
    except DataError:
        return False
    return True


def _keys(opened: DuckDBSource, owners: DuckDBSource, key: str) -> tuple[str, str]:
    """The key in both files, as text: files may store it in different types."""
    name = DUCKDB.identifier(key)
    left = DUCKDB.text_form(f"r.{name}", opened.types[key])
    return left, DUCKDB.text_form(f"u.{name}", owners.types[key])


def _refuse_unmatched(opened: DuckDBSource, owners: DuckDBSource, units: UnitFile) -> None:
    left, right = _keys(opened, owners, units.key)
    counts = opened.run(
        f"WITH listed AS (SELECT {right} AS k, COUNT(*) AS n FROM {_UNITS} AS u GROUP BY 1), "
        f"used AS (SELECT DISTINCT {left} AS k FROM {opened.name} AS r) "
        "SELECT COALESCE(MAX(CASE WHEN listed.k IS NULL THEN 0 ELSE listed.n END), 0) AS twice, "
        "COUNT(*) FILTER (WHERE used.k IS NOT NULL AND listed.k IS NULL) AS unknown, "
        "COUNT(*) FILTER (WHERE listed.k IS NOT NULL AND used.k IS NULL) AS empty, "
        f"(SELECT COUNT(*) FROM {_UNITS} AS u WHERE {right} IS NULL) AS missing "
        "FROM listed FULL JOIN used ON listed.k = used.k"
    ).to_pylist()[0]
    reasons = (
        (counts["missing"] > 0, "has rows without a key", "Give every unit its key."),
        (counts["twice"] > 1, "lists a unit twice", "Keep one row for each unit."),
        (
            counts["unknown"] > 0,
            "does not list all units of the file of rows",
            "Add the missing units, or remove their rows.",
        ),
        (
            units.never_empty and counts["empty"] > 0,
            "has units without rows, and units = true counts units that have a row",
            "Remove them from the file of units, or add their rows.",
        ),
    )
    for wrong, what, remedy in reasons:
        if wrong:
            raise DataError(f"the file of units {what} (key {units.key!r}).", remedy=remedy)


def _joined(
    opened: DuckDBSource, owners: DuckDBSource, key: str, about: Sequence[str]
) -> DuckDBSource:
    left, right = _keys(opened, owners, key)
    listed = [f"r.{DUCKDB.identifier(name)}" for name in opened.types]
    listed += [f"u.{DUCKDB.identifier(name)}" for name in about]
    query = (
        f"(SELECT {', '.join(listed)} FROM {opened.name} AS r "
        f"LEFT JOIN {_UNITS} AS u ON {right} = {left})"
    )
    types = opened.types | {name: owners.types[name] for name in about}
    return replace(opened, name=query, types=types)
