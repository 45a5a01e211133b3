"""What goes wrong with a server or a cluster is said plainly, and never with a password."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from congenial.data.engines import spark_source
from congenial.data.schema import Schema, Unit
from congenial.data.source import resolve
from congenial.data.tabulate import Microdata, tabulate
from congenial.errors import DataError

SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
TABLE = pa.table({"sex": ["f", "m", "f"], "id": [1, 2, 3]})
PASSWORD = "S3CR3T-9137"


def refused(source: Any, match: str) -> str:
    with pytest.raises(DataError, match=match) as caught:
        tabulate(source, SCHEMA)
    shown = "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None
    assert PASSWORD not in "".join(traceback.format_exception_only(caught.value))
    return shown


def test_unreachable_server() -> None:
    url = f"postgresql://clerk:{PASSWORD}@127.0.0.1:1/db?table=people"
    refused(url, "'127.0.0.1' cannot be reached")


@pytest.mark.parametrize(
    "tail", ["/db", "/db?table=", "/db?table=a.b.c", "/db?table=a.", "/db?table=a&table=b"]
)
def test_address_without_one_table(tail: str) -> None:
    refused(f"postgresql://clerk:{PASSWORD}@127.0.0.1:1{tail}", "does not name one table")


def test_broken_address() -> None:
    refused(f"postgresql://clerk:{PASSWORD}@h:port/db?table=a", "address of the database")


def wait_until_refused(url: str) -> None:
    """The server reads its new rules a moment after it is told to."""
    for _ in range(100):
        try:
            tabulate(url, SCHEMA)
        except DataError:
            return
        time.sleep(0.05)
    raise AssertionError("the server kept its old rules")


def test_wrong_password(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.load("people", TABLE)
    postgres.execute("DROP ROLE IF EXISTS clerk")
    postgres.execute("CREATE ROLE clerk LOGIN PASSWORD 'right'")
    postgres.execute("GRANT SELECT ON people TO clerk")
    rules = Path(postgres.execute("SHOW hba_file")[0][0])
    rules.write_text("local all clerk scram-sha-256\n" + rules.read_text())
    postgres.execute("SELECT pg_reload_conf()")
    url = postgres.url("people", user="clerk")
    wait_until_refused(url)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    refused(url, "did not accept the user or the password")
    refused(url.replace("clerk@", f"clerk:{PASSWORD}@"), "did not accept the user or the password")
    monkeypatch.delenv("PGPASSWORD")
    refused(url, "did not accept the user or the password")
    monkeypatch.setenv("PGPASSWORD", "right")
    assert tabulate(url, SCHEMA).total == 3
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert tabulate(url.replace("clerk@", "clerk:right@"), SCHEMA).total == 3


def test_no_such_table_and_no_right(postgres: Any) -> None:
    refused(postgres.url("nobody"), "no table 'nobody'")
    postgres.load("public.people", TABLE)
    assert tabulate(postgres.url("public.people"), SCHEMA).total == 3


def test_connection_lost_in_the_middle(postgres: Any) -> None:
    with Microdata.open(postgres.load("people", TABLE), SCHEMA, Unit("id")) as data:
        data.check_unit()
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND state = 'idle in transaction'"
        )
        with pytest.raises(DataError, match="connection to PostgreSQL was lost") as caught:
            data.tabulate()
    assert caught.value.__context__ is None


def test_one_snapshot_and_read_only(postgres: Any) -> None:
    with Microdata.open(postgres.load("people", TABLE), SCHEMA, Unit("id")) as data:
        data.check_unit()
        postgres.execute("INSERT INTO people VALUES ('f', 1)")
        assert data.tabulate().total == 3
        with pytest.raises(DataError, match="could not finish"):
            data.source.run("DELETE FROM people")
    with pytest.raises(DataError, match="more than one row"):
        tabulate(postgres.url("people"), SCHEMA, unit=Unit("id"))


def test_missing_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused("postgresql://h/db?table=t", "extra 'postgres'")
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    refused("spark:people", "extra 'spark'")


def test_missing_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(
        DataError, match=r"Java 17 or newer, and there is none on the PATH\. Install"
    ):
        spark_source._need_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DataError, match="none in JAVA_HOME"):
        spark_source._need_java()


OLD_JAVA = """#!/bin/sh
echo UnsupportedClassVersionError: this version of the Java Runtime is older >&2
exit 1
"""


@pytest.mark.audit  # a process of its own, without the session of the other tests
def test_a_java_that_is_too_old(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs the extra 'spark'")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(OLD_JAVA)
    java.chmod(0o755)
    code = "from congenial.data.engines.spark_source import session; session()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"JAVA_HOME": str(tmp_path)},
        check=False,
    )
    assert "DataError: the Spark session cannot be started." in done.stderr
    assert "Java is 17 or newer" in done.stderr.splitlines()[-1]


def test_spark_sources_that_are_not_there(spark: Any, tmp_path: Path) -> None:
    refused("spark:nobody", "no table 'nobody'")
    refused(f"spark:{tmp_path}/nobody", "cannot read the path")
    (tmp_path / "a.xlsx").write_text("x")
    refused(f"spark:{tmp_path}", "Spark cannot read Excel files")
    (tmp_path / "a.xlsx").rename(tmp_path / "a.json")
    refused(f"spark:{tmp_path}", "name of a CSV, Parquet or Excel")
    (tmp_path / "a.json").rename(tmp_path / "a.parquet")
    refused(f"spark:{tmp_path}", "cannot read the path")


def test_where_a_plan_finds_its_source() -> None:
    folder = Path("/plans")
    assert resolve("people.csv", folder) == Path("/plans/people.csv")
    assert resolve("/data/people", folder) == Path("/data/people")
    assert resolve("spark:./people", folder) == "spark:/plans/people"
    for address in ("spark:people", "spark:s3a://b/p", "postgresql://h/db?table=t"):
        assert resolve(address, folder) == address
