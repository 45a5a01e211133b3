"""Commands as a person would give them, and plans with small changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from congenial.cli import app


def run(*words: object, code: int = 0) -> Any:
    """What a command prints, read if it is JSON; it must end with `code`."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, f"{result.output}\n{result.stderr}"
    return json.loads(result.stdout) if "--json" in words else result.stdout


def refused(path: Path, command: str = "check", code: int = 2, extra: tuple[Any, ...] = ()) -> str:
    """What a command on a plan says when it refuses."""
    result = CliRunner().invoke(app, [command, str(path), *map(str, extra)])
    assert result.exit_code == code, f"{result.output}\n{result.stderr}"
    return result.stderr


def verified(path: Path, name: str) -> Path:
    """The bundle of a release whose plan is published and released; it verifies."""
    run("publish", path)
    run("release", path)
    bundle = path.parent / "bundles" / name
    assert "All checks passed" in run("verify", bundle)
    return bundle


def write_plan(folder: Path, text: str, *changes: tuple[str, str]) -> Path:
    """plan.toml with some texts replaced by others."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "plan.toml"
    path.write_text(text)
    return path
