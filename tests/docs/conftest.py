"""One run of the first tutorial, shared by the pages that continue it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, run_page


@pytest.fixture(scope="session")
def after_tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder the first tutorial leaves behind; each of its blocks worked as written."""
    folder = tmp_path_factory.mktemp("tutorial")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_page(DOCS / "tutorial" / "first-release.md")
    return folder


@pytest.fixture
def folder(after_tutorial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder to work in."""
    copy = tmp_path / "work"
    shutil.copytree(after_tutorial, copy)
    monkeypatch.chdir(copy)
    return copy
