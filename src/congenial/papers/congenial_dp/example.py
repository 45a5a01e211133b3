"""The paper's table: 2 sexes by 23 ages, with total, female and voting-age counts mandated.

Table 1's counts, and simulated ones like those of Figure 1; the figures as statements of the
product; and the exact samplers that stand where the paper has its chain.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from congenial.data.arrays import Ints
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.figures.statements import count, total
from congenial.figures.support import Support, support
from congenial.sampling.conditioned import ConditionedCounts
from congenial.sampling.discrete import DoubleGeometric

EPS_CELL, PROPOSAL = Fraction(1, 2), Fraction(3, 5)
EDGES = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
FEMALE = [8, 6, 3, 6, 4, 4, 4, 8, 5, 7, 7, 6, 1, 5, 4, 4, 9, 6, 2, 8, 8, 8, 7]
MALE = [3, 4, 5, 8, 6, 4, 5, 5, 5, 6, 10, 7, 3, 2, 5, 11, 6, 4, 7, 4, 5, 3, 8]
TABLE1: Ints = np.array(FEMALE + MALE)
ATOMS: Ints = np.array([0] * 4 + [1] * 19 + [2] * 4 + [3] * 19)  # sex by voting age
# rows of A: everybody, females, minors
A: Ints = np.stack([np.ones(46, np.int64), ATOMS < 2, ATOMS % 2 == 0]).astype(np.int64)
SOLVED = (0, 22, 45)  # cells outside the paper's index set I = {2..22, 24..45}, which counts from 1
SCHEMA = Schema.from_dict(
    {"sex": {"levels": ["female", "male"]}, "age": {"edges": EDGES, "top": "85+"}}
)


def published(counts: Any) -> tuple[Table, Support]:
    """A table of the paper's shape, and what its three mandated figures make known of it."""
    table = Table(SCHEMA, SCHEMA.names, np.asarray(counts).reshape(2, 23))
    figures = publish(table, total(), count("sex = 'female'"), count("age >= 18"))
    return table, support(figures, SCHEMA.names)


def conditional(counts: Any) -> ConditionedCounts:
    """Exact draws of the paper's mechanism: noise given the three figures and m >= 0."""
    table, public = published(counts)
    return ConditionedCounts(DoubleGeometric(EPS_CELL), public, table.counts)


@lru_cache(maxsize=4)
def simulated(tables: int, seed: int) -> Ints:
    """Confidential tables like those of Figure 1: cells negative binomial, mean 5.26.

    The printed (100, .05) is 100 successes with failure probability .05. These are invented people,
    so NumPy's generator makes them.
    """
    rng = np.random.default_rng(seed)
    return rng.negative_binomial(100, 0.95, size=(tables, 46)).astype(np.int64)
