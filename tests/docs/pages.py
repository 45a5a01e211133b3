"""What the tests need of a page: its fenced blocks, its tables, and a way to run them."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from congenial.cli import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))
RSCRIPT = shutil.which("Rscript")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, its text."""

    language: str
    words: tuple[str, ...]
    text: str

    @property
    def runs(self) -> bool:
        return "run" in self.words

    @property
    def exit_code(self) -> int:
        return next((int(w.removeprefix("exit=")) for w in self.words if "exit=" in w), 0)


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = re.findall(r"^```(\w*)([^\n]*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [Block(language, tuple(words.split()), text) for language, words, text in found]


def anchor(heading: str) -> str:
    """The anchor of a heading, as code hosts and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def dead_links(page: Path, root: Path) -> list[str]:
    """Links of a page to files below `root` or to headings that are not there."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        name, _, place = link.partition("#")
        file = (page.parent / name).resolve() if name else page
        if (
            not file.is_relative_to(root)
            or not file.is_file()
            or (
                place
                and place
                not in map(anchor, re.findall(r"^#+ (.+)$", file.read_text(), re.MULTILINE))
            )
        ):
            dead.append(link)
    return dead


def run_page(page: Path) -> dict[str, Any]:
    """Run every block of a page that says so, in the current folder; Python blocks share names.

    Blocks of R come last; where there is no R, that is said once all others have run.
    """
    names: dict[str, Any] = {}
    told = [block for block in blocks(page) if block.runs]
    for block in told:
        if block.language == "python":
            exec(compile(block.text, f"{page.name}, a Python block", "exec"), names)
        elif block.language != "r":
            assert block.language == "sh", f"{page.name}: {block.language} cannot be run"
            run_shell(block)
    run_r([block for block in told if block.language == "r"])
    return names


def run_r(told: list[Block]) -> None:
    """Run blocks of R, one program."""
    if told and RSCRIPT is None:
        pytest.skip("there is no Rscript on this machine (Debian: r-base-core)")
    if told:
        text = "\n".join(block.text for block in told)
        done = subprocess.run(
            [str(RSCRIPT), "--vanilla", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def run_shell(block: Block) -> None:
    """Run a block; `congenial` and `cd` lines run in this process, the rest in bash."""
    lines = block.text.splitlines()
    parts = [(ours, list(part)) for ours, part in groupby(lines, _runs_here)]
    for place, (ours, part) in enumerate(parts):
        expected = block.exit_code if place == len(parts) - 1 else 0
        if not ours:
            bash("\n".join(part))
            continue
        for line in part:
            run_line(line, expected if line == part[-1] else 0)


def _runs_here(line: str) -> bool:
    return line.startswith(("congenial ", "cd "))


def run_line(line: str, wanted: int) -> None:
    """Run one line; the folder it changes to is the one in which the rest of the page runs."""
    name, *arguments = shlex.split(line)
    if name == "cd":
        os.chdir(*arguments)
        return
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == wanted, f"{line}\n{result.output}\n{result.stderr}"


def bash(script: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-euc", script], check=True, timeout=60, env={**os.environ, "PATH": path}
    )


def sections(page: Path) -> dict[str, str]:
    """The text under each second-level heading."""
    parts = re.split(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def first_column(text: str) -> list[str]:
    """The code in the first column of every table row."""
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def hooks() -> Any:
    """The module that completes pages while the site is built."""
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
