"""Planted defects of table mechanisms: each is in the list of tests/audit/planted.py."""

from __future__ import annotations

import numpy as np

from congenial import Congenial, Guarantee, SeededRandomness, SemiAdjacent, publish
from tests.audit.planted import EPSILON, LISTED, VOTING, made, must_catch
from tests.contracts.test_mechanisms import seen
from tests.worlds import ALPHA, pearson


def test_scale_times_four_fifths_is_caught():
    must_catch("scale times 0.8", LISTED)


def test_epsilon_per_cell_read_as_epsilon_per_person_is_caught():
    must_catch("epsilon per cell for epsilon per person", LISTED)


def test_a_mandate_missing_from_the_adjacency_is_caught():
    must_catch("one figure ignored in the adjacency", LISTED)


def test_a_window_centred_on_the_data_is_caught():
    must_catch("window centred on the data", LISTED)


def test_counts_above_zero_without_their_price_are_caught():
    must_catch("signs without their price", LISTED)


def test_a_mandate_missing_from_the_support_is_caught():
    """Conditioning on one figure fewer than published: the noise is right, the table disagrees."""
    fewer = SemiAdjacent(publish(VOTING.table, VOTING.statements[0]))
    mechanism = Congenial.calibrate(Guarantee.pure(EPSILON, fewer), VOTING.release)
    draws = mechanism.noise(SeededRandomness(11), 200).reshape(200, -1)
    sums = draws[:, 2:].sum(axis=1)
    assert np.any(sums != 0)
    sound = made(Congenial, VOTING)
    assert not np.any(sound.noise(SeededRandomness(11), 200)[:, 2:].sum(axis=1))


def test_a_hole_at_plus_one_is_caught():
    """congenial-dp's printed quantile (ceil without -1) never draws +1; Pearson's test sees it."""
    mechanism, table = made(Congenial, VOTING), VOTING.table
    noise = mechanism.noise(SeededRandomness(5), 16_000).reshape(16_000, -1)
    holed = noise[~np.any(noise == 1, axis=1)][:4_000] + mechanism.query(table)
    assert pearson(*seen(mechanism, holed, table)) < ALPHA
