"""A ledger in PostgreSQL, for a team: one per schema of a database, named by a URL.

Writers lock the one row of the table `writers`, one at a time and for the length of a transaction,
so nobody comes between the check of the budget and the record. The lock takes the privilege to
update that row, which only roles that write have. Whoever passes it by still cannot fork the chain
of events: the later of the two is refused. The writer of an event is the database user.

The password is read from the URL, or better from ~/.pgpass or PGPASSWORD, and is never repeated: no
message of the driver is shown, since some quote the connection's parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import ceil
from typing import ClassVar

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from congenial.errors import LedgerError
from congenial.ledger.stores.store import First, Store

_SHOWN = ("host", "port", "options", "service")  # parts of a URL's query that hold no secret
_LOCK = 1_129_270_855  # sets this program's advisory locks apart from others'

# `draw` must be on disk before noise is drawn, whatever the server's default; a lock must not
# outlive by hours a machine that vanished from the network.
_WRITE = """
SELECT set_config('lock_timeout', :wait, true),
       CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', true) END,
       set_config('tcp_keepalives_idle', '30', true),
       set_config('tcp_keepalives_interval', '10', true),
       set_config('tcp_keepalives_count', '3', true)
"""
_TAKE_LOCK = "SELECT place FROM writers FOR UPDATE"
# Where that row is not there yet there is no ledger, and two may be starting one.
_LOCK_SCHEMA = f"""
SELECT pg_advisory_xact_lock({_LOCK}, CAST(oid AS integer))
FROM pg_catalog.pg_namespace WHERE nspname = current_schema()
"""
_HAS_ROW = "SELECT to_regclass(format('%I.writers', current_schema())) IS NOT NULL"


class PostgresStore(Store):
    """A ledger's events in the current schema of a PostgreSQL database.

    Needs the extra `postgres` (psycopg 3). Connections and locks are waited for `timeout` seconds.
    """

    FAULTS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "55P03": (
            "the ledger '{where}' was locked by another process for more than {timeout:g} s.",
            "Try again when the other run has ended; nothing was written.",
        ),
        "42501": (
            "the database does not allow this user to do that in the ledger '{where}'.",
            "Ask an owner for a role: `congenial ledger grant LEDGER WHO ROLE`; nothing was "
            "written.",
        ),
        "42704": (
            "the server of '{where}' has no user of that name.",
            "Have it made first (CREATE USER); nothing was granted.",
        ),
        "23": (
            "the ledger '{where}' refused a change to its history.",
            "Events are only ever added, well-formed, one writer at a time; open the ledger again.",
        ),
        "40": (
            "the server of '{where}' ended the transaction in favour of another.",
            "Try again; nothing was written.",
        ),
        "25006": (
            "the server of '{where}' may only be read from (a standby?).",
            "Name the primary server; nothing was written.",
        ),
        "53": (
            "the server of '{where}' is out of room, memory or connections.",
            "Try again when it has some; nothing was written.",
        ),
        "57": (
            "the server of '{where}' interrupted the request.",
            "Try again, after a look at the ledger's pending releases.",
        ),
        "58": (
            "the server of '{where}' failed to read or write.",
            "Check its disk, then the ledger's pending releases.",
        ),
    }

    def __init__(self, url: str, timeout: float) -> None:
        parsed = _parse(url)
        super().__init__(_without_secrets(parsed), timeout)
        try:
            self._engine = sa.create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                poolclass=NullPool,
                # A snapshot is taken after the lock, not when the transaction begins.
                isolation_level="READ COMMITTED",
                hide_parameters=True,
                connect_args={"connect_timeout": max(2, ceil(timeout))},
            )
        except ModuleNotFoundError:
            raise LedgerError(
                "a ledger in PostgreSQL needs the package psycopg.",
                remedy="Install it: pip install 'congenial[postgres]'.",
            ) from None

    def exists(self) -> bool:
        """Whether the current schema has a table of a ledger."""
        with self._faults(), self._begin(write=False) as connection:
            return self._there(connection)

    def create(self, first: First) -> None:
        """Write a new ledger in one transaction, tables included."""
        with self._faults(), self._begin(write=True) as connection:
            if not self._there(connection):
                self._build(connection, first)

    def _there(self, connection: sa.Connection) -> bool:
        if connection.execute(sa.text("SELECT current_schema()")).scalar() is None:
            raise LedgerError(
                f"the schema of the ledger '{self.where}' is not there, or not for this user.",
                remedy="Check the URL's search_path, and ask an owner of the ledger for a role.",
            )
        names = sa.inspect(connection).get_table_names()
        return "ledger" in names or "events" in names

    @contextmanager
    def _begin(self, write: bool) -> Iterator[sa.Connection]:
        with self._engine.connect() as connection, connection.begin():
            if write:
                wait = {"wait": f"{max(1, round(1000 * self.timeout))}ms"}
                connection.execute(sa.text(_WRITE), wait)
                row = connection.execute(sa.text(_HAS_ROW)).scalar_one()
                connection.exec_driver_sql(_TAKE_LOCK if row else _LOCK_SCHEMA)
            yield connection

    def _writer(self, connection: sa.Connection) -> str:
        return str(connection.execute(sa.text("SELECT current_user")).scalar_one())

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            code = getattr(error.orig, "sqlstate", None) or ""
            if error.connection_invalidated:
                raise _lost(self.where) from None
            if not code:
                raise _not_connected(self.where, str(error.orig)) from None
            raise self._fault(code) from None


# The driver gives no code for a refused login, only the server's words.
_LOGIN = (
    "password authentication failed",
    "no password supplied",
    "authentication failed",
    "no pg_hba.conf entry",
)


def _parse(url: str) -> sa.URL:
    """The URL, or an error that does not repeat it: it may hold a password in the wrong place."""
    try:
        parsed = sa.make_url(url)
        if "password" in parsed.query:  # where it belongs it is hidden, also in reprs
            parsed = parsed.set(password=str(parsed.query["password"]))
            parsed = parsed.difference_update_query(["password"])
        odd = "@" in (parsed.host or "")  # part of a password with an @ in it, not a host
    except (ArgumentError, ValueError):
        odd = True
    if odd:
        raise LedgerError(
            "the URL of the ledger cannot be read.",
            remedy="Write postgresql://user@host/database; a password belongs in ~/.pgpass, or "
            "with its special characters as in %40.",
        )
    return parsed


def _without_secrets(url: sa.URL) -> str:
    query = {name: value for name, value in url.query.items() if name in _SHOWN}
    address = sa.URL.create(
        "postgresql", url.username, None, url.host, url.port, url.database, query
    )
    return address.render_as_string(hide_password=False)


def _lost(where: str) -> LedgerError:
    return LedgerError(
        f"the connection to the ledger '{where}' was lost.",
        remedy="Draw nothing. Look at the pending releases before trying again: what was being "
        "written may be recorded or not.",
    )


def _not_connected(where: str, words: str) -> LedgerError:
    """Why there is no connection, without the driver's words."""
    if any(refusal in words for refusal in _LOGIN):
        return LedgerError(
            f"the server of the ledger '{where}' refused the login.",
            remedy="Check the user, and its password in ~/.pgpass or PGPASSWORD.",
        )
    if "does not exist" in words:
        return LedgerError(
            f"the server of the ledger '{where}' knows no such database or user.",
            remedy="Check both names in the URL, or have them made.",
        )
    if "invalid" in words and ("parameter" in words or "option" in words):
        return LedgerError(
            f"the URL of the ledger '{where}' has a parameter that PostgreSQL does not know.",
            remedy="Use those of libpq, such as host, port, sslmode and options.",
        )
    return LedgerError(
        f"the server of the ledger '{where}' cannot be reached, or refused the connection.",
        remedy="Check host and port, and that the server runs; nothing was written.",
    )
