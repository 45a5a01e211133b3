"""The README is short, its plan is valid, and its table is the one measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks import exact_totals

from congenial.publication.plan import Plan
from congenial.publication.workflow import check
from tests.docs.pages import ROOT, blocks

README = ROOT / "README.md"


def test_it_is_short() -> None:
    assert len(README.read_text().split()) < 700


def test_its_picture_is_there() -> None:
    """`docs/pictures.py` draws it from the demo."""
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README.read_text())
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")


def test_its_plan_can_be_released(tmp_path: Path) -> None:
    (plan,) = (block.text for block in blocks(README) if block.language == "toml")
    (release,) = check(Plan.parse(plan, tmp_path)).releases
    assert release.guarantee.tradeoff.epsilon(0.0) == pytest.approx(1)


def test_its_table_is_the_one_measured() -> None:
    """OpenDP draws anew each time: 4,000 totals have a standard deviation known to 1.2 %, and 10 %
    off is eight times that.
    """
    rows = re.findall(r"^\| (?:OpenDP|Congenial).*$", README.read_text(), re.MULTILINE)
    for row, measured in zip(rows, exact_totals.run(), strict=True):
        _, *printed = [re.findall(r"[\d.]+", cell)[:1] for cell in row.strip("|").split("|")]
        numbers = [float(number) for (number,) in printed]
        for number, value in zip(numbers, list(measured.values())[1:], strict=True):
            assert abs(number - value) <= 0.1 * value
