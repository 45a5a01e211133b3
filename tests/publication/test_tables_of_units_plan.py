"""Tables that count units, from check to verified bundle, and beside tables of rows in a ledger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial.errors import CongenialError, DataError, FigureError
from congenial.kinds.tables_document import figure_costs
from congenial.mechanisms.tables_release import TablesRelease
from congenial.pairs.several_rows import SeveralRows, TablesOfUnits
from congenial.privacy.composition import joint_loss
from congenial.publication import verification, workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from tests.publication.test_unit_figures_plan import PLAN, written

UNITS = PLAN.replace('name = "tenure"', 'name = "tenure"\nunits = true').replace(
    'table = ["county", "tenure", "age"]', 'table = ["block", "tenure"]'
)


def test_from_plan_to_verified_bundle(tmp_path: Path) -> None:
    plan = written(tmp_path, UNITS)
    workflow.publish(plan)
    workflow.release(plan, "tenure")
    bundle = tmp_path / "bundles" / "tenure"
    assert [check.what for check in verification.verify(bundle) if not check.holds] == []
    release = congenial.read(bundle)
    pairs = release.guarantee.adjacency
    assert isinstance(pairs, TablesOfUnits)
    assert release.description.units
    assert release.description.measured[0].variance == 2 * 4**2 / (
        2 * 0.5
    )  # 2 a^2 / (2 rho), a = 1 + k
    for table in (*release.drawn, *release.counts):
        assert table.shape == (3, 2)
        assert table.sum(axis=1).tolist() == release.published.values[0].tolist()  # households kept
        assert int(table.sum()) == 150
    assert release.counts[0].min() >= 0
    promise = release.guarantee.explain()
    assert "Published exactly: People by county; Households by block." in promise
    assert "People by county" in (bundle / "published.csv").read_text()
    assert "counts of units (not of their rows)" in (bundle / "report.html").read_text()


def test_rows_and_units_in_one_ledger_add_up(tmp_path: Path) -> None:
    plan = written(tmp_path, UNITS)
    workflow.publish(plan)
    for name in ("ages", "tenure"):
        workflow.release(plan, name)
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    assert isinstance(ledger.adjacency, SeveralRows)
    spent = ledger.spent()
    assert float(spent.rho) == pytest.approx(1.0)
    each = [joint_loss([one.description], ledger.adjacency).rho for one in ledger.entries()]
    assert spent.rho == sum(each)


def test_a_later_figure_reprices_tables_of_units_over_the_new_look_alikes(tmp_path: Path) -> None:
    """Old people by county: more households must change, and the promise of before says so."""
    plan = written(tmp_path, UNITS)
    workflow.publish(plan)
    workflow.release(plan, "tenure")
    more = UNITS.replace(
        "[[release]]",
        """"Old people" = { count = "age = '65+'", by = ["county"] }\n\n[[release]]""",
        1,
    )
    (tmp_path / "plan.toml").write_text(more)
    with pytest.raises(CongenialError, match="weakens what earlier releases promise"):
        workflow.publish(Plan.load(tmp_path / "plan.toml"))


def test_check_prices_figures_of_both_kinds(tmp_path: Path) -> None:
    plan = written(tmp_path, UNITS)
    costs = {
        one.label: one for one in figure_costs(workflow.check(plan).releases[1].mechanism.only)
    }
    assert set(costs) == {"People by county", "Households by block"}
    assert costs["Households by block"].loss_without is None  # people by county need them


def test_other_rows_than_those_published_are_refused(tmp_path: Path) -> None:
    """The households stay, one of them has another member."""
    plan = written(tmp_path, UNITS)
    workflow.publish(plan)
    text = (tmp_path / "people.csv").read_text()
    first = text.splitlines()[1]
    sizes = text.count(first.split(",")[0] + ",")
    assert sizes < 3
    (tmp_path / "people.csv").write_text(text + first + "\n")
    with pytest.raises(FigureError, match="do not agree with the published figures"):
        workflow.release(plan, "tenure")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('table = ["block", "tenure"]', 'table = ["tenure", "age"]', "cannot show 'age'"),
        (", units = true }", " }", "number of units"),
        ('table = ["block", "tenure"]', 'table = ["block"]', "nothing is left to protect"),
    ],
)
def test_what_is_no_table_of_units_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in UNITS
    with pytest.raises(CongenialError) as told:
        workflow.check(written(tmp_path, UNITS.replace(old, new)))
    assert words in str(told.value)


def test_units_need_several_rows_under_figures(tmp_path: Path) -> None:
    text = UNITS[: UNITS.index("[publish]")] + UNITS[UNITS.index("[[release]]") :]
    with pytest.raises(CongenialError, match="units = true is for units with several rows"):
        workflow.check(written(tmp_path, text))


def test_plans_without_the_key_keep_their_digest(tmp_path: Path) -> None:
    said = PLAN.replace('name = "tenure"', 'name = "tenure"\nunits = false')
    assert Plan.parse(said, tmp_path).digest == Plan.parse(PLAN, tmp_path).digest


def test_households_by_size(tmp_path: Path) -> None:
    """Counts of counts: sizes are counted, not read, and add up to households by county."""
    text = UNITS.replace('["block", "tenure"]', '["county", "size"]').replace(
        "age = {", 'size = { integers = [1, 3], of = "unit size" }\nage = {'
    )
    plan = written(tmp_path, text)
    workflow.publish(plan)
    workflow.release(plan, "tenure")
    bundle = tmp_path / "bundles" / "tenure"
    assert [check.what for check in verification.verify(bundle) if not check.holds] == []
    release = congenial.read(bundle)
    assert isinstance(release, TablesRelease)
    blocks = release.published.values
    assert blocks is not None
    households = [int(blocks[0][:2].sum()), int(blocks[0][2])]
    for table in (*release.drawn, *release.counts):
        assert np.shape(table) == (2, 3)
        assert np.sum(table, axis=1).tolist() == households
    for least in (1, 2, 3):  # households with at least so many people: sums of what was drawn
        found = congenial.estimate(release, f"count(size >= {least}) by county").estimates
        expected = release.drawn[0][:, least - 1 :].sum(axis=1)
        np.testing.assert_allclose([one.value for one in found], np.maximum(expected, 0))


def test_households_and_people_from_two_files(tmp_path: Path) -> None:
    """The same figures and the same law as from one file; a household without people is refused."""
    one = written(tmp_path, UNITS)
    lines = [line.split(",") for line in (tmp_path / "people.csv").read_text().splitlines()]
    homes = dict.fromkeys(f"{home},{block},{tenure}" for home, block, tenure, _ in lines)
    (tmp_path / "homes.csv").write_text("\n".join(homes) + "\n")
    (tmp_path / "rows.csv").write_text("".join(f"{row[0]},{row[3]}\n" for row in lines))
    text = UNITS.replace('source = "people.csv"', 'source = "rows.csv"\nunit_source = "homes.csv"')
    two = Plan.parse(text.replace("[budget]", '[budget]\nledger = "two.sqlite"'), tmp_path)
    from_one, from_two = workflow.preview(one).figures, workflow.preview(two).figures
    assert from_one == from_two
    (tmp_path / "homes.csv").write_text("\n".join([*homes, "empty,1,own"]) + "\n")
    with pytest.raises(DataError, match="has units without rows"):
        workflow.publish(two)


SEVERAL = UNITS.replace(
    'table = ["block", "tenure"]',
    'tables = [["block", "tenure"], ["county", "size"], ["tenure"]]',
).replace("age = {", 'size = { integers = [1, 3], of = "unit size" }\nage = {')


def test_several_tables_of_units_are_one_promise(tmp_path: Path) -> None:
    """The joint supremum over the units that differ, beside a table of rows in the ledger."""
    plan = written(tmp_path, SEVERAL)
    workflow.publish(plan)
    for name in ("ages", "tenure"):
        workflow.release(plan, name)
    bundle = tmp_path / "bundles" / "tenure"
    assert [check.what for check in verification.verify(bundle) if not check.holds] == []
    release = congenial.read(bundle)
    pairs = release.guarantee.adjacency
    assert isinstance(pairs, TablesOfUnits)
    assert release.description.units
    together = joint_loss([release.description], pairs).rho
    apart = [
        pairs.l2_squared(law.table).value / law.variance / 2 for law in release.description.laws
    ]
    assert float(together) == pytest.approx(0.5)
    assert together <= sum(apart)
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    assert float(ledger.spent().rho) == pytest.approx(1.0)


def test_several_tables_of_units_show_no_attribute_of_rows(tmp_path: Path) -> None:
    with pytest.raises(CongenialError, match="cannot show 'age'"):
        workflow.check(written(tmp_path, SEVERAL.replace('["tenure"]]', '["tenure", "age"]]')))
