"""Ledgers that grow: opening one, the joint price and one more event, by number of releases; and
`check` of a plan, by number of published figures.

Run `python -m benchmarks ledger`. Every release has a table given the same published figures.
"""

from __future__ import annotations

import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from congenial import Schema, Table, publish, total
from congenial.figures.figures import Figures
from congenial.ledger.budget import Budget
from congenial.ledger.ledger import Ledger, append_reserve
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee
from congenial.publication.check_document import examine
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger


def history(file: Path, releases: int) -> None:
    """A ledger with figures of seven groups and so many releases."""
    schema = Schema.from_dict({"group": {"integers": [1, 7]}, "sex": {"levels": ["f", "m"]}})
    ledger = Ledger.open(file, schema)
    figures = publish(Table(schema, ["group"], np.arange(5, 12)), total(by="group"))
    ledger.publish(figures)
    law = Description("plain", ("group", "sex"), "double_geometric", Fraction(1, 2), ledger.figures)
    words = Guarantee.pure(1, under=ledger.adjacency)
    with ledger._store.writing() as log:
        for i in range(releases):
            release = append_reserve(log, law, words, f"r{i}", "")
            log.append("draw", release, {})
            log.append("commit", release, {"bundle_digest": ""})


RELEASES = (100, 400, 1600)
FIGURES = (1_000, 10_000, 100_000)
PLAN = """
[schema]
place = {{ integers = [1, {places}] }}
sex = {{ levels = ["f", "m"] }}
age = {{ levels = ["young", "old"] }}
[data]
source = "people.csv"
unit = "id"
[publish]
"People by place" = {{ total = true, by = ["place"] }}
[[release]]
name = "table"
table = ["place", "sex", "age"]
epsilon = 1.0
[budget]
epsilon = 4.0
"""


def checked(folder: Path, places: int) -> float:
    """Seconds of `check` with so many published figures and four times as many cells."""
    folder.mkdir()
    plan = Plan.parse(PLAN.format(places=places), folder)
    ledger = open_ledger(plan, create=True)
    assert ledger is not None
    ledger.publish(Figures(plan.schema, plan.statements, (np.arange(places) % 97 + 3,)))
    start = time.perf_counter()
    examine(plan)
    return time.perf_counter() - start


SMALLEST = {"RELEASES": (3,), "FIGURES": (5,)}


def run() -> list[dict[str, Any]]:
    """One row per size of history, and one per number of figures."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for releases in RELEASES:
            file = Path(folder) / f"{releases}.sqlite"
            history(file, releases)
            start = time.perf_counter()
            ledger = Ledger.open(file)
            opened = time.perf_counter()
            ledger.spent()
            priced = time.perf_counter()
            ledger.set_budget(Budget(epsilon=releases + 1))
            added = time.perf_counter()
            rows.append(
                {
                    "releases": releases,
                    "open (s)": opened - start,
                    "spent (s)": priced - opened,
                    "one more event (s)": added - priced,
                }
            )
        for figures in FIGURES:
            seconds = checked(Path(folder) / f"check {figures}", figures)
            rows.append({"figures": figures, "cells": 4 * figures, "check (s)": seconds})
    return rows
