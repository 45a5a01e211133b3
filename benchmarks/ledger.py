"""Ledgers that grow: opening one, and the joint price, by number of releases.

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
from congenial.ledger.ledger import Ledger
from congenial.ledger.reservation import append_reserve
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee


def history(file: Path, releases: int) -> None:
    """A ledger with figures of seven groups and so many releases."""
    schema = Schema.from_dict({"group": {"integers": [1, 7]}, "sex": {"levels": ["f", "m"]}})
    ledger = Ledger.open(file, schema)
    figures = publish(Table(schema, ["group"], np.arange(5, 12)), total(by="group"))
    ledger.publish(figures)
    law = Description(
        "plain", ("group", "sex"), "double_geometric", Fraction(1, 2), ledger.mandates
    )
    words = Guarantee.pure(1, under=ledger.adjacency)
    with ledger._store.writing() as log:
        for i in range(releases):
            release = append_reserve(log, law, words, f"r{i}", "")
            log.append("draw", release, {})
            log.append("commit", release, {"bundle_digest": ""})


def run() -> list[dict[str, Any]]:
    """One row per size of history."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for releases in (100, 400, 1600):
            file = Path(folder) / f"{releases}.sqlite"
            history(file, releases)
            start = time.perf_counter()
            ledger = Ledger.open(file)
            opened = time.perf_counter()
            ledger.spent()
            priced = time.perf_counter()
            rows.append(
                {"releases": releases, "open (s)": opened - start, "spent (s)": priced - opened}
            )
    return rows
