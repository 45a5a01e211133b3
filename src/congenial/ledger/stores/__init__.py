"""Where a ledger is kept: a SQLite file, or a schema of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from congenial.data.arguments import NUMBER, PATH, expect
from congenial.errors import LedgerError
from congenial.ledger.stores.store import POSTGRES, Store


def store_at(where: str | Path, timeout: float, who: str | None = None) -> Store:
    """The store at a place; `who` writes to a file, by default the system's user."""
    expect(where, PATH, "the place of the ledger", "Give a path or an address.", LedgerError)
    expect(timeout, NUMBER, "timeout", "Give seconds.", LedgerError)
    if str(where).startswith(POSTGRES):
        if who is not None:
            raise LedgerError(
                "in PostgreSQL the database user writes; no other name can be given.",
                remedy="Leave `who` out, and connect as that user.",
            )
        from congenial.ledger.stores.postgres import PostgresStore

        return PostgresStore(str(where), timeout)
    from congenial.ledger.stores.sqlite import SqliteStore

    text = str(where).removeprefix("sqlite:///")
    if "://" in text or text.startswith(":memory:") or not text:
        raise LedgerError(
            "this is not a place for a ledger: it is kept in a SQLite file or in PostgreSQL.",
            remedy="Give a path such as ledger.sqlite, or postgresql://user@host/database.",
        )
    return SqliteStore(Path(text).absolute(), timeout, who)
