"""`congenial utility`: complete, loud, private, and never in a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.csv as pa_csv
import pytest

from congenial import read
from congenial.errors import BundleError, FigureError, PlanError
from congenial.ledger.ledger import Ledger
from congenial.publication import synthetic_utility
from congenial.publication.plan import Plan
from congenial.report import pictures, utility_page
from congenial.synthesis.combine import combine
from tests.kinds.test_records_from_models_plan import PEOPLE, PLAN, run, write

ASK = ("--regression", "income ~ kids")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write(tmp_path_factory.mktemp("people"))
    assert run("publish", path).exit_code == 0
    assert run("release", path).exit_code == 0
    return path


@pytest.fixture(scope="module")
def document(finished: Path) -> dict:
    result = run("utility", finished, *ASK, "--json")
    assert result.exit_code == 0, result.stderr
    assert "NOT covered" in result.stderr
    assert "for the curator only" in result.stderr
    return json.loads(result.stdout)


def test_every_number_is_there_and_right(finished, document):
    """Recomputed with pandas: shares, quantiles, correlation, combined coefficients, uniques."""
    data = pa_csv.read_csv(finished.parent / "people.csv").to_pandas()
    copies = [read(finished.parent / "bundles" / "people").to_pandas(i) for i in (1, 2)]
    region = next(one for one in document["columns"] if one["name"] == "region")
    shares = data["region"].value_counts(normalize=True)
    assert region["original"] == pytest.approx([shares[level] for level in region["levels"]])
    assert region["distance"]["largest"] == 0  # its totals are published and kept
    median = next(q for q in document["quantiles"] if (q["column"], q["at"]) == ("income", 0.5))
    assert median["original"] == data["income"].median()
    drawn = [one["income"].median() for one in copies]
    assert median["copies"] == {
        "synthetic": np.mean(drawn),
        "least": min(drawn),
        "largest": max(drawn),
    }
    assert median["low"] < median["original"] < median["high"]
    (pair,) = document["correlations"]
    assert pair["columns"] == ["kids", "income"]
    assert pair["original"] == pytest.approx(data[["kids", "income"]].corr().iloc[0, 1])
    slopes, errors = zip(*(slope(one) for one in copies), strict=True)
    joined = combine(slopes, np.square(errors))
    kids = next(row for row in document["coefficients"] if row["name"] == "kids")
    assert (kids["original"], kids["original_se"]) == pytest.approx(slope(data))
    assert kids["synthetic"] == pytest.approx(float(joined.estimate))
    assert kids["synthetic_se"] == pytest.approx(float(joined.variance) ** 0.5)
    assert kids["overlap"] <= 1
    assert document["pmse_ratio"]["synthetic"] > 0
    assert 0 <= document["replicated"]["largest"] <= document["uniques"]


def slope(frame) -> tuple[float, float]:
    known = frame.dropna(subset=["kids", "income"])
    x, y = known["kids"] - known["kids"].mean(), known["income"]
    b = float((x * y).sum() / (x**2).sum())
    rest = y - y.mean() - b * x
    return b, float((rest**2).sum() / (len(y) - 2) / (x**2).sum()) ** 0.5


def test_the_weight_of_every_record(finished, document):
    made = read(finished.parent / "bundles" / "people")
    assert [one["column"] for one in document["risk"]] == ["kids", "income"]
    assert document["settled"] == ["region"]  # its totals are published: nothing of it is learnt
    for one in document["risk"]:
        assert sum(row["records"] for row in one["rows"]) == one["records"] == PEOPLE
        weights = sum(row["records"] * row["weight"] for row in one["rows"])
        assert weights == pytest.approx(one["sum_of_weights"])
        assert all(0 <= row["used"] <= 1 for row in one["rows"])
        assert {row["level"] for row in one["rows"]} <= set(
            made.schema.attribute(one["column"]).levels
        )
    assert document["weightless"] == 0


def test_what_is_written_is_private_and_says_so(finished, document):
    folder = finished.parent / "utility" / "people"
    assert folder.stat().st_mode & 0o777 == 0o700
    for name in ("utility.html", "utility.json"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
        text = (folder / name).read_text()
        assert "for the curator only" in text
        assert "NOT covered" in text
    page = (folder / "utility.html").read_text()
    assert "CONFIDENTIAL. CONFIDENTIAL" not in page
    for words in ("below 0 if they are apart", "its records need no weights", "&#39;900+&#39;"):
        assert words.lower() in page.lower()
    assert "<b>south" not in page
    for words in ("pMSE", "Linear regression of income", "overlap", "weigh less than 1", "kids"):
        assert words in page
    assert run("verify", finished.parent / "bundles" / "people").exit_code == 0  # nothing added
    assert Ledger.open(Plan.load(finished).ledger).spent().epsilon == 8
    out = run("utility", finished, *ASK, "--out", folder)
    assert out.exit_code == 0
    shown = " ".join(out.stdout.split())
    assert shown.count("must not be published") == 1
    assert "CONFIDENTIAL" not in out.stderr
    assert "income: everybody in the open class '900+' is recorded as 900, so" in shown
    assert (
        "income: everybody in the open class 'below' is recorded as the last number below" in shown
    )
    assert "below 0 if they are apart" in shown


def test_pictures(document, monkeypatch):
    """With the extra `report`: a picture of shares, quantiles and weights for each column."""
    pytest.importorskip("altair")
    monkeypatch.setattr(pictures, "available", lambda: True)
    rows = [row for row in document["quantiles"] if row["column"] == "income"]
    kinds = [
        utility_page.shares_chart(document["columns"][2]).to_dict()["mark"]["type"],
        [layer["mark"]["type"] for layer in utility_page.quantiles_chart(rows).to_dict()["layer"]],
        utility_page.risk_chart(document["risk"][1]).to_dict()["mark"]["type"],
    ]
    assert kinds == ["bar", ["rule", "point"], "circle"]


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (("--regression", "income"), PlanError, "is not a model"),
        (("--name", "nobody"), PlanError, "no release 'nobody'"),
        (("--bundle", "nowhere"), BundleError, "nowhere"),
        (("--out", "bundles/people"), BundleError, "must not be written into a bundle"),
        (("--out", "bundles/people/inside"), BundleError, "must not be written into a bundle"),
    ],
)
def test_refusals(finished, monkeypatch, words, error, says):
    monkeypatch.chdir(finished.parent)
    refused = run("utility", finished, *words)
    assert refused.exit_code == error.exit_code
    assert says in refused.stderr
    assert not (finished.parent / "bundles" / "people" / "utility.html").exists()


def test_other_data_and_other_plans_are_refused(finished, tmp_path):
    release = read(finished.parent / "bundles" / "people")
    other = write(tmp_path, region=["west"] * PEOPLE)
    with pytest.raises(FigureError, match="do not agree"):
        synthetic_utility.utility_of_bundle(Plan.load(other), release)
    wider = Plan.parse(PLAN.replace("integers = [0, 6]", "integers = [0, 7]"), tmp_path)
    with pytest.raises(PlanError, match="schema that differs"):
        synthetic_utility.utility_of_bundle(wider, release)


def test_the_papers_weights_stand_beside_the_certified_ones(finished, document):
    """Local weights by column, recomputed from counts; labelled, and never in the bundle."""
    from congenial.synthesis.certified import Synthesizer
    from congenial.synthesis.local import LABEL, _log_laws, local_column, min_max, risks

    assert {one["column"] for one in document["local"]} == {
        one["column"] for one in document["risk"]
    }
    assert LABEL in document["local_words"]
    for one, beside in zip(document["local"], document["risk"], strict=True):
        assert one["records"] == beside["records"]
        assert 0 <= one["least_weight"] <= 1
        assert one["sum_of_weights"] <= one["records"]
        assert one["epsilon"] in (pytest.approx(2 * one["delta"]), pytest.approx(4 * one["delta"]))
    release = read(finished.parent / "bundles" / "people")
    made = Synthesizer.from_dict(release.guarantee.adjacency, release.description.law)
    at = next(i for i, c in enumerate(made.columns) if c.name not in made.settled)
    kernel = made.kernels[at]
    table = np.where(kernel.allowed, 5, 0) if hasattr(kernel, "allowed") else None
    if table is None:
        table = np.full((kernel.contexts, kernel.log_table(0).shape[1]), 5)
    table[0, 0] = 1  # a rare level weighs least
    found = local_column(kernel, table, 200, np.random.default_rng(1))
    seen = table > 0
    generator = np.random.default_rng(1)
    risk = risks(_log_laws(kernel, table.astype(float), 200, generator)[:, seen])
    weights = min_max()(risk)
    assert found.least_weight == weights.min()
    assert found.sum_of_weights == pytest.approx(float(table[seen] @ weights))
    shown = " ".join(run("utility", finished).stdout.split())
    assert "local weights of" in shown
    for file in (finished.parent / "bundles" / "people").rglob("*"):
        assert not file.is_file() or b"local weights" not in file.read_bytes()
