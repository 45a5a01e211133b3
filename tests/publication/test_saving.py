"""`save`: a release that Python drew becomes the bundle that the command would have written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from congenial import Guarantee, Schema, SeededRandomness, Table, calibrate, read, save, verify
from congenial.errors import BudgetError, BundleError
from congenial.figures import publish, total
from congenial.ledger import Budget, Ledger
from congenial.ledger.spent_and_left import NO_LEDGER
from congenial.mechanisms import TablesRelease, release_table
from congenial.pairs import SemiAdjacent

SCHEMA = Schema.from_dict({"county": {"levels": ["A", "B", "C"]}, "sex": {"levels": ["f", "m"]}})
TABLE = Table(SCHEMA, ["county", "sex"], np.array([[40, 50], [60, 70], [2, 0]]))
PUBLIC = publish(TABLE, total(by="county"))


def drawn(name: str = "sex", epsilon: int = 1, seed: int | None = None) -> TablesRelease:
    target = Guarantee.pure(epsilon, under=SemiAdjacent(PUBLIC))
    mechanism = calibrate("auto", target, table=["county", "sex"])
    return release_table(mechanism, TABLE, None if seed is None else SeededRandomness(seed), name)


def ledger_in(folder: Path) -> Ledger:
    ledger = Ledger.open(folder / "ledger.sqlite", SCHEMA, budget=Budget(epsilon=2))
    ledger.publish(PUBLIC)
    return ledger


def promise_of(folder: Path) -> str:
    return str(json.loads((folder / "release.json").read_text())["promise"])


def test_without_a_ledger_the_bundle_says_so(tmp_path: Path) -> None:
    release = drawn()
    digest = release.save(tmp_path / "sex")
    assert all(check.holds for check in verify(tmp_path / "sex", digest))
    assert promise_of(tmp_path / "sex").endswith(f"Spent: {NO_LEDGER}.")
    assert NO_LEDGER in (tmp_path / "sex" / "README.txt").read_text()
    assert NO_LEDGER in (tmp_path / "sex" / "report.html").read_text()
    again = read(tmp_path / "sex", TablesRelease)
    assert again.to_arrow() == release.to_arrow()
    assert again.interval("sex = 'f'") == release.interval("sex = 'f'")


def test_a_ledger_records_it_with_its_digest(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    digest = drawn().save(tmp_path / "sex", ledger)
    (entry,) = ledger.entries()
    assert (entry.status, entry.bundle_digest) == ("committed", digest)
    assert "Spent: epsilon = 1 of epsilon = 2." in promise_of(tmp_path / "sex")
    assert all(check.holds for check in verify(tmp_path / "sex", digest))


def test_what_was_reserved_is_committed_and_not_counted_twice(tmp_path: Path) -> None:
    ledger, release = ledger_in(tmp_path), drawn()
    with ledger.reserve(release.only.description, release.guarantee, "sex") as share:
        share.mark_drawn()
        digest = save(release, tmp_path / "sex", ledger)
    (entry,) = ledger.entries()
    assert (entry.status, entry.bundle_digest) == ("committed", digest)
    with pytest.raises(BundleError, match="committed in this ledger already"):
        release.save(tmp_path / "twice", ledger)
    assert not (tmp_path / "twice").exists()


def test_over_the_budget_nothing_is_written(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    with pytest.raises(BudgetError, match="Do not publish it"):
        drawn(epsilon=3).save(tmp_path / "sex", ledger)
    assert not (tmp_path / "sex").exists()
    assert [entry.status for entry in ledger.entries()] == ["abandoned"]


def test_other_things_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="the release"):
        save("sex", tmp_path / "sex")  # type: ignore[arg-type]
    with pytest.raises(BundleError, match="the ledger"):
        save(drawn(), tmp_path / "sex", "ledger.sqlite")  # type: ignore[arg-type]
