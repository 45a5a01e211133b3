"""Where records are counted: DuckDB, PostgreSQL, Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from congenial.data.derive import derived, needed, used
from congenial.data.source import (
    POSTGRES_SCHEMES,
    FileFormat,
    PlannedSource,
    Source,
    UnitFile,
    check_format,
    on_spark,
    refuse_unconfirmed,
)
from congenial.errors import DataError


def open_source(source: object, columns: Sequence[str]) -> Source:
    """Open any supported source and keep `columns`; DataError if one is absent."""
    if isinstance(source, PlannedSource):
        return _open_planned(source, columns)
    if isinstance(source, str) and source.startswith(POSTGRES_SCHEMES):
        from congenial.data.engines.postgres_source import open_postgres

        return open_postgres(source, columns)
    if on_spark(source):
        from congenial.data.engines.spark_source import open_spark

        return open_spark(source, columns)
    from congenial.data.engines.duckdb_source import open_duckdb

    return open_duckdb(source, columns)


def _open_planned(source: PlannedSource, columns: Sequence[str]) -> Source:
    """The records as a plan says they are read, with what it derives from them."""
    if not source.derivations:
        return _open_read(source, columns)
    derivations = used(columns, source.derivations)
    opened = _open_read(source, needed(columns, derivations))
    try:
        name, types = derived(opened.name, opened.types, derivations, opened.dialect)
    except DataError:
        opened.close()
        raise
    return opened.under(name, types) if derivations else opened


def _open_read(source: PlannedSource, columns: Sequence[str]) -> Source:
    if source.units is not None:
        return _open_joined(source, source.units, columns)
    check_format(source)
    if isinstance(source.address, str) and source.address.startswith(POSTGRES_SCHEMES):
        refuse_unconfirmed(source.address)
    if source.file_format == FileFormat() or not isinstance(source.address, Path):
        return open_source(source.address, columns)
    from congenial.data.engines.duckdb_source import open_files

    return open_files(source.address, columns, source.file_format)


def _open_joined(source: PlannedSource, units: UnitFile, columns: Sequence[str]) -> Source:
    if not isinstance(source.address, Path):
        raise DataError(
            "a file of units is joined to a file of rows, not to a database.",
            remedy="Join both in the database, as a view, and name that.",
        )
    from congenial.data.engines.duckdb_source import open_joined

    return open_joined(source.address, units, columns, source.file_format)
