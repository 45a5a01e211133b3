"""Counts given their signs that 0.1.0 released: their price is lower now."""

from __future__ import annotations

from fractions import Fraction

import pytest

from congenial import Plan, read
from congenial.privacy.composition import joint_loss
from congenial.publication import workflow
from tests.compatibility.repriced import REPRICED
from tests.compatibility.test_written_by_0_1_0 import said, unpacked

__all__ = ["unpacked"]  # a fixture


@pytest.mark.parametrize("name", REPRICED)
def test_prices_only_fall(unpacked, name):
    """The price is lower than the one that 0.1.0 stated, by as much as all that is spent is."""
    now, then = REPRICED[name], said(name)
    release = read(unpacked(name) / "bundles" / now.release)
    assert release.description.scale == now.former_eps_cell
    adjacency = Plan.load(unpacked(name) / "plan.toml").adjacency(release.description.support)
    price = joint_loss([release.description], adjacency).epsilon
    assert price < release.guarantee.tradeoff.eps
    fallen = release.guarantee.tradeoff.eps - price
    assert Fraction(then["loss"]["epsilon"]) - Fraction(now.epsilon) == fallen


@pytest.mark.parametrize("name", REPRICED)
def test_the_same_epsilon_buys_less_noise(unpacked, name):
    now, plan = REPRICED[name], Plan.load(unpacked(name) / "plan.toml")
    checked = {one.section.name: one for one in workflow.check(plan, again=True).releases}
    one, then = checked[now.release], read(unpacked(name) / "bundles" / now.release)
    assert one.mechanism.description.scale > now.former_eps_cell
    assert one.guarantee.tradeoff.eps <= then.guarantee.tradeoff.eps
