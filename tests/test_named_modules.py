"""Files that docstrings, comments and CONTRIBUTING.md name are there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import congenial

SOURCE = Path(congenial.__file__).parent
ROOT = SOURCE.parent.parent
MODULE = re.compile(r"(?<![\w./*-])((?:[a-z][a-z_]*/)*[a-z][a-z_]*\.py)\b")


def prose(text: str) -> str:
    """Docstrings and comments of a module."""
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = [
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(text))
        if isinstance(node, nodes)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join([*documented, *comments])


def absent(text: str) -> list[str]:
    """Modules that some prose names and that are nowhere in the repository, by name and folder."""
    folders = [SOURCE, ROOT / "tests", ROOT / "benchmarks"]
    present = [path.as_posix() for folder in folders for path in folder.rglob("*.py")]
    named = set(MODULE.findall(text))
    return sorted(name for name in named if not any(path.endswith(f"/{name}") for path in present))


def test_modules_that_are_named_exist():
    found = {
        path.relative_to(SOURCE).as_posix(): missing
        for path in SOURCE.rglob("*.py")
        if (missing := absent(prose(path.read_text(encoding="utf-8"))))
    }
    assert found == {}
    assert absent((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")) == []


def test_a_module_that_is_gone_would_be_noticed():
    source = (
        '"""See `figures/merged.py` and figures/people.py."""\n\nx = 1  # as in `set_cover.py`\n'
    )
    assert absent(prose(source)) == ["figures/merged.py", "set_cover.py"]
