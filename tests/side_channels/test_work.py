"""The work of a draw does not depend on the data, where we say so; the words it takes show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from congenial.audit.universes import UNIVERSES
from congenial.mechanisms.plain import PlainGeometric
from congenial.sampling.randomness import Randomness, SeededRandomness, Words
from tests.audit.every_mechanism import Case, table_cases

SEED = 4_127
FEW = ("total", "both margins", "voting age", "rows come and go")
PAIRS, REPEATS = 6, 4
CASES = [
    case
    for case in table_cases([one for one in UNIVERSES if one.label in FEW])
    if case.mechanism is not None
]


class Counted(SeededRandomness):
    """A seeded stream that knows how many words were taken."""

    taken = 0

    def words(self, n: int) -> Words:
        self.taken += n
        return super().words(n)


def differ(case: Case) -> bool:
    """Whether draws from two tables that must look alike take other numbers of the same words."""
    mechanism = case.mechanism
    assert mechanism is not None
    for left, right in case.universe.pairs()[:PAIRS]:
        for seed in range(SEED, SEED + REPEATS):
            taken = []
            for table in (left, right):
                randomness = Counted(seed)
                mechanism.draw(mechanism.query(table), randomness, 1)
                taken.append(randomness.taken)
            if taken[0] != taken[1]:
                return True
    return False


@pytest.mark.parametrize("case", [c for c in CASES if c.mechanism.additive], ids=str)  # type: ignore[union-attr]
def test_noise_is_drawn_without_looking_at_the_data(case: Case) -> None:
    """Rejection samplers included: how often they try again is a function of the noise alone."""
    print(f"seed {SEED}")
    assert not differ(case)
    mechanism = case.mechanism
    assert mechanism is not None
    left, right = case.universe.pairs()[0]
    drawn = [
        mechanism.draw(mechanism.query(one), SeededRandomness(SEED), 3) - mechanism.query(one)
        for one in (left, right)
    ]
    assert np.allclose(drawn[0], drawn[1], atol=1e-9)  # the same words are the same noise


def test_a_draw_that_is_repeated_until_no_count_is_negative_shows() -> None:
    """Negative control: how often such a draw is repeated depends on the counts."""

    class Repeated(PlainGeometric):
        def draw(self, truth: Any, randomness: Randomness, draws: int) -> Any:
            while True:
                found = super().draw(truth, randomness, draws)
                if found.min() >= 0:
                    return found

    case = next(c for c in CASES if c.name == "plain_geometric")
    assert case.mechanism is not None
    planted = Repeated(case.mechanism.adjacency, case.mechanism.description)
    assert differ(replace(case, mechanism=planted))
