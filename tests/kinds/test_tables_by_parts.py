"""Tables of a nation by parts, from a plan to a verified bundle, through kills and bad input."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import congenial
from congenial import Ledger, Plan, SeededRandomness, verify
from congenial.errors import BundleError, InferenceError
from congenial.kinds import parted_run, tables_verification
from congenial.kinds.kind import FOLLOWS
from congenial.kinds.parted_run import key_for
from congenial.kinds.registry import of_section
from congenial.kinds.tables_verification import LARGEST
from congenial.ledger.ledger import Reservation
from congenial.mechanisms.parted_release import PartedRelease
from congenial.publication import bundle as bundles
from congenial.publication import drawing_by_parts, workflow
from congenial.report.page_data import rows_of
from congenial.tables import transport_fit
from tests.children import FORK, start
from tests.commands import run, verified
from tests.data.test_map_shapes import collection, feature, moved
from tests.kinds.nation_plan import SECTION, spent, written
from tests.mechanisms.nations import nation

FINEST = "table-1-block-sex-age"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = written(tmp_path_factory.mktemp("nation"))
    return verified(plan, "nation")


# ---- the bundle --------------------------------------------------------------------------------


def test_check_says_which_tables_are_cut_into_parts(tmp_path: Path) -> None:
    plan = written(tmp_path)
    (one,) = run("check", plan, "--json")["releases"]
    assert [row["below"] for row in one["tables"]] == [True, True, True, False, False]
    lines = [" ".join(line.split()) for line in run("check", plan, "--full").splitlines()]
    finest = next(line for line in lines if line.startswith("block x sex x age"))
    top = next(line for line in lines if line.startswith("state x sex x age"))
    assert "by state" in finest
    assert "in one file" in top


def test_from_a_plan_to_a_verified_bundle(bundle: Path) -> None:
    told = run("verify", bundle, "--json")
    assert told["holds"]
    index = json.loads((bundle / "release.json").read_text())
    assert index["bundle"] == 1
    assert set(index["folders"]) == {FINEST, "table-2-county-sex", "table-3-county-sex-age"}
    assert [one.name for one in bundle.parent.iterdir()] == ["nation"]
    assert list((bundle.parent.parent / "runs").iterdir()) == []


def test_it_is_read_part_by_part(bundle: Path) -> None:
    release = congenial.read(bundle, PartedRelease)
    whole = release.to_arrow("block", "sex", "age")
    parts = [release.to_arrow("block", "sex", "age", part=one) for one in release.parts.labels]
    assert whole.num_rows == 240 == sum(one.num_rows for one in parts)
    lazily = release.dataset("sex", "block", "age").to_table(columns=["count"])
    assert lazily["count"].to_pylist() == whole["count"].to_pylist()
    state = release.to_arrow("state", "sex", "age")
    assert sum(whole["count"].to_pylist()) == sum(state["count"].to_pylist())
    assert sum(whole["count"].to_pylist()) == int(release.published.values[0].sum())
    assert release.dataset("state", "sex", "age").count_rows() == 30


def test_what_it_cannot_answer_it_refuses(bundle: Path) -> None:
    release = congenial.read(bundle, PartedRelease)
    with pytest.raises(InferenceError, match="no state 'zz'"):
        release.to_arrow("block", "sex", "age", part="zz")
    with pytest.raises(InferenceError, match="not cut into parts"):
        release.to_arrow("state", "sex", "age", part="s0")
    with pytest.raises(InferenceError, match="not one of this release"):
        release.dataset("county", "age")
    assert release.count("state = 's0' and sex = 'f' and age = 1") >= 0


def test_a_part_is_verified_alone(bundle: Path) -> None:
    assert all(one.holds for one in verify(bundle, part="s1"))
    with pytest.raises(BundleError, match="no part 'zz'"):
        verify(bundle, part="zz")


def forged(bundle: Path, to: Path, column: str) -> Path:
    """A copy in which one cell of one part is changed, and every digest with it."""
    shutil.copytree(bundle, to)
    file = to / FINEST / "part-00001.parquet"
    table = pq.read_table(file)
    values = table[column].to_pylist()
    values[3] = next(v for v in values if v != values[3]) if column == "sex" else values[3] + 1
    at = table.column_names.index(column)
    pq.write_table(table.set_column(at, column, [values]), file)
    index = json.loads((to / "release.json").read_text())
    index["folders"][FINEST][file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return sealed(to, index)


def sealed(bundle: Path, index: dict[str, Any]) -> Path:
    """The bundle with another index, and its digest."""
    (bundle / "release.json").write_bytes(bundles.as_json(index))
    digest = hashlib.sha256((bundle / "release.json").read_bytes()).hexdigest()
    (bundle / "DIGEST.txt").write_text(digest + "\n")
    return bundle


@pytest.mark.parametrize("name", ["congenial_gaussianx", "plain_discrete_gaussian"])
def test_another_mechanism_is_not_what_drew_it(bundle: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(bundle, tmp_path / "forged")
    index = json.loads((bundle / "release.json").read_text())
    index["description"]["measured"][-1]["mechanism"] = name
    changed = sealed(tmp_path / "forged", index)
    assert FOLLOWS in [one.what for one in verify(changed, part="s1") if not one.holds]


@pytest.mark.parametrize("part", [None, "s1"])
def test_a_smaller_error_than_the_largest_is_noticed(
    bundle: Path, tmp_path: Path, part: str | None
) -> None:
    """It stands in parts.json and in the report, and in no table."""
    shutil.copytree(bundle, tmp_path / "forged")
    file = tmp_path / "forged" / "parts.json"
    told = json.loads(file.read_text())
    told["largest_sd"] = {name: sd / 3 for name, sd in told["largest_sd"].items()}
    file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    index = json.loads((bundle / "release.json").read_text())
    index["files"]["parts.json"] = hashlib.sha256(file.read_bytes()).hexdigest()
    changed = sealed(tmp_path / "forged", index)
    assert LARGEST in [one.what for one in verify(changed, part=part) if not one.holds]


@pytest.mark.parametrize("column", ["count", "estimate", "count_as_drawn", "low_90", "sex"])
def test_a_changed_number_is_noticed(bundle: Path, tmp_path: Path, column: str) -> None:
    changed = forged(bundle, tmp_path / "forged", column)
    failed = [one.what for one in verify(changed) if not one.holds]
    assert failed
    assert not any("is as released" in what for what in failed)  # by content, not by digest
    assert [one.what for one in verify(changed, part="s1") if not one.holds]
    assert all(one.holds for one in verify(changed, part="s2"))


BY_BLOCK = """
[publish]
"Population" = { total = true, by = ["block"] }
"Female" = { count = "sex = 'f'", by = ["block"] }
"Of age" = { count = "age >= 3", by = ["block"] }
"""


def test_ties_that_fall_another_way_elsewhere_are_no_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Estimates of another machine, or from a part's printed values, differ in their last bits."""
    plan = written(tmp_path, publish=BY_BLOCK)
    run("publish", plan)
    run("release", plan)
    released = tmp_path / "bundles" / "nation"
    same, ties = np.array_equal, []

    def counted(*both: Any) -> bool:
        ties.append(same(*both))
        return bool(ties[-1])

    monkeypatch.setattr(
        transport_fit, "_chances", lambda targets: np.indices(targets.shape)[-1] % 7 / 7
    )
    monkeypatch.setattr(tables_verification.np, "array_equal", counted)
    for part in (None, "s0", "s1", "s2"):
        assert [one.what for one in verify(released, part=part) if not one.holds] == []
    assert not all(ties)  # some did fall another way
    changed = forged(released, tmp_path / "forged", "count")
    for part in (None, "s1"):
        assert [one.what for one in verify(changed, part=part) if not one.holds]


@pytest.mark.parametrize("parts", [True, False])
def test_files_of_another_library_hold_the_same_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: bool
) -> None:
    """Digests bind the bytes, which depend on who wrote them; checks compare values."""
    path = written(tmp_path)
    if not parts:
        path.write_text(path.read_text().replace('parts = "state"', ""))
    made = Plan.load(path)
    workflow.publish(made)
    with monkeypatch.context() as other:
        other.setattr(pq, "write_table", partial(pq.write_table, compression="gzip"))
        done = workflow.release(made, "nation")
    assert all(one.holds for one in verify(done.folder))
    file = next(done.folder.rglob("table-*.parquet" if not parts else "part-*.parquet"))
    pq.write_table(pq.read_table(file), file)  # the same values, and not the bytes of the manifest
    failed = [one for one in verify(done.folder) if not one.holds]
    assert [one.what.endswith("is as released") for one in failed] == [True]
    assert file.name in failed[0].what + failed[0].detail


def test_a_file_that_is_not_as_released_or_was_added_is_noticed(
    bundle: Path, tmp_path: Path
) -> None:
    shutil.copytree(bundle, tmp_path / "copy")
    file = tmp_path / "copy" / FINEST / "part-00002.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    (tmp_path / "copy" / FINEST / "more.txt").write_text("more")
    found = {one.what: one for one in verify(tmp_path / "copy")}
    assert found[f"{FINEST}/ is as released"].detail == "part-00002.parquet, more.txt"
    (tmp_path / "copy" / FINEST / "more.txt").unlink()
    assert all(one.holds for one in verify(tmp_path / "copy", part="s0"))


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "..", ""])
def test_folders_outside_the_bundle_are_refused(bundle: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(bundle, tmp_path / "copy")
    index = json.loads((bundle / "release.json").read_text())
    index["folders"][name] = index["folders"].pop(FINEST)
    (tmp_path / "copy" / "release.json").write_bytes(bundles.as_json(index))
    with pytest.raises(BundleError, match="outside the bundle"):
        verify(tmp_path / "copy")
    with pytest.raises(BundleError):
        congenial.read(tmp_path / "copy").part_files  # noqa: B018


# ---- however it is run -------------------------------------------------------------------------


def drawn(folder: Path, workers: int) -> dict[str, Any]:
    """Digests of the parts' files of a release drawn from a seed."""
    section = SECTION + f"workers = {workers}\n"
    plan = Plan.load(written(folder, section))
    workflow.publish(plan)
    workflow.release(plan, "nation", randomness=SeededRandomness(4))
    found: dict[str, Any] = bundles.read_index(folder / "bundles" / "nation")["folders"]
    return found


@pytest.mark.audit  # two processes are started anew for every step
def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert drawn(tmp_path / "one", 1) == drawn(tmp_path / "two", 2)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    loaded = Plan.load(written(tmp_path))
    workflow.publish(loaded)
    return loaded


def test_a_run_knows_its_room_and_draws_from_the_stream_it_was_given(plan: Plan) -> None:
    section = plan.named("nation")
    made = of_section(section).build(plan, section, Ledger.open(plan.ledger).figures)
    prepared = parted_run.NationRun(plan, made, "nation", SeededRandomness(4), print)
    assert made.cells == sum(made.schema.size(names) for names in made.tables) > 300
    assert prepared.room == 64 * made.cells
    secret = prepared.secret()
    assert secret.bits == SeededRandomness(4).words(4).tobytes()
    assert secret.label == SeededRandomness(4).label
    assert not secret.publishable


@pytest.mark.parametrize(
    "step", [pytest.param("draw_part", marks=pytest.mark.audit), "finish_part"]
)
def test_a_killed_worker_costs_nothing(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from tests.kinds import nation_plan

    dying = {"draw_part": nation_plan.dies_drawing, "finish_part": nation_plan.dies_finishing}
    monkeypatch.setattr(parted_run, step, dying[step])
    monkeypatch.setattr(parted_run, "SMALL", 0)
    monkeypatch.setattr(parted_run, "get_context", lambda _: FORK)  # a new process takes seconds
    with pytest.raises(BundleError, match=r"its cost is recorded.*killed") as reason:
        workflow.release(plan, "nation")
    assert "release` again" in str(reason.value.remedy)
    assert spent(plan) == ["drawn"]
    monkeypatch.undo()
    told = json.loads((tmp_path / "runs" / "nation" / "run.json").read_text())
    kept = list((tmp_path / "runs" / "nation" / "drawn").glob("*.npz"))
    redrawn = []
    real = parted_run.draw_part

    def draw(task: Any, keys: Any) -> None:
        given = {at: task.piece.tables[at] for at in task.piece.drawn}
        secret = bytes.fromhex(told["secret"])
        assert keys == {at: key_for(secret, names, task.label) for at, names in given.items()}
        redrawn.append(task.number)
        real(task, keys)

    monkeypatch.setattr(parted_run, "draw_part", draw)
    workflow.release(plan, "nation")
    assert spent(plan) == ["committed"]
    assert len(redrawn) == 3 - len(kept)
    assert all(one.holds for one in verify(tmp_path / "bundles" / "nation"))
    assert list((tmp_path / "runs").glob("nation*")) == []


STEPS = {  # where the driver is killed -> what the ledger then says
    "after the counts": (parted_run, "count_parts", True, []),
    "before the secret": (drawing_by_parts, "write_whole", False, ["reserved"]),
    "before the mark": (Reservation, "mark_drawn", False, ["reserved"]),
    "after the mark": (Reservation, "mark_drawn", True, ["drawn"]),
    "after a part": (parted_run, "draw_part", True, ["drawn"]),
    "after a file": (parted_run, "finish_part", True, ["drawn"]),
    "before the bundle": (bundles, "write", False, ["drawn"]),
    "after the rename": (bundles.PreparedBundle, "publish", True, ["drawn"]),
}
QUICK = ("after a part",)  # the others take as long again
EACH = [one if one in QUICK else pytest.param(one, marks=pytest.mark.audit) for one in STEPS]


def killed(plan: Plan, step: str) -> list[str]:
    """Run a release in a process that is killed at a step; what the ledger should say then."""
    where, name, after, status = STEPS[step]
    real = getattr(where, name)

    def die(*given: Any, **named: Any) -> None:
        if after:
            real(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    def release() -> None:
        setattr(where, name, die)
        workflow.release(plan, "nation")

    process = start(release)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    return status


@pytest.mark.parametrize("step", EACH)
def test_a_killed_driver_goes_on_and_spends_once(plan: Plan, tmp_path: Path, step: str) -> None:
    status = killed(plan, step)
    assert spent(plan) == status
    workflow.release(plan, "nation")
    reserved = ["reserved"] if step == "before the secret" else []  # nobody knows whose it was
    assert spent(plan) == [*reserved, "committed"]
    assert all(one.holds for one in verify(tmp_path / "bundles" / "nation"))
    assert list((tmp_path / "runs").glob("nation*")) == []


def test_other_data_do_not_go_on_and_the_folder_is_private(plan: Plan, tmp_path: Path) -> None:
    killed(plan, "after a part")
    folder = tmp_path / "runs" / "nation"
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "run.json").stat().st_mode & 0o077 == 0
    with (tmp_path / "people.csv").open("a") as file:
        file.write("\n")
    with pytest.raises(BundleError, match="another plan or other data"):
        workflow.release(plan, "nation")
    assert spent(plan) == ["drawn"]


def full(*_: object) -> None:
    """What a write to a full disk raises."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_before_the_draw_costs_nothing(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(parted_run, "count_parts", full)
        with pytest.raises(BundleError, match=r"No space left.*Nothing was drawn"):
            workflow.release(plan, "nation")
    assert spent(plan) == []
    workflow.release(plan, "nation")
    assert spent(plan) == ["committed"]


def test_a_disk_that_is_full_for_one_part_costs_nothing(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part 1 is never drawn before there is room; the others are not drawn twice."""
    real, drawn_once = parted_run.draw_part, []

    def draw(task: Any, keys: Any, fails: bool) -> None:
        drawn_once.append((task.number, *keys.values()))
        full() if fails and task.number == 1 else real(task, keys)

    monkeypatch.setattr(parted_run, "draw_part", partial(draw, fails=True))
    with pytest.raises(BundleError, match=r"its cost is recorded.*No space left") as reason:
        workflow.release(plan, "nation")
    assert "release` again" in str(reason.value.remedy)
    monkeypatch.setattr(parted_run, "draw_part", partial(draw, fails=False))
    workflow.release(plan, "nation")
    assert spent(plan) == ["committed"]
    assert [number for number, *_ in drawn_once] == [0, 1, 1, 2]
    assert drawn_once[1] == drawn_once[2]
    assert len({key for _, *keys in drawn_once for key in keys}) == 3 * (len(drawn_once[0]) - 1)
    assert all(one.holds for one in verify(tmp_path / "bundles" / "nation"))


def test_areas_without_people_are_published_as_empty(bundle: Path) -> None:
    people = nation(3).counts.sum(axis=(1, 2))
    empty = {f"b{at}" for at in np.flatnonzero(people == 0)}
    assert empty
    rows = congenial.read(bundle, PartedRelease).to_arrow("block", "sex", "age").to_pylist()
    assert {row["count"] for row in rows if row["block"] in empty} == {0}


# ---- the made-up nation ------------------------------------------------------------------------


def test_a_made_up_nation_goes_the_whole_way(tmp_path: Path) -> None:
    told = run("demo", "--areas", 150, "--out", tmp_path / "made-up", "--json")
    assert all(one["holds"] for one in told["verify"])
    people = sorted((tmp_path / "made-up" / "people").iterdir())
    assert [one.name for one in people] == ["state-01.parquet", "state-02.parquet"]
    blocks = (tmp_path / "made-up" / "blocks.csv").read_text().splitlines()
    assert len(blocks) == 151
    release = congenial.read(tmp_path / "made-up" / "bundles" / "nation", PartedRelease)
    assert release.dataset("block", "sex", "age").count_rows() == 150 * 46


# ---- the report ----------------------------------------------------------------------------------

MAP = '\n[about]\nmap = { file = "states.geojson", property = "code", axis = "state" }\n'


def test_labels_and_maps_in_the_report(tmp_path: Path) -> None:
    plan = written(tmp_path, SECTION.replace('["sex", "age"],\n]', '["state", "sex"],\n]'))
    text = plan.read_text().replace('"m"] }', '"m"], label = "Sex & gender" }')
    plan.write_text(text + MAP)
    areas = (tmp_path / "areas.csv").read_text().splitlines()[1:]
    states = sorted({one.split(",")[2] for one in areas})
    shapes = [feature(name, [moved(2 * at, 0)]) for at, name in enumerate(states)]
    (tmp_path / "states.geojson").write_text(json.dumps(collection(*shapes)))
    bundle = verified(plan, "nation")
    page = (bundle / "report.html").read_text()
    assert "<h3>state × Sex &amp; gender × age</h3>" in page
    assert sorted(rows_of(page)["map"]["paths"]) == states
    assert run("verify", bundle, "--json")["holds"]
