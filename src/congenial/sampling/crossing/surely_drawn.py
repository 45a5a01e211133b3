"""Whether noise on tied groups can be drawn by elimination, told without building its tables."""

from __future__ import annotations

import math
from typing import NamedTuple

from congenial.errors import StructureError
from congenial.sampling.crossing.joining_order import Component
from congenial.sampling.discrete import CellLaw
from congenial.sampling.inversion import Ints
from congenial.sampling.tree.messages import WIDEST, Leaf

# Windows end at 2^-80 of the largest weight. Draws outside them are left with half of those bits
# at least, so that their share is far below the 2^-2 that `atom_totals` refuses.
_SPARE_BITS = 40


class WidestWindow(NamedTuple):
    """A window no smaller than that of an atom's total."""

    lo: int
    hi: int


def surely_drawn(parts: list[Component], sizes: Ints, law: CellLaw) -> bool:
    """True if `CrossingGroups` can be built for groups of these sizes of unbounded cells around 0;
    False if only building it tells.

    The window of a sum is at most the sum of the windows of its cells, which bounds how many states
    there are and how much work they take.
    """
    cell = Leaf(law).edge(+1)
    reach = [WidestWindow(-cell * size, cell * size) for size in map(int, sizes)]
    if 2 * max(one.hi for one in reach) > WIDEST:
        return False
    return all(_fits(part, [reach[a] for a in part.atoms]) for part in parts)


def _fits(part: Component, reach: list[WidestWindow]) -> bool:
    if not part.freedom:
        return True
    widest = max(one.hi - one.lo + 1 for one in reach)
    if part.freedom * math.log2(widest) + math.log2(1 + part.freedom) > _SPARE_BITS:
        return False
    try:
        part.refuse_large(reach)
    except StructureError:
        return False
    return True
