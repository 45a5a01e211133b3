"""Records of rows whose units own several: from a plan to verified records, and enumerated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial import AddRemove, Figures, Schema, Table, total
from congenial.errors import GuaranteeError
from congenial.pairs.several_rows import SeveralRows
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease
from congenial.synthesis.from_tables.records_run import TableRecords
from tests.commands import refused, run, write_plan
from tests.synthesis.from_tables.enumerated_procedure import Procedure

SEED = 20261117
PLAN = """
[data]
source = "visits.csv"
unit = "patient"
max_rows = 3

[schema]
clinic = { levels = ["n", "s", "w"] }
reason = { levels = ["a", "b", "c", "d"] }
cost = { edges = [0, 50, 100, 500] }

[publish]
"Visits by clinic" = { total = true, by = ["clinic"] }
"Patients" = { total = true, units = true }

[[release]]
name = "visits"
synthesise = ["clinic", "reason", "cost"]
rho = 2

[budget]
rho = 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Visits of 100 patients, one to three each."""
    rng = np.random.default_rng(SEED)
    lines = ["patient,clinic,reason,cost"]
    for patient in range(100):
        for _ in range(1 + patient % 3):
            clinic, reason = rng.choice(list("nsw")), rng.choice(list("abcd"))
            lines.append(f"{patient},{clinic},{reason},{rng.integers(0, 500)}")
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_from_rows_of_patients_to_verified_records(folder: Path) -> None:
    path = write_plan(folder, PLAN)
    run("publish", path)
    told = run("check", path, "--json")["releases"][0]
    assert (told["noun"], told["people"]) == ("rows", 199)
    assert told["not_kept"] == ["Patients"]
    assert "do not show which rows belong to one unit" in run("check", path, "--full")
    run("release", path)
    run("verify", folder / "bundles" / "visits")
    release = congenial.read(folder / "bundles" / "visits")
    assert isinstance(release, TableRecordsRelease)
    frame = release.to_pandas()
    data = np.genfromtxt(folder / "visits.csv", delimiter=",", skip_header=1, dtype=str)
    assert frame["clinic"].value_counts().to_dict() == Counter(data[:, 1])
    assert "patient" not in frame
    assert isinstance(release.guarantee.adjacency, SeveralRows)
    pairs = release.guarantee.adjacency
    ledger = open_ledger(Plan.load(path), create=False)
    assert ledger is not None
    assert release.description.rho * pairs.records**2 == ledger.spent().rho <= 2
    assert pairs.records > 3  # others must change too, so that the figures stay
    assert len(congenial.estimate(release, "count() by reason")) == 4


def test_the_number_of_rows_must_be_public(folder: Path) -> None:
    """Without it, records would tell it; publishing it is the remedy."""
    figures = PLAN[PLAN.index("[publish]") : PLAN.index("[[release]]")]
    said = refused(write_plan(folder, PLAN, (figures, "")))
    assert '"Rows" = { total = true }' in said
    only = '[publish]\n"Rows" = { total = true }\n\n'
    assert run("check", write_plan(folder, PLAN, (figures, only)), "--json")["releases"]
    some = '[publish]\n"Costly" = { count = "cost >= 100" }\n\n'
    assert "number of rows must be public" in refused(write_plan(folder, PLAN, (figures, some)))
    with pytest.raises(GuaranteeError, match="number of rows"):
        TableRecords.calibrate(AddRemove(TWO, 2), TWO.names, Fraction(1))


def test_attributes_of_units_count_all_rows_of_a_unit() -> None:
    """Two units that exchange what their rows share move all these rows."""
    told = {**THREE.to_dict(), "w": {"levels": ["s", "t"], "of": "unit"}}
    pairs = SeveralRows(Figures(Schema.from_dict(told), (total(),)), max_rows=2)
    rows = TableRecords.calibrate(pairs, ("x", "y"), epsilon=Fraction(1))
    shared = TableRecords.calibrate(pairs, ("x", "w"), epsilon=Fraction(1))
    assert pairs.rows_apart(("x", "w")) > pairs.rows_apart(("x", "y"))
    assert shared.budget.amount < rows.budget.amount
    for made in (rows, shared):
        assert made.guarantee.tradeoff.epsilon(0) <= 1
        assert type(made.description).from_dict(pairs.schema, made.description.to_dict()) == (
            made.description
        )


TWO = Schema.from_dict({"x": {"levels": ["p", "q"]}, "y": {"integers": [1, 3]}})
THREE = Schema.from_dict(TWO.to_dict() | {"w": {"levels": ["s", "t"]}})
ROWS = ((0, 0, 0), (0, 2, 1), (1, 2, 1))  # what a row may be here
PROMISE = Fraction(40)
Content = tuple[tuple[int, int, int], ...]
Dataset = tuple[Content, ...]


def all_datasets(rows: int) -> list[Dataset]:
    """Two units with at most two rows each, so many rows in all."""
    contents = [one for size in range(3) for one in combinations_with_replacement(ROWS, size)]
    return [both for both in product(contents, repeat=2) if sum(map(len, both)) == rows]


def table_of(units: Dataset) -> Table:
    counts = np.zeros((2, 3, 2), dtype=np.int64)
    for row in (row for unit in units for row in unit):
        counts[row] += 1
    return Table(THREE, THREE.names, counts)


def look_alike(one: Dataset, other: Dataset, pairs: SeveralRows) -> bool:
    """Whether, units matched one to one, few enough units and slots differ."""
    for matched in permutations(other):
        slots = [_changed(a, b) for a, b in zip(one, matched, strict=True)]
        if sum(slots) <= pairs.slots and sum(map(bool, slots)) <= pairs.units:
            return True
    return False


def _changed(one: Content, other: Content) -> int:
    same = (Counter(one) & Counter(other)).total()
    return max(len(one), len(other)) - same


def worst_loss(made: TableRecords, rows: int, patch: pytest.MonkeyPatch) -> float:
    """The largest log ratio of an outcome between look-alike datasets of so many rows."""
    assert isinstance(made.adjacency, SeveralRows)
    datasets = all_datasets(rows)
    tables = {table_of(one).counts.tobytes(): table_of(one) for one in datasets}
    found = Procedure(made, list(tables.values()), 0, patch).largest_ratios()
    at = {key: place for place, key in enumerate(tables)}
    places = [at[table_of(one).counts.tobytes()] for one in datasets]
    return float(
        max(
            found[i, j]
            for (i, one), (j, other) in product(zip(places, datasets, strict=True), repeat=2)
            if look_alike(one, other, made.adjacency)
        )
    )


@pytest.mark.parametrize("planted", [False, True], ids=["stated", "rows taken for units"])
@pytest.mark.parametrize(("names", "rows"), [(("x", "y"), 4), (("x", "y", "w"), 2)])
def test_losses_over_whole_datasets_of_units(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], rows: int, planted: bool
) -> None:
    """All pairs measured, or one of three chosen: no outcome's log ratio exceeds epsilon. Planted:
    all of the promise for one row, though a unit has two and others must make up for them.
    """
    pairs = SeveralRows(Figures(THREE, (total(),), (np.array(rows),)), max_rows=2)
    made = TableRecords.calibrate(pairs, names, rounds=1, epsilon=PROMISE)
    assert made.budget.chooses == (len(names) == 3)
    if planted:
        made = replace(made, budget=replace(made.budget, amount=PROMISE))
    found = worst_loss(made, rows, monkeypatch)
    assert (found > float(PROMISE) * (1 + 1e-9)) == planted
    assert found > 0.85 * float(PROMISE) * rows / pairs.records  # four rows: the bound is attained
