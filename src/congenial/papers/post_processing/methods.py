"""Ways to publish a table under figures, by name, each a sampler of released tables.

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

from congenial.errors import FigureError
from congenial.figures.lattice import Ints
from congenial.figures.support import FROZEN, Support
from congenial.papers.post_processing.least_absolute import least_absolute
from congenial.papers.post_processing.two_stages import least_squares, topdown
from congenial.sampling.conditioned import ConditionedCounts, ConditionedNoise
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.randomness import Randomness
from congenial.tables.conforming_tables import ConformingTables
from congenial.tables.general_fit import nearest_in

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
