"""Spark SQL: a path, a table or a DataFrame; the GROUP BY runs in the cluster (extra `spark`).

    spark:/data/people, spark:./people.parquet, spark:s3a://bucket/people     a path has a slash
    spark:people, spark:catalog.database.people                               a table has none

A session that is already active is used. Otherwise one is started: on the Spark Connect server
named by SPARK_REMOTE (sc://host:15002), on the master named by MASTER (local[4], spark://host:7077,
yarn), or as Spark's own configuration says; failing all that, on this machine (local[*]).

Spark reads the source anew for every query and keeps no snapshot: nothing may write to it
meanwhile. In a session started here Spark's own log is off, because a reader's complaint may quote
a record; a cluster's log is the cluster's.
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, TypeVar
from urllib.parse import unquote

from congenial.data.durable_files import write_whole
from congenial.data.source import (
    SPARK_SCHEME,
    Source,
    check_columns,
    guarded,
    one_kind,
    read_header,
)
from congenial.data.sql import SPARK, ColumnKind, ColumnType, Dialect
from congenial.errors import DataError

T = TypeVar("T")

_KINDS: dict[str, ColumnKind] = {
    **dict.fromkeys(("byte", "short", "integer", "long", "void"), "whole"),
    "float": "float",
    "double": "double",
    **dict.fromkeys(("string", "char", "varchar"), "text"),
    "boolean": "boolean",
    **dict.fromkeys(("date", "time", "timestamp", "timestamp_ntz"), "date"),
}
_NOT_WRITTEN = -1  # rows, where a task could not write its file


@dataclass(frozen=True)
class SparkSource(Source):
    """A DataFrame under a temporary name of its own."""

    frame: Any
    name: str
    types: dict[str, ColumnType]
    view: str = ""  # the temporary name, where `name` is a query over it

    dialect: ClassVar[Dialect] = SPARK

    @property
    def session(self) -> Any:
        """The session the records live in."""
        return self.frame.sparkSession

    def run(self, query: str) -> Any:
        """The result of a query, collected."""
        return self.collect(lambda: self.session.sql(query))

    def collect(self, make: Callable[[], Any]) -> Any:
        """Build a DataFrame and collect it; any failure becomes a DataError."""
        return guarded(
            lambda: quiet(lambda: make().toArrow()),
            "Spark could not finish the query; nothing was counted.",
            "Check that the cluster is up and every file is complete, in UTF-8, and has as many "
            "fields as its header.",
        )

    def copy(self, query: Callable[[str], str], beside: Any, folder: Path, by: str) -> None:
        """As in `Source`: each group of rows is written where Spark brings it together.

        What a task says it has written must be there: where machines share no folder it is not.
        """
        view = f"congenial_{uuid.uuid4().hex}"
        quiet(lambda: self.session.createDataFrame(beside)).createOrReplaceTempView(view)
        try:
            written = self.collect(
                lambda: (
                    self.session.sql(query(SPARK.identifier(view)))
                    .groupBy(by)
                    .applyInArrow(_group_writer(str(folder), by), f"{by} BIGINT, rows BIGINT")
                )
            )
        finally:
            self.session.catalog.dropTempView(view)
        for group in written.to_pylist():
            if _rows(_group_file(folder, by, group[by])) != group["rows"]:
                raise unshared(folder)

    def under(self, name: str, types: Mapping[str, ColumnType]) -> SparkSource:
        """The same records under another name."""
        return replace(self, name=name, types=dict(types), view=self.view or self.name)

    def close(self) -> None:
        """Drop the temporary name."""
        guarded(
            lambda: self.session.catalog.dropTempView((self.view or self.name).strip("`")),
            "the Spark session is gone.",
        )


def open_spark(source: Any, columns: Sequence[str]) -> SparkSource:
    """Open "spark:..." or a DataFrame, and check that it has the columns."""
    stored: dict[str, ColumnType] | None = None
    if isinstance(source, str):
        inside = source.removeprefix(SPARK_SCHEME)
        frame, written = _open(session(), inside, columns)
        stored = dict.fromkeys(columns, ColumnType("text")) if written else None
    else:
        frame = source
    fields = guarded(lambda: frame.schema.fields, "the Spark frame cannot be read.")
    check_columns(columns, [field.name for field in fields])
    stored_types = {field.name: field.dataType for field in fields}
    types = stored or {name: _column_type(stored_types[name]) for name in columns}
    view = f"congenial_{uuid.uuid4().hex}"
    guarded(lambda: frame.createOrReplaceTempView(view), "the Spark frame cannot be read.")
    return SparkSource(frame, SPARK.identifier(view), types)


def unshared(folder: Path) -> DataError:
    """The error for workers that do not write where the driver reads."""
    return DataError(
        f"the workers of Spark and this program do not see the same files in '{folder.parent}'.",
        remedy="Put the plan in a folder that all machines share, or make `runs` beside it a link "
        "to one; workers run as the user who releases. Nothing was drawn.",
    )


def _group_file(folder: Path | str, by: str, group: int) -> Path:
    return Path(folder) / f"{by}={group}" / "rows.parquet"


def _group_writer(folder: str, by: str) -> Callable[[Any], Any]:
    """What a task does with the rows of one group; repeated, it writes the same file again."""

    def write(rows: Any) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        group, written = rows[by][0].as_py(), rows.num_rows
        file = _group_file(folder, by, group)
        try:
            file.parent.mkdir(exist_ok=True)
            write_whole(file, lambda out: pq.write_table(rows.drop_columns([by]), out))
        except OSError:
            written = _NOT_WRITTEN
        return pa.table({by: [group], "rows": [written]})

    return write


def _rows(file: Path) -> int | None:
    """The rows of a Parquet file; None where there is none."""
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(file).metadata.num_rows) if file.exists() else None


def quiet(action: Callable[[], T]) -> T:
    """Run `action` without PySpark's remarks on the version of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        return action()


def session() -> Any:
    """The active Spark session, or a new one (see the module)."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        SparkSession = None
    if SparkSession is None:
        raise DataError(
            "reading with Spark needs the extra 'spark'.",
            remedy="Run pip install 'congenial[spark]'.",
        )
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    remote = "SPARK_REMOTE" in os.environ
    if not remote:
        _need_java()
    master = os.environ.get("MASTER", "")
    return guarded(
        lambda: quiet(lambda: _start(SparkSession.builder, master, remote)),
        "the Spark session cannot be started.",
        "Check SPARK_REMOTE or MASTER, that the cluster can be reached, and that Java is 17 or "
        "newer.",
    )


def session_of(source: object) -> Any:
    """The session in which "spark:..." or a frame is read."""
    source = getattr(source, "address", source)
    return session() if isinstance(source, str) else source.sparkSession  # type: ignore[attr-defined]


def _start(builder: Any, master: str, remote: bool) -> Any:
    builder = builder.appName("congenial")
    if remote:
        return builder.getOrCreate()
    if not master or master.startswith("local"):
        # Workers on this machine must find the packages this program found.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    started = (builder.master(master) if master else builder).getOrCreate()
    started.sparkContext.setLogLevel("OFF")
    return started


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    installed = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if not installed:
        where = "in JAVA_HOME" if home else "on the PATH"
        raise DataError(
            f"Spark needs Java 17 or newer, and there is none {where}.",
            remedy="Install a Java 17 runtime (for example openjdk-17-jre-headless) and set "
            "JAVA_HOME, or set SPARK_REMOTE to a Spark Connect server.",
        )


def _open(spark: Any, inside: str, columns: Sequence[str]) -> tuple[Any, bool]:
    """The frame, and whether its columns are text from CSV files."""
    if "/" not in inside:
        name = ".".join(SPARK.identifier(part) for part in inside.split("."))
        missing = f"Spark has no table {inside!r}."
        remedy = "Check its name; a path needs a slash, as in spark:./people.parquet."
        frame = guarded(lambda: spark.table(name), missing, remedy)
        guarded(lambda: frame.schema, missing, remedy)
        return frame, False
    unreadable = f"Spark cannot read the path {inside!r}."
    remedy = "Check the path, and that every machine of the cluster can read it."
    files = guarded(lambda: spark.read.text(inside).inputFiles(), unreadable, remedy)
    if not files:
        raise DataError(f"{inside!r} has no files.", remedy="Check the path.")
    kind = one_kind([PurePosixPath(unquote(file)) for file in files], inside)
    if kind == "excel":
        raise DataError(
            "Spark cannot read Excel files.",
            remedy="Give the path without spark:, or write Parquet.",
        )
    if kind == "csv":
        return guarded(lambda: _csv(spark, inside, columns), unreadable, remedy), True
    # As in DuckDB: a column that only some files have is missing in the others.
    return guarded(
        lambda: spark.read.option("mergeSchema", "true").parquet(inside), unreadable, remedy
    ), False


def _csv(spark: Any, path: str, columns: Sequence[str]) -> Any:
    """All columns as text, nothing guessed; a file with another header fails when it is read."""
    line = quiet(lambda: spark.read.text(path).first())
    first = "" if line is None else str(line[0]).removeprefix("\ufeff")
    delimiter, header = read_header(first, PurePosixPath(path).name, columns)
    frame = spark.read.csv(
        path,
        schema=", ".join(f"{SPARK.identifier(name)} STRING" for name in header),
        header=True,
        enforceSchema=False,
        sep=delimiter,
        escape='"',
        mode="FAILFAST",
        multiLine=True,
        maxCharsPerColumn=-1,
    )
    # An empty field in quotes is missing too, as everywhere else.
    return frame.selectExpr(
        *(f"nullif({SPARK.identifier(c)}, '') AS {SPARK.identifier(c)}" for c in columns)
    )


def _column_type(stored: Any) -> ColumnType:
    name = stored.typeName().split("(")[0]
    if name == "decimal":
        return ColumnType("decimal", stored.scale)
    return ColumnType(_KINDS.get(name, "nested"))
