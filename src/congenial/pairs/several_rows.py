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

Attributes of units, and figures about units, add to these numbers (`classes_of`). A table of rows
that shows an attribute of units moves with every row of every unit that differs, k a in all: two
households that exchange their tenure change no slot, and move all their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import expect
from congenial.errors import FigureError, StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.people import Merged, people_under
from congenial.figures.statements import Statement, total
from congenial.pairs.a_star import Reading, longest_move
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.differences import Differences, list_differences
from congenial.pairs.pairs import (
    OTHERS,
    ROWS_OF_ONE_UNIT,
    UNITS_WITH_ROWS,
    Adjacency,
    Pairs,
    PublishedPairs,
    Supremum,
    Weighted,
)

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
    several_rows = True

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
        return TablesOfUnits(self.published, self.max_rows, self.never_empty)

    @cached_property
    def _classes(self) -> Classes:
        """What attributes of units and figures about units add."""
        return classes_of(self.published, self.never_empty)

    @cached_property
    def _only_number(self) -> bool:
        """Whether the number of rows is all that the figures tell of a group of units."""
        rows = self._classes.rows
        groups = people_under(rows)
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
        return people_under(_unpublished(self.published.of_rows)).merged.sum_kept

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

    def row_by_row(self, names: Iterable[str]) -> SemiAdjacent | None:
        """The replaced rows, where the number of rows is kept."""
        return self.replaced_rows(names) if self.people_kept else None

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
        each = sum((self._at_once([release], square).value for release in releases), Fraction(0))
        return replace(together, value=min(together.value, each))

    def _at_once(self, releases: Sequence[Weighted], square: bool) -> Supremum:
        names = {name for names, _ in releases for name in names}
        if self.people_kept:
            rows = self.replaced_rows(names)
            supremum = (rows.joint_l2_squared if square else rows.joint_l1)(releases)
            return replace(supremum, exact=False)
        apart = self.rows_apart(names)
        return self._at_most(2 * apart**2 if square else 2 * apart, releases)

    def linf(self, names: Sequence[str]) -> Supremum:
        """sup over u of the largest entry of phi u."""
        if self.people_kept:
            return replace(self.replaced_rows(names).linf(names), exact=False)
        return Supremum(Fraction(self.rows_apart(names)), False)

    def differences(self, queries: tuple[Statement, ...]) -> Differences | None:
        """All differences of look-alikes' tables, and perhaps more; None if they are too many."""
        names = Cells(self.schema, queries).bases
        if self.people_kept:
            listed = self.replaced_rows(names).differences(queries)
        else:
            atoms, norm = people_under(self.published.of_rows).merged, 2 * self.rows_apart(names)
            listed = list_differences(atoms, queries, norm, sum_kept=False)
        return None if listed is None else replace(listed, exact=False)

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
    unpublished = _unpublished(figures)
    if not figures.bounds and figures.structure != "general":
        groups = people_under(unpublished)
        alone = groups.parts == 1 and groups.loose and not groups.margins
        value = 1 if alone else max(2, 1 + groups.margins)
        return Supremum(Fraction(value), True)
    norm = longest_move(_with_empty(people_under(unpublished).merged), with_sum=True)
    if norm is None:
        labels = "; ".join(s.label for s in figures.statements)
        raise StructureError(
            f"no proof covers these figures ({labels}) with several rows per unit.",
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


# ---- unit classes -------------------------------------------------------------------------------
#
# Classes of units under exact figures: what an attribute of a unit, or a figure about units,
# adds.
#
# All rows of a unit share its class (block, tenure). Let (a, b, c) be proved for rows alone: with
# classes fixed, any unit can be given any rows by changing a units, b slots and c rows of the
# table.
#
#     figures about rows do not see classes      a + alpha_u - 1,   b,       c
#     they see groups of classes                 a + 1,             b + k,   c + k
#
# alpha_u is the number of units that must change so that one can have any class, given the
# figures about units. In the first line the classes and the rows change independently of each
# other. In the second, every figure about rows is told for each group (population by state, where
# units are counted by block): the unit exchanges its whole content with one of the class it is to
# have, which no figure sees, and its rows are then set within its new group, where the first
# proof applies. That needs the number of units of each class to be exact, or, if nothing about
# units is published, units without rows, of which one takes what the unit leaves behind.
# Everything else is refused.


NO_PROOF = "no proof covers"


@dataclass(frozen=True)
class Classes:
    """What is added to a proof for rows alone.

    `rows`: the figures about rows as one group of units sees them. `groups`: the axes of units by
    which every figure about rows is told.
    """

    rows: Figures
    more_units: int = 0
    exchanged: bool = False
    groups: tuple[str, ...] = ()


def classes_of(published: Figures, never_empty: bool) -> Classes:
    """Units and rows beyond those of a proof that knows rows only.

    >>> from congenial import Schema
    >>> from congenial.figures.statements import of_units
    >>> schema = Schema.from_dict(
    ...     {"block": {"levels": ["1", "2"], "of": "unit"}, "ill": {"levels": ["0", "1"]}}
    ... )
    >>> figures = Figures.of(schema, (total(), of_units(total(by="block"))))
    >>> classes_of(figures, never_empty=True).more_units
    1
    """
    rows = replace(published.of_rows, values=None)
    _refuse_sizes(published)
    if not _seen(rows, rows.statements):
        return Classes(rows, _reach(published.of_units) - 1)
    groups, within = _by_groups(rows)
    _refuse_open_groups(published.of_units, groups, never_empty)
    return Classes(within, 1, True, groups)


def _refuse_sizes(published: Figures) -> None:
    for statement in published.told:
        of_units = _seen(published, [statement])
        for name in (base for base in of_units if base in published.schema.sizes):
            raise StructureError(
                f"figure '{statement.label}' uses '{name}', the number of rows of a unit: "
                f"{NO_PROOF} this case.",
                remedy="Publish it without that attribute; a protected table may show it.",
            )


def _reach(units: Figures | None) -> int:
    """alpha_u: units that change so that one can have any class."""
    return 1 if units is None else max(1, int(SemiAdjacent(units).a_star.value))


def _seen(figures: Figures, statements: Iterable[Statement]) -> tuple[str, ...]:
    """Attributes of units that some statements mention."""
    bases = Cells(figures.schema, tuple(statements)).bases
    return tuple(name for name in bases if name in figures.schema.of_units)


def _axes_of_units(figures: Figures, statement: Statement) -> tuple[str, ...]:
    schema = figures.schema
    return tuple(name for name in statement.by if schema.axis(name).base in schema.of_units)


def _by_groups(rows: Figures) -> tuple[tuple[str, ...], Figures]:
    """The axes of units by which every figure is told, and the figures within one group."""
    for statement in rows.statements:
        if _seen(rows, [replace(statement, by=())]):
            raise _open(statement, "has a condition on an attribute of units")
    sets = {frozenset(_axes_of_units(rows, figure)) for figure in rows.statements}
    finest = max(sets, key=lambda axes: (rows.schema.size(sorted(axes)), sorted(axes)))
    groups = tuple(sorted(finest))
    grouped = [figure for figure in rows.statements if finest == {*_axes_of_units(rows, figure)}]
    for statement in rows.statements:
        if statement not in grouped and not _holds_within(rows, grouped, statement):
            raise _open(statement, f"is not published for each {' and '.join(groups)}")
    zeros = [figure for figure in rows.zeros if figure not in grouped]
    within = [
        replace(figure, by=tuple(n for n in figure.by if n not in finest)) for figure in grouped
    ]
    return groups, Figures(rows.schema, (*within, *zeros))


def _holds_within(rows: Figures, told: list[Statement], statement: Statement) -> bool:
    """Whether a statement says nothing that ties one group to another."""
    if statement.relation == "zero":
        return True  # impossible in every group alike
    both = Figures(rows.schema, (*told, statement))
    return statement.relation == "=" and statement.label in both.redundant


def _refuse_open_groups(units: Figures | None, groups: tuple[str, ...], full: bool) -> None:
    """StructureError unless the number of units of each class is exact, or nothing is told."""
    by = " and ".join(groups)
    if units is None:
        if full:
            raise StructureError(
                f"rows are counted for each {by}, an attribute of units that always have a row, "
                f"but units are not: {NO_PROOF} this case.",
                remedy=f"Publish the number of units by {by} too (total, units = true).",
            )
        return
    counted = total(by=groups).named("units of each group")
    both = Figures(units.schema, (*units.statements, counted))
    settled = not units.bounds and units.structure in ("none", "laminar")
    if not settled or counted.label not in both.redundant:
        raise StructureError(
            f"rows are counted for each {by}, but the figures about units do not give the number "
            f"of units in each class: {NO_PROOF} this case.",
            remedy=f"Publish the number of units by {by} (total, units = true) and no margins of "
            "units that cross it, or count rows without it.",
        )


def _open(statement: Statement, why: str) -> StructureError:
    return StructureError(
        f"figure '{statement.label}' counts rows and {why}: {NO_PROOF} this case.",
        remedy="Count rows for each value of the attribute (by), in every figure about rows; or "
        "count units (units = true).",
    )


# ---- tables of units ----------------------------------------------------------------------------
#
# Tables that count units (households by tenure), for the same look-alikes as tables of their
# rows.
#
# Look-alikes differ in at most a units, so a table of units by attributes that all rows of a unit
# share moves by at most 2 a in l1 and 2 a^2 in squared l2 norm, as if each unit were a record of
# its own; less where the figures about units leave less. The number of units must be the same in
# both: tables of units are for plans that publish figures about units.


@dataclass(frozen=True)
class TablesOfUnits(SeveralRows):
    """The pairs of `SeveralRows`, as tables of units see them.

    `figures` are those about units, on which noise can be conditioned; `everything` has those about
    rows, too.

    >>> from congenial import Schema, total
    >>> from congenial.figures.statements import of_units
    >>> schema = Schema.from_dict(
    ...     {"tenure": {"levels": ["own", "rent"], "of": "unit"}, "ill": {"levels": ["0", "1"]}}
    ... )
    >>> figures = Figures.of(schema, (total(), of_units(total())))
    >>> pairs = TablesOfUnits(figures, max_rows=3, never_empty=True)
    >>> pairs.units, pairs.l1(["tenure"]).value
    (3, Fraction(6, 1))
    """

    metric: ClassVar[str] = UNITS_WITH_ROWS
    counts_units = True
    people_kept = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.never_empty:
            raise StructureError(
                "tables of units need the number of units: without it, units without rows could "
                "be added unseen.",
                remedy="Publish the number of units, in all or by areas (total, units = true).",
            )

    @property
    def figures(self) -> Figures:
        """The figures about units, which count what these tables count."""
        return self.published.of_units or Figures(self.published.schema)

    @property
    def everything(self) -> Figures:
        """The figures about rows and about units."""
        return self.published

    def covers(self, other: Pairs) -> bool:
        """Whether every pair of `other` is one of these."""
        if not isinstance(other, TablesOfUnits) or self.max_rows < other.max_rows:
            return False
        fewer = other.units <= self.units and other.slots <= self.slots
        return fewer and other.published.implies(self.published)

    @property
    def records(self) -> int:
        """Units in which tables of look-alikes differ: a."""
        return self.units

    def rows_apart(self, names: Iterable[str]) -> int:
        """Units in which tables over these axes differ: a; axes of rows are refused."""
        for name in names:
            if self.schema.axis(name).base not in self.schema.of_units:
                raise StructureError(
                    f"a table of units cannot show {name!r}, because the rows of a unit may "
                    "differ in it.",
                    remedy=f'Say of = "unit" in the schema of {name!r} if they share it, or count '
                    "rows (leave units out).",
                )
        return self.units

    def replaced_rows(self, names: Iterable[str]) -> SemiAdjacent:
        """Units as if each were a record of its own, a of them replaced."""
        return replaced(self.figures, self.rows_apart(names))

    def differences(self, queries: tuple[Statement, ...]) -> Differences | None:
        """All differences of look-alikes' tables, and perhaps more; None if they are too many."""
        listed = self.replaced_rows(Cells(self.schema, queries).bases).differences(queries)
        return None if listed is None else replace(listed, exact=False)


# ---- rows and units -----------------------------------------------------------------------------
#
# Tables of rows and tables of units together: how far both can move between the same look-alikes.
#
# Where a table of units shows an attribute of units, look-alikes can change it in a units and c
# rows besides: both kinds of tables move as far as each can alone, and what they lose adds up.
#
# Tables of units by the number of their rows alone (households by size) are different: they move
# only where sizes change, and that takes slots. Let a unit lose rem_i rows and gain add_i. The
# number of rows being exact, sum add_i = sum rem_i = R, which is at least the number r of rows in
# which the tables of rows differ. Its slots are max(add_i, rem_i) = (add_i + rem_i + |add_i -
# rem_i|) / 2, so
#
#     b >= sum_i max(add_i, rem_i) = R + sum_i |add_i - rem_i| / 2 >= r + s / 2,
#
# s being the units whose size differs. Hence r <= min(c, b - s / 2) and s <= a: the joint
# supremum is at most the largest of F(r) + G(s) on that line, F and G being what each kind can
# move alone.


def saved_together(
    pairs: SeveralRows, rows: Sequence[Weighted], units: Sequence[Weighted], *, square: bool
) -> Fraction:
    """By how much the suprema of tables of rows and of units, added, exceed that of both at once.

    `rows` and `units`: axes and weight of each table. `square`: squared l2 norms, else l1 norms.
    0 where nothing less than the sum is proved.

    >>> from congenial import Schema, total
    >>> from congenial.figures.figures import Figures
    >>> from congenial.figures.statements import of_units
    >>> schema = Schema.from_dict(
    ...     {"size": {"integers": [1, 4], "of": "unit size"}, "ill": {"levels": ["0", "1"]}}
    ... )
    >>> pairs = SeveralRows.given(Figures.of(schema, (total(), of_units(total()))), 4)
    >>> one = Fraction(1)
    >>> pairs.l1(["ill"]).value, pairs.tables_of_units.l1(["size"]).value
    (Fraction(14, 1), Fraction(8, 1))
    >>> saved_together(pairs, [(("ill",), one)], [(("size",), one)], square=False)
    Fraction(4, 1)
    """
    if not (rows and units and _by_size_alone(pairs, rows, units)):
        return Fraction(0)
    most_rows, most_units = (
        _alone(pairs, rows, square),
        _alone(pairs.tables_of_units, units, square),
    )
    of_rows, of_units = (2 * sum((w for _, w in tables), Fraction(0)) for tables in (rows, units))
    together = max(
        min(most_rows, of_rows * _norm(max(0, pairs.slots - (changed + 1) // 2), square))
        + min(most_units, of_units * _norm(changed, square))
        for changed in range(pairs.units + 1)
    )
    return most_rows + most_units - together


def _norm(moved: int, square: bool) -> int:
    """Half the largest norm of a table in which so many rows or units differ."""
    return moved * moved if square else moved


def _alone(pairs: SeveralRows, tables: Sequence[Weighted], square: bool) -> Fraction:
    return (pairs.joint_l2_squared if square else pairs.joint_l1)(tables).value


def _by_size_alone(pairs: SeveralRows, rows: Iterable[Weighted], units: Iterable[Weighted]) -> bool:
    """Whether tables of units show sizes only, and tables of rows no attribute of units."""
    schema = pairs.schema
    of_rows = {schema.axis(name).base for names, _ in rows for name in names}
    counted = {schema.axis(name).base for names, _ in units for name in names}
    return not of_rows & {*schema.of_units} and counted <= {*schema.sizes}
