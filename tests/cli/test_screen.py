"""What people see: words, notes and pictures that JSON does not show, and refusals in place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from congenial import Guarantee, Schema, SemiAdjacent, Table, publish, read, total
from congenial.cli import infer as infer_command
from congenial.cli.output import PLAIN_WIDTH, table
from congenial.inference import Chain, InferenceError, Linear, Normal
from congenial.inference.inference import _Clock, bind
from congenial.inference.observation import OtherCells
from congenial.inference.samplers.chains import ChainSampler
from congenial.kinds import tables_document
from congenial.kinds.registry import every_kind
from congenial.kinds.tables import NOT_INFERRED
from congenial.mechanisms import CongenialCounts, TablesRelease, release_table
from congenial.report.words import rounded_up


@pytest.mark.usefixtures("with_charts")
def test_infer_writes_a_picture_of_each_parameter(
    run: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    bundle, out = finished.parent / "bundles" / "detail", tmp_path / "found"
    ran = run(
        *("infer", bundle, "--model", "poisson", "--set", "by=county", "--set", "draws=400"),
        *("--out", out),
    )
    assert ran.code == 0, ran.err
    assert (out / "rate.png").stat().st_size > 1000
    assert ran.out.index("Posterior under") < ran.out.index("Wrote:")


def test_every_step_names_the_next(run: Callable[..., Any], plan: Path) -> None:
    def last(*words: object) -> str:
        return run(*words).out.strip().splitlines()[-1]

    assert last("check", plan) == f"Next: congenial publish {plan}"
    assert last("publish", plan) == f"Next: congenial release {plan}"
    assert last("check", plan) == f"Next: congenial release {plan}"
    report = plan.parent / "bundles" / "detail" / "report.html"
    assert last("release", plan, "--name", "detail", "--seed", 1) == f"Next: open {report}"
    assert last("check", plan) == f"Next: congenial release {plan} --name summary"
    plan.write_text(plan.read_text().replace("epsilon = 0.5", "epsilon = 5"))
    assert "Next" not in run("check", plan).out  # the budget does not allow it


def test_codes_stand_beside_their_labels(run: Callable[..., Any], plan: Path) -> None:
    """On a screen; programs read codes alone."""
    named = 'within = { state = ["X", "X", "Y"] }, labels = { A = "Adams", B = "Berks" } }'
    plan.write_text(plan.read_text().replace('within = { state = ["X", "X", "Y"] } }', named))
    before = run("publish", plan, "--dry-run").out
    assert "A (Adams)" in before
    assert run("publish", plan, "--dry-run", "--json").document["figures"][0]["cells"][0][
        "for"
    ] == ["A"]
    shown = run("publish", plan).out
    assert "B (Berks)" in shown
    assert "C" in shown
    assert run("release", plan, "--name", "detail", "--seed", 1).code == 0
    model = ("--model", "poisson", "--set", "by=county", "--set", "draws=400")
    asked = ("infer", plan.parent / "bundles" / "detail", *model)
    assert "A (Adams)" in run(*asked).out
    assert {row["county"] for row in run(*asked, "--json").document["summary"]} == {"A", "B", "C"}


def test_publishing_again_says_that_nothing_is_new(run: Callable[..., Any], plan: Path) -> None:
    first = run("publish", plan).out
    assert "public from now on" in first
    assert "already" not in first
    again = run("publish", plan).out
    assert "Nothing new: all of this is public already" in again
    assert "from now on" not in again
    text = plan.read_text()
    plan.write_text(text.replace("[publish]\n", '[publish]\n"Women" = { count = "sex = \'f\'" }\n'))
    mixed = run("publish", plan).out
    assert "public from now on" in mixed
    assert "Population (statute), public already" in mixed
    assert "Women, public" not in mixed
    assert run("publish", plan, "--json").document["new"] == []


def test_a_level_is_refused_before_anything_is_drawn(
    run: Callable[..., Any], finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(infer_command, "_read", lambda _: pytest.fail("read the bundle"))
    ran = run("infer", finished.parent / "bundles" / "detail", "--model", "poisson", "--level", 95)
    assert ran.code != 0
    assert "level 95 is not between 0 and 1" in ran.err


def conditioned() -> TablesRelease:
    """Counts drawn given that none is negative: their law is known for the released table only."""
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65, 90]}})
    table = Table(schema, schema.names, [[5, 9, 3], [4, 7, 2]])
    target = Guarantee.pure(1, under=SemiAdjacent(publish(table, total(by="sex"))))
    return release_table(CongenialCounts.calibrate(target, schema.names), table)


def test_a_remedy_is_one_that_the_model_can_take() -> None:
    release = conditioned()
    with pytest.raises(InferenceError) as error:
        bind(release, Normal("age"))
    assert error.value.remedy.startswith("Use linear with outcome = age")
    assert bind(release, Linear("age", ())) is not None


def test_a_reason_is_known_by_its_type_and_not_by_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The remedy for the normal model does not hang on how the general one is worded."""
    monkeypatch.setattr(
        OtherCells, "__init__", lambda self, _, what: InferenceError.__init__(self, what)
    )
    with pytest.raises(InferenceError) as error:
        bind(conditioned(), Normal("age"))
    assert error.value.remedy.startswith("Use linear with outcome = age")


def test_a_bad_option_is_no_fault_of_the_bundle(run: Callable[..., Any], finished: Path) -> None:
    bundle = finished.parent / "bundles" / "detail"
    ran = run("infer", bundle, "--model", "poisson", "--set", "by")
    assert ran.code == InferenceError.exit_code == 2
    assert "--set 'by' is not KEY=VALUE" in ran.err
    with pytest.raises(InferenceError, match="level 95"):
        read(bundle).interval("age >= 65", 95)


def test_a_location_is_not_called_a_mean(finished: Path) -> None:
    bound = bind(read(finished.parent / "bundles" / "detail"), Linear("age"))
    assert "before it is cut to the bins (from 0 on)" in bound.observation.notes[-1]


def test_every_kind_that_is_no_table_has_a_page_of_its_own() -> None:
    told = {kind.name: kind.instead for kind in every_kind() if kind.instead}
    assert set(told) == {
        *("estimate", "odds ratio test", "records from tables", "statistics"),
        "synthetic records",
    }
    for words in (*told.values(), NOT_INFERRED):
        page = Path(__file__).parents[2] / (words.rpartition(" ")[2].rstrip(".") + ".md")
        assert page.is_file()


def test_counts_whose_errors_depend_on_the_data_are_checked_and_compared(
    run: Callable[..., Any], plan: Path
) -> None:
    other = plan.with_name("other.toml")
    other.write_text(plan.read_text().replace("project", "condition"))
    assert run("check", other).code == 0
    rows = run("compare", plan, other, "--json").document["errors"]
    of_cells = [one for one in rows if one["what"] == "county x sex x age"]
    assert [(one["first"] > 0, one["second"]) for one in of_cells] == [(True, None)]


def test_long_chains_are_announced_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    now = iter([0.0, 10.0, 20.0, 30.0, 90.0])
    monkeypatch.setattr(infer_command.time, "monotonic", lambda: next(now))
    tell = infer_command._clock(told.append, "figures that cross")
    tell(0, 2000, 10.0)
    assert capsys.readouterr().err == ""
    tell(1, 2000, 7200.0)
    tell(2, 2000, 7200.0)
    told_so_far = capsys.readouterr().err
    assert told_so_far.count("about 2 hours or more: figures that cross.") == 1
    assert "draws=" not in told_so_far
    assert told[-1] == "inferring: step 2 of 2,000"  # the time left is told by what shows it
    tell(3, 2000, 7200.0)
    assert capsys.readouterr().err == ""
    tell(4, 2000, 7200.0)  # a minute after the warning, where there is no spinner
    assert capsys.readouterr().err.strip() == f"{told[-1]}, about 2 hours left"


def test_the_first_step_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may wait for code to be compiled; before it, the sampler's own guess is all there is."""
    times = iter([0.0, 30.0, 31.0])  # before, after the first step, after the second
    monkeypatch.setattr("congenial.inference.inference.time.perf_counter", lambda: next(times))
    told: list[float] = []
    clock = _Clock(Chain(progress=lambda _, __, seconds: told.append(seconds)), 0.5)
    for done in range(3):
        clock.tell(done, 10)
    assert told == [5.0, 4.5, 8.0]
    assert ChainSampler.seconds == 0


def test_a_wish_without_an_answer_is_told_in_place(run: Callable[..., Any], plan: Path) -> None:
    plan.write_text(plan.read_text().replace('"project"', '"condition"'))
    wish = "margin('age') within 40 at 95%"
    ran = run("check", plan, "--want", wish)
    assert ran.code == 0, ran.err
    assert "no answer for 'detail': the error of 'congenial_counts' depends" in " ".join(
        ran.out.split()
    )
    assert f"{wish}: needs epsilon" in ran.out  # the other release answers
    assert "Errors depend on the data" in ran.out


def test_added_files_leave_the_listed_ones_intact(
    run: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "detail"
    shutil.copytree(finished.parent / "bundles" / "detail", bundle)
    (bundle / ".DS_Store").write_text("")
    ran = run("verify", bundle)
    assert ran.code == 1
    assert "Every file that the bundle lists is as released" in ran.out
    (bundle / "table.csv").write_text("county,sex,age,count\n")
    assert "Do not use this bundle" in run("verify", bundle).out


def test_names_in_a_list_are_not_broken(run: Callable[..., Any]) -> None:
    listed = run("reproduce", "--list").out
    assert "condition-or-project " in listed
    assert "census/das_2020_pl94_us_person_rho_allocation.csv" in listed


def test_margins_and_notes_of_exact_figures() -> None:
    assert [rounded_up(x) for x in (12.0, 20.3685, 9.601)] == ["12", "20.37", "9.61"]
    cost = {"loss_without": None, "deviation_without": None, "trivial": False}
    assert tables_document._cost_note(cost) == "cannot be built without it"
    assert tables_document._cost_note(cost | {"loss_without": 1}) == "errors depend on the data"


WORDS = ("(c, g)", "mechanism", "share downweighted", "error of P90, certified", "standard error")


@pytest.mark.parametrize("columns", [3, 8, 14])
def test_no_word_of_a_wide_table_is_broken(
    columns: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns that do not fit into 100 follow below, with those that tell the rows apart."""
    names = [f"{WORDS[i % 5]} {i}" for i in range(columns)]
    rows = [["(0.7, 0.0)", k, *(f"{k}{i}.1234" for i in range(2, columns))] for k in (7, 8)]
    table(names, rows)
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert max(map(len, lines)) <= PLAIN_WIDTH
    for word in {word for name in names for word in name.split()}:
        assert word in shown.split(), word
    for value in (value for row in rows for value in row):
        assert str(value) in shown
    parts = [line for line in lines if set(line.strip()) == {"─"}]
    assert (len(parts) > 1) == (columns > 8)
    firsts = [line for line in lines if line.startswith("(0.7, 0.0)")]
    assert len(firsts) == 2 * len(parts)
    assert all(line.split()[2] in "78" for line in firsts)  # 7 and 8 tell the rows apart


def test_a_table_that_fits_is_as_wide_as_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    table(["a", "count"], [["x", 1], ["yy", 22]], numbers="count")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["a    count", "──────────", "x        1", "yy      22"]
