"""TopDown's two stages: nonnegative least squares, then controlled rounding.

Kept to compare with what the 2020 Census did. Not the nearest whole table in general.

Least absolute deviations onto the conforming tables: the paper's l1 family, indexed by beta.

The minimiser of ||m - y||_1 over S* is not unique. The paper's two bins keep the first as drawn
(beta = 1), or the second (beta = 0), or mix: m_1 = s_1 + beta u_1 - (1 - beta) u_2 (erratum: the
printed sign of the last term is wrong, which leaves its law as it is). For any figures we take the
two minimisers that put the correction as far back (beta = 1) and as far forward (beta = 0) in the
order of cells as an optimum allows, and mix those: minimisers form a convex set, so the mixture is
one too, and two bins give the paper's family.

Ways to publish a table under figures, by name, each a sampler of released tables.

All start from double geometric noise at some eps_cell. "plain" ignores the figures; "project",
"least_squares", "least_absolute" and "topdown" move a plain draw into the conforming set;
"condition" draws noise given the figures, "condition_project" then makes that nonnegative, and
"condition_nonnegative" conditions on the signs as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from congenial.data.arrays import Floats, Ints
from congenial.errors import FigureError, StructureError
from congenial.figures.support import FROZEN, Support
from congenial.sampling.conditioned import ConditionedCounts, ConditionedNoise
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.tables.conforming_tables import FAR, ConformingTables
from congenial.tables.general_fit import (
    NO_TABLE,
    checked,
    displacement,
    impossible,
    nearest_in,
    search,
)
from congenial.tables.water_levels import WaterLevels

_SNAP = 1e-5  # a real cell this near to a whole number is that number
_SHAKE = 1e-6  # largest random cost by which ties are broken


def least_squares(values: npt.ArrayLike, conforming: ConformingTables) -> Floats:
    """The conforming real table nearest to `values`, to about 1e-5 per cell (congenial-dp's NNL2).

    Whole values in groups of known total are exact to rounding. A cell that only just reaches its
    bound is the least exact; others are good to 1e-9 or better.

    >>> least_squares([5, -2, 1], ConformingTables.of([[1, 1, 1]], [3])).round(6).tolist()
    [3.0, 0.0, 0.0]
    """
    y = np.asarray(values, dtype=float).reshape(-1)
    if y.size != conforming.cells:
        raise StructureError(
            f"{y.size} values for {conforming.cells} cells.", remedy="Give one per cell."
        )
    if conforming.totals is not None and np.array_equal(y, np.rint(y)):
        whole = y.astype(np.int64)
        levels = WaterLevels(conforming.atoms, whole, conforming.lower, conforming.upper)
        x: Floats = np.clip(y, conforming.lower, conforming.upper)
        x[levels.order] = levels.real(conforming.totals)
        return x
    status, moved = displacement(y, conforming)
    if status == NO_TABLE:
        raise impossible()
    if moved is None:
        raise StructureError(
            f"least squares under these {conforming.rows.shape[0]} figures failed numerically (the "
            f"solver says {status}).",
            remedy="Use fewer figures, or print the values as drawn.",
        )
    return y + moved


def topdown(
    values: npt.ArrayLike, conforming: ConformingTables, randomness: Randomness | None = None
) -> Ints:
    """Nonnegative least squares, then controlled rounding; `nearest_in` is nearer in general.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> same_sum = ConformingTables.of([[1, 1, 1]], [4])
    >>> int(topdown([5, -1, 1], same_sum, SeededRandomness(1)).sum())
    4
    """
    return rounded(least_squares(values, conforming), conforming, randomness)


def rounded(
    x: npt.ArrayLike, conforming: ConformingTables, randomness: Randomness | None = None
) -> Ints:
    """Controlled rounding: the conforming whole table nearest to x in l1, each cell up or down.

    x conforms in real numbers. Where no such table exists (figures that are not unimodular) cells
    may move one further at a time. Ties are broken at random.
    """
    randomness = SystemRandomness() if randomness is None else randomness
    real = np.asarray(x, dtype=float).reshape(-1)
    near = np.rint(real)
    snapped = np.where(np.abs(real - near) <= _SNAP, near, real)
    floor, roof = np.floor(snapped).astype(np.int64), np.ceil(snapped).astype(np.int64)
    for room in (0, 1, 2, 4, 8):
        low = np.maximum(floor - room, conforming.lower)
        high = np.minimum(roof + room, conforming.upper)
        step = _round_once(snapped, low, high, conforming, randomness)
        if step is not None:
            return checked(step, conforming)
    raise StructureError(
        "no whole table was found within 8 of every cell of the real one.",
        remedy="Use the nearest whole table instead.",
    )


def _round_once(
    x: Floats, low: Ints, high: Ints, conforming: ConformingTables, randomness: Randomness
) -> Ints | None:
    """argmin of ||m - x||_1 over conforming whole m with low <= m <= high, unit by unit."""
    room = high - low
    if np.any(room < 0):
        return None
    width = int(room.max(initial=0))
    unit, cell = np.nonzero(np.arange(width)[:, None] < room[None, :])
    start = (low[cell] + unit).astype(float)
    cost = np.abs(start + 1 - x[cell]) - np.abs(start - x[cell])
    cost += randomness.words(cost.size) * (_SHAKE * 2.0**-64)
    at = conforming.rows @ low
    open_ = np.where(conforming.low <= -FAR, -np.inf, conforming.low - at)
    ends = open_, np.where(conforming.high >= FAR, np.inf, conforming.high - at)
    rows = conforming.rows[:, cell].astype(float)
    for whole in (False, True):
        units = search(cost, rows, ends, (np.zeros(cell.size), np.ones(cell.size)), whole)[1]
        if units is not None and np.abs(units - np.rint(units)).max(initial=0.0) <= 1e-4:
            return low + np.bincount(cell, np.rint(units), low.size).astype(np.int64)
    return None


def least_absolute(
    values: npt.ArrayLike, conforming: ConformingTables, beta: float = 0.5
) -> Floats:
    """A conforming real table of least ||m - values||_1, member beta of the family.

    Assumes 0 <= beta <= 1. FigureError if no table conforms. Source: congenial-dp, Example 4.1.

    >>> least_absolute([5, 4], ConformingTables.of([[1, 1]], [7]), beta=1.0).tolist()
    [5.0, 2.0]
    """
    if not 0.0 <= beta <= 1.0:
        raise StructureError(f"beta = {beta} is not in [0, 1].", remedy="Use a share.")
    y = np.asarray(values, dtype=float).reshape(-1)
    place = np.arange(y.size) / max(1, y.size - 1)
    least = float(np.abs(_moved(y, conforming, np.ones(y.size), None)).sum())
    ends = []
    for share, weight in ((beta, 2.0 - place), (1.0 - beta, 1.0 + place)):
        if share > 0.0:
            ends.append(share * _moved(y, conforming, weight, least))
    return np.asarray(y + np.sum(ends, axis=0), dtype=float)


def _moved(y: Floats, conforming: ConformingTables, weight: Floats, budget: float | None) -> Floats:
    """d of least weighted size with y + d conforming and, if given, ||d||_1 <= budget."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    rows = conforming.rows.astype(float)
    at = rows @ y
    low = np.where(conforming.low <= -FAR, -np.inf, conforming.low - at)
    high = np.where(conforming.high >= FAR, np.inf, conforming.high - at)
    identity = sp.identity(y.size, format="csr")
    floor = np.where(conforming.lower <= -FAR, -np.inf, conforming.lower - y)
    roof = np.where(conforming.upper >= FAR, np.inf, conforming.upper - y)
    both = sp.hstack([identity, -identity], format="csr")
    constraints = [
        LinearConstraint(rows @ both, low, high),
        LinearConstraint(both, floor, roof),
    ]
    if budget is not None:
        slack = 1e-9 * max(1.0, budget)
        constraints.append(LinearConstraint(np.ones((1, 2 * y.size)), -np.inf, budget + slack))
    solution = milp(
        np.concatenate([weight, weight]), bounds=Bounds(0.0, np.inf), constraints=constraints
    )
    if solution.x is None:
        raise FigureError(
            "no table within the bounds satisfies the figures.", remedy="Correct or drop a figure."
        )
    return np.asarray(solution.x[: y.size] - solution.x[y.size :], dtype=float)


_AT_ONCE = 20_000  # cells projected by one programme


@dataclass(frozen=True)
class MethodSetting:
    """One confidential table, what is published about it, and the noise per cell.

    CONFIDENTIAL: `truth`, one count per cell of the support's table.
    """

    truth: Ints
    support: Support
    eps_cell: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", np.asarray(self.truth, dtype=np.int64).reshape(-1))
        if not self.support.agrees(self.truth):
            raise FigureError(
                "the table does not agree with the published figures.",
                remedy="Use the table they were computed from.",
            )

    @cached_property
    def conforming(self) -> ConformingTables:
        """The nonnegative tables with the published sums."""
        return ConformingTables.given(self.support)

    def plain(self, randomness: Randomness, draws: int) -> Ints:
        """Independent noise in every cell that is not impossible."""
        noise = DoubleGeometric(self.eps_cell).draw(randomness, draws * self.truth.size)
        free = self.support.labels.reshape(-1) != FROZEN
        return self.truth + np.where(free, noise.reshape(draws, -1), 0)

    def conditioned(self, randomness: Randomness, draws: int) -> Ints:
        """Noise given the figures."""
        noise = ConditionedNoise(DoubleGeometric(self.eps_cell), self.support)
        return self.truth + noise.draw_many(randomness, draws)

    def conditioned_on_signs(self, randomness: Randomness, draws: int) -> Ints:
        """Counts given the figures and m >= 0."""
        counts = ConditionedCounts(DoubleGeometric(self.eps_cell), self.support, self.truth)
        return counts.draw_many(randomness, draws)

    def projected(
        self,
        drawn: Ints,
        how: Callable[[Any, ConformingTables, Randomness], Any],
        randomness: Randomness,
    ) -> Any:
        """Draws moved into the conforming set, several tables to a programme."""
        rows = max(1, _AT_ONCE // self.truth.size)
        parts: list[Any] = []
        sets: dict[int, ConformingTables] = {}
        for start in range(0, len(drawn), rows):
            block = drawn[start : start + rows]
            if len(block) not in sets:
                sets[len(block)] = self.conforming.repeated(len(block))
            parts.append(how(block.reshape(-1), sets[len(block)], randomness).reshape(block.shape))
        return np.concatenate(parts)


@dataclass(frozen=True)
class Method:
    """A way to publish: what it is called in a table, what it keeps, and how to draw from it."""

    words: str
    keeps: bool  # the mandated figures
    nonnegative: bool
    draw: Callable[[MethodSetting, Randomness, int], Any]


def _after_plain(how: Callable[[Any, ConformingTables, Randomness], Any]) -> Any:
    def draw(setting: MethodSetting, randomness: Randomness, draws: int) -> Any:
        return setting.projected(setting.plain(randomness, draws), how, randomness)

    return draw


def _condition_project(setting: MethodSetting, randomness: Randomness, draws: int) -> Any:
    return setting.projected(setting.conditioned(randomness, draws), nearest_in, randomness)


def _absolute(setting: MethodSetting, randomness: Randomness, draws: int) -> Any:
    # One table at a time: the order of cells is what the family is about.
    drawn = setting.plain(randomness, draws)
    return np.stack([least_absolute(y, setting.conforming) for y in drawn])


METHODS: dict[str, Method] = {
    "plain": Method("plain noise", False, False, MethodSetting.plain),
    "least_squares": Method(
        "plain, then nonnegative least squares",
        True,
        True,
        _after_plain(lambda y, s, _: least_squares(y, s)),
    ),
    "least_absolute": Method("plain, then least absolute (beta = 1/2)", True, True, _absolute),
    "project": Method("plain, then nearest whole table", True, True, _after_plain(nearest_in)),
    "topdown": Method("plain, then TopDown's two stages", True, True, _after_plain(topdown)),
    "condition": Method("conditioned on the figures", True, False, MethodSetting.conditioned),
    "condition_project": Method(
        "conditioned on the figures, then nearest whole table", True, True, _condition_project
    ),
    "condition_nonnegative": Method(
        "conditioned on figures and signs", True, True, MethodSetting.conditioned_on_signs
    ),
}
