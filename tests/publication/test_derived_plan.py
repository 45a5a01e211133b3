"""Plans that derive columns: keys, digests, and the whole way from raw data to a bundle."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from congenial.errors import PlanError
from congenial.publication.plan import Plan
from tests.commands import refused, run, write_plan
from tests.confidentiality.scan import told

PLAIN = """
[data]
source = "people.csv"
unit = "id"
[schema]
sex = { levels = ["f", "m"] }
age = { edges = [0, 18], top = "18+", whole = true }
[publish]
"Population" = { total = true }
[[release]]
name = "made"
table = ["sex", "age"]
epsilon = 1
[budget]
epsilon = 2
"""
# As the first version computed it, which ledgers and signatures hold.
PLAIN_DIGEST = "3bca0c210023c73aa7d416360b3571ca821f0139ae64292cc3b5b91494f97a0d"
DERIVED = PLAIN.replace(
    "[schema]",
    """separator = "^"
encoding = "cp1252"
[derive]
sex = { recode = "geschlechtscode", to_file = "codes.csv" }
age = { age = "born", at = 2020-04-01, format = "%d.%m.%Y" }
[schema]""",
)
MARK = "S3CR3Tß"


def raw(folder: Path) -> None:
    rows = ["id^geschlechtscode^born^name"]
    rows += [f"{n}^{1 + n % 2}^0{1 + n % 9}.02.{1950 + 9 * (n % 7)}^{MARK}" for n in range(40)]
    (folder / "people.csv").write_text("\n".join(rows) + "\n", encoding="cp1252")
    (folder / "codes.csv").write_text("found,wanted\n1,f\n2,m\n")


def test_the_whole_way_from_raw_data(tmp_path: Path) -> None:
    raw(tmp_path)
    plan = write_plan(tmp_path, DERIVED)
    assert run("data", plan, "--json")["fits"]
    run("publish", plan)
    run("release", plan)
    run("verify", tmp_path / "bundles" / "made")
    text = told(tmp_path / "bundles", tmp_path / "published")
    for word in (MARK, "geschlechtscode", "born", "codes.csv", "cp1252", "data-check"):
        assert word not in text, word


def test_the_check_is_private_and_says_so(tmp_path: Path) -> None:
    raw(tmp_path)
    faulty = DERIVED.replace('levels = ["f", "m"]', 'levels = ["f"]')
    plan = write_plan(tmp_path, faulty)
    with (tmp_path / "people.csv").open("a", encoding="cp1252") as file:
        file.write(f"99^{MARK}^02.02.1990^x\n")
    quiet = run("data", plan, code=1)
    folder = tmp_path / "data-check"
    assert "CONFIDENTIAL" in quiet
    assert MARK not in quiet + told(folder)  # values only on request
    loud = run("data", plan, "--examples", 2, code=1)
    assert MARK in loud
    assert MARK in told(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}
    assert json.loads((folder / "problems.json").read_text())["note"].startswith("CONFIDENTIAL")


def test_never_in_a_bundle(tmp_path: Path) -> None:
    raw(tmp_path)
    plan = write_plan(tmp_path, DERIVED)
    run("publish", plan)
    run("release", plan)
    inside = tmp_path / "bundles" / "made" / "data"
    run("data", plan, "--out", inside, code=6)
    assert not inside.exists()


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ('{ year = "a", month = "b" }', "exactly one of"),
        ('{ age = "born" }', "at = 2020-04-01"),
        ('{ age = "born", at = "soon" }', "a date such as"),
        ('{ year = "born", at = 2020-04-01 }', "cannot be used with year"),
        ('{ join = ["a"] }', "two or more"),
        ('{ recode = "a" }', "recode needs"),
        ('{ tidy = "a" }', "trim, case or width"),
        ('{ tidy = "a", case = "levels", width = 2 }', "leave out width"),
        ('{ number = "a", decimal = ",", thousands = "," }', "different characters"),
        ('{ yeer = "a" }', "Did you mean 'year'"),
        ('{ recode = "a", to_file = "none.csv" }', "cannot be read"),
        ('{ recode = "a", to_file = "three.csv" }', "two columns"),
        ('{ recode = "a", to_file = "twice.csv" }', "twice"),
    ],
)
def test_entries_that_derive_nothing(tmp_path: Path, entry: str, match: str) -> None:
    (tmp_path / "three.csv").write_text("a,b\n1,2,3\n")
    (tmp_path / "twice.csv").write_text("a,b\n1,2\n1,3\n")
    text = PLAIN.replace("[schema]", f"[derive]\nsex = {entry}\n[schema]")
    with pytest.raises(PlanError, match=match):
        _ = Plan.parse(text, tmp_path).source


def test_formats_are_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of data says so as a release would, and before an engine is started."""
    opened = list[object]()
    monkeypatch.setattr("congenial.data.engines.spark_source.open_spark", opened.append)
    text = PLAIN.replace('source = "people.csv"', 'source = "spark:people"\nencoding = "cp1252"')
    plan = write_plan(tmp_path, text)
    (problem,) = run("data", plan, "--json", code=1)["problems"]
    assert problem["kind"] == "file"
    assert "for files, not for databases" in problem["words"]
    assert "for files, not for databases" in refused(plan, "publish", code=3)
    assert not opened
