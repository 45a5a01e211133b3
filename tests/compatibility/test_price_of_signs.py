"""Counts given their signs that 0.1.0 released: the promise it stated still follows."""

from __future__ import annotations

from fractions import Fraction

import pytest

from congenial import Plan, read
from congenial.mechanisms.record_release import FOLLOWS
from congenial.privacy.composition import former_epsilon, joint_loss
from congenial.publication import workflow
from congenial.publication.verification import verify
from tests.compatibility.repriced import REPRICED
from tests.compatibility.test_written_by_0_1_0 import NAMES, said, unpacked
from tests.plain_reports import plain_reports

__all__ = ["unpacked"]  # a fixture

CONDITIONED = [name for name in NAMES if any("conditioned" in one for one in said(name)["bundles"])]


@pytest.mark.parametrize("name", CONDITIONED)
def test_the_promise_of_conditioned_counts_follows(unpacked, name):
    for bundle in said(name)["bundles"]:
        if "conditioned" not in bundle:
            continue
        with plain_reports():
            lines = {one.what: one for one in verify(unpacked(name) / "bundles" / bundle)}
        assert lines[FOLLOWS].holds, lines[FOLLOWS].detail


@pytest.mark.parametrize("name", REPRICED)
def test_prices_only_fall(unpacked, name):
    """The former price is the one that 0.1.0 stated; the sharper one is lower, by as much as all
    that is spent is lower.
    """
    now, then = REPRICED[name], said(name)
    release = read(unpacked(name) / "bundles" / now.release)
    assert release.description.scale == now.former_eps_cell
    adjacency = Plan.load(unpacked(name) / "plan.toml").adjacency(release.description.support)
    former = former_epsilon(release.description, adjacency)
    price = joint_loss([release.description], adjacency).epsilon
    assert price < former <= release.guarantee.tradeoff.eps
    fallen = release.guarantee.tradeoff.eps - price
    assert Fraction(then["loss"]["epsilon"]) - Fraction(now.epsilon) == fallen


@pytest.mark.parametrize("name", REPRICED)
def test_the_same_epsilon_buys_less_noise(unpacked, name):
    now, plan = REPRICED[name], Plan.load(unpacked(name) / "plan.toml")
    checked = {one.section.name: one for one in workflow.check(plan, again=True).releases}
    one, then = checked[now.release], read(unpacked(name) / "bundles" / now.release)
    assert one.mechanism.description.scale > now.former_eps_cell
    assert one.guarantee.tradeoff.eps <= then.guarantee.tradeoff.eps


def test_there_are_such_bundles():
    assert len(CONDITIONED) > 2
