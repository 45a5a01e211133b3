"""How many records look-alike databases may differ in: a* and the other readings of semi-dp.

robust      for every person and every answer the figures still allow there is a conforming database
            within a records in which the person has it, whatever the data are;
existential the same with a *table* within a moves, for one database that a stored rule picks;
literal     Definition 13 as printed: for two answers some two databases, perhaps not yours.

a* is the reading's distance, raised if need be until differences of look-alikes reach every
direction in which conforming tables differ; otherwise noise could be missing there. How it was
found is always said: closed form, enumeration, Graver bound or integer programme. Closed forms,
for nested totals and crossing margins, are here; the others in `searched_reach`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.merged import Merged
from congenial.pairs.occupancy import Occupancy, occupancy
from congenial.pairs.pairs import Supremum

Reading = Literal["robust", "existential", "literal"]
Metric = Literal["replace-one", "symmetric difference"]


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


def reach(figures: Figures, reading: Reading = "robust", metric: Metric = "replace-one") -> Reach:
    """A reading's distance, worked out once for equal figures; refused where nothing is proved."""
    for value, kind, known in (
        (reading, "reading", get_args(Reading)),
        (metric, "metric", get_args(Metric)),
    ):
        if value not in known:
            raise StructureError(
                f"{kind} = {value!r} is not known.", remedy=f"Use one of {', '.join(known)}."
            )
    if metric == "symmetric difference" and reading != "robust":
        raise StructureError(
            f"the {reading} reading needs a public number of people.",
            remedy="Use reading = 'robust', or the replace-one metric.",
        )
    groups = occupancy(figures)
    if (reading, metric) not in groups.reaches:
        groups.reaches[reading, metric] = _worked_out(groups, reading, metric)
    return groups.reaches[reading, metric]


def _worked_out(groups: Occupancy, reading: Reading, metric: Metric) -> Reach:
    """In closed form where there is one."""
    figures = groups.figures
    if not figures.bounds and figures.structure != "general":
        if metric == "replace-one":
            alone = groups.known and not groups.several and _one_database(groups.merged)
            return _single("closed form") if alone else _closed_form(groups, reading)
        if not any(0 in one.block.atoms for one in groups.crossings):
            return _closed_form_rows(groups)
    if metric == "replace-one" and _one_database(groups.merged):
        return _single("enumeration")
    from congenial.pairs.searched_reach import search

    return search(groups.merged, reading, metric)


def _one_database(of: Merged) -> bool:
    """Whether the figures give everybody the same answer, or leave nobody: a* = 0 (Example 3)."""
    if of.tables is None or of.people is None or len(of.tables) != 1:
        return False
    taken = of.tables[0] > 0
    return bool(np.count_nonzero(taken) <= 1 and not np.any(of.several & taken))


def _single(by: str) -> Reach:
    return Reach(Supremum(Fraction(0), True, by), 0, True, single=True)


def _closed_form(groups: Occupancy, reading: Reading) -> Reach:
    """Moves inside atoms; for crossing margins 1 + the hardest set cover."""
    known = groups.known or (groups.parts == 1 and not groups.crossings)
    apart = 2 if groups.several else 1
    if reading == "literal":
        return Reach(Supremum(Fraction(apart), known), 1, True if apart == 2 else None)
    robust = reading == "robust"
    worst, exact = (apart if robust else 1), known
    # Somebody from outside may come in; then everybody in the block can make room.
    inside_only = int(robust and groups.parts == 1)
    for one in groups.crossings:
        for features in np.unique(one.margins)[::-1].tolist():  # as many people are always enough
            if not features or features + robust <= worst:
                break
            for people, attained in one.covers(one.margins == features, without=inside_only):
                if people + robust > worst:
                    worst, exact = people + robust, attained
                if features + robust <= worst:
                    break
    generating = 2 if groups.margins >= 2 else 1  # two people exchange their levels of one feature
    return Reach(Supremum(Fraction(worst), exact and known), generating, True)


def _closed_form_rows(groups: Occupancy) -> Reach:
    """By symmetric difference: one row where no figure counts, two where one must make room."""
    fixed = groups.parts > int(groups.loose)
    worst, exact = (2 if fixed else 1), groups.known or not fixed
    for one in groups.crossings:
        inside = np.ones(len(one.margins), dtype=bool) if one.people is None else one.people > 0
        for people, attained in one.covers(inside):
            if 2 * people > worst:
                worst, exact = 2 * people, exact and attained
    generating = 4 if groups.margins >= 2 else worst
    return Reach(Supremum(Fraction(worst), exact), generating, True)
