"""Binomial counts: far tails decide, so they are compared exactly or on the log scale."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats as st

from congenial.pairs.stated_laws import StatedBinomial, StatedLogDiscrete
from congenial.transport.wasserstein import distance

FIGURE_4 = {  # n = 100, corrected (docs/errata)
    (".01", ".99"): 99,
    (".05", ".95"): 91,
    (".1", ".9"): 81,
    (".25", ".75"): 51,
    (".4", ".6"): 21,
    (".5", ".5"): 1,
}


def counts(n, z0, z1):
    return StatedBinomial(n - 1, Fraction(z0)), StatedBinomial(n - 1, Fraction(z1), shift=1)


def on_log_scale(law):
    told = law.tabulated()
    return StatedLogDiscrete(told.points, told.log_masses(), 2.0**-45)


def float_quantiles(n, z0, z1):
    """Planted: equation 35 as printed, with the float quantile function."""
    low, high = st.binom(n - 1, float(z0)), st.binom(n - 1, float(z1))
    levels = np.concatenate([low.cdf(np.arange(n)), high.cdf(np.arange(n))])
    levels = levels[(levels > 0) & (levels < 1)]
    return np.max(np.abs(1 + high.ppf(levels) - low.ppf(levels)))


@pytest.mark.parametrize(("bounds", "told"), FIGURE_4.items())
def test_figure_4(bounds, told):
    found = distance(*counts(100, *bounds))
    assert found.value == told
    assert found.exact
    assert found.certificate.verify()


def test_tails_beyond_doubles():
    """200 people, .1 and .2: the printed recipe in floats says 31, the truth is 35."""
    laws = counts(200, ".1", ".2")
    assert distance(*laws).value == 35
    assert float_quantiles(200, ".1", ".2") == 31
    logs = distance(*map(on_log_scale, laws))
    assert logs.value == logs.at_least == 35
    assert logs.certificate.verify()


def test_all_counts(oracles):
    told = json.loads((oracles / "partially-private-data.json").read_text())
    cases = {case["id"]: case for case in told}
    for key, value in cases["delta_z_table"]["output"].items():
        n, z0, z1 = key.split("|")
        laws = counts(int(n), z0, z1)
        assert distance(*laws).value == value, key
        logs = distance(*map(on_log_scale, laws))
        assert logs.at_least <= value <= logs.value <= value + 1, key
        assert logs.certificate.verify(), key
    for case in told:
        if case["id"].startswith("count_minW"):
            i = case["inputs"]
            found = distance(*counts(i["n"], i["z0"], i["z1"]), delta=i["delta"])
            assert found.value == case["output"]
            assert found.certificate.verify()
    limit = cases["delta_z_limit_(0.1, 0.2)"]["output"]
    many = distance(*counts(20_001, ".1", ".2"))  # on the log scale: 20,000 trials
    assert many.value / 20_001 == pytest.approx(limit, abs=2e-4)
    assert many.value - many.at_least <= 1


def test_many_trials_agree_with_exact_ones(monkeypatch):
    from congenial.pairs import stated_laws

    exact = distance(*counts(1500, ".3", ".35"))
    monkeypatch.setattr(stated_laws, "_MOST_BITS", 10)
    logs = distance(*counts(1500, ".3", ".35"))
    assert logs.at_least <= exact.value <= logs.value <= exact.value + 1
    near = distance(*counts(1500, ".3", ".35"), delta=1e-9)
    monkeypatch.undo()
    assert near.value == distance(*counts(1500, ".3", ".35"), delta=1e-9).value
    assert near.certificate.verify()


def test_a_translation_is_seen_whatever_the_size():
    found = distance(*counts(10**6, ".5", ".5"))
    assert (found.value, found.exact) == (1.0, True)


def test_certain_trials():
    assert distance(*counts(9, 0, 1)).value == 9
    assert distance(StatedBinomial(5, Fraction(1)), StatedBinomial(5, Fraction(0))).value == 5


def test_a_damaged_level_is_noticed():
    from dataclasses import replace

    proof = distance(*map(on_log_scale, counts(60, ".2", ".4"))).certificate
    assert proof.verify()
    assert not replace(proof, within=proof.within - 1).verify()
