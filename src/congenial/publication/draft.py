"""A first plan for a file, from its column names and types; values are listed only on request.

A CSV file stores no types, and a workbook is read as if it were one, so every column of it is
drafted as categorical; its names are its first row, and a record there would be shown by the plan.
The rows after it are looked at for that, and to see which columns are ids: those are never in a
table.
Listing the levels that occur is a publication of which values occur; whoever asks for it has to be
told.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from congenial.data.data_check import guessed_encoding
from congenial.data.data_problems import quoted
from congenial.data.durable_files import write_new
from congenial.data.source import DELIMITERS, KINDS_OF_FILE, FileFormat, guarded
from congenial.data.sql import DUCKDB
from congenial.errors import DataError, PlanError, some_of

Kind = Literal["text", "number", "whole number", "truth", "other", "id"]

MOST_LEVELS = 200
LOOKED_AT = 10_000  # rows of a Parquet file that are looked at
FEWEST, NEARLY_ALL = 20, 0.95  # rows, and the share of different values among them, that make an id
AHEAD = 1_000_000  # characters of a CSV file that are looked at
FROM_DATA = "categories read from the data: this plan shows which values occur"


def write_draft(
    source: Path, out: Path, unit: str | None = None, *, levels_from_data: bool = False
) -> dict[str, str]:
    """Write a draft plan for `source` to `out` and return the columns with their kinds.

    unit: the column that names a person; the only one called ..._id is taken for it if none is
    given.
    Raises DataError when the file cannot be read, PlanError when `out` is there or not writable.
    """
    if out.exists():
        raise PlanError(
            f"'{out}' already exists, and `congenial init` never overwrites a file.",
            remedy="Choose another with --out.",
        )
    columns = columns_of(source)
    encoding = encoding_of(source)
    if unit is not None and unit not in columns:
        raise DataError(
            f"'{source.name}' has no column {unit!r} that could identify a person.",
            remedy=f"Its columns are {some_of(columns)}.",
        )
    ids = [name for name in columns if _named_as_id(name)]
    unit = ids[0] if unit is None and len(ids) == 1 else unit
    variables: dict[str, Kind] = {
        name: "id" if name in ids else kind for name, kind in columns.items() if name != unit
    }
    if not any(kind not in ("other", "id") for kind in variables.values()):
        raise DataError(f"'{source.name}' has no column besides the one that identifies a person.")
    levels = _levels(source, variables, encoding) if levels_from_data else {}
    relative = Path(os.path.relpath(source, out.parent)).as_posix()
    text = draft(relative, unit, variables, levels, encoding)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_new(out, text.encode())
    except OSError as reason:
        raise PlanError(
            f"'{out}' cannot be written: {reason.strerror}.", remedy="Choose another with --out."
        ) from None
    return dict(columns)


def draft(
    source: str,
    unit: str | None,
    variables: Mapping[str, Kind],
    levels: Mapping[str, list[str]] | None = None,
    encoding: str | None = None,
) -> str:
    """The text of a plan with places to fill in.

    >>> print(draft("people.parquet", "person_id", {"sex": "text"}).splitlines()[4])
    unit = "person_id"               # one row each, checked
    """
    levels = levels or {}
    own = f"unit = {quoted(unit)}" if unit else '# unit = "..."'
    table = [name for name, kind in variables.items() if kind not in ("other", "id")][:2]
    ids = [name for name, kind in variables.items() if kind == "id"]
    whose = "FILL IN the column that identifies a person" + (f": {some_of(ids)}?" if ids else "")
    note = f"# WARNING: {FROM_DATA}.\n" if levels else ""
    written = f"encoding = {quoted(encoding)}" if encoding else ""
    codec = f"\n{written:<32} # a guess: the file is not in UTF-8" if encoding else ""
    schema = "\n".join(_attribute(name, kind, levels.get(name)) for name, kind in variables.items())
    return f"""# A draft: replace what is marked FILL IN, then run `congenial check` on this file.
{note}
[data]
source = {quoted(source)}{codec}
{own:<32} # {"one row each, checked" if unit else whose}

[schema]                         # chosen without looking at the data; it is published
{schema}

# [publish]                      # figures that must be published exactly, unprotected
# "Population" = {{ total = true, because = "FILL IN the legal ground" }}

[[release]]
name = "first-table"
table = [{", ".join(quoted(name) for name in table)}]
epsilon = 1.0                    # per person
nonnegative = "project"

[budget]                         # one ledger is one population
ledger = "ledger.sqlite"
epsilon = 2.0                    # for all releases together
"""


def _attribute(name: str, kind: Kind, levels: list[str] | None) -> str:
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)
    if kind == "other":
        return (
            f"# {key}: left out: this type has no categories or edges; [derive] turns a date into "
            "an age or a year"
        )
    if kind == "id":
        return (
            f"# {key}: left out: it looks like an id, by its name or its many values. For numbers "
            "give edges = [...]; for dates see [derive]"
        )
    if kind == "truth":
        return f'{key} = {{ levels = ["false", "true"] }}'
    if kind in ("number", "whole number"):
        whole = ", whole = true" if kind == "whole number" else ""
        bins = f'edges = [0, 1], top = "1+"{whole}'
        return f"{key} = {{ {bins} }}  # FILL IN edges, or integers = [1, 8]"
    if levels:
        return f"{key} = {{ levels = [{', '.join(quoted(level) for level in levels)}] }}"
    return f'{key} = {{ levels = ["..."] }}  # FILL IN levels, or edges = [...] for numbers'


def _named_as_id(name: str) -> bool:
    """Whether a column is an id by its name.

    >>> [name for name in ("id", "Person_ID", "patientId", "paid", "COVID") if _named_as_id(name)]
    ['id', 'Person_ID', 'patientId']
    """
    return re.search(r"(?i:(^|[\W_])(id|uid|uuid|guid|pid)$)|[a-z]I[Dd]$", name) is not None


def _are_ids(values: Sequence[object]) -> bool:
    """Whether (nearly) every value of a column is there once, as ids are."""
    there = [value for value in values if value not in (None, "")]
    return len(there) >= FEWEST and len(set(there)) >= NEARLY_ALL * len(there)


def columns_of(source: Path) -> dict[str, Kind]:
    """Names of the columns with their kinds, from a Parquet footer or the first row of a CSV file.

    DataError where that row looks like a record.
    """
    path = _first_file(source)
    kind = KINDS_OF_FILE.get(path.suffix.lower())
    if kind is None:
        raise DataError(
            f"'{path.name}' does not have the name of a CSV, Parquet or Excel file.",
            remedy=f"Known: {', '.join(KINDS_OF_FILE)}.",
        )
    readers = {"parquet": _parquet_columns, "excel": _excel_columns, "csv": _csv_columns}
    return readers[kind](path)


def _first_file(source: Path) -> Path:
    path = source
    if source.is_dir():
        inside = sorted(entry for entry in source.iterdir() if entry.name[0] not in "._")
        path = inside[0] if inside else source
    if not path.is_file():
        raise DataError(
            f"there is no file at '{source}'.", remedy="Give a CSV, Parquet or Excel file."
        )
    return path


def encoding_of(source: Path) -> str | None:
    """What a CSV file is probably written in, where its beginning is not UTF-8; None otherwise."""
    path = _first_file(source)
    if KINDS_OF_FILE.get(path.suffix.lower()) != "csv":
        return None
    try:
        _beginning(path, "utf-8-sig")
    except UnicodeDecodeError:
        return guessed_encoding(path)
    return None


def _beginning(path: Path, encoding: str) -> str:
    with path.open(encoding=encoding, newline="") as file:
        return file.read(AHEAD)


def _parquet_columns(path: Path) -> dict[str, Kind]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        kinds = {field.name: _kind(field.type) for field in file.schema_arrow}
        looked_at = [name for name, kind in kinds.items() if kind in ("text", "whole number")]
        first = next(file.iter_batches(LOOKED_AT, columns=looked_at), None)
    except (OSError, pa.ArrowException):
        raise DataError(f"'{path.name}' cannot be read as Parquet.") from None
    if first is not None:
        ids = [name for name in looked_at if _are_ids(first[name].to_pylist())]
        kinds |= dict.fromkeys(ids, "id")
    return kinds


def _kind(stored: object) -> Kind:
    from pyarrow import types

    if types.is_dictionary(stored):
        return _kind(stored.value_type)  # type: ignore[attr-defined]
    if types.is_string(stored) or types.is_large_string(stored) or types.is_string_view(stored):
        return "text"
    if types.is_boolean(stored):
        return "truth"
    if types.is_integer(stored):
        return "whole number"
    if types.is_floating(stored) or types.is_decimal(stored):
        return "number"
    return "other"


def _excel_columns(path: Path) -> dict[str, Kind]:
    from congenial.data.engines.excel_sheet import sheet_texts

    return _named(path, sheet_texts(path))


def _csv_columns(path: Path) -> dict[str, Kind]:
    try:
        text = _beginning(path, encoding_of(path) or "utf-8-sig").removeprefix("\ufeff")
        whole = text if len(text) < AHEAD else text[: text.rfind("\n") + 1] or text
        readings = [
            list(csv.reader(io.StringIO(whole, newline=""), delimiter=mark)) for mark in DELIMITERS
        ]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise DataError(
            f"'{path.name}' cannot be read as CSV.",
            remedy="The first line must name the columns; each line after it is a record.",
        ) from None
    return _named(path, max(readings, key=lambda rows: len(rows[0]) if rows else 0))


def _named(path: Path, rows: Sequence[Sequence[str]]) -> dict[str, Kind]:
    """The names in the first row; DataError where it looks like a record."""
    names, *records = rows or [[]]
    nameless = [str(place) for place, name in enumerate(names, 1) if not name.strip()]
    if nameless:
        raise DataError(
            f"the header of '{path.name}' gives no name to column {some_of(nameless)}.",
            remedy="Write a name for every column in the first row of the file.",
        )
    if not _are_names(names, records):
        # A record taken for a header would put confidential values in the plan.
        raise DataError(
            f"the first row of '{path.name}' does not look like a header.",
            remedy=(
                "Name every column once in the first row. A name begins with a letter and is not "
                "one of the column's values."
            ),
        )
    columns = zip(*(row for row in records if len(row) == len(names)), strict=True)
    kinds: dict[str, Kind] = dict.fromkeys(names, "text")
    for name, values in zip(names, columns, strict=False):
        some = [value for value in values[:1000] if value]
        if _all_are(_DATE, some):
            kinds[name] = "other"
        elif _are_ids(values) and not _all_are(_DECIMAL, some):
            kinds[name] = "id"
    return kinds


_DATE = re.compile(r"\d{4}[-./]\d\d?[-./]\d\d?|\d\d?[-./]\d\d?[-./]\d{4}")
_DECIMAL = re.compile(r"-?\d+[.,]\d+")


def _all_are(pattern: re.Pattern[str], values: Sequence[str]) -> bool:
    return bool(values) and all(pattern.fullmatch(value.strip()) for value in values)


def _are_names(names: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Whether a row can be a header of these records: no answer of a record comes back as one.

    >>> _are_names(["sex", "job"], [["f", "cook"]]), _are_names(["f", "cook"], [["f", "driver"]])
    (True, False)
    """
    once = len({name.casefold() for name in names}) == len(names)
    lettered = all(re.match(r"[^\W\d]", name) for name in names)
    plain = [name.strip().casefold() for name in names]
    recur = any(
        name == value.strip().casefold()
        for row in records
        for name, value in zip(plain, row, strict=False)
    )
    return bool(names) and once and lettered and not recur


def _levels(
    source: Path, variables: Mapping[str, Kind], encoding: str | None
) -> dict[str, list[str]]:
    """Levels that occur in the text columns, where there are few enough to be a code list."""
    from congenial.data.engines.duckdb_source import open_files

    texts = [name for name, kind in variables.items() if kind == "text"]
    if not texts:
        return {}
    opened = open_files(source, texts, FileFormat(encoding=encoding))
    levels = {}
    for name in texts:
        column = DUCKDB.identifier(name)
        query = (
            f"SELECT DISTINCT CAST({column} AS VARCHAR) FROM records "
            f"WHERE {column} IS NOT NULL LIMIT {MOST_LEVELS + 1}"
        )
        rows = guarded(
            lambda query=query: opened.relation.query("records", query).fetchall(),  # type: ignore[misc]
            f"column {name!r} of '{source.name}' cannot be read to the end.",
        )
        if 0 < len(rows) <= MOST_LEVELS:
            levels[name] = sorted((row[0] for row in rows), key=in_order)
    return levels


def in_order(level: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts as people count: numbers inside a label by their size.

    >>> sorted(["10", "9", "b2", "b10", "0"], key=in_order)
    ['0', '9', '10', 'b2', 'b10']
    """
    pieces = (piece for piece in re.split(r"([0-9]{1,18})", level) if piece)
    order = tuple(
        (0, int(piece), "") if piece[0] in "0123456789" else (1, 0, piece) for piece in pieces
    )
    return (*order, (-1, 0, level))
