"""Every law of integers there is, which of them draws a part of a table, and why.

What the figures leave of a table falls into independent parts (`figures.support`). `choose` goes
through OPTIONS from top to bottom and takes the first law that fits a part and can be built for it:
closed forms before messages, messages before elimination, elimination before proposals. The reason
is shown by `congenial check`. A law that is not in LAWS fails tests/contracts/test_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures.support import LOOSE
from congenial.sampling.counts_given_total import CountsGivenTotal
from congenial.sampling.discrete import CellLaw, DoubleGeometric, IndependentCells
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.grouped_noise import GroupedNoise
from congenial.sampling.knorm_noise import KNormNoise
from congenial.sampling.lattice_chain import LatticeChain
from congenial.sampling.lattice_gaussian import CrossingGaussian, GroupedGaussian
from congenial.sampling.law import IntegerLaw
from congenial.sampling.proposed_noise import ProposedNoise
from congenial.sampling.tree_of_sums import BoundedSum, TreeOfSums
from congenial.sampling.two_way_noise import TwoWayNoise


@dataclass(frozen=True, eq=False)
class TablePart:
    """Cells of a table that are drawn together, and what must hold for them.

    labels: the group of each cell, -1 for a cell without noise, LOOSE for all where nothing
    published touches them. equations: what ties the sums of groups; None where each is fixed.
    shape: (rows, columns) of a two-way table of single cells given both margins, cells in its
    order. centre, low, high, sums: where counts are drawn, the counts, their bounds, and bounds on
    nested sums. chain: whether a chain was asked for. features: where the margins of a table of
    groups are given, each group's level on each feature.
    """

    cell: CellLaw
    labels: Ints = field(repr=False)
    equations: Any = field(default=None, repr=False)
    shape: tuple[int, int] | None = None
    centre: Ints | None = field(default=None, repr=False)
    low: Ints | None = field(default=None, repr=False)
    high: Ints | None = field(default=None, repr=False)
    sums: Sequence[BoundedSum] = ()
    chain: bool = False
    features: Ints | None = field(default=None, repr=False)

    @property
    def geometric(self) -> bool:
        """Whether a cell's noise is double geometric, not discrete Gaussian."""
        return isinstance(self.cell, DoubleGeometric)

    @property
    def signed(self) -> bool:
        """Whether noise is drawn, without bounds, and not counts."""
        return self.centre is None


@dataclass(frozen=True)
class ChosenLaw:
    """A law that draws a part, and why it was chosen."""

    law: IntegerLaw
    why: str


@dataclass(frozen=True)
class Option:
    """A law, the parts it fits, how it is made for one, and why it is the one to take."""

    law: type[IntegerLaw]
    why: str
    fits: Callable[[TablePart], bool]
    build: Callable[[Any], IntegerLaw]


OPTIONS = (
    Option(
        LatticeChain,
        "a Markov chain was asked for; not certified",
        lambda part: part.chain,
        lambda part: LatticeChain(part.cell, part.labels, part.equations),
    ),
    Option(
        IndependentCells,
        "no published sum touches the cells: independent noise",
        lambda part: bool(np.all(part.labels == LOOSE)),
        lambda part: IndependentCells(part.cell, part.labels.size),
    ),
    Option(
        GroupedNoise,
        "each published sum has cells of its own: noise group by group, in closed form",
        lambda part: part.signed and part.equations is None and part.geometric,
        lambda part: GroupedNoise(part.labels, part.cell.eps),
    ),
    Option(
        GroupedGaussian,
        "each published sum has cells of its own: Gaussian noise on each group's lattice",
        lambda part: part.signed and part.equations is None and not part.geometric,
        lambda part: GroupedGaussian(part.labels, part.cell.sigma2),
    ),
    Option(
        TwoWayNoise,
        "both margins of two-way tables: columns are proposed, then fitted to the rows",
        lambda part: part.signed and part.shape is not None and part.geometric,
        lambda part: TwoWayNoise(part.shape, part.cell.eps),
    ),
    Option(
        CrossingGaussian,
        "published sums cross: Gaussian noise on the lattice of tables where they are zero",
        lambda part: part.signed and part.equations is not None and not part.geometric,
        lambda part: CrossingGaussian(part.labels, part.equations, part.cell.sigma2, part.features),
    ),
    Option(
        TreeOfSums,
        "counts with nested sums: sums are drawn from coarse to fine",
        lambda part: part.equations is None,
        lambda part: _tree(part),
    ),
    Option(
        CrossingGroups,
        "published sums cross: sums of groups are drawn one after the other (elimination), cells "
        "given them",
        lambda part: part.equations is not None and part.shape is None,
        lambda part: _crossing(part),
    ),
    Option(
        ProposedNoise,
        "published sums cross in too many ways for elimination: noise is proposed, four cells "
        "make up the difference, and the proposal is accepted with the exact probability",
        lambda part: part.signed and part.geometric and part.shape is None,
        lambda part: ProposedNoise(part.labels, part.equations, part.cell.eps),
    ),
)

# laws that no structure chooses: what is asked of them is another law
BY_NAME: dict[type[IntegerLaw], str] = {
    KNormNoise: "mechanism 'knorm'",
    CountsGivenTotal: "counts with a prior, given public information",
}

LAWS: tuple[type[IntegerLaw], ...] = (*(option.law for option in OPTIONS), *BY_NAME)


def choose(part: TablePart) -> ChosenLaw:
    """The first law of OPTIONS that fits and can be built; StructureError (that of the first one
    that fits) where none can.

    >>> from fractions import Fraction
    >>> part = TablePart(DoubleGeometric(Fraction(1)), np.array([0, 0, 1, 1, 1]))
    >>> choose(part).why
    'each published sum has cells of its own: noise group by group, in closed form'
    """
    refusals: list[StructureError] = []
    for option in OPTIONS:
        if option.fits(part):
            try:
                return ChosenLaw(option.build(part), option.why)
            except StructureError as refusal:
                refusals.append(refusal)
    raise refusals[0]


def reason(part: TablePart) -> str:
    """Why `choose` takes what it takes, without making it; by labels and equations alone."""
    return _first(part).why


def _first(part: TablePart) -> Option:
    return next(option for option in OPTIONS if option.fits(part))


def _tree(part: Any) -> TreeOfSums:
    """With the bounds on sums if few draws are wasted; whoever draws checks those left out."""
    sums = (part.labels, part.centre, part.cell, part.low, part.high)
    tree = TreeOfSums.of_groups(*sums, part.sums)
    return tree if tree.sharp or not part.sums else TreeOfSums.of_groups(*sums)


def _crossing(part: Any) -> CrossingGroups:
    centre = np.zeros(part.labels.size, dtype=np.int64) if part.signed else part.centre
    return CrossingGroups(part.labels, centre, part.equations, part.cell, part.low, part.high)
