"""Synthetic records from a plan, end to end, and what is refused."""

from __future__ import annotations

import html
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner

from congenial import CongenialError, Ledger, Plan, SeededRandomness, read, verify
from congenial.cli import app
from congenial.errors import DataError, PlanError
from congenial.kinds.records_from_models import KIND
from congenial.publication import workflow
from congenial.publication.check_document import of_check
from congenial.publication.synthetic_utility import synthetic_section
from congenial.synthesis.utility_report import NOTE

PEOPLE = 300
SEED = 5

PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
region = { levels = ["north", "<b>south</b>", "west"] }
kids = { integers = [0, 6], missing = "unknown" }
income = { edges = [-100, 0, 1, 50, 200, 900], bottom = "below", top = "900+" }
[publish]
"By region" = { total = true, by = ["region"], because = "statute" }
[[release]]
name = "people"
epsilon = 8
copies = 2
basis = "theorem"
[release.model]
region = { floor = 0.02 }
kids = { kind = "spike", level = "unknown", model = "poisson", given = ["region"] }
income = { kind = "normal", scale = "root", share = 2 }
[release.theta]
kids = { share = [0.01, 0.3, 4], model = { mean = [0.2, 5.0, 20] } }
income = { mean = [0, 30, 11], sd = [2, 15, 6] }
[budget]
epsilon = 10
"""
PUBLISH = '[publish]\n"By region" = { total = true, by = ["region"], because = "statute" }\n'


def write(folder: Path, text: str = PLAN, **changed: Any) -> Path:
    rng = np.random.default_rng(SEED)
    kids = np.minimum(rng.poisson(1.3, PEOPLE), 6)
    columns: dict[str, Any] = {
        "id": np.arange(PEOPLE),
        "region": rng.choice(["north", "<b>south</b>", "west"], PEOPLE, p=[0.5, 0.3, 0.2]),
        "kids": pa.array(kids, mask=rng.random(PEOPLE) < 0.1),
        "income": np.round(rng.gamma(1.2, 150, PEOPLE)).astype(int) - 20,
    }
    pa_csv.write_csv(pa.table(columns | changed), folder / "people.csv")
    plan = folder / "plan.toml"
    plan.write_text(text)
    return plan


def checked_again(path: Path) -> dict[str, Any]:
    """The check of a plan, with the releases that are drawn already."""
    return of_check(workflow.check(Plan.load(path), again=True), None, [])


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan that was checked, published and released; read it, do not change it."""
    path = write(tmp_path_factory.mktemp("people"))
    assert run("check", path, "--full").exit_code == 0
    assert not (path.parent / "ledger.sqlite").exists()
    assert run("publish", path).exit_code == 0
    result = run("release", path)
    assert result.exit_code == 0, result.stderr
    return path


def test_check_prices_the_mandate_before_and_after_it_is_published(finished, tmp_path):
    """a* = 2: epsilon = 2 M a* m, so M = 8 / (2 * 2 * 2) = 1."""
    path = write(tmp_path)
    before = json.loads(run("check", path, "--json").stdout)
    assert run("publish", path).exit_code == 0
    after = json.loads(run("check", path, "--json").stdout)
    assert [one["published"] for one in (before, after)] == [False, True]
    for document in (before, after, checked_again(finished)):
        (one,) = document["releases"]
        assert document["adjacency"]["records"] == 2
        assert (one["kind"], one["M"], one["copies"]) == ("synthetic records", 1, 2)
        assert one["guarantee"]["basis"] == "theorem"
        assert [c["model"]["kind"] for c in one["columns"]] == ["multinomial", "spike", "normal"]
        assert [c["M"] for c in one["columns"]] == pytest.approx([0, 1 / 3, 2 / 3], abs=1e-6)
        assert [c["settled"] for c in one["columns"]] == [True, False, False]


def test_check_names_what_is_released(finished):
    told = json.loads(run("check", finished, "--json").stdout)
    assert (told["already_released"], told["releases"]) == (["people"], [])
    shown = " ".join(run("check", finished, "--full").stdout.split())
    assert "Already released, so not worked out again: people." in shown
    assert "Spent so far: epsilon = 8" in shown


def test_the_bundle_holds_files_that_agree_with_the_figures(finished):
    folder = finished.parent / "bundles" / "people"
    release = read(folder)
    assert release.publishable
    truth = pa_csv.read_csv(finished.parent / "people.csv").to_pandas()["region"].value_counts()
    for copy in (1, 2):
        table = release.to_arrow(copy)
        assert table.num_rows == PEOPLE
        assert table.column_names == ["region", "kids", "income"]
        assert table.to_pandas()["region"].value_counts().to_dict() == truth.to_dict()
        text = pa_csv.read_csv(folder / f"synthetic-{copy}.csv")
        assert text["income"].to_pylist() == table["income"].to_pylist()
    assert not release.to_arrow(1).equals(release.to_arrow(2))
    checks = verify(folder)
    assert all(one.holds for one in checks)
    assert "the promise follows from the description" in [one.what for one in checks]


def test_the_ledger_counts_what_is_promised(finished):
    plan = Plan.load(finished)
    ledger = Ledger.open(plan.ledger, plan.schema)
    assert (
        ledger.spent().epsilon
        == read(finished.parent / "bundles" / "people").guarantee.tradeoff.eps
    )
    assert [entry.status for entry in ledger.entries()] == ["committed"]


def test_the_report_is_public_and_escaped(finished):
    folder = finished.parent / "bundles" / "people"
    page = (folder / "report.html").read_text()
    assert read(folder).guarantee.explain() in page.replace("&#39;", "'")
    for words in ("spike of poisson", "0.2 .. 5", "combine(", "Theta", "unknown", "By region"):
        assert words in page
    assert "release.combine(estimate)" in page
    assert 'id="exact"' in page
    for size in read(folder).published.values[0]:
        assert f'<td class="number">{size}</td>' in page
    assert "its totals are published, and its values follow from them" in page
    assert "<b>south" not in page
    assert "&lt;b&gt;south" in page
    assert not re.search(r"<script|https?://", page)


def test_the_report_says_how_to_read_csv_without_surprises(finished, monkeypatch):
    """The pandas line is run as printed; R's is checked word by word."""
    folder = finished.parent / "bundles" / "people"
    page, release = html.unescape((folder / "report.html").read_text()), read(folder)
    told = re.search(r"pandas\.read_csv\(.*\)", page)[0]
    monkeypatch.chdir(folder)
    frame = eval(told, {"pandas": pd})
    truth = release.to_arrow(1).to_pydict()
    for name, values in truth.items():
        assert [None if pd.isna(v) else v for v in frame[name]] == values
    assert (
        'read.csv("synthetic-1.csv", colClasses = c("region" = "character", "kids" = "numeric", '
        '"income" = "numeric"), na.strings = "", check.names = FALSE' in page
    )
    found = release.combine(lambda f: (f["income"].mean(), f["income"].var() / len(f)))
    assert found.estimate == pytest.approx(
        np.mean([release.to_pandas(i)["income"].mean() for i in (1, 2)])
    )


def test_a_bundle_whose_law_promises_less_is_noticed(finished):
    """Negative control of the checks: a larger M, a lost record, an impossible label."""
    release = read(finished.parent / "bundles" / "people")
    assert all(KIND.checks(release).values())
    from dataclasses import replace

    law = dict(release.description.law) | {"M": "2"}
    weaker = replace(release, description=replace(release.description, law=law))
    assert not KIND.checks(weaker)["the promise follows from the description"]
    short = replace(release, copies=(release.copies[0].slice(1), release.copies[1]))
    assert list(KIND.checks(short).values()) == [True, False, True, False]
    names = pa.array(["east", *release.copies[0]["region"].to_pylist()[1:]])
    other = release.copies[0].set_column(0, "region", names)
    found = KIND.checks(replace(release, copies=(other, release.copies[1])))
    assert list(found.values()) == [True, True, False, False]


def test_rows_of_a_person(tmp_path):
    """max_rows: epsilon = rows M copies, and the number of records is the plan's, not n."""
    text = PLAN.replace(PUBLISH, "").replace('unit = "id"', 'unit = "id"\nmax_rows = 2')
    path = write(tmp_path, text.replace("epsilon = 8\n", "M = 0.5\nrecords = 50\n"))
    made = workflow.release(Plan.load(path), "people", randomness=SeededRandomness(SEED))
    assert made.release.guarantee.tradeoff.eps == 2 * Fraction(1, 2) * 2
    assert made.release.to_arrow(2).num_rows == 50
    assert all(KIND.checks(made.release).values())
    path.write_text(path.read_text().replace("records = 50\n", ""))
    with pytest.raises(CongenialError, match="would publish their number"):
        workflow.check(Plan.load(path), again=True)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("mean = [0, 30, 11]", "mean = [0, inf, 11]", "Theta is not compact"),
        (
            "income = { mean = [0, 30, 11], sd = [2, 15, 6] }",
            "",
            "no range for its mean, so Theta is not compact",
        ),
        ("floor = 0.02", "floor = 0.0", "oscillation is infinite"),
        ("floor = 0.02", "flor = 0.02", "no key 'flor'"),
        ("region = { floor", "regoin = { floor", "regoin"),
        ("copies = 2", "copies = 20\nM = 0.5", "at most 4 copies"),
        ("copies = 2", "copies = 0", "copies"),
        ("epsilon = 8", "", "must have M or epsilon"),
        ("epsilon = 8", "M = -1", "must be positive"),
        ("epsilon = 8", "epsilon = 8\ndelta = 1e-6", "leave delta out"),
        ("epsilon = 8", "epsilon = 8\nrecords = 10", "cannot agree with figures"),
        ("epsilon = 8", 'epsilon = 8\nmechanism = "local"', "have a proof"),
        ("epsilon = 8", 'epsilon = 8\ntable = ["region"]', "belongs to model"),
        ("epsilon = 8", 'epsilon = 8\npublic = ["kids"]', "named twice, or is public"),
        ('scale = "root", share = 2', 'weighting = "min-max"', "min-max"),
        ('kind = "normal", scale = "root"', 'kind = "mixture"', "has no proof"),
        ('kind = "normal"', 'kind = "norml"', "norml"),
        ("mean = [0.2, 5.0, 20]", 'mean = ["a", 5, 20]', "not a range"),
        ("floor = 0.02", 'floor = "a"', "has type str"),
        ("mean = [0.2, 5.0, 20]", "mean = [5, 0.2, 20]", "low < high"),
        ("kids = { share", "kid = { share", "theta has 'kid'"),
        ('given = ["region"]', 'given = ["income"]', "neither public nor"),
        ('levels = ["north", "<b>south</b>", "west"]', 'levels = ["north"]', "only one category"),
        (PUBLISH, PUBLISH.replace("region", "kids"), "cannot keep it"),
        ("because =", "at_most = 200, because =", "cannot keep it"),
    ],
)
def test_what_cannot_be_released_is_refused_without_the_data(tmp_path, old, new, says):
    assert old in PLAN
    with pytest.raises(CongenialError, match=says):
        workflow.check(Plan.parse(PLAN.replace(old, new, 1), tmp_path))


def test_data_that_do_not_fit_are_refused_and_cost_nothing(tmp_path):
    strange = np.repeat(["north", "Atlantis"], [PEOPLE - 1, 1])
    path = write(tmp_path, PLAN.replace(PUBLISH, ""), region=strange)
    with pytest.raises(DataError, match="not in the schema") as caught:
        workflow.release(Plan.load(path), "people")
    assert "Atlantis" not in str(caught.value)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_record_without_weight_is_kept_silently(tmp_path):
    """No number where the model has none: weight 0, not a word about it outside."""
    theta = "kids = { share = [0.01, 0.3, 4], model = { mean = [0.2, 5.0, 20] } }"
    text = PLAN.replace(PUBLISH, "").replace(theta, "kids = { mean = [0.2, 5.0, 20] }")
    text = text.replace('kind = "spike", level = "unknown", model = "poisson"', 'kind = "poisson"')
    plan = Plan.load(write(tmp_path, text))
    made = workflow.release(plan, "people", randomness=SeededRandomness(SEED))
    assert made.release.to_arrow(1)["kids"].null_count == 0


CURVE = ("--bounds", "1/2", "--measure", "income@0.9", "--replicates", 2)


def test_curve_is_loud_private_and_goes_on(finished, tmp_path):
    out = tmp_path / "curve"
    first = run("curve", finished, *CURVE, "--out", out, "--json")
    assert first.exit_code == 0, first.stderr
    document = json.loads(first.stdout)
    assert [row["mechanism"] for row in document["rows"]] == ["certified", "scalar", "local"]
    assert [row["basis"] for row in document["rows"]][1:] == [
        "theorem",
        "local estimate, not a guarantee",
    ]
    assert document["rows"][0]["epsilon"] == 2 * 2 * 0.5  # one copy, a* = 2
    # two draws of whole numbers may well err equally: their standard error is then 0, not None
    assert all(row["mean_se"] >= 0 and row["rms_se"] >= 0 for row in document["rows"])
    assert "NOT covered" in first.stderr
    assert "CONFIDENTIAL" in first.stderr
    (kept,) = out.iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    assert NOTE in kept.read_text()
    again = json.loads(run("curve", finished, *CURVE, "--out", out, "--json").stdout)
    assert again["rows"] == document["rows"]  # nothing was drawn a second time
    shown = run("curve", finished, *CURVE, "--out", out)
    assert "must not be published" in shown.stdout
    assert "standard errors over 2 draws" in shown.stdout
    assert Ledger.open(Plan.load(finished).ledger).spent().epsilon == 8


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--measure", "age"), "not a synthesised column"),
        (("--measure", "income@2"), "a quantile"),
        (("--measure", "income@x"), "a quantile"),
        (("--measure", "income@0"), "a quantile"),
        (("--bounds", "0"), "positive"),
        (("--bounds", "1,x"), "positive"),
        (("--local", "1"), "two numbers"),
        (("--name", "nobody"), "no release 'nobody'"),
    ],
)
def test_curve_refuses(finished, tmp_path, words, says):
    refused = run("curve", finished, *words, "--out", tmp_path / "out")
    assert refused.exit_code == PlanError.exit_code
    assert says in refused.stderr
    assert not (tmp_path / "out").exists()


def test_curve_needs_synthetic_records(tmp_path):
    text = PLAN[: PLAN.index("[release.model]")] + PLAN[PLAN.index("[budget]") :]
    text = text.replace("copies = 2\n", 'table = ["region"]\n')
    with pytest.raises(PlanError, match="no synthetic records"):
        synthetic_section(Plan.parse(text, tmp_path), "people")
    with pytest.raises(PlanError, match=r"Add a \[\[release\]\] with `model`"):
        synthetic_section(Plan.parse(text, tmp_path), None)


def test_theta_and_model_are_one(tmp_path):
    plan = Plan.parse(PLAN, tmp_path)
    made = KIND.build(plan, plan.release[0], plan.figures)
    kids = made.to_dict()["columns"][1]
    assert kids["model"]["model"]["mean"]["points"] == 20
    assert kids["model"]["share"]["high"] == 0.3
    twice = PLAN.replace('model = "poisson"', 'model = { kind = "poisson", mean = [1, 2, 3] }')
    with pytest.raises(PlanError, match="under model and under theta"):
        workflow.check(Plan.parse(twice, tmp_path))
