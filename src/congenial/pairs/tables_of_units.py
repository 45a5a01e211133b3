"""Tables that count units (households by tenure), for the same look-alikes as tables of their rows.

Look-alikes differ in at most a units, so a table of units by attributes that all rows of a unit
share moves by at most 2 a in l1 and 2 a^2 in squared l2 norm, as if each unit were a record of its
own; less where the figures about units leave less. The number of units must be the same in both:
tables of units are for plans that publish figures about units.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from congenial.errors import StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import UNITS_WITH_ROWS, Pairs
from congenial.pairs.several_rows import SeveralRows, replaced

if TYPE_CHECKING:
    from congenial.pairs.differences import Differences


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
        found = self.replaced_rows(Cells(self.schema, queries).bases).differences(queries)
        return None if found is None else replace(found, exact=False)
