"""A plan with several rows per unit and exact figures, from check to verified bundle."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial import Budget, Ledger, Plan, SeededRandomness, Unit
from congenial.data.tabulate import Microdata
from congenial.errors import DataError, LedgerError
from congenial.pairs.several_rows import SeveralRows
from congenial.publication import verification, workflow
from congenial.publication.plan_ledger import open_ledger

SEED = 20261116
PLAN = """
[data]
source = "visits.csv"
unit = "patient"
max_rows = 3

[schema]
ward = { levels = ["north", "south"] }
cause = { levels = ["a", "b", "c"] }

[publish]
"Visits by ward" = { total = true, by = ["ward"] }

[[release]]
name = "causes"
table = ["ward", "cause"]
rho = 0.5

[[release]]
name = "in-all"
table = ["cause"]
epsilon = 1

[budget]
rho = 2
"""


def written(folder: Path, text: str = PLAN, most: int = 3) -> Plan:
    """The plan and made-up visits of 200 patients."""
    rng = np.random.default_rng(SEED)
    lines = ["patient,ward,cause"]
    for patient in range(200):
        rows = most if patient == 0 else int(rng.integers(1, 4))
        lines += [
            f"p{patient},{rng.choice(['north', 'south'])},{rng.choice(['a', 'b', 'c'])}"
            for _ in range(rows)
        ]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n")
    (folder / "plan.toml").write_text(text)
    return Plan.load(folder / "plan.toml")


def test_from_plan_to_verified_bundle(tmp_path: Path) -> None:
    plan = written(tmp_path)
    workflow.publish(plan)
    for name in ("causes", "in-all"):
        workflow.release(plan, name)
        bundle = tmp_path / "bundles" / name
        assert [check.what for check in verification.verify(bundle) if not check.holds] == []
        release = congenial.read(bundle)
        assert isinstance(release.guarantee.adjacency, SeveralRows)
        assert release.guarantee.adjacency.slots == 6  # 3 rows, nested totals
        assert "at most 4 units" in release.guarantee.explain()
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    assert isinstance(ledger.adjacency, SeveralRows)
    assert "rho = 1 " in Budget(rho=2).say(ledger.spent()) + " "  # epsilon 1 counts as rho 1/2


def test_a_later_figure_reprices_over_the_new_look_alikes(tmp_path: Path) -> None:
    """Never by a factor: 6 rows under nested totals, 9 once a second margin crosses them."""
    plan = written(tmp_path)
    workflow.publish(plan)
    workflow.release(plan, "causes", randomness=SeededRandomness(SEED))
    more = PLAN.replace(
        "[[release]]", """"Cause a" = { count = "cause = 'a'" }\n\n[[release]]""", 1
    )
    (tmp_path / "plan.toml").write_text(more)
    with pytest.raises(LedgerError, match=r"1\.125"):  # 9^2 / 6^2 / 2
        workflow.publish(Plan.load(tmp_path / "plan.toml"))


def test_a_unit_with_more_rows_is_refused_without_its_number(tmp_path: Path) -> None:
    plan = written(tmp_path, most=7)
    with pytest.raises(DataError) as caught:
        workflow.publish(plan)
    assert "7" not in str(caught.value)


def test_units_cut_to_their_first_rows_say_so_everywhere(tmp_path: Path) -> None:
    """Figures and tables are of the rows kept; names, promise and report say it."""
    text = PLAN.replace("max_rows = 3", 'max_rows = 3\ntruncate = "column order"')
    plan = written(tmp_path, text, most=7)
    done = workflow.publish(plan)
    label = "Visits by ward (at most 3 rows of each patient)"
    assert [one.label for one in done.figures.told] == [label]
    with Microdata.open(plan.source, plan.schema, Unit("patient", 7)) as whole:
        left = whole.tabulate(["ward"]).counts - np.asarray(done.figures.told_values[0])
    assert left.sum() == 4  # the first patient has 7 rows, the others at most 3
    assert left.min() >= 0
    assert label in (done.folder / "published.csv").read_text()
    workflow.release(plan, "causes")
    bundle = tmp_path / "bundles" / "causes"
    assert all(check.holds for check in verification.verify(bundle))
    kept = "of each unit ('patient') only the first 3 rows are counted"
    assert kept in congenial.read(bundle).guarantee.explain()
    page = (bundle / "report.html").read_text().replace("&#39;", "'")
    assert kept in page
    assert label in page
    whole_plan = Plan.parse(PLAN, tmp_path)
    assert whole_plan.digest != plan.digest


def test_a_plan_goes_on_with_more_rows_once_the_ledger_is_told(tmp_path: Path) -> None:
    plan = written(tmp_path)
    workflow.publish(plan)
    workflow.release(plan, "causes", randomness=SeededRandomness(SEED))
    (tmp_path / "plan.toml").write_text(PLAN.replace("max_rows = 3", "max_rows = 4"))
    wider = Plan.load(tmp_path / "plan.toml")
    with pytest.raises(LedgerError, match=r"congenial ledger unit \S+ 'several rows' --max-rows 4"):
        workflow.check(wider)
    Ledger.open(plan.ledger).change_unit("several rows", 4, accept_weaker=True)
    assert workflow.check(wider).spent.rho == Fraction(8, 9)  # 8 rows for 6: 8^2 / 6^2 / 2
    workflow.release(wider, "in-all", randomness=SeededRandomness(SEED))
    with pytest.raises(LedgerError, match="counts under the unit several rows with max_rows = 4"):
        workflow.check(plan)


def test_a_ledger_that_counts_otherwise_is_refused(tmp_path: Path) -> None:
    plan = written(tmp_path)
    Ledger.open(plan.ledger, plan.schema, max_rows=3, budget=Budget(rho=2))
    with pytest.raises(LedgerError, match="unit"):
        workflow.publish(plan)
