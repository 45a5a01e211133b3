"""Several tables as a ledger knows them: written, read back, priced and priced anew."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial import Guarantee, Ledger, ReplaceOne, Schema, SemiAdjacent, Table, calibrate
from congenial.errors import GuaranteeError
from congenial.figures import Figures, publish, total
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.privacy import TablesDescription, joint_loss, read_description
from congenial.tables import Workload, difference_types, joint_rho
from congenial.tables.promise import Measured

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"], "within": {"state": ["P", "P", "Q"]}},
        "sex": {"levels": ["f", "m"]},
        "age": {"levels": ["child", "young", "mid", "old"]},
    }
)
COUNTS = np.random.default_rng(3).integers(5, 40, (3, 2, 4))
TABLE = Table(SCHEMA, SCHEMA.names, COUNTS)
TABLES = [["county", "sex", "age"], ["state", "age"], ["age"]]
PUBLIC = publish(TABLE, total(by="county"))
LATER = publish(TABLE, total(by="county"), total(by="sex"))
TARGET = Guarantee.zero_concentrated(Fraction(1, 2), SemiAdjacent(PUBLIC))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("tables", [TABLES, TABLES[:1]])
def test_it_reads_back_as_it_was_written(tables: list[list[str]], whole: bool) -> None:
    told = replace(calibrate_tables(TARGET, tables, keep=["state"]).description, whole=whole)
    again = read_description(SCHEMA, json.loads(json.dumps(told.to_dict())))
    assert again == told
    assert again.to_dict() == told.to_dict()


def test_the_price_is_the_joint_supremum() -> None:
    made = calibrate_tables(TARGET, TABLES)
    types = difference_types(made.adjacency, Workload.of(SCHEMA, TABLES))
    precisions = [1 / one.scale for one in made.description.measured]
    assert joint_loss([made.description], made.adjacency).rho == joint_rho(types, precisions).value
    apart = sum(
        (joint_loss([one], made.adjacency).rho for one in made.description.measured), Fraction(0)
    )
    assert joint_loss([made.description], made.adjacency).rho <= apart


def test_a_figure_published_later_prices_it_anew() -> None:
    """One more person may have to change along, so the loss grows: as `Measured` has it too."""
    made = calibrate_tables(TARGET, TABLES)
    later = SemiAdjacent(LATER)
    measured = Measured(
        Workload.of(SCHEMA, TABLES),
        tuple(1 / one.scale for one in made.description.measured),
        "gaussian",
        made.adjacency,
    )
    now = joint_loss([made.description], later).rho
    assert now == measured.loss(under=later).value
    assert now > made.guarantee.tradeoff.rho


def test_the_ledger_counts_it_once_and_says_what_a_later_figure_costs(tmp_path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite", schema=SCHEMA)
    ledger.publish(PUBLIC)
    made = calibrate_tables(TARGET, TABLES)
    with ledger.reserve(made.description, made.guarantee, "people") as reservation:
        reservation.mark_drawn()
        reservation.commit("0" * 64)
    assert float(ledger.spent().rho) == pytest.approx(0.5, rel=1e-6)
    found = ledger.publish(LATER, accept_weaker=True)
    assert [one.entry.name for one in found.releases if one.weaker] == ["people"]
    assert ledger.spent().rho == joint_loss([made.description], SemiAdjacent(LATER)).rho


@pytest.mark.parametrize(
    "change",
    [
        lambda d: replace(d, measured=()),
        lambda d: replace(d, measured=(d.measured[0], d.measured[0])),
        lambda d: replace(d, tables=(("age",),)),
        lambda d: replace(
            d, measured=(replace(d.measured[0], support=Figures(SCHEMA)), *d.measured[1:])
        ),
        lambda d: replace(
            d,
            measured=tuple(
                replace(one, family="double_geometric", nonnegative=True) for one in d.measured
            ),
        ),
        lambda d: replace(
            d, measured=(replace(d.measured[0], family="gaussian"),), tables=d.tables[:1]
        ),
        lambda d: replace(d, measured=(replace(d.measured[0], family="gaussian"), *d.measured[1:])),
    ],
)
def test_descriptions_that_contradict_themselves(change) -> None:
    with pytest.raises(GuaranteeError):
        change(calibrate_tables(TARGET, TABLES).description)


def test_a_promise_that_is_no_promise_about_tables_is_refused() -> None:
    with pytest.raises(GuaranteeError, match="cannot be calibrated"):
        calibrate_tables(Guarantee.gaussian(1, TARGET.adjacency), TABLES)


def test_other_noise_than_whole_numbers_is_for_one_table_and_its_sums() -> None:
    law = calibrate("plain_laplace", Guarantee.pure(1, ReplaceOne(SCHEMA)), ["state"]).description
    told = TablesDescription((law,), (("state",), ()), whole=False)
    assert told.only_law == law
    with pytest.raises(GuaranteeError, match="same family of whole-number noise"):
        TablesDescription((law,), (("state",), ("county",)), whole=False)
