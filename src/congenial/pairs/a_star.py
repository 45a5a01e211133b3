"""How many records look-alike databases may differ in: a* and the other readings of semi-dp.

robust      for every person and every answer the figures still allow there is a conforming database
            within a records in which the person has it, whatever the data are;
existential the same with a *table* within a moves, for one database that a stored rule picks;
literal     Definition 13 as printed: for two answers some two databases, perhaps not yours.

a* is the reading's distance, raised if need be until differences of look-alikes reach every
direction in which conforming tables differ; otherwise noise could be missing there. How it was
found is always said: closed form, enumeration, Graver bound or integer programme.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp

from congenial.errors import StructureError
from congenial.figures import lattice
from congenial.figures.blocks import blocks, rows_of
from congenial.figures.invariants import Invariants
from congenial.figures.merged import Merged, merged
from congenial.pairs import integer_programme
from congenial.pairs.graver import graver
from congenial.pairs.listed_distances import ListedDistances
from congenial.pairs.occupancy import Occupancy
from congenial.pairs.supremum import Supremum

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


def reach(
    mandates: Invariants, reading: Reading = "robust", metric: Metric = "replace-one"
) -> Reach:
    """Work out a reading's distance; refused where nothing is proved."""
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
            f"the {reading} reading is only defined when n is public.",
            remedy="Use reading = 'robust', or the replace-one metric.",
        )
    if not mandates.bounds and mandates.structure != "general":
        groups = Occupancy(mandates)
        if metric == "replace-one":
            alone = groups.known and not groups.several and _one_database(merged(mandates))
            return _single("closed form") if alone else _closed_form(groups, reading)
        if not any(0 in one.block.atoms for one in groups.crossings):
            return _closed_form_rows(groups)
    of = merged(mandates)
    alone = metric == "replace-one" and _one_database(of)
    return _single("enumeration") if alone else _general(of, reading, metric)


def conforming(mandates: Invariants) -> ListedDistances | None:
    """The list of conforming tables on merged cells, where it is short enough to compare them."""
    of = merged(mandates)
    listed = None if of.tables is None else ListedDistances(of.tables, of.several)
    return listed if listed is not None and listed.manageable else None


def _one_database(of: Merged) -> bool:
    """Whether the figures give everybody the same answer, or leave nobody: a* = 0 (Example 3)."""
    if of.tables is None or of.people is None or len(of.tables) != 1:
        return False
    taken = of.tables[0] > 0
    return bool(np.count_nonzero(taken) <= 1 and not np.any(of.several & taken))


def _single(by: str) -> Reach:
    return Reach(Supremum(Fraction(0), True, by), 0, True, single=True)


# ---- nested totals, crossing margins -----------------------------------------------------------


def _closed_form(groups: Occupancy, reading: Reading) -> Reach:
    """Moves inside atoms; for crossing margins 1 + the hardest set cover."""
    known = groups.known or (groups.parts == 1 and not groups.crossings)
    apart = 2 if groups.several else 1
    if reading == "literal":
        return Reach(Supremum(Fraction(apart), known), 1, True if apart == 2 else None)
    robust = reading == "robust"
    worst, exact = (apart if robust else 1), known
    for one in groups.crossings:
        if not one.levels or len(one.levels) + robust <= worst:
            continue
        # Somebody from outside may come in; then everybody in the block can make room.
        inside_only = robust and groups.parts == 1
        people, attained = one.cover(without=int(inside_only))
        if people + robust > worst:
            worst, exact = people + robust, attained
    generating = 2 if groups.margins >= 2 else 1  # two people exchange their levels of one feature
    return Reach(Supremum(Fraction(worst), exact and known), generating, True)


def _closed_form_rows(groups: Occupancy) -> Reach:
    """By symmetric difference: one row where no figure counts, two where one must make room."""
    fixed = groups.parts > int(groups.loose)
    worst, exact = (2 if fixed else 1), groups.known or not fixed
    for one in groups.crossings:
        people, attained = one.cover()
        if one.people != 0 and 2 * people > worst:
            worst, exact = 2 * people, exact and attained
    generating = 4 if groups.margins >= 2 else worst
    return Reach(Supremum(Fraction(worst), exact), generating, True)


# ---- everything else ---------------------------------------------------------------------------


def _general(of: Merged, reading: Reading, metric: Metric) -> Reach:
    listed = None if of.tables is None else ListedDistances(of.tables, of.several)
    if listed is not None and listed.manageable and len(listed.tables):
        return _enumerated(listed, reading, metric, exact=of.people is not None)
    norm = longest_move(of, with_sum=metric == "replace-one")
    if norm is not None:
        return _bounded(norm, reading, metric)
    if integer_programme.able(of) and metric == "replace-one" and reading != "literal":
        try:
            return _programmed(of, reading)
        except integer_programme.GaveUp:
            pass
    what = "; ".join(s.label for s in (*of.mandates.bounds, *of.mandates.equalities))
    raise StructureError(
        f"no proved adjacency for these mandates ({what}): {of.atoms} groups of cells that they "
        "tell apart are too many for enumeration, a Graver bound or integer programming.",
        remedy="Mandate nested totals or margins, fewer or coarser statistics; publishing the "
        "figures first may help too.",
    )


def _enumerated(listed: ListedDistances, reading: Reading, metric: Metric, exact: bool) -> Reach:
    """Every pair of conforming tables was compared."""
    by = "enumeration"
    if metric == "symmetric difference":
        distance = Supremum(Fraction(listed.participation), exact, by)
        return Reach(distance, listed.generating_rows, None)
    value = getattr(listed, reading)
    generating = 1 if reading == "literal" else listed.generating
    found = Reach(Supremum(Fraction(value), exact, by), generating, None)
    connected = listed.components(int(found.star.value)) <= 1
    return Reach(found.distance, generating, connected)


def _bounded(norm: int, reading: Reading, metric: Metric) -> Reach:
    """A conforming table with somebody in H is one step g away, and the person takes that place.

    If somebody has the answer already, the two change places.
    """
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
    longest, known = 0, dict[tuple[int, bytes], int | None]()
    tied = blocks(matrix)
    rows = rows_of(matrix, [block.atoms for block in tied])
    for block, equations in zip(tied, rows, strict=True):
        people = block.atoms < of.atoms
        if block.features is not None and np.all(people):
            longest = max(longest, 2 * len(block.levels))
            continue
        key = (id(equations), people.tobytes())
        if key not in known:
            basis = graver(equations)
            norms = None if basis is None else np.abs(basis[:, people]).sum(axis=1)
            known[key] = None if norms is None else int(norms.max(initial=0))
        norm = known[key]
        if norm is None:
            return None
        longest = max(longest, norm)
    return longest


def _programmed(of: Merged, reading: Reading) -> Reach:
    value = integer_programme.worst_distance(of, tables_only=reading == "existential")
    exact = of.people is not None and not len(of.bounds) and value > 2
    generating = integer_programme.generating_distance(of)
    return Reach(Supremum(Fraction(value), exact, "integer programme"), generating, None)
