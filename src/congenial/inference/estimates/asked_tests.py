"""Tests as a command line asks for them, such as ``equal(age | county = 'A', county = 'B')``.

test := "independent" "(" name "," name ["|" condition] ")"
      | "equal" "(" name "|" condition "," condition ")"
      | "trend" "(" condition "by" name ["|" condition] ")"
"""

from __future__ import annotations

from typing import Any

from congenial.errors import InferenceError
from congenial.inference.estimates.asked_columns import (
    first_answer,
    has_parts,
    named_columns,
    tables_showing,
)
from congenial.inference.estimates.expression_language import QuestionTokens
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
    """Carry out the test that a text asks for; of records, on the measured table with the least
    noise that shows its columns.
    """
    tokens = QuestionTokens(text, EXAMPLE_TEST)
    name = tokens.need("independent, equal or trend", "word", *_TESTS).value.lower()
    tokens.need("'('", "symbol", "(")
    test, read, kinds = _TESTS[name]
    arguments = read(tokens)
    tokens.need("')'", "symbol", ")")
    if tokens.peek().kind != "end":
        tokens.fail("the end")
    tables = [release]
    if has_parts([release]):
        told = [*zip(kinds, arguments, strict=True)]
        names = [one for kind, one in told if kind == "name"]
        conditions = [one for kind, one in told if kind == "condition"]
        columns = named_columns(names, conditions, release.schema)
        tables = tables_showing(release, columns, text)
    found: TableTest = first_answer([[one] for one in tables], lambda one: test(*one, *arguments))
    return found


def _two_names(tokens: QuestionTokens) -> tuple[str, ...]:
    first = tokens.name("an attribute")
    tokens.need("',' and another attribute", "symbol", ",")
    return first, tokens.name("another attribute"), tokens.among()


def _two_groups(tokens: QuestionTokens) -> tuple[str, ...]:
    name = tokens.name("an attribute")
    tokens.need("'|' and two conditions", "symbol", "|")
    first = tokens.condition()
    tokens.need("',' and another condition", "symbol", ",")
    return name, first, tokens.condition()


def _along(tokens: QuestionTokens) -> tuple[str, ...]:
    condition = tokens.condition(until="by")
    if not condition:
        raise InferenceError("trend(...) needs a condition.", remedy=EXAMPLE_TEST)
    tokens.need("'by' and an ordered attribute", "word", "by")
    return condition, tokens.name("an ordered attribute"), tokens.among()


_TESTS: dict[str, tuple[Any, Any, tuple[str, ...]]] = {  # and what its arguments are
    "independent": (independence_test, _two_names, ("name", "name", "condition")),
    "equal": (equality_test, _two_groups, ("name", "condition", "condition")),
    "trend": (trend_test, _along, ("condition", "name", "condition")),
}
