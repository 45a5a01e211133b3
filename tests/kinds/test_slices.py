"""Slices of a release by group: together they are the law of the whole table."""

from __future__ import annotations

import pickle
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.invariants import publish
from congenial.figures.statements import at_most, count, total
from congenial.figures.support_slices import runs_across
from congenial.kinds.by_group import ByGroup
from congenial.kinds.group_refusals import slices_of
from congenial.kinds.slices import SliceLaw, stream
from congenial.mechanisms.congenial import Congenial, CongenialCounts, CongenialGaussian
from congenial.mechanisms.congenial_chain import CongenialChain
from congenial.mechanisms.hierarchy import CongenialHierarchy
from congenial.mechanisms.mechanism import Mechanism
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import Randomness, SeededRandomness

ALPHA = 1e-6
SEED = 20_261
SCHEMA = Schema.from_dict(
    {
        "sex": {"levels": ["f", "m"]},
        "county": {"levels": ["A", "B", "C", "nobody here"]},
        "age": {"levels": ["0", "1", "2"]},
    }
)
NAMES = ("sex", "county", "age")
COUNTS = np.array(
    [
        [[3, 1, 2], [0, 0, 4], [2, 2, 0], [0, 0, 0]],
        [[1, 0, 5], [1, 3, 0], [0, 4, 1], [0, 0, 0]],
    ]
)
TABLE = Table(SCHEMA, NAMES, COUNTS)
PEOPLE = total(by=["county"])
FEMALE = count("sex = 'f'", by=["county"])
OLD = count("age = '2'", by=["county"])
MIXED = count("sex = 'f' and age = '0'", by=["county"])
FEW = at_most(count("age = '0'", by=["county"]), 6)


def promised(*figures: Any, rho: bool = False) -> Guarantee:
    """A promise given the figures of the table."""
    pairs = SemiAdjacent(publish(TABLE, *figures))
    if rho:
        return Guarantee.zero_concentrated(Fraction(1, 2), pairs)
    return Guarantee.pure(Fraction(3, 2), pairs)


def levelled(*figures: Any) -> Mechanism:
    """Noise at the counties, by sex within them, and at the cells."""
    return CongenialHierarchy.calibrate(promised(*figures), NAMES, [("county",), ("county", "sex")])


CASES: dict[str, Any] = {
    "nested": lambda: Congenial.calibrate(promised(PEOPLE, FEMALE), NAMES),
    "crossing": lambda: Congenial.calibrate(promised(PEOPLE, FEMALE, OLD), NAMES),
    "crossing thrice": lambda: Congenial.calibrate(promised(PEOPLE, FEMALE, OLD, MIXED), NAMES),
    "crossing, rho": lambda: CongenialGaussian.calibrate(
        promised(PEOPLE, FEMALE, OLD, rho=True), NAMES
    ),
    "levels": levelled,
    "levels given figures": lambda: levelled(PEOPLE),
    "counts": lambda: CongenialCounts.calibrate(promised(PEOPLE), NAMES),
    "counts, crossing": lambda: CongenialCounts.calibrate(promised(PEOPLE, FEMALE, OLD), NAMES),
    "counts, bounds": lambda: CongenialCounts.calibrate(promised(PEOPLE, FEW), NAMES),
}


def sliced(mechanism: Mechanism, by: tuple[str, ...] = ("county",)) -> ByGroup:
    """The same without records: what the workers draw from, and how slices are put together."""
    groups = object.__new__(ByGroup)
    for name, value in {
        "mechanism": mechanism,
        "data": SimpleNamespace(schema=SCHEMA),
        "by": by,
    }.items():
        object.__setattr__(groups, name, value)
    return groups


def lines(groups: ByGroup, table: Any) -> Any:
    """A table as one line per slice."""
    return groups._lines(np.asarray(table).reshape(-1))


def log_density(law: SliceLaw, group: int, y: Any, counts: Any) -> float:
    """log p(y) of one slice, by the law that draws it."""
    if law.limits is not None:
        return float(law.given(group, counts).log_density(y))
    free = np.arange(law.cells) if law.levels is None else law._free(group)
    return float(law._noise(group).log_density((y - counts)[free])) if len(free) else 0.0


@pytest.mark.parametrize("case", CASES)
def test_densities_of_slices_multiply_to_that_of_the_table(case: str) -> None:
    mechanism = CASES[case]()
    groups = sliced(mechanism)
    law = pickle.loads(pickle.dumps(groups.law))  # as a worker gets it
    counts = lines(groups, COUNTS)
    for draw in range(4):
        drawn = [law.draw(g, row, stream(SEED + draw, g)) for g, row in enumerate(counts)]
        y = groups.assemble(drawn)
        apart = sum(log_density(law, g, drawn[g], row) for g, row in enumerate(counts))
        assert np.isfinite(apart)
        np.testing.assert_allclose(apart, mechanism.log_density(y, TABLE), rtol=1e-9)
    assert not np.array_equal(y, COUNTS)


@pytest.mark.parametrize("case", ["crossing", "levels given figures", "counts, bounds"])
def test_slices_are_drawn_from_the_law_of_the_table(case: str) -> None:
    """What is drawn by slices and in one place has the same law: one cell, by chi square."""
    print("seed", SEED)
    mechanism, n = CASES[case](), 1_500
    groups, source = sliced(mechanism), SeededRandomness(SEED)
    counts, at = lines(groups, COUNTS), 1
    apart = drawn_apart(groups.law, at, counts[at], source, n)[:, 2]
    together = mechanism.draw(COUNTS, source, n).reshape(n, -1)[:, groups._order]
    together = together.reshape(n, *counts.shape)[:, at, 2]
    assert alike(apart, together) > ALPHA
    assert alike(apart + 1, together) < ALPHA  # negative control: off by one is noticed


def drawn_apart(law: SliceLaw, group: int, counts: Any, source: Randomness, n: int) -> Any:
    """Draws of one slice; the law of counts given signs is made once, as it is slow to make."""
    if law.limits is not None:
        return law.given(group, counts).draw_many(source, n)
    return np.array([law.draw(group, counts, source) for _ in range(n)])


def alike(one: Any, other: Any) -> float:
    """The probability of samples as different as these under one law."""
    edges = np.unique(np.quantile(np.concatenate([one, other]), [0.2, 0.4, 0.6, 0.8]))
    both = [np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (one, other)]
    seen = np.array(both)[:, np.sum(both, axis=0) > 0]
    return float(stats.chi2_contingency(seen).pvalue)


def test_counts_that_changed_are_noticed() -> None:
    groups = sliced(CASES["counts, bounds"]())
    counts = lines(groups, COUNTS)
    assert all(groups.law.agrees(g, row) for g, row in enumerate(counts))
    assert not groups.law.agrees(0, counts[1])
    assert not groups.law.agrees(3, np.eye(6, dtype=np.int64)[0])  # a county of nobody
    beyond = np.array([8, 0, 0, 0, 0, 4])  # the county's people, too many of one age
    assert beyond.sum() == counts[0].sum()
    assert not groups.law.agrees(0, beyond)


def test_a_tie_across_slices_is_found() -> None:
    crossing = CASES["crossing"]()
    known = crossing.support
    assert not runs_across(known, slices_of(crossing, ("county",)))
    assert runs_across(known, slices_of(crossing, ("sex",)))  # groups of one sex, tied to others
    assert np.all(known.sizes[known.tied] >= 1)


def test_a_chain_stays_a_chain() -> None:
    ages = [count(f"age = '{age}'", by=["county"]) for age in "01"]
    chain = CongenialChain.calibrate(promised(PEOPLE, FEMALE, *ages), NAMES)
    assert sliced(chain).law.chain
    assert not sliced(CASES["crossing"]()).law.chain
