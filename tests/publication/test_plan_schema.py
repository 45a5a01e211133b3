"""The JSON Schema of plans: it takes every plan we have, and marks what no plan may hold."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from congenial.data.schema import KEYS
from congenial.publication.demo_population import PLAN
from congenial.publication.json_schema import plan_schema
from tests.plans import PLANS

jsonschema = pytest.importorskip("jsonschema", reason="comes with the extra `report`")

EVERY = {"demo": PLAN} | PLANS


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


@pytest.mark.parametrize("text", EVERY.values(), ids=EVERY)
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
