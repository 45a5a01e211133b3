"""Joint losses against enumeration of all conforming pairs and both releases' densities."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import ReplaceOne, Schema, SemiAdjacent, Table, calibrate, count, publish, total
from congenial.audit.exact_audit import adjacent_pairs
from congenial.errors import GuaranteeError
from congenial.mechanisms.calibrate import rebuild
from congenial.privacy import Gaussian, GaussianDraw, Guarantee, Pure, ZeroConcentrated, joint_loss

SCHEMA = Schema.from_dict(
    {"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}, "y": {"levels": ["0", "1"]}}
)
COUNTS = np.zeros((2, 3, 2), dtype=np.int64)
COUNTS[0, 0, 0] = COUNTS[1, 2, 1] = 2
TABLE = Table(SCHEMA, SCHEMA.names, COUNTS)


SMALL = np.zeros((2, 3, 2), dtype=np.int64)
SMALL[0, 0, 0] = SMALL[1, 2, 1] = 1
SMALL_TABLE = Table(SCHEMA, SCHEMA.names, SMALL)


def brute(mechanisms, adjacency, people) -> float:
    """Largest joint log ratio at the true answers of the first table, where l1 laws attain it."""
    worst = 0.0
    for left, right in adjacent_pairs(adjacency, people):
        loss = 0.0
        for mechanism in mechanisms:
            y = mechanism.query(left)
            loss += mechanism.log_density(y, left) - mechanism.log_density(y, right)
        worst = max(worst, loss)
    return worst


def test_joint_supremum_equals_enumeration_and_can_be_below_the_sum():
    """In group p only y can change, in group q only x: two people cannot do both twice."""
    adjacency = SemiAdjacent(
        publish(
            TABLE,
            total(by="g"),
            count("g = 'p' and x = 'a'"),
            count("g = 'p' and x = 'b'"),
            count("g = 'q' and y = '0'"),
        )
    )
    both = [
        calibrate("auto", Guarantee.pure(1, adjacency), ("g", "x")),
        calibrate("auto", Guarantee.pure(2, adjacency), ("g", "y")),
    ]
    loss = joint_loss([m.description for m in both], adjacency)
    assert float(loss.epsilon) == pytest.approx(brute(both, adjacency, TABLE.total))
    assert loss.epsilon == 2  # not 1 + 2


def test_pricing_after_a_later_mandate():
    """A release without figures, priced again once the groups' totals are out: twice the loss."""
    plain = calibrate("auto", Guarantee.pure(1, ReplaceOne(SCHEMA)), ("g", "x"))
    later = SemiAdjacent(publish(SMALL_TABLE, total(by="g")))
    assert joint_loss([plain.description], later).epsilon == 2
    again = rebuild(plain.description, later)
    assert brute([again], later, SMALL_TABLE.total) == pytest.approx(2)


def test_a_release_given_unpublished_figures_cannot_be_priced():
    adjacency = SemiAdjacent(publish(TABLE, total(by="g")))
    release = calibrate("auto", Guarantee.pure(1, adjacency), ("g", "x"))
    with pytest.raises(GuaranteeError, match="Population by g"):
        joint_loss([release.description], ReplaceOne(SCHEMA))


def test_kinds_of_promise():
    under = ReplaceOne(SCHEMA)
    pure = calibrate("auto", Guarantee.pure(1, under), ("x",)).description
    rho = calibrate("auto", Guarantee.zero_concentrated("0.5", under), ("x",)).description
    mu = calibrate("auto", Guarantee.gaussian(1, under), ("x",)).description
    assert joint_loss([pure, pure], under).tradeoff == Pure(2)
    assert joint_loss([rho], under).tradeoff == GaussianDraw(Fraction(1, 2))
    assert joint_loss([mu], under).tradeoff == Gaussian(1)
    assert isinstance(joint_loss([mu, rho], under).tradeoff, ZeroConcentrated)
    mixed = joint_loss([pure, rho], under)
    assert isinstance(mixed.tradeoff, ZeroConcentrated)
    assert mixed.epsilon_at(1e-6) <= 1 + joint_loss([rho], under).epsilon_at(1e-6)
    assert mixed.epsilon_at(1e-6) >= joint_loss([rho], under).epsilon_at(1e-6)
