"""A nation by parts on Spark: the plan, the promise and the draws of one machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from congenial import Ledger, Plan, SeededRandomness, verify
from congenial.data.durable_files import write_whole
from congenial.data.engines import spark_source
from congenial.errors import DataError, FigureError, PlanError
from congenial.kinds import parted_run
from congenial.publication import bundle as bundles
from congenial.publication import workflow
from congenial.publication.demo_population import write_nation
from tests.commands import run
from tests.engines import faulty_steps
from tests.engines.conftest import need_java
from tests.kinds.nation_plan import written

SEED = 4


def plan_on(folder: Path, source: str, publish: bool = True) -> Plan:
    """The plan of a small nation with another source and nothing else."""
    folder.mkdir(exist_ok=True)
    path = written(folder)
    path.write_text(path.read_text().replace('"people.csv"', f'"{source}"', 1))
    loaded = Plan.load(path)
    if publish:
        workflow.publish(loaded)
    return loaded


def released(plan: Plan, seed: int = SEED) -> dict[str, Any]:
    """What a bundle drawn from a seed says, and the digests of its parts' files."""
    done = workflow.release(plan, "nation", randomness=SeededRandomness(seed))
    failed = [check.what for check in verify(done.folder, done.digest) if not check.holds]
    assert failed == ["drawn from the system's randomness"]
    assert list((plan.folder / "runs").glob("nation*")) == []
    index = bundles.read_index(done.folder)
    return {key: index[key] for key in ("folders", "files", "guarantee", "description")}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return released(plan_on(tmp_path_factory.mktemp("embedded"), "people.csv"))


def test_source_is_all_that_changes(spark: Any, embedded: dict[str, Any], tmp_path: Path) -> None:
    """Cell by cell, and digest by digest: the same words give the same files."""
    found = released(plan_on(tmp_path, "spark:./people.csv"))
    assert found == embedded
    other = released(plan_on(tmp_path / "other", "people.csv"), SEED + 1)  # the words do show
    assert other["folders"] != embedded["folders"]


def test_an_attempt_that_is_repeated_draws_and_writes_the_same(
    spark: Any, embedded: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_on(tmp_path, "spark:./people.csv")
    monkeypatch.setattr(parted_run, "draw_part", faulty_steps.draws_and_loses)
    monkeypatch.setattr(parted_run, "finish_part", faulty_steps.writes_and_loses)
    assert released(plan)["folders"] == embedded["folders"]
    for kind in ("draw", "write"):
        attempts = faulty_steps.notes_of(tmp_path / "runs" / "notes", kind)
        assert {part: len(notes) for part, notes in attempts.items()} == {0: 1, 1: 2, 2: 1}
        assert len(set(attempts[1])) == 1
    assert [one.status for one in Ledger.open(plan.ledger).entries()] == ["committed"]


def test_a_part_is_drawn_alike_by_two_tasks_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speculation on two machines, whose processes may have the same number."""
    monkeypatch.setattr(os, "getpid", lambda: 4711)
    target = tmp_path / "1.npz"

    def content(file: Any) -> None:
        file.write(b"one ")
        file.flush()
        if not target.exists():
            write_whole(target, content_of_the_other)
        file.write(b"part")

    def content_of_the_other(file: Any) -> None:
        file.write(b"one part")

    write_whole(target, content)
    assert target.read_bytes() == b"one part"
    assert [file.name for file in tmp_path.iterdir()] == [target.name]


def test_a_step_that_ends_after_its_run_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "runs" / "drawn" / "1.npz", lambda file: None)
    assert not (tmp_path / "runs").exists()


# ---- what is refused ---------------------------------------------------------------------------


def test_figures_that_the_data_lack_are_refused_by_the_workers(spark: Any, tmp_path: Path) -> None:
    plan = plan_on(tmp_path, "spark:./people.csv")
    people = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "people.csv").write_text("\n".join(people[:-1]) + "\n")
    with pytest.raises(FigureError, match="do not agree") as reason:
        workflow.release(plan, "nation")
    assert reason.value.remedy == "Use the data from which the figures were computed."
    assert list(Ledger.open(plan.ledger).entries()) == []


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("99999,b999,f,1", "column 'block' has values"),
        pytest.param("99999,b1,f,77", "column 'age' has values", marks=pytest.mark.audit),
        pytest.param("0,b1,f,1", "more than one row", marks=pytest.mark.audit),
    ],
)
def test_records_without_a_cell_are_refused(
    spark: Any, tmp_path: Path, row: str, what: str
) -> None:
    plan = plan_on(tmp_path, "spark:./people.csv")
    with (tmp_path / "people.csv").open("a") as file:
        file.write(row + "\n")
    with pytest.raises(DataError, match=what):
        workflow.release(plan, "nation")


def test_workers_that_write_elsewhere_are_found_out(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this an unseen part would be counted as empty."""
    plan = plan_on(tmp_path, "spark:./people.csv")
    monkeypatch.setattr(
        spark_source, "_group_file", lambda folder, by, group: Path(f"/nowhere/{by}/{group}")
    )
    with pytest.raises(DataError, match="do not see the same files"):
        workflow.release(plan, "nation")


def test_a_database_is_refused_before_anything_is_published(tmp_path: Path) -> None:
    plan = plan_on(tmp_path, "postgresql://curator@db/census?table=people", publish=False)
    with pytest.raises(PlanError, match="not counted by PostgreSQL"):
        workflow.check(plan)


# ---- a machine dies ----------------------------------------------------------------------------

KILLED = """
import json, sys
from pathlib import Path
from congenial.kinds import parted_run
from tests.engines import faulty_steps, two_executors
from tests.engines.test_nation_on_spark import plan_on, released

spark = two_executors.start(2048, speculation="true")
parted_run.draw_part = faulty_steps.draws_and_kills
print(json.dumps(released(plan_on(Path(sys.argv[1]), "spark:./people.csv"))["folders"]))
spark.stop()
"""


@pytest.mark.audit
def test_an_executor_killed_after_its_draw_changes_nothing(
    embedded: dict[str, Any], tmp_path: Path
) -> None:
    """Speculation is on: attempts draw the same words, so that a race cannot choose among draws."""
    pytest.importorskip("pyspark", reason="needs the extra 'spark'")
    need_java()
    # Executors start in folders of their own, from which the steps are imported by this path.
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1_200,  # of a busy machine; a minute of an idle one
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == embedded["folders"]
    attempts = faulty_steps.notes_of(tmp_path / "runs" / "notes", "draw")
    assert len(attempts[faulty_steps.PART]) >= 2
    assert len(set(attempts[faulty_steps.PART])) == 1


# ---- the demo ----------------------------------------------------------------------------------


def test_the_demo_changes_source_and_nothing_else(tmp_path: Path) -> None:
    one, other = (
        write_nation(tmp_path / name, 150, 1, name == "spark") for name in ("duckdb", "spark")
    )
    assert one.read_text().replace('"people"', '"spark:./people"') == other.read_text()
    run("demo", "--engine", "spark", "--out", tmp_path / "small", code=2)
    assert not (tmp_path / "small").exists()


@pytest.mark.audit
def test_a_made_up_nation_goes_the_whole_way_on_spark(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "made-up"
    told = run("demo", "--areas", 150, "--engine", "spark", "--out", out, "--json")
    assert all(one["holds"] for one in told["verify"])
