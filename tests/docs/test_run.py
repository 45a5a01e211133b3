"""The documentation is run: shell blocks as written, Python blocks as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial import read
from tests.docs.pages import (
    DOCS,
    PAGES,
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
