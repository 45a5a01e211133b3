"""The contract every law of integers must satisfy, against enumeration; and laws that break it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial.errors import StructureError
from congenial.sampling.choice import LAWS, OPTIONS, TablePart, choose
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric, IndependentCells
from congenial.sampling.lattice_chain import LatticeChain
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import SeededRandomness
from tests.contracts.laws import CELL, CUBE, LawCase, law_cases, without_case
from tests.worlds import ALPHA, one_way_margins, pearson

SEED = 20_261_116
DRAWS = 6000
OUTSIDE = 1e-4  # what the lists of laws without bounds may lack

CASES = law_cases()
all_cases = pytest.mark.parametrize("case", CASES, ids=str)


def probabilities(case: LawCase):
    weights = np.exp(case.log_weights)
    return weights / weights.sum()


def fits(case: LawCase, probs) -> bool:
    """Pearson's test of draws against `probs` over values expected at least 8 times, at ALPHA."""
    drawn = case.law.draw_many(SeededRandomness(SEED), DRAWS).reshape(DRAWS, -1)
    seen = Counter(map(tuple, drawn.tolist()))
    often = np.flatnonzero(probs * DRAWS >= 8)
    flat = case.values.reshape(len(case.values), -1)
    observed = [seen[tuple(flat[i].tolist())] for i in often]
    observed = np.array([*observed, DRAWS - sum(observed)])
    expected = np.array([*probs[often], max(1 - probs[often].sum(), 1e-9)]) * DRAWS
    return pearson(observed, expected) > ALPHA


def log_density(case: LawCase, values):
    """log p, up to a constant where the law does not know its normaliser."""
    try:
        return np.asarray(case.law.log_density(values))
    except StructureError:
        assert case.law.log_Z is None
        return np.asarray(case.law.log_weight(values))


def broken_promises(case: LawCase) -> list[str]:
    """What of the contract a law breaks."""
    law, logs = case.law, np.log(probabilities(case))
    assert isinstance(law, case.kind)
    log_sum = math.log(math.fsum(np.exp(case.log_weights)))
    found = [] if fits(case, probabilities(case)) else ["draws"]
    stated = log_density(case, case.values)
    if law.log_Z is None:
        stated = stated - stated[0] + logs[0]
    if np.abs(stated - logs).max() > OUTSIDE:
        found.append("density")
    if law.log_Z is not None and abs(law.log_Z - log_sum) > OUTSIDE:
        found.append("log Z")
    if not 0 <= law.log_ratio_error < 1e-6 and case.kind is not LatticeChain:
        found.append("errors")
    return found


def test_every_law_has_a_case():
    assert without_case() == set()
    assert len(set(LAWS)) == len(LAWS)


@all_cases
def test_a_law_keeps_its_contract(case):
    assert broken_promises(case) == []


@all_cases
def test_20_percent_less_noise_is_noticed(case):
    """The test of draws has power: it rejects the law of which all log weights are 5/4 of these."""
    sharper = np.exp(case.log_weights * 1.25)
    assert not fits(case, sharper / sharper.sum())


@all_cases
def test_nothing_has_weight_off_the_support(case):
    off = case.values[0].copy()
    off.reshape(-1)[0] += 1
    listed = {tuple(row) for row in case.values.reshape(len(case.values), -1).tolist()}
    if tuple(off.reshape(-1).tolist()) not in listed:
        far = isinstance(case.law, IndependentCells) or "node" in case.name
        assert log_density(case, off) == -math.inf or far


@all_cases
def test_a_draw_is_a_function_of_the_words(case):
    first, again = (case.law.draw_many(SeededRandomness(SEED), 7) for _ in range(2))
    assert np.array_equal(first, again)
    assert case.law.draw(SeededRandomness(SEED)).shape == first.shape[1:]


class Shrunk(IndependentCells):
    """Planted: draws with 20 % less noise than the density says."""

    def draw_many(self, randomness, n):
        cell = DoubleGeometric(self.cell.eps * Fraction(5, 4))
        return cell.draw(randomness, n * self.cells).reshape(n, self.cells)


class Unnormalised(IndependentCells):
    """Planted: a normaliser that is 1 % off, and a density that uses it."""

    log_Z = 0.01

    def log_density(self, u):
        return super().log_density(u) - 0.01


class Careless(IndependentCells):
    """Planted: H below zero."""

    log_ratio_error = -0.5


@pytest.mark.parametrize(
    ("planted", "noticed"),
    [(Shrunk, ["draws"]), (Unnormalised, ["density", "log Z"]), (Careless, ["errors"])],
)
def test_a_wrong_law_is_rejected(planted, noticed):
    sound = next(case for case in CASES if case.kind is IndependentCells)
    assert broken_promises(replace(sound, make=lambda: planted(CELL, 3))) == noticed


def test_a_law_that_says_nothing_of_its_errors_cannot_be_made():
    class Silent(IntegerLaw):
        log_Z = 0.0

        def log_density(self, x):
            return 0.0

        def draw_many(self, randomness, n):
            return np.zeros((n, 1), dtype=np.int64)

    with pytest.raises(TypeError, match="log_ratio_error"):
        Silent()


def test_the_first_option_that_fits_is_taken_and_says_why():
    gauss, labels = DiscreteGaussian(Fraction(4)), np.array([0, 0, 1])
    margins = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
    parts = {
        "GroupedNoise": TablePart(CELL, labels),
        "GroupedGaussian": TablePart(gauss, labels),
        "IndependentCells": TablePart(CELL, np.full(3, -2)),
        "CrossingGroups": TablePart(CELL, np.arange(4), margins),
        "ProposedNoise": TablePart(DoubleGeometric(Fraction(3, 8)), np.arange(8), CUBE),
        "TwoWayNoise": TablePart(CELL, np.arange(4), margins, (2, 2)),
        "CrossingGaussian": TablePart(gauss, np.arange(4), margins, (2, 2)),
        "LatticeChain": TablePart(CELL, np.arange(4), margins, (2, 2), chain=True),
        "TreeOfSums": TablePart(CELL, labels, centre=np.array([1, 2, 3]), low=np.zeros(3, int)),
    }
    found = {name: choose(part) for name, part in parts.items()}
    assert {name: type(one.law).__name__ for name, one in found.items()} == {n: n for n in parts}
    reasons = [one.why for one in found.values()]
    assert len(set(reasons)) == len(parts) == len(OPTIONS)


def test_what_no_law_can_draw_is_refused_as_elimination_says():
    part = TablePart(DoubleGeometric(Fraction(1, 80)), np.arange(60), one_way_margins(3, 4, 5))
    with pytest.raises(StructureError, match="crossing figures tie the totals of 60 groups"):
        choose(part)


def test_double_geometric_noise_that_is_refused_is_not_taken_for_gaussian():
    """Both margins of a table too large for its law: words and a remedy, no other family."""
    labels = np.arange(320)
    rows, columns = labels // 16, labels % 16
    equations = np.concatenate(
        [rows[None, :] == np.arange(20)[:, None], columns[None, :] == np.arange(16)[:, None]]
    ).astype(np.int64)
    part = TablePart(DoubleGeometric(Fraction(1, 12)), labels, equations, shape=(20, 16))
    with pytest.raises(StructureError, match=r"a 16 x 20 table .* Use discrete Gaussian noise"):
        choose(part)
