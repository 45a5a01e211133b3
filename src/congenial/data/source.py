"""Where records come from: a source runs the SQL of `sql.py` and gives back an Arrow table.

One module of `engines/` each: `duckdb_source` (files, folders, frames), `postgres_source` and
`spark_source`; `open_source` of that folder picks one and imports no other. Errors of the readers
may quote a record, so none of them is shown or chained: `guarded` replaces them by a DataError
raised outside the handler.
"""

from __future__ import annotations

import codecs
import csv
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, ClassVar, Self, TypeVar

from congenial.data.derive import Derivation
from congenial.data.schema import closest
from congenial.data.sql import ColumnType, Dialect
from congenial.errors import MOST_NAMES, DataError, PlanError, some_of

T = TypeVar("T")

KINDS_OF_FILE = {
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "excel"),
}
DELIMITERS = ",;\t|"
POSTGRES_SCHEMES = ("postgresql://", "postgres://", "postgresql+psycopg://")
SPARK_SCHEME = "spark:"
UTF_8 = "utf-8"


@dataclass(frozen=True)
class FileFormat:
    """How files are written: the separator and the encoding of CSV, the sheet of a workbook.

    None is the default: a comma, semicolon, tab or bar as the header shows, UTF-8, the only sheet.
    `skip_blank_rows` leaves out rows in which every column that is used is empty: of such a row
    only separators are left, and it is nobody's record.
    """

    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    skip_blank_rows: bool = False

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and (not 1 <= len(mark) <= 4 or set(mark) & {'"', "\n", "\r"}):
            raise DataError(
                f"the separator {mark!r} cannot separate fields.",
                remedy="Give one to four characters, none of them a quote or a line end.",
            )
        if self.encoding is not None and codec(self.encoding) is None:
            raise DataError(
                f"{self.encoding!r} is not a known encoding.",
                remedy='Write for example "cp1252", "latin-1", "utf-16" or "shift_jis".',
            )

    @property
    def transcodes(self) -> bool:
        """Whether files are written in anything but UTF-8."""
        return self.encoding is not None and codec(self.encoding) != UTF_8


def codec(encoding: str) -> str | None:
    """Python's name of a text encoding; None where it has none.

    >>> codec("UTF8"), codec("Windows-1252"), codec("rot13"), codec("klingon")
    ('utf-8', 'cp1252', None, None)
    """
    try:
        text_codec = codecs.lookup(encoding)
    except (LookupError, ValueError):
        return None
    return text_codec.name if getattr(text_codec, "_is_text_encoding", True) else None


@dataclass(frozen=True)
class UnitFile:
    """A file with a row for each unit, joined to the rows by `key`.

    `never_empty`: a unit without rows is refused.
    """

    address: Path
    key: str
    never_empty: bool = False


@dataclass(frozen=True)
class PlannedSource:
    """Records at an address, read and derived as a plan says; `Microdata.open` takes it."""

    address: str | Path
    file_format: FileFormat = FileFormat()
    derivations: tuple[Derivation, ...] = ()
    units: UnitFile | None = None


class Source(ABC):
    """Confidential records in some engine: how each needed column is stored, and a way to ask."""

    dialect: ClassVar[Dialect]
    name: str  # what SQL calls the records, quoted
    types: dict[str, ColumnType]

    @abstractmethod
    def run(self, query: str) -> Any:
        """The result of a query as an Arrow table; DataError, without a word of the data."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what was opened; what belongs to the caller stays open."""

    @abstractmethod
    def under(self, name: str, types: Mapping[str, ColumnType]) -> Self:
        """The same records under another name: a query over them, with other columns."""

    def spill(self) -> None:  # noqa: B027 - other engines have settings of their own
        """Let queries from here on take little memory, and disk beyond it: for many groups."""

    def watched(self, tell: Callable[[float], Any]) -> AbstractContextManager[None]:  # noqa: ARG002
        """While queries run, `tell` which share (0 to 1) is read, where that can be known."""
        return nullcontext()

    def copy(self, query: Callable[[str], str], beside: Any, folder: Path, by: str) -> None:  # noqa: ARG002
        """Write the result of a query to Parquet files in folders named by a column of it.

        `beside` is an Arrow table that the query reads, under the name that it is called with.
        """
        raise DataError(
            "a release by parts can read only files, frames, DuckDB tables and Spark.",
            remedy="Export the records to Parquet files, or leave out parts.",
        )


def on_spark(source: object) -> bool:
    """Whether records live in Spark: "spark:..." or a frame of a session."""
    source = getattr(source, "address", source)
    if isinstance(source, str):
        return source.startswith(SPARK_SCHEME)
    return type(source).__module__.startswith("pyspark.")


def guarded(action: Callable[[], T], what: str, remedy: str = "") -> T:
    """Run `action`; any failure becomes a DataError that says `what` and nothing from the data."""
    try:
        return action()
    except DataError:
        raise
    except Exception:  # noqa: BLE001, S110 - any reader's error may quote a record
        pass
    raise DataError(what, remedy=remedy)


def check_format(source: PlannedSource) -> None:
    """DataError where a plan says how files are written, and names no files. Opens nothing."""
    if source.file_format != FileFormat() and not isinstance(source.address, Path):
        raise DataError(
            "separator, encoding, sheet and skip_blank_rows are for files, not for databases.",
            remedy="Leave them out of [data].",
        )


def resolve(source: str, folder: Path) -> str | Path:
    """A source as a plan writes it, relative paths starting at `folder`, the plan's folder.

    Addresses stay as they are; "spark:./people" is a path too.

    >>> resolve("people.csv", Path("plans")).as_posix(), resolve("spark:db.people", Path("plans"))
    ('plans/people.csv', 'spark:db.people')
    """
    if source.startswith(POSTGRES_SCHEMES):
        return source
    if source.startswith(SPARK_SCHEME):
        inside = source.removeprefix(SPARK_SCHEME)
        relative = inside.startswith(("./", "../"))
        return SPARK_SCHEME + str((folder / inside).resolve()) if relative else source
    return folder / source


def check_columns(wanted: Sequence[str], there: Sequence[object]) -> None:
    """Raise DataError naming the wanted columns that are not found, or are there twice."""
    names = [str(name) for name in there]
    absent = [name for name in wanted if name not in names]
    if absent:
        raise DataError(
            f"the data have no column {some_of(map(repr, absent))}.",
            remedy=_absent(absent, wanted, names),
        )
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise DataError(
            f"the data have column {twice[0]!r} twice.", remedy="Rename one of the columns."
        )


def _absent(absent: Sequence[str], wanted: Sequence[str], names: Sequence[str]) -> str:
    """What to do about absent columns.

    A CSV file without a header offers its first record as names, so a found name is shown only
    when others are right, or when it is the wanted one but for case.
    """
    near = {name: closest(name, names) for name in absent[:MOST_NAMES]}
    close = {
        name: like
        for name, like in near.items()
        if like is not None and (len(absent) < len(wanted) or like.casefold() == name.casefold())
    }
    if not close:
        return "Check the names of the columns, and that a CSV file has a header row."
    if len(absent) == 1:
        return f"Did you mean {close[absent[0]]!r}?"
    return f"Did you mean {some_of(f'{like!r} for {name!r}' for name, like in close.items())}?"


def kind_of_file(path: PurePath) -> str:
    """ "csv", "parquet" or "excel", by the name alone."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    suffix = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    )
    if suffix not in KINDS_OF_FILE:
        raise DataError(
            f"{path.name!r} does not have the name of a CSV, Parquet or Excel file.",
            remedy="Use a name that ends in .csv, .tsv, .csv.gz, .parquet or .xlsx; for other text "
            "files give separator in [data].",
        )
    return KINDS_OF_FILE[suffix]


def one_kind(files: Sequence[PurePath], folder: str) -> str:
    """The kind all files share; DataError if they do not."""
    kind = kind_of_file(files[0])
    if any(kind_of_file(file) != kind for file in files):
        raise DataError(
            f"folder {folder!r} has files of different kinds.",
            remedy="Keep one kind of file per folder.",
        )
    return kind


def read_header(
    line: str, file: str, columns: Sequence[str], separator: str | None = None
) -> tuple[str, tuple[str, ...]]:
    """Delimiter and column names of a CSV header: the reading that finds most wanted columns."""
    best = header_reading(line, file, columns, separator)
    check_columns(columns, best[1])
    refuse_header(file, best[1])
    return best


def header_reading(
    line: str, file: str, columns: Sequence[str], separator: str | None = None
) -> tuple[str, tuple[str, ...]]:
    """As `read_header`, whatever the names are."""
    if not line.strip():
        raise DataError(f"{file!r} is empty.", remedy="Give a header row and records.")
    marks = DELIMITERS if separator is None else [separator]
    readings = [(mark, _fields(line, mark)) for mark in marks]
    return max(readings, key=lambda reading: (len(set(columns) & set(reading[1])), len(reading[1])))


def _fields(line: str, separator: str) -> tuple[str, ...]:
    if len(separator) == 1:
        return tuple(next(csv.reader([line], delimiter=separator)))
    return tuple(name.strip('"') for name in line.split(separator))


def refuse_header(file: str, names: Sequence[str]) -> None:
    """Raise DataError for columns without a name, and for names that a database folds together."""
    folded = [name.casefold() for name in names]
    if len(set(folded)) != len(folded) or not all(names):
        raise DataError(
            f"{file!r} has a column without a name, or the same name twice (in upper or lower "
            "case).",
            remedy="Name every column in the header.",
        )


LOCAL = ("localhost", "127.0.0.1", "::1")
# An address beside the host's own, and files of passwords and hosts.
NOT_IN_A_PLAN = ("hostaddr", "passfile", "servicefile")


# Which servers get a password: those that the person at this machine named, not any of a plan.
# libpq sends PGPASSWORD to whatever host an address names, and so it does with the password of a
# service and with lines of ~/.pgpass for every host. A plan may come from somebody else.


def refuse_unconfirmed(address: str) -> None:
    """PlanError before a password of this machine goes to a PostgreSQL server that only a plan
    names.

    Its owner's servers are those on this machine, of PGHOST, and of their own service file. A line
    of ~/.pgpass that names the host is a password for it. Addresses that cannot be read are left to
    whoever opens them.
    """
    settings = _settings(address)
    for key in NOT_IN_A_PLAN:
        if key in settings:
            raise PlanError(
                f"a plan must not name {key}: it would decide where passwords are sent.",
                remedy="Leave it out of the address, and set it where you work (PGHOSTADDR, "
                "PGPASSFILE, PGSERVICEFILE).",
            )
    foreign = [host for host in _listed(settings.get("host", "")) if not _own(host)]
    password = _password(settings) if foreign else ""
    if password:
        raise PlanError(
            f"{password} would be sent to '{foreign[0]}', a server that only the plan names.",
            remedy=f"If it is the right one, set PGHOST={foreign[0]}; or unset PGPASSWORD and "
            f"PGSERVICE, and put the password into ~/.pgpass, in a line that starts with "
            f"'{foreign[0]}:'.",
        )


def _settings(address: str) -> dict[str, str]:
    """What the driver would be given; nothing where the address cannot be read."""
    try:
        import sqlalchemy as sa

        engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
        settings = engine.dialect.create_connect_args(engine.url)[1]
    except Exception:  # noqa: BLE001 - whoever opens it says what is wrong, without quoting it
        return {}
    return {key: str(value) for key, value in settings.items()}


def _listed(hosts: str) -> list[str]:
    return [host for host in hosts.split(",") if host]


def _own(host: str) -> bool:
    named = [name.lower() for name in _listed(os.environ.get("PGHOST", ""))]
    return host.startswith(("/", "@")) or host.lower() in (*LOCAL, *named)


def _password(settings: dict[str, str]) -> str:
    """A password that would go to any host, in words; nothing where there is none."""
    if os.environ.get("PGPASSWORD"):
        return "PGPASSWORD"
    if "service" in settings or os.environ.get("PGSERVICE"):
        return "the password of a service (PGSERVICE)"
    try:
        path = Path(os.environ.get("PGPASSFILE") or Path.home() / ".pgpass")
        lines = path.read_bytes().splitlines()
    except (OSError, RuntimeError):
        return ""
    any_host = any(line.startswith(b"*:") for line in lines)
    return "a password of ~/.pgpass for every host (*)" if any_host else ""
