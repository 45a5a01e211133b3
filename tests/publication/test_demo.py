"""The demo population is what its description says, and the same for everybody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from congenial.data.tabulate import tabulate
from congenial.errors import BundleError
from congenial.figures.support import support
from congenial.publication.demo_population import (
    EDGES,
    LARGEST,
    SMALLEST,
    STATES,
    population,
    write_demo,
)
from congenial.publication.plan import Plan

SEED = 20200401


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
    assert plan.invariants.structure == "two-way"
    assert [one.label for one in plan.invariants.equalities] == [
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
    under = plan.adjacency(plan.invariants)
    assert under.records == 3
    assert under.l1(["county", "sex", "age"]).value == 6
    known = support(plan.invariants, ("county", "sex", "age"))
    assert known.structure == "2 x 2 groups of which the margins are known"
    assert len(known.ties) == 24
    assert all(len(tie.groups) - tie.pattern.rank == 1 for tie in known.ties)


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(BundleError, match="already there"):
        write_demo(tmp_path, SEED)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
