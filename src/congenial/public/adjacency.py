"""Adjacency: which pairs of databases must look alike, and how far a query moves between them.

Three relations: `ReplaceOne` (one person's record replaced; n is public), `AddRemove` (at most
`max_rows` rows added or removed) and `SemiAdjacent` (databases that agree with the mandates and
differ in at most a* records). All three answer the same question: the supremum, over differences u
of adjacent tables, of a weighted sum of norms of the released parts of u.

For mandates of laminar structure every difference u is a sum of at most a* moves of one person
inside one atom, which gives closed forms (semi-dp, Theorem 16 in the robust reading; see
docs/errata).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from congenial.data.schema import Schema
from congenial.errors import MandateError, StructureError
from congenial.public.invariants import Invariants
from congenial.public.pairs import Pairs
from congenial.public.support import images

Reading = Literal["robust", "existential", "literal"]
Weighted = tuple[tuple[str, ...], Fraction]  # axes of a released table, weight of its norm


@dataclass(frozen=True)
class Supremum:
    """A number with its footing: attained by some adjacent pair, or a proved upper bound.

    Sizes of groups that are not published are taken as large, which makes the number a bound.
    """

    value: Fraction
    exact: bool

    @property
    def footing(self) -> str:
        """In words: "exact" or "upper bound"."""
        return "exact" if self.exact else "upper bound"


class Adjacency(Pairs):
    """A relation between databases; `schema` says what a record is."""

    @property
    @abstractmethod
    def records(self) -> int:
        """The largest number of records in which adjacent databases differ (a)."""

    @abstractmethod
    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i * ||phi_i u||_1`, phi_i tabulating onto release i's axes."""

    @abstractmethod
    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i * ||phi_i u||_2^2`."""

    def covers(self, other: Pairs) -> bool:
        """Whether every pair of `other` is one of these (semi-dp, Definition 20, part 1)."""
        return (
            isinstance(other, Adjacency)
            and self.schema.digest == other.schema.digest
            and self.metric == other.metric
            and other.records <= self.records
            and other.mandates.implies(self.mandates)
        )

    def to_dict(self) -> dict[str, Any]:
        """Metric, records and words; `reading` where the relation has one."""
        return {
            "metric": self.metric,
            "records": self.records,
            "reading": getattr(self, "reading", None),
            "words": self.words,
        }

    def l1(self, names: Sequence[str]) -> Supremum:
        """Delta_1 of the table over `names`."""
        return self.joint_l1([(tuple(names), Fraction(1))])

    def l2_squared(self, names: Sequence[str]) -> Supremum:
        """Delta_2 squared of the table over `names`."""
        return self.joint_l2_squared([(tuple(names), Fraction(1))])


@dataclass(frozen=True)
class AddRemove(Adjacency):
    """Symmetric difference: a person adds or removes at most `max_rows` rows; n is not public.

    Group privacy: S = { u integer : ||u||_1 <= max_rows }. Mandates cannot be kept under this
    relation and are refused.
    """

    schema: Schema
    max_rows: int = 1

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise MandateError(
                f"max_rows = {self.max_rows} is not a positive number.", remedy="Use 1 or more."
            )

    @classmethod
    def from_dict(cls, mandates: Invariants, data: Mapping[str, Any]) -> AddRemove:
        """Inverse of `to_dict`."""
        return cls(mandates.schema, data["records"])

    @property
    def metric(self) -> str:
        """Symmetric difference of the two sets of rows."""
        return "symmetric difference"

    @property
    def records(self) -> int:
        """Rows one person may add or remove."""
        return self.max_rows

    @property
    def words(self) -> str:
        """The pairs that must look alike, as a clause of the promise."""
        rows = "row" if self.max_rows == 1 else f"{self.max_rows} rows"
        return f"two datasets of which one lacks one person's {rows}"

    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """All rows enter the same cell: max_rows times the sum of weights."""
        return Supremum(self.max_rows * sum((w for _, w in releases), Fraction(0)), True)

    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """All rows enter the same cell: max_rows squared times the sum of weights."""
        return Supremum(self.max_rows**2 * sum((w for _, w in releases), Fraction(0)), True)


@dataclass(frozen=True)
class SemiAdjacent(Adjacency):
    """Conforming databases at most a* records apart (semi-dp, Definition 13, robust reading).

    a* is the least number of records that always lets one person have any answer the mandates leave
    open, others compensating. For laminar mandates it is exact: 2 when two or more groups of people
    are told apart by the mandates, else 1. Where margins cross it is one more than the number of
    crossing margins with two or more non-empty levels, which is attained when there are enough
    people. Before the values are published, groups are assumed to be non-empty, which can only
    enlarge a* and the sensitivities.

    Mandates of any other structure, and bounds, are refused.
    """

    published: Invariants
    reading: Reading = "robust"

    def __post_init__(self) -> None:
        mandates, reading = self.published, self.reading
        if reading != "robust":
            raise StructureError(
                f"reading = '{reading}' is not built yet.",
                remedy="Use reading = 'robust', which promises more.",
            )
        if mandates.structure == "general" or mandates.bounds:
            what = mandates.bounds[0].label if mandates.bounds else mandates.structure
            raise StructureError(
                f"no proved adjacency for these mandates ({what}).",
                remedy="Mandate nested totals or margins, without bounds.",
            )

    @classmethod
    def from_dict(cls, mandates: Invariants, data: Mapping[str, Any]) -> SemiAdjacent:
        """Inverse of `to_dict`."""
        return cls(mandates, data["reading"])

    @property
    def metric(self) -> str:
        """Hamming distance; the number of people is public."""
        return "replace-one"

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """What a record is."""
        return self.published.schema

    @property
    def mandates(self) -> Invariants:
        """The mandates both databases satisfy."""
        return self.published

    @cached_property
    def _people(self) -> Any:
        """People in each atom (0 is the loose one), `inf` where unknown."""
        atoms = self.mandates.atoms
        present = np.zeros(int(atoms.max(initial=0)) + 1, dtype=bool)
        present[atoms[atoms >= 0]] = True
        people = np.where(present, np.inf, 0.0)
        known = self.mandates.atom_totals
        if known is not None:
            people[1:] = np.where(present[1:], known, 0)
        return people

    @cached_property
    def _crossings(self) -> int:
        """Most features with two or more non-empty levels in one block; 0 without blocks."""
        return max((len(levels) for levels in self._open_levels), default=0)

    @cached_property
    def _open_levels(self) -> list[list[int]]:
        """For each block: non-empty levels of its features, those with two or more."""
        found = []
        for block in self.published.blocks:
            levels = block.levels
            totals = self.published.level_totals(block)
            if totals is not None:
                levels = tuple(int(np.count_nonzero(t)) for t in totals)
            found.append([number for number in levels if number >= 2])
        return found

    @property
    def records(self) -> int:
        """a*: 1 + crossing margins; at least 2 when people of two different groups exist."""
        return max(2 if np.count_nonzero(self._people) >= 2 else 1, 1 + self._crossings)

    @property
    def words(self) -> str:
        """The pairs that must look alike, as a clause of the promise."""
        people = "one person's record" if self.records == 1 else f"{self.records} people's records"
        if not self.mandates.equalities and not self.mandates.zeros:
            return f"two datasets of the same size that differ in {people}"
        return (
            f"any two datasets that agree with {self._agree_with} and differ in at most "
            f"{people}, enough for any one person to be given any answer the figures allow"
        )

    @property
    def _agree_with(self) -> str:
        told = ["the published figures"] if self.mandates.equalities else []
        told += ["what is impossible by definition"] if self.mandates.zeros else []
        return " and ".join(told)

    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """a* people make the dearest move of their atom: twice the weights of tables that see it.

        With one release the value is attained: moves can always be directed so that none cancel.
        """
        releases = _merged(releases)
        if self.published.blocks:
            return self._crossing_l1(releases)
        price = self._dearest(releases)
        order = sorted(range(len(price)), key=lambda atom: -price[atom])
        left, value, known = self.records, Fraction(0), True
        for atom in order:
            movers = int(min(left, self._people[atom]))
            value += 2 * movers * price[atom]
            left -= movers
            known = known and (movers == 0 or self._known(atom))
        first = int(order[0])
        together = bool(self._people[first] >= self.records) and self._at_once(first, releases)
        return Supremum(value, known and (len(releases) == 1 or together))

    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """m people make the same move: 2 m^2 times the weights; a bound if atoms are small."""
        releases = _merged(releases)
        if self.published.blocks:
            return self._crossing_l2_squared(releases)
        price = self._dearest(releases)
        movers = int(
            min(self.records, sum(p for p, v in zip(self._people, price, strict=True) if v))
        )
        if movers == 0:
            return Supremum(Fraction(0), True)
        best = max(range(len(price)), key=lambda atom: (price[atom], self._people[atom]))
        alone = bool(self._people[best] >= movers) and self._known(best)
        exact = alone and (len(releases) == 1 or self._at_once(best, releases))
        return Supremum(2 * movers**2 * price[best], exact)

    def _crossing_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """2 a* per table, or what kernel vectors of the margins reach where atoms show one cell."""
        total = sum((w * self._largest_norm(names) for names, w in releases), Fraction(0))
        return Supremum(total, False)

    def _crossing_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """As `_crossing_l1`; norm 2m has square at most 2 m^2, or m^2 when four cells share it."""
        total = Fraction(0)
        for names, weight in releases:
            norm = self._largest_norm(names)
            apart = self._shown_apart(names)
            square = norm if apart and self._crossings == 2 else norm**2 // (4 if apart else 2)
            total += weight * square
        return Supremum(total, False)

    def _shown_apart(self, names: tuple[str, ...]) -> bool:
        """Whether every atom shows one released cell and no two atoms show the same one.

        Only then is phi u the kernel vector itself; cells of several atoms add up and can double.
        """
        seen = images(self.published, names)
        cells = self.published.atoms >= 0
        pairs = np.unique(np.stack([self.published.atoms[cells], seen.key[cells]]), axis=1)
        once = len(np.unique(pairs[0])) == len(np.unique(pairs[1])) == pairs.shape[1]
        return once and seen.other == 1

    def _largest_norm(self, names: tuple[str, ...]) -> int:
        """Largest ||phi u||_1 over u in S(A_a*), for mandates with crossing margins.

        Where every atom shows a single released cell, u is a kernel vector of the margins: for two
        margins those of norm at most 6 are swaps (4) and hexagons (6, on three levels of both).
        """
        if np.any(self._varies(names) & (self._people > 0)) or self._crossings != 2:
            return 2 * self.records
        hexagon = any(len(levels) == 2 and min(levels) >= 3 for levels in self._open_levels)
        return 6 if hexagon else 4

    def _known(self, atom: int) -> bool:
        """Whether the people this atom is said to have are sure to exist."""
        only = np.count_nonzero(self._people) == 1  # then everybody is in it, and one is enough
        return bool(np.isfinite(self._people[atom]) or only)

    def _dearest(self, releases: Sequence[Weighted]) -> list[Fraction]:
        """For each atom: weights of the releases in which some move inside the atom can be seen."""
        sees = np.stack([self._varies(names) & (self._people > 0) for names, _ in releases], axis=1)
        patterns, of_atom = np.unique(sees, axis=0, return_inverse=True)
        weights = [w for _, w in releases]
        prices = [
            sum((w for w, seen in zip(weights, row, strict=True) if seen), Fraction(0))
            for row in patterns
        ]
        return [prices[i] for i in of_atom.reshape(-1)]

    def _varies(self, names: tuple[str, ...]) -> Any:
        """Which atoms show two or more different cells of the table over `names`."""
        seen = images(self.mandates, names)
        atoms = self.mandates.atoms
        cells = atoms >= 0
        low = np.full(len(self._people), np.iinfo(np.int64).max)
        high = np.full(len(self._people), -1)
        np.minimum.at(low, atoms[cells], seen.key[cells])
        np.maximum.at(high, atoms[cells], seen.key[cells])
        return (high > low) | ((high >= 0) & (seen.other > 1))

    def _at_once(self, atom: int, releases: Sequence[Weighted]) -> bool:
        """Whether one move inside the atom is seen by every release that can see any (sufficient
        test).

        Attributes outside the mandates can all change at once; of the cells inside, the first is
        compared with every other one.
        """
        cells = np.flatnonzero(self.mandates.atoms == atom)
        together = np.ones(len(cells), dtype=bool)
        for names, _ in releases:
            seen = images(self.mandates, names)
            if self._varies(names)[atom] and seen.other == 1:
                together &= seen.key[cells] != seen.key[cells[0]]
        return bool(np.any(together))


def _merged(releases: Sequence[Weighted]) -> list[Weighted]:
    """Releases of one table count as one: their norms are of the same vector."""
    weights: dict[tuple[str, ...], Fraction] = {}
    for names, weight in releases:
        weights[names] = weights.get(names, Fraction(0)) + weight
    return list(weights.items())


def ReplaceOne(schema: Schema) -> SemiAdjacent:
    """One record replaced, no mandates: ordinary differential privacy with public n."""
    return SemiAdjacent(Invariants(schema))
