"""Adjacency: which pairs of databases must look alike, and how far a query moves between them.

Three relations: `ReplaceOne` (one person's record replaced; n is public), `AddRemove` (at most
`max_rows` rows added or removed) and `SemiAdjacent` (databases that agree with the figures and
differ in at most a* records). All three answer the same question: the supremum, over differences u
of adjacent tables, of a weighted sum of norms of the released parts of u.

How many records that takes is worked out in `a_star`; how far tables move, in closed form
by `Moves`, by listing all differences in `differences`, and by their types in `difference_types`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from congenial.data.arguments import expect
from congenial.data.schema import Schema
from congenial.errors import FigureError, StructureError, some_of
from congenial.figures.cells import stretches
from congenial.figures.figures import Figures
from congenial.figures.people import Crossing, People, merged, people_under
from congenial.figures.statements import Statement, total
from congenial.figures.support import images, key_of
from congenial.pairs.a_star import Metric, Reach, Reading, reach
from congenial.pairs.difference_types import over_types
from congenial.pairs.differences import LARGEST_DOMAIN, Differences, list_differences
from congenial.pairs.pairs import OTHERS, Adjacency, Pairs, PublishedPairs, Supremum, Weighted
from congenial.pairs.universe import (
    RULE,
    guesser_in_words,
    left_out,
    no_pairs_in_words,
    pairs_in_words,
)


@dataclass(frozen=True)
class AddRemove(Adjacency):
    """Symmetric difference: a person adds or removes at most `max_rows` rows; n is not public.

    Group privacy: S = { u integer : ||u||_1 <= max_rows }. Sums with a cap per unit compare what a
    whole unit adds, all its rows or none: a part of them may move a capped sum further. With
    figures, and one row per person, use `SemiAdjacent(published, metric="symmetric difference")`.

    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> AddRemove(schema, max_rows=3).l1(("sex",)).value  # all three rows may enter the table
    Fraction(3, 1)
    """

    metric = "symmetric difference"
    any_rows = True

    schema: Schema
    max_rows: int = 1

    def __post_init__(self) -> None:
        expect(self.schema, Schema, "the schema", "Give a Schema.", FigureError)
        expect(self.max_rows, int, "max_rows", "Give a whole number, 1 or more.", FigureError)
        if self.max_rows < 1:
            raise FigureError(
                f"max_rows = {self.max_rows} is not a positive number.", remedy="Use 1 or more."
            )

    @classmethod
    def from_dict(cls, figures: Figures, data: Mapping[str, Any]) -> Adjacency:
        """Inverse of `to_dict`, also of what `SemiAdjacent` writes under this metric."""
        if figures.statements:
            return SemiAdjacent.from_dict(figures, data)
        return cls(figures.schema, data["records"])

    @property
    def records(self) -> int:
        """Rows one person may add or remove."""
        return self.max_rows

    @property
    def words(self) -> str:
        """The pairs that must look alike, as a clause of the promise."""
        rows = "row" if self.max_rows == 1 else f"{self.max_rows} rows"
        return f"two datasets of which one lacks one person's {rows}"

    @property
    def guesser(self) -> str:
        """Two answers of somebody who is there are 2 `max_rows` rows apart: presence alone."""
        return (
            "knows every other person's rows, or believes that yours are independent of them, and "
            "thinks it equally likely that you are in the data with certain rows and that you are "
            "not"
        )

    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """All rows enter the same cell: max_rows times the sum of weights."""
        return Supremum(self.max_rows * sum((w for _, w in releases), Fraction(0)), True)

    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """All rows enter the same cell: max_rows squared times the sum of weights."""
        return Supremum(self.max_rows**2 * sum((w for _, w in releases), Fraction(0)), True)

    def linf(self, names: Sequence[str]) -> Supremum:  # noqa: ARG002
        """All rows enter the same cell."""
        return Supremum(Fraction(self.max_rows), True)

    def differences(self, queries: tuple[Statement, ...]) -> Differences | None:
        """All whole u with ||u||_1 <= max_rows."""
        everybody = merged(Figures(self.schema))
        listed = list_differences(everybody, queries, self.max_rows, sum_kept=False)
        return None if listed is None else replace(listed, exact=True)


@dataclass(frozen=True)
class SemiAdjacent(PublishedPairs, Adjacency):
    """Conforming databases at most a* records apart (semi-dp, Definition 13, robust reading).

    a* is the least number of records that always lets one person have any answer the figures leave
    open, others compensating, and lets differences of look-alikes reach every direction in which
    conforming tables differ; 0 where one database conforms. Before the figures are published it is
    a bound for all their values. `a_star` says how it was found; figures for which nothing is
    proved are refused.

    `reading`: "robust"; "existential" (one conforming database per person and answer, picked by a
    stored rule, with a table at most `records` moves away); "literal" (as printed, to reproduce).
    `metric`: "replace-one", n public; "symmetric difference", where one person comes or leaves and
    others may have to. `within`: compare databases farther apart than a*; never nearer.

    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["0", "1"]}})
    >>> both = Figures(schema, (total(by="sex"), total(by="ill")))
    >>> SemiAdjacent(both).a_star.words, SemiAdjacent(both, "existential").records
    ('3 (upper bound, by closed form)', 2)
    """

    published: Figures
    reading: Reading = "robust"
    metric: Metric = "replace-one"
    within: int | None = None

    def __repr__(self) -> str:
        if not self.published.statements and self.metric == "replace-one":
            return f"ReplaceOne({some_of(self.schema.names)[:120]})"
        return f"SemiAdjacent({self.published!r})"

    def __post_init__(self) -> None:
        expect(self.published, Figures, "what is published", "Use publish(...).", FigureError)
        if self.published.of_units is not None:
            raise FigureError(
                "some exact figures count units, but this protection is for one row per unit.",
                remedy="Use SeveralRows, or count rows.",
            )
        for choice in (self.reading, self.metric):
            expect(choice, str, "reading or metric", "Give text, or leave it out.", StructureError)
        if self.within is not None:
            expect(self.within, int, "within", "Give a whole number.", StructureError)
        least = int(self.reach.star.value)
        if self.within is not None and self.within < least:
            raise StructureError(
                f"within = {self.within} is below a* = {least}, the number of records in which "
                f"compared datasets may differ. {left_out(self.reach, self.within)}",
                remedy=f"Use {least} or more, or leave it out.",
            )

    @classmethod
    def from_dict(cls, figures: Figures, data: Mapping[str, Any]) -> SemiAdjacent:
        """Inverse of `to_dict`."""
        return cls(figures, data["reading"], data["metric"], data.get("within"))

    def to_dict(self) -> dict[str, Any]:
        """Metric, records, reading and words; the selector and a wider reach where there is one."""
        more = {"selector": self.selector} if self.selector else {}
        return super().to_dict() | more | ({"within": self.within} if self.within else {})

    def covers(self, other: Pairs) -> bool:
        """Whether every pair of `other` is one of these; a selected pair is never a close one."""
        same = isinstance(other, SemiAdjacent) and self.selector == other.selector
        return same and super().covers(other)

    @cached_property
    def reach(self) -> Reach:
        """The reading's distance, what reaches every free direction, and connectedness."""
        return reach(self.published, self.reading, self.metric)

    @property
    def a_star(self) -> Supremum:
        """a*, with how it was found."""
        return self.reach.star

    @property
    def records(self) -> int:
        """The records (existential: moves of the table; else by symmetric difference: rows) in
        which adjacent databases may differ: a*, or `within`. At least 1: where a* = 0, no pair is
        left, and losses per record are still counted once.
        """
        return self.within or max(1, int(self.a_star.value))

    @property
    def nothing_left(self) -> bool:
        """The same, told by a closed form where one person can move whatever the others do."""
        if self._moves.nested and not self.figures.bounds:
            return self._in_closed_form([(self.schema.names, Fraction(1))], square=False).value == 0
        return super().nothing_left

    @property
    def selector(self) -> str:
        """The stored rule that picks the one database of the existential reading; else empty."""
        return RULE if self.reading == "existential" else ""

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What others tell, where they must change with one; the existential reading protects
        nobody from those who know almost everybody.
        """
        alone = self.records == 1 and self.reading == "robust"
        if self.reading != "existential":
            return () if alone else (OTHERS,)
        return (OTHERS, "anything, from someone who knows the records of all but two people")

    @property
    def guesser(self) -> str:
        """Somebody who knows all records but a*, yours among them, in the robust reading."""
        if self.reach.single:
            return ""
        if self.reading != "robust" or self.metric != "replace-one":
            return super().guesser
        return guesser_in_words(self.records)

    @property
    def words(self) -> str:
        """The pairs that must look alike, as a clause of the promise."""
        if self.reach.single:
            return no_pairs_in_words(self.published)
        return pairs_in_words(self.published, self.reading, self.metric, self.records)

    # ---- sensitivities -----------------------------------------------------------------------

    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i ||phi_i u||_1`: by listing all u where few, else in closed form.

        With one release under nested figures the value is attained.
        """
        return self._joint(_merged(releases), square=False)

    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i ||phi_i u||_2^2`, in the same way."""
        return self._joint(_merged(releases), square=True)

    def linf(self, names: Sequence[str]) -> Supremum:
        """sup over u of the largest entry of phi u."""
        if self.metric == "symmetric difference" and not self.people_kept:
            return Supremum(Fraction(self.records), self._free)
        closed = self._moves.linf(tuple(names))
        listed = None if closed.exact else self.differences((total(by=tuple(names)),))
        if listed is not None:
            value = int(np.abs(listed.seen(0)).max(initial=0))
            return Supremum(Fraction(value), listed.exact, "enumeration")
        return self._as_bound(closed)

    def _joint(self, releases: list[Weighted], *, square: bool) -> Supremum:
        closed = self._in_closed_form(releases, square)
        if closed.exact:
            return closed
        open_values = self.figures.values is None and self._moves.nested
        listed = None if open_values else self._by_listing(releases, square)
        if listed is not None:
            return listed
        by_types = over_types(self, [(names, weight, None) for names, weight in releases], square)
        return min(closed, by_types, key=lambda one: (one.value, not one.exact))

    def _by_listing(self, releases: list[Weighted], square: bool) -> Supremum | None:
        listed = self.differences(tuple(total(by=names) for names, _ in releases))
        if listed is None:
            return None
        norms = np.stack(
            [
                np.square(listed.seen(i)).sum(axis=1)
                if square
                else np.abs(listed.seen(i)).sum(axis=1)
                for i in range(len(releases))
            ],
            axis=1,
        )
        return Supremum(_largest(np.unique(norms, axis=0), releases), listed.exact, "enumeration")

    def _in_closed_form(self, releases: list[Weighted], square: bool) -> Supremum:
        if self.metric == "symmetric difference" and not self.people_kept:
            # Everybody may enter one cell, if there is one that no figure counts.
            rows = self.records**2 if square else self.records
            return Supremum(rows * sum((w for _, w in releases), Fraction(0)), self._free)
        closed = (self._moves.joint_l2_squared if square else self._moves.joint_l1)(releases)
        return self._as_bound(closed)

    def _as_bound(self, found: Supremum) -> Supremum:
        """Closed forms do not know of bounds and selectors, which leave fewer pairs."""
        fewer = bool(self.figures.bounds) or self.reading == "existential"
        return replace(found, exact=found.exact and not fewer)

    @property
    def _free(self) -> bool:
        """Whether some people are in no figure at all."""
        return self._moves.groups.loose and not self.figures.bounds

    @cached_property
    def _moves(self) -> Moves:
        moves = self.records // 2 if self.metric == "symmetric difference" else self.records
        return Moves(people_under(self.published), moves)

    @cached_property
    def people_kept(self) -> bool:
        """Whether the figures fix the number of people."""
        if self.figures.structure != "general":
            return not self._moves.groups.loose
        return people_under(self.published).merged.sum_kept

    @property
    def moves(self) -> int | None:
        """Records that are replaced; None where the number of people may change."""
        if self.metric == "replace-one":
            return self.records
        return self.records // 2 if self.people_kept else None

    @cached_property
    def _lists(self) -> dict[tuple[Statement, ...], Differences | None]:
        return {}

    def differences(self, queries: tuple[Statement, ...]) -> Differences | None:
        """S(A_a) as far as the figures allow, listed if there are few."""
        if self.published.cells.size > LARGEST_DOMAIN:
            return None
        if queries not in self._lists:
            replaced = self.metric == "replace-one"
            norm = 2 * self.records if replaced else self.records
            atoms = people_under(self.published).merged
            listed = list_differences(atoms, queries, norm, sum_kept=replaced)
            if listed is not None and self.reading == "existential":  # fewer pairs are selected
                listed = replace(listed, exact=False)
            self._lists[queries] = listed
        return self._lists[queries]


def _largest(norms: Any, releases: Sequence[Weighted]) -> Fraction:
    """max over rows of norms of sum_i w_i norm_i."""
    weights = [weight for _, weight in releases]
    return max(
        sum((w * int(norm) for w, norm in zip(weights, row, strict=True)), Fraction(0))
        for row in norms
    )


def _merged(releases: Sequence[Weighted]) -> list[Weighted]:
    """Releases of one table count as one: their norms are of the same vector."""
    weights: dict[tuple[str, ...], Fraction] = {}
    for names, weight in releases:
        weights[names] = weights.get(names, Fraction(0)) + weight
    return list(weights.items())


def ReplaceOne(schema: Schema) -> SemiAdjacent:
    """One record replaced, no figures: ordinary differential privacy with public n.

    Look-alikes are databases of the same size that differ in one person's record: tables differ by
    u = e_a - e_b, so Delta_1 = 2 and Delta_2 squared = 2. The size is public but not stated, and no
    noise is drawn given it. `SemiAdjacent(publish(table, total()))` states it: the pairs and prices
    are the same, tables add up to it, and their noise is smaller. Plans do that by themselves.

    >>> pairs = ReplaceOne(Schema.from_dict({"sex": {"levels": ["f", "m"]}}))
    >>> pairs.words
    "two datasets of the same size that differ in one person's record"
    >>> pairs.l1(("sex",)).value, pairs.l2_squared(("sex",)).value
    (Fraction(2, 1), Fraction(2, 1))
    """
    return SemiAdjacent(Figures(schema))


# ---- How far released tables move when so many people change their record: closed forms ----
# Under nested figures every difference u of look-alikes is a sum of moves of one person inside one
# atom. Under other equalities it is a kernel vector of which the norm is known, and what is said is
# an upper bound. docs/explanation/adjacency has the proofs.


@dataclass(frozen=True, eq=False)
class Moves:
    """At most `moves` people change their record, all figures kept."""

    groups: People
    moves: int

    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i ||phi_i u||_1`.

        Nested figures: everybody makes the dearest move of their atom, twice the weights of tables
        that see it. Attained for one release and at most two moves, because moves can then be
        directed so that none cancel, or when all are made in one atom.
        """
        if not self.nested:
            total = sum((w * self._largest_norm(names) for names, w in releases), Fraction(0))
            return Supremum(total, len(releases) == 1 and self._attained(releases[0][0]))
        prices, of_atom = self._dearest(releases)
        value, sure = self._dearest_moves(prices, of_atom)
        first = int(np.argmin(of_atom))
        together = bool(self.groups.people[first] >= self.moves) and self._at_once(first, releases)
        alone = len(releases) == 1 and (self.moves <= 2 or together)
        return Supremum(value, sure and (alone or together))

    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i ||phi_i u||_2^2`.

        Nested figures: m people make the same move, 2 m^2 times the weights; a bound if atoms are
        small.
        """
        if not self.nested:
            total = sum((w * self._largest_square(names) for names, w in releases), Fraction(0))
            exact = len(releases) == 1 and self._few and self._attained(releases[0][0])
            return Supremum(total, exact)
        prices, of_atom = self._dearest(releases)
        visible = np.array([price > 0 for price in prices])[of_atom]
        movers = int(min(self.moves, self.groups.people[visible].sum()))
        if movers == 0:
            return Supremum(Fraction(0), True)
        dearest = np.flatnonzero(of_atom == of_atom.min())
        best = int(dearest[np.argmax(self.groups.people[dearest])])
        alone = bool(self.groups.people[best] >= movers) and self._known(best)
        exact = alone and (len(releases) == 1 or self._at_once(best, releases))
        return Supremum(2 * movers**2 * prices[of_atom[best]], exact)

    def linf(self, names: tuple[str, ...]) -> Supremum:
        """sup over u of the largest entry of `phi u`, in absolute value.

        Under crossing margins that show one cell per atom: m people make room in one cell, and each
        of them can give up the levels of all features but one.
        """
        if self.nested:
            able = np.where(self._varies(names), self.groups.people, 0)
            alone = int(np.argmax(able))
            movers = int(min(self.moves, able.sum()))
            return Supremum(
                Fraction(movers), bool(able[alone] >= movers) and (not movers or self._known(alone))
            )
        half = self._largest_norm(names) // 2
        if not self._shown_apart(names):
            return Supremum(Fraction(half), False)
        if self.groups.figures.structure == "general":
            return Supremum(Fraction(max(half - 1, 0)), False)
        entry = half * (self.groups.margins - 1) // max(self.groups.margins, 1)
        return Supremum(Fraction(entry), self._few and self._attained(names))

    # ---- kernel vectors ----------------------------------------------------------------------

    @cached_property
    def nested(self) -> bool:
        """Whether every atom's total is known, so that people move inside atoms only."""
        return self.groups.figures.structure in ("none", "laminar")

    def _largest_norm(self, names: tuple[str, ...]) -> int:
        """Largest ||phi u||_1, where atom totals are only tied to each other.

        Where every atom shows a single released cell, u is a kernel vector of the figures. Those
        of two margins have a norm divisible by 4 unless three levels meet on both sides (hexagons);
        other kernels are taken to reach every even norm.
        """
        figures = self.groups.figures
        if np.any(self._varies(names) & (self.groups.people > 0)):
            return 2 * self.moves
        if figures.structure == "general":
            return 2 * self.moves if self.moves > 1 else 0
        return max(self._largest_norm_of(crossing) for crossing in self.groups.crossings)

    def _largest_norm_of(self, one: Crossing) -> int:
        """Largest norm of a kernel vector of the margins of one block of a kind; blocks add up no
        further.
        """
        return int(self._norms(one).max())

    def _norms(self, one: Crossing) -> Any:
        """Largest norm of a kernel vector of the margins, of each block."""
        fewest = np.where(one.shown >= 2, one.shown, np.iinfo(np.int64).max).min(axis=1)
        every = (one.margins > 2) | (fewest > 2)  # hexagons exist
        norms = np.where(every, 2 * self.moves, 4 * (self.moves // 2))
        return np.where((one.margins < 2) | (self.moves < 2), 0, norms)

    def _largest_square(self, names: tuple[str, ...]) -> int:
        """Largest ||phi u||_2^2: 2 m^2 for norm 2m, and less where atoms show one cell each.

        Then the largest entry up and the largest entry down have a sum of at most m, since some
        figure tells their atoms apart, so the square is at most m^2. Swaps and hexagons have
        entries of one only.
        """
        half = self._largest_norm(names) // 2
        if not self._shown_apart(names):
            return 2 * half**2
        return 2 * half if self._few else half**2

    @cached_property
    def _few(self) -> bool:
        """Whether swaps and hexagons between two margins are all there is."""
        return self.groups.figures.structure == "two-way" and self.moves <= 3

    def _attained(self, names: tuple[str, ...]) -> bool:
        """Whether the largest norm of a kernel vector of margins occurs between conforming tables.

        Norm 4 is a swap, norm 6 a hexagon, and further swaps can be added that cancel nothing.
        Three margins of two levels have a hexagon too: 2 (000) + (111) - (100) - (010) - (001).
        Everything happens on the largest levels; the people needed there are those who leave.
        """
        if self.groups.figures.structure == "general":
            return False
        if self._inside_one_atom(names):
            return True
        return self._shown_apart(names) and any(
            self._room(crossing) for crossing in self.groups.crossings
        )

    def _inside_one_atom(self, names: tuple[str, ...]) -> bool:
        """Whether all can make the same move inside one atom, which the table shows.

        An atom on levels l_1, l_2, ... of complete one-way margins can hold as many people as the
        smallest of these levels: pair them off, and the rest in any way.
        """
        varies, people = self._varies(names), self.groups.people
        if np.any(varies & np.isfinite(people) & (people >= self.moves)):
            return True
        for crossing in self.groups.crossings:
            block = crossing.block
            if crossing.totals is None or block.atoms.shape[1] != np.prod(block.levels):
                continue
            assert block.features is not None
            levels = zip(crossing.totals, block.features.T, strict=True)
            most = np.min([total[:, level] for total, level in levels], axis=0)
            if np.any(varies[block.atoms] & (most >= self.moves)):
                return True
        return False

    def _room(self, one: Crossing) -> bool:
        """Whether a block of this kind has the people that the largest kernel vector needs."""
        if one.totals is None:
            return False
        margins, norm = one.margins, self._norms(one)
        odd = norm % 4 > 0
        need = np.where((norm <= 6) & (margins == 2), 1, norm // 2)  # people on each level used
        wide = np.stack(
            [np.count_nonzero(level >= need[:, np.newaxis], axis=1) for level in one.totals]
        )
        changed = np.where(odd & (margins > 2), 3, 2)
        levels = np.where(odd & (margins <= 2), 3, 2)
        enough = (wide >= levels).sum(axis=0) >= changed
        largest = max(map(self._largest_norm_of, self.groups.crossings))
        return bool(np.any((wide.min(axis=0) >= 1) & enough & (norm == largest)))

    def _shown_apart(self, names: tuple[str, ...]) -> bool:
        """Whether every atom shows one released cell, no two atoms the same one, and figures are
        plain counts.

        Only then is phi u the kernel vector itself; cells of several atoms add up and can double.
        """
        figures = self.groups.figures
        if not np.all(figures.matrix.data == 1) or np.any(self._varies(names)):
            return False
        released = images(figures, names)
        first = np.full(
            released.keys, -1, dtype=np.int64
        )  # some atom that each released cell shows
        cells = figures.atoms >= 0
        first[released.key[cells]] = figures.atoms[cells]
        return bool(np.all(first[released.key[cells]] == figures.atoms[cells]))

    # ---- moves inside atoms ------------------------------------------------------------------

    def _known(self, atom: int) -> bool:
        """Whether the people this atom is said to have are sure to exist."""
        if np.isfinite(self.groups.people[atom]):
            return True
        only = np.count_nonzero(self.groups.people) == 1  # then everybody is in it
        return bool(only and self.moves == 1)

    def _dearest_moves(self, prices: list[Fraction], of_atom: Any) -> tuple[Fraction, bool]:
        """Twice the price of the dearest moves, and whether those who make them surely exist."""
        people = self.groups.people
        left, value, sure = self.moves, Fraction(0), True
        for rank, price in enumerate(prices):
            for atom in np.flatnonzero((of_atom == rank) & (people > 0)):
                if left == 0:
                    return value, sure
                movers = int(min(left, people[atom]))
                value += 2 * movers * price
                left -= movers
                sure = sure and (movers == 0 or self._known(int(atom)))
        return value, sure

    def _dearest(self, releases: Sequence[Weighted]) -> tuple[list[Fraction], Any]:
        """Weights of the releases in which some move inside an atom can be seen: all that occur,
        from large to small, and the place of each atom's among them.
        """
        people = self.groups.people > 0
        sees = np.stack([self._varies(names) & people for names, _ in releases], axis=1)
        patterns, of_atom = np.unique(sees, axis=0, return_inverse=True)
        weights = [w for _, w in releases]
        prices = [
            sum((w for w, visible in zip(weights, row, strict=True) if visible), Fraction(0))
            for row in patterns
        ]
        ranked = sorted(set(prices), reverse=True)
        place = np.array([ranked.index(price) for price in prices])
        return ranked, place[of_atom.reshape(-1)]

    def _varies(self, names: tuple[str, ...]) -> Any:
        """Which atoms show two or more different cells of the table over `names`."""
        return _shows_several(self.groups.figures, names)

    def _at_once(self, atom: int, releases: Sequence[Weighted]) -> bool:
        """Whether one move inside the atom is seen by every release that can see any (sufficient
        test).

        Attributes outside the figures can all change at once; of the cells inside, the first is
        compared with every other one.
        """
        figures = self.groups.figures
        cells = np.flatnonzero(figures.atoms == atom)
        together = np.ones(len(cells), dtype=bool)
        for names, _ in releases:
            released = images(figures, names)
            if self._varies(names)[atom] and released.other == 1:
                together &= released.key[cells] != released.key[cells[0]]
        return bool(np.any(together))


@lru_cache(maxsize=16)
def _shows_several(figures: Figures, names: tuple[str, ...]) -> Any:
    """Which atoms show two or more different cells of the table over `names`."""
    atoms, schema, first = figures.atoms, figures.schema, figures.first_cells
    inside = [name for name in names if schema.axis(name).base in figures.bases]
    others = schema.size([name for name in names if name not in inside])
    several = (first >= 0) & (others > 1)
    apart = schema.size(inside) == len(atoms)  # every cell of the figures shows cells of its own
    first_key = first if apart else key_of(figures, names, np.maximum(first, 0))
    for cells in stretches(len(atoms)):
        atom, key = atoms[cells], cells if apart else key_of(figures, names, cells)
        several[atom[(atom >= 0) & (key != first_key[atom])]] = True
    return several
