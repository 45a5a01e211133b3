"""Small scenario classes, and the exact loss of a mechanism over their pairs of laws."""

from __future__ import annotations

import itertools
from fractions import Fraction as F

import numpy as np

from congenial.data.schema import Schema
from congenial.pairs.finite_scenarios import FiniteScenarios
from congenial.pairs.scenarios import BoundedCounts, DependentCounts, StatedLaws, k_anonymity
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.stated_laws import StatedBinomial, pmf

SCHEMA = Schema.from_dict({"answer": {"levels": ["no", "yes"]}})


def histogram(levels: int):
    return lambda x: tuple(sum(v == k for v in x) for k in range(levels))


def three_people(fact=None) -> FiniteScenarios:
    given = FiniteScenarios.independent(
        {
            "fair": [[1, 1, 1]] * 3,
            "skew": [[8, 1, 1], [1, 3, 2], [1, 1, 4]],
        }
    )
    return given if fact is None else given.given("nobody else's total", fact)


def finite(level="query") -> SecretPairs:
    return SecretPairs(SCHEMA, (three_people(),), level=level)


def correlated() -> SecretPairs:
    """Two people who nearly always answer alike: Delta_z is above the ordinary sensitivity."""
    rows = list(itertools.product((0, 1), repeat=2))
    return SecretPairs(SCHEMA, (FiniteScenarios.of(rows, {"alike": [9, 1, 1, 9]}),))


def dependent(n=4) -> SecretPairs:
    return SecretPairs(SCHEMA, (DependentCounts(n, F(1, 4), F(3, 4)),))


def stated() -> SecretPairs:
    laws = (("one", pmf({0: "1/2", 3: "1/2"}), pmf({1: "3/5", 4: "2/5"})),)
    return SecretPairs(SCHEMA, (StatedLaws("as told", laws),))


def anonymous() -> SecretPairs:
    return SecretPairs(SCHEMA, (BoundedCounts(5, k_anonymity(1)),))


def masses(law, query=None) -> dict[tuple[int, ...], float]:
    """A law as probabilities of points, pushed through a query of databases."""
    if isinstance(law, StatedBinomial):
        law = law.tabulated()
    points = np.asarray(law.points).reshape(len(law.points), -1).astype(int)
    p = np.exp(law.log_masses())
    out: dict[tuple[int, ...], float] = {}
    for row, mass in zip(points.tolist(), p.tolist(), strict=True):
        key = tuple(row) if query is None else tuple(query(tuple(row)))
        out[key] = out.get(key, 0.0) + mass
    return out


def exact_loss(pairs, density, points, query=None, push=None) -> float:
    """max over pairs and y of |log P(y | s) / P(y | s')|, by enumeration."""
    worst = 0.0
    y = np.array(points)
    cache: dict[tuple[int, ...], np.ndarray] = {}
    for pair in pairs.conditionals(query):
        logs = []
        for law in (pair.left, pair.right):
            mixed = np.zeros(len(y))
            for x, mass in masses(law, push).items():
                if x not in cache:
                    cache[x] = np.exp(density(y, x))
                mixed += mass * cache[x]
            logs.append(np.log(mixed))
        worst = max(worst, float(np.abs(logs[0] - logs[1]).max()))
    return worst
