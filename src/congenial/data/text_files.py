"""CSV and JSON as Congenial writes them.

CSV: no label is a formula in a spreadsheet; all read back as they were. A spreadsheet takes a cell
that begins with = + - @ (also in their full-width forms, or after blanks or a line end) for a
formula. Such a text gets one apostrophe in front; so does a text that has apostrophes before such a
beginning, which makes the rule reversible. Plain numbers such as -5 stay.

JSON: one item on a line, as `json.dumps(value, indent=1)` writes it, of long lists as well. With an
indent the standard library writes every item in Python and keeps all of them until the end: for the
areas of a nation half a minute, and a hundred bytes an item. Here a list of texts and numbers is
written in one step, with the beginning of a line as part of the comma between items.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

APOSTROPHE = "'"
_FORMULA = re.compile(r"'*(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")
_NUMBER = re.compile(r"'*\s*[+-](?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would take a text, without apostrophes in front, for a formula."""
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def neutral(text: str) -> str:
    """The text as a cell of a CSV file: with an apostrophe in front where it would be a formula.

    >>> neutral("=1+1"), neutral("-5"), neutral("-5 to -1"), neutral("'=x"), neutral("O'Brien")
    ("'=1+1", '-5', "'-5 to -1", "''=x", "O'Brien")
    """
    if text[:1].isalnum():  # no formula begins so; spares the search in most of many rows
        return text
    return APOSTROPHE + text if is_formula(text) else text


def original(cell: str) -> str:
    """Inverse of `neutral`.

    >>> original("'=1+1"), original("''=x"), original("-5"), original("'quoted'")
    ('=1+1', "'=x", '-5', "'quoted'")
    """
    return cell[1:] if cell.startswith(APOSTROPHE) and is_formula(cell) else cell


def rows_csv(rows: Iterable[Iterable[Any]], line_end: str = "\n") -> str:
    """Rows as CSV: text neutral, numbers as they are."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end)
    writer.writerows([neutral(v) if isinstance(v, str) else v for v in row] for row in rows)
    return out.getvalue()


def same_csv(content: bytes, again: bytes, off: Mapping[str, float], error: str = "sd") -> bool:
    """Whether a file of `rows_csv` is `again`, but for numbers in the columns of `off`, which may
    differ by that many times the error in their row of `again`. They are written as Python writes
    numbers, without a digit more.

    >>> again = b"name,sd,low\\na,2.5,10\\n"
    >>> same_csv(b"name,sd,low\\na,2.5000001,10\\n", again, {"sd": 1e-6})
    True
    >>> [same_csv(one, again, {"sd": 1e-6}) for one in (again + b"a", again.replace(b"5", b"50"))]
    [False, False]
    """
    if not off:
        return content == again
    rows, ours = _cells(content), _cells(again)
    if len(rows) != len(ours) or rows[0] != ours[0] or rows_csv(rows).encode() != content:
        return False
    return all(_near(*pair, ours[0], off, error) for pair in zip(rows, ours, strict=True))


def _cells(content: bytes) -> list[list[str]]:
    text = io.StringIO(content.decode(errors="replace"), newline="")
    return [[original(cell) for cell in row] for row in csv.reader(text)]


def _near(
    row: list[str], again: list[str], names: list[str], off: Mapping[str, float], error: str
) -> bool:
    """Whether a row is another, but for small differences of numbers."""
    if row == again:
        return True
    if not len(row) == len(again) == len(names):
        return False
    most = float(again[names.index(error)])
    for name, cell, other in zip(names, row, again, strict=True):
        if cell == other:
            continue
        try:
            number = int(cell) if other.lstrip("-").isdigit() else float(cell)
        except ValueError:
            return False
        close = abs(number - float(other)) <= off.get(name, -1) * most
        if not close or str(number) != cell:
            return False
    return True


def table_csv(table: Any) -> bytes:
    """An Arrow table as CSV: UTF-8, header, text quoted and neutral, missing values empty."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    columns = [_neutral_column(column) for column in table.columns]
    text = io.BytesIO()
    pacsv.write_csv(pa.table(columns, [neutral(name) for name in table.column_names]), text)
    return text.getvalue()


def rounded(table: Any, *values: str, error: str = "sd") -> Any:
    """An Arrow table with as many digits as the errors justify, for a CSV file beside a Parquet
    file that keeps all: the error with three significant digits, the values of its row to the same
    place; never coarser than whole numbers. A value whose error is 0 is exact: it stays.

    >>> import pyarrow as pa
    >>> table = pa.table({"estimate": [1838.4285714285716, 7.0], "sd": [2.7944866759948, 0.0]})
    >>> rounded(table, "estimate").to_pydict()
    {'estimate': [1838.43, 7.0], 'sd': [2.79, 0.0]}
    """
    import numpy as np
    import pyarrow as pa

    there = zip(table.column_names, table.schema.types, strict=True)
    names = {name for name, kind in there if pa.types.is_floating(kind)} & {*values, error}
    if error not in names:
        return table
    sizes = table[error].to_numpy()
    has_error = (sizes > 0) & np.isfinite(sizes)
    places = 2 - np.floor(np.log10(np.where(has_error, sizes, 1.0)))
    scale = 10.0 ** np.clip(places, 0, 15)
    for name in names:
        full = table[name].to_numpy()
        short = np.where(has_error, np.rint(full * scale) / scale, full) + 0.0  # no -0
        table = table.set_column(table.column_names.index(name), name, pa.array(short))
    return table


def _neutral_column(column: Any) -> Any:
    import pyarrow as pa

    if not pa.types.is_string(column.type):
        return column
    coded = column.combine_chunks().dictionary_encode()
    labels = coded.dictionary.to_pylist()
    if not any(map(is_formula, labels)):
        return column
    return pa.DictionaryArray.from_arrays(
        coded.indices, pa.array([neutral(label) for label in labels])
    ).cast(pa.string())


def read_rows(file: TextIO) -> list[dict[str, Any]]:
    """Rows of a CSV file by the names in its header, as they were before `neutral`.

    As `csv.DictReader` has them otherwise: a short row has None in its last columns.
    """
    return [
        {_as_it_was(name): _as_it_was(cell) for name, cell in row.items()}
        for row in csv.DictReader(file)
    ]


def _as_it_was(cell: Any) -> Any:
    return original(cell) if isinstance(cell, str) else cell


_PLAIN = {str, int, float, bool, type(None)}


def indented(value: Any, *, ensure_ascii: bool = True, depth: int = 0) -> Iterator[str]:
    """Pieces of `json.dumps(value, indent=1, ensure_ascii=ensure_ascii)`, `depth` levels deep.

    >>> print("".join(indented({"areas": ["a", "b"], "n": 2})))
    {
     "areas": [
      "a",
      "b"
     ],
     "n": 2
    }
    """
    line, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, dict) and value:
        for place, (key, item) in enumerate(value.items()):
            yield ("," if place else "{") + line + _key(key, ensure_ascii)
            yield from indented(item, ensure_ascii=ensure_ascii, depth=depth + 1)
        yield end + "}"
    elif isinstance(value, list | tuple) and value:
        yield "[" + line
        if set(map(type, value)) <= _PLAIN:
            between = ("," + line, ": ")
            yield json.dumps(value, ensure_ascii=ensure_ascii, separators=between)[1:-1]
        else:
            for place, item in enumerate(value):
                yield "," + line if place else ""
                yield from indented(item, ensure_ascii=ensure_ascii, depth=depth + 1)
        yield end + "]"
    else:
        yield json.dumps(value, ensure_ascii=ensure_ascii)


def _key(key: Any, ensure_ascii: bool) -> str:
    """A key with its colon; the standard library turns numbers into text."""
    return json.dumps({key: 0}, ensure_ascii=ensure_ascii)[1:-2]
