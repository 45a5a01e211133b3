"""Other beliefs than independent records from a plan: rules, dependence, listed databases."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from scipy import stats

from congenial.errors import CongenialError, DataError, GuaranteeError
from congenial.publication import bundle, workflow
from congenial.publication.check_document import examine
from congenial.publication.json_schema import plan_schema
from congenial.publication.plan import Plan
from congenial.publication.verification import verify
from congenial.sampling.randomness import SeededRandomness

PLAN = """
[data]
source = "people.csv"
[schema]
ill = { levels = ["no", "yes"] }
sex = { levels = ["f", "m"] }
[publish]
"All" = { total = true }
[[release]]
name = "t"
table = ["ill"]
scenarios = SCENARIOS
epsilon = 1
[budget]
epsilon = 4
"""
ANSWERS = 'believe = "independent answers", of = "yes", people = 40'
CLOSE = f"{{ {ANSWERS}, t_closeness = 0.2, target = 0.25 }}"
ANONYMOUS = f"{{ {ANSWERS}, k_anonymity = 3 }}"
DEPENDENT = '{ believe = "dependent answers", of = "yes", people = 40, chances = [0.2, 0.4] }'
LISTED = '{ believe = "listed databases", file = "beliefs.csv" }'
BELIEFS = "scenario,weight,anna,berta,carla\neven,1,no,no,yes\neven,1,yes,no,no\nodd,1,yes,no,no\n"


def write(folder: Path, scenarios: str, ill: int = 10, people: int = 40) -> Plan:
    rows = [f"{'yes' if i < ill else 'no'},{'fm'[i % 2]}\n" for i in range(people)]
    (folder / "people.csv").write_text("ill,sex\n" + "".join(rows), encoding="utf-8")
    (folder / "beliefs.csv").write_text(BELIEFS, encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN.replace("SCENARIOS", scenarios), encoding="utf-8")
    return Plan.load(folder / "plan.toml")


@pytest.mark.parametrize(
    ("scenarios", "records", "words"),
    [
        (CLOSE, 2, "the share is within 1/5 of 1/4"),
        (ANONYMOUS, 2, "the count and its complement are 3 or more"),
        (DEPENDENT, 11, "the other 39 are independent"),
    ],
)
def test_from_a_plan_to_a_verified_bundle(tmp_path, scenarios, records, words):
    plan = write(tmp_path, scenarios)
    (before,) = examine(plan)["releases"]
    workflow.publish(plan)
    (told,) = examine(plan)["releases"]
    assert before["delta_z"] == told["delta_z"]
    assert told["delta_z"] == {"value": records, "measure": "records", "assumed": False}
    assert Fraction(told["rate"]) == Fraction(1, 2 * 2 * records)  # epsilon / (c sigma)
    assert words in told["promise"]
    assert "counted is ill = yes" in told["promise"]
    folder = workflow.release(plan, "t", randomness=SeededRandomness(3)).folder
    assert all(check.holds for check in verify(folder) if "random" not in check.what)
    assert bundle.read(folder).counts.sum() == 40


@pytest.mark.parametrize(
    ("scenarios", "records"),
    [
        (CLOSE.replace("target = 0.25", "target = 0"), 2),
        (DEPENDENT.replace("0.2, 0.4", "0, 0.4"), 40),  # from nobody to everybody
        (DEPENDENT.replace("0.2, 0.4", "0, 1"), 40),
    ],
)
def test_shares_may_be_zero_and_one(tmp_path, scenarios, records):
    plan = write(tmp_path, scenarios, ill=5)
    (told,) = examine(plan)["releases"]
    assert told["delta_z"]["value"] == records
    checker = jsonschema.Draft202012Validator(plan_schema())
    assert list(checker.iter_errors(tomllib.loads(PLAN.replace("SCENARIOS", scenarios)))) == []
    with pytest.raises(CongenialError, match="from 0 to 1"):
        write(tmp_path, DEPENDENT.replace("0.4", "1.4"))


def test_the_distance_of_dependent_answers_is_that_of_two_binomial_laws():
    """W_inf of Bin(39, 0.2) and 1 + Bin(39, 0.4): the largest gap of their quantiles."""
    k = np.arange(41)
    low, high = stats.binom.cdf(k, 39, 0.2), stats.binom.cdf(k - 1, 39, 0.4)
    gaps = [int(np.argmax(high >= at - 1e-15)) - i for i, at in enumerate(low) if at < 1]
    assert max(gaps) == 11


def test_listed_databases_say_how_far_one_answer_moves_them(tmp_path):
    """Given that one of three is ill and which two it may be, one answer moves two records."""
    plan = write(tmp_path, LISTED, ill=1, people=3)
    workflow.publish(plan)
    (told,) = examine(plan)["releases"]
    assert told["delta_z"]["value"] == 2
    assert "even, odd" in told["promise"]
    folder = workflow.release(plan, "t", randomness=SeededRandomness(3)).folder
    assert all(check.holds for check in verify(folder) if "random" not in check.what)


@pytest.mark.parametrize("scenarios", [CLOSE, ANONYMOUS, DEPENDENT, LISTED])
def test_editors_know_what_may_be_written(scenarios):
    checker = jsonschema.Draft202012Validator(plan_schema())
    good = tomllib.loads(PLAN.replace("SCENARIOS", scenarios))
    assert list(checker.iter_errors(good)) == []
    bad = tomllib.loads(PLAN.replace("SCENARIOS", scenarios.replace("believe", "belief")))
    assert list(checker.iter_errors(bad)) != []


def test_a_public_rule_that_does_not_hold_is_refused_without_the_count(tmp_path):
    plan = write(tmp_path, ANONYMOUS, ill=2)
    workflow.publish(plan)
    with pytest.raises(DataError, match="is not true for these data") as refusal:
        workflow.release(plan, "t", randomness=SeededRandomness(3))
    assert " 2 " not in str(refusal.value)


@pytest.mark.parametrize(
    ("scenarios", "why"),
    [
        (ANONYMOUS.replace("40", "41"), "41 people, but 40 are published"),
        (ANONYMOUS.replace('"yes"', '"perhaps"'), "a question with two answers"),
        (ANONYMOUS.replace("3 }", "21 }"), "no count of 40 people satisfies"),
    ],
)
def test_other_numbers_and_questions_are_refused(tmp_path, scenarios, why):
    plan = write(tmp_path, '{ believe = "independent records" }')
    workflow.publish(plan)
    with pytest.raises(GuaranteeError, match=why):
        examine(write(tmp_path, scenarios))


@pytest.mark.parametrize(
    "scenarios",
    [
        ANONYMOUS.replace("3 }", '"3" }'),
        ANONYMOUS.replace("k_anonymity", "l_diversity"),
        DEPENDENT.replace("[0.2, 0.4]", "[0.2]"),
        LISTED.replace("file", "folder"),
        '{ believe = "anything" }',
    ],
)
def test_what_is_no_belief_is_answered_with_the_grammar(tmp_path, scenarios):
    with pytest.raises(CongenialError, match="independent answers"):
        write(tmp_path, scenarios)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("scenario,weight,anna\neven,1,S3CR3T\n", "not a category of 'ill'"),
        ("scenario,weight,anna\nS3CR3T,S3CR3T,no\n", "row 2 .* weight that is not a number"),
        ("scenario,weight,anna\nS3CR3T,-1,no\n", "row 2 .* weight that is not a number"),
        ("scenario,weight,anna\nS3CR3T,0,no\n", "every weight is zero"),
        ("weight,anna\n1,no\n", "cannot be read as a list of databases"),
        ("scenario,weight,a,b\none,1,no,yes\none,1,yes,no\n", "published figures"),
    ],
)
def test_files_that_list_no_possible_databases_are_refused(tmp_path, text, why):
    plan = write(tmp_path, LISTED, ill=1, people=3)
    workflow.publish(plan)
    (tmp_path / "beliefs.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=why) as caught:
        examine(plan)
    assert "S3CR3T" not in str(caught.value)  # nothing of a file is quoted
