"""Commands load what they use: no heavy library before something needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# No command on a plan needs these before something is counted, drawn or pictured.
NEVER = {"altair", "clarabel", "dp_accounting", "duckdb", "jax", "pandas", "polars"}
PLAN = """
[data]
source = "people.csv"
unit = "person_id"
[schema]
county = { levels = ["Alder", "Juniper", "Willow"] }
sex = { levels = ["female", "male"] }
[publish]
"Population" = { total = true, by = ["county"] }
[[release]]
name = "by-sex"
table = ["county", "sex"]
epsilon = 1.0
[budget]
ledger = "ledger.sqlite"
epsilon = 4.0
"""
PROGRAM = """
import sys
from congenial.cli.program import app
try:
    app(sys.argv[1:], prog_name="congenial")
except SystemExit as done:
    assert not done.code, done.code
print("LOADED", *sorted(sys.modules), file=sys.stderr)
"""


def loaded(folder: Path, *words: str) -> set[str]:
    """Modules that a command has loaded by the time it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=folder, capture_output=True, text=True
    )
    last = done.stderr.strip().splitlines()[-1].split()
    assert last[0] == "LOADED", done.stderr
    return set(last[1:])


@pytest.mark.parametrize("words", ["--help", "--version", "check --help", "ledger show --help"])
def test_help_loads_no_library(words: str, tmp_path: Path) -> None:
    found = loaded(tmp_path, *words.split())  # typer itself may load pydantic
    assert not found & {*NEVER, "numpy", "scipy", "numba", "pyarrow", "sqlalchemy"}
    assert not found & {"rich", "cryptography", "flint", "jinja2"}


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_command_on_a_plan_loads_no_engine_and_no_compiler(tmp_path: Path, command: str) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    found = loaded(tmp_path, command, "plan.toml")
    assert not found & {*NEVER, "numba", "pyarrow", "scipy.stats", "scipy.optimize"}
    assert "sqlalchemy" not in found  # there is no ledger yet


def test_an_estimate_from_a_table_loads_no_plans_and_no_solvers(finished: Path) -> None:
    found = loaded(finished.parent, "estimate", "bundles/detail", "--of", "count(age < 18)")
    assert "numpy" in found
    assert not found & {*NEVER, "numba", "scipy.stats", "scipy.special", "congenial.kinds.registry"}
    assert not found & {"scipy.sparse.linalg", "scipy.optimize", "sqlalchemy"}


def test_a_loaded_library_would_be_noticed(tmp_path: Path) -> None:
    """Negative control: a command that counts does load the engine."""
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "people.csv").write_text("person_id,county,sex\n1,Alder,male\n2,Willow,female\n")
    assert "duckdb" in loaded(tmp_path, "publish", "plan.toml")
