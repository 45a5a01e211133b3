"""The results that are possible do not depend on the data, down to the last bit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, calibrate, release_table
from congenial.audit.universes import UNIVERSES
from congenial.mechanisms import Mechanism, PlainLaplace
from tests.audit.every_mechanism import Case, table_cases

SEED = 90_210
ALPHA = 1e-6
EPSILON = 1.0
DRAWS = 40_000
FEW = ("total", "both margins", "voting age", "rows come and go")
PAIRS = 12


def discrete(case: Case) -> bool:
    return case.mechanism is not None and case.mechanism.family not in ("laplace", "gaussian")


CASES = [
    case for case in table_cases([one for one in UNIVERSES if one.label in FEW]) if discrete(case)
]


def window(case: Case, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Tables around two true ones: their differences, and one step in every pair of cells."""
    steps = [np.zeros(left.size, dtype=np.int64)]
    for i, j in itertools.permutations(range(left.size), 2):
        step = np.zeros(left.size, dtype=np.int64)
        step[i], step[j] = 1, -1
        steps.append(step)
    around = [base.reshape(-1) + step for base in (left, right) for step in steps]
    around += [one + other for one, other in itertools.product(around[:9], steps[:9])]
    return np.unique(around, axis=0).reshape(-1, *left.shape)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_tables_are_possible_from_both_of_a_pair(case: Case) -> None:
    mechanism = case.mechanism
    assert mechanism is not None
    for left, right in case.universe.pairs()[:PAIRS]:
        truths = [mechanism.query(table) for table in (left, right)]
        outputs = window(case, *truths)
        possible = [np.isfinite(mechanism.log_density(outputs, one)) for one in (left, right)]
        assert (possible[0] == possible[1]).all()
        assert possible[0].any()
    (values,) = release_table(mechanism, left, SeededRandomness(SEED)).drawn
    assert values.dtype == np.int64  # whole numbers: no bit below one to look at


# ---- low-order bits ------------------------------------------------------------------------------


def naive(truth: float, uniform: np.ndarray) -> np.ndarray:
    """What textbooks and numerical libraries do: the inverse of the distribution function."""
    low = uniform < 0.5
    tail = np.where(low, 2 * uniform, 2 * (1 - uniform))
    return truth + np.where(low, 1.0, -1.0) * np.log(tail) / EPSILON


def reachable(result: np.ndarray, truth: float, shift: float = 0.0, near: int = 6) -> np.ndarray:
    """Whether some 53-bit uniform makes `result` from `truth`, by trying those nearby."""
    noise = result - truth
    tail = np.exp(-np.abs(noise) * EPSILON)
    uniform = np.where(noise < 0, tail / 2, 1 - tail / 2)
    steps = np.round(uniform * 2.0**53)
    found = np.zeros(result.shape, dtype=bool)
    for step in range(-near, near + 1):
        found |= naive(truth, (steps + step + shift) * 2.0**-53) == result
    return found


def attack(from_0: np.ndarray, from_1: np.ndarray, shift: float = 0.0) -> float:
    """Lower confidence bound on epsilon by the event "possible from 0 and not from 1".

    Clopper-Pearson at ALPHA for both probabilities.
    """
    hits, false = (
        int((reachable(one, 0.0, shift) & ~reachable(one, 1.0, shift)).sum())
        for one in (from_0, from_1)
    )
    print(f"{hits} of {len(from_0)} results betray the table, {false} falsely")
    low = stats.beta.ppf(ALPHA / 2, hits, len(from_0) - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - ALPHA / 2, false + 1, len(from_1) - false)
    return math.log(low / high) if low > 0 else 0.0


SCHEMA = Schema.from_dict({"x": {"levels": ["a", "b"]}})
TARGET = Guarantee.pure(2 * Fraction(EPSILON), under=ReplaceOne(SCHEMA))  # two cells change
OURS = PlainLaplace.calibrate(TARGET, ("x",))


def drawn(draw: Callable[..., Any], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first cell of many draws where it is 0, and where it is 1."""
    return tuple(  # type: ignore[return-value]
        draw(np.array([truth, 0]), SeededRandomness(seed + truth), DRAWS)[:, 0] for truth in (0, 1)
    )


def test_low_order_bits_give_the_naive_sampler_away(attempt: Callable[..., None]) -> None:
    print(f"seed {SEED}")
    attempt("bits", draws=2 * DRAWS)
    words = SeededRandomness(SEED).words(2 * DRAWS)
    uniform = (words >> np.uint64(11)).astype(float) * 2.0**-53
    first, second = naive(0.0, uniform[:DRAWS]), naive(1.0, uniform[DRAWS:])
    assert reachable(first, 0.0).all()  # the attack knows its sampler
    assert attack(first, second) > 5 * EPSILON  # the promise was EPSILON


def test_low_order_bits_of_numpy_give_it_away_too() -> None:
    rng = np.random.Generator(np.random.Philox(SEED))
    first, second = (rng.laplace(truth, 1 / EPSILON, DRAWS) for truth in (0.0, 1.0))
    assert attack(first, second) > 2 * EPSILON


def test_low_order_bits_of_ours_say_nothing(attempt: Callable[..., None]) -> None:
    print(f"seed {SEED}")
    attempt("bits", draws=2 * DRAWS)
    assert OURS.description.scale == EPSILON
    first, second = drawn(OURS.draw, SEED)
    assert attack(first, second, shift=0.5) <= EPSILON
    assert attack(1 - second, 1 - first, shift=0.5) <= EPSILON  # the other way round
    # Before they are rounded to the grid, the same draws are given away: the rounding is needed.
    first, second = drawn(partial(Mechanism.draw, OURS), SEED)
    assert attack(first, second, shift=0.5) > 5 * EPSILON


def test_every_point_of_the_grid_is_possible_from_everywhere() -> None:
    """Steps between draws of 53-bit uniforms stay below the grid but with probability 2^-40."""
    assert math.log2(OURS.grid).is_integer()
    rare = math.log(OURS.grid * EPSILON * 2.0**53)  # |noise| * epsilon where a step is one grid
    assert math.exp(-rare) < 2.0**-40
    values = drawn(OURS.draw, SEED)[0]
    assert (np.round(values / OURS.grid) * OURS.grid == values).all()


@pytest.mark.parametrize(
    ("name", "target", "step"),
    [
        ("plain_laplace", Guarantee.pure(2, under=ReplaceOne(SCHEMA)), -10),  # deviation 1.41
        ("plain_gaussian", Guarantee.gaussian(1, under=ReplaceOne(SCHEMA)), -10),
        ("plain_gaussian", Guarantee.gaussian("1/4", under=ReplaceOne(SCHEMA)), -8),
    ],
)
def test_the_grid_is_said_and_kept(name: str, target: Guarantee, step: int) -> None:
    made = calibrate(name, target, ("x",))
    assert f"values are rounded to multiples of 2^{step}" in made.description.law
    assert any("values are rounded afterwards" in line for line in made.guarantee.assumptions)
    values = made.draw(np.array([5, 9]), SeededRandomness(SEED), 200) / 2.0**step
    assert (values == np.round(values)).all()
    assert (values % 2 != 0).any()
