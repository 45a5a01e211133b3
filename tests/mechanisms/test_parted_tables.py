"""A nation by parts against the same nation in memory: law, promise, estimates, whole counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import congenial.tables.whole_counts as whole_counts
from congenial.errors import SchemaError, StructureError
from congenial.figures import Figures, Statement, count, total
from congenial.figures.restricted_figures import above_parts, of_part
from congenial.figures.support import support
from congenial.mechanisms import MeasuredTables, PartedTables
from congenial.privacy.description import Family
from congenial.tables import (
    WholeCounts,
    Workload,
    difference_types,
    estimates_by_parts,
    sparse_tables,
)
from congenial.tables.joint_estimator import JointEstimator
from congenial.tables.node_order import NodeOrder, node_order
from congenial.tables.whole_counts import LevelTargets, fit_to_targets, level_precisions
from tests.mechanisms.nations import (
    CELLS,
    SCALES,
    TABLES,
    adjacency_of,
    assembled,
    nation,
    schema_of,
)

FIGURES: dict[str, tuple[Statement, ...]] = {
    "none": (),
    "state totals": (total(by="state"),),
    "block totals": (total(by="block"),),
    "county by sex, block totals": (total(by=("county", "sex")), total(by="block")),
    "crossing": (total(by="block"), count("sex = 'f'", by="block"), count("age >= 3", by="block")),
}
FAMILIES: tuple[Family, ...] = ("discrete_gaussian", "double_geometric")
# with figures over areas of several sizes a part knows its own noise better than the nation does
SHARPER = {
    ("double_geometric", "state totals"),
    ("double_geometric", "county by sex, block totals"),
}


def scales(family: Family) -> tuple[Fraction | None, ...]:
    return SCALES if family == FAMILIES[0] else tuple(1 / s if s else None for s in SCALES)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("label", FIGURES)
def test_it_is_cell_by_cell_what_memory_gives(
    family: Family, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole counts are those of nations too large for a fit of all their cells at once, and for
    aims at posterior means.
    """
    monkeypatch.setattr(whole_counts, "CROSSING_LARGEST", 0)
    monkeypatch.setattr(sparse_tables, "LARGEST", 0)
    people = nation(3)
    adjacency = adjacency_of(people, FIGURES[label])
    joint = MeasuredTables.of(adjacency, TABLES, family, scales(family))
    made = PartedTables.of(adjacency, TABLES, family, scales(family), "state")
    assert made.guarantee == joint.guarantee
    assert replace(made.description, parts="") == joint.description
    found = assembled(made, people)
    for one, values in zip(
        joint.mechanisms, filter(lambda a: a is not None, found.drawn), strict=True
    ):
        assert support(one.description.support, one.description.table).agrees(values)
    if (family, label) in SHARPER:
        return
    answer = joint.estimator.answer(found.drawn)
    for at, names in enumerate(TABLES):
        np.testing.assert_allclose(found.estimates[at], answer.estimates[at], atol=1e-9)
        told = joint.estimator.deviations(names).values
        np.testing.assert_allclose(found.deviations[at], told, atol=1e-6)
        np.testing.assert_array_equal(found.counts[at], answer.counts[at])


@pytest.mark.parametrize("label", FIGURES)
def test_tables_above_the_parts_need_no_noise_of_their_own(
    label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release with nothing drawn there was paid for and could not be finished."""
    monkeypatch.setattr(whole_counts, "CROSSING_LARGEST", 0)
    tables, scales = (("block", "sex", "age"), ("state", "sex", "age")), (Fraction(9), None)
    people = nation(3)
    adjacency = adjacency_of(people, FIGURES[label])
    joint = MeasuredTables.of(adjacency, tables, "discrete_gaussian", scales)
    made = PartedTables.of(adjacency, tables, "discrete_gaussian", scales, "state")
    found = assembled(made, people)
    answer = JointEstimator(
        Workload.of(people.schema, tables), "discrete_gaussian", scales, adjacency.figures
    ).answer(found.drawn)
    assert made.guarantee.tradeoff == joint.guarantee.tradeoff
    for at in range(len(tables)):
        np.testing.assert_allclose(found.estimates[at], answer.estimates[at], atol=1e-9)
        np.testing.assert_array_equal(found.counts[at], answer.counts[at])


def test_counts_above_the_parts_are_fitted_at_the_precisions_of_the_whole_nation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted: list[LevelTargets] = []

    def remembered(order: NodeOrder, targets: list[LevelTargets], *top: Any) -> WholeCounts:
        fitted.extend([] if top else targets)  # a part has the counts of its top node
        return fit_to_targets(order, targets, *top)

    monkeypatch.setattr(estimates_by_parts, "fit_to_targets", remembered)
    people = nation(3)
    adjacency = adjacency_of(people, FIGURES["crossing"])
    assembled(PartedTables.of(adjacency, TABLES, FAMILIES[0], SCALES, "state"), people)
    joint = MeasuredTables.of(adjacency, TABLES, FAMILIES[0], SCALES)
    whole = level_precisions(node_order(joint.estimator.measurements))
    for target, (cells, groups) in zip(fitted, whole[: len(fitted)], strict=True):
        np.testing.assert_allclose(target.p, cells, rtol=1e-12)
        np.testing.assert_allclose(target.q, groups, rtol=1e-12)


@pytest.mark.parametrize("label", FIGURES)
def test_printed_counts_agree_with_each_other_and_with_figures(label: str) -> None:
    people = nation(8)
    adjacency = adjacency_of(people, FIGURES[label])
    made = PartedTables.of(
        adjacency, TABLES, "double_geometric", scales("double_geometric"), "state"
    )
    found = assembled(made, people)
    cells = found.counts[0]
    printed = type(people)(people.schema, CELLS, cells)
    assert np.all(cells >= 0)
    for at, names in enumerate(TABLES):
        np.testing.assert_array_equal(printed.marginal(names).counts, found.counts[at])
    if FIGURES[label]:
        assert adjacency.figures.holds_for(printed)


@pytest.mark.parametrize("label", FIGURES)
def test_parts_and_what_lies_above_have_the_law_of_the_whole_table(label: str) -> None:
    """Independent directions of noise: those of the parts add up, those above are the nation's."""
    people = nation(5)
    adjacency = adjacency_of(people, FIGURES[label])
    made = PartedTables.of(adjacency, TABLES, "discrete_gaussian", SCALES, "state")
    figures = made.figures
    for names in TABLES:
        whole = support(figures, names).degrees_of_freedom
        if made.parts.is_below(names):
            parts = range(len(made.parts.labels))
            own = [support(of_part(figures, made.parts, k), names) for k in parts]
            assert sum(one.degrees_of_freedom for one in own) == whole
        else:
            above = above_parts(figures, made.parts)
            assert support(above, names).degrees_of_freedom == whole
        if "state" in names:  # rows of one part: what it is asked with when it stands alone
            own = [support(of_part(figures, made.parts, k), names) for k in range(3)]
            assert sum(one.degrees_of_freedom for one in own) == whole


def test_areas_emptier_than_their_part_are_refused_where_figures_cross() -> None:
    """Two blocks, one without women and one without adults: together they would hold both."""
    people = nation(5)
    cells = np.array(people.counts)
    state = people.schema.axis("state").of_base
    first, rest = np.flatnonzero(state == 0)[0], np.flatnonzero(state == 0)[1:]
    cells[first, 0], cells[first, 1] = 0, 2
    cells[rest, :, 3:], cells[rest, :, :3] = 0, 1
    emptier = type(people)(people.schema, CELLS, cells)
    adjacency = adjacency_of(emptier, FIGURES["crossing"])
    made = PartedTables.of(adjacency, TABLES, "discrete_gaussian", SCALES, "state")
    above = support(above_parts(made.figures, made.parts), ("state", "sex", "age"))
    whole = support(made.figures, ("state", "sex", "age"))
    assert above.degrees_of_freedom > whole.degrees_of_freedom  # what the refusal is about
    with pytest.raises(StructureError, match="no area of part 1 of 3"):
        made.part(0)
    made.part(1)


@pytest.mark.parametrize("label", FIGURES)
def test_the_promise_does_not_depend_on_how_many_areas_there_are(label: str) -> None:
    found = []
    for blocks in (24, 61):
        people = nation(7, blocks)
        adjacency = adjacency_of(people, FIGURES[label])
        types = difference_types(adjacency, Workload.of(people.schema, TABLES))
        found.append((types.squares, types.absolutes, types.records))
    assert found[0] == found[1]


def test_the_same_secret_draws_the_same_and_another_does_not() -> None:
    people = nation(3)
    adjacency = adjacency_of(people, FIGURES["block totals"])
    made = PartedTables.of(adjacency, TABLES, "discrete_gaussian", SCALES, "state")
    one, again, other = (assembled(made, people, bytes([k]) * 32) for k in (1, 1, 2))
    np.testing.assert_array_equal(one.drawn[0], again.drawn[0])
    assert np.any(one.drawn[0] != other.drawn[0])


# ---- refusals ----------------------------------------------------------------------------------


def made_for(tables: tuple[tuple[str, ...], ...], parts: str, figures: tuple[Statement, ...] = ()):
    people = nation(3)
    adjacency = adjacency_of(people, figures)
    return PartedTables.of(
        adjacency, tables, "discrete_gaussian", [Fraction(1)] * len(tables), parts
    )


def test_a_figure_about_some_areas_only_is_refused() -> None:
    with pytest.raises(StructureError, match="only some categories of block"):
        made_for(TABLES, "state", (count("block = 'b3'", by="state"),))


def test_a_blank_parent_is_refused() -> None:
    given = schema_of([0, 1]).to_dict()
    given["block"]["within"]["county"][0] = ""
    with pytest.raises(SchemaError, match="is not a name"):
        type(schema_of([0, 1])).from_dict(given)


def test_figures_without_values_are_cut_as_well() -> None:
    planned = Figures(nation(3).schema, FIGURES["crossing"])
    adjacency = adjacency_of(nation(3), FIGURES["crossing"])
    made = PartedTables.of(adjacency, TABLES, "discrete_gaussian", SCALES, "state")
    assert of_part(planned, made.parts, 1).values is None
    assert above_parts(planned, made.parts).values is None
