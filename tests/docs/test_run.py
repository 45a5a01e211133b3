"""The documentation is run: shell blocks as written, Python blocks as written."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from congenial import read
from congenial.publication.demo_population import PLAN, STATES
from congenial.publication.plan import Plan
from congenial.publication.workflow import check
from tests.docs.pages import (
    DOCS,
    PAGES,
    ROOT,
    RSCRIPT,
    Block,
    blocks,
    run_page,
    run_r,
    run_shell,
)

TUTORIAL = DOCS / "tutorial" / "first-release.md"
RUNNABLE = [page for page in PAGES if page != TUTORIAL and any(b.runs for b in blocks(page))]


def test_the_tutorial_leaves_a_bundle(after_tutorial: Path) -> None:
    assert read(after_tutorial / "bundles" / "sex-by-age").publishable
    assert all(block.runs for block in blocks(TUTORIAL) if block.language == "sh")


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_page(page: Path, folder: Path) -> None:
    run_page(page)


def test_a_wrong_block_is_noticed(folder: Path) -> None:
    """Negative control: a command that fails, one that fails otherwise than said, a folder that
    is not there, a wrong claim, in R too."""
    with pytest.raises(AssertionError, match="no release 'nonsense'"):
        run_shell(Block("sh", ("run",), "congenial release plan.toml --name nonsense\n"))
    with pytest.raises(AssertionError, match="exit=5"):
        run_shell(Block("sh", ("run", "exit=5"), "congenial check plan.toml --want exit=5\n"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run_shell(Block("sh", ("run",), "cd nowhere\n"))
    if RSCRIPT is not None:
        with pytest.raises(AssertionError, match="is not TRUE"):
            run_r([Block("r", ("run",), "stopifnot(1 + 1 == 3)\n")])
    page = folder / "page.md"
    page.write_text("```python run\nassert 1 + 1 == 3\n```\n")
    with pytest.raises(AssertionError):
        run_page(page)


def test_readme_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Path("people.csv").open("w", newline="") as file:
        rows = [("AB"[i % 2], 7 * i % 90) for i in range(400)]
        csv.writer(file).writerows([("county", "age"), *rows])
    names = run_page(ROOT / "README.md")
    assert names["release"].count("age >= 18") == sum(age >= 18 for _, age in rows)
    example = next(block for block in blocks(ROOT / "README.md") if block.language == "python")
    assert len(example.text.splitlines()) <= 13


def test_readme_promise_is_the_one_printed(tmp_path: Path) -> None:
    pairs = [f"{county},{state}" for state, counties in STATES.items() for county in counties]
    (tmp_path / "counties.csv").write_text("county,state\n" + "\n".join(pairs))
    first = check(Plan.parse(PLAN, tmp_path)).releases[0]
    printed = first.guarantee.explain("rho = 0.1 of rho = 0.5")
    quoted = re.search(r"^> (.+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert quoted is not None
    assert quoted[1] == printed
