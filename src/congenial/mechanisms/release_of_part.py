"""One part of a nation as a release of its own: everything that several tables can be asked.

Cells, their intervals and their whole counts are those printed. Sums of them have standard
deviations from the tables that show the part: those below it, and its rows of tables by parts.
Tables of the whole nation made the printed estimates a little better still, so that these standard
deviations are bounds: least squares from more measurements has no larger variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from congenial.data.table import cell_index
from congenial.figures.figures_by_part import of_part
from congenial.figures.invariants import Invariants
from congenial.mechanisms.released import LEVEL, Interval, axis_names
from congenial.mechanisms.tables_release import TablesRelease, joint_estimator
from congenial.pairs.adjacency import AddRemove, Adjacency, SemiAdjacent
from congenial.pairs.pairs import Pairs
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.descriptions import TablesDescription
from congenial.tables.covariance import Deviations
from congenial.tables.joint_estimator import BASES, JointEstimator
from congenial.tables.measurements import Floats

if TYPE_CHECKING:
    from congenial.mechanisms.tables_by_parts_release import PartedRelease


@dataclass(frozen=True, repr=False)
class ReleaseOfPart(TablesRelease):
    """The tables of one part of a nation, as printed, under the promise of the nation's release.

    Look-alikes of the part are look-alikes of the nation in which nobody else moves, so that the
    promise to people of the part is the nation's.
    """

    @cached_property
    def estimator(self) -> JointEstimator:
        """What the part's tables say together; of cells, the standard deviations as printed."""
        made = joint_estimator(self.description)
        printed = zip(self.tables, self.deviations, strict=True)
        kept = {names: Deviations(values, "bound") for names, values in printed}
        vars(made)["_deviations"] = kept  # as the cached property would keep them
        return made

    def estimates_of(self, *names: str) -> Floats:
        """Estimates of a table: as printed, or sums of what is printed of the finest cells."""
        axes = axis_names(names)
        if self._place(axes) is not None:
            return super().estimates_of(*axes)
        at = max(range(len(self.tables)), key=lambda one: self.estimates[one].size)
        cells = self.estimates[at]
        places = np.broadcast_to(cell_index(self.schema, self.tables[at], axes), cells.shape)
        sums = np.bincount(places.reshape(-1), cells.reshape(-1), self.schema.size(axes))
        shape = [axis.size for axis in self.schema.axes(axes)]
        return np.asarray(sums, dtype=np.float64).reshape(shape)

    def own_estimates_of(self, *names: str) -> Floats:
        """Estimates from the part's tables alone: those printed rest on the nation's tables too."""
        return np.asarray(self.fitted.table(axis_names(names)))

    def interval(self, condition: str, level: float = LEVEL) -> Interval:
        """Interval for the true number of people who meet a condition, around the estimate."""
        found = super().interval(condition, level)
        return replace(found, basis=BASES["bound"]) if found.basis == BASES["exact"] else found


def release_of_part(nation: PartedRelease, part: str) -> ReleaseOfPart:
    """One part of a nation; its files are read, and those of other parts are not opened."""
    number = nation.number(part)
    figures = of_part(nation.description.support, nation.parts, number)
    tables = tuple(names for names in nation.tables if _shows_the_part(nation, names))
    columns = [_columns(nation, names, number) for names in tables]
    laws = tuple(
        replace(one, support=figures) for one in nation.description.measured if one.table in tables
    )
    place = {names: at for at, names in enumerate(tables)}
    made = ReleaseOfPart(
        f"{nation.name}: {part}",
        TablesDescription(laws, tables),
        replace(nation.guarantee, adjacency=_within(nation.guarantee.adjacency, figures)),
        nation.randomness,
        nation.publishable,
        drawn=tuple(columns[place[one.table]]["count_as_drawn"] for one in laws),
    )
    for name, column in (("estimates", "estimate"), ("deviations", "sd"), ("counts", "count")):
        vars(made)[name] = tuple(one[column] for one in columns)  # as printed
    return made


def _shows_the_part(nation: PartedRelease, names: tuple[str, ...]) -> bool:
    return nation.parts.is_below(names) or nation.parts.parts in names


def _columns(nation: PartedRelease, names: tuple[str, ...], number: int) -> dict[str, Any]:
    """The printed numbers of a table: the part's own file, or its rows of a table by parts."""
    at = nation.tables.index(names)
    if at in nation.worst:
        return dict(nation.numbers(at, nation.parts.labels[number])[1])
    axis = names.index(nation.parts.parts)
    rows = nation.upper[at].items()
    return {name: np.take(values, [number], axis) for name, values in rows}


def _within(pairs: Pairs, figures: Invariants) -> Pairs:
    """The same unit of protection among the people of the part."""
    assert isinstance(pairs, Adjacency)
    if isinstance(pairs, AddRemove):
        return replace(pairs, schema=figures.schema)
    assert isinstance(pairs, SemiAdjacent | SeveralRows)
    return replace(pairs, published=figures)
