"""Several tables that cannot be meant, are too large, or leave something open."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial import Guarantee, Schema, SemiAdjacent, Table, margin, publish
from congenial.errors import BudgetError, PlanError, SchemaError, StructureError
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.mechanisms.tables_release import TablesRelease
from congenial.publication.verification import verify
from congenial.sampling.randomness import SeededRandomness
from tests.commands import refused, run, verified
from tests.kinds.several_tables_plan import SECTION, failed, forged, written


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("rho = 0.5", "", PlanError, "exactly one of epsilon, rho, mu, accuracy"),
        ("rho = 0.5", "rho = 1\nepsilon = 1", PlanError, "exactly one of epsilon, rho, mu"),
        ("rho = 0.5", "rho = 1\ndelta = 0.1", PlanError, "delta needs epsilon"),
        ("rho = 0.5", 'rho = 1\naim = "even"\nweights = { age = 1 }', PlanError, "at most one of"),
        ("rho = 0.5", "rho = 1\nweights = { age = 0 }", PlanError, "must be positive"),
        ("rho = 0.5", "rho = 1\nweights = { sex = 1 }", PlanError, "not one of the tables"),
        (
            "rho = 0.5",
            'rho = 1\ntable = ["age"]',
            PlanError,
            "table is only used with tables = 'auto'",
        ),
        ("rho = 0.5", 'rho = 1\nmechanism = "congenial"', PlanError, "leave it out"),
        ('["age"]]', '["age"], ["age"]]', StructureError, "listed twice"),
        ('["age"]]', '["age"], ["sex", "county"]]', StructureError, "sex, county is listed twice"),
        ('["age"]]', '["height"]]', SchemaError, "height"),
        ('["age"]]', '["county", "state"]]', SchemaError, "county"),
        (
            "rho = 0.5",
            "accuracy = [\"margin('sex') within 5 at 90%\"]",
            PlanError,
            "not about one of its",
        ),
        ("rho = 0.5", 'accuracy = ["age within 5"]', PlanError, "cannot be read"),
        ("rho = 0.5", 'rho = 1\nfind = "epsilon"', PlanError, "find needs accuracy"),
        ("rho = 0.5", "accuracy = ['x']\ndelta = 1e-6", PlanError, "delta needs epsilon"),
        ("rho = 0.5", "accuracy = [\"margin('age') within 0 at 90%\"]", PlanError, "that small"),
        (
            "rho = 0.5",
            "accuracy = [\"margin('age') within 0.01 at 90%\"]",
            PlanError,
            "rho = 500 is enough",
        ),
        (
            'tables = [["county", "sex", "age"], ["state", "age"], ["county", "sex"], ["age"]]',
            'tables = [["county"], ["state"]]',
            StructureError,
            "figures fix every table",
        ),
        ("rho = 0.5", 'rho = 1\nkeep = ["height"]', SchemaError, "height"),
        ("rho = 0.5", "mu = 1", PlanError, "mu is for one table; leave it out"),
        ("rho = 0.5", 'epsilon = 1\nbasis = "theorem"', PlanError, "basis is for one table"),
        ("rho = 0.5", 'epsilon = 1\nnonnegative = "condition"', PlanError, "is for one table"),
        ("rho = 0.5", "rho = 1\nwithin = 3", PlanError, "within: unknown key"),
    ],
)
def test_plans_that_cannot_be_meant(
    tmp_path: Path, old: str, new: str, error: type, words: str
) -> None:
    assert old in SECTION
    told = refused(written(tmp_path, SECTION.replace(old, new)), "check", error.exit_code)
    assert words in " ".join(told.split())


def test_more_common_cells_than_anybody_can_count(tmp_path: Path) -> None:
    """Twelve attributes: tables are counted one by one, estimates are printed, and say why."""
    names = [f"v{i}" for i in range(12)]
    rows = np.random.default_rng(2).integers(1, 11, (400, 12))
    people = [",".join([str(i), *map(str, row)]) for i, row in enumerate(rows.tolist())]
    (tmp_path / "people.csv").write_text("\n".join([",".join(["id", *names]), *people]) + "\n")
    schema = "\n".join(f"{name} = {{ integers = [1, 10] }}" for name in names)
    tables = [["v0", "v1"], ["v1", "v2"], *[[name] for name in names], []]
    (tmp_path / "plan.toml").write_text(
        f'[data]\nsource = "people.csv"\nunit = "id"\n[schema]\n{schema}\n[[release]]\n'
        f'name = "people"\ntables = {json.dumps(tables)}\nrho = 1\n[budget]\nrho = 1\n'
    )
    told = run("check", tmp_path / "plan.toml", "--json")["releases"][0]
    assert "1,000,000,000,000" in told["whole_counts"]
    run("release", tmp_path / "plan.toml")
    assert run("verify", tmp_path / "bundles" / "people", "--json")["holds"]
    release = congenial.read(tmp_path / "bundles" / "people")
    assert all(one is None for one in release.counts)
    assert release.to_pandas("v1", "v2")["estimate"].sum() == pytest.approx(
        float(release.estimates[-1]), abs=1e-6
    )
    assert list(release.intervals(["v0"], 0.9).column_names) == [
        *("v0", "estimate", "low", "high", "exact")
    ]
    assert release.count("v0 <= 5") == pytest.approx(release.estimated_count("v0 <= 5"))


def test_a_huge_product_of_levels_is_refused_before_its_cells_are_listed(tmp_path: Path) -> None:
    schema = "\n".join(f"v{i} = {{ integers = [1, 1000] }}" for i in range(3))
    (tmp_path / "people.csv").write_text("id,v0,v1,v2\n1,1,1,1\n")
    (tmp_path / "plan.toml").write_text(
        f'[data]\nsource = "people.csv"\nunit = "id"\n[schema]\n{schema}\n[[release]]\n'
        'name = "people"\ntables = [["v0", "v1", "v2"], ["v0"]]\nrho = 1\n[budget]\nrho = 1\n'
    )
    told = refused(tmp_path / "plan.toml")
    assert "the table over v0, v1, v2 has 1,000,000,000 cells" in told
    assert "part by part" in told


def test_accuracies_beyond_the_budget_are_told_what_they_need(tmp_path: Path) -> None:
    text = SECTION.replace("rho = 0.5", "accuracy = [\"margin('age') within 1 at 95%\"]")
    plan = written(tmp_path, text)
    told = " ".join(run("check", plan, "--full").split())
    assert "This plan asks for rho = 11.6693" in told
    assert "The budget does not allow this" in told
    run("publish", plan)
    said = " ".join(refused(plan, "release", BudgetError.exit_code).split())
    assert "rho = 11.6693" in said
    assert not (tmp_path / "bundles").exists()


def test_tables_without_a_common_attribute(tmp_path: Path) -> None:
    every = '[["county", "sex", "age"], ["state", "age"], ["county", "sex"], ["age"]]'
    plan = written(tmp_path, SECTION.replace(every, '[["sex"], ["age"]]'))
    run("publish", plan)
    assert run("check", plan, "--json")["releases"][0]["whole_counts"] is None
    run("release", plan)
    release = congenial.read(tmp_path / "bundles" / "people", TablesRelease)
    assert [int(one.sum()) for one in release.counts] == [900, 900]
    assert all(check.holds for check in verify(tmp_path / "bundles" / "people"))
    bare = forged(release, counts=(None, None))
    assert failed(bare, tmp_path / "bare") != failed(release, tmp_path / "now") == set()


def test_whole_counts_of_tables_that_leave_common_cells_open() -> None:
    """Two-way tables without the three-way one: printed counts agree, and are as near as estimates.

    Sparse, with a rare level: counts made nonnegative one by one would be too large.
    """
    sizes = {"county": 7, "race": 4, "age": 5}
    schema = Schema.from_dict({name: {"integers": [1, n]} for name, n in sizes.items()})
    rng = np.random.default_rng(8)
    mean = np.array([20, 6, 1, 0.05])[None, :, None] * rng.gamma(1.0, 0.3, (7, 1, 5))
    table = Table(schema, schema.names, rng.poisson(mean).astype(np.int64))
    pairs = SemiAdjacent(publish(table, margin("county")))
    tables = [["county", "race"], ["county", "age"], ["race"]]
    made = calibrate_tables(Guarantee.zero_concentrated("1/5", pairs), tables)
    squares = np.zeros((2, 3))
    for seed in range(6):
        release = made.release(table, SeededRandomness(seed))
        race, age, all_races = (np.asarray(one) for one in release.counts)
        assert min(one.min() for one in (race, age, all_races)) >= 0
        assert np.array_equal(race.sum(axis=1), age.sum(axis=1))
        assert np.array_equal(race.sum(axis=1), table.marginal(["county"]).counts)
        assert np.array_equal(race.sum(axis=0), all_races)
        for way, told in enumerate((release.estimates, release.counts)):
            errors = [v - table.marginal(n).counts for v, n in zip(told, tables, strict=True)]
            squares[way] += [np.mean(one**2.0) for one in errors]
    assert np.all(np.sqrt(squares[1] / squares[0]) <= 1.05)


def test_more_types_than_can_be_listed_are_bounded_by_name(tmp_path: Path) -> None:
    names = [f"v{i}" for i in range(5)]
    (tmp_path / "people.csv").write_text(f"id,{','.join(names)}\n1,1,1,1,1,1\n")
    schema = "\n".join(f"{name} = {{ integers = [1, 2] }}" for name in names)
    figures = "\n".join(f'[publish.{n}]\ntotal = true\nby = ["{n}"]' for n in names)
    (tmp_path / "plan.toml").write_text(
        f'[data]\nsource = "people.csv"\nunit = "id"\n[schema]\n{schema}\n{figures}\n[[release]]\n'
        'name = "people"\ntables = [["v0", "v1"], ["v0", "v2"]]\nrho = 1\n[budget]\nrho = 1\n'
    )
    types = run("check", tmp_path / "plan.toml", "--json")["releases"][0]["types"]
    assert types["footing"] == "upper bound"
    assert "too many difference types at 6 records: 2 a^2 for every table" in types["reason"]


def test_units_with_several_rows_and_exact_figures(tmp_path: Path) -> None:
    """The promise is about units; what their rows can do together is priced, not one row's."""
    plan = written(tmp_path)
    plan.write_text(plan.read_text().replace('unit = "id"', 'unit = "id"\nmax_rows = 2'))
    told = run("check", plan, "--json")
    assert told["releases"][0]["types"]["footing"] == "upper bound"
    assert max(max(row) for row in told["releases"][0]["types"]["maximal"]) >= 2 * 4**2
    verified(plan, "people")


def test_figures_of_areas_that_no_table_shows(tmp_path: Path) -> None:
    """People by county are published, and tables are of the nation: they see the total."""
    tables = '[["county", "sex", "age"], ["state", "age"], ["county", "sex"], ["age"]]'
    plan = written(tmp_path, SECTION.replace(tables, '[["sex", "age"], ["age"]]'))
    run("publish", plan)
    assert run("check", plan, "--json")["releases"][0]["whole_counts"] is None
    run("release", plan)
    assert run("verify", plan.parent / "bundles" / "people", "--json")["holds"]
    release = congenial.read(plan.parent / "bundles" / "people")
    assert [int(one.sum()) for one in release.counts] == [900, 900]
    assert release.count("") == 900
