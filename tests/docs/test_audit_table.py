"""What `make audit` writes: a table into its page, the outcome into the README."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def module() -> Any:
    spec = importlib.util.spec_from_file_location("audit_table", ROOT / "docs" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_numbers_are_summed_and_failures_told(tmp_path: Path) -> None:
    audit = module()
    page, readme = tmp_path / "page.md", tmp_path / "README.md"
    for file in (page, readme):
        file.write_text(f"before\n{audit.BEGIN}\nold\n{audit.END}\nafter\n")
    kills = {"part": "kills", "passed": True, "kills": 500}
    planted = {"part": "planted", "passed": False, "defects": 14}
    lost = "tests/audit/test_exact.py::test_that_failed_before_it_could_say_what_it_tried"
    told = {"run": 4, "failed": [lost], "complete": True, "attempts": [kills, kills, planted]}
    audit.write(told, page, readme)
    for file in (page, readme):
        assert file.read_text().startswith("before\n")
        assert file.read_text().endswith("\nafter\n")
        assert "old" not in file.read_text()
    text = page.read_text()
    assert "| 1,000 kills | nothing overspent, nothing lost |" in text
    assert "**1 of 1 checks failed**" in text
    assert "| not run | |" in text
    assert f"; 4 checks, **1 failed**: `{lost}`.\n" in text
    assert "; 4 checks, **1 failed**.\n" in readme.read_text()
    assert "|" not in readme.read_text()


def test_an_interrupted_run_and_a_clean_one_say_so() -> None:
    audit = module()
    told = {"run": 1234, "failed": [], "complete": True, "attempts": []}
    assert audit.outcome(told) == "1,234 checks, none failed"
    assert "**interrupted**" in audit.outcome(told | {"complete": False})


FAILING = """
def test_fine(attempt):
    attempt("kills", kills=3)

def test_fails_before_it_reports(attempt):
    assert False
    attempt("kills", kills=4)

def test_does_not_even_start(no_such_fixture):
    pass
"""


def test_what_fails_before_it_reports_is_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_some.py").write_text(FAILING)
    file = tmp_path / "attempts.json"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--attempts", file, "."],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout
    told = json.loads(file.read_text())
    assert told["run"] == 3
    assert [name.split("::")[1] for name in told["failed"]] == [
        "test_does_not_even_start",
        "test_fails_before_it_reports",
    ]
    assert told["attempts"] == [{"passed": True, "part": "kills", "kills": 3}]


def test_page_and_readme_have_a_place_for_it() -> None:
    audit = module()
    for text in (audit.PAGE.read_text(), audit.README.read_text()):
        assert text.count(audit.BEGIN) == text.count(audit.END) == 1
