"""How the files of a plan are really written: encoding, separator, header, sheets.

Each check goes on with what it found, so that one run also sees what is wrong inside.
"""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from congenial.data.data_problems import DataProblem, Example, PlanLine
from congenial.data.engines.duckdb_source import files_at
from congenial.data.engines.transcoding import open_text
from congenial.data.file_format import UTF_8, FileFormat
from congenial.data.source import header_reading, one_kind
from congenial.errors import DataError

_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CANDIDATES = ("utf-8", "cp1252", "latin-1")
_PIECE = 1 << 20


@dataclass(frozen=True)
class FilesFound:
    """What the files are: the columns they have, how to go on reading them, what is wrong."""

    columns: tuple[str, ...] | None
    file_format: FileFormat
    problems: tuple[DataProblem, ...] = ()
    lines: tuple[PlanLine, ...] = ()


def look_at_files(
    path: Path, file_format: FileFormat, wanted: Sequence[str], examples: int
) -> FilesFound:
    """The columns of the files at `path`, and problems with how they are written."""
    try:
        files = files_at(path)
        kind = "csv" if file_format.separator is not None else one_kind(files, path.name)
    except DataError as error:
        return FilesFound(None, file_format, (_unreadable(error),))
    if kind == "excel":
        return _workbooks(files, file_format, examples)
    if kind == "parquet":
        return _parquet(files, file_format)
    found = _encoding(files, file_format, examples)
    return _header(files, found, wanted)


def _unreadable(error: DataError) -> DataProblem:
    return DataProblem("file", "", None, error.what, error.remedy)


def _parquet(files: Sequence[Path], file_format: FileFormat) -> FilesFound:
    import pyarrow.parquet as pq

    names: dict[str, None] = {}
    try:
        for file in files:
            names |= dict.fromkeys(pq.read_schema(file).names)
    except Exception:  # noqa: BLE001 - a reader's error may quote a record
        broken = DataError(
            f"{file.name!r} cannot be read as parquet.", remedy="Check that it is complete."
        )
        return FilesFound(None, file_format, (_unreadable(broken),))
    return FilesFound(tuple(names), file_format)


def _workbooks(files: Sequence[Path], file_format: FileFormat, examples: int) -> FilesFound:
    from congenial.data.engines.excel_sheet import sheet_header, sheet_names

    try:
        return FilesFound(sheet_header(files[0], file_format.sheet), file_format)
    except DataError as error:
        problem = _unreadable(error)
    try:
        names = sheet_names(files[0])[: max(examples, 0)]
    except DataError:
        names = []
    sheets = tuple(Example(name, 0) for name in names)
    return FilesFound(None, file_format, (replace(problem, examples=sheets),))


# Encoding -------------------------------------------------------------------------------------


def _encoding(files: Sequence[Path], file_format: FileFormat, examples: int) -> FilesFound:
    declared = file_format.encoding or UTF_8
    bad = [file for file in files if not decodes(file, declared)]
    if not bad:
        return FilesFound(None, file_format)
    guess = guessed_encoding(bad[0])
    lines = _undecodable_lines(bad[0], declared)
    more = sum(len(_undecodable_lines(file, declared)) for file in bad[1:])
    problem = DataProblem(
        "encoding",
        "",
        len(lines) + more,
        f"{bad[0].name!r} is not written in {declared}.",
        f"It can be read as {guess}; check that names and places then look right.",
        examples=(Example(None, len(lines), tuple(lines[:examples])),) if examples else (),
    )
    line = PlanLine("data", "encoding", f'"{guess}"')
    return FilesFound(None, replace(file_format, encoding=guess), (problem,), (line,))


def decodes(file: Path, encoding: str) -> bool:
    """Whether a whole file can be read in an encoding."""
    try:
        with open_text(file, encoding) as text:
            while text.read(_PIECE):
                pass
    except (UnicodeError, OSError, EOFError):
        return False
    return True


def guessed_encoding(file: Path) -> str:
    """The encoding a file is probably written in; every file can be read in the last of them."""
    with _open_bytes(file) as raw:
        start = raw.read(4096)
    if start.startswith(_BYTE_ORDER_MARKS):
        return "utf-16"
    if start[1::2].count(0) > len(start) // 4:
        return "utf-16-le"
    return next(one for one in _CANDIDATES if decodes(file, one))


def _undecodable_lines(file: Path, encoding: str) -> list[int]:
    """Numbers of the lines, from 1, that hold bytes which mean nothing in the encoding."""
    if codecs.lookup(encoding).name != UTF_8:
        return [1]  # lines can only be told apart where a line end is one byte
    with _open_bytes(file) as raw:
        return [number for number, line in enumerate(raw, 1) if not _is_utf_8(line)]


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _open_bytes(file: Path) -> Any:
    opener: Any = gzip.open if file.suffix.lower() == ".gz" else open
    return opener(file, "rb")


# Header ---------------------------------------------------------------------------------------


def _header(files: Sequence[Path], found: FilesFound, wanted: Sequence[str]) -> FilesFound:
    """The names in the header, read with the separator under which most wanted columns appear."""
    encoding = found.file_format.encoding or "utf-8-sig"
    with open_text(files[0], encoding, errors="replace") as text:
        line = text.readline(1_000_000).rstrip("\r\n").removeprefix("\ufeff")
    try:
        declared = header_reading(line, files[0].name, wanted, found.file_format.separator)
    except DataError as error:
        return replace(found, problems=(*found.problems, _unreadable(error)))
    best = _better_separator(line, wanted, declared)
    if best == declared:
        return replace(found, columns=declared[1])
    problem = DataProblem(
        "separator",
        "",
        None,
        f"the fields of {files[0].name!r} are not separated by the character in the plan.",
        "Name the right separator in [data].",
    )
    return FilesFound(
        best[1],
        replace(found.file_format, separator=best[0]),
        (*found.problems, problem),
        (*found.lines, PlanLine("data", "separator", json.dumps(best[0]))),
    )


def _better_separator(
    line: str, wanted: Sequence[str], declared: tuple[str, tuple[str, ...]]
) -> tuple[str, tuple[str, ...]]:
    """The reading of a header by any mark in it that finds more wanted columns, or the declared."""
    marks = dict.fromkeys(mark for mark in line if not mark.isalnum() and mark not in "\"_ '")
    readings = [header_reading(line, "", wanted, mark) for mark in marks]
    return max([declared, *readings], key=lambda one: len(set(one[1]) & set(wanted)))
