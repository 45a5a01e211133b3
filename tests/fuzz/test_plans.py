"""Plan files and conditions under fire: refused in words, in time, and without a trace."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.errors import PredicateError
from congenial.kinds.given_public import ScenariosSection
from congenial.kinds.tables import TablesSection
from congenial.publication import workflow
from congenial.publication.plan import Plan
from tests.cli.conftest import PLAN
from tests.confidentiality.scenes import GIVEN, SCENES
from tests.fuzz.conftest import accepted, cases
from tests.fuzz.hostile import WORDS, mutated_text

PLANS = (*(scene.plan for scene in SCENES), PLAN)
SMALL = 400  # cells of a table that `check` is asked about: larger ones are slow, not wrong


def read(text: str, folder: Path) -> Plan:
    """Everything about a plan that needs no data."""
    plan = Plan.parse(text, folder)
    _ = plan.schema, plan.figures, plan.unit, plan.source, plan.ledger
    _ = plan.budget.budget().words, plan.digest, plan.adjacency()
    return plan


def survives(text: str, check: bool = False) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with accepted():
            plan = read(text, folder)
            if check and _small(plan):
                workflow.check(plan)
        assert list(folder.iterdir()) == []  # nothing was made, not even a ledger


def _small(plan: Plan) -> bool:
    kinds = (TablesSection, ScenariosSection)
    tables = [section for section in plan.release if isinstance(section, kinds)]
    several = any(isinstance(one, TablesSection) and one.tables for one in tables)
    if several or len(tables) < len(plan.release):
        return False
    asked = [
        one.epsilon if isinstance(one, ScenariosSection) else one.epsilon or one.rho or one.mu
        for one in tables
    ]
    loose = all(float(amount or 0) > 0.05 for amount in asked)
    return loose and all(plan.schema.size(one.table) <= SMALL for one in tables)


ALONE = GIVEN.replace('{ prior = "earlier.csv", alpha = 0.1, kappa = 0.5 }', '"congenial"')
PLAN_CASES = given(mutated_text(PLANS))


@PLAN_CASES
@cases(150)
def test_mutated_plans(text: str) -> None:
    survives(text)


@pytest.mark.audit
@PLAN_CASES
@cases(30_000)
def test_many_mutated_plans(text: str) -> None:
    survives(text)


@pytest.mark.audit
@given(mutated_text((PLAN, ALONE), most=2))
@cases(1_500)
def test_mutated_plans_checked(text: str) -> None:
    survives(text, check=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("epsilon = 1.0", "epsilon = 1e999999999"),
        ("epsilon = 1.0", "epsilon = 1e-999999999"),
        ("epsilon = 2.0", "epsilon = 2e999999999"),
        ("[0, 18, 30, 65]", "[0, 18, 1e999999999]"),
        ('{ levels = ["f", "m"] }', "{ integers = [0, 99999999999999] }"),
        ("epsilon = 1.0", f"epsilon = {'9' * 4000}"),
        ("epsilon = 1.0", f"epsilon = {'9' * 5000}"),
    ],
)
def test_numbers_that_would_take_for_ever(old: str, new: str, in_time: Callable[..., None]) -> None:
    """A plan of one line must not fill the memory: 10^999999999 has a billion digits."""
    assert old in PLAN
    in_time(survives, PLAN.replace(old, new))


def test_deeply_nested_text(in_time: Callable[..., None]) -> None:
    for text in ("a = " + "[" * 100_000, "a = " + "{ b = " * 50_000, "[" * 50_000, "a." * 3_000):
        in_time(survives, text)


# ---- conditions ----------------------------------------------------------------------------------

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"], "within": {"state": ["X", "X", "Y"]}},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 30, 65], "top": "65+"},
        "size of home": {"integers": [1, 9], "missing": "unknown"},
    }
)
CONDITIONS = (
    "age >= 18 and sex = 'f'",
    "not (county in ('A', 'B') or age between 18 and 29) and \"size of home\" != 3",
    "state = 'X' or age < 65 and not sex <> 'm'",
    '"size of home" not in (1, 2) and age not between 0 and 17',
)


def decides(text: str) -> None:
    """Whatever the text, the answer is about the schema's levels, or refused."""
    with accepted():
        found = parse(text, SCHEMA)
        assert set(found.bases) <= set(SCHEMA.names)
        assert found.mask().shape == tuple(SCHEMA.attribute(n).size for n in found.bases)
        assert found.mask().dtype == np.bool_


CONDITION_CASES = given(
    st.one_of(
        mutated_text(CONDITIONS),
        st.lists(st.sampled_from((*WORDS, "age", "sex", "'f'", "18", ">=")), max_size=12).map(
            " ".join
        ),
        st.text(max_size=60),
    )
)


@CONDITION_CASES
@cases(250)
def test_mutated_conditions(text: str) -> None:
    decides(text)


@pytest.mark.audit
@CONDITION_CASES
@cases(50_000)
def test_many_mutated_conditions(text: str) -> None:
    decides(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x') = 1",
        "age.__class__ = 1",
        "sex = f(1)",
        "open('plan.toml') = 1",
        "lambda: 1",
        "age >= 18; DROP TABLE people",
        "age >= 18 -- and so on",
        "id = '1'",  # a column of the data that the schema does not name
        "rowid = 1",
        '"age" = (select max(age) from people)',
        "{age}",
        "%(age)s = 1",
    ],
)
def test_a_condition_reaches_nothing_but_the_schema(text: str) -> None:
    with pytest.raises(PredicateError):
        parse(text, SCHEMA)
