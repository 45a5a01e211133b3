"""Small cases of every law of integers, with their weights written out.

A case lists all values that carry weight (for a law without bounds: all but a share of about 1e-5)
and the log weight of each, independently of the law. Both are made when a test asks for them. A law
of `choice.LAWS` without a case fails the suite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.figures.figures import Figures
from congenial.figures.limits import FAR
from congenial.figures.statements import margin
from congenial.figures.support import support
from congenial.sampling.choice import LAWS
from congenial.sampling.counts_given_total import CountCell, CountsGivenTotal
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric, IndependentCells
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.grouped_noise import GroupedNoise
from congenial.sampling.knorm_noise import KNormNoise
from congenial.sampling.lattice_chain import LatticeChain
from congenial.sampling.lattice_gaussian import CrossingGaussian, GroupedGaussian
from congenial.sampling.law import IntegerLaw
from congenial.sampling.norm_given_sums import NoiseNorm, NormGivenSums
from congenial.sampling.proposed_noise import ProposedNoise
from congenial.sampling.tree_of_sums import BoundedSum, NestedSums, NoisyCells, TreeOfSums
from congenial.sampling.two_way_noise import TwoWayNoise
from tests.sampling.levels import noise_at_levels
from tests.worlds import one_way_margins, zero_margins

EPS, SIGMA2 = Fraction(3, 2), Fraction(1)
CELL, GAUSS = DoubleGeometric(EPS), DiscreteGaussian(SIGMA2)
MARGINS = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])  # of a 2 x 2 table of groups


FOUR_PLACES = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
CUBE = one_way_margins(2, 2, 2)
FOUR = np.array([2, 0, 3, 3])
COUNTS = np.array([[2, 0, 1], [1, 3, 0]])
NESTED = [BoundedSum(np.array([0, 1]), 1, 3), BoundedSum(np.array([0, 1, 2]), -FAR, 5)]

Values = Any


@dataclass(frozen=True)
class LawCase:
    """A law of a class, all values it may take, and their log weights."""

    name: str
    kind: type[IntegerLaw]
    make: Callable[[], IntegerLaw]
    list_values: Callable[[], Values]
    weigh: Callable[[Values], Values]

    @cached_property
    def law(self) -> IntegerLaw:
        return self.make()

    @cached_property
    def values(self) -> Values:
        return self.list_values()

    @cached_property
    def log_weights(self) -> Values:
        return self.weigh(self.values)

    def __str__(self) -> str:
        return f"{self.kind.__name__}: {self.name}"


def _box(reach: int, cells: int) -> Values:
    return np.array(list(product(range(-reach, reach + 1), repeat=cells)))


def _l1(u: Values, eps: Fraction = EPS) -> Values:
    return -float(eps) * np.abs(u).reshape(len(u), -1).sum(axis=1)


def _l2(u: Values) -> Values:
    return -(u.reshape(len(u), -1) ** 2).sum(axis=1) / (2 * float(SIGMA2))


def _case(
    name: str,
    kind: type[IntegerLaw],
    of: tuple[Any, ...],
    values: Callable[[], Values],
    weigh: Callable[[Values], Values],
) -> LawCase:
    """The law `kind(*of)`."""
    return LawCase(name, kind, partial(kind, *of), values, weigh)


def _given(u: Values, rows: Values) -> Values:
    """Those of which the sums in `rows` are zero."""
    return u[~np.any(u.reshape(len(u), -1) @ np.array(rows).T, axis=1)]


def _one_way(reach: int) -> Values:
    """All 2 x 2 x 2 tables with zero one-way margins whose entries are within reach: four cells are
    free, the others follow.
    """
    free = _box(reach, 4)
    a, b, c, d = free.T  # at (0,0,0), (0,0,1), (0,1,0), (1,0,0)
    rest = -(a + b + c)  # at (0,1,1), as the first level sums to zero
    e = -(a + b + d)  # at (1,0,1), as the second attribute's first level does
    f = -(a + c + d)  # at (1,1,0), as the third attribute's first level does
    u = np.column_stack([a, b, c, rest, d, e, f, -(d + e + f)])
    return u[np.abs(u).max(axis=1) <= reach]


def _with_margins(s: Values) -> Values:
    """All nonnegative tables with the margins of s."""
    rows = [
        [r for r in product(*(range(int(n) + 1) for n in s.sum(axis=0))) if sum(r) == total]
        for total in s.sum(axis=1)
    ]
    found: list[list[tuple[int, ...]]] = [[]]
    for level in rows:
        found = [
            [*part, row]
            for part in found
            for row in level
            if np.all(np.sum([*part, row], axis=0) <= s.sum(axis=0))
        ]
    return np.array(found)


def _gauge(u: Values) -> Values:
    """Of 2 x c tables: differences are sums of swaps, and the gauge is a quarter of the l1 norm."""
    return _l1(u) / 4


def _nested(m: Values) -> Values:
    kept = (m.sum(axis=1) == 8) & (m[:, :2].sum(axis=1) >= 1) & (m[:, :2].sum(axis=1) <= 3)
    return m[kept & (m[:, :3].sum(axis=1) <= 5)]


def _given_total() -> Values:
    """Four counts with the sum 8."""
    m = np.array(list(product(range(9), repeat=4)))
    return m[m.sum(axis=1) == 8]


def _first_two_bounded() -> Values:
    every = np.array(list(product(range(-6, 13), repeat=3)))
    every = np.column_stack([every, 8 - every.sum(axis=1)])
    return every[(every[:, :2].sum(axis=1) >= 1) & (every[:, :2].sum(axis=1) <= 3)]


def _weighted_and_bounded() -> TreeOfSums:
    weighted = NestedSums(
        np.array([0, 0, 1, 1]), np.array([1, -1]), np.array([False, True]),
        [Fraction(1), Fraction(0)], np.array([1, -FAR]), np.array([3, FAR]),
    )  # fmt: skip
    return TreeOfSums(NoisyCells.of_one_law(FOUR, CELL, None, None), weighted)


def _at_every_node() -> IntegerLaw:
    levels = [(np.array([0, 0, 0]), EPS), (np.array([-1, 0, 0]), EPS)]
    return noise_at_levels(levels, Fraction(2), 3)


def _trees() -> list[LawCase]:
    given, total = partial(TreeOfSums.of_groups, [0] * 4, FOUR), _given_total
    return [
        LawCase("counts given a total", TreeOfSums, partial(given, CELL), total,
                lambda x: _l1(x - FOUR)),
        LawCase("Gaussian counts", TreeOfSums, partial(given, GAUSS), total,
                lambda x: _l2(x - FOUR)),
        LawCase("bounds on nested sums", TreeOfSums, partial(given, CELL, sums=NESTED),
                lambda: _nested(_given_total()), lambda x: _l1(x - FOUR)),
        LawCase("a sum both weighted and bounded", TreeOfSums, _weighted_and_bounded,
                _first_two_bounded, lambda x: _l1(x - FOUR) - np.abs(x[:, :2].sum(axis=1) - 2)),
        LawCase("noise at every node", TreeOfSums, _at_every_node, lambda: _box(7, 3),
                lambda u: _l1(u, Fraction(2)) - 1.5 * np.abs(u[:, 1:].sum(axis=1))
                - 1.5 * np.abs(u.sum(axis=1))),
    ]  # fmt: skip


def _norm_law(norm: NoiseNorm, scale: Fraction) -> IntegerLaw:
    """Noise in another norm given both margins of a 2 x 3 table; it is built on other laws."""
    schema = Schema.from_dict({"a": {"integers": [1, 2]}, "b": {"integers": [1, 3]}})
    figures = Figures(schema, (margin("a"), margin("b")))
    return NormGivenSums(norm, scale, support(figures, ("a", "b")))


def _two_groups() -> Values:
    return _given(_box(5, 5), [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]])


def _crossed() -> Values:
    return _given(_box(7, 4), MARGINS)


def _margins_of_groups() -> Values:
    return _given(_box(4, 6), MARGINS[:, [0, 0, 1, 2, 2, 3]])


def _by_norm() -> Values:
    return zero_margins((2, 3), 20).reshape(-1, 6)


def _six() -> Values:
    return np.array([c for c in product(range(7), repeat=3) if sum(c) == 6])


def law_cases() -> list[LawCase]:
    """Every case; shapes are not square."""
    labels, three = np.array([0, 0, 1, 1, 1]), partial(_box, 9, 3)
    priors = [CountCell(x, Fraction(1, 2)) for x in (2, 0, 4)]
    return [
        _case("three cells", IndependentCells, (CELL, 3), three, _l1),
        _case("three Gaussian cells", IndependentCells, (GAUSS, 3), three, _l2),
        _case("two groups", GroupedNoise, (labels, EPS), _two_groups, _l1),
        _case("two groups", GroupedGaussian, (labels, SIGMA2), _two_groups, _l2),
        _case("2 x 4", TwoWayNoise, ((2, 4), EPS), lambda: zero_margins((2, 4), 5), _l1),
        LawCase("3 x 2", CrossingGaussian, partial(CrossingGaussian.of_table, (3, 2), SIGMA2),
                lambda: zero_margins((3, 2), 6).reshape(-1, 6), _l2),
        _case("groups under both margins", CrossingGaussian,
              ([0, 0, 1, 2, 2, 3], MARGINS, SIGMA2, FOUR_PLACES), _margins_of_groups, _l2),
        _case("a weighted sum of groups", CrossingGaussian, ([0, 1, 1, 2, 2], [[2, -1, 1]], SIGMA2),
              lambda: _given(_box(5, 5), [[2, -1, -1, 1, 1]]), _l2),
        _case("crossing", CrossingGroups, ([0, 1, 2, 3], [0] * 4, MARGINS, CELL, None), _crossed,
              _l1),
        _case("2 x 3 counts", CrossingGroups,
              (np.arange(6), COUNTS.reshape(-1), one_way_margins(2, 3), CELL),
              lambda: _with_margins(COUNTS).reshape(-1, 6),
              lambda m: _l1(m - COUNTS.reshape(-1))),
        _case("one-way margins of 2 x 2 x 2", ProposedNoise, (np.arange(8), CUBE, EPS),
              lambda: _one_way(7), _l1),
        _case("3 x 4, one equation left to chance", ProposedNoise,
              (np.arange(12), one_way_margins(3, 4), EPS),
              lambda: zero_margins((3, 4), 3).reshape(-1, 12), _l1),
        _case("chain", LatticeChain, (CELL, np.arange(4), MARGINS), _crossed, _l1),
        _case("2 x 3", KNormNoise, ((2, 3), EPS), lambda: zero_margins((2, 3), 25), _gauge),
        LawCase("2 x 3 in the l2 norm", NormGivenSums, partial(_norm_law, "l2", EPS**2), _by_norm,
                lambda u: -float(EPS) * np.sqrt((u**2).sum(axis=1))),
        LawCase("2 x 3, largest entry", NormGivenSums, partial(_norm_law, "linf", EPS), _by_norm,
                lambda u: -float(EPS) * np.abs(u).max(axis=1)),
        _case("prior counts", CountsGivenTotal, (priors, 6), _six,
              lambda c: -0.5 * np.abs(c - [2, 0, 4]).sum(axis=1)),
        *_trees(),
    ]  # fmt: skip


def without_case() -> set[str]:
    """Laws of the list that no case tries, and cases of no law in the list."""
    tried = {case.kind for case in law_cases()}
    return {law.__name__ for law in tried.symmetric_difference({*LAWS, NormGivenSums})}
