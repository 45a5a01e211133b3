"""One-way margins: the hardest set cover that published margins allow.

Give person i the answer y, different on some features. For each such feature somebody else who has
y's level must take i's old one, and one person can do it for several features at once. The records
that differ are 1 + the least number of others that together have all of y's levels (a minimum set
cover). Margins leave open who has which level, feature by feature, so the worst database is found
by choosing, for each feature, the rarest level and the people who have it.

Source: semi-dp, Theorem 16, in the robust reading; its bound (the number of features) is attained
when the rarest levels fit side by side among the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

MOST_FEATURES = 6  # for the exact search; bounds hold beyond


class Cover(NamedTuple):
    """The number of people needed in the worst arrangement, and whether it is attained."""

    people: int
    exact: bool


def hardest_cover(rarest: Sequence[int], others: int) -> Cover:
    """Most people ever needed to show all of some levels, held by `rarest[k]` of `others` people.

    Whom they are held by may be chosen; a cover exists as long as somebody holds each level.

    >>> hardest_cover([2, 2, 2], 3)  # two in every pair of features: two people are enough
    Cover(people=2, exact=True)
    """
    held = tuple(sorted(rarest))
    if not held:
        return Cover(1, True)  # nothing to show, but somebody must make room
    low, high = _side_by_side(held, others), _greedy(held, others)
    if low == high or len(held) > MOST_FEATURES:
        return Cover(high, low == high)
    return _search(held, others, low, high)


def _side_by_side(held: tuple[int, ...], others: int) -> int:
    """Features whose holders can be all different people: as many are needed to show them."""
    return max(1, int(np.searchsorted(np.cumsum(held), others, side="right")))


def _greedy(held: tuple[int, ...], others: int) -> int:
    """People that are always enough: somebody holds at least the average number of open levels."""
    left, people = len(held), 0
    while left:
        left -= max(1, -(-sum(held[:left]) // others))  # those left open are taken as the rarest
        left, people = max(left, 0), people + 1
    return people


@lru_cache(maxsize=4096)
def _search(held: tuple[int, ...], others: int, low: int, high: int) -> Cover:
    """The largest number in low..high that some arrangement needs, by integer programming.

    An arrangement is a number of people for each set of levels held. If sets are allowed with all
    their subsets, few people cover everything exactly if few of the allowed sets *partition* it.
    """
    for needed in range(high, low, -1):
        exists = _arrangement(held, others, needed)
        if exists is False:  # shares of people exist that do not round: leave room for rounding
            exists = _arrangement(held, others, needed, spare=len(held)) or _arrangement(
                held, others, needed, whole=True
            )
        if exists is not None:
            return Cover(needed, exists)
    return Cover(low, True)


def _arrangement(
    held: tuple[int, ...], others: int, needed: int, *, spare: int = 0, whole: bool = False
) -> bool | None:
    """Whether some arrangement needs that many people: True, None (no), False (cannot be told).

    With `whole` off, people may be shared between sets at first, which is much quicker.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    features = range(len(held))
    sets = [frozenset(c) for size in features for c in combinations(features, size + 1)]
    most = np.array([min(held[k] for k in s) for s in sets], dtype=float)
    count = len(sets)
    rows, low, high = _conditions(sets, held, max(others - spare, 0), needed)
    found = milp(
        np.zeros(2 * count),
        constraints=LinearConstraint(rows, low, high),
        integrality=np.repeat([int(whole), 1], count),
        bounds=Bounds(0, np.concatenate([most, np.ones(count)])),
    )
    if found.status == 2:  # proved infeasible
        return None
    if found.x is None:
        return False
    people = {s: int(n + 1e-6) for s, n in zip(sets, found.x[:count], strict=True)}
    for k in features:  # who holds the rest, holds nothing else
        people[frozenset({k})] += held[k] - sum(n for s, n in people.items() if k in s)
    fits = sum(people.values()) <= others and min(people.values()) >= 0
    return fits and _needs([s for s, n in people.items() if n], needed)


def _conditions(
    sets: list[frozenset[int]], held: tuple[int, ...], others: int, needed: int
) -> tuple[np.ndarray, list[float], list[float]]:
    """Rows over people with each set, then whether the set is allowed; and their limits."""
    index, count = {s: i for i, s in enumerate(sets)}, len(sets)
    entries: list[dict[int, float]] = []
    low: list[float] = []
    high: list[float] = []

    def require(row: dict[int, float], least: float, most: float) -> None:
        entries.append(row)
        low.append(least)
        high.append(most)

    for k, number in enumerate(held):
        require({index[s]: 1.0 for s in sets if k in s}, number, number)
    require(dict.fromkeys(range(count), 1.0), 0, others)
    for i, s in enumerate(sets):
        require({i: 1.0, count + i: -float(min(held[k] for k in s))}, -np.inf, 0)
        for k in s if len(s) > 1 else ():  # allowed with all subsets
            require({count + i: 1.0, count + index[s - {k}]: -1.0}, -np.inf, 0)
    for parts in _partitions(tuple(range(len(held))), needed - 1):
        require({count + index[s]: 1.0 for s in parts}, 0, len(parts) - 1)
    rows = np.zeros((len(entries), 2 * count))
    for row, some in zip(rows, entries, strict=True):
        row[list(some)] = list(some.values())
    return rows, low, high


def _needs(held: list[frozenset[int]], needed: int) -> bool:
    """Whether fewer than `needed` of some sets cannot have everything that all of them have."""
    everything = frozenset().union(*held)
    fewer = combinations(held, min(needed - 1, len(held)))
    return all(frozenset().union(*some) != everything for some in fewer)


def _partitions(items: tuple[int, ...], most: int) -> Iterator[list[frozenset[int]]]:
    """Partitions into at most that many parts."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for parts in _partitions(rest, most):
        for i, part in enumerate(parts):
            yield [*parts[:i], part | {first}, *parts[i + 1 :]]
        if len(parts) < most:
            yield [frozenset({first}), *parts]
