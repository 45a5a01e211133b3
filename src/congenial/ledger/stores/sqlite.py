"""A ledger in a SQLite file: for one machine, or a shared folder; it can be copied whole, with the
folder of its large figures beside it.
"""

from __future__ import annotations

import getpass
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote
from uuid import uuid4

from congenial.data.durable_files import name_new
from congenial.errors import LedgerError
from congenial.ledger.stores.figure_files import FigureFiles
from congenial.ledger.stores.store import First, Store, not_a_ledger

if TYPE_CHECKING:
    import sqlalchemy as sa


_LOCKED = (
    "the ledger '{where}' was locked by another process for more than {timeout:g} s.",
    "Try again when the other run has ended; nothing was written.",
)
_READ_ONLY = (
    "the ledger '{where}' may not be written to.",
    "Ask for write access to the file and its folder; nothing was written.",
)


class SqliteStore(Store):
    """A ledger's events in one SQLite file, written by `who` (default: the system's user)."""

    FAULTS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "SQLITE_BUSY": _LOCKED,
        "SQLITE_LOCKED": _LOCKED,
        "SQLITE_READONLY": _READ_ONLY,
        "SQLITE_PERM": _READ_ONLY,
        "SQLITE_CANTOPEN": (
            "the ledger '{where}' cannot be reached.",
            "Check that the folder exists and may be read and written.",
        ),
        "SQLITE_FULL": (
            "the disk of the ledger '{where}' is full.",
            "Make room and try again; nothing was written.",
        ),
        "SQLITE_IOERR": (
            "reading or writing the ledger '{where}' failed.",
            "Check the disk, then the ledger's pending releases.",
        ),
        "SQLITE_CONSTRAINT": (
            "the ledger '{where}' refused a change to its history.",
            "Events are only ever added, as roles allow; open the ledger again.",
        ),
    }

    def __init__(self, path: Path, timeout: float, who: str | None = None) -> None:
        super().__init__(str(path), timeout)
        self.path = path
        self.who = who or _user()
        self.files = FigureFiles(path.with_name(f"{path.name}.figures"))

    @cached_property
    def _engine(self) -> sa.Engine:
        """Made when it is first read: whether a file exists is asked without SQLAlchemy."""
        import sqlalchemy as sa

        return sa.create_engine("sqlite://", creator=self._connect, poolclass=sa.pool.NullPool)

    def exists(self) -> bool:
        """Whether there is anything at the place."""
        try:
            return self.path.exists()
        except OSError:
            raise LedgerError(
                f"the ledger '{self.where}' cannot be reached.",
                remedy="Check access to its folder.",
            ) from None

    def create(self, first: First) -> None:
        """Write a new ledger under a temporary name, then link it to its own."""
        with self._faults():
            draft = self.path.with_name(f".{self.path.name}.{uuid4().hex}.new")
            store = SqliteStore(draft, self.timeout, self.who)
            try:
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                with store._begin(write=True) as connection:
                    store._build(connection, first)
                with suppress(FileExistsError):  # another process has started the ledger
                    name_new(draft, self.path)
            finally:
                draft.unlink(missing_ok=True)

    def _refuse_other(self, connection: sa.Connection) -> None:
        if self.path.stat().st_size == 0:
            raise LedgerError(
                f"'{self.where}' is an empty file, not a ledger.",
                remedy="Restore a copy; remove the file only if it never held a ledger.",
            )
        # A file cut short in an index would still read well, and fail at the next write.
        if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() != "ok":
            raise not_a_ledger(self.where)
        super()._refuse_other(connection)

    def _connect(self) -> sqlite3.Connection:
        # mode=rw: a ledger that vanished is a fault, never a reason to start an empty one.
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True,
            timeout=self.timeout,
            isolation_level=None,  # BEGIN and COMMIT are ours
        )
        # The rollback journal (SQLite's default) rather than WAL: the ledger stays one file that
        # can be copied whole, and works in shared folders, where WAL does not. After kill -9 the
        # next reader finds the journal and undoes the unfinished transaction. EXTRA also syncs the
        # folder when the journal is removed: otherwise a power cut could bring the journal back
        # and undo a committed `draw`.
        connection.execute("PRAGMA synchronous = EXTRA")
        return connection

    @contextmanager
    def _begin(self, write: bool) -> Iterator[sa.Connection]:
        with self._engine.connect() as connection, connection.begin():
            # The write lock is taken where a write begins: a later upgrade could lose a race.
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
            yield connection

    def _writer(self, connection: sa.Connection) -> str:  # noqa: ARG002 - a file has no users
        return self.who

    @contextmanager
    def _faults(self) -> Iterator[None]:
        from sqlalchemy.exc import DBAPIError

        try:
            yield
        except DBAPIError as error:
            raise self._fault(getattr(error.orig, "sqlite_errorname", "")) from None
        except sqlite3.Error as error:
            raise self._fault(getattr(error, "sqlite_errorname", "")) from None
        except UnicodeDecodeError:  # SQLite quotes what it found in a damaged file
            raise not_a_ledger(self.where) from None
        except OSError as error:
            raise LedgerError(
                f"the ledger '{self.where}' cannot be reached "
                f"({error.strerror or 'unknown fault'}).",
                remedy="Check that the folder exists, may be written to, and has room.",
            ) from None


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
