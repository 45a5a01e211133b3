"""Every command, for every kind of release, on data full of markers: none of them comes out."""

from __future__ import annotations

import json
import re
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from congenial.data.engines.duckdb_source import DuckDBSource
from congenial.errors import BundleError, DataError
from congenial.kinds import registry
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.sampling.randomness import SystemRandomness
from tests.confidentiality.conftest import Watch
from tests.confidentiality.scan import COUNT, MARK, NUMBER, leaks, shown
from tests.confidentiality.scenes import BUNDLE, COMMON, CURVE, SCENES, WRONG, Scene, many, people

pytestmark = pytest.mark.usefixtures("short_bootstrap")

FEW = ("level", "text", "unnamed")  # ways for data to be wrong that run by default
PLAIN = ("synthetic", "partial", "values", "test", "tables", "records", "quantiles", "estimate")
VARIANTS = ("partial", "bounded")  # of kinds that run by default
SCENE = pytest.mark.parametrize(
    "scene",
    [
        pytest.param(one, id=one.kind, marks=[pytest.mark.audit] * (one.kind in VARIANTS))
        for one in SCENES
    ],
)


def words(command: tuple[str, ...], plan: Path) -> list[str]:
    """A command of a scene with its paths filled in."""
    folder = plan.parent
    data = next((folder.parent / "data").glob("people.*"))
    known = {"PLAN": str(plan), "DATA": str(data)}
    return [known.get(word, re.sub("^RUN/", f"{folder}/", word)) for word in command]


def run_all(scene: Scene, plan: Path, watch: Watch) -> None:
    for command in (*scene.commands, *COMMON):
        watch.run(*words(command, plan))
    expected = [0] * (len(watch.codes) - 1) + [6]
    assert watch.codes == expected, watch.texts[-1]
    assert watch.run(*words(("verify", BUNDLE), plan)) == scene.seeded


def test_every_kind_has_a_scene(tmp_path: Path) -> None:
    """A kind that is registered is watched here: give it a scene."""
    plans = [Plan.load(one.write(tmp_path / one.kind)) for one in SCENES]
    told = {registry.of_section(plan.release[0]).name for plan in plans}
    assert told == {kind.name for kind in registry.every_kind()}


@SCENE
def test_no_marker_leaves(scene: Scene, tmp_path: Path, watch: Watch) -> None:
    plan = scene.write(tmp_path)
    run_all(scene, plan, watch)
    assert leaks(watch.everything(tmp_path / "data"))  # the scan sees them where they are
    assert leaks(watch.everything(plan.parent)) == []
    assert list(watch.temporary.rglob("*")) == []  # nothing is left behind


@pytest.mark.audit
@pytest.mark.usefixtures("with_charts")
@SCENE
def test_no_marker_leaves_with_pictures(scene: Scene, tmp_path: Path, watch: Watch) -> None:
    plan = scene.write(tmp_path)
    run_all(scene, plan, watch)
    report = (plan.parent / "bundles" / "made" / "report.html").read_text()
    plain = scene.kind in PLAIN  # tables alone
    assert plain or "<svg" in report or "base64," in report
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
    if wrong == "level" and '"sex"' not in scene.plan:
        pytest.skip("the release does not look at that column")
    if scene.columns is many:  # a small table is enough to fail
        scene = replace(scene, columns=lambda: people(400))
    plan = scene.write(tmp_path, WRONG[wrong])
    for command in ("publish", "release"):
        watch.run(command, plan)
    assert leaks(watch.everything(plan.parent)) == []
    if wrong == "number" and "between = [" in scene.plan:  # cut to the nearest end, as documented
        assert watch.codes[-1] == 0
        return
    assert 3 in watch.codes  # the data were refused
    assert set(watch.codes) <= {0, 2, 3}
    assert not (plan.parent / "bundles").exists()
    loaded = Plan.load(plan)
    with pytest.raises(DataError) as caught:
        workflow.publish(loaded) if loaded.statements else workflow.release(loaded, "made")
    chain = "".join(traceback.format_exception(caught.value))
    assert leaks(chain) == []  # Python's own traceback, causes and contexts included
    assert caught.value.__context__ is None


def test_records_named_as_the_prior_are_refused_unseen(tmp_path: Path, watch: Watch) -> None:
    """Somebody names the confidential records where the counts of an earlier release belong."""
    scene = next(scene for scene in SCENES if scene.kind == "values")
    plan = replace(scene, columns=lambda: people(400)).write(tmp_path)
    plan.write_text(plan.read_text().replace("earlier.csv", "people.csv"))
    for command in ("check", "publish", "release"):
        assert watch.run(command, plan) == 3
    assert leaks(watch.everything(plan.parent)) == []


def test_a_record_in_the_first_row_is_not_drafted(tmp_path: Path, watch: Watch) -> None:
    """A CSV file without a header would have its first record for names of columns."""
    columns = {name: values for name, values in people(30).items() if name != "age"}
    options = pa_csv.WriteOptions(include_header=False)
    pa_csv.write_csv(pa.table(columns), tmp_path / "people.csv", options)
    folder = tmp_path / "run"
    for more in ((), ("--json",), ("--levels-from-data",)):
        words = ("init", tmp_path / "people.csv", "--out", folder / "plan.toml", *more)
        assert watch.run(*words) == DataError.exit_code
    assert leaks(watch.everything(folder)) == []
    assert not folder.exists()


# ---- reports for the curator alone ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["synthetic", pytest.param("partial", marks=pytest.mark.audit)])
def test_confidential_reports_are_private_and_nowhere_else(
    kind: str, tmp_path: Path, watch: Watch
) -> None:
    """Figures of the data that they show by design are in no bundle, ledger, log or error."""
    scene = next(scene for scene in SCENES if scene.kind == kind)
    plan = replace(scene, columns=lambda: people(397)).write(tmp_path)  # shares with many digits
    for command in ("publish", "release"):
        assert watch.run(command, plan) == 0
    asked = (("utility", "PLAN", "--json"), (*CURVE, "--json"))
    seen: set[str] = set()  # of both: the errors of a curve may be equal, or round, by chance
    for at, command in enumerate(asked):
        before = len(watch.texts)
        assert watch.run(*words(command, plan)) == 0
        figures = measured(json.loads(watch.texts.pop(before)))
        folder = plan.parent / command[0]
        assert folder.joinpath("made").stat().st_mode & 0o777 == 0o700
        files = list(folder.joinpath("made").iterdir())
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        kept = folder.rename(tmp_path / f"private-{at}")
        told = watch.everything(kept)
        seen |= figures
        assert all(figure in told for figure in figures)
        elsewhere = watch.everything(plan.parent)
        assert [figure for figure in figures if figure in elsewhere] == []
        assert leaks(elsewhere) == []
        refused = (*command, "--out", "RUN/bundles/made/inside")
        assert watch.run(*words(refused, plan)) == BundleError.exit_code
    assert len(seen) >= 3
    assert watch.run(*words(("verify", BUNDLE), plan)) == 0


def measured(document: Any, key: str = "") -> set[str]:
    """The figures of the data in a report that have too many digits to be elsewhere by accident."""
    if isinstance(document, dict):
        return set().union(*(measured(value, name) for name, value in document.items()))
    if isinstance(document, list):
        return set().union(*(measured(value, key) for value in document))
    shown = isinstance(document, float) and key in ("original", "mean_error", "sum_of_weights")
    return {repr(document)} if shown and len(repr(document)) > 12 else set()


# ---- faults inside -------------------------------------------------------------------------------


def fail(*_: object, **__: object) -> None:
    raise ValueError(f"record {MARK} of age {NUMBER}")


@pytest.mark.parametrize(
    ("owner", "name", "code"),
    [
        (MeasuredTables, "release_each", 70),
        (SystemRandomness, "_fetch", 70),
        (DuckDBSource, "run", 70),
    ],
    ids=["mechanism", "randomness", "reader"],
)
def test_an_unexpected_fault_tells_its_kind_and_nothing_else(
    owner: type, name: str, code: int, tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(SCENES[0], columns=lambda: people(400)).write(tmp_path)
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


def test_the_scan_takes_no_digest_for_a_leak() -> None:
    """Digests of random bundles have every run of five digits sooner or later."""
    digest = f"ab{COUNT}f".ljust(64, "c")
    assert re.search(shown(COUNT)[0], digest)  # the digits stand alone in it
    assert leaks(f"sha256: {digest}") == []
    assert leaks(f"sha256: {digest}, {COUNT} people") == [str(COUNT)]
    assert leaks(f"sha256: {digest[:-4]}") == [str(COUNT)]  # shorter, so no digest
    assert leaks(f"sha256{digest}2026-11-20") == []  # columns of a row in a SQLite file
    assert leaks(f"{digest}, then {digest} {COUNT}") == [str(COUNT)]
