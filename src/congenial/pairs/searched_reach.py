"""How many records look-alike databases may differ in, where no closed form is known.

Conforming tables are listed and compared where they are few; otherwise the longest Graver move
bounds the distance for every value of the figures, or integer programmes find it (`a_star`).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.errors import StructureError
from congenial.figures import lattice
from congenial.figures.blocks import BlockKind, blocks
from congenial.figures.merged import Merged
from congenial.pairs import integer_programme
from congenial.pairs.a_star import Metric, Reach, Reading
from congenial.pairs.graver import graver
from congenial.pairs.listed_distances import ListedDistances
from congenial.pairs.pairs import Supremum


def search(of: Merged, reading: Reading, metric: Metric) -> Reach:
    """By listing all conforming tables, else a Graver bound, else integer programming."""
    listed = listed_tables(of)
    if listed is not None and len(listed.tables):
        return _enumerated(listed, reading, metric, exact=of.people is not None)
    norm = longest_move(of, with_sum=metric == "replace-one")
    if norm is not None:
        return _bounded(norm, reading, metric)
    if integer_programme.able(of) and metric == "replace-one" and reading != "literal":
        try:
            return _programmed(of, reading)
        except integer_programme.GaveUp:
            pass
    what = "; ".join(s.label for s in (*of.figures.bounds, *of.figures.equalities))
    raise StructureError(
        f"no proof covers these exact figures ({what}): {of.atoms} groups of cells are too many "
        "to work out in how many records compared datasets may differ.",
        remedy="Publish nested totals or margins exactly, or fewer or coarser figures. Running "
        "`congenial publish` first may help too.",
    )


def listed_tables(of: Merged) -> ListedDistances | None:
    """All conforming tables on merged cells, where they are few enough to compare them."""
    listed = None if of.tables is None else ListedDistances(of.tables, of.several)
    return listed if listed is not None and listed.manageable else None


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
    return _longest((kind, kind.atoms < of.atoms) for kind in blocks(matrix).kinds)


def _longest(tied: Iterable[tuple[BlockKind, Any]]) -> int | None:
    """The longest move of kinds of blocks, given which of their atoms are people, not slacks."""
    longest = 0
    for kind, people in tied:
        basis = None if kind.features is not None and np.all(people) else graver(kind.equations)
        if basis is None and kind.features is None:
            return None
        for told in np.unique(people, axis=0):
            if kind.features is not None and np.all(told):
                longest = max(longest, 2 * len(kind.levels))
            elif basis is None:
                return None
            else:
                norms = np.abs(basis[:, told]).sum(axis=1)
                longest = max(longest, int(norms.max(initial=0)))
    return longest


def _programmed(of: Merged, reading: Reading) -> Reach:
    value = integer_programme.worst_distance(of, tables_only=reading == "existential")
    exact = of.people is not None and not len(of.bounds) and value > 2
    generating = integer_programme.generating_distance(of)
    return Reach(Supremum(Fraction(value), exact, "integer programme"), generating, None)
