"""Integer K-norm noise: the law by enumeration, both paths, the normaliser, planted mistakes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from congenial.errors import GuaranteeError, StructureError
from congenial.sampling import RecordedRandomness, SeededRandomness, two_way_kernels
from congenial.sampling.knorm_noise import Gauge, KNormNoise, numerator
from congenial.sampling.two_way_noise import TwoWayNoise
from tests.worlds import tally, zero_margins

SEED = 51_002


def enumerated(shape, eps, records, reach, weight=None):
    """Tables with zero margins and entries within reach, and their probabilities."""
    u, gauge = zero_margins(shape, reach), Gauge(shape, records)
    size = gauge.value(u) if weight is None else weight(gauge, u)
    w = np.exp(-float(eps) * size)
    return u, w / w.sum()


@pytest.mark.parametrize(
    ("shape", "records", "eps", "reach"),
    [((3, 3), 2, 3, 5), ((3, 3), 3, 3, 5), ((4, 3), 3, 4, 3), ((2, 4), 3, 2, 7)],
)
def test_draws_have_the_law(shape, records, eps, reach, fits):
    u, p = enumerated(shape, eps, records, reach)
    draws = KNormNoise(shape, eps, records=records).draw_many(SeededRandomness(SEED), 20_000)
    assert not draws.sum(axis=1).any()
    assert not draws.sum(axis=2).any()
    assert fits(*tally(draws, u, p))
    _, wrong = enumerated(shape, eps * Fraction(4, 5), records, reach)
    assert not fits(*tally(draws, u, wrong))


def test_the_general_form_has_the_law_too(fits):
    """4 x 4 is thinned by the simplex method: compare gauges of draws with the enumerated law."""
    noise = KNormNoise((4, 4), 6, records=3)
    draws = noise.draw_many(SeededRandomness(SEED), 6000)
    u, p = enumerated((4, 4), 6, 3, 1)
    small = np.abs(draws).max(axis=(1, 2)) <= 1
    assert small.mean() > 0.9
    inside = np.abs(u).max(axis=(1, 2)) <= 1
    assert fits(*tally(draws[small], u[inside], p[inside] / p[inside].sum()))
    _, wrong = enumerated((4, 4), 6, 2, 1)  # without hexagons
    assert not fits(*tally(draws[small], u[inside], wrong[inside] / wrong[inside].sum()))


def test_negative_control_every_proposal_kept(fits, monkeypatch):
    def keep(tables, words, eps, kind, slack, verdicts):
        verdicts[:] = 1

    u, p = enumerated((3, 3), 3, 3, 5)
    monkeypatch.setattr(two_way_kernels, "thin", keep)
    draws = KNormNoise((3, 3), 3, records=3).draw_many(SeededRandomness(SEED), 6000)
    assert not fits(*tally(draws, u, p))


def test_planted_thinning_with_a_quarter_under_A_3(fits):
    """Proposals at eps / 4 and hexagons in S: a hexagon would be kept with probability above 1.

    What is drawn is exp(-eps max(gauge, ||u||_1 / 4)), in which a hexagon costs 3/2 epsilon.
    """
    eps, gauge = 3, Gauge((3, 3), 3)
    source = SeededRandomness(SEED)
    proposals = TwoWayNoise((3, 3), Fraction(eps, 4)).draw_many(source, 40_000)
    excess = gauge.value(proposals) - np.abs(proposals).sum(axis=(1, 2)) / 4
    uniform = (source.words(len(excess)) >> np.uint64(11)).astype(float) * 2.0**-53
    draws = proposals[uniform < np.exp(-eps * np.minimum(excess, 700))]
    u, p = enumerated((3, 3), eps, 3, 5)
    assert not fits(*tally(draws, u, p))

    def worse(gauge, u):
        return np.maximum(gauge.value(u), np.abs(u).sum(axis=(1, 2)) / 4)

    _, drawn = enumerated((3, 3), eps, 3, 5, worse)
    assert fits(*tally(draws, u, drawn))
    hexagon = gauge.generators[-1:]
    assert worse(gauge, hexagon)[0] == 1.5


def test_rationals_give_the_same_draws(monkeypatch):
    """A wide slack leaves every decision open; ball arithmetic then makes the same ones."""
    opened = []
    excess = KNormNoise._excess
    monkeypatch.setattr(KNormNoise, "_excess", lambda *a: opened.append(0) or excess(*a))
    for shape, records in (((3, 4), 2), ((4, 4), 3)):
        fast, slow = (KNormNoise(shape, 1, records=records) for _ in range(2))
        slow.judge_slack = 0.3
        a, b = (noise.draw_many(SeededRandomness(SEED), 15) for noise in (fast, slow))
        assert np.array_equal(a, b)
    assert len(opened) > 50


@pytest.mark.parametrize(("shape", "records"), [((3, 3), 2), ((3, 3), 3), ((4, 3), 2), ((3, 4), 3)])
def test_normaliser(shape, records):
    """The rational function against the sum itself, where eps makes the sum short."""
    noise = KNormNoise(shape, 5, records=records)
    u, _ = enumerated(shape, 5, records, 3)
    total = np.exp(noise.log_weight(u)).sum()
    assert noise.log_Z == pytest.approx(math.log(total), abs=1e-4)
    assert np.exp(noise.log_density(u)).sum() == pytest.approx(1, abs=1e-4)


def test_numerators_have_the_volume():
    """Their sum is d! times the volume of the hull (checked elsewhere by cones)."""
    sums = {((3, 3), 2): 66, ((3, 3), 3): 126, ((3, 4), 2): 960, ((3, 4), 3): 3624}
    for (shape, records), total in sums.items():
        h = numerator(Gauge(shape, records))
        assert sum(h) == total
        assert h == h[::-1]


def test_larger_tables():
    u = KNormNoise((6, 5), 1, records=3).draw_many(SeededRandomness(SEED), 40)
    assert u.shape == (40, 6, 5)
    assert not u.sum(axis=1).any()
    assert not u.sum(axis=2).any()
    gauge = Gauge((6, 5), 3).value(u)  # about Gamma(20): mean 20, sd 4.5
    assert 15 < gauge.mean() < 26


def test_edges_and_refusals():
    assert not KNormNoise((1, 4), 1).draw(RecordedRandomness([])).any()
    assert KNormNoise((1, 4), 1).log_Z == 0
    wide = KNormNoise((4, 4), 1)
    assert wide.log_Z is None
    assert wide.log_ratio_error == 0
    with pytest.raises(StructureError, match="log_weight"):
        wide.log_density(np.zeros((4, 4)))
    assert wide.log_weight(np.eye(4)) == -math.inf
    with pytest.raises(GuaranteeError, match="eps"):
        KNormNoise((3, 3), 0)
    with pytest.raises(StructureError, match="records"):
        KNormNoise((3, 3), 1, records=5)
    with pytest.raises(StructureError, match="30 x 30"):
        KNormNoise((30, 30), 1)
