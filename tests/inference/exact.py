"""Posteriors by enumeration, and tests of draws against them at a named false-alarm rate."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from scipy.stats import norm

import congenial as cg
from congenial.mechanisms.tables_release import TablesRelease

ALPHA = 1e-6


def z_test(estimate, error, exact) -> float:
    """Two-sided p-value of an estimate with a standard error, Bonferroni over components."""
    z = np.abs(np.ravel(estimate) - np.ravel(exact)) / np.maximum(np.ravel(error), 1e-12)
    p = min(1.0, float(2 * norm.sf(z.max()) * z.size))
    print(f"p = {p:.3g} (alpha = {ALPHA})")
    return p


def agrees(posterior, name: str, mean) -> bool:
    """Whether posterior means are those expected, up to Monte Carlo error."""
    return z_test(posterior.mean(name), posterior.standard_error(name), mean) >= ALPHA


def tables(total: int, cells: int):
    """Every table of counts with this total."""
    for x in product(range(total + 1), repeat=cells - 1):
        if sum(x) <= total:
            yield np.array([*x, total - sum(x)])


def weighted_mean(weights, values):
    weights = np.asarray(weights, dtype=float)
    return np.tensordot(weights / weights.sum(), np.asarray(values, dtype=float), axes=1)


def l1(y, x, eps: float) -> float:
    return float(np.exp(-eps * np.abs(np.asarray(y) - np.asarray(x)).sum()))


def release_of(mechanism, values) -> TablesRelease:
    """A release with given values, as if they had been drawn."""
    made = "made for a test"
    law, promise = mechanism.description, mechanism.guarantee
    return TablesRelease.of_one(made, law, promise, np.asarray(values), made, publishable=False)


def one_axis(levels: int) -> cg.Schema:
    return cg.Schema.from_dict({"x": {"levels": [f"l{i}" for i in range(levels)]}})


def mechanism(schema, counts, statements=(), name="auto", eps: Fraction | int | str = 1):
    """A mechanism on a small table, and the table."""
    from congenial.pairs.adjacency import ReplaceOne

    table = cg.Table(schema, schema.names, np.asarray(counts))
    under = cg.SemiAdjacent(cg.publish(table, *statements)) if statements else ReplaceOne(schema)
    return cg.calibrate(name, cg.Guarantee.pure(eps, under=under)), table
