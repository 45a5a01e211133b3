"""What notebooks show: escaped, and without a confidential number."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from congenial import (
    Budget,
    Congenial,
    Guarantee,
    Invariants,
    Ledger,
    Schema,
    SeededRandomness,
    SemiAdjacent,
    Table,
    calibrate,
    count,
    publish,
    total,
)

RARE = 918_273  # a count that no page may show
HOSTILE = "<script>alert(1)</script>"


def schema() -> Schema:
    return Schema.from_dict(
        {
            "county": {"levels": [HOSTILE, "B & C", "D"]},
            "age": {"edges": [0, 18, 65], "top": "65+"},
        }
    )


def published() -> tuple[Table, Invariants]:
    counts = np.array([[RARE, 2, 3], [4, 5, 6], [7, 8, 9]])
    table = Table(schema(), ("county", "age"), counts)
    figures = total(by="county").named("People & places", HOSTILE)
    return table, publish(table, figures, count("age >= 18", by="county"))


def views(folder: Path) -> dict[str, Any]:
    table, public = published()
    target = Guarantee.pure(1, under=SemiAdjacent(public))
    mechanism = calibrate(Congenial, target, table=["county", "age"])
    ledger = Ledger.open(folder / "l.sqlite", schema(), budget=Budget(epsilon=4), who=HOSTILE)
    ledger.publish(public)
    with ledger.reserve(mechanism.description, mechanism.guarantee, "by-age") as share:
        share.mark_drawn()
        share.commit("")
    return {
        "schema": schema(),
        "planned": Invariants(schema(), (total(),)),
        "published": public,
        "mechanism": mechanism,
        "guarantee": mechanism.guarantee,
        "ledger": ledger,
        "release": mechanism.release(table, SeededRandomness(1), f"by age {HOSTILE}"),
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    made = views(tmp_path_factory.mktemp("ledger"))
    return {name: one._repr_html_() for name, one in made.items()}


def test_nothing_is_left_unescaped(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        assert set(re.findall(r"</?(\w+)", page)) <= {"h4", "table", "tr", "th", "td", "p", "b"}, (
            name
        )
    assert HOSTILE in unescape(pages["schema"])
    assert HOSTILE in unescape(pages["published"])
    assert HOSTILE in unescape(pages["ledger"])
    assert HOSTILE in unescape(pages["release"])


def test_no_count_is_shown(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        digits = re.sub(r"[,\s]", "", page)
        assert str(RARE) not in digits, name
        assert str(RARE + 2 + 3) not in digits, name  # the published total stays in its file


def test_each_says_what_it_is(pages: dict[str, str]) -> None:
    assert "Schema: 2 attributes" in pages["schema"]
    assert "<td>categorical</td><td>3</td>" in pages["schema"]
    assert "values not computed" in pages["planned"]
    assert "2 statements, with values" in pages["published"]
    assert "<th>Promise</th><td>epsilon = 1" in pages["mechanism"]
    assert "<th>Basis</th>" in pages["guarantee"]
    assert "epsilon = 1 of epsilon = 4" in pages["ledger"]
    assert "county (3) x age (3)</h4><p><b>" in pages["release"]  # seeded: not for publication
    assert "<th>Promise</th><td>epsilon = 1" in pages["release"]
    assert "<td>by-age</td><td>committed</td>" in pages["ledger"]
