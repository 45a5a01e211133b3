"""Properties of a whole dataset, in words: which scenarios must not be told apart.

    share("income = '>50K'", between=(0.45, 0.55))
    share("income = '>50K'", values=[0.4, 0.45, 0.5, 0.55, 0.6], gap=0.1)
    together(share(...), share(...))
    scenarios(({"ward = 'a'": 0.2, "ward = 'b'": 0.3}, {"ward = 'a'": 0.3, "ward = 'b'": 0.3}))

distribution-privacy, Example 2.1. A scenario fixes the shares of disjoint groups exactly; records
outside all of them fill the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from congenial.data.arguments import expect
from congenial.data.rational import exact, written
from congenial.errors import PlanError, StructureError


@dataclass(frozen=True)
class Scenario:
    """Shares of disjoint groups of records, each a condition; the rest is in none of them."""

    shares: tuple[tuple[str, Fraction], ...]

    def __post_init__(self) -> None:
        for condition, value in self.shares:
            if not 0 <= value <= 1:
                raise StructureError(
                    f"a share of {written(value)} for {condition} is impossible.",
                    remedy="Give a share between 0 and 1.",
                )
        if not self.shares or sum(value for _, value in self.shares) > 1:
            raise StructureError(
                "a scenario has no group, or its shares add up to more than 1.",
                remedy="Give shares of disjoint groups.",
            )

    @property
    def words(self) -> str:
        """For example "the share of records with sex = 'f' is 0.45"."""
        return " and ".join(
            f"the share of records with {condition} is {written(value)}"
            for condition, value in self.shares
        )

    def sizes(self, records: int) -> tuple[int, ...]:
        """Records in each group, and in none; refused where a share is not a whole number."""
        sizes = []
        for condition, value in self.shares:
            size = value * records
            if size.denominator != 1:
                low, high = int(size), int(size) + 1
                raise StructureError(
                    f"{records} records cannot have a share of {written(value)} with {condition}.",
                    remedy=f"The nearest shares are {low}/{records} and {high}/{records}.",
                )
            sizes.append(int(size))
        return (*sizes, records - sum(sizes))


@dataclass(frozen=True)
class Property:
    """Pairs of scenarios that must not be told apart, and the same in words.

    `words` continues "two ways in which the whole dataset may have come about, ".
    """

    pairs: tuple[tuple[Scenario, Scenario], ...]
    words: str

    def __post_init__(self) -> None:
        if not self.pairs:
            raise StructureError("there are no two scenarios to hide.", remedy="Give a pair.")
        for scenario, other in self.pairs:
            if scenario == other:
                raise StructureError(
                    f"a pair has gap 0: in both scenarios {scenario.words}.",
                    remedy="Give two scenarios that differ.",
                )

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Every scenario once, in order of first appearance."""
        return tuple(dict.fromkeys(scenario for pair in self.pairs for scenario in pair))

    @property
    def conditions(self) -> tuple[str, ...]:
        """Every condition once."""
        return tuple(
            dict.fromkeys(text for scenario in self.scenarios for text, _ in scenario.shares)
        )


def share(
    condition: str,
    *,
    between: Sequence[Any] | None = None,
    values: Sequence[Any] | None = None,
    gap: Any = None,
) -> Property:
    """Hide which of two values a share has, or any two of a grid at most `gap` apart.

    >>> share("sex = 'f'", between=(0.45, 0.55)).words
    "one in which the share of records with sex = 'f' is 0.45 and one in which it is 0.55"
    """
    expect(condition, str, "the condition", "Give text.", StructureError)
    if (between is None) == (values is None) or (values is None) != (gap is None):
        raise StructureError(
            f"the share of {condition} to hide is missing.",
            remedy="Give between = (low, high), or values with gap.",
        )
    if between is not None:
        low, high = _shares(between, "between", 2)
        _apart(abs(high - low), condition)
        first, second = sorted((low, high))
        pair = (Scenario(((condition, first),)), Scenario(((condition, second),)))
        return Property(
            (pair,),
            f"one in which {pair[0].words} and one in which it is {written(second)}",
        )
    grid = sorted(set(_shares(values or (), "values", None)))
    distance = Fraction(exact(gap, "gap"))
    _apart(distance, condition)
    close = [(p, q) for p, q in combinations(grid, 2) if q - p <= distance]
    if not close:
        raise StructureError(
            f"no two values for the share of {condition} are within {written(distance)}.",
            remedy="Give closer values or a larger gap.",
        )
    pairs = tuple((Scenario(((condition, p),)), Scenario(((condition, q),))) for p, q in close)
    listed = ", ".join(written(value) for value in grid)
    return Property(
        pairs,
        f"in which the share of records with {condition} differs by at most "
        f"{written(distance)} (among {listed})",
    )


def _shares(values: Sequence[Any], where: str, length: int | None) -> list[Fraction]:
    if not isinstance(values, list | tuple) or len(values) != (length or len(values)):
        raise StructureError(f"{where} is not a list of shares.", remedy="Give two shares.")
    return [Fraction(exact(value, where)) for value in values]


def _apart(distance: Fraction, condition: str) -> None:
    if distance <= 0:
        raise StructureError(
            f"the gap for the share of {condition} is 0, so there is nothing to hide.",
            remedy="Give two different shares.",
        )


def scenarios(*pairs: tuple[Mapping[str, Any], Mapping[str, Any]]) -> Property:
    """Hide which of two scenarios holds, for each pair; a scenario maps condition to share."""
    read = tuple((_scenario(first), _scenario(other)) for first, other in pairs)
    words = "; ".join(f"one in which {a.words} and one in which {b.words}" for a, b in read[:4])
    return Property(read, words + ("; and further such pairs" if len(read) > 4 else ""))


def _scenario(shares: Mapping[str, Any]) -> Scenario:
    return Scenario(tuple((text, Fraction(exact(v, text))) for text, v in shares.items()))


def together(*properties: Property) -> Property:
    """Several properties at once: the pairs of all of them.

    Each pair is one that some property names, each once. That two properties change at the same
    time is hidden only if a property of its own says so.
    """
    for hidden in properties:
        expect(hidden, Property, "a property", "Use share(...) or scenarios(...).", StructureError)
    pairs = tuple(dict.fromkeys(pair for hidden in properties for pair in hidden.pairs))
    return Property(pairs, ", or ".join(hidden.words for hidden in properties))


def read_property(spec: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Property:
    """The `protect` entry of a plan: one table, or a list of tables for several properties.

    >>> read_property({"share": "sex = 'f'", "between": 0.45, "and": 0.55}).conditions
    ("sex = 'f'",)
    """
    if not isinstance(spec, Mapping):
        expect(spec, (list, tuple), "protect", "State a share and two values.", PlanError)
        if not spec:
            raise PlanError("protect is empty.", remedy="State a share and two values.")
        for entry in spec:
            expect(entry, Mapping, "an entry of protect", "Give a table of keys.", PlanError)
        return together(*(read_property(entry) for entry in spec))
    keys = set(spec)
    if keys == {"share", "between", "and"}:
        return share(spec["share"], between=(spec["between"], spec["and"]))
    if keys == {"share", "values", "gap"}:
        return share(spec["share"], values=spec["values"], gap=spec["gap"])
    if keys == {"scenarios"}:
        return scenarios(*((entry, other) for entry, other in spec["scenarios"]))
    raise PlanError(
        f"protect has the keys {', '.join(sorted(map(str, keys))) or 'none'}.",
        remedy="Give share with between and 'and', share with values and gap, or scenarios.",
    )
