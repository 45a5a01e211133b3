"""What type checkers know of a bundle that is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from typing import assert_type

from congenial import TablesRelease, read
from congenial.mechanisms import Interval, Released, StatisticsRelease
from congenial.privacy.guarantee import Guarantee

any_kind = read("folder")
assert_type(any_kind, Released)
assert_type(any_kind.interval("sex = 'f'"), Interval)
assert_type(any_kind.persons, Guarantee | None)
assert_type(read("folder", TablesRelease), TablesRelease)
assert_type(read("folder", StatisticsRelease).statistics, tuple[str, ...])
"""


@pytest.mark.audit
@pytest.mark.parametrize(("more", "wrong"), [("", ""), ("any_kind.margin('sex')", "margin")])
def test_read_is_typed(tmp_path: Path, more: str, wrong: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM + more)
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "program.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(source)},
        capture_output=True,
        text=True,
    )
    ours = [line for line in done.stdout.splitlines() if line.startswith("program.py")]
    assert len(ours) == bool(wrong), done.stdout
    assert wrong in "".join(ours)
