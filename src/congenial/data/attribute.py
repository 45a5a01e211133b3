"""One variable of the schema: its levels, the numbers behind them, and its coarser readings.

A level is a public label. For numeric variables each level stands for a half-open interval
[lower, upper) whose ends are exact (`int` or `Fraction`), so that a condition such as
``age >= 18`` is decided by arithmetic and never by rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from congenial.data.rational import Number, exact, written
from congenial.errors import SchemaError, some_of

Kind = Literal["categorical", "bins", "integers"]
Interval = tuple[Number | None, Number | None]

REFUSE = "refuse"
MAX_LEVELS = 10_000_000
OWNERS = ("row", "unit", "unit size")  # whose an attribute is; the last is counted, not read


def check_name(name: object, what: str) -> str:
    """Return `name` if it can label something: text, not blank, no control character."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise SchemaError(
            f"{what} {name!r} is not a name.",
            remedy="Use non-empty text without control characters.",
        )
    return name


def check_names(names: Sequence[object], what: str) -> None:
    """`check_name` for each of many; all at once where nothing is wrong."""
    if not (set(map(type, names)) <= {str} and "".join(names).isprintable()):  # type: ignore[arg-type]
        for name in names:
            check_name(name, what)
    if not all(names) or any(map(str.isspace, names)):  # type: ignore[arg-type]
        for name in names:
            check_name(name, what)


def shared(names: Sequence[str]) -> tuple[str, ...]:
    """The same names, equal ones as one object: a million areas lie in few counties."""
    first_equal: dict[str, str] = {}
    return tuple(map(first_equal.setdefault, names, names))


def refuse_repeats(names: Iterable[str], what: str) -> None:
    """Raise SchemaError naming the first of `names` that occurs twice."""
    names = list(names)
    if len(set(names)) == len(names):
        return
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise SchemaError(
            f"{what} {repeated[0]!r} occurs more than once.", remedy="Give each its own name."
        )


@dataclass(frozen=True)
class UnitIntervals(Sequence[Interval]):
    """[low, low + 1), ..., [high, high + 1), made when asked for: there may be millions."""

    low: int
    high: int

    def __len__(self) -> int:
        return self.high - self.low + 1

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return tuple(self[i] for i in range(*at.indices(len(self))))
        value = range(self.low, self.high + 1)[at]
        return value, value + 1


@dataclass(frozen=True)
class Attribute:
    """One variable: a name, its levels in order, and what to do with values that fit none.

    kind         levels                                                  give
    categorical  labels as listed                                        `levels`
    bins         one per interval [edge, next edge), label from edges    `edges`, `top`, `bottom`,
                                                                         `whole_values`
    integers     low, low + 1, ..., high, each its own level             `low`, `high`

    `top` labels [last edge, inf) and `bottom` labels (-inf, first edge); without them the last
    edge is excluded and values outside the edges are "other". Bins whose edges are all whole
    are taken to hold whole numbers: [5, 10) is labelled "5-9", [18, 19) is "18"; otherwise
    [0, 0.5) is labelled "0-0.5". With a negative edge the sign is kept apart: "-5 to -1".
    `whole_values` says that there are no others: 9.5 is then in no bin and is "other", as it
    always is among integers. Without it 9.5 is counted in "5-9".

    `missing` (NULL, NaN) and `other` (a value outside the schema) are "refuse" or a level's
    label; a label not yet among the levels is appended. Such an extra level has no number.

    `coarser` maps a name to one parent label per level, in the order of the levels (county in
    state; a chain is several names). It may leave out the appended levels, which then are their
    own parents.

    `of` says whose it is: "row", or "unit" where all rows of a unit share its value (a household's
    tenure); tabulation checks that. "unit size" is the number of rows of the unit itself, which is
    counted and needs no column.

    `label` and `labels` (by level, or by parent) are words for readers: reports, files and pictures
    show them, and nothing depends on them.

    `from_file` says that the levels come from a file that a plan names: no error quotes them.

    >>> Attribute("age", "bins", edges=(0, 5, 18), top="18+", missing="unknown").levels
    ('0-4', '5-17', '18+', 'unknown')
    """

    def __repr__(self) -> str:
        some = some_of(self.levels[:6])[:160]
        return f"Attribute({self.name!r}, {self.kind}, {self.size} categories: {some})"

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    edges: tuple[Number, ...] = ()
    top: str | None = None
    bottom: str | None = None
    low: int | None = None
    high: int | None = None
    coarser: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: str = REFUSE
    other: str = REFUSE
    whole_values: bool = False
    of: str = "row"
    label: str = field(default="", compare=False)
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)
    from_file: bool = field(default=False, repr=False, compare=False)
    intervals: Sequence[Interval] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name, "attribute")
        self._refuse_foreign_fields()
        if self.of not in OWNERS:
            raise SchemaError(
                f"attribute {self.name!r}: of = {str(self.of)[:40]!r} is not a value that `of` "
                "can have.",
                remedy='Write of = "unit" for what all rows of a unit share, of = "unit size" '
                "for the number of its rows, or leave it out.",
            )
        if self.of == "unit size" and self.kind == "categorical":
            raise SchemaError(
                f'attribute {self.name!r} is of = "unit size", a number, and has labels.',
                remedy="Give integers = [1, 8], or edges.",
            )
        if self.kind == "bins":
            edges = tuple(exact(edge, f"attribute {self.name!r}, edges") for edge in self.edges)
            _set(self, "edges", edges)
            self._refuse_broken_edges()
            intervals: Sequence[Interval] = self._bin_intervals()
            own = self._bin_labels(intervals)
        elif self.kind == "integers":
            low, high = self._range()
            _set(self, "whole_values", True)
            intervals = UnitIntervals(low, high)
            own = tuple(map(str, range(low, high + 1)))
        else:
            intervals, own = (), tuple(self.levels)
        _set(self, "intervals", intervals)
        self._set_levels(own)
        _set(self, "coarser", MappingProxyType(self._parents(len(own))))
        self._refuse_foreign_labels()
        _set(self, "labels", MappingProxyType(dict(self.labels)))

    def _refuse_foreign_labels(self) -> None:
        if self.label:
            check_name(self.label, f"attribute {self.name!r}: label")
        if not self.labels:
            return
        categories = {
            *self.levels,
            *(parent for parents in self.coarser.values() for parent in parents),
        }
        for level, label in self.labels.items():
            check_name(label, f"attribute {self.name!r}: label")
            if level not in categories:
                raise SchemaError(
                    f"attribute {self.name!r}: labels names {level!r}, which is not one of its "
                    "categories.",
                    remedy="Name categories as the schema writes them, its own or those of a "
                    "coarser name.",
                )
        for levels in (
            self.levels,
            *(dict.fromkeys(coarser_levels) for coarser_levels in self.coarser.values()),
        ):
            labels = [self.labels.get(level, level) for level in levels]
            refuse_repeats(labels, f"attribute {self.name!r}: the label")

    def __hash__(self) -> int:
        return hash((self.name, self.kind, self.levels, self.edges))

    def __reduce__(self) -> tuple[type[Attribute], tuple[object, ...]]:
        # A read-only mapping cannot be pickled; a schema is public and may travel to workers.
        values = [getattr(self, member.name) for member in fields(self) if member.init]
        return Attribute, tuple(dict(v) if isinstance(v, Mapping) else v for v in values)

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.levels)

    @property
    def whole(self) -> bool:
        """Whether its numbers are whole: an integer range, or bins with whole edges only."""
        return self.kind == "integers" or (
            self.kind == "bins" and all(isinstance(edge, int) for edge in self.edges)
        )

    def code(self, label: str) -> int:
        """Position of the level with this label; SchemaError if there is none."""
        try:
            return self.levels.index(label)
        except ValueError:
            raise SchemaError(f"attribute {self.name!r} has no category {label!r}.") from None

    def _refuse_foreign_fields(self) -> None:
        allowed = {
            "categorical": set(),
            "bins": {"edges", "top", "bottom", "whole"},
            "integers": {"low", "high", "whole"},
        }
        if self.kind not in allowed:
            raise SchemaError(
                f"attribute {self.name!r} has unknown kind {self.kind!r}.",
                remedy="Use 'categorical', 'bins' or 'integers'.",
            )
        optional = {"top": self.top, "bottom": self.bottom, "low": self.low, "high": self.high}
        foreign = {name for name, value in optional.items() if value is not None}
        foreign |= {"edges"} if self.edges else set()
        foreign |= {"whole"} if self.whole_values else set()
        foreign -= allowed[self.kind]
        if foreign:
            raise SchemaError(
                f"attribute {self.name!r} is {self.kind} and has no {sorted(foreign)[0]!r}.",
                remedy="Remove it.",
            )

    def _refuse_broken_edges(self) -> None:
        if self.whole_values and not self.whole:
            raise SchemaError(
                f"attribute {self.name!r} has whole = true and edges that are not whole numbers.",
                remedy="Use whole numbers as edges, or leave out whole.",
            )

    def _bin_intervals(self) -> tuple[Interval, ...]:
        edges = self.edges
        if not edges or (len(edges) == 1 and self.top is None and self.bottom is None):
            raise SchemaError(
                f"attribute {self.name!r} has fewer than two edges.",
                remedy="Give at least two edges, or one with a top or bottom label.",
            )
        for left, right in pairwise(edges):
            if left >= right:
                raise SchemaError(
                    f"attribute {self.name!r}: edge {written(right)} comes after {written(left)}.",
                    remedy="List the edges in strictly increasing order.",
                )
        inner: list[Interval] = list(pairwise(edges))
        bottom: list[Interval] = [] if self.bottom is None else [(None, edges[0])]
        top: list[Interval] = [] if self.top is None else [(edges[-1], None)]
        return (*bottom, *inner, *top)

    def _bin_labels(self, intervals: Iterable[Interval]) -> tuple[str, ...]:
        step = 1 if self.whole else 0
        between = " to " if self.edges[0] < 0 else "-"

        def label(lower: Number | None, upper: Number | None) -> str:
            if lower is None:
                return str(self.bottom)
            if upper is None:
                return str(self.top)
            last = upper - step
            return written(lower) if lower == last else written(lower) + between + written(last)

        return tuple(label(lower, upper) for lower, upper in intervals)

    def _range(self) -> tuple[int, int]:
        ends = (self.low, self.high)
        if any(not isinstance(end, int) or isinstance(end, bool) for end in ends):
            raise SchemaError(
                f"attribute {self.name!r} needs two whole numbers as its range.",
                remedy="Write for example integers = [1, 8].",
            )
        low, high = int(self.low or 0), int(self.high or 0)
        if low > high or high - low >= MAX_LEVELS or max(abs(low), abs(high)) >= 2**62:
            raise SchemaError(
                f"attribute {self.name!r} has the range {low} to {high}.",
                remedy=f"Give low <= high below 2^62 and at most {MAX_LEVELS:,} categories.",
            )
        return low, high

    def _set_levels(self, own: tuple[str, ...]) -> None:
        levels = list(own)
        if self.kind != "integers":  # whose labels are numbers, each once
            check_names(levels, f"attribute {self.name!r}: level")
            refuse_repeats(levels, f"attribute {self.name!r}: level")
        if not levels:
            raise SchemaError(
                f"attribute {self.name!r} has no categories.", remedy="List at least one category."
            )
        for rule in (self.missing, self.other):
            check_name(rule, f"attribute {self.name!r}: level")
            if rule != REFUSE and rule not in levels:
                levels.append(rule)
        if self.kind != "categorical" and self.levels not in ((), tuple(levels)):
            raise SchemaError(
                f"attribute {self.name!r}: its categories follow from its numbers.",
                remedy="Leave out levels.",
            )
        if len(levels) > MAX_LEVELS:
            raise SchemaError(f"attribute {self.name!r} has more than {MAX_LEVELS} categories.")
        _set(self, "levels", tuple(levels))

    def _parents(self, declared: int) -> dict[str, tuple[str, ...]]:
        result = {}
        for name, parents in self.coarser.items():
            check_name(name, f"attribute {self.name!r}: coarser name")
            check_names(parents, f"{name!r}: level")
            if len(parents) not in (declared, self.size):
                raise SchemaError(
                    f"{name!r} gives {len(parents)} parents for the {declared} categories of "
                    f"{self.name!r}.",
                    remedy="Give one parent per category, in the same order.",
                )
            result[name] = shared((*parents, *self.levels[len(parents) :]))
        return result


def _set(target: Attribute, name: str, value: object) -> None:
    object.__setattr__(target, name, value)


@dataclass(frozen=True, eq=False)
class Axis:
    """An attribute at some resolution: what one dimension of a table runs over.

    `of_base[i]` is the axis level that level i of the base attribute belongs to; it is the
    identity for the attribute itself. Levels of a coarser axis come in order of first appearance.
    """

    name: str
    base: str
    levels: tuple[str, ...]
    of_base: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        of_base = np.array(self.of_base, dtype=np.int64)
        size = len(self.levels)
        reached = of_base.ndim == 1 and (of_base.min(initial=0), of_base.max(initial=-1)) == (
            0,
            size - 1,
        )
        if not reached or not np.bincount(of_base, minlength=size).all():
            raise SchemaError(
                f"axis {self.name!r}: its map from {self.base!r} does not reach each of its "
                f"{size} levels.",
                remedy="Map every level of the attribute, and leave no axis level empty.",
            )
        of_base.flags.writeable = False
        object.__setattr__(self, "of_base", of_base)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Axis):
            return NotImplemented
        mine, theirs = (self.name, self.base, self.levels), (other.name, other.base, other.levels)
        return mine == theirs and np.array_equal(self.of_base, other.of_base)

    def __hash__(self) -> int:
        return hash((self.name, self.base, self.levels))

    @property
    def size(self) -> int:
        """Number of levels."""
        return len(self.levels)

    def map_from(self, finer: Axis) -> NDArray[np.int64]:
        """Level of this axis for each level of `finer`, an axis of the same attribute.

        Raises SchemaError when a level of `finer` straddles two levels of this axis.
        """
        if finer.base != self.base or len(finer.of_base) != len(self.of_base):
            raise SchemaError(
                f"{self.name!r} and {finer.name!r} do not belong to the same attribute."
            )
        result = np.empty(finer.size, dtype=np.int64)
        result[finer.of_base] = self.of_base
        if not np.array_equal(result[finer.of_base], self.of_base):
            raise SchemaError(
                f"{self.name!r} cannot be summed from {finer.name!r}: a category of "
                f"{finer.name!r} belongs to two categories of {self.name!r}.",
                remedy=f"Start from {self.base!r}.",
            )
        return result


def axis_of(attribute: Attribute, name: str) -> Axis:
    """The axis called `name`: the attribute itself, or one of its coarser readings."""
    if name == attribute.name:
        return Axis(name, name, attribute.levels, np.arange(attribute.size))
    parents = attribute.coarser[name]
    position = {label: code for code, label in enumerate(dict.fromkeys(parents))}
    of_base = np.fromiter(map(position.__getitem__, parents), dtype=np.int64, count=len(parents))
    return Axis(name, attribute.name, tuple(position), of_base)
