"""County totals that must be exact: noise on every cell, totals put back by hand, and Congenial.

Run `python -m benchmarks exact_totals`; it takes a few seconds. The people are made up: 40
counties, both sexes, six age groups. The promise is epsilon = 1 for one replaced record. OpenDP
draws the noise of the first two rows (integer Laplace noise, from the system's randomness). In the
second row the difference to each county total is spread over the county's cells, as a careful
person would do it. The epsilon that is left once the totals are public is the one that `reassess`
gives. This is the table in README.md; tests/docs/test_readme.py compares the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial import (
    Congenial,
    Figures,
    Guarantee,
    Schema,
    SeededRandomness,
    SemiAdjacent,
    Table,
    calibrate,
    publish,
    release_table,
    total,
)
from congenial.ledger import reassess
from congenial.privacy import Pure

COUNTIES, PEOPLE_PER_CELL, RELEASES, EPSILON = 40, 25, 100, 1
AGES = ["0-17", "18-24", "25-44", "45-64", "65-79", "80+"]
AXES = ("county", "sex", "age")

SMALLEST = {"RELEASES": 1}


def people() -> Table:
    """Made-up counts by county, sex and age."""
    schema = Schema.from_dict(
        {
            "county": {"levels": [f"C{i}" for i in range(COUNTIES)]},
            "sex": {"levels": ["female", "male"]},
            "age": {"levels": AGES},
        }
    )
    shape = (COUNTIES, 2, len(AGES))
    return Table(schema, AXES, np.random.default_rng(1).poisson(PEOPLE_PER_CELL, shape))


def opendp_noise(cells: int) -> Any:
    """Integer noise for `cells` counts; replacing one record moves two of them by one."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=2 / EPSILON)
    assert abs(measurement.map(2) - EPSILON) < 1e-9
    return np.array(measurement([0] * cells))


def with_totals_put_back(errors: Any) -> Any:
    """The same errors after each county's cells were moved, all by the same step, to its total."""
    return errors - errors.mean(axis=2, keepdims=True)


def congenial_errors(table: Table, public: Figures, epsilon: int) -> Any:
    """Errors of Congenial's releases given the totals, county by county."""
    mechanism = calibrate(Congenial, Guarantee.pure(epsilon, under=SemiAdjacent(public)), AXES)
    source = SeededRandomness(1)
    drawn = [
        release_table(mechanism, table, source).estimates[0] - table.counts for _ in range(RELEASES)
    ]
    return np.array(drawn).reshape(RELEASES, COUNTIES, -1)


def run() -> list[dict[str, Any]]:
    """One row per way to publish the table: its errors, and the epsilon that holds."""
    table = people()
    public = publish(table, total(by="county"))
    plain = opendp_noise(RELEASES * table.counts.size).reshape(RELEASES, COUNTIES, -1)
    (patched,) = reassess({"OpenDP": Pure(EPSILON)}, public)
    by_hand = round(patched.robust.tradeoff.epsilon(0.0), 9)
    ways = {
        "OpenDP noise on every cell": (plain, EPSILON),
        "OpenDP, totals put back by hand": (with_totals_put_back(plain), by_hand),
        "Congenial": (congenial_errors(table, public, EPSILON), EPSILON),
        "Congenial at the second row's epsilon": (
            congenial_errors(table, public, int(by_hand)),
            by_hand,
        ),
    }
    return [
        {
            "way": way,
            "error of a county total": round(_deviation(errors.sum(axis=2)), 9),
            "error of a cell": _deviation(errors),
            "epsilon that holds": float(epsilon),
        }
        for way, (errors, epsilon) in ways.items()
    ]


def _deviation(errors: Any) -> float:
    return float((errors**2).mean() ** 0.5)
