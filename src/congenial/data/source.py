"""Where records come from: every source becomes one DuckDB relation that can be read many times.

Errors of the readers may quote a record, so none of them is shown or chained: `guarded` replaces
them by a DataError raised outside the handler.
"""

from __future__ import annotations

import csv
import glob
import gzip
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.dataset

from congenial.data.schema import closest
from congenial.data.sql import DUCKDB, ColumnKind, ColumnType
from congenial.errors import DataError

T = TypeVar("T")

KINDS_OF_FILE = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
DELIMITERS = ",;\t|"

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


@dataclass(frozen=True)
class Source:
    """A relation with the needed columns; `types` says how each is stored."""

    relation: duckdb.DuckDBPyRelation
    types: dict[str, ColumnType]
    # Ours if we made it: it must outlive the relation, and its folder goes when it does.
    connection: duckdb.DuckDBPyConnection | None = None


def guarded(action: Callable[[], T], what: str, remedy: str = "") -> T:
    """Run `action`; any failure becomes a DataError that says `what` and nothing from the data."""
    try:
        return action()
    except DataError:
        raise
    except Exception:  # noqa: BLE001, S110 - any reader's error may quote a record
        pass
    raise DataError(what, remedy=remedy)


def open_source(source: object, columns: Sequence[str]) -> Source:
    """Open any supported source and keep `columns`; DataError if one is absent."""
    if isinstance(source, (str, Path)):
        return _from_path(Path(source), columns)
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


def check_columns(wanted: Sequence[str], found: Sequence[object]) -> None:
    """Raise DataError naming the wanted columns that are not found, or are there twice."""
    names = [str(name) for name in found]
    absent = [name for name in wanted if name not in names]
    if absent:
        listed = ", ".join(repr(name) for name in absent)
        raise DataError(f"the data have no column {listed}.", remedy=_absent(absent, wanted, names))
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise DataError(f"the data have column {twice[0]!r} twice.", remedy="Rename one of them.")


def _absent(absent: Sequence[str], wanted: Sequence[str], names: Sequence[str]) -> str:
    """What to do about absent columns.

    A CSV file without a header offers its first record as names, so a found name is shown only
    when others are right, or when it is the wanted one but for case.
    """
    close = closest(absent[0], names)
    trusted = len(absent) < len(wanted) or (close or "").casefold() == absent[0].casefold()
    if close is not None and trusted:
        return f"Did you mean {close!r}?"
    return "Check the names of the columns, and that a CSV file has a header row."


def _from_relation(relation: duckdb.DuckDBPyRelation, columns: Sequence[str]) -> Source:
    unreadable = "the DuckDB relation cannot be read."
    remedy = "Keep its connection open."
    check_columns(columns, guarded(lambda: relation.columns, unreadable, remedy))
    listed = ", ".join(DUCKDB.identifier(column) for column in columns)
    kept = guarded(lambda: relation.project(listed), unreadable, remedy)
    types = {c: _column_type(t) for c, t in zip(columns, kept.types, strict=True)}
    return Source(kept, types)


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
        remedy="Give a CSV or Parquet path or folder, an Arrow, pandas or Polars frame, a DuckDB "
        "relation, or (DuckDB connection, table name).",
    )


_BROKEN = "the frame cannot be read."


def _from_pandas(frame: Any, columns: Sequence[str]) -> pa.Table:
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


def _from_polars(frame: Any, columns: Sequence[str]) -> pa.Table:
    names = guarded(lambda: frame.collect_schema().names(), _BROKEN)
    check_columns(columns, names)
    # A lazy frame runs once, on the needed columns only; those are kept in memory.
    return guarded(lambda: frame.lazy().select(list(columns)).collect().to_arrow(), _BROKEN)


def _from_arrow(data: Any, columns: Sequence[str]) -> Source:
    connection = _connect()
    relation = guarded(lambda: connection.from_arrow(data), _BROKEN)
    return replace(_from_relation(relation, columns), connection=connection)


# Files ---------------------------------------------------------------------------------------


def _from_path(path: Path, columns: Sequence[str]) -> Source:
    files = _files(path)
    kind = _kind_of_file(files[0])
    if any(_kind_of_file(file) != kind for file in files):
        raise DataError(
            f"folder {path.name!r} mixes CSV and Parquet files.",
            remedy="Keep one kind per folder.",
        )
    # A name such as "a[1].csv" is a file, not a pattern.
    names = {file: DUCKDB.text(glob.escape(str(file))) for file in files}
    if kind == "parquet":
        query = f"SELECT * FROM read_parquet([{', '.join(names.values())}], union_by_name = true, "
        query += "hive_partitioning = false)"
    else:
        query = _csv_query(names, columns)
    connection = _connect()
    relation = guarded(
        lambda: connection.sql(query),
        f"{path.name!r} cannot be read as {kind}.",
        "Check that every file is complete and of the kind its name says.",
    )
    opened = replace(_from_relation(relation, columns), connection=connection)
    if kind == "csv":
        opened = replace(opened, types=dict.fromkeys(columns, ColumnType("written")))
    return opened


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise DataError(f"there is no file or folder {str(path)!r}.", remedy="Check the path.")
    if not path.is_dir():
        return [path]
    # Names such as _SUCCESS and .part.crc are other programs' notes.
    inside = sorted(entry for entry in path.iterdir() if entry.name[0] not in "._")
    if not inside:
        raise DataError(f"folder {path.name!r} holds no files.", remedy="Check the path.")
    if any(entry.is_dir() for entry in inside):
        raise DataError(
            f"folder {path.name!r} holds folders.",
            remedy="Give one flat folder, or a pyarrow dataset.",
        )
    return inside


def _kind_of_file(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    )
    if suffix not in KINDS_OF_FILE:
        raise DataError(
            f"{path.name!r} is neither CSV nor Parquet by its name.",
            remedy="Use a name ending in .csv, .tsv, .csv.gz or .parquet.",
        )
    return KINDS_OF_FILE[suffix]


def _csv_query(names: dict[Path, str], columns: Sequence[str]) -> str:
    """One SELECT per distinct header, all columns as text.

    Nothing is guessed from the records: a guess turns "01" into 1, or skips rows.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for file, name in names.items():
        groups.setdefault(_header(file, columns), []).append(name)
    listed = ", ".join(DUCKDB.identifier(column) for column in columns)
    parts = []
    for (delimiter, header), files in groups.items():
        types = ", ".join(f"{DUCKDB.text(column)}: 'VARCHAR'" for column in header)
        parts.append(
            f"SELECT {listed} FROM read_csv([{', '.join(files)}], auto_detect = false, "
            f"header = true, delim = {DUCKDB.text(delimiter)}, quote = '\"', escape = '\"', "
            f"comment = '', strict_mode = true, columns = {{{types}}})"
        )
    return " UNION ALL ".join(parts)


def _header(path: Path, columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    line = guarded(
        lambda: _first_line(path),
        f"{path.name!r} cannot be read as csv.",
        "Check that it is a text file in UTF-8 that you may read.",
    )
    if not line.strip():
        raise DataError(f"{path.name!r} is empty.", remedy="Give a header row and records.")
    readings = [(d, tuple(next(csv.reader([line], delimiter=d)))) for d in DELIMITERS]
    best = max(readings, key=lambda reading: (len(set(columns) & set(reading[1])), len(reading[1])))
    check_columns(columns, best[1])
    folded = [name.casefold() for name in best[1]]
    if len(set(folded)) != len(folded) or not all(best[1]):
        raise DataError(
            f"{path.name!r} has an unnamed column, or two names that differ at most in case.",
            remedy="Name every column in the header.",
        )
    return best


def _first_line(path: Path) -> str:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig") as text:
        return str(text.readline(1_000_000)).rstrip("\n")
