"""Planted defects: each is a plausible mistake, and the checks of the contract must reject it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from congenial.audit.exact import adjacent_pairs, exact_audit
from congenial.mechanisms.congenial import Congenial, CongenialCounts
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Pure
from congenial.public.adjacency import ReplaceOne, SemiAdjacent
from congenial.public.invariants import publish
from congenial.sampling.randomness import SeededRandomness
from tests.contracts.cases import UNIVERSES
from tests.contracts.test_mechanisms import ALPHA, observed_and_expected, p_value

VOTING = next(u for u in UNIVERSES if u.label == "voting age")
EPSILON = Fraction(4)


def audit(mechanism, universe):
    pairs = list(adjacent_pairs(universe.adjacency, universe.people))
    return exact_audit(mechanism, pairs, 2)


def congenial(universe, epsilon=EPSILON):
    return Congenial.calibrate(Guarantee.pure(epsilon, universe.adjacency), universe.release)


def test_the_sound_mechanism_passes():
    assert audit(congenial(VOTING), VOTING).violations(Pure(EPSILON)) == []


def test_scale_times_four_fifths_is_caught():
    mechanism = congenial(VOTING)
    less = replace(
        mechanism,
        description=replace(mechanism.description, scale=mechanism.description.scale * 5 / 4),
    )
    assert audit(less, VOTING).violations(Pure(EPSILON))


def test_epsilon_per_cell_read_as_epsilon_per_person_is_caught():
    mechanism = congenial(VOTING)
    confused = replace(mechanism, description=replace(mechanism.description, scale=EPSILON))
    assert audit(confused, VOTING).violations(Pure(EPSILON))


def test_a_mandate_missing_from_the_adjacency_is_caught():
    """Sensitivity 2 instead of 4: what a system that ignores its invariants would print."""
    ignoring = ReplaceOne(VOTING.table.schema)
    scale = EPSILON / ignoring.l1(VOTING.release).value
    mechanism = congenial(VOTING)
    wrong = replace(mechanism, description=replace(mechanism.description, scale=scale))
    assert audit(wrong, VOTING).violations(Pure(EPSILON))


def test_a_mandate_missing_from_the_support_is_caught():
    """Conditioning on one figure fewer than published: the noise is right, the table disagrees."""
    fewer = SemiAdjacent(publish(VOTING.table, VOTING.statements[0]))
    mechanism = Congenial.calibrate(Guarantee.pure(EPSILON, fewer), VOTING.release)
    draws = mechanism.noise(SeededRandomness(11), 200).reshape(200, -1)
    sums = draws[:, 2:].sum(axis=1)
    assert np.any(sums != 0)
    assert not np.any(congenial(VOTING).noise(SeededRandomness(11), 200)[:, 2:].sum(axis=1))


def test_a_hole_at_plus_one_is_caught():
    """congenial-dp's printed quantile (ceil without -1) never draws +1."""
    mechanism, table = congenial(VOTING), VOTING.table
    noise = mechanism.noise(SeededRandomness(5), 16_000).reshape(16_000, -1)
    holed = noise[~np.any(noise == 1, axis=1)][:4_000] + mechanism.query(table)
    observed, expected = observed_and_expected(mechanism, holed, table)
    assert p_value(observed, expected) < ALPHA


def test_a_window_centred_on_the_data_is_caught():
    """Noise cut at a fixed distance from the truth: some outputs only one table can make."""

    class Windowed(Congenial):
        def log_density(self, y, table):
            far = np.abs(np.asarray(y) - self.query(table)).max(axis=-1) > 2
            return np.where(far, -np.inf, super().log_density(y, table))

    mechanism = congenial(VOTING)
    wrong = Windowed(mechanism.adjacency, mechanism.description)
    assert audit(wrong, VOTING).violations(Pure(EPSILON))


def test_counts_above_zero_without_their_price_are_caught():
    """eps_cell = epsilon / Delta_1 is right for equalities only; m >= 0 is conditioned on too."""
    mechanism = CongenialCounts.calibrate(Guarantee.pure(EPSILON, VOTING.adjacency), ("age",))
    assert audit(mechanism, VOTING).violations(Pure(EPSILON)) == []
    scale = EPSILON / VOTING.adjacency.l1(VOTING.release).value
    unpriced = replace(mechanism, description=replace(mechanism.description, scale=scale))
    assert audit(unpriced, VOTING).violations(Pure(EPSILON))
