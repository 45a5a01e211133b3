"""The store of a ledger by where it is, a path or a URL; and what an upgrade there did."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from congenial.data.arguments import NUMBER, PATH, expect
from congenial.errors import LedgerError
from congenial.ledger.stores.sqlite import SqliteStore
from congenial.ledger.stores.store import Store

POSTGRES = ("postgresql://", "postgres://")


class Upgrade(NamedTuple):
    """What an upgrade did: versions before and after, and the file it copied, if any."""

    where: str
    before: int
    after: int
    backup: str


def store_at(where: str | Path, timeout: float, who: str | None = None) -> Store:
    """The store at a place; `who` writes: by default the system's user, or that of the database."""
    expect(where, PATH, "the place of the ledger", "Give a path or an address.", LedgerError)
    expect(timeout, NUMBER, "timeout", "Give seconds.", LedgerError)
    if str(where).startswith(POSTGRES):
        from congenial.ledger.stores.postgres import PostgresStore

        return PostgresStore(str(where), timeout, who)
    text = str(where).removeprefix("sqlite:///")
    if "://" in text or text.startswith(":memory:") or not text:
        raise LedgerError(
            "this is not a place for a ledger: it is kept in a SQLite file or in PostgreSQL.",
            remedy="Give a path such as ledger.sqlite, or postgresql://user@host/database.",
        )
    return SqliteStore(Path(text).absolute(), timeout, who)
