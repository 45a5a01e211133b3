"""Bad input and faults: a clear message, the right code, nothing half-written, nothing leaked."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from congenial.data.tabulate import Microdata
from congenial.errors import BundleError, DataError
from congenial.kinds.kind import Kind
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.publication import bundle, workflow
from congenial.publication.claim import Claim
from tests.cli.conftest import write_people

MARKER = "S3CR3T-9137"
MARKER_COUNT = 271828
SEED = 11


def change(plan: Path, old: str, new: str) -> None:
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new, 1))


def leftovers(plan: Path) -> list[str]:
    """What is beside a plan, apart from the plan, its data and its ledger."""
    inside = plan.parent.rglob("*")
    known = ("plan.toml", "people.csv", "ledger.sqlite")
    return sorted(str(p.relative_to(plan.parent)) for p in inside if p.name not in known)


# ---- the plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[data]", "[data", "not valid TOML"),
        ("epsilon = 1.0", "epsilon = -1.0", "must be positive"),
        ('"age >= 18"', '"age >= 19"', "cuts the class"),
    ],
)
def test_a_malformed_plan_is_refused(
    run: Callable[..., Any], plan: Path, old: str, new: str, told: str
) -> None:
    change(plan, old, new)
    """By every command; what else is wrong with a plan is in tests/golden/errors.txt."""
    for command in ("check", "publish", "release", "explain"):
        ran = run(command, plan)
        assert ran.code == 2, command
        assert ran.err.startswith("error: ")
        assert told in ran.err
        assert ran.out == ""
        assert "Traceback" not in ran.err
    assert not (plan.parent / "ledger.sqlite").exists()
    assert leftovers(plan) == []


def test_nothing_left_to_protect(run: Callable[..., Any], plan: Path) -> None:
    change(plan, "{ total = true, by", '{ margin = ["county", "sex", "age"], x')
    change(plan, ', x = ["county"]', "")
    ran = run("check", plan)
    assert ran.code == 2
    assert "nothing is left to protect" in ran.err


# ---- the data ------------------------------------------------------------------------------------


def test_an_unknown_column(run: Callable[..., Any], plan: Path) -> None:
    change(plan, "sex = {", "gender = {")
    change(plan, '"county", "sex", "age"', '"county", "gender", "age"')
    ran = run("publish", plan)
    assert ran.code == 3
    assert "'gender'" in ran.err


def test_missing_and_empty_data(run: Callable[..., Any], plan: Path) -> None:
    (plan.parent / "people.csv").write_text("id,county,sex,age\n")
    ran = run("publish", plan)
    assert ran.code == 3
    assert "no records" in ran.err
    (plan.parent / "people.csv").unlink()
    assert run("publish", plan).code == 3
    assert not (plan.parent / "ledger.sqlite").exists()
    assert leftovers(plan) == []


def test_mandates_that_the_data_contradict(run: Callable[..., Any], plan: Path) -> None:
    zero = '[publish]\n"Nobody" = { structural_zeros = "sex = \'m\' and age >= 65" }\n'
    change(plan, "[publish]\n", zero)
    ran = run("publish", plan)
    assert ran.code == 2
    assert "Nobody" in ran.err
    assert "Correct the data or leave out the figure." in ran.err
    change(plan, zero, '[publish]\n"Few" = { total = true, at_most = 3 }\n')
    change(plan, "epsilon = 0.5\n", 'epsilon = 0.5\nnonnegative = "project"\n')
    assert "Correct the data, change the bound or leave out the figure." in run("publish", plan).err
    assert leftovers(plan) == []


def test_data_that_changed_since_they_were_published(run: Callable[..., Any], plan: Path) -> None:
    assert run("publish", plan).code == 0
    before = run("ledger", "export", plan).out
    write_people(plan.parent / "people.csv", lambda row: row.update(county="A"))
    for command in ("publish", "release"):
        ran = run(command, plan)
        assert ran.code == 2, command
        assert ran.err.startswith("error: ")
    assert run("ledger", "export", plan).out == before  # nothing was spent


# ---- folders, bundles, budget, ledger ------------------------------------------------------------


def test_an_unwritable_folder(run: Callable[..., Any], plan: Path) -> None:
    assert run("publish", plan).code == 0
    (plan.parent / "file").write_text("")
    ran = run("release", plan, "--out", plan.parent / "file" / "inside")
    assert ran.code == 6
    assert "cannot be written to" in ran.err
    assert run("ledger", "show", plan, "--json").document["releases"] == []
    for words in (("init", plan.parent / "people.csv"), ("demo",)):
        ran = run(*words, "--out", plan.parent / "file" / "inside")
        assert ran.code in (2, 6)
        assert "error: " in ran.err


def test_an_existing_bundle_is_not_overwritten(run: Callable[..., Any], finished: Path) -> None:
    spent = run("ledger", "show", finished, "--json").document
    ran = run("release", finished)  # 'detail' is there already, so 'summary' is not drawn either
    assert ran.code == 6
    assert "never overwritten" in ran.err
    assert run("ledger", "show", finished, "--json").document == spent


def test_beyond_the_budget(run: Callable[..., Any], plan: Path) -> None:
    change(plan, "epsilon = 2.0", "epsilon = 1.2")
    assert "does not allow" in run("check", plan).out
    assert run("publish", plan).code == 0
    ran = run("release", plan, "--json")
    assert ran.code == 5
    assert "Nothing was drawn" in ran.err
    assert not (plan.parent / "bundles").exists()
    assert run("release", plan, "--name", "detail", "--json").code == 0
    assert run("release", plan, "--name", "summary").code == 5
    statuses = [one["status"] for one in run("ledger", "show", plan, "--json").document["releases"]]
    assert statuses == ["committed"]
    assert not (plan.parent / "bundles" / "summary").exists()


def test_a_locked_ledger(
    run: Callable[..., Any], plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("publish", plan).code == 0
    monkeypatch.setattr(workflow, "open_ledger", partial(workflow.open_ledger, timeout=0.2))
    other = sqlite3.connect(plan.parent / "ledger.sqlite", isolation_level=None)
    try:
        other.execute("BEGIN EXCLUSIVE")
        ran = run("release", plan)
    finally:
        other.close()
    assert ran.code == 4
    assert ran.err.startswith("error: ")
    assert not (plan.parent / "bundles").exists()


def test_a_file_that_is_no_ledger(run: Callable[..., Any], plan: Path) -> None:
    (plan.parent / "ledger.sqlite").write_text("not a ledger")
    for words in (("check", plan), ("publish", plan), ("ledger", "show", plan)):
        assert run(*words).code == 4
    (plan.parent / "ledger.sqlite").unlink()
    assert run("ledger", "show", plan).code == 4


def test_a_folder_that_is_no_bundle(run: Callable[..., Any], tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        ran = run("verify", folder)
        assert ran.code == 6
        assert f"there is no bundle in '{folder}'" in ran.err
    (tmp_path / "DIGEST.txt").write_text("0\n")  # a bundle that lost its release.json
    assert "cannot be read." in run("verify", tmp_path).err
    assert run("explain", tmp_path).code == 6
    assert run("explain", tmp_path / "absent.toml").code == 2


# ---- unexpected errors, and leaks ----------------------------------------------------------------


def test_an_unexpected_error_says_only_its_type(
    run: Callable[..., Any], plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError(MARKER)

    monkeypatch.setattr(workflow, "check", fail)
    ran = run("check", plan)
    assert ran.code == 70
    assert ran.err == "unexpected error (ValueError). Run it again with `congenial --debug`.\n"
    assert isinstance(run("--debug", "check", plan).exception, ValueError)


@pytest.mark.parametrize("when", ["draw", "keep", "write"])
def test_an_unexpected_error_after_the_draw_says_what_is_spent(
    run: Callable[..., Any], plan: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Nobody foresaw it, so the code stays 70; but it must not look as if nothing had happened."""

    def fail(*_: object, **__: object) -> None:
        raise ValueError(MARKER)

    assert run("publish", plan).code == 0
    at = {
        "draw": (MeasuredTables, "release_each"),
        "keep": (Claim, "keep"),
        "write": (bundle, "write"),
    }
    monkeypatch.setattr(*at[when], fail)
    ran = run("release", plan, "--name", "detail")
    monkeypatch.undo()
    assert ran.code == 70
    assert ran.err.startswith(
        "unexpected error (ValueError). Run it again with `congenial --debug`.\n"
        "'detail' (epsilon = 1) "
    )
    assert MARKER not in ran.err
    told = " ".join(ran.err.split())
    if when == "write":
        assert "was drawn and its cost is spent. It is saved in" in told
        assert "congenial ledger finish PLAN" in told
        assert run("ledger", "finish", plan).code == 0
        assert run("verify", plan.parent / "bundles" / "detail").code == 0
    else:
        assert (
            "counts as spent, because its noise may have been drawn, and it could not be saved"
            in told
        )
        assert "congenial ledger pending" in told


@pytest.mark.parametrize("clean_up", [OSError(5, MARKER), DataError(MARKER)])
def test_clean_up_that_fails_hides_no_spent_draw(
    run: Callable[..., Any], plan: Path, monkeypatch: pytest.MonkeyPatch, clean_up: Exception
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    offer = Kind.offer

    @contextmanager
    def offered(*given: Any) -> Iterator[Any]:
        with offer(*given) as made:
            try:
                yield made
            finally:
                raise clean_up

    assert run("publish", plan).code == 0
    monkeypatch.setattr(MeasuredTables, "release_each", full)
    monkeypatch.setattr(Kind, "offer", offered)
    ran = run("release", plan, "--name", "detail")
    monkeypatch.undo()
    assert ran.code == (70 if isinstance(clean_up, OSError) else 3)
    told = " ".join(ran.err.split())
    assert (
        told.count("'detail' (epsilon = 1) counts as spent, because its noise may have been drawn")
        == 1
    )
    assert "No space left on device" in told


def test_data_are_closed_before_anything_is_spent(
    run: Callable[..., Any], plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DataError("the disk is gone.")

    assert run("publish", plan).code == 0
    monkeypatch.setattr(MeasuredTables, "release_each", lambda *_: pytest.fail("drew"))
    monkeypatch.setattr(Microdata, "__exit__", fail)
    ran = run("release", plan, "--name", "detail")
    monkeypatch.undo()
    assert ran.code == DataError.exit_code
    assert "spent" not in ran.err
    assert run("release", plan, "--name", "detail", "--seed", 1).code == 0


@pytest.mark.parametrize("error", [None, BundleError("first.")])
def test_closing_the_data_hides_no_error(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """Nor does it fail what is done: the Spark session may be gone once a release is out."""

    def fail(*_: object, **__: object) -> None:
        raise DataError("the Spark session is gone.")

    monkeypatch.setattr(Microdata, "close", fail)
    data = Microdata.__new__(Microdata)
    with nullcontext() if error is None else pytest.raises(BundleError, match="first"), data:
        if error is not None:
            raise error


def test_debug_shows_the_traceback_of_an_intended_error(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "congenial.cli", "--debug", "check", str(tmp_path / "absent")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert "Traceback" in done.stderr
    assert "PlanError" in done.stderr
    assert done.returncode != 0


def everything(folder: Path, *texts: str) -> str:
    """All that a folder and some output would tell a reader, Parquet and SQLite spelled out."""
    import pyarrow.parquet as pq

    told = list(texts)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix == ".parquet":
            told.append(json.dumps(pq.read_table(path).to_pylist()))
        elif path.is_file():
            told.append(path.read_bytes().decode("utf-8", "replace"))
    return "\n".join(told)


def test_a_level_outside_the_schema_is_never_shown(run: Callable[..., Any], plan: Path) -> None:
    def plant(row: dict[str, Any]) -> None:
        if row["id"] == 3:
            row["sex"] = MARKER

    write_people(plan.parent / "people.csv", plant)
    assert MARKER in everything(plan.parent)  # the scan sees it in the data
    source = (plan.parent / "people.csv").read_text()
    published = run("publish", plan)
    assert published.code == 3  # the figures do not look at sex, but a release will
    assert not (plan.parent / "published").exists()
    for command in (("release", plan), ("check", plan), ("init", plan.parent / "people.csv")):
        out = ["--out", plan.parent / "draft.toml"] if command[0] == "init" else []
        ran = run(*command, *out)
        assert ran.code == (2 if command[0] == "release" else 0)
        assert MARKER not in ran.out + ran.err
    (plan.parent / "people.csv").unlink()
    assert MARKER not in everything(plan.parent, published.out, published.err)
    assert MARKER in source


def test_a_confidential_count_is_never_shown(run: Callable[..., Any], plan: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    others = [(county, sex, age) for county in "AB" for sex in "fm" for age in (3, 40)]
    people = [("A", "f", 20)] * MARKER_COUNT + others
    county, sex, age = zip(*people, strict=True)
    table = pa.table({"county": county, "sex": sex, "age": age, "id": range(len(people))})
    data = plan.parent / "people.parquet"
    pq.write_table(table, data)
    change(plan, "people.csv", "people.parquet")
    for much, little in (("epsilon = 1.0", "epsilon = 0.02"), ("epsilon = 0.5", "epsilon = 0.01")):
        change(plan, much, little)  # so that noise of exactly zero is no likely accident
    texts = []
    for words in (("publish",), ("check",), ("release", "--seed", SEED), ("explain",)):
        ran = run(words[0], plan, *words[1:])
        assert ran.code == 0, ran.err
        texts += [ran.out, ran.err]
    assert run("verify", plan.parent / "bundles" / "detail").code == 1  # because of the seed alone
    data.unlink()
    (plan.parent / "people.csv").unlink()
    told = everything(plan.parent, *texts)
    assert str(len(people) - 4) in told  # county A's total is public: the scan sees numbers
    assert str(MARKER_COUNT) not in told


def test_init_lists_levels_only_on_request(run: Callable[..., Any], tmp_path: Path) -> None:
    with (tmp_path / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "job"), (1, MARKER), (2, "baker")])
    plain = run("init", tmp_path / "people.csv", "--out", tmp_path / "plain.toml")
    assert MARKER not in plain.out + plain.err + (tmp_path / "plain.toml").read_text()
    asked = run(
        "init", tmp_path / "people.csv", "--out", tmp_path / "asked.toml", "--levels-from-data"
    )
    assert "which values occur" in asked.err
    assert MARKER in (tmp_path / "asked.toml").read_text()
    assert run("init", tmp_path / "people.csv", "--out", tmp_path / "asked.toml").code == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            '"Population" = { total = true, by = ["county"], because = "statute" }\n'
            '"Adults" = { count = "age >= 18", by = ["county"] }',
            '"Some" = { count = "age >= 18", at_least = 1 }',
        ),
        ('nonnegative = "project"', 'nonnegative = "project"\nmechanism = "plain_laplace"'),
        ("epsilon = 0.5", "epsilon = 0.0000000001"),
    ],
)
def test_what_check_refuses_is_refused_before_anything_is_published_or_spent(
    run: Callable[..., Any], plan: Path, old: str, new: str
) -> None:
    text = plan.read_text()
    assert old in text
    text = text.replace(old, new)
    if "at_least" in new:  # only whole counts keep a bound
        text = text.replace('nonnegative = "project"', 'nonnegative = "no"')
    if "plain_laplace" in new:
        text = text[: text.index("[publish]")] + text[text.index("[[release]]") :]
    plan.write_text(text)
    assert run("check", plan).code != 0
    run("publish", plan)
    name = "summary" if "0.5" in old else "detail"
    assert run("release", plan, "--name", name).code != 0
    assert not (plan.parent / "bundles").exists()
    ledger = plan.parent / "ledger.sqlite"
    if ledger.exists():
        assert run("ledger", "show", ledger, "--json").document["releases"] == []


def test_a_ledger_that_went_missing_is_no_fresh_budget(run: Callable[..., Any], plan: Path) -> None:
    assert run("publish", plan).code == 0
    (plan.parent / "ledger.sqlite").rename(plan.parent / "elsewhere")
    for command in ("publish", "release"):
        ran = run(command, plan)
        assert ran.code == 4
        assert "how much budget is spent is unknown" in " ".join(ran.err.split())


def test_the_unit_of_the_ledger_is_the_unit_of_the_plan(
    run: Callable[..., Any], plan: Path
) -> None:
    text = plan.read_text()
    text = text[: text.index("[publish]")] + text[text.index("[[release]]") :]
    plan.write_text(text.replace('unit = "id"', 'unit = "id"\nmax_rows = 1'))
    assert run("release", plan, "--name", "summary").code == 0
    plan.write_text(text)
    assert run("release", plan, "--name", "detail").code == 4
