"""Every term of a joint loss, against the formula it stands for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial import AddRemove, Guarantee, ReplaceOne, Schema, SemiAdjacent, Table
from congenial.figures import Figures, margin, publish, total
from congenial.mechanisms.knorm import KNorm
from congenial.privacy import Description, Gaussian, Loss, Pure, RecordDescription, joint_loss

SCHEMA = Schema.from_dict({"g": {"levels": ["p", "q", "r"]}, "x": {"levels": ["a", "b", "c"]}})
NOTHING = Figures(SCHEMA)
TABLE = Table(SCHEMA, ("g", "x"), np.array([[3, 1, 4], [1, 5, 2], [6, 2, 2]]))
PLAIN = Description("plain", ("g",), "double_geometric", Fraction(1, 10), NOTHING)
BY_GROUP = SemiAdjacent(publish(TABLE, total(by="g")))  # a* = 2
RECORDS = RecordDescription(
    "m", SCHEMA, {}, epsilon=Fraction(1, 7), rho=Fraction(1, 11), added=Fraction(1, 13)
)


def test_numerics_count_twice() -> None:
    """|log p~/p| <= H on both sides of a ratio: 2 H for every release."""
    under = ReplaceOne(SCHEMA)
    windowed = replace(PLAIN, log_ratio_error=Fraction(1, 100))
    plain = joint_loss([PLAIN], under)
    assert plain.epsilon == Fraction(2, 10)
    assert joint_loss([windowed], under).epsilon == plain.epsilon + Fraction(2, 100)
    both = joint_loss([windowed, windowed], under)
    assert both.epsilon == 2 * plain.epsilon + Fraction(4, 100)


@pytest.mark.parametrize(("under", "a"), [(ReplaceOne(SCHEMA), 1), (BY_GROUP, 2)])
def test_records_apart(under: ReplaceOne | SemiAdjacent, a: int) -> None:
    """a records apart: a epsilon (group privacy), a^2 rho (zCDP)."""
    assert under.records == a
    loss = joint_loss([RECORDS], under)
    assert (loss.epsilon, loss.rho) == (a * Fraction(1, 7), a**2 * Fraction(1, 11))
    twice = joint_loss([RECORDS, RECORDS], under)
    assert (twice.epsilon, twice.rho) == (2 * loss.epsilon, 2 * loss.rho)


def test_rows_that_come_and_go() -> None:
    loss = joint_loss([replace(RECORDS, rho=Fraction(0))], AddRemove(SCHEMA, 3))
    assert (loss.epsilon, loss.rho) == (3 * Fraction(1, 13), 0)


@pytest.mark.parametrize(("family", "scale"), [("discrete_gaussian", 4), ("gaussian", 9)])
def test_gaussian_terms(family: str, scale: int) -> None:
    """rho = Delta_2^2 / (2 sigma^2), and on the reals mu^2 = 2 rho; one replaced record moves two
    cells by one, Delta_2^2 = 2.
    """
    noise = Description("plain", ("g",), family, Fraction(scale), NOTHING)
    loss = joint_loss([noise, noise], ReplaceOne(SCHEMA))
    assert loss.rho == Fraction(2, scale)
    if family == "gaussian":
        assert isinstance(loss.tradeoff, Gaussian)
        assert float(loss.tradeoff.mu) == pytest.approx((4 / scale) ** 0.5, rel=1e-9)


def test_gauge_terms() -> None:
    """Every difference of look-alikes has gauge at most 1 under both margins: epsilon itself."""
    under = SemiAdjacent(publish(TABLE, margin("g"), margin("x")))
    mechanism = KNorm.calibrate(Guarantee.pure(Fraction(3, 4), under), ("g", "x"))
    loss = joint_loss([mechanism.description, mechanism.description], under)
    assert loss.epsilon == 2 * Fraction(3, 4)


def test_a_pure_loss_is_a_pure_promise() -> None:
    assert Loss(epsilon=Fraction(1, 3), rho=Fraction(0)).tradeoff == Pure(Fraction(1, 3))
