"""Tests on tables with the noise in their law: equality of two areas, independence, trend.

The null hypothesis is about people: the kind of each person is drawn with the same chances in every
row (area, level). The statistic is computed from the noisy table, and its law under the null by
simulation: people drawn with the shares that were estimated, the public noise added, the same
statistic again. p = (1 + number at least as large) / (draws + 1). An ordinary chi-squared test of
noisy counts takes noise for a difference.

The command line asks for them in words, such as ``equal(age | county = 'A', county = 'B')``:

test := "independent" "(" name "," name ["|" condition] ")"
      | "equal" "(" name "|" condition "," condition ")"
      | "trend" "(" condition "by" name ["|" condition] ")"
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import TEXT, takes
from congenial.data.arrays import Floats
from congenial.errors import InferenceError
from congenial.inference.estimates.cell_estimates import (
    CellEstimates,
    Weights,
    refuse_sums,
)
from congenial.inference.estimates.cell_groups import (
    CellGroups,
    first_answer,
    has_parts,
    named_columns,
    ordered,
    table_showing,
    tables_showing,
)
from congenial.inference.estimates.combined_estimates import cell_estimates
from congenial.inference.estimates.expression_language import QuestionTokens
from congenial.tables.simulated_errors import SEED

TABLES = 1_999  # simulated under the null hypothesis


@dataclass(frozen=True)
class TableTest:
    """A p-value, the null hypothesis it is about, and how its law was worked out.

    The p-value is a Monte Carlo one, (1 + tables at least as extreme) / (1 + tables): valid for
    any number of tables, and never below 1 / (1 + tables).
    """

    null: str
    statistic: float
    p_value: float
    method: str = f"simulation of people under the null and of the public noise, {TABLES:,} tables"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


@takes(InferenceError, row=TEXT, column=TEXT, where=TEXT)
def independence_test(release: Any, row: str, column: str, where: str = "") -> TableTest:
    """Test that two attributes are independent among people who meet a condition.

    Statistic: sum over cells of (N_ij - N_i. p_j)^2 / V_ij, where p_j is the share of column j in
    the noisy table and V_ij the variance under the null of people and noise together. Its law is
    simulated (module): people of each row drawn with the shares p, plus the public noise. The level
    is approximate as far as p is estimated; the noise is not taken for dependence, and none is
    subtracted. InferenceError for one attribute twice, or where fewer than two rows have people.

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> from congenial import release_table
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 2]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> table = Table(schema, ["sex", "age"], [[90, 110, 5], [100, 80, 70]])
    >>> release = release_table(mechanism, table, SeededRandomness(1))
    >>> test = independence_test(release, "sex", "age")
    >>> test.null, test.p_value
    ('sex and age are independent', 0.0005)
    """
    groups = _all(release, f"independent({row}, {column})", (row, column), (where,))
    chosen = groups.selected(where)
    (first, rows), (second, columns) = groups.levels_of(row), groups.levels_of(column)
    if groups.table.schema.axis(row).base == groups.table.schema.axis(column).base:
        raise InferenceError(
            f"'{row}' and '{column}' are the same attribute.", remedy="Name two attributes."
        )
    weights = groups.rows(chosen, first * columns + second, rows * columns)
    null = f"{row} and {column} are independent{_among(where)}"
    return _tested(groups.source, weights, (rows, columns), null)


@takes(InferenceError, name=TEXT, one=TEXT, other=TEXT)
def equality_test(release: Any, name: str, one: str, other: str) -> TableTest:
    """Test that an attribute has the same shares in two areas (any two conditions).

    The statistic and its law are those of `independence_test` on the table with one row for each
    condition. The conditions may leave people out; InferenceError where they have people in common,
    since their counts would not be independent under the null.

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> from congenial import release_table
    >>> schema = Schema.from_dict({"area": {"levels": ["A", "B"]}, "age": {"integers": [0, 2]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> table = Table(schema, ["area", "age"], [[90, 110, 50], [92, 108, 50]])
    >>> release = release_table(mechanism, table, SeededRandomness(1))
    >>> equality_test(release, "age", "area = 'A'", "area = 'B'").p_value > 0.05
    True
    """
    groups = _all(release, f"equal({name})", (name,), (one, other))
    level, count = groups.levels_of(name)
    inside = [groups.selected(condition) for condition in (one, other)]
    if np.any(inside[0] & inside[1]):
        raise InferenceError(
            f"'{one}' and '{other}' have people in common.",
            remedy="Compare groups that do not overlap.",
        )
    each = [groups.rows(cells, level, count) for cells in inside]
    null = f"{name} has the same shares where {one} and where {other}"
    return _tested(groups.source, sp.vstack(each, format="csr"), (2, count), null)


@takes(InferenceError, condition=TEXT, name=TEXT, where=TEXT)
def trend_test(release: Any, condition: str, name: str, where: str = "") -> TableTest:
    """Test that the share of people who meet a condition has no trend along an ordered attribute.

    Scores are the places of the levels, 1, 2, ...
    """
    groups = _all(release, f"trend(... by {name})", (name,), (condition, where))
    bins = len(ordered(name, groups).intervals)
    level, _ = groups.levels_of(name)
    chosen, meets = groups.selected(where) & (level < bins), groups.selected(condition)
    row = np.where(meets, 0, 1) * bins + np.minimum(level, bins - 1)
    weights = groups.rows(chosen, row, 2 * bins)
    null = f"the share of {condition} has no trend along {name}{_among(where)}"
    return _tested(groups.source, weights, (2, bins), null, _trend)


def _all(
    release: Any, text: str, names: tuple[str, ...], conditions: tuple[str, ...]
) -> CellGroups:
    source = table_showing(cell_estimates(release), names, conditions, text)
    refuse_sums(source, "a test")
    return CellGroups(source, source, ())


def _among(where: str) -> str:
    return f" where {where}" if where else ""


def _tested(
    source: CellEstimates,
    weights: Weights,
    shape: tuple[int, int],
    null: str,
    statistic: Any = None,
) -> TableTest:
    observed = np.asarray(weights @ source.cells).reshape(1, *shape)
    errors = source.errors(weights)[:TABLES].reshape(-1, *shape)
    noise = np.mean(errors**2, axis=0)
    measure = statistic or _distance
    measured_statistic = float(measure(observed, noise)[0])
    people, shares = _margins(observed[0])
    if people.sum() <= 0 or np.count_nonzero(people) < 2:
        raise InferenceError(
            f"fewer than two rows of the table have people: '{null}' cannot be tested.",
            remedy="Test larger groups.",
        )
    rng = np.random.default_rng(SEED)
    counts = np.round(people).astype(np.int64)
    again = np.stack([rng.multinomial(n, shares, size=len(errors)) for n in counts], axis=1)
    larger = int(np.count_nonzero(measure(again + errors, noise) >= measured_statistic))
    return TableTest(null, measured_statistic, (1 + larger) / (len(errors) + 1))


def _margins(table: Floats) -> tuple[Floats, Floats]:
    """People of each row, and the shares of the columns, none of them negative."""
    people, columns = np.maximum(table.sum(axis=1), 0.0), np.maximum(table.sum(axis=0), 0.0)
    return people, columns / max(columns.sum(), 1e-300)


def _distance(tables: Floats, noise: Floats) -> Floats:
    """Squared differences from equal shares over their variance, people's and the noise's."""
    rows = np.maximum(tables.sum(axis=2, keepdims=True), 0.0)
    shares = np.maximum(tables.sum(axis=1, keepdims=True), 0.0)
    total = np.maximum(shares.sum(axis=2, keepdims=True), 1.0)
    shares = shares / total
    variance = rows * shares * (1 - shares) * (1 - rows / total) + noise
    away = (tables - rows * shares) ** 2
    quotients = np.divide(away, variance, out=np.zeros_like(away), where=variance > 0)
    return np.asarray(quotients.sum(axis=(1, 2)))


def _trend(tables: Floats, noise: Floats) -> Floats:  # noqa: ARG001 - the same for all draws
    """|sum of scores times (number who meet the condition - expected)|."""
    scores = np.arange(1, tables.shape[2] + 1)
    people = tables.sum(axis=1)
    total = np.maximum(people.sum(axis=1, keepdims=True), 1.0)
    share = np.clip(tables[:, 0].sum(axis=1, keepdims=True) / total, 0, 1)
    return np.asarray(np.abs(np.sum(scores * (tables[:, 0] - share * people), axis=1)))


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
        typed_arguments = [*zip(kinds, arguments, strict=True)]
        names = [argument for kind, argument in typed_arguments if kind == "name"]
        conditions = [argument for kind, argument in typed_arguments if kind == "condition"]
        columns = named_columns(names, conditions, release.schema)
        tables = tables_showing(release, columns, text)
    test_result: TableTest = first_answer(
        [[table] for table in tables], lambda one: test(*one, *arguments)
    )
    return test_result


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
