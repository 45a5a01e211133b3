"""PostgreSQL by URL: the GROUP BY runs in the server, cells come back (extra `postgres`).

    postgresql://user@host:5432/database?table=people        (or table=schema.people)

The password comes from PGPASSWORD, from ~/.pgpass or from the URL, and is never shown. Other libpq
settings (sslmode, ...) may follow in the URL. Everything read from one opened source is one
snapshot: a single read-only transaction, so that the unit check and the counts see the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pyarrow as pa

from congenial.data.source import Source, check_columns, guarded
from congenial.data.sql import POSTGRES, ColumnKind, ColumnType, Dialect
from congenial.errors import DataError

_KINDS: dict[str, ColumnKind] = {
    **dict.fromkeys(("int2", "int4", "int8"), "whole"),
    "numeric": "decimal",
    "float4": "float",
    "float8": "double",
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "citext", "char"), "text"),
    "bool": "boolean",
    **dict.fromkeys(("date", "time", "timetz", "timestamp", "timestamptz"), "date"),
}
# A numeric declared without limits; one declared with them has at most this many decimals.
_MOST_DECIMALS = 1000
_TIMEOUT = "10"  # seconds to connect, where neither the URL nor PGCONNECT_TIMEOUT says otherwise
_FORM = "Write postgresql://user@host/database?table=people."


@dataclass(frozen=True)
class PostgresSource(Source):
    """A table or view in a server, read in one transaction."""

    connection: Any
    name: str
    types: dict[str, ColumnType]

    dialect: ClassVar[Dialect] = POSTGRES

    def run(self, query: str) -> Any:
        """The result of a query, fetched to the end."""
        try:
            result = _execute(self.connection, query)
            columns = list(zip(*result.fetchall(), strict=True)) or [()] * len(result.keys())
            return pa.table(dict(zip(result.keys(), map(pa.array, columns), strict=True)))
        except Exception as error:  # noqa: BLE001 - the server's message may quote a record
            lost = bool(getattr(error, "connection_invalidated", False))
        if lost:
            raise DataError(
                "the connection to PostgreSQL was lost; nothing was counted.",
                remedy="Run the command again once the server is back.",
            )
        raise DataError(
            "PostgreSQL could not finish the query; nothing was counted.",
            remedy="See the server's log for the reason.",
        )

    def under(self, name: str, types: Mapping[str, ColumnType]) -> PostgresSource:
        """The same records under another name."""
        return replace(self, name=name, types=dict(types))

    def close(self) -> None:
        """End the transaction and the connection."""
        guarded(self.connection.close, "the connection to PostgreSQL cannot be closed.")


def open_postgres(url: str, columns: Sequence[str]) -> PostgresSource:
    """Connect, and check that the table is there and has the columns."""
    try:
        import psycopg  # noqa: F401
        from sqlalchemy.engine import make_url
    except ImportError:
        missing = True
    else:
        missing = False
    if missing:
        raise DataError(
            "reading PostgreSQL needs the extra 'postgres'.",
            remedy="Run pip install 'congenial[postgres]'.",
        )
    parsed = guarded(lambda: make_url(url), "the address of the database cannot be read.", _FORM)
    table = parsed.query.get("table")
    if not isinstance(table, str) or not all(table.split(".")) or table.count(".") > 1:
        raise DataError("the address of the database does not name one table.", remedy=_FORM)
    name = ".".join(POSTGRES.identifier(part) for part in table.split("."))
    connection = _connect(parsed.difference_update_query(["table"]))
    try:
        return PostgresSource(connection, name, _types(connection, name, table, columns))
    except DataError:
        connection.close()
        raise


def _connect(url: Any) -> Any:
    import os

    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    has_timeout = "connect_timeout" in url.query or "PGCONNECT_TIMEOUT" in os.environ
    settings = {} if has_timeout else {"connect_timeout": _TIMEOUT}
    url = url.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args=settings)
        connection = engine.connect().execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        # What the text forms and the quoting of sql.py rely on; local to the transaction.
        for setting in ("standard_conforming_strings = on", "DateStyle = ISO", "TimeZone = 'UTC'"):
            _execute(connection, f"SET LOCAL {setting}")
        return connection
    except Exception as error:  # noqa: BLE001 - libpq's message may repeat parts of the address
        refused = "authentication failed" in str(error) or "no password supplied" in str(error)
    where = f"PostgreSQL at {url.host or url.query.get('host') or 'the local socket'!r}"
    if refused:
        raise DataError(
            f"{where} did not accept the user or the password.",
            remedy="Set PGPASSWORD or ~/.pgpass for this user, and check the user's name.",
        )
    raise DataError(
        f"{where} cannot be reached, or has no such database.",
        remedy="Check host, port, database and network, and that the server runs.",
    )


def _execute(connection: Any, query: str) -> Any:
    # Without parameters a percent sign in a label stays a percent sign.
    return connection.exec_driver_sql(query, execution_options={"no_parameters": True})


def _types(connection: Any, name: str, table: str, columns: Sequence[str]) -> dict[str, ColumnType]:
    """How each column is stored, from an empty result: that reads no record."""

    def look() -> tuple[Any, dict[int, tuple[str, str]]]:
        described = _execute(connection, f"SELECT * FROM {name} LIMIT 0").cursor.description
        codes = ", ".join(sorted({str(int(column.type_code)) for column in described}))
        rows = _execute(
            connection, f"SELECT oid, typname, typtype FROM pg_type WHERE oid IN ({codes})"
        )
        return described, {int(oid): (kind, sort) for oid, kind, sort in rows}

    described, kinds = guarded(
        look,
        f"the database has no table {table!r} that this user may read.",
        "Check its name, its schema (table=schema.people) and the user's rights.",
    )
    check_columns(columns, [column.name for column in described])
    columns_there = {column.name: column for column in described}
    return {
        name: _column_type(*kinds[int(columns_there[name].type_code)], columns_there[name].scale)
        for name in columns
    }


def _column_type(name: str, sort: str, scale: int | None) -> ColumnType:
    if sort == "e":  # an enumeration
        return ColumnType("text")
    kind = _KINDS.get(name, "nested")
    if kind == "decimal":
        return ColumnType(kind, _MOST_DECIMALS if scale is None else max(0, scale))
    return ColumnType(kind)
