"""Parquet files from outside: read only after it is known how much there is to decode.

A footer may lie about sizes, and so may a page about how many values it holds. Names, types and
numbers of rows are compared with what the file must hold; then every page's own header is read,
which says how much the page unpacks to and which the decoder obeys. Only then is anything decoded.
Text comes as positions in a list of texts, so that a long text that every row repeats is seen once.

    footer    names, types, rows, no words; no chunk of columns outside the file, none counted twice
    pages     kinds that hold no more than their bytes; as many values as the footer says
    texts     none longer than the longest label there is
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from congenial.errors import BundleError

FREE_VALUES = 2**24  # that a file of any size may hold
VALUES_PER_BYTE = 512  # beyond these; what is worth publishing takes more room
ROWS_OF_A_GROUP = 2**16  # at least, but for the last: pyarrow writes 2^20
_SPARE = 2**20  # bytes of headers and rounding in one column of a group
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3  # kinds of pages
_HEADER = {_DATA: 5, _DICTIONARY: 7, _DATA_2: 8}  # kind -> field of its own header
_ENCODING = {_DATA: 2, _DICTIONARY: 2, _DATA_2: 4}  # kind -> field of its encoding
_ENCODINGS = {0, 2, 8}  # plain, and positions in a dictionary: what pyarrow writes
_STRUCT, _LARGEST_HEADER = 12, 2**16


@dataclass(frozen=True)
class Expected:
    """What a file must hold: columns in order with their types, rows where their number is known,
    and the most bytes one of its texts may have.
    """

    file: str
    schema: Any
    rows: int | None
    longest: int

    def read(self, content: bytes, columns: list[str] | None = None) -> Any:
        """The file (or some columns of it) as an Arrow table; BundleError if it is another."""
        import pyarrow as pa

        try:
            self._check(content)
            return self._decode(content, columns)
        except (OSError, pa.ArrowException, MemoryError, OverflowError, ValueError):
            raise self._refused("cannot be read") from None

    def _refused(self, why: str) -> BundleError:
        return refused(self.file, why)

    def _check(self, content: bytes) -> None:
        """Footer and headers of pages; nothing is decoded."""
        import pyarrow.parquet as pq

        file = pq.ParquetFile(io.BytesIO(content))
        metadata = file.metadata
        if not file.schema_arrow.equals(self.schema):
            raise self._refused("does not have the expected columns and types")
        if not file.schema_arrow.equals(self.schema, check_metadata=True):
            raise self._refused("has unexpected text in its footer")
        if self.rows is not None and metadata.num_rows != self.rows:
            raise self._refused(f"has {metadata.num_rows} rows; there must be {self.rows}")
        if metadata.num_rows * metadata.num_columns > FREE_VALUES + VALUES_PER_BYTE * len(content):
            raise self._refused("is far too small for the number of its rows")
        groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        rows = [group.num_rows for group in groups]
        if sum(rows) != metadata.num_rows or any(n < ROWS_OF_A_GROUP for n in rows[:-1]):
            raise self._refused("has rows that do not add up")
        chunks = [group.column(at) for group in groups for at in range(metadata.num_columns)]
        if sum(max(0, chunk.total_compressed_size) for chunk in chunks) > len(content):
            raise self._refused("uses some of its bytes twice")
        for group in groups:
            for at in range(metadata.num_columns):
                self._check_chunk(content, group.column(at), group.num_rows)

    def _check_chunk(self, content: bytes, chunk: Any, rows: int) -> None:
        """The pages of one column in one group of rows."""
        first = chunk.data_page_offset
        if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < first:
            first = chunk.dictionary_page_offset
        end = first + chunk.total_compressed_size
        if first < 0 or not first <= end <= len(content) or chunk.num_values != rows:
            raise self._refused("has a footer that contradicts its rows")
        room, values, dictionaries, at = _SPARE + 2 * rows * (16 + self.longest), 0, 0, first
        while values < rows and at < end:
            page = self._page(content, at, end)
            room -= page.unpacked
            values += page.values if page.kind != _DICTIONARY else 0
            dictionaries += page.kind == _DICTIONARY
            if room < 0 or values > rows or dictionaries > 1 or page.values > max(rows, 1):
                raise self._refused("unpacks to far more than its rows need")
            at = page.end
        if values != rows:
            raise self._refused("has fewer values than rows")

    def _page(self, content: bytes, at: int, end: int) -> _Page:
        reader = _Compact(content, at, min(end, at + _LARGEST_HEADER))
        try:
            header = reader.struct()
            kind, unpacked, packed = header[1], header[2], header[3]
            own = header[_HEADER[kind]]
            page = _Page(kind, unpacked, own[1], reader.at + packed)
            usual = own[_ENCODING[kind]] in _ENCODINGS
        except (KeyError, IndexError, TypeError, RecursionError):
            raise self._refused("has a page that cannot be read") from None
        if not usual or min(packed, unpacked, page.values) < 0 or page.end > end:
            raise self._refused("has a page of a kind that bundles do not use")
        return page

    def _decode(self, content: bytes, columns: list[str] | None) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        names = columns if columns is not None else self.schema.names
        texts = [name for name in names if self.schema.field(name).type == pa.string()]
        file = pq.ParquetFile(io.BytesIO(content), read_dictionary=texts)
        table = file.read(columns=names, use_threads=False)
        for name in texts:
            for piece in table[name].chunks:
                most = pc.max(pc.binary_length(piece.dictionary)).as_py()
                if (most or 0) > self.longest:
                    raise self._refused(f"has a longer text in column '{name}' than any label")
        return table.select(names).cast(pa.schema([self.schema.field(name) for name in names]))


def same_values(file: str, content: bytes, ours: bytes) -> bool:
    """Whether a file from outside holds the columns, types, rows and values of ours, in its order.

    Bytes depend on the version of the library that wrote them; a digest binds those. BundleError
    for a file that says something else in its footer, or cannot be read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if content == ours:
        return True
    table = pq.ParquetFile(io.BytesIO(ours)).read(use_threads=False)
    texts = [column for column in table.columns if column.type == pa.string() and len(column)]
    longest = max((pc.max(pc.binary_length(column)).as_py() or 0 for column in texts), default=0)
    expected = Expected(file, table.schema, table.num_rows, longest)
    return bool(expected.read(content).equals(table))


def column_names(file: str, content: bytes) -> list[str]:
    """The names of a file's columns, as its footer has them; BundleError if there is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(io.BytesIO(content)).names)
    except (OSError, pa.ArrowException, MemoryError, OverflowError, ValueError):
        raise refused(file, "cannot be read") from None


def refused(file: str, why: str) -> BundleError:
    """What is said of a file that is not ours."""
    return BundleError(f"{file} {why}.", remedy="Get a fresh copy of the bundle.")


def numbers(column: Any) -> Any:
    """A column of 64-bit numbers as a numpy array; pyarrow's own way would load all of pandas."""
    import numpy as np

    if column.null_count:
        return column.to_numpy()
    kind = np.dtype(str(column.type).replace("double", "float64"))
    arrays = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate([np.empty(0, kind), *arrays])


@dataclass(frozen=True)
class _Page:
    """What a page's own header says: kind, bytes once unpacked, values, where the next begins."""

    kind: int
    unpacked: int
    values: int
    end: int


class _Compact:
    """Thrift's compact protocol, as far as headers of pages need it: numbers, texts, structs."""

    def __init__(self, content: bytes, at: int, end: int) -> None:
        self.content, self.at, self.end = content, at, end

    def struct(self) -> dict[int, Any]:
        """The fields of a struct by their numbers."""
        fields: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            fields[field] = self._value(head & 15)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._number()
        if kind == 8:
            return self._skip(self._unsigned())
        if kind == _STRUCT:
            return self.struct()
        raise KeyError(kind)

    def _byte(self) -> int:
        if self.at >= self.end:
            raise IndexError
        self.at += 1
        return self.content[self.at - 1]

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise IndexError

    def _number(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, many: int) -> None:
        if many > self.end - self.at:
            raise IndexError
        self.at += many


def as_parquet(table: Any) -> bytes:
    """An Arrow table as the bytes of a Parquet file."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
