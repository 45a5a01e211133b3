"""What cannot be drawn by group on Spark is refused by `check`, while no figure is public."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import pytest

from congenial.errors import CongenialError, PlanError, StructureError
from congenial.kinds import single_table_offer
from congenial.kinds.group_refusals import refuse_groups
from congenial.mechanisms.mechanism import Mechanism
from congenial.publication import workflow
from congenial.publication.plan import Plan

HEAD = """
[data]
source = "spark:census.people"
[schema]
county = { levels = ["A", "B", "C"] }
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
"""
FIGURES = {
    "Population": '"Population" = { total = true, by = ["county"] }',
    "Female": '"Female" = { count = "sex = \'f\'", by = ["county"] }',
    "Voting age": '"Voting age" = { count = "age >= 18", by = ["county"] }',
    "Everybody": '"Everybody" = { total = true }',
    "Many": '"Many" = { at_least = 9, count = "age >= 65" }',
    "Few": '"Few" = { at_most = 9, count = "age >= 65", by = ["county"] }',
}
ASKED = {
    "epsilon": "epsilon = 1",
    "rho": "rho = 0.5",
    "condition": 'epsilon = 1\nnonnegative = "condition"',
    "real": 'epsilon = 1\nmechanism = "plain_laplace"',
    "project": 'epsilon = 1\nnonnegative = "project"',
    "levels": 'epsilon = 1\nlevels = [["county"], ["county", "sex"]]',
    "all": 'epsilon = 1\nlevels = [[], ["county"]]',
    "norm": 'epsilon = 1\nmechanism = "congenial_l2"',
}


def planned(folder: Path, figures: tuple[str, ...], asked: str, by: str, source: str = "") -> Plan:
    """A plan of one table by county, sex and age."""
    told = "\n".join(FIGURES[name] for name in figures)
    text = HEAD.replace("spark:census.people", source or "spark:census.people")
    text += f"[publish]\n{told}\n" if figures else ""
    text += f'[[release]]\nname = "made"\ntable = ["county", "sex", "age"]\n{ASKED[asked]}\n'
    text += f'by = ["{by}"]\n' if by else ""
    place = folder / "plan.toml"
    place.write_text(text + '[budget]\nledger = "ledger.sqlite"\nepsilon = 4\ndelta = 1e-9\n')
    return Plan.load(place)


def refusal(plan: Plan) -> CongenialError | None:
    """Why `check` refuses a plan, if it does."""
    try:
        workflow.check(plan)
    except CongenialError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("figures", "asked", "by", "word"),
    [
        ((), "real", "county", "real numbers"),
        (("Population", "Female"), "norm", "county", "not drawn by group"),
        (("Everybody",), "epsilon", "county", "across the groups of county"),
        (("Population",), "epsilon", "sex", "across the groups of sex"),
        (("Population", "Female", "Voting age"), "epsilon", "sex", "across the groups of sex"),
        (("Population", "Few"), "condition", "age", "across the groups of age"),
        (("Many",), "condition", "county", "bound runs across the groups of county"),
        ((), "all", "county", "level of all people"),
        ((), "levels", "age", "level of county has sums"),
    ],
)
def test_refused_by_check(
    tmp_path: Path, figures: tuple[str, ...], asked: str, by: str, word: str
) -> None:
    with pytest.raises((StructureError, PlanError), match=word) as caught:
        workflow.check(planned(tmp_path, figures, asked, by))
    assert caught.value.remedy
    if asked not in ("levels", "all"):  # drawn in one place, by simulation: tests/mechanisms
        workflow.check(planned(tmp_path, figures, asked, ""))  # the remedy works


CROSSING = ("Population", "Female", "Voting age")


@pytest.mark.parametrize(
    ("figures", "asked"),
    [
        *product([(), ("Population",), ("Population", "Female"), CROSSING], ["epsilon", "rho"]),
        *product([("Population",), CROSSING, ("Population", "Few")], ["condition", "project"]),
        (("Population", "Female"), "levels"),
        (("Population",), "all"),  # the figures fix the level of all people
        (("Everybody", "Population"), "rho"),  # what all groups have together follows from theirs
        (("Everybody", "Population"), "condition"),
    ],
)
def test_not_refused(tmp_path: Path, figures: tuple[str, ...], asked: str) -> None:
    assert refusal(planned(tmp_path, figures, asked, "county")) is None


def test_check_and_the_job_refuse_the_same(tmp_path: Path) -> None:
    """Every plan of up to two figures: what the job would refuse, `check` refuses, and no more than
    that beyond what it refuses of a plan without `by`.
    """
    refused = 0
    sets = [CROSSING, *(one for size in range(3) for one in combinations(FIGURES, size))]
    for figures, asked, by in product(sets, ("project", "rho"), ("county", "sex")):
        alone = planned(tmp_path, figures, asked, "")
        why = refusal(planned(tmp_path, figures, asked, by))
        if refusal(alone) is not None:
            assert why is not None
            continue
        mechanism = single_table_offer.build(alone, alone.release[0], alone.invariants)
        job = _job(mechanism, by)
        refused += job is not None
        assert str(why) == str(job)
    assert refused > 15


def _job(mechanism: Mechanism, by: str) -> StructureError | None:
    """Why the job on Spark refuses to draw by group, if it does."""
    try:
        refuse_groups(mechanism, (by,))
    except StructureError as error:
        return error
    return None


@pytest.mark.parametrize("asked", ["epsilon", "condition", "norm", "levels"])
def test_other_engines_draw_in_one_place(tmp_path: Path, asked: str) -> None:
    figures = ("Population", "Female")
    assert refusal(planned(tmp_path, figures, asked, "sex", source="people.parquet")) is None
