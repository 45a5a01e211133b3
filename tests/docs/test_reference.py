"""The reference names everything there is and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

import congenial
from congenial import errors
from congenial.cli import app, program
from congenial.cli.verify import FAILED
from congenial.data.schema import KEYS
from congenial.kinds.plan_sections import (
    AboutSection,
    BudgetSection,
    DataSection,
    DeriveEntry,
    PublishEntry,
)
from congenial.kinds.registry import every_kind
from congenial.mechanisms.calibrate import REGISTRY
from congenial.publication.plan import Plan
from tests.commands import run
from tests.docs.pages import DOCS, ROOT, first_column, hooks, sections

REFERENCE = DOCS / "reference"


def fields(model: type) -> set[str]:
    return set(model.model_fields)


@pytest.mark.parametrize(
    ("heading", "keys"),
    [
        ("[data]", fields(DataSection)),
        ("[about]", fields(AboutSection)),
        ("[derive]", fields(DeriveEntry)),
        ("[schema]", set(KEYS)),
        ("[publish]", fields(PublishEntry)),
        ("[[release]]", set().union(*(fields(kind.section) for kind in every_kind()))),
        ("[budget]", fields(BudgetSection)),
    ],
)
def test_every_key_of_the_plan(heading: str, keys: set[str]) -> None:
    listed = first_column(sections(REFERENCE / "plan.md")[heading])
    assert sorted(listed) == sorted(keys)


def test_every_section_and_mechanism_of_the_plan() -> None:
    text = (REFERENCE / "plan.md").read_text()
    names = {field.alias or name for name, field in Plan.model_fields.items()} - {"folder"}
    assert {heading.strip("[]") for heading in sections(REFERENCE / "plan.md")} == names
    assert all(f'`"{name}"`' in text for name in ["auto", *REGISTRY])


def commands() -> dict[str, set[str]]:
    """Every command with its options, from the program itself."""
    root = typer.main.get_command(app)
    found = {"congenial": options(root)}
    for name, command in root.commands.items():
        for inner, one in getattr(command, "commands", {"": command}).items():
            found[f"congenial {name} {inner}".rstrip()] = options(one)
    return found


def options(command: object) -> set[str]:
    given = {name for one in command.params for name in one.opts if name.startswith("--")}
    return given - {"--help"}


def test_every_command_and_option_is_written_from_the_program() -> None:
    """The site's page has them; the page itself groups every command once."""
    written = hooks().commands()
    for command, names in commands().items():
        told = written.split(f"### {command}\n")[1].split("\n### ")[0]
        assert {name for row in first_column(told) for name in row.split()} == names, command
        assert "None" not in told
    page = (REFERENCE / "cli.md").read_text()
    assert hooks().COMMANDS in page
    grouped = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| .*$", page, re.MULTILINE)[1:6]))
    assert sorted(grouped) == sorted(typer.main.get_command(app).commands)


def test_exit_codes() -> None:
    listed = re.findall(r"^\| (\d+) \|", (REFERENCE / "errors.md").read_text(), re.MULTILINE)
    own = {0, FAILED, program.UNEXPECTED, program.INTERRUPTED}
    assert {int(code) for code in listed} == own - {one.exit_code for one in error_classes()}


def error_classes() -> list[type[errors.CongenialError]]:
    every = [value for value in vars(errors).values() if isinstance(value, type)]
    return [one for one in every if issubclass(one, errors.CongenialError)]


def test_errors() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \|", (REFERENCE / "errors.md").read_text(), re.MULTILINE
    )
    assert dict(rows) == {one.__name__: str(one.exit_code) for one in error_classes()}


def test_every_exported_name() -> None:
    assert sorted(first_column((REFERENCE / "python.md").read_text())) == sorted(congenial.__all__)


ONE_TABLE = """
[[release]]
name = "one-table"
table = ["county", "sex", "age"]
epsilon = 0.5
nonnegative = "project"
"""


@pytest.fixture
def one_table(folder: Path) -> Path:
    """A bundle of a single table, released after the tutorial."""
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text() + ONE_TABLE)
    run("release", plan, "--name", "one-table")
    return folder / "bundles" / "one-table"


def test_every_file_and_field_of_a_bundle(one_table: Path) -> None:
    bundle = one_table
    page = REFERENCE / "bundle.md"
    intro = page.read_text().split("\n## ")[0]
    assert sorted(first_column(intro)) == sorted(path.name for path in bundle.iterdir())
    index = json.loads((bundle / "release.json").read_text())
    told = sections(page)
    assert first_column(told["release.json"]) == list(index)
    assert first_column(told["description"]) == list(index["description"])
    assert first_column(told["measured"]) == list(index["description"]["measured"][0])
    assert first_column(told["guarantee"]) == list(index["guarantee"])
    statement = json.loads((bundle / "published.json").read_text())["statements"][0]
    assert all(f"`{key}`" in told["published.json"] for key in statement)


def test_readme_tree_names_every_file_of_a_bundle(one_table: Path, after_tutorial: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    assert all(path.name in readme for path in one_table.iterdir())
    several = {path.name for path in (after_tutorial / "bundles" / "sex-by-age").iterdir()}
    others = {name for name in several if not name.startswith("table-")}
    assert "table-1-county-sex-age.csv" in readme
    assert all(name in readme for name in others)
