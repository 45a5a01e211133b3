"""Independent numbers, from exact rationals and 30-digit arithmetic."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from congenial import Figures, Schema, SemiAdjacent, total
from congenial.privacy import Approximate, Gaussian, Pure, conversions
from congenial.sampling.discrete import DoubleGeometric


@pytest.fixture
def semi_dp(oracles):
    return json.loads((oracles / "semi-dp.json").read_text())


@pytest.fixture
def congenial_dp(oracles):
    return json.loads((oracles / "congenial-dp.json").read_text())


def test_trade_off_functions(semi_dp):
    for case in semi_dp["f_eps_delta"]:
        f = Approximate(case["eps"], case["delta"])
        assert f(case["alpha"]) == pytest.approx(float(case["value"]), abs=1e-12)
    for case in semi_dp["G_mu"]:
        assert Gaussian(case["mu"])(case["alpha"]) == pytest.approx(float(case["value"]), abs=1e-12)
    for case in semi_dp["f_eps0_group2"]:
        twice = Pure(case["eps"]).piecewise().group(2)
        assert twice(case["alpha"]) == pytest.approx(float(case["f_o_f"]), abs=1e-12)
        assert Pure(case["eps"]).group(2)(case["alpha"]) == pytest.approx(
            float(case["f_2eps"]), abs=1e-12
        )


def test_conversions(semi_dp):
    for case in semi_dp["gdp_delta"]:
        told = conversions.gaussian_delta(float(case["mu"]), float(case["eps"]))
        assert told == pytest.approx(float(case["delta"]), rel=1e-9)
    for rho, case in semi_dp["census_delta_1e-10"].items():
        delta = 1e-10
        assert conversions.zcdp_epsilon_bun_steinke(float(rho), delta) == pytest.approx(
            float(case["bun_steinke"]), rel=1e-9
        )
        assert conversions.zcdp_epsilon(float(rho), delta) == pytest.approx(
            float(case["cks"]), rel=1e-6
        )
        assert conversions.gaussian_epsilon(float(case["mu"]), delta) == pytest.approx(
            float(case["gdp_exact"]), rel=1e-9
        )


def test_state_totals(semi_dp):
    schema = Schema.from_dict({"state": {"levels": ["N", "S"]}, "block": {"levels": ["1", "2"]}})
    adjacency = SemiAdjacent(Figures(schema, (total(by="state"),)))
    told = semi_dp["S_semi_state_totals_2states_x_2blocks"]["A2"]
    assert adjacency.records == 2
    assert adjacency.l1(schema.names).value == told["Delta1"]
    assert adjacency.l2_squared(schema.names).value == told["Delta2_squared"]


def test_double_geometric(congenial_dp):
    for case in congenial_dp["double_geometric_quantile"]:
        law, v = DoubleGeometric(Fraction(case["eps"])), float(case["v"])
        x = np.arange(-60, 61)
        assert int(x[np.searchsorted(law.cdf(x), v)]) == case["correct"]
