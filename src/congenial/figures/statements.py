"""Published statistics as data: what a curator must publish exactly, with the words she wrote.

Every statement is a linear map of the confidential table with integer weights: a sum over cells,
split by zero or more axes, and a relation. `total`, `margin`, `count`, `linear`,
`structural_zeros`, `at_least` and `at_most` only differ in how they fill the same five fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from congenial.data.arguments import expect, texts
from congenial.data.attribute import Axis
from congenial.data.schema import Schema
from congenial.errors import FigureError

Relation = Literal["=", ">=", "<=", "zero"]


CONDITION = 'Give text such as "age >= 18".'


@dataclass(frozen=True)
class Statement:
    """A published statistic: `sum over terms of weight * count(condition)`, for each cell of `by`.

    An empty condition means everybody. `relation` is "=" for a figure published exactly, ">=" or
    "<=" for a public bound (`bound`), "zero" for cells that are empty by definition. `units`: it
    counts units (households), by attributes that all rows of a unit share, not rows.
    """

    label: str
    terms: tuple[tuple[str, int], ...]
    by: tuple[str, ...] = ()
    relation: Relation = "="
    bound: int | None = None
    because: str = ""
    units: bool = False

    def __post_init__(self) -> None:
        expect(self.label, str, "the label of a figure", "Give text.", FigureError)
        expect(self.units, bool, "units", "Give True or False.", FigureError)
        if not self.label.strip():
            raise FigureError("a figure has no label.", remedy="Give it a name in words.")
        if not self.terms:
            raise FigureError(f"figure '{self.label}' has no terms.", remedy="Give a condition.")
        for condition, weight in self.terms:
            expect(condition, str, "a condition", CONDITION, FigureError)
            if isinstance(weight, bool) or not isinstance(weight, int) or weight == 0:
                raise FigureError(
                    f"figure '{self.label}': weight {weight!r} of '{condition or 'everybody'}' "
                    "must be a whole number other than 0.",
                    remedy="Multiply all weights by a number that makes them whole.",
                )
        if len(set(self.by)) != len(self.by):
            raise FigureError(
                f"figure '{self.label}' names an attribute twice in by = {list(self.by)}.",
                remedy="Name each attribute once.",
            )
        if self.relation in (">=", "<=") and self.bound is None:
            raise FigureError(
                f"figure '{self.label}' is a bound without a number.", remedy="Give the bound."
            )

    @property
    def is_total(self) -> bool:
        """Whether it is the number of people, published exactly."""
        whole = not self.by and not self.units and self.terms == (("", 1),)
        return whole and self.relation == "="

    @property
    def limit(self) -> str:
        """The bound in words, without its ground; empty for what is no bound.

        >>> at_most(count("age = '65+'"), 200).limit
        'at most 200'
        """
        if self.relation not in (">=", "<="):
            return ""
        each = f" for each {' and '.join(self.by)}" if self.by else ""
        return f"at {'least' if self.relation == '>=' else 'most'} {self.bound}{each}"

    @property
    def told(self) -> str:
        """The label with the bound, if it is one, and the ground: as a promise names it."""
        named = f"{self.label} {self.limit}" if self.limit else self.label
        return f"{named} ({self.because})" if self.because else named

    def named(self, label: str, because: str = "") -> Statement:
        """The same statistic under the words a person wrote, with its legal ground."""
        return replace(self, label=label, because=because)

    def allows(self, sums: NDArray[np.int64]) -> bool:
        """Whether sums respect a bound or a structural zero; an equality asks nothing of them.

        >>> at_most(total(), 10).allows(np.array(11)), total().allows(np.array(11))
        (False, True)
        """
        bound = self.bound or 0
        if self.relation == "=":
            return True
        if self.relation == ">=":
            return bool(np.all(sums >= bound))
        if self.relation == "<=":
            return bool(np.all(sums <= bound))
        return not np.any(sums)

    def check_value(self, value: NDArray[np.int64] | None, shape: tuple[int, ...]) -> None:
        """FigureError unless an equality, and nothing else, has a value of its axes' shape."""
        if (value is not None) != (self.relation == "="):
            raise FigureError(
                f"figure '{self.label}' has a value although it is a bound, or no value although "
                "it is exact.",
                remedy="Publish the figures again.",
            )
        if value is not None and value.shape != shape:
            raise FigureError(
                f"figure '{self.label}' has values of shape {value.shape}; its axes have {shape}.",
                remedy="Publish the figures again under this schema.",
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a bundle or a ledger; `units` only where units are counted."""
        plain = {
            "label": self.label,
            "terms": [[condition, weight] for condition, weight in self.terms],
            "by": list(self.by),
            "relation": self.relation,
            "bound": self.bound,
            "because": self.because,
        }
        return plain | ({"units": True} if self.units else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Statement:
        """Inverse of `to_dict`."""
        return cls(
            label=data["label"],
            terms=tuple((str(condition), weight) for condition, weight in data["terms"]),
            by=tuple(data["by"]),
            relation=data["relation"],
            bound=None if data["bound"] is None else int(data["bound"]),
            because=data["because"],
            units=data.get("units", False),
        )


def total(by: str | Sequence[str] = ()) -> Statement:
    """The number of people, in all or for each cell of `by`: phi(x) = sum of the cells.

    A statement only: `publish` computes its figures, which then carry no noise and no protection.
    Under "replace-one" the grand total is public whether it is stated or not; where it is, noise is
    drawn given it at the same price.

    >>> from congenial import Schema, Table, publish
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65]}})
    >>> table = Table(schema, ["sex", "age"], [[5, 9], [4, 7]])
    >>> publish(table, total(), total(by="sex")).values
    (array(25), array([14, 11]))
    """
    axes = _names(by)
    return Statement(_label("Population", axes), (("", 1),), axes)


def margin(*axes: str) -> Statement:
    """The marginal table over `axes`: the number of people for each combination of their levels.

    The same figures as `total(by=axes)`. A margin over all axes of a release leaves nothing to
    protect, and is refused when a mechanism is built.

    >>> from congenial import Schema, Table, publish
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65]}})
    >>> table = Table(schema, ["sex", "age"], [[5, 9], [4, 7]])
    >>> publish(table, margin("age")).values
    (array([ 9, 16]),)
    """
    axes = texts(axes, "margin(...)", FigureError)
    if not axes:
        raise FigureError(
            "margin() needs the name of an attribute.", remedy="Use total() for the grand total."
        )
    return Statement(_label("Margin", axes), (("", 1),), axes)


def count(condition: str, by: str | Sequence[str] = ()) -> Statement:
    """The number of people who meet a condition, in all or for each cell of `by`.

    condition: such as "age >= 18 and sex = 'f'" (docs/reference/predicate). It speaks about whole
    levels: one that cuts a bin is refused with the nearest edges.

    >>> from congenial import Schema, Table, publish
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65]}})
    >>> table = Table(schema, ["sex", "age"], [[5, 9], [4, 7]])
    >>> publish(table, count("age >= 18", by="sex")).values
    (array([9, 7]),)
    >>> publish(table, count("age >= 16"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    congenial.errors.PredicateError: age >= 16 cuts the class '0-17' of 'age', ...
    """
    axes = _names(by)
    return Statement(_label(f"Count of {condition}", axes), ((condition, 1),), axes)


def of_units(statistic: Statement) -> Statement:
    """The same statistic about units: the number of households, patients or firms, not of rows.

    It may name attributes of units only (`of = "unit"` in the schema), and needs data in which a
    unit has several rows (`max_rows`).

    >>> of_units(total(by="tenure")).label
    'Units by tenure'
    """
    expect(statistic, Statement, "what is counted", "Give for example total().", FigureError)
    return replace(statistic, label=statistic.label.replace("Population", "Units", 1), units=True)


def linear(weights: Mapping[str, int], by: str | Sequence[str] = ()) -> Statement:
    """An integer-weighted sum of counts: phi(x) = sum_j w_j #{i : x_i meets condition j}.

    weights: `{condition: weight}`; "" stands for everybody. A record that meets several conditions
    counts with the sum of their weights.

    >>> from congenial import Schema, Table, publish
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65]}})
    >>> table = Table(schema, ["sex", "age"], [[5, 9], [4, 7]])
    >>> publish(table, linear({"age < 18": 2, "": 1})).values  # 2 x 9 + 25
    (array(43),)
    """
    axes = _names(by)
    expect(weights, Mapping, "weights", 'Give for example {"age < 18": 2, "": 1}.', FigureError)
    text = " + ".join(f"{weight} x ({cond or 'everybody'})" for cond, weight in weights.items())
    return Statement(_label(text, axes), tuple(weights.items()), axes)


def structural_zeros(condition: str) -> Statement:
    """Cells that are empty by definition (a married three-year-old); known without the data.

    They get no noise, and no protection: that nobody is there is not a fact about the people. Data
    that have somebody there are refused.

    >>> structural_zeros("age < 15 and married = 'yes'").label
    "Impossible: age < 15 and married = 'yes'"
    """
    return Statement(f"Impossible: {condition}", ((condition, 1),), (), "zero", 0)


def at_least(statistic: Statement, bound: int) -> Statement:
    """A public lower bound on a statistic, known without the data: phi(x) >= bound.

    It has no figure. It says which databases are possible, so it may change how far apart
    look-alikes are; data that break it are refused.

    >>> at_least(total(by="county"), 1).label
    'Population by county: at least 1'
    """
    _check_bound(statistic, bound)
    return replace(
        statistic, label=f"{statistic.label}: at least {bound}", relation=">=", bound=bound
    )


def at_most(statistic: Statement, bound: int) -> Statement:
    """A public upper bound on a statistic, known without the data: phi(x) <= bound.

    As `at_least`; two bounds may stand on the same statistic.

    >>> from congenial import Schema, Table, publish
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65]}})
    >>> table = Table(schema, ["sex", "age"], [[5, 9], [4, 7]])
    >>> publish(table, at_most(total(), 10))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    congenial.errors.FigureError: the data contradict 'Population: at most 10'. ...
    """
    _check_bound(statistic, bound)
    return replace(
        statistic, label=f"{statistic.label}: at most {bound}", relation="<=", bound=bound
    )


def _check_bound(statistic: object, bound: object) -> None:
    expect(statistic, Statement, "what is bounded", "Give for example total().", FigureError)
    expect(bound, int, "the bound", "Give a whole number.", FigureError)


def _names(by: str | Sequence[str]) -> tuple[str, ...]:
    return texts(by, "by", FigureError)


def _label(what: str, axes: Sequence[str]) -> str:
    return f"{what} by {', '.join(axes)}" if axes else what


MOST_EMPTY = 500  # runs of empty cells that one statement names
_RUN = 100  # levels that one condition names


def empty_cells(statement: Statement, values: Any, schema: Schema) -> Statement | None:
    """Where the 0 of a published figure are, as structural zeros; None where it has none, where it
    subtracts people, or where so many runs of cells are empty that it would take long to read.
    """
    if values is None or min(weight for _, weight in statement.terms) < 0 or np.all(values):
        return None
    axes = schema.axes(statement.by)
    rows = np.reshape(values, (-1, axes[-1].size if axes else 1)) == 0
    places: list[str] = []
    for row in np.flatnonzero(rows.any(axis=1)).tolist():
        at = np.unravel_index(row, [axis.size for axis in axes[:-1]]) if axes[:-1] else ()
        above = [_levels(axis, [int(level)]) for axis, level in zip(axes, at, strict=False)]
        levels = np.flatnonzero(rows[row]).tolist()
        for first in range(0, len(levels), _RUN):
            last = [_levels(axis, levels[first : first + _RUN]) for axis in axes[-1:]]
            places.append(" and ".join([*above, *last]))
        if len(places) > MOST_EMPTY:
            return None
    terms = [
        (" and ".join(part for part in (condition and f"({condition})", place) if part), 1)
        for condition, _ in statement.terms
        for place in places
    ]
    return Statement(f"Nobody: {statement.label}", tuple(terms), (), "zero", 0)


def _levels(axis: Axis, levels: Sequence[int]) -> str:
    """A condition that some levels of an axis meet."""
    name = axis.name.replace('"', '""')
    named = ", ".join("'" + axis.levels[level].replace("'", "''") + "'" for level in levels)
    return f'"{name}" in ({named})'


FigureValues = tuple[NDArray[np.int64] | None, ...]


def without_repeats(
    statements: Sequence[Statement], values: FigureValues | None
) -> tuple[tuple[Statement, ...], FigureValues | None]:
    """Each statement once, with its figures; FigureError where a repeat has others."""
    expect(statements, (tuple, list), "the list of figures", "Give a tuple.", FigureError)
    for each in statements:
        if not isinstance(each, Statement):
            raise FigureError(
                f"{str(each)[:40]!r} is not a figure.",
                remedy="Use total(), margin(), count() and the like.",
            )
    distinct = tuple(dict.fromkeys(statements))
    if values is None or len(distinct) == len(statements):
        return distinct, values
    for statement, figures in zip(statements, values, strict=False):
        if not np.array_equal(_figures(values[statements.index(statement)]), _figures(figures)):
            raise FigureError(
                f"figure '{statement.label}' has two different values.",
                remedy="Publish the figures again.",
            )
    return distinct, tuple(values[statements.index(statement)] for statement in distinct)


def _figures(values: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return np.zeros(0, dtype=np.int64) if values is None else values
