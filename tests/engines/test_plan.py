"""The demo plan on every engine: only `source` changes, nothing that is promised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from congenial.publication import workflow
from congenial.publication.demo_population import write_demo
from congenial.publication.plan import Plan
from congenial.publication.verification import verify


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = write_demo(tmp_path_factory.mktemp("demo") / "demo", 7)
    people = plan.with_name("people.parquet")
    pq.write_table(
        pq.read_table(people).slice(0, 20_000), people
    )  # enough to differ, quick to load
    return plan


def run(plan: Path, source: str, ledger: str) -> dict[str, Any]:
    """Publish and release under another source and a ledger of its own; what came out."""
    text = plan.read_text().replace('"people.parquet"', f'"{source}"', 1)
    text = text.replace('"ledger.sqlite"', f'"{ledger}.sqlite"', 1)
    path = plan.with_name(f"{ledger}.toml")
    path.write_text(text)
    loaded = Plan.load(path)
    published = workflow.publish(loaded, plan.with_name(f"published-{ledger}"))
    out = plan.with_name(f"bundle-{ledger}")
    released = workflow.release(loaded, "sex-by-age", out)
    assert all(check.holds for check in verify(out, released.digest))
    return {
        "figures": published.figures.to_dict(),
        "guarantee": released.release.guarantee.to_dict(),
        "description": json.loads(json.dumps(released.release.description.to_dict())),
        "promise": released.promise,
    }


def test_the_demo_plan_promises_the_same_on_all_three_engines(
    demo: Path, postgres: Any, spark: Any
) -> None:
    embedded = run(demo, "people.parquet", "duckdb")
    people = pq.read_table(demo.with_name("people.parquet"))
    database = postgres.load("demo_people", people)
    assert run(demo, database, "postgres") == embedded
    assert run(demo, "spark:./people.parquet", "spark") == embedded
