"""A small nation on disk: people, areas and a plan with `parts`; and steps that are killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

from congenial.kinds.parted_run import draw_part, finish_part
from congenial.ledger.ledger import Ledger
from congenial.publication.plan import Plan
from tests.mechanisms.nations import nation

SCHEMA = """
[data]
source = "people.csv"
unit = "id"
[schema]
block = { levels_file = "areas.csv" }
sex = { levels = ["f", "m"] }
age = { integers = [0, 4] }
"""
PUBLISH = """
[publish]
"Population" = { total = true, by = ["block"] }
"""
SECTION = """
[[release]]
name = "nation"
tables = [
  ["block", "sex", "age"], ["county", "sex"], ["county", "sex", "age"], ["state", "sex", "age"],
  ["sex", "age"],
]
parts = "state"
rho = 0.5
"""
BUDGET = """
[budget]
rho = 1.2
"""


def written(folder: Path, section: str = SECTION, publish: str = PUBLISH) -> Path:
    """A plan, with a few hundred made-up people beside it."""
    people = nation(3)
    rows = [
        f"b{b},{'fm'[sex]},{age}"
        for (b, sex, age), n in np.ndenumerate(people.counts)
        for _ in range(n)
    ]
    lines = ["id,block,sex,age", *(f"{i},{row}" for i, row in enumerate(rows))]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    area = people.schema.attribute("block")
    named = zip(area.levels, area.coarser["county"], area.coarser["state"], strict=True)
    areas = ["block,county,state", *(",".join(one) for one in named)]
    (folder / "areas.csv").write_text("\n".join(areas) + "\n")
    (folder / "plan.toml").write_text(SCHEMA + publish + section + BUDGET)
    return folder / "plan.toml"


def dies_drawing(task: Any, keys: Any) -> None:
    """Draw a part; the process that is given part 1 is killed, once."""
    _die_once(task)
    draw_part(task, keys)


def dies_finishing(task: Any, above: Any) -> None:
    """Finish a part; the process that is given part 1 is killed, once."""
    _die_once(task)
    finish_part(task, above)


def _die_once(task: Any) -> None:
    mark = task.folder.parent / "died"
    if task.number == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def spent(plan: Plan) -> list[str]:
    """The states of all releases in the ledger."""
    return [one.status for one in Ledger.open(plan.ledger).entries()]
