"""The desk shows plans of every kind of release, and nothing of their records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.confidentiality.scan import ASIDE, IDENTIFIER
from tests.confidentiality.scenes import SCENES, Scene
from tests.desk.desks import entered

STEPS = (
    *("data", "categories", "figures", "tables", "text", "price", "review", "publish", "release"),
    *("read", "budget"),
)


@pytest.mark.parametrize("scene", SCENES, ids=lambda one: one.kind)
def test_every_page_opens(scene: Scene, tmp_path: Path) -> None:
    plan = scene.write(tmp_path)
    me = entered(tmp_path)
    assert "run:plan.toml" in me.get("/").text
    for step in STEPS:
        answer = me.get(f"/plan/run:{plan.name}/{step}")
        assert answer.status_code == 200, (step, answer.text)
        problems = re.findall(r'class="notice problem"[^>]*>([^<]*)', answer.text)
        assert [one for one in problems if "exact figures first" not in one] == [], step
        assert IDENTIFIER not in answer.text
        assert ASIDE not in answer.text
