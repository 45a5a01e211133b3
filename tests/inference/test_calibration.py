"""Posteriors under figures of every shape are calibrated (see `calibration`)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.inference.calibration import (
    ALPHA,
    CROSSED,
    SETTINGS,
    Setting,
    covered,
    p_value,
    places,
)

SEED = 19
QUICK, LONG = 20, 40


def test_places_are_uniform_where_tables_and_figures_cross():
    assert p_value(places(Setting("poisson", tables=True), QUICK, SEED)) >= ALPHA


@pytest.mark.audit
@pytest.mark.parametrize("setting", [*SETTINGS, *CROSSED], ids=lambda setting: setting.words)
def test_places_are_uniform_and_intervals_cover(setting):
    found = places(setting, QUICK if setting in CROSSED else LONG, SEED)
    print(f"seed = {SEED}: {setting.words}: covered {covered(found):.3f}, p = {p_value(found):.2g}")
    assert p_value(found) >= ALPHA


def test_negative_control_too_little_noise_is_noticed():
    setting = Setting("poisson", tables=True)
    assert p_value(places(setting, 2 * QUICK, SEED, told=Fraction(1, 400))) < ALPHA
