"""Beliefs before and after a release, against enumeration of a small mechanism."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from congenial import ReplaceOne, Schema, SemiAdjacent, Table, calibrate, margin, publish, total
from congenial.privacy import Guarantee, belief, neighbourhood

SCHEMA = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b"]}})
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[1, 1], [0, 2]]))


def test_no_result_moves_a_belief_further_than_stated():
    """Posterior of one of two adjacent datasets, for every output in a window, and it is sharp."""
    mechanism = calibrate("auto", Guarantee.pure(2, ReplaceOne(SCHEMA)), SCHEMA.names)
    other = Table(SCHEMA, SCHEMA.names, np.array([[0, 2], [0, 2]]))
    y = TABLE.counts + np.array(list(np.ndindex(7, 7, 1, 1))).reshape(-1, 2, 2) - [[3, 3], [0, 0]]
    p, q = (np.exp(mechanism.log_density(y, t)) for t in (TABLE, other))
    for prior in (0.01, 0.3):
        after = prior * p / (prior * p + (1 - prior) * q)
        assert after.max() == pytest.approx(belief(prior, 2), rel=1e-9)


def test_look_alikes_move_the_odds_of_a_statement_by_twice_epsilon():
    """Any belief, one result: every dataset replaced by a neighbour. Nearly attained."""
    schema, n, rng = Schema.from_dict({"x": {"levels": ["a", "b"]}}), 12, np.random.default_rng(8)
    tables = [Table(schema, ("x",), np.array([n - k, k])) for k in range(n + 1)]
    target = Guarantee.pure(1, SemiAdjacent(publish(tables[0], total())))
    y = np.array([[n - k, k] for k in range(-20, n + 21)])
    logs = np.array([calibrate("auto", target).log_density(y, table) for table in tables])
    people, likely, worst = np.arange(n + 1), np.exp(logs), 0.0
    for trial in range(200):
        prior = rng.dirichlet(np.ones(n + 1)) if trial else np.ones(n + 1)
        said = rng.random(n + 1) < 0.5 if trial else people >= n // 2
        away = rng.integers(-1, 2, n + 1) if trial else np.where(said, 1, -1)
        other = likely[np.clip(people + away, 0, n)]
        odds = [prior[said] @ p[said] / (prior[~said] @ p[~said]) for p in (likely, other)]
        worst = max(worst, np.abs(np.log(odds[0] / odds[1])).max())
    assert 1.9 < worst <= 2 + 1e-9
    # Results of two draws are another matter: their odds may be any distance apart.
    assert np.ptp(np.log(likely[6:].sum(axis=0) / likely[:6].sum(axis=0))) > 4


def test_belief_at_its_ends():
    assert belief(0.5, 800) == 1.0
    assert belief(0.25, 1) == pytest.approx(exp(1) / (3 + exp(1)))


def test_neighbourhoods():
    assert neighbourhood(ReplaceOne(SCHEMA)) == "intact"
    assert neighbourhood(SemiAdjacent(publish(TABLE, total()))) == "intact"
    assert neighbourhood(SemiAdjacent(publish(TABLE, total(by="g")))) == "disrupted"
    assert neighbourhood(SemiAdjacent(publish(TABLE, margin("g", "x")))) == "destroyed"
