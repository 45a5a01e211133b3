"""No CSV file that we write holds a formula, whatever the labels; older bundles still verify."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pytest

from congenial import read, verify
from congenial.data.text_files import is_formula, original
from congenial.publication import workflow
from congenial.publication.bundle import sha256
from congenial.publication.plan import Plan
from congenial.sampling.randomness import SeededRandomness
from tests.commands import run, write_plan

SEED = 3
LEVELS = ("=1+1", "@SUM(A1)", "'=twice")
PLAN = """
[data]
source = "people.csv"
[schema]
"=place" = { levels = ["=1+1", "@SUM(A1)", "'=twice"] }
change = { integers = [-2, 1] }
[publish]
"+people" = { total = true, because = "-law" }
[[release]]
name = "ages"
table = ["=place", "change"]
epsilon = 1
[[release]]
name = "values"
table = ["=place"]
scenarios = { believe = "independent records" }
base_measure = "naive"
epsilon = 1
[[release]]
name = "records"
epsilon = 1
basis = "theorem"
[release.model]
"=place" = "multinomial"
change = { kind = "multinomial", given = ["=place"] }
[budget]
epsilon = 5
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("formulas")
    with (place / "people.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["=place", "change"])
        out.writerows([LEVELS[i % 3], i % 4 - 2] for i in range(40))
    path = write_plan(place, PLAN)
    run("publish", path)
    for one in Plan.load(path).release:
        workflow.release(Plan.load(path), one.name, randomness=SeededRandomness(SEED))
    return place


def bundles(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("bundles/*/release.json"))


def cells(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


def test_no_cell_is_a_formula_and_numbers_stay_negative(folder: Path) -> None:
    paths = [path for one in bundles(folder) for path in one.glob("*.csv")]
    assert {path.name for path in paths} == {
        "table.csv",
        "values.csv",
        "published.csv",
        "synthetic-1.csv",
        "dictionary.csv",
    }
    for path in paths:
        found = cells(path)
        assert [cell for cell in found if is_formula(cell) and cell[0] != "'"] == []
        assert any(original(cell) != cell for cell in found)
        assert path.name in ("values.csv", "published.csv") or "-2" in found


def test_they_read_and_verify(folder: Path) -> None:
    for one in bundles(folder):
        assert [c.what for c in verify(one) if not c.holds] == [
            "drawn from the system's randomness"
        ]
        assert "apostrophe" in (one / "README.txt").read_text()
    assert read(folder / "bundles" / "records").to_pandas()["=place"].isin(LEVELS).all()


def without_apostrophes(bundle: Path) -> None:
    """The bundle as software that knew no apostrophes wrote it."""
    index = json.loads((bundle / "release.json").read_text())
    for path in bundle.glob("*.csv"):
        text = re.sub(r"(^|[,\n]\"?|; |\")'(?=['=+@-])", r"\1", path.read_text())
        path.write_text(text)
        index["files"][path.name] = sha256(path.read_bytes())
    content = (json.dumps(index, indent=1, ensure_ascii=False) + "\n").encode()
    (bundle / "release.json").write_bytes(content)
    (bundle / "DIGEST.txt").write_text(sha256(content) + "\n")


def test_files_without_apostrophes_are_refused(folder: Path, tmp_path: Path) -> None:
    for one in bundles(folder):
        again = tmp_path / one.name
        shutil.copytree(one, again)
        without_apostrophes(again)
        failed = {c.what for c in verify(again) if not c.holds}
        assert failed > {"drawn from the system's randomness"}
