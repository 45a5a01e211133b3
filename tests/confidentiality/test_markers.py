"""Every command, for every kind of release, on data full of markers: none of them comes out."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import pytest

from congenial.data.engine_duckdb import DuckDBSource
from congenial.errors import DataError
from congenial.mechanisms.protocol import Mechanism
from congenial.release import steps
from congenial.release.plan import Plan
from congenial.sampling.randomness import SystemRandomness
from tests.confidentiality.conftest import Watch
from tests.confidentiality.scan import COUNT, MARK, NUMBER, leaks, shown
from tests.confidentiality.scenes import COMMON, SCENES, WRONG, Scene

FEW = ("level", "text", "unnamed")  # ways for data to be wrong that run by default
SCENE = pytest.mark.parametrize("scene", SCENES, ids=[scene.kind for scene in SCENES])


def words(command: tuple[str, ...], plan: Path) -> list[str]:
    """A command of a scene with its paths filled in."""
    folder = plan.parent
    data = next((folder.parent / "data").glob("people.*"))
    known = {"PLAN": str(plan), "DATA": str(data), "draft.toml": str(folder / "draft.toml")}
    known |= {"bundles/made": str(folder / "bundles" / "made")}
    known |= {"../data/curve": str(folder.parent / "data" / "curve")}
    return [known.get(word, word) for word in command]


def run_all(scene: Scene, plan: Path, watch: Watch) -> None:
    for command in (*scene.commands, *COMMON):
        watch.run(*words(command, plan))
    expected = [0] * (len(watch.codes) - 1) + [6]
    assert watch.codes == expected, watch.texts[-1]
    made = words(("verify", "bundles/made"), plan)
    assert watch.run(*made) == (scene.kind == "table")  # which was drawn from a seed


@SCENE
def test_no_marker_leaves(scene: Scene, tmp_path: Path, watch: Watch) -> None:
    plan = scene.write(tmp_path)
    run_all(scene, plan, watch)
    assert leaks(watch.everything(tmp_path / "data"))  # the scan sees them where they are
    assert leaks(watch.everything(plan.parent)) == []
    assert list(watch.temporary.rglob("*")) == []  # nothing is left behind


@pytest.mark.audit
@SCENE
def test_no_marker_leaves_with_pictures(scene: Scene, tmp_path: Path, watch: Watch) -> None:
    plan = scene.write(tmp_path)
    run_all(scene, plan, watch)
    report = (plan.parent / "bundles" / "made" / "report.html").read_text()
    assert scene.kind == "synthetic" or "<svg" in report or "base64," in report
    assert leaks(watch.everything(plan.parent)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        *FEW,
        *(pytest.param(wrong, marks=pytest.mark.audit) for wrong in WRONG if wrong not in FEW),
    ],
)
@SCENE
def test_no_marker_leaves_a_failing_run(
    scene: Scene, wrong: str, tmp_path: Path, watch: Watch
) -> None:
    if wrong == "level" and scene.kind != "table":
        pytest.skip("the release does not look at that column")
    if scene.kind == "table":  # a small table is enough to fail
        scene = Scene(scene.kind, scene.plan, SCENES[2].columns, scene.commands)
    plan = scene.write(tmp_path, WRONG[wrong])
    for command in ("publish", "release"):
        watch.run(command, plan)
    assert 3 in watch.codes  # the data were refused
    assert set(watch.codes) <= {0, 2, 3}
    assert leaks(watch.everything(plan.parent)) == []
    assert not (plan.parent / "bundles").exists()
    loaded = Plan.load(plan)
    with pytest.raises(DataError) as caught:
        steps.publish(loaded) if loaded.statements else steps.release(loaded, "made")
    chain = "".join(traceback.format_exception(caught.value))
    assert leaks(chain) == []  # Python's own traceback, causes and contexts included
    assert caught.value.__context__ is None


# ---- faults inside -------------------------------------------------------------------------------


def fail(*_: object, **__: object) -> None:
    raise ValueError(f"record {MARK} of age {NUMBER}")


@pytest.mark.parametrize(
    ("owner", "name", "code"),
    [(Mechanism, "release", 70), (SystemRandomness, "_fetch", 70), (DuckDBSource, "run", 70)],
    ids=["mechanism", "randomness", "reader"],
)
def test_an_unexpected_fault_tells_its_kind_and_nothing_else(
    owner: type, name: str, code: int, tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene("table", SCENES[0].plan, SCENES[2].columns, ())
    plan = scene.write(tmp_path)
    assert watch.run("publish", plan) == 0
    monkeypatch.setattr(owner, name, fail)
    assert watch.run("release", plan, "--name", "made") == code
    assert leaks("\n".join(watch.texts[:-1])) == []  # the last is the exception, which stays inside
    assert leaks(watch.everything(plan.parent).replace(watch.texts[-1], "")) == []
    assert not (plan.parent / "bundles" / "made").exists()


# ---- negative control ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [f"a {MARK} b", f"{COUNT}", f"n = {COUNT:,}.", "x" * 3 + f" {float(NUMBER):e}", str(NUMBER)],
)
def test_the_scan_sees_a_leak(text: str, tmp_path: Path) -> None:
    assert leaks(text)
    (tmp_path / "file.bin").write_bytes(COUNT.to_bytes(8, "little"))
    from tests.confidentiality.scan import told

    assert leaks(told(tmp_path))
    assert not any(re.search(how, f"1{COUNT}9") for how in shown(COUNT)[:1])
