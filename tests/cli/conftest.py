"""A small population and its plan, and a way to run the program in this process."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from congenial.cli import app

PLAN = """
[data]
source = "people.csv"
unit = "id"

[schema]
county = { levels = ["A", "B", "C"], within = { state = ["X", "X", "Y"] } }
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 30, 65], top = "65+" }

[publish]
"Population" = { total = true, by = ["county"], because = "statute" }
"Adults" = { count = "age >= 18", by = ["county"] }

[[release]]
name = "detail"
table = ["county", "sex", "age"]
epsilon = 1.0
nonnegative = "project"

[[release]]
name = "summary"
table = ["state", "age"]
epsilon = 0.5

[budget]
epsilon = 2.0
"""


@dataclass(frozen=True)
class Ran:
    """What a run of the program left behind."""

    code: int
    out: str
    err: str
    exception: BaseException | None

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def run() -> Callable[..., Ran]:
    """Run the program: run("check", plan).code."""

    def run(*words: object) -> Ran:
        result = CliRunner().invoke(app, [str(word) for word in words])
        return Ran(result.exit_code, result.stdout, result.stderr, result.exception)

    return run


def write_people(path: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """A few hundred people with every combination of answers."""
    cells = list(itertools.product("ABC", "fm", (3, 20, 40, 70)))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "county", "sex", "age"])
        writer.writeheader()
        people = [cell for i, cell in enumerate(cells) for _ in range(5 + i % 7)]
        for i, (county, sex, age) in enumerate(people):
            row = {"id": i, "county": county, "sex": sex, "age": age}
            change(row)
            writer.writerow(row)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan beside its data, nothing published yet."""
    write_people(tmp_path / "people.csv")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., Ran]) -> Path:
    """A plan that was published and released with a seed; read it, do not change it."""
    folder = tmp_path_factory.mktemp("finished")
    write_people(folder / "people.csv")
    path = folder / "plan.toml"
    path.write_text(PLAN)
    assert run("publish", path).code == 0
    assert run("release", path, "--name", "detail", "--seed", 1).code == 0
    return path
