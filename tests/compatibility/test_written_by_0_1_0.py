"""What version 0.1.0 wrote is read, verified, priced and drawn as it was then; forgeries are not.

The fixtures and what 0.1.0 said of them were made by write_fixtures.py.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from congenial import Ledger, Plan, verify
from congenial.mechanisms import congenial as congenial_mechanism
from congenial.mechanisms.single_table_release import table_csv
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
# Written anew, and so compared word for word, by the version that wrote them only.
WORDS = {f"{name} says nothing else" for name in ("README.txt", "CITATION.cff", "report.html")}
# A line of its own then, and now a reason not to read the bundle (see `without_drawn_counts`).
READ_NOW = {"values that were projected come with those drawn"}
ADDED = {  # lines that 0.1.0 did not have
    "the bundle lists its own files and no others",
    "it says when it was made, and nothing it need not say",
    "printed counts follow from those drawn",
}
# A label that a spreadsheet takes for a formula, in the data dictionary: then, and as it is now.
APOSTROPHE = (",-100 to -1,", ",'-100 to -1,")
WITH_APOSTROPHE = ("synthetic", "synthetic-partial", "synthetic-plain", "synthetic-several-rows")


def said(name: str) -> dict[str, Any]:
    """What 0.1.0 said of a fixture."""
    return dict(json.loads((HERE / f"{name}.json").read_text()))


# 0.1.0 stated its promises in other words.
REWORDED = {
    "the promise in words is the one in numbers",
    "the promise is about the pairs it names",
    "README.txt and report.html state that promise",
}


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
def test_the_lines_of_verify(unpacked: Callable[[str], Path], name: str) -> None:
    """All that 0.1.0 checked, but for the words that only it can write anew."""
    for bundle, then in said(name)["bundles"].items():
        folder = unpacked(name) / "bundles" / bundle
        now = [[one.what, bool(one.holds)] for one in verify(folder, then["digest"])]
        now.remove(["release.json matches the digest you gave", True])
        kept = [line for line in then["verify"] if line[0] not in WORDS | READ_NOW | REWORDED]
        assert [line for line in now if line[0] not in ADDED | REWORDED] == kept
        assert all(holds for what, holds in now if what not in REWORDED)


@pytest.mark.parametrize("name", NAMES)
def test_prices_and_digests(unpacked: Callable[[str], Path], name: str) -> None:
    then, plan = as_priced_now(name, said(name)), unpacked(name) / "plan.toml"
    read = Plan.load(plan)
    assert {"plan": read.digest, "schema": read.schema.digest} == then["digests"]
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


# ---- tampered twins ------------------------------------------------------------------------------

TWINS = {
    "plain": "auto",
    "nested": "projected",
    "crossing": "auto",
    "bounds": "conditioned",
    "given-public": "prior",
    "statistics-optimum": "quarter",
    "synthetic": "people",
}
Change = Callable[[dict[str, Any], Path], None]


def less_loss(index: dict[str, Any], _: Path) -> None:
    told = index["guarantee"]["tradeoff"]
    key = "epsilon" if "epsilon" in told else "rho"
    told[key] = str(Fraction(told[key]) / 10)


def other_mechanism(index: dict[str, Any], _: Path) -> None:
    index["description"]["mechanism"] = "no such thing"


def other_footing(index: dict[str, Any], _: Path) -> None:
    basis = index["guarantee"]["basis"]
    index["guarantee"]["basis"] = "estimate" if basis == "theorem" else "theorem"


def dropped_file(_: dict[str, Any], folder: Path) -> None:
    (folder / "published.csv").unlink()


def extra_file(_: dict[str, Any], folder: Path) -> None:
    (folder / "more.txt").write_text("more\n")


def other_table(_: dict[str, Any], folder: Path) -> None:
    """The last number of the released text, in the text alone."""
    path = next(one for one in sorted(folder.glob("*.csv")) if one.name != "published.csv")
    text = path.read_text()
    path.write_text(text.rstrip("\n") + "7\n")


def negative_error(index: dict[str, Any], _: Path) -> None:
    index["description"]["numerics"]["H"] = -1.0


def other_parameter(index: dict[str, Any], _: Path) -> None:
    told = index["description"]["parameter"]
    for key, value in told.items():
        told[key] = str(Fraction(value) * 2)


def unprojected(index: dict[str, Any], _: Path) -> None:
    index["description"]["post_processing"] = (
        "none" if index["description"]["post_processing"] == "project" else "project"
    )


def other_figure(_: dict[str, Any], folder: Path) -> None:
    path = folder / "published.json"
    told = json.loads(path.read_text())
    one = next(one for one in told["statements"] if one["relation"] == "=")
    values = one["values"]
    one["values"] = [values[0] + 1, *values[1:]] if isinstance(values, list) else values + 1
    path.write_text(json.dumps(told))


PROMISE = "the promise follows from the description"
READ = "the bundle can be read"
FIGURES = "the table agrees with every figure it was drawn given"
FITTED = "printed counts follow from those drawn"
# What is changed, and the lines of `verify` that then do not hold; all others do.
EVERY: dict[Change, set[str]] = {
    less_loss: {PROMISE},
    other_mechanism: {READ},
    other_footing: {PROMISE},
    dropped_file: {"published.csv is as released"},
    extra_file: {"nothing was added"},
}
OF_TABLES: dict[Change, set[str]] = {
    other_table: {"table.csv says the same"},
    negative_error: {READ},
    other_parameter: {PROMISE},
    unprojected: {READ},
}
OTHERWISE: dict[tuple[str, Change], set[str]] = {
    ("statistics-optimum", less_loss): {"the noise hides every pair of laws"},
    ("given-public", other_mechanism): {PROMISE},
    ("statistics-optimum", other_mechanism): {PROMISE},
    ("synthetic", other_mechanism): {PROMISE},
}


def twin(folder: Path, copy: Path, change: Change, *, refit: bool = True) -> Path:
    """A changed copy whose digests say that nothing was."""
    shutil.copytree(folder, copy)
    index = json.loads((copy / "release.json").read_text())
    change(index, copy)
    if refit:
        for name in index["files"]:
            if (copy / name).exists():
                index["files"][name] = digest(copy / name)
        (copy / "release.json").write_text(json.dumps(index))
        (copy / "DIGEST.txt").write_text(digest(copy / "release.json") + "\n")
    return copy


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


CASES = [(name, change, lines) for name in TWINS for change, lines in EVERY.items()]
CASES += [(name, change, lines) for name in list(TWINS)[:4] for change, lines in OF_TABLES.items()]
CASES += [(n, other_figure, {READ}) for n in ("nested", "crossing", "bounds", "given-public")]


def refusing(bundle: Path) -> set[str]:
    """The lines of `verify` that do not hold, but for those about the words of a promise."""
    return {one.what for one in verify(bundle) if not one.holds} - REWORDED


@pytest.mark.parametrize(("name", "change", "lines"), CASES)
def test_twins_are_refused(
    unpacked: Callable[[str], Path], tmp_path: Path, name: str, change: Change, lines: set[str]
) -> None:
    bundle = unpacked(name) / "bundles" / TWINS[name]
    same = twin(bundle, tmp_path / "same", lambda *_: None)
    assert refusing(same) == set()  # the control: refitting alone is not noticed
    found = refusing(twin(bundle, tmp_path / "other", change))
    assert found == OTHERWISE.get((name, change), lines)


def test_what_one_record_changes_is_taken_as_the_version_that_wrote_it_did(
    unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    """0.1.0 refused 109.5 below a last edge of 110; versions after it do not."""
    bundle = unpacked(WIDER) / "bundles" / "quarter"
    assert refusing(bundle) == set()

    def by_another(index: dict[str, Any], _: Path) -> None:
        index["software"] = "congenial 0.2.0"

    found = refusing(twin(bundle, tmp_path / "other", by_another))
    assert found == {"what persons are promised follows from the noise"}


# ---- twins whose CSV and Parquet still say the same ----------------------------------------------

Rows = list[dict[str, Any]]


def retold(change: Callable[[Rows], None]) -> Change:
    """A change of the released table in both of its files."""

    def apply(_: dict[str, Any], folder: Path) -> None:
        table = pq.read_table(folder / "table.parquet")
        rows = table.to_pylist()
        change(rows)
        fields = [field for field in table.schema if field.name in rows[0]]
        table = pa.Table.from_pylist(rows, pa.schema(fields))
        pq.write_table(table, folder / "table.parquet")
        (folder / "table.csv").write_bytes(table_csv(table))

    return apply


def one_more(rows: Rows) -> None:
    rows[0]["count"] += 1


def one_more_drawn(rows: Rows) -> None:
    rows[0]["count_as_drawn"] += 1


def one_moved(rows: Rows) -> None:
    """From one cell of a published total to another."""
    rows[1]["count"], rows[2]["count"] = rows[1]["count"] - 1, rows[2]["count"] + 1


def without_drawn_counts(rows: Rows) -> None:
    for row in rows:
        del row["count_as_drawn"]


def unchanged(_: Rows) -> None:
    """The control."""


NEGATIVE = {"counts said to be nonnegative are", "the table keeps every published bound"}


@pytest.mark.parametrize(
    ("name", "release", "change", "lines"),
    [
        ("nested", "auto", unchanged, set()),
        ("nested", "projected", unchanged, set()),
        ("nested", "auto", one_more, {FIGURES}),
        ("nested", "projected", one_more, {FIGURES, FITTED}),
        ("nested", "projected", one_more_drawn, {FIGURES, FITTED}),
        ("crossing", "projected", one_moved, {FIGURES, FITTED}),
        ("bounds", "projected", one_moved, {*NEGATIVE, FITTED}),
        ("plain", "projected", without_drawn_counts, {READ}),
        ("nested", "projected", without_drawn_counts, {READ}),
        ("bounds", "projected", without_drawn_counts, {READ}),
    ],
)
def test_tables_changed_in_both_files(
    unpacked: Callable[[str], Path],
    tmp_path: Path,
    name: str,
    release: str,
    change: Callable[[Rows], None],
    lines: set[str],
) -> None:
    bundle = unpacked(name) / "bundles" / release
    assert refusing(twin(bundle, tmp_path / "copy", retold(change))) == lines


def test_counts_that_keep_every_figure_need_a_digest(
    unpacked: Callable[[str], Path], tmp_path: Path
) -> None:
    """Other noise is as good as the noise that was drawn: only a digest published elsewhere, or a
    signature, tells them apart.
    """
    then = said("nested")["bundles"]["auto"]
    copy = twin(unpacked("nested") / "bundles" / "auto", tmp_path / "copy", retold(one_moved))
    assert refusing(copy) == set()
    assert not all(one.holds for one in verify(copy, then["digest"]))
