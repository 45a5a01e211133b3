"""A plan with attributes of units and figures about units, from check to verified bundle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial.errors import CongenialError, DataError, FigureError, PlanError
from congenial.kinds.tables_document import figure_costs
from congenial.pairs.several_rows import SeveralRows
from congenial.publication import verification, workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger

SEED = 20261117
PLAN = """
[data]
source = "people.csv"
unit = "household"
max_rows = 3

[schema]
block = { levels = ["1", "2", "3"], of = "unit", within = { county = ["N", "N", "S"] } }
tenure = { levels = ["own", "rent"], of = "unit" }
age = { levels = ["0-17", "18-64", "65+"] }

[publish]
"Households by block" = { total = true, by = ["block"], units = true }
"People by county" = { total = true, by = ["county"] }

[[release]]
name = "ages"
table = ["age"]
rho = 0.5

[[release]]
name = "tenure"
table = ["county", "tenure", "age"]
rho = 0.5

[budget]
rho = 2
"""


def written(folder: Path, text: str = PLAN, households: int = 150, last: str = "") -> Plan:
    """The plan and made-up people of some households."""
    rng = np.random.default_rng(SEED)
    lines = ["household,block,tenure,age"]
    for one in range(households):
        block, tenure = rng.choice(["1", "2", "3"]), rng.choice(["own", "rent"])
        for _ in range(int(rng.integers(1, 4))):
            lines.append(f"h{one},{block},{tenure},{rng.choice(['0-17', '18-64', '65+'])}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n" + last)
    (folder / "plan.toml").write_text(text)
    return Plan.load(folder / "plan.toml")


def test_from_plan_to_verified_bundle(tmp_path: Path) -> None:
    plan = written(tmp_path)
    checked = workflow.check(plan)
    assert [one.label for one in checked.figures.told] == [
        "People by county",
        "Households by block",
    ]
    workflow.publish(plan)
    told = (tmp_path / "published" / "published.csv").read_text()
    assert "Households by block" in told
    for name in ("ages", "tenure"):
        workflow.release(plan, name)
        bundle = tmp_path / "bundles" / name
        assert [check.what for check in verification.verify(bundle) if not check.holds] == []
        release = congenial.read(bundle)
        pairs = release.guarantee.adjacency
        assert isinstance(pairs, SeveralRows)
        assert (pairs.units, pairs.slots) == (4, 8)  # 2 + k - l and 3k - l, k = 3, l = 1
        promise = release.guarantee.explain()
        assert "Published exactly: People by county; Households by block." in promise
        assert "two possible contents of your unit equally likely" in promise
        report = (bundle / "report.html").read_text()
        assert "Number of units, for each block" in report
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    assert ledger.adjacency.to_dict() == pairs.to_dict()


def test_a_table_that_shows_an_attribute_of_units_costs_all_rows_of_its_units(
    tmp_path: Path,
) -> None:
    """At equal rho: noise for k a = 12 rows that move, where ages alone need 8."""
    plan = written(tmp_path)
    found = [one.mechanism.only.description.scale for one in workflow.check(plan).releases]
    assert found[0] == 2 * 8**2  # sigma^2 = Delta_2^2 / (2 rho)
    assert found[1] == 2 * 12**2


def test_figures_about_units_are_part_of_what_is_published(tmp_path: Path) -> None:
    plan = written(tmp_path)
    workflow.publish(plan)
    again = written(tmp_path, PLAN.replace('by = ["block"], units', 'by = ["county"], units'))
    with pytest.raises(FigureError, match="two figures are called"):
        workflow.publish(again)
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    figures = ledger.figures.of_units
    assert figures is not None
    assert figures.values is not None
    assert int(figures.values[0].sum()) == 150


def test_other_units_than_those_published_are_refused(tmp_path: Path) -> None:
    """The number of people stays, the households do not."""
    plan = written(tmp_path)
    workflow.publish(plan)
    rows = (tmp_path / "people.csv").read_text().splitlines()
    first = next(i for i in range(2, 60) if rows[i].split(",")[0] == rows[i - 1].split(",")[0])
    rows[first] = "alone" + rows[first][rows[first].index(",") :]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(FigureError, match="do not agree with the published figures"):
        workflow.release(plan, "ages")


def test_a_household_in_two_blocks_is_refused(tmp_path: Path) -> None:
    plan = written(tmp_path, last="late,1,own,0-17\nlate,2,own,0-17\n")
    with pytest.raises(DataError, match="column 'block' differs between rows of one unit"):
        workflow.publish(plan)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max_rows = 3", "", "units = true counts units"),
        ('by = ["block"], units', 'by = ["age"], units', "counts units by 'age'"),
        ('"People by county" = { total = true, by = ["county"] }', "", "number of rows"),
        ('by = ["block"], units', 'by = ["tenure"], units', "the number of units in each class"),
        ('of = "unit", within', 'of = "house", within', "not a value that `of` can have"),
    ],
)
def test_what_is_not_covered_is_refused_before_anything_is_public(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    assert old in PLAN
    with pytest.raises(CongenialError) as e:
        workflow.check(written(tmp_path, PLAN.replace(old, new)))
    assert words in str(e.value)
    assert not (tmp_path / "published").exists()


def test_an_attribute_of_units_needs_units_with_several_rows(tmp_path: Path) -> None:
    text = PLAN.replace("max_rows = 3", "").replace(
        '"Households by block" = { total = true, by = ["block"], units = true }\n', ""
    )
    with pytest.raises(PlanError, match=r"data\.max_rows"):
        workflow.check(written(tmp_path, text))


def test_a_key_that_says_its_default_changes_no_digest(tmp_path: Path) -> None:
    text = PLAN.replace(", units = true", "").replace(', of = "unit"', "")
    plan = Plan.parse(text, tmp_path)
    explicit = Plan.parse(text.replace('by = ["block"]', 'by = ["block"], units = false'), tmp_path)
    assert explicit.digest == plan.digest


def test_check_says_what_a_figure_about_units_costs(tmp_path: Path) -> None:
    """Without the number of people by county, which sees blocks, no household need exchange."""
    text = PLAN.replace('total = true, by = ["county"]', "total = true")
    plan = written(tmp_path, text)
    costs = {
        one.label: one for one in figure_costs(workflow.check(plan).releases[1].mechanism.only)
    }
    found = costs["Households by block"]
    assert found.loss_without is not None
    assert found.loss > found.loss_without  # (k + 1)^2 households against k^2
    assert found.loss / found.loss_without == pytest.approx(16 / 9)
