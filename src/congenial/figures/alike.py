"""Parts of figures that say the same: the structure of a thousand counties is that of a few.

Figures on merged cells fall into connected parts, between which no figure runs: the counties, where
every figure is by county. Parts with the same entries, in the order of their rows and columns, are
one *kind*. Rank, blocks and solutions are worked out once for each kind. Whether two parts are of
one kind is decided by comparing all of their entries, never by a digest of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar, overload

import numpy as np
import scipy.sparse as sp

from congenial.figures.connected import connected
from congenial.figures.integers import Ints

ROUNDS = 8  # of passing labels along, before components are searched for one by one
KINDS_AT_ONCE = 16  # kinds of one size that are told apart by comparison with their first part
LINES_AT_ONCE = 2**16  # parts that are looked at together: a million would fill the memory


@dataclass(frozen=True, eq=False)
class PartKind:
    """Parts that say the same: one `matrix`, and the rows and columns of every part (one a line).

    Rows and columns are in ascending order. A column that no row touches is a part without rows.
    """

    matrix: sp.csr_matrix = field(repr=False)
    rows: Ints = field(repr=False)
    columns: Ints = field(repr=False)

    @property
    def parts(self) -> int:
        """How many parts are of this kind."""
        return len(self.columns)


@dataclass(frozen=True, eq=False)
class _Numbered:
    """Members (rows, or columns) of parts, part by part: the `order`, and each one's own place."""

    of_part: Ints
    parts: int

    @cached_property
    def order(self) -> Ints | None:
        """Members sorted by part; None where they are so already."""
        if np.all(self.of_part[1:] >= self.of_part[:-1]):
            return None
        return np.argsort(self.of_part, kind="stable")

    @cached_property
    def sizes(self) -> Ints:
        """Members of each part."""
        return np.bincount(self.of_part, minlength=self.parts)

    @cached_property
    def starts(self) -> Ints:
        """Where each part begins in that order."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def places(self) -> Ints:
        """Each member's place inside its part."""
        place = np.arange(len(self.of_part))
        place -= np.repeat(self.starts, self.sizes)
        if self.order is None:
            return place
        found = np.empty_like(place)
        found[self.order] = place
        return found

    def members(self, parts: Ints) -> Ints:
        """The members of parts of one size, one part a line."""
        size = int(self.sizes[parts[0]])
        at = self.starts[parts][:, np.newaxis] + np.arange(size)
        return np.asarray(at if self.order is None else self.order[at])


def kinds(matrix: sp.csr_matrix) -> list[PartKind]:
    """The connected parts of a matrix, those with equal entries together; rows without entries are
    left out.

    >>> found = kinds(sp.csr_matrix([[1, 1, 0, 0, 0], [0, 0, 2, 0, 0], [0, 0, 0, 1, 1]]))
    >>> [(one.matrix.toarray().tolist(), one.columns.tolist()) for one in found]
    [([[1, 1]], [[0, 1], [3, 4]]), ([[2]], [[2]])]
    """
    if not matrix.shape[1]:
        return []
    of_column, of_row = components(matrix)
    parts = int(of_column.max()) + 1
    entries = matrix.tocsc()
    entries.sort_indices()
    columns = _Numbered(of_column, parts)
    told = np.flatnonzero(of_row >= 0)
    rows = _Numbered(of_row[told], parts)
    place = np.full(matrix.shape[0], -1, dtype=np.int64)
    place[told] = rows.places
    found = []
    for same, said in _said(entries, columns, place, rows):
        taken = told[rows.members(same)] if len(said) else np.zeros((len(same), 0), np.int64)
        shape = (taken.shape[1], int(columns.sizes[same[0]]))
        one = sp.csr_matrix((said[:, 2], (said[:, 0], said[:, 1])), shape=shape, dtype=np.int64)
        found.append(PartKind(one, taken, columns.members(same)))
    return found


def _said(
    entries: sp.csc_matrix, columns: _Numbered, place: Ints, rows: _Numbered
) -> Iterator[tuple[Ints, Ints]]:
    """Parts of one kind, and their entries (row, column, weight; one a line)."""
    filled = np.diff(entries.indptr)
    counts = np.bincount(columns.of_part, weights=filled, minlength=columns.parts).astype(np.int64)
    column = np.repeat(np.arange(entries.shape[1], dtype=entries.indices.dtype), filled)
    order = None
    if columns.order is not None:
        order = np.argsort(columns.of_part[column], kind="stable")
    starts = np.cumsum(counts) - counts
    sizes = np.stack([counts, columns.sizes, rows.sizes], axis=1)
    narrow = _narrowest(sizes, entries.data)
    for alike in equal_lines(sizes):
        size = int(counts[alike[0]])
        said = np.empty((len(alike), size, 3), dtype=narrow)
        for some in _stretches(len(alike)):
            at = starts[alike[some]][:, np.newaxis] + np.arange(size)
            at = at if order is None else order[at]
            said[some, :, 0] = place[entries.indices[at]]
            said[some, :, 1] = columns.places[column[at]]
            said[some, :, 2] = entries.data[at]
        for same in equal_lines(said.reshape(len(alike), -1)):
            yield alike[same], said[same[0]].astype(np.int64)


def _narrowest(*numbers: Ints) -> np.dtype[Any]:
    """The type of fewest bytes that holds all numbers."""
    low = min(int(some.min(initial=0)) for some in numbers)
    high = max(int(some.max(initial=0)) for some in numbers)
    return np.min_scalar_type(min(low, -high - 1))


def _stretches(lines: int) -> Iterator[slice]:
    """All lines, some at a time: what is worked out of them takes little memory."""
    return (slice(at, at + LINES_AT_ONCE) for at in range(0, lines, LINES_AT_ONCE))


def equal_lines(lines: Any) -> Iterator[Ints]:
    """Numbers of equal lines, group by group."""
    left = np.arange(len(lines))
    for _ in range(KINDS_AT_ONCE):
        stretches = _stretches(len(left))
        alike = [np.all(lines[left[some]] == lines[left[0]], axis=1) for some in stretches]
        same = np.concatenate(alike)
        yield left[same]
        left = left[~same]
        if not len(left):
            return
    of_line = np.unique(lines[left], axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(of_line, kind="stable")
    yield from np.split(left[order], np.flatnonzero(np.diff(of_line[order])) + 1)


def components(matrix: sp.csr_matrix) -> tuple[Ints, Ints]:
    """Connected part of each column and of each row (-1 for a row without entries), numbered in the
    order of their first columns.
    """
    filled = np.diff(matrix.indptr) > 0
    rows = matrix if filled.all() else matrix[np.flatnonzero(filled)]
    of_row = np.full(matrix.shape[0], -1, dtype=np.int64)
    label = _passed_along(rows)
    if label is None:
        label = _searched(rows)
    is_first = label == np.arange(len(label))
    of_column = (np.cumsum(is_first) - 1)[label]
    of_row[filled] = of_column[rows.indices[rows.indptr[:-1]]]
    return of_column, of_row


def _passed_along(rows: sp.csr_matrix) -> Any:
    """Smallest column of each column's part, by passing it along rows; None if that takes long."""
    label = np.arange(rows.shape[1], dtype=rows.indices.dtype)
    there = np.ones(rows.nnz, dtype=np.int8)  # where entries are, whatever they are
    columns = sp.csr_matrix((there, rows.indices, rows.indptr), shape=rows.shape).tocsc()
    touched = np.flatnonzero(np.diff(columns.indptr))
    for _ in range(ROUNDS):
        least = np.minimum.reduceat(label[rows.indices], rows.indptr[:-1])
        now = label.copy()
        now[touched] = np.minimum.reduceat(least[columns.indices], columns.indptr[touched])
        now = now[now]
        if np.array_equal(now, label):
            return label
        label = now
    return None


def _searched(rows: sp.csr_matrix) -> Ints:
    """Smallest column of each column's part, by searching the graph of rows and columns."""
    count, size = rows.shape
    row = np.repeat(np.arange(count), np.diff(rows.indptr))
    part = connected((row, count + rows.indices), count + size)[count:]
    first = np.full(int(part.max()) + 1, size, dtype=np.int64)
    np.minimum.at(first, part, np.arange(size))
    return np.asarray(first[part])


K = TypeVar("K")
T = TypeVar("T")


class KindByKind(Sequence[T], Generic[K, T]):
    """Things that are alike within their kinds, kept by kind; `one` makes a single thing when it is
    asked for. Numbers run through one kind after another.
    """

    def __init__(self, kinds: Iterable[K], size: Callable[[K], int]) -> None:
        self.kinds = tuple(kinds)
        self._ends = np.cumsum([0, *(size(kind) for kind in self.kinds)])

    @abstractmethod
    def one(self, kind: K, number: int) -> T:
        """A thing of one kind, by its number there."""

    def __len__(self) -> int:
        return int(self._ends[-1])

    @overload
    def __getitem__(self, number: int) -> T: ...

    @overload
    def __getitem__(self, number: slice) -> list[T]: ...

    def __getitem__(self, number: int | slice) -> T | list[T]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        at = range(len(self))[number]
        which = int(np.searchsorted(self._ends, at, side="right")) - 1
        return self.one(self.kinds[which], at - int(self._ends[which]))

    def __iter__(self) -> Iterator[T]:
        many = np.diff(self._ends).tolist()
        pairs = zip(self.kinds, many, strict=True)
        return (self.one(kind, i) for kind, size in pairs for i in range(size))
