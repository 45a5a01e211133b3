"""Units with several rows (households, patients, firms): which datasets look alike given figures.

A unit owns at most k rows, and, where every unit is known to have one, at least l = 1. Give each
unit k slots, each of which holds a row or nothing, 0. Two datasets look alike if they agree with
the figures and, units matched one to one, at most a units and at most b slots differ, and their
tables of rows in at most c rows. The numbers are such that, whatever the data are, any one unit can
be given any rows that the figures allow.

Let alpha be the number of slots that must change so that one slot can take any value, 0 included,
uniformly over all figures that could have been published. Then (for tables of rows):

    l = 0              a = 1 + k (alpha - 1),   b = k alpha,          c = b
    l = 1, n exact     a = k alpha,             b = k alpha + k - 1,  c = k alpha

Proof for l = 0: fix the unit's slots one at a time. With the fixed ones taken out, the others form
a dataset with one row per slot in which the next value is still possible, because the dataset that
is aimed at exists; at most alpha - 1 other slots change, and fixed ones are never undone. For
l = 1: pair the slots that were emptied with those that were filled; at most k - 1 emptied slots
remain, each may leave a unit without rows, which is refilled from a unit with two: one unit and
one slot more, unseen by a table of rows.

An alpha that is known for the published values only must not be multiplied by k: the datasets
between two steps have other figures.

Attributes of units, and figures about units, add to these numbers (`unit_classes`). A table of rows
that shows an attribute of units moves with every row of every unit that differs, k a in all: two
households that exchange their tenure change no slot, and move all their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import expect
from congenial.errors import FigureError, StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.merged import Merged
from congenial.figures.statements import Statement
from congenial.pairs.a_star import Reading
from congenial.pairs.adjacency import Adjacency, SemiAdjacent
from congenial.pairs.moves import Weighted
from congenial.pairs.occupancy import occupancy
from congenial.pairs.pairs import OTHERS, ROWS_OF_ONE_UNIT, Pairs, PublishedPairs, Supremum
from congenial.pairs.unit_classes import Classes, classes_of

if TYPE_CHECKING:
    from congenial.pairs.differences import Differences

MOST_ROWS = 10_000  # of one unit; more is a slip of the pen, and losses grow with the square


@dataclass(frozen=True)
class SeveralRows(PublishedPairs, Adjacency):
    """Conforming datasets of units with at most `max_rows` rows, a units and b slots apart.

    `published`: figures about rows, and about units. `never_empty`: every unit is known to have a
    row (l = 1); that is proved where the figures tell the number of rows, and refused elsewhere.
    Tables of rows that show no attribute of their unit move by at most 2 c in l1 and 2 c^2 in
    squared l2 norm, those that show one by 2 k a and 2 (k a)^2, less where the figures leave less.

    >>> from congenial import Schema, total
    >>> schema = Schema.from_dict({"area": {"levels": ["A", "B"]}, "ill": {"levels": ["0", "1"]}})
    >>> by_area = Figures(schema, (total(by="area"),))
    >>> pairs = SeveralRows(by_area, max_rows=3)
    >>> pairs.units, pairs.slots, pairs.l1(("area", "ill")).value
    (4, 6, Fraction(12, 1))
    """

    reading: ClassVar[Reading] = "robust"
    metric: ClassVar[str] = ROWS_OF_ONE_UNIT
    unit_noun = "unit"

    published: Figures
    max_rows: int
    never_empty: bool = False

    def __post_init__(self) -> None:
        expect(self.published, Figures, "what is published", "Use publish(...).", FigureError)
        expect(self.max_rows, int, "max_rows", "Give a whole number, 1 or more.", FigureError)
        expect(self.never_empty, bool, "never_empty", "Give True or False.", FigureError)
        if not 1 <= self.max_rows <= MOST_ROWS:
            raise FigureError(
                f"max_rows = {self.max_rows} is not between 1 and {MOST_ROWS}.",
                remedy="Give the most rows that one unit may have.",
            )
        if self.never_empty and not self._rows_kept:
            raise StructureError(
                "every unit has a row, and the exact figures do not give the number of rows: no "
                "proof covers this case.",
                remedy="Publish the number of rows too (total), or allow units without rows.",
            )

    @classmethod
    def given(cls, figures: Figures, max_rows: int) -> SeveralRows:
        """The pairs of rows counted from a file of rows: units that are counted have a row."""
        return cls(figures, max_rows, never_empty=figures.of_units is not None)

    @classmethod
    def from_dict(cls, figures: Figures, data: Mapping[str, Any]) -> SeveralRows:
        """Inverse of `to_dict`."""
        return cls(figures, data["max_rows"], data["never_empty"])

    def to_dict(self) -> dict[str, Any]:
        """Metric, rows and units apart, rows of one unit, whether a unit may be empty; words."""
        return super().to_dict() | {
            "units": self.units,
            "max_rows": self.max_rows,
            "never_empty": self.never_empty,
        }

    def covers(self, other: Pairs) -> bool:
        """Whether every pair of `other` is one of these."""
        if not isinstance(other, SeveralRows) or self.never_empty != other.never_empty:
            return False
        if other.max_rows > self.max_rows:  # units that these pairs do not have
            return False
        fewer = other.units <= self.units and other.slots <= self.slots
        return fewer and super().covers(other)

    # ---- how far apart ------------------------------------------------------------------------

    @cached_property
    def alpha(self) -> Supremum:
        """Slots that change so that one can take any value, whatever figures are published."""
        return uniform_reach(self._classes.rows)

    @property
    def tables_of_units(self) -> SeveralRows:
        """The same pairs for tables that count units."""
        from congenial.pairs.tables_of_units import TablesOfUnits

        return TablesOfUnits(self.published, self.max_rows, self.never_empty)

    @cached_property
    def _classes(self) -> Classes:
        """What attributes of units and figures about units add."""
        return classes_of(self.published, self.never_empty)

    @cached_property
    def _only_number(self) -> bool:
        """Whether the number of rows is all that the figures tell of a group of units."""
        rows = self._classes.rows
        groups = occupancy(rows)
        plain = not rows.bounds and rows.structure != "general"
        return plain and self._rows_kept and groups.parts == 1 and not groups.margins

    @cached_property
    def units(self) -> int:
        """a: the most units in which look-alikes differ."""
        return self._units_for_rows + self._classes.more_units

    @cached_property
    def slots(self) -> int:
        """b: the most rows added, removed or changed between look-alikes."""
        return self._slots_for_rows + self._exchanged

    @property
    def records(self) -> int:
        """c: rows in which tables of look-alikes differ; a refilled unit is not seen there."""
        return self._together

    @property
    def _together(self) -> int:
        for_rows = min(self._slots_for_rows, self.max_rows * int(self.alpha.value))
        return for_rows + self._exchanged

    @property
    def _units_for_rows(self) -> int:
        k, alpha = self.max_rows, int(self.alpha.value)
        if not self.never_empty:
            return 1 + k * (alpha - 1)
        return k if self._only_number else k * alpha

    @property
    def _slots_for_rows(self) -> int:
        k, alpha = self.max_rows, int(self.alpha.value)
        if not self.never_empty:
            return k * alpha
        return 2 * k - 1 if self._only_number else k * alpha + k - 1

    @property
    def _exchanged(self) -> int:
        """Rows of the unit with which one exchanges its whole content, where it has to."""
        return self.max_rows if self._classes.exchanged else 0

    def rows_apart(self, names: Iterable[str]) -> int:
        """Rows in which tables over these axes differ: c, and k a if one is of units."""
        of_units = {self.schema.axis(name).base for name in names} & {*self.schema.of_units}
        return self.max_rows * self.units if of_units else self.records

    @property
    def people_kept(self) -> bool:
        """Whether the figures fix the number of rows."""
        return self._rows_kept

    @cached_property
    def _rows_kept(self) -> bool:
        return occupancy(_unpublished(self.published.of_rows)).merged.sum_kept

    @property
    def words(self) -> str:
        """The pairs that must look alike, as a clause of the promise."""
        agree = "agree with the exact figures and " if self.published.told else ""
        same = "the same number of " if self.never_empty else ""
        return (
            f"datasets of {same}units with at most {self.max_rows} rows each that {agree}differ in "
            f"at most {self.units} {_plural(self.units, 'unit')} and in at most {self.slots} "
            f"{_plural(self.slots, 'row')} added, removed or changed{self._in_the_table}"
        )

    @property
    def _in_the_table(self) -> str:
        if self._together == self.slots:
            return ""
        return f", at most {self._together} of them once the rows of all units are put together"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What other units tell, where they must change with one."""
        return (OTHERS,) if self.units > 1 else ()

    @property
    def guesser(self) -> str:
        """Somebody to whom so few rows are unknown that all that is left is compared."""
        thinks = "thinks two possible contents of your unit equally likely"
        if self.units == 1:
            return (
                "knows the rows of every unit except yours, or believes that yours are independent "
                f"of them, and {thinks}"
            )
        return (
            f"knows every row except at most {self._together} rows of at most {self.units} units, "
            f"yours among them, and {thinks}"
        )

    # ---- sensitivities ------------------------------------------------------------------------

    def replaced_rows(self, names: Iterable[str]) -> SemiAdjacent:
        """Replaced rows: with their number kept, tables of rows differ as if each were a person's.

        u = r - s with r, s >= 0 of sum at most c (k a if the axes `names` have one of units), and
        A u = 0: the differences of so many moves.
        """
        return replaced(self.published.of_rows, self.rows_apart(names))

    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i ||phi_i u||_1`: at most that of so many replaced rows."""
        return self._joint(releases, square=False)

    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i ||phi_i u||_2^2`, in the same way."""
        return self._joint(releases, square=True)

    def _joint(self, releases: Sequence[Weighted], *, square: bool) -> Supremum:
        """Over all tables at once, and never above what they cost one by one."""
        together = self._at_once(releases, square)
        if len(releases) < 2:
            return together
        each = sum((self._at_once([one], square).value for one in releases), Fraction(0))
        return replace(together, value=min(together.value, each))

    def _at_once(self, releases: Sequence[Weighted], square: bool) -> Supremum:
        names = {name for names, _ in releases for name in names}
        if self.people_kept:
            rows = self.replaced_rows(names)
            found = (rows.joint_l2_squared if square else rows.joint_l1)(releases)
            return replace(found, exact=False)
        apart = self.rows_apart(names)
        return self._at_most(2 * apart**2 if square else 2 * apart, releases)

    def linf(self, names: Sequence[str]) -> Supremum:
        """sup over u of the largest entry of phi u."""
        if self.people_kept:
            return replace(self.replaced_rows(names).linf(names), exact=False)
        return Supremum(Fraction(self.rows_apart(names)), False)

    def differences(self, queries: tuple[Statement, ...]) -> Differences | None:
        """All differences of look-alikes' tables, and perhaps more; None if they are too many."""
        from congenial.pairs.differences import list_differences

        names = Cells(self.schema, queries).bases
        if self.people_kept:
            found = self.replaced_rows(names).differences(queries)
        else:
            atoms, norm = occupancy(self.published.of_rows).merged, 2 * self.rows_apart(names)
            found = list_differences(atoms, queries, norm, sum_kept=False)
        return None if found is None else replace(found, exact=False)

    def _at_most(self, norm: int, releases: Sequence[Weighted]) -> Supremum:
        return Supremum(norm * sum((w for _, w in releases), Fraction(0)), False)


@lru_cache(maxsize=64)
def replaced(figures: Figures, rows: int) -> SemiAdjacent:
    """So many records replaced, given figures; prices ask for the same ones again and again."""
    return SemiAdjacent(figures, within=rows)


@lru_cache(maxsize=64)
def uniform_reach(figures: Figures) -> Supremum:
    """alpha: slots that change so that one can take any value or be emptied, for all figures.

    Nested totals: 2 (1 if nothing is told apart, the empty slot being told apart from all others
    where the figures fix the number of rows). Margins: one more than there are. Anything else: half
    of the longest irreducible move, and one.

    >>> from congenial import Schema, margin
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["0", "1"]}})
    >>> for one in ((), (margin("sex"),), (margin("sex"), margin("ill"))):
    ...     print(uniform_reach(Figures(schema, one)).words)
    1 (exact, by closed form)
    2 (exact, by closed form)
    3 (exact, by closed form)
    """
    from congenial.pairs.searched_reach import longest_move

    unpublished = _unpublished(figures)
    if not figures.bounds and figures.structure != "general":
        groups = occupancy(unpublished)
        alone = groups.parts == 1 and groups.loose and not groups.margins
        value = 1 if alone else max(2, 1 + groups.margins)
        return Supremum(Fraction(value), True)
    norm = longest_move(_with_empty(occupancy(unpublished).merged), with_sum=True)
    if norm is None:
        told = "; ".join(s.label for s in figures.statements)
        raise StructureError(
            f"no proof covers these figures ({told}) with several rows per unit.",
            remedy="Publish nested totals or margins, or fewer statistics at once.",
        )
    return Supremum(Fraction(max(2, 1 + -(-norm // 2))), False, "Graver bound")


def _unpublished(figures: Figures) -> Figures:
    """The same statistics before their values are known."""
    return figures if figures.values is None else Figures(figures.schema, figures.statements)


def _with_empty(of: Merged) -> Merged:
    """One more answer that no figure sees: a slot without a row."""

    def widened(matrix: sp.csr_matrix) -> sp.csr_matrix:
        empty = sp.csr_matrix((matrix.shape[0], 1), dtype=np.int64)
        return sp.hstack([matrix, empty], format="csr", dtype=np.int64)

    return replace(
        of,
        equal=widened(of.equal),
        least=widened(of.least),
        several=np.append(of.several, False),
    )


def _plural(number: int, what: str) -> str:
    return what if number == 1 else f"{what}s"
