"""Plain pages for people who decide: the review of a plan, and two plans side by side."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from congenial.publication.check_document import examine, questions
from congenial.publication.check_document import words as check_words
from congenial.publication.plan import DIGEST_OF, Plan
from congenial.report.page import PageTable
from congenial.report.words import Paragraph
from tests.commands import run, write_plan

PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
county = { levels = ["A", "B", "<script>"] }
sex = { levels = ["f", "m"] }
[publish]
"Population" = { total = true, by = ["county"], because = "statute" }
"Women" = { count = "sex = 'f'" }
[[release]]
name = "detail"
table = ["county", "sex"]
epsilon = 1.0
[[release]]
name = "several"
tables = [["county", "sex"], ["sex"]]
rho = 0.1
[budget]
epsilon = 9
delta = 1e-6
"""


def test_a_page_for_a_reviewer_needs_no_data(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, PLAN)
    out = tmp_path / "pages" / "review.html"
    run("check", plan, "--html", out)
    page = out.read_text()
    document = examine(Plan.load(plan))
    for one in document["releases"]:
        assert one["promise"].split(":")[0] in page
    assert Plan.load(plan).digest in page
    assert "No reason is given for publishing exactly: Women" in page
    assert "<script" not in page.replace("&lt;script", "")
    assert "http" not in page.split("</style>")[1].replace("http-equiv", "")
    assert "CONFIDENTIAL" not in page
    assert page.index('id="in-short"') < page.index('id="look-at"') < page.index('id="plan"')


def test_a_plan_has_one_digest_wherever_it_is_printed(tmp_path: Path) -> None:
    """Its files belong to it: what is approved is what the reviewer's page names."""
    (tmp_path / "sexes.csv").write_text("level\nf\nm\n")
    text = PLAN.replace('sex = { levels = ["f", "m"] }', 'sex = { levels_file = "sexes.csv" }')
    plan, out = write_plan(tmp_path, text), tmp_path / "review.html"
    run("check", plan, "--html", out)
    proposed = run("propose", plan, "--json")["plan_digest"]
    recorded = run("ledger", "export", plan, "--json")["events"][-1]["payload"]["plan_digest"]
    assert proposed == recorded == Plan.load(plan).digest
    assert proposed in out.read_text()
    assert DIGEST_OF in out.read_text().replace("&#39;", "'")
    assert hashlib.sha256((tmp_path / "sexes.csv").read_bytes()).hexdigest() in out.read_text()
    (tmp_path / "sexes.csv").write_text("level\nm\nf\n")
    assert Plan.load(plan).digest != proposed


def test_what_a_reviewer_should_ask(tmp_path: Path) -> None:
    asked = "\n".join(questions(*_checked(tmp_path, PLAN)))
    assert "tie people together" in asked
    plain = PLAN.replace('unit = "id"\n', "").partition("[publish]")
    bare = plain[0] + "[[release]]" + plain[2].partition("[[release]]")[2]
    asked = "\n".join(questions(*_checked(tmp_path, bare)))
    assert "No column identifies the person" in asked
    assert "not protected" not in asked


def _checked(folder: Path, text: str) -> tuple[Plan, dict[str, Any]]:
    plan = Plan.load(write_plan(folder, text))
    return plan, examine(plan)


@pytest.mark.parametrize(("rows", "words"), [(10, ""), (13, "3 more tables")])
def test_check_says_how_many_tables_it_leaves_out(tmp_path: Path, rows: int, words: str) -> None:
    _, document = _checked(tmp_path, PLAN)
    release = document["releases"][0]
    document["releases"] = [release]
    row = release["accuracy"][0]
    release["accuracy"] = [row | {"what": f"table {i}"} for i in range(rows)]
    said = check_words(document)
    (shown,) = (block for block in said if isinstance(block, PageTable))
    paragraphs = " ".join(block.text for block in said if isinstance(block, Paragraph))
    assert len(shown.rows) == 10
    assert words in paragraphs
    assert ("--full" in paragraphs) == bool(words)


def test_two_plans_side_by_side(tmp_path: Path) -> None:
    first = write_plan(tmp_path, PLAN)
    other = tmp_path / "other"
    other.mkdir()
    changes = [("epsilon = 1.0", "epsilon = 2.0"), ('"Women" = { count = "sex = \'f\'" }\n', "")]
    second = write_plan(other, PLAN, *changes)
    found = run("compare", first, second, "--json")
    figures = {one["what"]: (one["first"], one["second"]) for one in found["figures"]}
    assert figures["Women"] == ("in all: 1 figure", None)
    promises = {one["what"]: (one["first"], one["second"]) for one in found["promises"]}
    assert promises["release 'detail'"] == ("epsilon = 1", "epsilon = 2")
    cells = [one for one in found["errors"] if one["what"] == "county x sex"]
    assert [one["release"] for one in cells] == ["detail", "several"]
    assert cells[0]["ratio"] < 1  # a weaker promise under fewer figures has less noise
    screen = run("compare", first, second)
    assert "release 'detail' *" in screen
    assert "Population *" not in screen
    same = run("compare", first, first, "--json")
    assert all(one["ratio"] in (None, 1) for one in same["errors"])
    assert all(one["first"] == one["second"] for one in same["figures"] + same["promises"])
