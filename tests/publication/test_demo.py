"""The demo population is what its description says, and the same for everybody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student

from congenial import Plan, SeededRandomness, publish, tabulate
from congenial.errors import BundleError
from congenial.figures.support import support
from congenial.kinds.tables import KIND, TablesSection
from congenial.publication.demo_population import (
    EDGES,
    LARGEST,
    SMALLEST,
    STATES,
    population,
    write_demo,
)

SEED = 20200401
ALPHA = 1e-6
RELEASES = 30
LEVEL = 0.9
ROUNDED = 0.03  # whole ends lie up to 1 outside: what that adds at a standard deviation of 12


def test_population_is_about_the_promised_size_and_shape() -> None:
    people = population(SEED)
    assert 280_000 < people.num_rows < 330_000
    ages = people["age"].to_numpy()
    assert ages.min() == 0
    assert 95 <= ages.max() <= 100
    ids = people["person_id"].to_numpy()
    assert len(np.unique(ids)) == people.num_rows
    counties, sizes = np.unique(people["county"].to_numpy(zero_copy_only=False), return_counts=True)
    assert len(counties) == 24
    assert 0.9 * SMALLEST < sizes.min() < 1.1 * SMALLEST
    assert 0.9 * LARGEST < sizes.max() < 1.1 * LARGEST


def test_women_outlive_men_and_boys_outnumber_girls() -> None:
    people = population(SEED)
    ages = people["age"].to_numpy()
    male = people["sex"].to_numpy(zero_copy_only=False) == "male"
    assert male[ages < 5].mean() > 0.5
    assert male[ages >= 85].mean() < 0.45
    assert (ages >= 85).mean() < 0.05


def test_the_same_seed_gives_the_same_people() -> None:
    assert population(3).slice(0, 500).equals(population(3).slice(0, 500))
    assert not population(3).slice(0, 500).equals(population(4).slice(0, 500))


def test_the_plan_fits_the_people(tmp_path: Path) -> None:
    plan = Plan.load(write_demo(tmp_path / "demo", SEED))
    assert len(EDGES) == 23
    assert plan.schema.axis("age").levels[-1] == "85+"
    assert plan.schema.axis("state").levels == tuple(STATES)
    assert plan.figures.structure == "two-way"
    assert [one.label for one in plan.figures.equalities] == [
        "Population",
        "Female",
        "Voting age",
    ]
    table = tabulate(plan.source, plan.schema, by=["state", "sex", "age"], unit=plan.unit)
    assert table.counts.shape == (3, 2, 23)
    assert table.counts.min() > 0


def test_its_figures_cross_in_every_county(tmp_path: Path) -> None:
    """Total, female and voting age: a 2 x 2 of groups per county with one free sum."""
    plan = Plan.load(write_demo(tmp_path / "demo", SEED))
    under = plan.adjacency(plan.figures)
    assert under.records == 3
    assert under.l1(["county", "sex", "age"]).value == 6
    known = support(plan.figures, ("county", "sex", "age"))
    assert known.structure == "2 x 2 groups with known margins"
    assert len(known.ties) == 24
    assert all(len(tie.groups) - tie.pattern.rank == 1 for tie in known.ties)


def test_the_plan_releases_several_tables(tmp_path: Path) -> None:
    plan = Plan.load(write_demo(tmp_path / "demo", SEED))
    first = plan.release[0]
    assert isinstance(first, TablesSection)
    assert len(first.tables) == 6
    assert first.tables[0] == ["county", "sex", "age"]
    assert all(set(names) <= {"county", "state", "sex", "age"} for names in first.tables)


def sums_of_the_demo(folder: Path) -> dict[str, NDArray[np.float64]]:
    """Truth, printed count and ends of the interval: one row per release, one column per sum."""
    plan = Plan.load(write_demo(folder, SEED))
    section = plan.release[0]
    assert isinstance(section, TablesSection)
    people = tabulate(plan.source, plan.schema, unit=plan.unit)
    built = KIND.build(plan, section, publish(people, *plan.statements))
    tables = built.description.tables[1:]
    truths = [tabulate(plan.source, plan.schema, by=list(one)).counts.ravel() for one in tables]
    source = SeededRandomness(1)
    found: dict[str, list[NDArray[np.float64]]] = {"count": [], "low": [], "high": []}
    for _ in range(RELEASES):
        release = built.release(people, source)
        printed = [release.to_arrow(*one) for one in tables]
        for name, column in (("count", "count"), ("low", "low_90"), ("high", "high_90")):
            found[name].append(np.concatenate([one[column].to_numpy() for one in printed]))
    truth = np.concatenate(truths).astype(float)
    return {"truth": truth} | {name: np.array(rows, float) for name, rows in found.items()}


def test_sums_lie_within_their_intervals_as_often_as_stated(tmp_path: Path) -> None:
    """Releases are independent, sums of one release are not: Student's test over releases."""
    sums = sums_of_the_demo(tmp_path / "demo")
    half = (sums["high"] - sums["low"]) / 2
    off = abs((sums["high"] + sums["low"]) / 2 - sums["truth"])
    assert as_often_as_stated((off <= half).mean(axis=1))
    assert not as_often_as_stated((off <= 0.8 * half).mean(axis=1))  # negative control
    assert (abs(sums["count"] - (sums["high"] + sums["low"]) / 2) <= half).mean() >= 0.95


def as_often_as_stated(shares: NDArray[np.float64]) -> bool:
    """Whether the mean share is LEVEL, or above by no more than rounding outwards explains."""
    apart = student.ppf(1 - ALPHA / 2, len(shares) - 1) * shares.std(ddof=1) / len(shares) ** 0.5
    return bool(LEVEL - apart <= shares.mean() <= LEVEL + ROUNDED + apart)


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(BundleError, match="already exists"):
        write_demo(tmp_path, SEED)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
