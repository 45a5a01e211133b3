"""Beliefs before and after a release, against enumeration of a small mechanism."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.mechanisms.calibrate import calibrate
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.semantics import belief, belief_words, neighbourhood
from congenial.privacy.tradeoff import Approximate, Pure
from congenial.public.adjacency import ReplaceOne, SemiAdjacent
from congenial.public.invariants import publish
from congenial.public.statements import margin, total

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


def test_the_words_quote_the_bound_rounded_up():
    assert "1% before the release gives it at most 2.68 % after it" in belief_words(Pure(1), 1e-9)
    assert "e^2" in belief_words(Pure(1), 1e-9)
    told = belief_words(Approximate(1, 1e-3), 1e-9)
    assert "46.3 %" in told  # (e - 1 + 2 delta) / (e + 1) = .46266
    assert belief(0.5, 800) == 1.0
    assert belief(0.25, 1) == pytest.approx(exp(1) / (3 + exp(1)))


def test_neighbourhoods():
    assert neighbourhood(ReplaceOne(SCHEMA)) == "intact"
    assert neighbourhood(SemiAdjacent(publish(TABLE, total()))) == "intact"
    assert neighbourhood(SemiAdjacent(publish(TABLE, total(by="g")))) == "disrupted"
    assert neighbourhood(SemiAdjacent(publish(TABLE, margin("g", "x")))) == "destroyed"
