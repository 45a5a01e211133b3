"""The JSON Schema of plans: it takes every plan we have, and marks what no plan may hold."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from congenial.data.schema import KEYS
from congenial.publication.demo_population import PLAN
from congenial.publication.json_schema import plan_schema

jsonschema = pytest.importorskip("jsonschema", reason="comes with the extra `report`")

FIXTURES = Path(__file__).parents[1] / "compatibility" / "written_by_0_1_0"


def told() -> Any:
    result = CliRunner().invoke(app, ["schema"])
    assert result.exit_code == 0
    return json.loads(result.stdout)


def faults(plan: dict[str, Any]) -> list[str]:
    checker = jsonschema.Draft202012Validator(told())
    return [error.message for error in checker.iter_errors(plan)]


def test_the_command_prints_a_valid_schema_of_all_sections() -> None:
    jsonschema.Draft202012Validator.check_schema(told())
    assert set(told()["properties"]) == {
        *("about", "data", "derive", "schema", "publish", "release", "budget")
    }
    assert set(told()["properties"]["schema"]["additionalProperties"]["properties"]) == set(KEYS)


def test_no_key_asks_for_what_toml_cannot_write() -> None:
    text = json.dumps(plan_schema())
    assert '"null"' not in text
    assert ": null" not in text


def of_fixture(path: Path) -> str:
    """The plan that version 0.1.0 was given, in a folder that it left behind."""
    with ZipFile(path) as folder:
        return folder.read("plan.toml").decode()


PLANS = {"demo": PLAN} | {path.stem: of_fixture(path) for path in sorted(FIXTURES.glob("*.zip"))}


@pytest.mark.parametrize("text", PLANS.values(), ids=PLANS)
def test_plans_are_taken(text: str) -> None:
    assert faults(tomllib.loads(text)) == []


@pytest.mark.parametrize(
    ("section", "key"), [("data", "sorce"), ("budget", "epsilom"), ("publish", "count_")]
)
def test_a_misspelt_key_is_marked(section: str, key: str) -> None:
    plan = tomllib.loads(PLAN)
    place = plan["publish"]["Population"] if section == "publish" else plan[section]
    place[key] = "1"
    assert faults(plan)


def test_a_section_that_is_missing_is_marked() -> None:
    plan = tomllib.loads(PLAN)
    del plan["budget"]
    assert faults(plan)


@pytest.mark.parametrize("value", ["1", 0, -1])
def test_a_budget_is_a_positive_number(value: object) -> None:
    plan = tomllib.loads(PLAN)
    promise = next(key for key in ("rho", "epsilon") if key in plan["budget"])
    plan["budget"][promise] = value
    assert faults(plan)
