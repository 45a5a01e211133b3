"""K-norm given both margins: the promise over all conforming pairs, planted sets, refusals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial import Guarantee, SeededRandomness, SemiAdjacent, Table, release_table
from congenial.errors import GuaranteeError, StructureError
from congenial.figures import Figures, count, margin, publish, total
from congenial.inference.odds_ratio import odds_ratio_test
from congenial.mechanisms.knorm import FAMILIES, KNorm
from congenial.pairs.universe import Universe
from congenial.papers import sensitivity
from congenial.papers.semi_dp.real_knorm import KNormReal
from congenial.privacy.composition import largest_gauge, moves
from congenial.privacy.tradeoff import Pure
from congenial.sampling.knorm_noise import Gauge
from tests.worlds import schema_of, zero_margins

SEED = 51_005


def two_way(counts):
    counts = np.array(counts)
    made = schema_of(**dict(zip("ab", counts.shape, strict=True)))
    return Table(made, made.names, counts)


THREE = two_way([[1, 1, 0], [0, 1, 0], [0, 0, 1]])  # 7 conforming tables, hexagons among them


def calibrated(table, epsilon=2, reading="robust"):
    adjacency = SemiAdjacent(publish(table, margin("a"), margin("b")), reading)
    return KNorm.calibrate(Guarantee.pure(epsilon, adjacency), ("a", "b"))


def conforming(table):
    """Every table of counts with the margins of this one."""
    near = [table.counts + u for u in zero_margins(table.counts.shape, 3)]
    return [Table(table.schema, table.names, s) for s in near if s.min() >= 0]


def worst_ratio(mechanism, tables, records, reach=2):
    """Largest log p(y|x) - log p(y|x') over pairs `records` apart and all y near them."""
    ys = tables[0].counts + zero_margins(mechanism.shape, reach)
    logs = [mechanism.log_density(ys, table) for table in tables]
    worst = 0.0
    for i, left in enumerate(tables):
        for j, right in enumerate(tables):
            apart = int(np.abs(left.counts - right.counts).sum())
            if 0 < apart <= 2 * records:
                worst = max(worst, float(np.max(logs[i] - logs[j])))
    return worst


# --- the promise ----------------------------------------------------------------------------------


def test_every_conforming_pair_keeps_the_promise_and_some_attains_it():
    mechanism = calibrated(THREE)
    assert mechanism.adjacency.records == 3
    assert mechanism.guarantee.tradeoff == Pure(2)
    tables = conforming(THREE)
    assert len(tables) == 7
    assert len(tables) == len(list(Universe(mechanism.adjacency.figures).tables(4)))
    assert worst_ratio(mechanism, tables, 3) == pytest.approx(2, abs=1e-9)


def test_planted_the_printed_set_under_A_3_is_caught():
    """Noise made for swaps only (Proposition 32): a hexagon apart, the loss is twice epsilon."""
    sound = calibrated(THREE)
    printed = KNorm(sound.adjacency, replace(sound.description, family=FAMILIES[2]))
    tables = conforming(THREE)
    assert worst_ratio(printed, tables, 3) == pytest.approx(4, abs=1e-9)
    assert printed.guarantee.tradeoff == Pure(4)  # the product prices it right
    assert worst_ratio(printed, tables, 2) == pytest.approx(2, abs=1e-9)  # true under A_2


@pytest.mark.parametrize("reading", ["robust", "literal"])
def test_the_hull_is_that_of_the_sensitivity_set(reading):
    """What the adjacency lists (no values published: every t) and what the sampler builds on."""
    figures = Figures(schema_of(a=3, b=4), (margin("a"), margin("b")))
    adjacency = SemiAdjacent(figures, reading)
    listed = sensitivity(adjacency, ("a", "b"))
    made = Gauge((3, 4), adjacency.records)
    rows = {g.tobytes() for g in made.generators.reshape(made.number, -1)}
    assert {u.tobytes() for u in listed.elements if u.any()} == rows
    real = KNormReal.of_set(listed.elements, 1)
    assert real.mean_square == KNormReal.table((3, 4), 1, adjacency.records).mean_square


@pytest.mark.parametrize("hull", [2, 3])
@pytest.mark.parametrize("records", [2, 3, 4, 5])
def test_largest_gauge_over_more_records(hull, records):
    """The bound that prices an old release under a wider adjacency, against every 4 x 4 circuit
    and sums of them.
    """
    gauge = Gauge((5, 5), hull)
    rng = np.random.default_rng(SEED)
    worst = 0.0
    for _ in range(200):
        left, u = records, np.zeros((5, 5), dtype=np.int64)
        while left >= 2:
            m = int(rng.integers(2, left + 1))
            rows, columns = rng.permutation(5)[:m], rng.permutation(5)[:m]
            u[rows, columns] += 1
            u[rows, np.roll(columns, 1)] -= 1
            left -= m
        assert np.abs(u).sum() <= 2 * records
        worst = max(worst, float(gauge.exact(u)))
    figures = Figures(schema_of(a=5, b=5), (margin("a"), margin("b")))
    adjacency = SemiAdjacent(figures, "literal", within=records)
    bound = largest_gauge(adjacency, adjacency.schema.names, hull)
    assert worst <= bound.value
    assert bound.exact == (records <= hull)
    if records <= 3:
        assert worst == bound.value


# --- what is drawn --------------------------------------------------------------------------------


def test_a_2_x_2_release_gives_the_test_of_the_odds_ratio():
    """Its noise in x11 is double geometric at the release's epsilon."""
    table = two_way([[9, 4], [3, 8]])
    mechanism = calibrated(table, Fraction(3, 2))
    seen = odds_ratio_test(release_table(mechanism, table, SeededRandomness(SEED)))
    assert seen.test.rows == (13, 11)
    assert seen.test.noise.eps == Fraction(3, 2)
    noise = mechanism.noise(SeededRandomness(SEED), 4000)[:, 0, 0].astype(float)
    five_errors = 5 * np.sqrt((7.35 - 1) / 4000)  # kurtosis 7.35
    assert noise.var() == pytest.approx(seen.test.noise.variance, rel=five_errors)
    assert 0 < seen.p_value() <= 1


def test_empty_rows_stay_empty():
    table = two_way([[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])
    mechanism = calibrated(table)
    noise = mechanism.noise(SeededRandomness(SEED), 50)
    assert not noise[:, [1, 3]].any()
    assert noise[:, 0].any()
    assert mechanism._parts[0][0].shape == (2, 4)


def test_tables_by_county_are_independent():
    made = schema_of(a=2, b=3, county=2)
    counts = np.array([[[1, 2], [0, 1], [2, 0]], [[0, 1], [1, 1], [1, 2]]])
    table = Table(made, made.names, counts)
    adjacency = SemiAdjacent(publish(table, margin("county", "a"), margin("county", "b")))
    if adjacency.records > 3:
        pytest.skip("more than 3 records apart")
    mechanism = KNorm.calibrate(Guarantee.pure(2, adjacency), ("a", "b", "county"))
    assert len(mechanism._parts) == 1
    assert mechanism._parts[0][1].shape == (2, 2, 3)
    noise = mechanism.noise(SeededRandomness(SEED), 4000).astype(float)
    assert not noise.sum(axis=1).any()
    assert not noise.sum(axis=2).any()
    together = np.corrcoef(noise[:, 0, 0, 0], noise[:, 0, 0, 1])[0, 1]
    assert abs(together) < 5 / np.sqrt(4000)


# --- readings, refusals ---------------------------------------------------------------------------


def test_the_hull_follows_the_adjacency():
    assert calibrated(THREE).description.family == FAMILIES[3]
    weaker = calibrated(THREE, reading="literal")
    assert weaker.adjacency.records == 2
    assert weaker.description.family == FAMILIES[2]
    assert weaker.guarantee.tradeoff == Pure(2)


def test_rows_that_come_and_go():
    """Symmetric difference: four rows are two moves, so swaps are all there is."""
    table = publish(THREE, margin("a"), margin("b"))
    adjacency = SemiAdjacent(table, metric="symmetric difference")
    mechanism = KNorm.calibrate(Guarantee.pure(2, adjacency), ("a", "b"))
    assert moves(adjacency, mechanism.description.table) == adjacency.records // 2 == mechanism.hull
    assert mechanism.guarantee.tradeoff == Pure(2)


def test_refusals():
    table = THREE
    nested = SemiAdjacent(publish(table, total(by="a")))
    with pytest.raises(StructureError, match="both margins"):
        KNorm.calibrate(Guarantee.pure(1, nested), ("a", "b"))
    partial = SemiAdjacent(publish(table, total(), count("a = 'a0'"), count("b = 'b0'")))
    with pytest.raises(StructureError, match="both margins"):
        KNorm.calibrate(Guarantee.pure(1, partial), ("a", "b"))
    with pytest.raises(GuaranteeError, match="nothing could be released"):
        calibrated(table, 0)
    both = SemiAdjacent(publish(table, margin("a"), margin("b")))
    with pytest.raises(GuaranteeError, match="calibrated"):
        KNorm.calibrate(Guarantee.gaussian(1, both), ("a", "b"))
    further = SemiAdjacent(publish(table, margin("a"), margin("b")), within=4)
    with pytest.raises(StructureError, match="2 or 3 records"):
        KNorm.calibrate(Guarantee.pure(1, further), ("a", "b"))
