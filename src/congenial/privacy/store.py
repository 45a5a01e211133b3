"""Storage of a ledger: one table of events to which rows are only ever added.

Every event carries the digest of the one before it, so an edit, a removal or a reordering is
noticed when the ledger is next read. What a chain cannot notice is a history cut off at its end or
replaced by an older copy: note the last digest elsewhere where that matters.

The statements are portable SQL (SQLAlchemy Core). What is particular to SQLite (opening a file, the
write lock, triggers, fault codes) is in the functions marked so.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from congenial.errors import LedgerError

VERSION = 1
START = "0" * 64  # stands for the digest before the first event

_METADATA = sa.MetaData()
_FORMAT = sa.Table("ledger", _METADATA, sa.Column("version", sa.Integer, nullable=False))
_EVENTS = sa.Table(
    "events",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("release", sa.Text),
    sa.Column("payload", sa.Text, nullable=False),  # JSON text; the digest is of the text
    sa.Column("previous", sa.Text, nullable=False, unique=True),  # the chain cannot fork
    sa.Column("digest", sa.Text, nullable=False, unique=True),
)

# INSERT OR REPLACE removes a row without firing a DELETE trigger, hence the third one.
_TRIGGERS = tuple(
    f"CREATE TRIGGER {name} BEFORE {what} BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
    for name, what in (
        ("events_are_not_changed", "UPDATE ON events"),
        ("events_are_not_removed", "DELETE ON events"),
        (
            "events_are_not_replaced",
            "INSERT ON events WHEN NEW.id <> (SELECT COALESCE(MAX(id), 0) + 1 FROM events)",
        ),
    )
)


@dataclass(frozen=True)
class Event:
    """One line of the history; `at` is the writer's clock in UTC, but order is by `id` alone."""

    id: int
    at: str
    who: str
    kind: str
    release: str | None
    text: str
    previous: str
    digest: str

    @property
    def payload(self) -> dict[str, Any]:
        """What the event says, as plain data."""
        data: dict[str, Any] = json.loads(self.text)
        return data

    @property
    def expected_digest(self) -> str:
        """SHA-256 of everything else in the event, the previous digest included."""
        told = [self.id, self.at, self.who, self.kind, self.release, self.text, self.previous]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


class Log:
    """The history inside one write transaction: what is there, and a way to add to it."""

    def __init__(self, connection: sa.Connection, events: Sequence[Event], who: str) -> None:
        self._connection = connection
        self._events = list(events)
        self._who = who

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, those of this transaction included."""
        return tuple(self._events)

    def append(self, kind: str, release: str | None, payload: Mapping[str, Any]) -> None:
        """Add one event at the end; it counts once the transaction is committed."""
        bare = Event(
            id=len(self._events) + 1,
            at=datetime.now(UTC).isoformat(timespec="microseconds"),
            who=self._who,
            kind=kind,
            release=release,
            # Keys keep their order: the order of a schema's attributes means something.
            text=json.dumps(payload, separators=(",", ":")),
            previous=self._events[-1].digest if self._events else START,
            digest="",
        )
        event = Event(**(vars(bare) | {"digest": bare.expected_digest}))
        row = dict(vars(event))
        row["payload"] = row.pop("text")
        self._connection.execute(_EVENTS.insert().values(row))
        self._events.append(event)


class Store:
    """A ledger's events in one SQLite file.

    `timeout` is how many seconds to wait for another process's write. Connections live for one
    transaction, so that nothing is shared with a forked process and no lock outlives a call.
    """

    def __init__(self, path: Path, timeout: float, who: str) -> None:
        self.path = path
        self.who = who
        self._timeout = timeout
        self._engine = sa.create_engine("sqlite://", creator=self._connect, poolclass=NullPool)
        sa.event.listen(self._engine, "begin", _begin)

    @classmethod
    def create(
        cls,
        path: Path,
        timeout: float,
        who: str,
        first: Sequence[tuple[str, Mapping[str, Any]]],
    ) -> None:
        """Write a new ledger that starts with the events `first`.

        It is built under a temporary name and then linked to its own: a ledger is whole or not
        there. Of two processes that create it one wins, and the other opens the winner's.
        """
        draft = path.with_name(f".{path.name}.{uuid4().hex}.new")
        with _faults(path, timeout):
            try:
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                cls(draft, timeout, who)._build(first)
                _give_name(draft, path)
            finally:
                draft.unlink(missing_ok=True)

    @classmethod
    def open(cls, path: Path, timeout: float, who: str) -> Store:
        """Open an existing ledger; LedgerError when the file is something else or is damaged."""
        store = cls(path, timeout, who)
        with _faults(path, timeout):
            if path.stat().st_size == 0:
                raise LedgerError(
                    f"'{path}' is an empty file, not a ledger.",
                    remedy="Restore a copy; remove the file only if it never held a ledger.",
                )
            with store._engine.begin() as connection:
                store._check_format(connection)
        return store

    def read(self) -> tuple[Event, ...]:
        """All events in order, after checking the chain of digests."""
        with _faults(self.path, self._timeout), self._engine.begin() as connection:
            return self._events(connection)

    @contextmanager
    def writing(self) -> Iterator[Log]:
        """One write transaction: nobody else writes until it ends; an exception undoes it."""
        with (
            _faults(self.path, self._timeout),
            self._engine.connect().execution_options(write=True) as connection,
            connection.begin(),
        ):
            yield Log(connection, self._events(connection), self.who)

    def _build(self, first: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        with self._engine.connect().execution_options(write=True) as connection, connection.begin():
            _METADATA.create_all(connection)
            for trigger in _TRIGGERS:
                connection.exec_driver_sql(trigger)
            connection.execute(_FORMAT.insert().values(version=VERSION))
            log = Log(connection, (), self.who)
            for kind, payload in first:
                log.append(kind, None, payload)

    def _check_format(self, connection: sa.Connection) -> None:
        # SQLite: a file cut short in an index would still read well, and fail at the next write.
        if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() != "ok":
            raise _not_a_ledger(self.path)
        names = set(sa.inspect(connection).get_table_names())
        version = None
        if names >= {"ledger", "events"}:
            version = connection.execute(sa.select(_FORMAT.c.version)).scalar()
        if not isinstance(version, int):
            raise _not_a_ledger(self.path)
        if version > VERSION:
            raise LedgerError(
                f"'{self.path}' is a ledger of version {version}; this software reads version "
                f"{VERSION}.",
                remedy="Upgrade congenial; the ledger was not touched.",
            )

    def _events(self, connection: sa.Connection) -> tuple[Event, ...]:
        rows = connection.execute(sa.select(_EVENTS).order_by(_EVENTS.c.id)).all()
        events = tuple(Event(*row) for row in rows)
        previous = START
        for place, event in enumerate(events, start=1):
            if (event.id, event.previous, event.digest) != (place, previous, event.expected_digest):
                raise LedgerError(
                    f"the history in '{self.path}' was altered at event {place}: the chain of "
                    "digests is broken.",
                    remedy="Restore the last good copy, and release nothing until then.",
                )
            previous = event.digest
        if not events:
            raise _not_a_ledger(self.path)
        return events

    def _connect(self) -> sqlite3.Connection:  # SQLite
        # mode=rw: a ledger that vanished is a fault, never a reason to start an empty one.
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,  # BEGIN and COMMIT are ours
        )
        # The rollback journal (SQLite's default) rather than WAL: the ledger stays one file that
        # can be copied whole, and works in shared folders, where WAL does not. After kill -9 the
        # next reader finds the journal and undoes the unfinished transaction. EXTRA also syncs the
        # folder when the journal is removed: otherwise a power cut could bring the journal back
        # and undo a committed `draw`.
        connection.execute("PRAGMA synchronous = EXTRA")
        return connection


def _begin(connection: sa.Connection) -> None:  # SQLite
    """Take the write lock where a write begins: a later upgrade could lose a race or deadlock."""
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _give_name(draft: Path, path: Path) -> None:
    """Name the finished file without ever replacing one; losing a race is fine."""
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return
    except OSError:  # a file system without links: claim the name, then move onto the claim
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
        draft.replace(path)


def _not_a_ledger(path: Path) -> LedgerError:
    return LedgerError(
        f"'{path}' is not a ledger of congenial, or is damaged.",
        remedy="Name the ledger's file, or restore the last good copy.",
    )


@contextmanager
def _faults(path: Path, timeout: float) -> Iterator[None]:
    """Turn faults of files and of the database into LedgerErrors without their tracebacks."""
    try:
        yield
    except DBAPIError as error:
        raise _fault(path, timeout, getattr(error.orig, "sqlite_errorname", "")) from None
    except sqlite3.Error as error:
        raise _fault(path, timeout, getattr(error, "sqlite_errorname", "")) from None
    except OSError as error:
        raise LedgerError(
            f"the ledger '{path}' cannot be reached ({error.strerror or 'unknown fault'}).",
            remedy="Check that the folder exists, may be written to, and has room.",
        ) from None


def _fault(path: Path, timeout: float, code: str) -> LedgerError:  # SQLite
    told = {
        "SQLITE_BUSY": (
            f"the ledger '{path}' was locked by another process for more than {timeout:g} s.",
            "Try again when the other run has ended; nothing was written.",
        ),
        "SQLITE_CANTOPEN": (
            f"the ledger '{path}' cannot be reached.",
            "Check that the folder exists and may be read and written.",
        ),
        "SQLITE_READONLY": (
            f"the ledger '{path}' may not be written to.",
            "Ask for write access to the file and its folder; nothing was written.",
        ),
        "SQLITE_FULL": (
            f"the disk of the ledger '{path}' is full.",
            "Make room and try again; nothing was written.",
        ),
        "SQLITE_IOERR": (
            f"reading or writing the ledger '{path}' failed.",
            "Check the disk, then the ledger's pending releases.",
        ),
        "SQLITE_CONSTRAINT": (
            f"the ledger '{path}' refused a change to its history.",
            "Events are only ever added; open the ledger again.",
        ),
    }
    told["SQLITE_LOCKED"] = told["SQLITE_BUSY"]
    told["SQLITE_PERM"] = told["SQLITE_READONLY"]
    for prefix, (what, remedy) in told.items():
        if code.startswith(prefix):
            return LedgerError(what, remedy=remedy)
    return _not_a_ledger(path)
