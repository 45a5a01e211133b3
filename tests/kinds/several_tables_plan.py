"""A plan of several tables on disk, with made-up people beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from congenial.mechanisms.tables_release import TablesRelease
from congenial.publication import bundle as bundles
from congenial.publication.verification import verify
from congenial.report.tables_report import render

SCHEMA = """
[data]
source = "people.csv"
unit = "id"
[schema.county]
levels = ["Adams", "Bucks", "Clark"]
within = { state = ["P", "P", "Q"] }
[schema.sex]
levels = ["f", "m"]
[schema.age]
levels = ["child", "young", "mid", "old"]
[publish.county]
total = true
by = ["county"]
"""


SECTION = """
[[release]]
name = "people"
tables = [["county", "sex", "age"], ["state", "age"], ["county", "sex"], ["age"]]
rho = 0.5
"""


BUDGET = """
[budget]
rho = 4
"""


AGES = ("child", "young", "mid", "old")


def written(folder: Path, section: str = SECTION, budget: str = BUDGET) -> Path:
    """A plan with 900 made-up people beside it."""
    rows = np.random.default_rng(5).integers(0, [3, 2, 4], (900, 3))
    people = [
        f"{i},{('Adams', 'Bucks', 'Clark')[c]},{'fm'[s]},{AGES[a]}"
        for i, (c, s, a) in enumerate(rows.tolist())
    ]
    (folder / "people.csv").write_text("\n".join(["id,county,sex,age", *people]) + "\n")
    (folder / "plan.toml").write_text(SCHEMA + section + budget)
    return folder / "plan.toml"


def failed(release: TablesRelease, folder: Path) -> set[str]:
    """What does not hold of a bundle that a forger wrote, digests and report included."""
    promise = release.guarantee.explain()
    bundles.write(release, folder, promise, render(release, promise)).publish()
    return {check.what for check in verify(folder) if not check.holds}


def forged(release: TablesRelease, **changed: Any) -> TablesRelease:
    """A release as a forger would write it: some of it changed, and the rest as it was read."""
    made = replace(release)
    kept = ("counts", "estimates", "deviations")
    vars(made).update({key: getattr(release, key) for key in kept} | changed)
    return made
