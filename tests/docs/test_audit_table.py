"""The table that `make audit` writes into the README."""

from __future__ import annotations

import importlib.util
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
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{audit.BEGIN}\nold\n{audit.END}\nafter\n")
    kills = {"part": "kills", "passed": True, "kills": 500}
    planted = {"part": "planted", "passed": False, "defects": 14}
    audit.write([kills, kills, planted], readme)
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| 1,000 kills | nothing overspent, nothing lost |" in text
    assert "**1 of 1 checks failed**" in text
    assert "| not run | |" in text


def test_the_readme_has_a_place_for_it() -> None:
    audit, text = module(), (ROOT / "README.md").read_text()
    assert text.count(audit.BEGIN) == text.count(audit.END) == 1
