"""How many records look-alike databases may differ in: a* and the other readings of semi-dp.

robust      for every person and every answer the figures still allow there is a conforming database
            within a records in which the person has it, whatever the data are;
existential the same with a *table* within a moves, for one database that a stored rule picks;
literal     Definition 13 as printed: for two answers some two databases, perhaps not yours.

a* is the reading's distance, raised if need be until differences of look-alikes reach every
direction in which conforming tables differ; otherwise noise could be missing there.

Four approaches; the first that applies is taken, and `Reach.why` says which and why:

1. closed form        nested totals and crossing margins: moves inside atoms, and set covers;
2. enumeration        all conforming tables are listed and compared (`searched_distances`);
3. Graver bound       the longest irreducible move bounds the distance for all values of figures;
4. integer programme  the worst table and the cheapest move that helps, by turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures import lattice
from congenial.figures.blocks import BlockKind, blocks
from congenial.figures.figures import Figures
from congenial.figures.integers import kernel
from congenial.figures.people import Crossing, Merged, People, people_under
from congenial.pairs import searched_distances
from congenial.pairs.pairs import Supremum
from congenial.pairs.searched_distances import ListedDistances

Reading = Literal["robust", "existential", "literal"]
Metric = Literal["replace-one", "symmetric difference"]
MOST_FEATURES = 6  # of a set cover that is searched exactly; bounds hold beyond
MOST_ELEMENTS = 2_000  # of a Graver basis, up to sign, those on the way included
MOST_COLUMNS = 64  # of a matrix whose Graver basis is looked for

WHY = {
    "closed form": "the figures are nested totals or margins, for which a formula is proved",
    "enumeration": "all conforming tables are few enough to list and compare",
    "Graver bound": "the longest irreducible difference bounds it for all values of the figures",
    "integer programme": "the published values are few enough for integer programmes",
}


@dataclass(frozen=True)
class Reach:
    """A reading's distance, what it takes to reach every free direction, and connectedness.

    `connected`: whether every conforming table can be reached from every other through look-alikes
    at a*; None where that was not worked out. `single`: one database conforms, and no other.
    """

    distance: Supremum
    generating: int
    connected: bool | None
    single: bool = False

    @property
    def star(self) -> Supremum:
        """a*: the larger of the two, and at least 1; 0 if one database conforms, and no other."""
        value = max(int(self.distance.value), self.generating, 0 if self.single else 1)
        return Supremum(Fraction(value), self.distance.exact, self.distance.by)

    @property
    def why(self) -> str:
        """Why it was found in this way."""
        return WHY[self.distance.by]


def reach(figures: Figures, reading: Reading = "robust", metric: Metric = "replace-one") -> Reach:
    """A reading's distance, worked out once for equal figures; refused where nothing is proved."""
    for value, kind, choices in (
        (reading, "reading", get_args(Reading)),
        (metric, "metric", get_args(Metric)),
    ):
        if value not in choices:
            raise StructureError(
                f"{kind} = {value!r} is not known.", remedy=f"Use one of {', '.join(choices)}."
            )
    if metric == "symmetric difference" and reading != "robust":
        raise StructureError(
            f"the {reading} reading needs a public number of people.",
            remedy="Use reading = 'robust', or the replace-one metric.",
        )
    return _worked_out(figures, reading, metric)


@lru_cache(maxsize=64)
def _worked_out(figures: Figures, reading: Reading, metric: Metric) -> Reach:
    people = people_under(figures)
    in_closed_form = _closed_form(people, reading, metric)
    if in_closed_form is not None:
        return in_closed_form
    if metric == "replace-one" and _one_database(people.merged):
        return _single("enumeration")
    return search(people.merged, reading, metric)


def search(of: Merged, reading: Reading, metric: Metric) -> Reach:
    """Without a closed form: the first of the other approaches that applies."""
    for approach in (_enumerated, _bounded, _programmed):
        reached = approach(of, reading, metric)
        if reached is not None:
            return reached
    what = "; ".join(s.label for s in (*of.figures.bounds, *of.figures.equalities))
    raise StructureError(
        f"no proof covers these exact figures ({what}): {of.atoms} groups of cells are too many "
        "to work out in how many records compared datasets may differ.",
        remedy="Publish nested totals or margins exactly, or fewer or coarser figures. Running "
        "`congenial publish` first may help too.",
    )


# ---- closed form -----------------------------------------------------------------------------


def _closed_form(groups: People, reading: Reading, metric: Metric) -> Reach | None:
    """For nested totals and crossing margins, without bounds."""
    figures = groups.figures
    if figures.bounds or figures.structure == "general":
        return None
    if metric == "replace-one":
        alone = groups.known and not groups.several and _one_database(groups.merged)
        return _single("closed form") if alone else _replaced(groups, reading)
    if any(0 in crossing.block.atoms for crossing in groups.crossings):
        return None
    return _added_or_removed(groups)


def _one_database(of: Merged) -> bool:
    """Whether the figures give everybody the same answer, or leave nobody: a* = 0 (Example 3)."""
    if of.tables is None or of.people is None or len(of.tables) != 1:
        return False
    taken = of.tables[0] > 0
    return bool(np.count_nonzero(taken) <= 1 and not np.any(of.several & taken))


def _single(by: str) -> Reach:
    return Reach(Supremum(Fraction(0), True, by), 0, True, single=True)


def _replaced(groups: People, reading: Reading) -> Reach:
    """Moves inside atoms; for crossing margins 1 + the hardest set cover."""
    sizes_known = groups.known or (groups.parts == 1 and not groups.crossings)
    apart = 2 if groups.several else 1
    if reading == "literal":
        return Reach(Supremum(Fraction(apart), sizes_known), 1, True if apart == 2 else None)
    robust = reading == "robust"
    worst, exact = (apart if robust else 1), sizes_known
    # Somebody from outside may come in; then everybody in the block can make room.
    inside_only = int(robust and groups.parts == 1)
    for crossing in groups.crossings:
        for features in np.unique(crossing.margins)[
            ::-1
        ].tolist():  # as many people are always enough
            if not features or features + robust <= worst:
                break
            for people, attained in _covers(
                crossing, crossing.margins == features, without=inside_only
            ):
                if people + robust > worst:
                    worst, exact = people + robust, attained
                if features + robust <= worst:
                    break
    generating = 2 if groups.margins >= 2 else 1  # two people exchange their levels of one feature
    return Reach(Supremum(Fraction(worst), exact and sizes_known), generating, True)


def _added_or_removed(groups: People) -> Reach:
    """By symmetric difference: one row where no figure counts, two where one must make room."""
    fixed = groups.parts > int(groups.loose)
    worst, exact = (2 if fixed else 1), groups.known or not fixed
    for crossing in groups.crossings:
        inside = (
            np.ones(len(crossing.margins), dtype=bool)
            if crossing.people is None
            else crossing.people > 0
        )
        for people, attained in _covers(crossing, inside):
            if 2 * people > worst:
                worst, exact = 2 * people, exact and attained
    generating = 4 if groups.margins >= 2 else worst
    return Reach(Supremum(Fraction(worst), exact), generating, True)


def _covers(crossing: Crossing, blocks: Any, without: int = 0) -> Iterator[Cover]:
    """Most people ever needed to show all levels of some answer, `without` one of them: of some
    blocks, those that say the same once, the most features and people first.
    """
    if crossing.totals is None or crossing.people is None:
        features = np.unique(crossing.margins[blocks])[::-1]
        yield from (Cover(max(1, int(number)), False) for number in features)
        return
    open_ = crossing.shown[blocks] >= 2
    rarest = np.stack([_rarest(level[blocks]) for level in crossing.totals], axis=1)
    others = np.maximum(1, crossing.people[blocks] - without)
    keys = np.column_stack([-open_.sum(axis=1), -others, np.where(open_, rarest, 0)])
    for _, number, *holders in np.unique(keys, axis=0).tolist():
        yield hardest_cover([people for people in holders if people], -number)


def _rarest(level: Ints) -> Ints:
    """The fewest people on a level that is not empty, of each block."""
    return np.asarray(np.where(level > 0, level, np.iinfo(np.int64).max).min(axis=1))


# ---- set covers ------------------------------------------------------------------------------
#
# One-way margins: the hardest set cover that published margins allow. Give person i the answer y,
# different on some features. For each such feature somebody else who has y's level must take i's
# old one, and one person can do it for several features at once. The records that differ are 1 +
# the least number of others that together have all of y's levels (a minimum set cover). Margins
# leave open who has which level, feature by feature, so the worst database is found by choosing,
# for each feature, the rarest level and the people who have it.
#
# Source: semi-dp, Theorem 16, in the robust reading; its bound (the number of features) is attained
# when the rarest levels fit side by side among the others.


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
    holders = tuple(sorted(rarest))
    if not holders:
        return Cover(1, True)  # nothing to show, but somebody must make room
    low, high = _side_by_side(holders, others), _greedy(holders, others)
    if low == high or len(holders) > MOST_FEATURES:
        return Cover(high, low == high)
    return _search(holders, others, low, high)


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
    programme = milp(
        np.zeros(2 * count),
        constraints=LinearConstraint(rows, low, high),
        integrality=np.repeat([int(whole), 1], count),
        bounds=Bounds(0, np.concatenate([most, np.ones(count)])),
    )
    if programme.status == 2:  # proved infeasible
        return None
    if programme.x is None:
        return False
    people = {s: int(n + 1e-6) for s, n in zip(sets, programme.x[:count], strict=True)}
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


# ---- enumeration, Graver bound, integer programme ---------------------------------------------


def listed_tables(of: Merged) -> ListedDistances | None:
    """All conforming tables on merged cells, where they are few enough to compare them."""
    listed = None if of.tables is None else ListedDistances(of.tables, of.several)
    return listed if listed is not None and listed.manageable else None


def _enumerated(of: Merged, reading: Reading, metric: Metric) -> Reach | None:
    """Every pair of conforming tables is compared."""
    listed = listed_tables(of)
    if listed is None or not len(listed.tables):
        return None
    by, exact = "enumeration", of.people is not None
    if metric == "symmetric difference":
        distance = Supremum(Fraction(listed.participation), exact, by)
        return Reach(distance, listed.generating_rows, None)
    value = getattr(listed, reading)
    generating = 1 if reading == "literal" else listed.generating
    listed_reach = Reach(Supremum(Fraction(value), exact, by), generating, None)
    connected = listed.components(int(listed_reach.star.value)) <= 1
    return Reach(listed_reach.distance, generating, connected)


def _bounded(of: Merged, reading: Reading, metric: Metric) -> Reach | None:
    """A conforming table with somebody in H is one step g away, and the person takes that place.

    If somebody has the answer already, the two change places.
    """
    norm = longest_move(of, with_sum=metric == "replace-one")
    if norm is None:
        return None
    by = "Graver bound"
    if metric == "symmetric difference":
        return Reach(Supremum(Fraction(max(2, norm)), False, by), max(2, norm), True)
    half = max(1, -(-norm // 2))
    value = half if reading == "existential" else max(2, 1 + half)
    return Reach(Supremum(Fraction(value), False, by), half, True)


def longest_move(of: Merged, with_sum: bool) -> int | None:
    """Largest ||g||_1 of the Graver elements; None if some block of tied atoms is too large.

    Bounds enter with a slack each, so that moves keep them too; slacks do not count as people. In a
    block of crossing margins, a table with any allowed answer is one move of as many people as
    there are margins away, and exchanges between two people lead everywhere.
    """
    matrix = of.with_sum if with_sum else of.equal
    slacks = of.least.shape[0]
    if slacks:
        slack = -sp.identity(slacks, dtype=np.int64)
        matrix = sp.bmat([[matrix, None], [of.least, slack]], format="csr", dtype=np.int64)
    if lattice.rank(matrix) == matrix.shape[1]:  # one conforming table on atoms
        return 0
    return _longest((kind, kind.atoms < of.atoms) for kind in blocks(matrix))


def _longest(tied: Iterable[tuple[BlockKind, Any]]) -> int | None:
    """The longest move of kinds of blocks, given which of their atoms are people, not slacks."""
    longest = 0
    for kind, people in tied:
        basis = None if kind.features is not None and np.all(people) else graver(kind.equations)
        if basis is None and kind.features is None:
            return None
        for of_people in np.unique(people, axis=0):
            if kind.features is not None and np.all(of_people):
                longest = max(longest, 2 * len(kind.levels))
            elif basis is None:
                return None
            else:
                norms = np.abs(basis[:, of_people]).sum(axis=1)
                longest = max(longest, int(norms.max(initial=0)))
    return longest


def _programmed(of: Merged, reading: Reading, metric: Metric) -> Reach | None:
    """By integer programmes, where they end within their limits."""
    if not searched_distances.able(of) or metric != "replace-one" or reading == "literal":
        return None
    try:
        value = searched_distances.worst_distance(of, tables_only=reading == "existential")
        generating = searched_distances.generating_distance(of)
    except searched_distances.GaveUp:
        return None
    exact = of.people is not None and not len(of.bounds) and value > 2
    return Reach(Supremum(Fraction(value), exact, "integer programme"), generating, None)


# ---- Graver bases ----------------------------------------------------------------------------
#
# The moves into which every difference of two conforming tables splits without cancellation: every
# whole u with M u = 0 is a sum of Graver elements g that agree with u in sign, so each step from a
# conforming table s towards another stays between the two: it is nonnegative and, if M says so,
# keeps every bound. That gives bounds on distances which hold for every value of the figures.


def graver(matrix: Any, most: int = MOST_ELEMENTS) -> Ints | None:
    """The Graver basis, one of each pair +-g per row; None if that takes too long.

    Pottier's completion: sums of two elements are reduced by smaller ones that agree with them in
    sign; what does not vanish is new. At the end, elements that another one fits into are dropped.

    >>> rows = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0],
    ...                  [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]])
    >>> len(graver(rows))  # 2 x 3 tables with both margins: swaps
    3
    """
    if matrix.shape[1] > MOST_COLUMNS:
        return None
    basis = kernel(matrix.toarray() if sp.issparse(matrix) else matrix).basis
    if len(basis) <= 1:
        return basis
    from congenial.pairs.graver_kernels import complete

    completed = complete(basis, most)
    return _minimal(completed) if len(completed) else None


def _minimal(rows: Ints) -> Ints:
    """Those into which no other one fits."""
    up, down = np.maximum(rows, 0), np.maximum(-rows, 0)
    minimal = []
    for i in range(len(rows)):
        fits = np.all((up <= up[i]) & (down <= down[i]), axis=1)
        fits |= np.all((up <= down[i]) & (down <= up[i]), axis=1)
        fits[i] = False
        if not fits.any():
            minimal.append(i)
    return rows[minimal]
