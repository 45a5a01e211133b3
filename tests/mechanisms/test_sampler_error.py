"""What a sampler is off by reaches description, promise and price."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import Figures, publish
from congenial.figures.statements import count, margin
from congenial.figures.support import support
from congenial.ledger.budget import Budget
from congenial.ledger.ledger import Ledger
from congenial.mechanisms.calibrate import rebuild
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.record_release import FOLLOWS
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.columns_error import counts_error
from congenial.privacy.composition import joint_loss
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.publication.bundle import write
from congenial.publication.verification import verify
from congenial.report.tables_report import render
from congenial.sampling.randomness import SeededRandomness

SCHEMA = Schema.from_dict(
    {"r": {"edges": [0, 1, 2, 3], "top": "3+"}, "c": {"levels": list("abcde")}}
)
COUNTS = np.array([[2, 0, 1, 3, 1], [0, 0, 0, 0, 0], [1, 2, 0, 1, 1], [4, 1, 1, 0, 2]])
PEOPLE = Table(SCHEMA, SCHEMA.names, COUNTS)
CUMULATIVE = [count(f"r >= {i}") for i in (1, 2, 3)]
PUBLIC = publish(PEOPLE, margin("c"), *CUMULATIVE)


def made() -> CongenialCounts:
    return CongenialCounts.calibrate(Guarantee.pure(2, SemiAdjacent(PUBLIC)), SCHEMA.names)


def test_description_and_promise_have_the_error_of_the_sampler_that_draws():
    mechanism = made()
    sampler = mechanism.given(COUNTS)
    assert sampler.log_ratio_error > 1e-12
    assert mechanism.description.log_ratio_error == Fraction(sampler.log_ratio_error)
    without = replace(mechanism.description, log_ratio_error=Fraction(0))
    price = [joint_loss([d], mechanism.adjacency).epsilon for d in (without, mechanism.description)]
    assert price[1] - price[0] == 2 * Fraction(sampler.log_ratio_error)
    assert mechanism.guarantee.tradeoff.eps == price[1] <= 2


def test_levels_without_people_do_not_count_on_either_side():
    """One of four rows is empty: three are left, and three columns once the table is turned."""
    attributes = SCHEMA.to_dict()
    turned = Schema.from_dict({name: attributes[name] for name in ("c", "r")})
    people = Table(turned, turned.names, COUNTS.T)
    for statements in ((margin("c"), *CUMULATIVE), (*CUMULATIVE, margin("c"))):
        errors = [
            counts_error(support(publish(one, *statements), one.schema.names), Fraction(1, 2))
            for one in (PEOPLE, people)
        ]
        assert errors[0] == errors[1] > 0


def test_before_figures_are_published_the_error_is_bounded_for_all():
    unknown = Figures(SCHEMA, PUBLIC.statements)
    mechanism = CongenialCounts.calibrate(Guarantee.pure(2, SemiAdjacent(unknown)), SCHEMA.names)
    assert mechanism.description.log_ratio_error > made().description.log_ratio_error
    assert mechanism.guarantee.tradeoff.eps <= 2


@pytest.mark.parametrize("stated", ["right", "0"])
def test_a_bundle_that_states_no_error_fails(tmp_path, stated):
    mechanism = made()
    release = mechanism.release(PEOPLE, SeededRandomness(3))
    if stated != "right":
        old = replace(mechanism.description, log_ratio_error=Fraction(0))
        loss = joint_loss([old], mechanism.adjacency).tradeoff
        guarantee = replace(mechanism.guarantee, tradeoff=loss)
        description = replace(release.description, measured=(old,))
        release = replace(release, description=description, guarantee=guarantee)
        assert rebuild(old, mechanism.adjacency).guarantee == mechanism.guarantee
    words = release.guarantee.explain()
    write(release, tmp_path / "b", words, render(release, words)).publish()
    check = {one.what: one for one in verify(tmp_path / "b")}[FOLLOWS]
    assert check.holds == (stated == "right")


@pytest.mark.parametrize("together", [False, True])
def test_a_ledger_counts_the_error_that_a_stored_description_leaves_out(tmp_path, together):
    """Entries of 0.1.0 state H = 0; one of tables may too."""
    mechanism = made()
    old = replace(mechanism.description, log_ratio_error=Fraction(0))
    old = TablesDescription((old,), (old.table,)) if together else old
    loss = joint_loss([old], mechanism.adjacency).tradeoff
    ledger = Ledger.open(tmp_path / "ledger.sqlite", SCHEMA, budget=Budget(epsilon=3))
    ledger.publish(PUBLIC)
    ledger.reserve(old, replace(mechanism.guarantee, tradeoff=loss), "old")
    assert ledger.spent().epsilon == mechanism.guarantee.tradeoff.eps > loss.eps
