"""Joint loss of several tables against enumerated databases, and prices after another figure."""

from __future__ import annotations

from fractions import Fraction

import pytest

from congenial import AddRemove, Figures, ReplaceOne, SemiAdjacent, margin, total
from congenial.errors import GuaranteeError
from congenial.tables import Workload, difference_types, joint_epsilon, joint_rho
from congenial.tables.promise import Measured
from tests.pairs.test_difference_types import SMALL, publish_from
from tests.tables.brute import by_figures, maximal_types
from tests.worlds import schema_of

WEIGHTS = (Fraction(1, 3), Fraction(2, 7), Fraction(5), Fraction(1, 11))


def enumerated(schema, tables, databases, a, parameters):
    squares, absolutes = maximal_types(schema, tables, databases, a)

    def largest(vectors):
        return max(
            sum((p * c for p, c in zip(parameters, v, strict=True)), Fraction(0)) for v in vectors
        )

    return largest(squares) / 2, largest(absolutes)


@pytest.mark.parametrize("name", SMALL)
def test_the_promise_is_never_below_the_enumerated_loss(name):
    schema, statements, tables, _ = SMALL[name]
    parameters = WEIGHTS[: len(tables)]
    for databases in list(by_figures(schema, statements, 3).values())[::7]:
        if len(databases) > 30:
            continue
        adjacency = SemiAdjacent(publish_from(schema, statements, databases[0]))
        types = difference_types(adjacency, Workload.of(schema, tables))
        rho, epsilon = joint_rho(types, parameters), joint_epsilon(types, parameters)
        true = enumerated(schema, tables, databases, adjacency.records, parameters)
        assert rho.value >= true[0]
        assert epsilon.value >= true[1]
        if rho.exact:
            assert (rho.value, epsilon.value) == true


def test_a_table_counted_at_the_wrong_precision_is_noticed():
    """The same comparison rejects a promise in which two tables change places."""
    schema, statements, tables, _ = SMALL["one margin"]
    parameters = WEIGHTS[: len(tables)]
    planted = (parameters[1], parameters[0], parameters[2])
    schema = schema_of(x=2, y=3)
    found = []
    for databases in by_figures(schema, statements, 3).values():
        adjacency = SemiAdjacent(publish_from(schema, statements, databases[0]))
        types = difference_types(adjacency, Workload.of(schema, [["x", "y"], ["x"], ["y"]]))
        true = enumerated(schema, types.tables, databases, adjacency.records, parameters)
        found.append(joint_rho(types, planted).value < true[0])
    assert any(found)


def drawn(law, adjacency, schema):
    work = Workload.of(schema, [["x", "y"], ["x"], []])
    return Measured(work, (Fraction(1, 4), Fraction(1, 8), Fraction(0)), law, adjacency)


def test_a_figure_published_later_changes_the_price():
    schema = schema_of(x=2, y=3)
    before = ReplaceOne(schema)
    assert drawn("gaussian", before, schema).loss().value == Fraction(3, 8)
    assert drawn("geometric", before, schema).loss().value == Fraction(3, 4)
    after = SemiAdjacent(Figures(schema, (margin("x"),)))
    assert after.records == 2
    assert drawn("gaussian", before, schema).loss(after).value == Fraction(1)  # 8 p / 2
    both = SemiAdjacent(Figures(schema, (margin("x"), margin("y"))))
    assert drawn("gaussian", before, schema).loss(both).value == Fraction(1, 4) * 4 / 2


def test_pairs_that_differ_in_a_figure_of_the_draw_are_refused():
    schema = schema_of(x=2, y=3)
    given = SemiAdjacent(Figures(schema, (margin("x"),)))
    with pytest.raises(GuaranteeError, match=r"'Margin by x'.*infinite"):
        drawn("gaussian", given, schema).loss(ReplaceOne(schema))
    with pytest.raises(GuaranteeError, match="number of people"):
        drawn("gaussian", ReplaceOne(schema), schema).loss(AddRemove(schema))
    rows = SemiAdjacent(Figures(schema, (total(),)), metric="symmetric difference")
    assert drawn("gaussian", ReplaceOne(schema), schema).loss(rows).value == Fraction(3, 8)


def test_a_negative_parameter_is_refused():
    schema = schema_of(x=2, y=3)
    types = difference_types(ReplaceOne(schema), Workload.of(schema, [["x"]]))
    with pytest.raises(GuaranteeError, match="not negative"):
        joint_rho(types, [Fraction(-1)])
