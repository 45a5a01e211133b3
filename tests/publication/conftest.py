"""Bundles that are no tables, for forgers."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial.publication import workflow
from congenial.publication.plan import Plan
from tests.kinds import test_given_public_plan as values_plan
from tests.kinds import test_statistics_plan as statistics_plan
from tests.kinds.test_partial_plan import PARTIAL
from tests.kinds.test_records_from_models_plan import write


def released(path: Path) -> Path:
    plan = Plan.load(path)
    if plan.statements:
        workflow.publish(plan)
    return workflow.release(plan, plan.release[0].name).folder


def make_values(folder: Path, *changes: tuple[str, str]) -> Path:
    values_plan.write_cases(folder)
    return released(values_plan.plan(folder, *changes))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, short_bootstrap: None) -> dict[str, Path]:
    place = tmp_path_factory.mktemp
    assumed = "scenarios = { distance = 1 }"
    congenial = (values_plan.PRIOR, 'base_measure = "congenial"')
    hospital = place("statistics")
    statistics_plan.write_patients(hospital / "patients.csv", 200, 0, seed=1)
    statistics_plan.write_patients(hospital / "modelling.csv", 3000, 100_000, seed=2)
    changes = ('persons = "not protected"', statistics_plan.PERSONS)
    fewer = ("replications = 200", 'replications = 60\nmechanism = "optimum"')
    return {
        "prior": make_values(place("prior")),
        "sums": make_values(place("sums"), congenial),
        "assumed": make_values(place("assumed"), (values_plan.BELIEF, assumed), congenial),
        "synthetic": released(write(place("synthetic"), PARTIAL)),
        "statistics": released(statistics_plan.plan(hospital, changes, fewer)),
    }
