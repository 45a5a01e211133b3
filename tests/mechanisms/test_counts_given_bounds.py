"""Counts conditioned on signs and published bounds: law, price and draws, against enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from congenial import Guarantee, Schema, SeededRandomness, SemiAdjacent, Table, calibrate, linear
from congenial.errors import StructureError
from congenial.figures import Figures, at_least, at_most, count, margin, publish, total
from congenial.figures.limits import conforming_tables, limits, no_limits
from congenial.mechanisms import CongenialCounts, acceptance_pilot, release_table
from congenial.privacy import Conditions, joint_loss, largest_eps_cell
from tests.worlds import ALPHA, often, pearson

SEED = 20_261_116
EPSILON = Fraction(2)
TWO = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
SIX = Schema.from_dict({"x": {"levels": list("abcdef")}})
PEOPLE = Table(TWO, TWO.names, np.array([[1, 2, 1], [0, 1, 1]]))
CASES = {
    "cells": (total(by="g"), at_most(count("x = 'b'", by="g"), 2), at_least(margin("x"), 1)),
    "a sum across groups": (total(by="g"), at_most(count("x = 'c'"), 3)),
    "two sums that cross": (total(), at_least(count("g = 'q'"), 2), at_most(count("x = 'c'"), 3)),
    "a cell of crossing margins": (
        margin("g"),
        margin("x"),
        at_most(count("g = 'p' and x = 'b'"), 2),
    ),
    "a weighted sum of a tie": (
        margin("g"),
        margin("x"),
        at_most(linear({"g = 'p' and x = 'b'": 2, "g = 'q' and x = 'c'": 1}), 5),
    ),
    "weighted figures": (
        total(),
        linear({"x = 'a'": 1, "x = 'b'": 2, "x = 'c'": 1}),
        at_least(count("g = 'p'"), 3),
    ),
}


@lru_cache
def built(name: str, epsilon=EPSILON) -> CongenialCounts:
    adjacency = SemiAdjacent(publish(PEOPLE, *CASES[name]))
    return CongenialCounts.calibrate(Guarantee.pure(epsilon, adjacency), TWO.names)


def laws(mechanism, schema=TWO):
    """All conforming tables, counted from the statements, and log p of each given each."""
    figures = mechanism.adjacency.figures
    shape = tuple(len(schema.axis(n).levels) for n in schema.names)
    tables = _conforming(figures, schema, shape)
    made = [Table(schema, schema.names, m) for m in tables]
    logs = np.array([mechanism.log_density(tables, table) for table in made])
    return tables.reshape(len(tables), -1), logs


def _conforming(figures, schema, shape):
    n = int(figures.values[0].sum())
    cells = int(np.prod(shape))
    rows = [[]]
    for _ in range(cells):
        rows = [[*r, k] for r in rows for k in range(n - sum(r) + 1)]
    full = [r for r in rows if sum(r) == n]
    return np.array(
        [
            m
            for m in np.array(full).reshape(-1, *shape)
            if figures.holds_for(Table(schema, schema.names, m))
        ]
    )


def worst(tables, logs, distance) -> float:
    apart = np.abs(tables[:, None] - tables[None]).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return max(
            float(np.nanmax(logs[i][None, :] - logs[(apart[i] <= distance)]))
            for i in range(len(tables))
        )


@pytest.mark.parametrize("name", CASES)
def test_every_conforming_pair_keeps_the_promise_and_one_attains_it(name):
    mechanism = built(name)
    tables, logs = laws(mechanism)
    listed = conforming_tables(mechanism.adjacency.figures, TWO.names)
    assert {tuple(m) for m in tables.tolist()} == {tuple(m) for m in listed.tolist()}
    assert np.exp(logs).sum(axis=1) == pytest.approx(1, abs=1e-9)
    found = worst(tables, logs, mechanism.adjacency.l1(TWO.names).value)
    promised = float(mechanism.guarantee.tradeoff.eps)
    assert promised == float(EPSILON)
    assert promised - 1e-8 < found <= promised + 1e-12
    assert mechanism.price.basis.startswith("exact, by enumeration of")
    assert mechanism.price.bound > mechanism.price.value


@pytest.mark.parametrize("name", CASES)
def test_draws_keep_the_bounds_and_have_the_density(name):
    mechanism, draws = built(name), 20_000
    other = built(name, EPSILON * 5 / 4)
    assert fit(mechanism, mechanism.draw(PEOPLE.counts, SeededRandomness(SEED), draws)) > ALPHA
    if name != "a cell of crossing margins":  # three tables: too few to notice
        assert fit(mechanism, other.draw(PEOPLE.counts, SeededRandomness(SEED), draws)) < ALPHA


def fit(mechanism, drawn) -> float:
    assert np.all(mechanism.limits.hold(drawn.reshape(len(drawn), -1)))
    shape = (-1, *mechanism.shape)
    return pearson(*often(drawn, lambda y: np.exp(mechanism.log_density(y.reshape(shape), PEOPLE))))


def test_a_sampler_that_forgets_the_bounds_is_noticed():
    mechanism = built("two sums that cross")
    forgets = replace(mechanism)
    object.__setattr__(forgets, "limits", no_limits(6))
    drawn = forgets.draw(PEOPLE.counts, SeededRandomness(SEED), 2000).reshape(2000, -1)
    assert not np.all(mechanism.limits.hold(drawn))


def test_bounds_without_their_price_are_caught():
    """Calibrated to the exact price of signs alone; the bound on a sum makes that too little."""
    table = Table(SIX, SIX.names, np.array([1, 0, 0, 3, 0, 0]))
    bound = at_most(count("x in ('a', 'b', 'c')"), 1)
    adjacency = SemiAdjacent(publish(table, total(), bound))
    distance = int(adjacency.l1(("x",)).value)
    sound = CongenialCounts.calibrate(Guarantee.pure(1, adjacency), ("x",))
    assert worst(*laws(sound, SIX), distance) <= 1
    signs = Conditions.of(publish(table, total()), ("x",), distance)
    scale = largest_eps_cell(Fraction(1), signs)
    unpriced = replace(sound, description=replace(sound.description, scale=scale))
    assert worst(*laws(unpriced, SIX), distance) > 1.04


def test_the_closed_form_is_used_before_figures_are_known_and_is_sound():
    mechanism = built("a sum across groups")
    unknown = SemiAdjacent(Figures(TWO, CASES["a sum across groups"]))
    early = CongenialCounts.calibrate(Guarantee.pure(EPSILON, unknown), TWO.names)
    assert early.price.basis.startswith("the paper's factor 2")
    assert early.description.scale < mechanism.description.scale
    late = replace(
        mechanism, description=replace(mechanism.description, scale=early.description.scale)
    )
    assert worst(*laws(late), mechanism.adjacency.l1(TWO.names).value) < float(EPSILON)


def test_two_releases_together_cost_no_more_than_the_ledger_says():
    """The joint loss against the largest sum of log ratios over all pairs; signs in both."""
    figures = publish(PEOPLE, *CASES["a sum across groups"])
    adjacency = SemiAdjacent(figures)
    one = CongenialCounts.calibrate(Guarantee.pure(1, adjacency), TWO.names)
    two = CongenialCounts.calibrate(Guarantee.pure(1, adjacency), ("x",))
    tables, _ = laws(one)
    z = {}
    for mechanism in (one, two):
        listed = conforming_tables(figures, mechanism.description.table)
        seen = tables if mechanism is one else tables.reshape(-1, 2, 3).sum(axis=1)
        apart = np.abs(seen[:, None] - listed[None]).sum(axis=-1)
        eps = float(mechanism.description.scale)
        log_Z = np.log(np.exp(-eps * apart).sum(axis=1))
        z[mechanism.description.table] = (
            eps * np.abs(seen[:, None] - seen[None]).sum(axis=-1) + log_Z[None, :] - log_Z[:, None]
        )
    near = np.abs(tables[:, None] - tables[None]).sum(axis=-1) <= 2 * adjacency.records
    true = float(sum(z.values())[near].max())
    told = joint_loss([one.description, two.description], adjacency).epsilon
    assert true <= float(told) <= 2
    assert joint_loss([one.description], adjacency).epsilon == 1


def test_a_later_figure_is_priced_on_the_old_support():
    mechanism = built("a sum across groups")
    more = SemiAdjacent(publish(PEOPLE, *CASES["a sum across groups"], count("x = 'a'")))
    tables, logs = laws(mechanism)
    shown = tables.reshape(-1, 2, 3)
    kept = np.flatnonzero(shown[:, :, 0].sum(axis=1) == PEOPLE.counts[:, 0].sum())
    found = worst(tables[kept], logs[np.ix_(kept)], 2 * more.records)
    assert found <= float(joint_loss([mechanism.description], more).epsilon)


def test_a_hopeless_bound_is_refused_on_public_grounds(monkeypatch):
    """180 people and no room: both margins, one met by the tree, one by drawing again. Which of
    the conforming tables the data are does not matter.
    """
    monkeypatch.setattr(acceptance_pilot, "LEAST", 0.1)
    six = Schema.from_dict({"a": {"levels": list("12")}, "b": {"levels": list("456")}})
    bounds = (total(), at_most(total(by="a"), 90), at_most(total(by="b"), 60))
    said = []
    for counts in (np.full((2, 3), 30), np.array([[60, 0, 30], [0, 60, 30]])):
        figures = publish(Table(six, six.names, counts), *bounds)
        under = Guarantee.pure(Fraction(1, 10), SemiAdjacent(figures))
        mechanism = CongenialCounts.calibrate(under, six.names)
        assert 0 < acceptance_pilot.acceptance(mechanism) < 0.1
        with pytest.raises(StructureError, match="published bounds on sums") as error:
            acceptance_pilot.refuse_hopeless(mechanism)
        said.append(str(error.value))
    assert said[0] == said[1]
    acceptance_pilot.refuse_hopeless(built("a sum across groups"))


def test_parts_that_no_bound_joins_are_met_apart():
    """A bound in each of 20 counties of known total: met county by county, so that it takes
    little.
    """
    counties = Schema.from_dict(
        {"county": {"levels": [f"c{i}" for i in range(20)]}, "x": {"levels": list("abcd")}}
    )
    table = Table(counties, counties.names, np.tile([2, 1, 0, 1], (20, 1)))
    figures = publish(table, total(by="county"), at_most(count("x in ('a', 'b')", by="county"), 3))
    mechanism = CongenialCounts.calibrate(Guarantee.pure(1, SemiAdjacent(figures)), counties.names)
    assert limits(figures, counties.names).sums == 20
    drawn = mechanism.draw(table.counts, SeededRandomness(SEED), 50)
    assert drawn[..., :2].sum(axis=-1).max() == 3
    assert np.all(drawn.sum(axis=-1) == 4)
    assert acceptance_pilot.acceptance(mechanism) == 1
    assert np.all(np.isfinite(mechanism.log_density(drawn, table)))  # nested: its law is known


def test_tables_too_wide_to_draw_are_refused_before_anything_is_spent():
    schema = Schema.from_dict({"r": {"levels": list("abc")}, "c": {"levels": list("xyz")}})
    table = Table(schema, ["r", "c"], np.full((3, 3), 300))
    public = publish(table, margin("r"), margin("c"))
    made = CongenialCounts.calibrate(Guarantee.pure(1, SemiAdjacent(public)), ["r", "c"])
    with pytest.raises(StructureError, match="states"):
        made.check(table)


# ---- published bounds: kept by printed counts, and by nothing else -------------------------------

SCHEMA = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[4, 2, 9], [0, 3, 1]]))


def printed(*statements, draws=40):
    figures = publish(TABLE, *statements)
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), SCHEMA.names)
    for seed in range(draws):
        yield release_table(mechanism, TABLE, SeededRandomness(seed)).counts[0]


def test_bounds_hold_for_printed_counts_and_would_not_hold_without():
    broken = 0
    for values in printed(total(), at_least(count("g = 'q'"), 3), at_most(count("x = 'c'"), 11)):
        assert values.sum() == 19
        assert values.min() >= 0
        assert values[1].sum() >= 3
        assert values[:, 2].sum() <= 11
    for values in printed(total()):
        broken += values[1].sum() < 3 or values[:, 2].sum() > 11
    assert broken > 0  # otherwise the bounds had nothing to do


def test_bounds_beside_crossing_figures():
    for values in printed(margin("g"), margin("x"), at_most(count("g = 'p' and x = 'c'"), 9)):
        assert values.sum(axis=1).tolist() == [15, 4]
        assert values.sum(axis=0).tolist() == [4, 5, 10]
        assert values[0, 2] <= 9
        assert values.min() >= 0


def test_a_bound_the_table_does_not_show_is_left_alone():
    figures = publish(TABLE, total(), at_least(count("x = 'a'"), 1))
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), ("g",))
    assert release_table(mechanism, TABLE, SeededRandomness(1)).counts[0].sum() == 19


@pytest.mark.parametrize("rows", [3, 4])
def test_counts_given_both_margins_are_drawn_for_three_rows_and_refused_for_four(rows):
    levels = {"a": list("1234")[:rows], "b": list("12345"), "c": ["x"]}
    schema = Schema.from_dict({name: {"levels": values} for name, values in levels.items()})
    counts = np.random.default_rng(5).integers(0, 4, (rows, 5, 1))
    table = Table(schema, schema.names, counts)
    promise = Guarantee.pure(3, SemiAdjacent(publish(table, margin("a"), margin("b"))))
    if rows == 4:
        with pytest.raises(StructureError, match=r"4 x 5 table.*at most three") as refused:
            CongenialCounts.calibrate(promise, ("a", "b"))
        assert "project" in refused.value.remedy
        return
    drawn = CongenialCounts.calibrate(promise, ("a", "b")).draw(
        counts[..., 0], SeededRandomness(2), 200
    )
    assert drawn.min() >= 0
    assert np.all(drawn.sum(axis=1) == counts.sum(axis=(0, 2)))
    assert np.all(drawn.sum(axis=2) == counts.sum(axis=(1, 2)))
    assert len(np.unique(drawn.reshape(200, -1), axis=0)) > 100
