"""Tests as a command line asks for them, such as ``equal(age | county = 'A', county = 'B')``.

test := "independent" "(" name "," name ["|" condition] ")"
      | "equal" "(" name "|" condition "," condition ")"
      | "trend" "(" condition "by" name ["|" condition] ")"
"""

from __future__ import annotations

from typing import Any

from congenial.errors import InferenceError
from congenial.inference.estimates.expression_tokens import Tokens
from congenial.inference.estimates.table_tests import (
    TableTest,
    equality_test,
    independence_test,
    trend_test,
)

EXAMPLE_TEST = (
    "Write independent(sex, age), equal(age | county = 'A', county = 'B') or "
    "trend(sex = 'female' by age)."
)


def carry_out_test(release: Any, text: str) -> TableTest:
    """Carry out the test that a text asks for."""
    tokens = Tokens(text, EXAMPLE_TEST)
    name = tokens.need("independent, equal or trend", "word", *_TESTS).value.lower()
    tokens.need("'('", "symbol", "(")
    arguments = _TESTS[name][1](tokens)
    tokens.need("')'", "symbol", ")")
    if tokens.peek().kind != "end":
        tokens.fail("the end")
    found: TableTest = _TESTS[name][0](release, *arguments)
    return found


def _two_names(tokens: Tokens) -> tuple[str, ...]:
    first = tokens.name("an attribute")
    tokens.need("',' and another attribute", "symbol", ",")
    return first, tokens.name("another attribute"), tokens.among()


def _two_groups(tokens: Tokens) -> tuple[str, ...]:
    name = tokens.name("an attribute")
    tokens.need("'|' and two conditions", "symbol", "|")
    first = tokens.condition()
    tokens.need("',' and another condition", "symbol", ",")
    return name, first, tokens.condition()


def _along(tokens: Tokens) -> tuple[str, ...]:
    condition = tokens.condition(until="by")
    if not condition:
        raise InferenceError("a trend needs a condition.", remedy=EXAMPLE_TEST)
    tokens.need("'by' and an ordered attribute", "word", "by")
    return condition, tokens.name("an ordered attribute"), tokens.among()


_TESTS: dict[str, tuple[Any, Any]] = {
    "independent": (independence_test, _two_names),
    "equal": (equality_test, _two_groups),
    "trend": (trend_test, _along),
}
