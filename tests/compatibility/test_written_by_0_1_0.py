"""What version 0.1.0 wrote is read, priced and drawn as it was then; `verify` does not take it.

The fixtures and what 0.1.0 said of them were made by write_fixtures.py.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from congenial import Ledger, Plan, verify
from congenial.mechanisms import congenial as congenial_mechanism
from congenial.publication.verification import OURS
from tests.commands import run
from tests.compatibility.repriced import REPRICED, as_priced_now
from tests.plain_reports import plain_reports

HERE = Path(__file__).parent / "written_by_0_1_0"
SEED = 41
NAMES = sorted(path.stem for path in HERE.glob("*.json"))
SLOW = ("entangled", "bounds", "two-margins", "weighted")  # many seconds each
# One record changes its mean by 110 / n now, and by 109 / n then: there is more noise now.
WIDER = "statistics-edges"
DRAWN = [
    pytest.param(name, marks=pytest.mark.audit if name in SLOW else ())
    for name in NAMES
    if not name.startswith("ledger-") and name != WIDER
]
# A label that a spreadsheet takes for a formula, in the data dictionary: then, and as it is now.
APOSTROPHE = (",-100 to -1,", ",'-100 to -1,")
WITH_APOSTROPHE = ("synthetic", "synthetic-partial", "synthetic-plain", "synthetic-several-rows")


def said(name: str) -> dict[str, Any]:
    """What 0.1.0 said of a fixture."""
    return dict(json.loads((HERE / f"{name}.json").read_text()))


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a fixture; read it, do not change it."""
    place = tmp_path_factory.mktemp("written-by-0-1-0")

    def unpack(name: str) -> Path:
        folder = place / name
        if not folder.exists():
            with zipfile.ZipFile(HERE / f"{name}.zip") as file:
                file.extractall(folder)
        return folder

    return unpack


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with plain_reports():
        yield


@pytest.mark.parametrize("name", NAMES)
def test_verify_takes_no_bundle_of_another_version(
    unpacked: Callable[[str], Path], name: str
) -> None:
    """Only the version that wrote a bundle can write its words anew; files are as released."""
    for bundle, then in said(name)["bundles"].items():
        checks = verify(unpacked(name) / "bundles" / bundle, then["digest"])
        assert [one.what for one in checks if not one.holds] == [OURS]


@pytest.mark.parametrize("name", NAMES)
def test_the_promises_in_words(unpacked: Callable[[str], Path], name: str) -> None:
    for bundle, then in said(name)["bundles"].items():
        told = run("explain", unpacked(name) / "bundles" / bundle, "--json")
        assert told["promises"] == then["explain"]


@pytest.mark.parametrize("name", NAMES)
def test_prices_and_digests(unpacked: Callable[[str], Path], name: str) -> None:
    then, plan = as_priced_now(name, said(name)), unpacked(name) / "plan.toml"
    read = Plan.load(plan)
    assert read.schema.digest == then["digests"]["schema"]
    if not read.file_digests:  # 0.1.0 left the files that a plan names out of its digest
        assert read.digest == then["digests"]["plan"]
    told = run("ledger", "export", plan, "--json")
    assert {key: told[key] for key in then["ledger"]} == then["ledger"]
    spent = Ledger.open(plan.parent / "ledger.sqlite").spent()
    for key in ("epsilon", "rho"):
        assert str(getattr(spent, key)) == then["loss"][key]
    if "reassess" in then:
        assert run("reassess", plan, "--json") == then["reassess"]


def test_what_was_pending(unpacked: Callable[[str], Path]) -> None:
    plan = unpacked("ledger-unfinished") / "plan.toml"
    pending = run("ledger", "pending", plan, "--json")["pending"]
    assert pending == said("ledger-unfinished")["pending"]
    assert {one["status"] for one in pending} == {"reserved", "drawn"}


def _as_meant_by_0_1_0(plan: str) -> str:
    """Statistics without `confidence` had noise that did not allow for the error of the fit."""
    return plan.replace("\nstatistics = ", '\nconfidence = "off"\nstatistics = ')


def as_drawn(files: dict[str, str]) -> dict[str, Any]:
    """Tables without the printed counts, which 0.1.0 made nonnegative cell by cell, and files
    without the columns of errors, most of which 0.1.0 did not write.
    """

    def drawn(content: str) -> Any:
        rows = list(csv.reader(io.StringIO(content)))
        left_out = {"standard_error", "sd", "low", "high"}
        left_out |= {"count"} if "count_as_drawn" in rows[0] else set()
        kept = [at for at, name in enumerate(rows[0]) if name not in left_out]
        return [[row[at] for at in kept] for row in rows]

    told = ("table.csv", "statistics.csv")
    return {name: drawn(text) if name in told else text for name, text in files.items()}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_from_the_same_words(
    unpacked: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Publish and release again, from the seed that 0.1.0 drew from, and with its noise."""
    for release, files in said(name)["draws"].items():
        folder = tmp_path / release
        folder.mkdir()
        for path in unpacked(name).iterdir():
            if path.suffix in (".toml", ".csv"):
                shutil.copy(path, folder)
        plan = folder / "plan.toml"
        plan.write_text(_as_meant_by_0_1_0(plan.read_text()))
        if Plan.load(plan).publish:
            run("publish", plan)
        with monkeypatch.context() as patch:
            if name in REPRICED and release == REPRICED[name].release:
                chosen = REPRICED[name].chosen
                patch.setattr(congenial_mechanism, "largest_eps_cell", chosen)
            run("release", plan, "--name", release, "--seed", SEED)
        bundle = folder / "bundles" / release
        written = {file: (bundle / file).read_text() for file in files}
        if name in WITH_APOSTROPHE:
            assert files["dictionary.csv"].count(APOSTROPHE[0]) == 1
            files["dictionary.csv"] = files["dictionary.csv"].replace(*APOSTROPHE)
        assert as_drawn(written) == as_drawn(files)
