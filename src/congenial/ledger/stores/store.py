"""Storage of a ledger: one table of events to which rows are only ever added.

Every event carries the digest of the one before it, so an edit, a removal or a reordering is
noticed when the ledger is next read. What a chain cannot notice is a history cut off at its end or
replaced by an older copy: note the last digest elsewhere where that matters.

What both databases have in common is here; `store_at` of this folder chooses between them. How each
connects, locks and fails is in sqlite.py and postgres.py, and its tables are in sqlite.sql and
postgresql.sql.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from congenial.errors import LedgerError

if TYPE_CHECKING:
    import sqlalchemy as sa

    from congenial.ledger.stores.figure_files import FigureFiles

POSTGRES = ("postgresql://", "postgres://")
FORMAT = 1
START = "0" * 64  # stands for the digest before the first event

First = Sequence[tuple[str, Mapping[str, Any]]]

_COLUMNS = ("id", "at", "who", "kind", "release", "payload", "previous", "digest")


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
    files: FigureFiles | None = field(default=None, repr=False, compare=False)

    @property
    def payload(self) -> dict[str, Any]:
        """What the event says, as plain data; large figures come from their files."""
        data: dict[str, Any] = json.loads(self.text)
        return data if self.files is None else self.files.restored(data, self.text)

    @property
    def written(self) -> dict[str, Any]:
        """What is written of it, by name; its payload as text."""
        return {name: value for name, value in vars(self).items() if name != "files"}

    @property
    def expected_digest(self) -> str:
        """SHA-256 of everything else in the event, the previous digest included."""
        fields = [self.id, self.at, self.who, self.kind, self.release, self.text, self.previous]
        # `default`: a damaged file may hold bytes where text was
        return hashlib.sha256(json.dumps(fields, default=repr).encode()).hexdigest()


class Log:
    """The history inside one write transaction: what is there, and a way to add to it."""

    def __init__(
        self,
        connection: sa.Connection,
        events: Sequence[Event],
        who: str,
        files: FigureFiles | None = None,
    ) -> None:
        self._connection, self._files = connection, files
        self._events = list(events)
        self.who = who
        self.check: Callable[[Event], None] = lambda _: None  # raises for what must not be written

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, those of this transaction included."""
        return tuple(self._events)

    def append(self, kind: str, release: str | None, payload: Mapping[str, Any]) -> None:
        """Add one event at the end; it counts once the transaction is committed."""
        payload = payload if self._files is None else self._files.put_away(payload)
        bare = Event(
            id=len(self._events) + 1,
            at=datetime.now(UTC).isoformat(timespec="microseconds"),
            who=self.who,
            kind=kind,
            release=release,
            # Keys keep their order: the order of a schema's attributes means something.
            text=json.dumps(payload, separators=(",", ":")),
            previous=self._events[-1].digest if self._events else START,
            digest="",
            files=self._files,
        )
        event = Event(**(vars(bare) | {"digest": bare.expected_digest}))
        self.check(event)
        row = event.written
        row["payload"] = row.pop("text")
        self._connection.execute(_table("events", *_COLUMNS).insert().values(row))
        self._events.append(event)


class Store(ABC):
    """A ledger's events in a database; `where` names it without any password.

    `timeout` is how many seconds to wait for another process's write. Connections live for one
    transaction, so that nothing is shared with a forked process and no lock outlives a call.
    """

    FAULTS: ClassVar[Mapping[str, tuple[str, str]]]  # how a code begins -> what, remedy

    def __init__(self, where: str, timeout: float) -> None:
        self.where = where
        self.timeout = timeout
        self.files: FigureFiles | None = None  # for large figures; None: they stay in their events

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is anything at the place."""

    @abstractmethod
    def create(self, first: First) -> None:
        """Write a new ledger that starts with the events `first`: whole or not there.

        Of two processes that create it one wins, and the other finds the winner's.
        """

    @abstractmethod
    def _begin(self, write: bool) -> AbstractContextManager[sa.Connection]:
        """A transaction; one that writes has every other writer wait. An exception undoes it."""

    @abstractmethod
    def _writer(self, connection: sa.Connection) -> str:
        """Who writes."""

    @abstractmethod
    def _faults(self) -> AbstractContextManager[None]:
        """Turn faults of the database into LedgerErrors without their tracebacks."""

    def _fault(self, code: str) -> LedgerError:
        """What a fault of the database means, by its code."""
        for prefix, (what, remedy) in self.FAULTS.items():
            if code.startswith(prefix):
                return LedgerError(
                    what.format(where=self.where, timeout=self.timeout), remedy=remedy
                )
        return not_a_ledger(self.where)

    @contextmanager
    def patient(self, times: float) -> Iterator[None]:
        """Within it, another process's write is waited for so many times longer."""
        usual = self.timeout
        self.timeout = usual * times
        try:
            yield
        finally:
            self.timeout = usual

    def check(self) -> None:
        """LedgerError unless this is a ledger of the format this software reads and writes."""
        with self._faults(), self._begin(write=False) as connection:
            self._refuse_other(connection)

    def read(self) -> tuple[Event, ...]:
        """All events in order, after checking the chain of digests."""
        with self._faults(), self._begin(write=False) as connection:
            return self._events(connection)

    def writer(self) -> str:
        """Who writes here."""
        with self._faults(), self._begin(write=False) as connection:
            return self._writer(connection)

    @contextmanager
    def writing(self) -> Iterator[Log]:
        """One write transaction: nobody else writes until it ends; an exception undoes it."""
        with self._faults(), self._begin(write=True) as connection:
            yield self._log(connection)

    def _log(self, connection: sa.Connection) -> Log:
        events, who = self._events(connection), self._writer(connection)
        return Log(connection, events, who, self.files)

    def _build(self, connection: sa.Connection, first: First) -> None:
        import sqlalchemy as sa

        file = Path(__file__).with_name(f"{connection.dialect.name}.sql")
        for paragraph in file.read_text().split("\n\n"):
            if not all(line.startswith("--") for line in paragraph.splitlines()):
                connection.execute(sa.text(paragraph))
        connection.execute(_table("ledger", "format").insert().values(format=FORMAT))
        log = Log(connection, (), self._writer(connection))
        for kind, payload in first:
            log.append(kind, None, payload)

    def _refuse_other(self, connection: sa.Connection) -> None:
        """LedgerError for anything but a ledger of this format."""
        import sqlalchemy as sa

        there = sa.inspect(connection)
        if not {"ledger", "events"} <= set(there.get_table_names()):
            raise not_a_ledger(self.where)
        columns = {column["name"] for column in there.get_columns("ledger")}
        if "version" in columns:
            raise LedgerError(
                f"'{self.where}' was written by a version of congenial from before the first "
                "publication, which this one does not read.",
                remedy="Keep the file, and name another place for a new ledger.",
            )
        if "format" not in columns:
            raise not_a_ledger(self.where)
        number = connection.execute(_table("ledger", "format").select()).scalar()
        if not isinstance(number, int):
            raise not_a_ledger(self.where)
        if number != FORMAT:
            raise LedgerError(
                f"'{self.where}' is a ledger in format {number}; this version of congenial reads "
                f"format {FORMAT}.",
                remedy="Open it with the version that wrote it; it was not changed.",
            )

    def _events(self, connection: sa.Connection) -> tuple[Event, ...]:
        table = _table("events", *_COLUMNS)
        rows = connection.execute(table.select().order_by(table.c.id)).all()
        events = tuple(Event(*(*row, self.files)) for row in rows)
        previous = START
        for place, event in enumerate(events, start=1):
            if (event.id, event.previous, event.digest) != (place, previous, event.expected_digest):
                raise LedgerError(
                    f"the history in '{self.where}' was altered at event {place}: the chain of "
                    "digests is broken.",
                    remedy="Restore the last good copy, and release nothing until then.",
                )
            if self.files is not None:
                self.files.check(event.text)
            previous = event.digest
        if not events:
            raise not_a_ledger(self.where)
        return events


@cache
def _table(name: str, *columns: str) -> sa.TableClause:
    """A table by its name and columns. SQLAlchemy is loaded where a ledger is read, not before."""
    import sqlalchemy as sa

    return sa.table(name, *(sa.column(column) for column in columns))


def not_a_ledger(where: str) -> LedgerError:
    """What is there is something else, or damaged."""
    return LedgerError(
        f"'{where}' is not a ledger of congenial, or is damaged.",
        remedy="Name the ledger itself, or restore the last good copy.",
    )
