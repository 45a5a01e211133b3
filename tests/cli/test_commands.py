"""Every command does what its help says, for people and as JSON."""

from __future__ import annotations

import csv
import gc
import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import congenial
from congenial.cli import output
from congenial.cli.output import clean
from congenial.publication.check_document import words

COMMANDS = (
    *("init", "check", "publish", "release", "verify", "explain", "reassess", "infer", "curve"),
    *("audit", "sign", "utility", "reproduce", "convert", "demo", "estimate", "export", "site"),
    *("propose", "approve", "compare"),
    "data",
)
LEDGER = ("show", "pending", "abandon", "budget", "export", "grant", "repair")


@pytest.mark.parametrize("command", [(c,) for c in COMMANDS] + [("ledger", c) for c in LEDGER])
def test_every_command_has_help_with_an_example_and_json(
    run: Callable[..., Any], command: tuple[str, ...]
) -> None:
    ran = run(*command, "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    assert f"congenial {' '.join(command)}" in ran.out
    assert "--json" in ran.out
    assert len(ran.out.splitlines()) <= 40  # one screen


def test_the_list_of_commands_above_is_complete(run: Callable[..., Any]) -> None:
    listed = run("--help").out.split("\nPlan:")[1].split("Example")[0]
    panels = listed.splitlines()
    assert [line for line in panels if line.endswith(":")] == [
        *("Publish:", "Read a release:", "Study:", "Manage:")
    ]
    assert {line.split()[0] for line in panels if line[:1] == " " and line.strip()} == {
        *COMMANDS,
        "ledger",
        "schema",  # prints JSON without being asked
        "desk",  # serves pages, and prints a link
    }


def test_from_plan_to_verified_bundle(run: Callable[..., Any], plan: Path) -> None:
    before = run("check", plan, "--json").document
    assert before["basis"].startswith("worst case")
    published = run("publish", plan, "--json")
    assert published.code == 0
    figures = {figure["label"]: figure["cells"] for figure in published.document["figures"]}
    rows = list(csv.DictReader(io.StringIO((plan.parent / "people.csv").read_text())))
    adults = [row for row in rows if int(row["age"]) >= 18]
    for label, people in (("Population", rows), ("Adults", adults)):
        expected = [
            {"for": [county], "value": sum(row["county"] == county for row in people)}
            for county in "ABC"
        ]
        assert figures[label] == expected
    after = run("check", plan, "--json").document
    assert after["basis"].startswith("exact")
    released = run("release", plan, "--json")
    assert released.code == 0
    done = released.document["releases"]
    assert [one["name"] for one in done] == ["detail", "summary"]
    assert all(one["publishable"] for one in done)
    for one in done:
        checked = run("verify", one["folder"], "--digest", one["digest"], "--json")
        assert checked.code == 0
        assert checked.document["holds"]
        assert Path(one["report"]).is_file()
    final = run("check", plan, "--json").document["budget"]
    assert final["spent"] == "epsilon = 1.5"
    assert final["asked_by"] == []
    assert final["left"] == "epsilon = 0.5"


def test_check_shows_what_a_curator_needs(run: Callable[..., Any], plan: Path) -> None:
    document = run("check", plan, "--json").document
    detail, summary = document["releases"]
    assert document["structure"] == "laminar"
    assert document["independent_figures"] == 6
    assert document["adjacency"]["records"] == 2
    assert detail["cells"] == 3 * 2 * 4
    assert detail["degrees_of_freedom"] == 24 - 6
    assert detail["sensitivity"] == {"norm": "l1", "value": 4.0, "footing": "upper bound"}
    assert detail["eps_per_cell"] == 0.25
    assert detail["per_person"] == "epsilon = 1"
    assert document["budget"]["asked"] == "epsilon = 1.5"
    text = run("check", plan, "--full").out
    for shown in (
        "Population",
        "at most 2 (a* in the papers)",
        "Epsilon per cell",
        "Per person",
        "Basis: theorem",
    ):
        assert shown in text
    words = " ".join(text.split())
    assert detail["promise"] in words
    assert summary["promise"] in words


def test_check_marks_what_follows_from_the_rest(run: Callable[..., Any], plan: Path) -> None:
    extra = '[publish]\n"All" = { total = true }\n'
    plan.write_text(plan.read_text().replace("[publish]\n", extra))
    figures = run("check", plan, "--json").document["figures"]
    assert {one["label"]: one["redundant"] for one in figures} == {
        "All": False,
        "Population": False,
        "Adults": False,
    }
    plan.write_text(
        plan.read_text()
        .replace(extra, "[publish]\n")
        .replace('"Adults"', '"All" = { total = true }\n"Adults"')
    )
    figures = run("check", plan, "--json").document["figures"]
    assert [one["label"] for one in figures if one["redundant"]] == ["All"]


def test_want_solves_for_epsilon(
    run: Callable[..., Any], plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wish = "margin('sex') within 40 at 90%"
    ran = run("check", plan, "--want", wish, "--json")
    first, absent = [one["wanted"] for one in ran.document["releases"]]
    assert absent is None  # the summary does not show sex
    wanted = first["epsilon"]
    text = plan.read_text()
    for epsilon, enough in ((wanted, True), (0.9 * wanted, False)):
        plan.write_text(text.replace("epsilon = 1.0", f"epsilon = {epsilon}", 1))
        rows = run("check", plan, "--json").document["releases"][0]["errors"]
        assert (next(row["within"] for row in rows if row["what"] == "sex") <= 40) == enough
    output.show(words(ran.document))
    assert f"{wish}: needs epsilon = {wanted}" in capsys.readouterr().out
    refused = run("check", plan, "--want", "margin('county','sex') below 8")
    assert refused.code == 2
    assert "within 50 at 95%" in refused.err


def test_want_answers_in_the_parameter_of_the_release(run: Callable[..., Any], plan: Path) -> None:
    text = plan.read_text().replace("epsilon = 1.0", "rho = 0.1", 1)
    plan.write_text(
        text.replace("[budget]\nepsilon = 2.0", "[budget]\nepsilon = 2.0\ndelta = 1e-6")
    )
    ran = run("check", plan, "--want", "margin('sex') within 40 at 95%", "--json")
    rho = ran.document["releases"][0]["wanted"]["rho"]
    plan.write_text(plan.read_text().replace("rho = 0.1", f"rho = {rho}"))
    rows = run("check", plan, "--json").document["releases"][0]["errors"]
    assert next(row["within"] for row in rows if row["what"] == "sex") <= 40


def test_verify_fails_on_a_changed_bundle(
    run: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "detail"
    shutil.copytree(finished.parent / "bundles" / "detail", bundle)
    ran = run("verify", bundle, "--json")
    failed = [one["what"] for one in ran.document["checks"] if not one["holds"]]
    assert failed == ["drawn from the system's randomness"]  # it was seeded
    (bundle / "table.csv").write_text("county,sex,age,count\n")
    ran = run("verify", bundle)
    assert ran.code == 1
    assert "FAILED" in ran.out
    assert run("verify", bundle, "--digest", "00").code == 1


def test_several_bundles_are_verified_in_turn(
    run: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    """The exit code is the worst: of checks that fail 1, of a folder that is no bundle 6."""
    bundle = finished.parent / "bundles" / "detail"
    alone = run("verify", bundle, "--json")
    twice = run("verify", bundle, bundle, "--json")
    assert (twice.code, twice.document) == (alone.code, [alone.document] * 2)
    ran = run("verify", tmp_path, bundle, "--json")
    assert (ran.code, ran.document[1]) == (6, alone.document)
    assert not ran.document[0]["holds"]
    assert "there is no bundle" in ran.document[0]["error"]
    told = run("verify", bundle, tmp_path)
    assert told.code == 6
    assert told.out.index(bundle.name) < told.out.index("FAILED") < told.out.index(tmp_path.name)
    assert "there is no bundle" in told.err
    refused = run("verify", bundle, bundle, "--digest", "00")
    assert refused.code == 6
    assert "Give one bundle" in refused.err


def test_ledger_commands(run: Callable[..., Any], finished: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    shutil.copy(finished.parent / "ledger.sqlite", ledger)
    by_plan = run("ledger", "show", finished, "--json").document
    by_path = run("ledger", "show", ledger, "--json").document
    assert by_plan["releases"] == by_path["releases"]
    (entry,) = by_path["releases"]
    assert (entry["name"], entry["status"]) == ("detail", "committed")
    assert by_path["left"] == "epsilon = 1"
    assert "committed" in run("ledger", "show", ledger).out
    assert run("ledger", "pending", ledger, "--json").document == {"pending": []}
    refused = run("ledger", "abandon", ledger, entry["id"])
    assert refused.code == 4
    assert "committed" in refused.err
    assert run("ledger", "abandon", ledger, "nothing").code == 4
    changed = run("ledger", "budget", ledger, "--epsilon", "2.5", "--json").document
    assert (changed["budget"], changed["left"]) == ("epsilon = 2.5", "epsilon = 1.5")
    assert run("ledger", "budget", ledger, "--epsilon", "nan").code == 2
    assert run("ledger", "budget", ledger, "--delta", "1e-6").code == 2
    events = run("ledger", "export", ledger, "--json").document["events"]
    kinds = ["open", "budget", "mandates", "reserve", "draw", "commit", "budget"]
    assert [event["kind"] for event in events] == kinds
    text = run("ledger", "export", ledger, "--format", "csv").out
    assert [row["kind"] for row in csv.DictReader(io.StringIO(text))] == kinds


def test_a_new_mandate_reprices_what_was_released(run: Callable[..., Any], plan: Path) -> None:
    text = plan.read_text()
    plan.write_text(text.replace('"Adults" = { count = "age >= 18", by = ["county"] }\n', ""))
    assert run("publish", plan).code == 0
    assert run("release", plan, "--name", "summary", "--seed", 3).code == 0
    plan.write_text(text)
    ran = run("publish", plan, "--json")
    assert ran.code == 0
    (one,) = ran.document["releases"]
    assert (one["name"], one["before"]) == ("summary", "epsilon = 0.5")
    assert "what earlier releases promise" in run("publish", plan).out.lower()


def test_convert_says_what_is_not_implied(run: Callable[..., Any]) -> None:
    assert "Say at which delta" in run("convert", "--mu", "1/2").out
    assert run("convert", "--mu", "1/2", "--to", "epsilon").code == 2
    assert run("convert", "--epsilon", "1", "--delta", "1e-6", "--to", "mu").code == 0
    for given in ((), ("--epsilon", "nan"), ("--epsilon", "-1"), ("--epsilon", "1", "--rho", "1")):
        ran = run("convert", *given)
        assert ran.code == 2
        assert ran.err.startswith("error: ")


def test_output_does_not_drive_the_terminal() -> None:
    assert clean("a\x1b[2Jb\nc") == "a\ufffd[2Jb\nc"


def test_demo_ends_with_bundle_report_and_promise(run: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    ran = run("demo", "--out", folder)
    assert ran.code == 0, ran.err
    told = " ".join(ran.out.split())
    for step in ("check", "publish", "release"):
        assert f"$ congenial {step} {folder}/plan.toml" in told
    for name in ("sex-by-age", "state-summary"):
        assert f"Bundle: {folder}/bundles/{name} Digest:" in told
        assert f"checks passed Next: open {folder}/bundles/{name}/report.html" in told
    assert "rho = 0.1 (zero-concentrated) per person" in told
    assert "Spent: rho = 0.12 of rho = 0.5." in told
    held = re.findall(r"(\d+) of (\d+) checks passed", told)
    assert len(held) == 2
    assert all(one == every for one, every in held)
    again = run("demo", "--out", folder)
    assert again.code == 6
    assert "already exists" in again.err


# ---- reassess, infer, reproduce and check --suppose, as a user runs them -------------------------


@pytest.fixture
def released(run: Callable[..., Any], plan: Path) -> Path:
    assert run("publish", plan).code == 0
    assert run("release", plan, "--name", "detail").code == 0
    return plan


def test_reassess_says_what_old_promises_are_worth_now(
    run: Callable[..., Any], plan: Path, released: Path
) -> None:
    told = run("reassess", plan, "--rho", "2.56", "--delta", "1e-10", "--json").document
    robust = {row["reading"]: row for row in told["rows"]}
    assert robust["advertised"]["promise"].startswith("rho = 2.56 ")
    assert robust["robust"]["records"] == 2
    assert robust["robust"]["promise"].startswith("rho = 10.24 ")
    assert robust["existential"]["promise"].startswith("rho = 2.56 ")
    own = run("reassess", plan, "--json").document["rows"]
    assert {row["release"] for row in own} == {"detail"}
    assert run("reassess", plan, "--rho", "x").code != 0
    shown = run("reassess", plan, "--bundle", released.parent / "bundles" / "detail")
    assert "existential" in shown.out


def test_suppose_treats_side_information_as_one_more_figure(
    run: Callable[..., Any], plan: Path
) -> None:
    told = run("check", plan, "--suppose", "sex = 'f'", "--json").document["supposed"]
    assert told["known"] == ["sex = 'f'"]
    assert told["records"] > 2
    assert all(one["supposed"] for one in told["releases"])


def test_infer_from_a_bundle_alone(run: Callable[..., Any], plan: Path, tmp_path: Path) -> None:
    assert run("publish", plan).code == 0
    # Few draws must be enough for this very table.
    assert run("release", plan, "--name", "detail", "--seed", "1").code == 0
    bundle = plan.parent / "bundles" / "detail"
    ran = run(
        *("infer", bundle, "--model", "poisson", "--set", "draws=400", "--set", "seed=1"),
        *("--naive", "--simulations", "3", "--out", tmp_path / "found", "--json"),
    )
    assert ran.code == 0, ran.err
    told = ran.document
    assert told["summary"][0]["low"] < told["summary"][0]["mean"] < told["summary"][0]["high"]
    assert len(told["naive"]) == len(told["summary"])
    assert (tmp_path / "found" / "draws.parquet").is_file()
    assert run("infer", bundle, "--model", "nonsense").code != 0
    assert run("infer", bundle, "--model", "poisson", "--set", "draws").code != 0


def test_reproduce_lists_runs_and_writes(run: Callable[..., Any], tmp_path: Path) -> None:
    listed = run("reproduce", "--list", "--json").document["items"]
    assert {row["paper"] for row in listed} >= {"congenial-dp", "semi-dp"}
    ran = run("reproduce", "congenial-dp", "stopped-chain", "--out", tmp_path, "--json")
    (result,) = ran.document["results"]
    losses = {row[0]: row[2] for row in result["rows"] if row[1] == "stopped chain"}
    assert losses[1] == pytest.approx(4.84, abs=0.01)
    assert (tmp_path / "congenial-dp-stopped-chain.csv").is_file()
    assert run("reproduce", "congenial-dp", "nothing").code != 0
    assert run("reproduce").code != 0


# ---- `congenial estimate`, from words on the command line to numbers -----------------------------


def test_estimates_and_tests(run: Callable[..., Any], finished: Path, tmp_path: Path) -> None:
    bundle, out = finished.parent / "bundles" / "detail", tmp_path / "out.csv"
    asked = "share(sex = 'f' | age >= 65) by county"
    ran = run("estimate", bundle, "--of", asked, "--of", "count()", "--out", out, "--json")
    assert ran.code == 0
    rows = ran.document["estimates"]
    release = congenial.read(bundle)
    assert rows == release.estimate([asked, "count()"]).to_dicts()
    with out.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["county"] for row in written] == ["A", "B", "C", ""]
    tests = run("estimate", bundle, "--test", "independent(sex, age)", "--json").document["tests"]
    assert 0 < tests[0]["p_value"] <= 1


def test_two_bundles_of_one_population_make_one_better_estimate(
    run: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished.parent, tmp_path / "copy")
    plan = tmp_path / "copy" / "plan.toml"
    assert run("release", plan, "--name", "summary", "--seed", 2).code == 0
    asked = "count(age >= 65) by state"
    detail, summary = (tmp_path / "copy" / "bundles" / name for name in ("detail", "summary"))
    found = [
        run("estimate", *bundles, "--of", asked, "--json").document["estimates"]
        for bundles in ((detail,), (summary,), (detail, summary))
    ]
    for first, second, both in zip(*found, strict=True):
        assert 0 < both["sd"] < min(first["sd"], second["sd"])
        assert both["low"] < both["high"]
    releases = [congenial.read(detail), congenial.read(summary)]
    assert found[2] == congenial.estimate(releases, asked).to_dicts()


def test_estimate_refuses(run: Callable[..., Any], finished: Path, tmp_path: Path) -> None:
    bundle = finished.parent / "bundles" / "detail"
    for asked, message in (
        ((), "there is no question"),
        (("--of", "count(age >= 20)"), "cuts the class"),
        (("--of", "count()", "--level", "2"), "not between 0 and 1"),
        (("--of", "count()", "--out", tmp_path / "no" / "out.csv"), "cannot write"),
        (("--of", "growth(count())"), "two bundles"),
        (("--test", "equal(age)"), "two conditions"),
    ):
        ran = run("estimate", bundle, *asked)
        assert ran.code == 2, message
        assert message in ran.err
    assert "the same release" in run("estimate", bundle, bundle, "--of", "count()").err
    assert gc.isenabled()  # whoever calls the command goes on as before
