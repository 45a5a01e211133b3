"""Plan files: exact numbers, and errors that name the key, the value, the rule and the remedy."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from congenial.errors import CongenialError, PlanError
from congenial.kinds.planned_data import NO_FILE, PlanText
from congenial.pairs.adjacency import AddRemove, SemiAdjacent
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, ZeroConcentrated
from congenial.publication.plan import Plan

PLAN = """
[data]
source = "people.parquet"
unit = "person_id"
[schema]
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"All" = { total = true, because = "statute" }
"Adults" = { count = "age >= 18" }
[[release]]
name = "t"
table = ["sex", "age"]
epsilon = 0.1
[budget]
epsilon = 1
"""


def parse(text: str = PLAN) -> Plan:
    return Plan.parse(text, Path("folder"))


def test_numbers_are_exact_decimals():
    plan = parse()
    assert plan.release[0].epsilon == Fraction(1, 10)
    assert plan.budget.budget().epsilon == 1
    assert plan.source.address == Path("folder/people.parquet")
    assert plan.ledger == "folder/ledger.sqlite"


def test_statements_keep_their_words():
    statements = parse().statements
    assert [(s.label, s.because) for s in statements] == [("All", "statute"), ("Adults", "")]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("epsilon = 0.1", Pure),
        ("epsilon = 1\ndelta = 1e-6", Approximate),
        ("rho = 0.25", ZeroConcentrated),
        ("mu = 1", Gaussian),
    ],
)
def test_targets(line, kind):
    plan = parse(PLAN.replace("epsilon = 0.1", line))
    adjacency = plan.adjacency()
    assert isinstance(adjacency, SemiAdjacent)
    assert isinstance(plan.release[0].target(adjacency).tradeoff, kind)


def test_rows_per_person():
    text = PLAN.replace('unit = "person_id"', 'unit = "person_id"\nmax_rows = 3')
    assert parse(text).adjacency() == SeveralRows(parse(text).figures, 3)
    without = text[: text.index("[publish]")] + text[text.index("[[release]]") :]
    assert parse(without).adjacency() == AddRemove(parse(without).schema, 3)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("epsilon = 0.1", "epsilon = -0.1", "release 't': epsilon = -0.1: must be positive"),
        ("epsilon = 0.1", "epsilon = 0", "must be positive"),
        ("epsilon = 0.1", "epsilon = nan", "must be finite"),
        ("epsilon = 0.1", "epsilon = inf", "must be finite"),
        ("epsilon = 0.1", "epsilon = true", "must be a number"),
        ("epsilon = 0.1", "", "exactly one of epsilon, rho, mu"),
        ("epsilon = 0.1", "epsilon = 1\ndelta = 1", "delta must be below 1"),
        ("epsilon = 0.1", 'rho = 1\nnonnegative = "condition"', "use 'project', which is free"),
        ('name = "t"', 'name = "../t"', 'name = "../t": must begin with a letter or digit'),
        ('name = "t"', "", "release number 1: name: missing"),
        ("epsilon = 0.1", "", "release 't': must have exactly one of epsilon"),
        ('table = ["sex", "age"]', "table = []", "release 't': table"),
        (
            "total = true",
            "total = false",
            "publish.All.total = false: must be true, or leave",
        ),
        ("total = true", "by = []", "exactly one of total"),
        ("[data]", "[dta]", "unknown key. Did you mean 'data'?"),
        ('source = "people.parquet"', "", "data.source: missing"),
        ("[budget]\nepsilon = 1", "[budget]\nledger = 'x'", "must have epsilon"),
        ("epsilon = 0.1", f"epsilon = 1e-{'9' * 30}", "whose exponent is too long"),
    ],
)
def test_errors_name_key_value_rule_and_remedy(old, new, says):
    assert old in PLAN
    with pytest.raises(PlanError) as error:
        parse(PLAN.replace(old, new, 1))
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("place", "line", "says"),
    [
        ("epsilon = 0.1", "rounding = 3", "round the released tables for"),
        ("epsilon = 0.1", "threshold = 10", "Small counts are not left out"),
        ("epsilon = 0.1", "min_count = 3", "Small counts are not left out"),
        ('source = "people.parquet"', 'weight = "w"', "release the sum of the weights"),
        ("epsilon = 0.1", "k_anonymity = 5", "State a promise instead: epsilon, rho or mu"),
        ("epsilon = 0.1", "top_code = 85", 'top = "65+"'),
        ("epsilon = 0.1", 'noise = "laplace"', "`congenial check` shows the margins of error"),
        ("epsilon = 0.1", "sensitivity = 1", "max_rows in [data]"),
        ('"All" = { total = true', ", round_to = 5", "An exact figure is published as it is"),
        ('"All" = { total = true', ", threshold = 5", "An exact figure is published as it is"),
    ],
)
def test_keys_of_other_tools_are_answered(place, line, says):
    """What people look for and a plan has not: why, and what to do instead."""
    assert place in PLAN
    between = "" if line.startswith(",") else "\n"
    with pytest.raises(PlanError) as error:
        parse(PLAN.replace(place, place + between + line, 1))
    assert "unknown key" in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("age >= 18", "age >= 17", "edge"),
        ("age >= 18", "height > 2", "height"),
        ("[0, 18, 65]", "[0, 65, 18]", "edges"),
        ('count = "age >= 18"', 'linear = { "age >= 18" = 0 }', "whole number"),
        (
            '"Adults" = { count = "age >= 18" }',
            '"Few" = { total = true, at_most = 3 }\n"Many" = { total = true, at_least = 9 }',
            "'Few' and 'Many' together",
        ),
    ],
)
def test_mandates_and_schema_are_checked(old, new, says):
    plan = parse(PLAN.replace(old, new))
    with pytest.raises(CongenialError, match=says):
        plan.adjacency()


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(PlanError, match="no plan at"):
        Plan.load(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PlanError, match="cannot be read"):
        Plan.load(tmp_path / "plan.toml")


def test_the_digest_is_of_the_content():
    assert parse().digest == parse(PLAN + "\n# a comment\n").digest
    assert parse().digest != parse(PLAN.replace("epsilon = 0.1", "epsilon = 0.2")).digest


def test_a_plan_may_publish_and_release_nothing(tmp_path: Path) -> None:
    """Suppression: mandated figures only, the rest is withheld."""
    start, end = PLAN.index("[[release]]"), PLAN.index("[budget]")
    quiet = PLAN[:start] + PLAN[end:]
    assert Plan.parse(quiet, tmp_path).release == []
    silent = quiet[: quiet.index("[publish]")] + quiet[quiet.index("[budget]") :]
    with pytest.raises(PlanError, match=r"must have \[publish\] or \[\[release\]\]"):
        Plan.parse(silent, tmp_path)


def test_errors_name_file_and_line_also_behind_lists_and_long_texts() -> None:
    text = '''[data]
source = """
[release]
budget = 1"""
[schema]
"birth place" = { levels = [
  "a", # [[release]]
  ["b"]
] }
[[release]]
name = "one"
[release.model]
kids = "poisson"
[[release]]
name = "two"
'''
    plan = PlanText("plan.toml", text)
    assert plan.at("schema", "birth place") == "plan.toml, line 6: "
    assert plan.at("release", 0, "model", "kids") == "plan.toml, line 13: "
    assert plan.at("release", 1, "epsilon") == "plan.toml, line 14: "
    assert plan.at("budget") == "plan.toml: "
    assert NO_FILE.at("budget") == ""
