"""The three notebooks run, cell by cell, and stay as short as they say."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from congenial._notebook import Picture

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def cells_of(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text())["cells"]
    return ["".join(one["source"]) for one in cells if one["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of a cell is what a notebook shows; one of them shows a picture."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown = []
    for text in cells_of(notebook):
        body = ast.parse(text).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), notebook.name, "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), notebook.name, "eval"), names))
    assert any(isinstance(one, Picture) and "<circle" in one.svg for one in shown)


def test_from_a_frame_to_a_saved_bundle_and_a_picture_in_fifteen_lines() -> None:
    first = cells_of(next(one for one in NOTEBOOKS if one.stem == "curator"))[0]
    assert len([line for line in first.splitlines() if line]) <= 15
    assert ".save(" in first
    assert first.endswith(".plot()")


def test_there_are_three() -> None:
    assert [one.stem for one in NOTEBOOKS] == ["analyst", "curator", "privacy-engineer"]
