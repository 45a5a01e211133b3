"""Whole counts: whether there are any is settled before a draw; after it they are always found.

Planted: a solver that is always given up, a least squares fit that stops at once.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import Schema, Table, at_least, at_most, count, linear, margin, publish, total
from congenial.data.workload import Workload
from congenial.tables import general_fit, transport_fit, whole_counts
from congenial.tables.general_fit import NearestTable, PublicProgramme, as_near_tables
from congenial.tables.joint_estimator import JointEstimator
from congenial.tables.linear_estimates import estimate
from congenial.tables.transport_fit import filled
from congenial.tables.whole_counts import fit_whole_counts

GIVEN_UP = (1, None)  # status of a limit, and nothing found
SCHEMA = Schema.from_dict(
    {
        "area": {"levels": ["A", "B", "C"]},
        "sex": {"levels": ["f", "m"]},
        "age": {"integers": [1, 5]},
    }
)
COUNTS = np.random.default_rng(3).poisson(3.0, (3, 2, 5))
TABLE = Table(SCHEMA, SCHEMA.names, COUNTS)
TABLES = (("area", "sex", "age"), ("area", "age"), ("sex",))
SCALES = (Fraction(4), Fraction(9), Fraction(9))
FIGURES = {
    "three crossing margins": (margin("area", "sex"), margin("area", "age"), margin("sex", "age")),
    "bounds": (total(by="area"), at_least(count("age <= 2"), 5), at_most(count("sex = 'f'"), 60)),
    "weights": (linear({"sex = 'f'": 2, "age >= 3": 3}, by="area"),),
}


def one(figures) -> JointEstimator:
    known = publish(TABLE, *figures)
    tables = TABLES[:1] if figures == FIGURES["three crossing margins"] else TABLES
    scales = SCALES[: len(tables)]
    return JointEstimator(Workload.of(SCHEMA, tables), "discrete_gaussian", scales, known)


def drawn(found: JointEstimator, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    pairs = zip(found.workload.tables, found.scales, strict=True)
    truths = ((TABLE.marginal(names).counts, scale) for names, scale in pairs)
    return [truth + rng.normal(0, float(scale) ** 0.5, truth.shape) for truth, scale in truths]


def has_all_figures(found: JointEstimator, counts) -> bool:
    return bool(np.all(counts >= 0)) and found.figures.holds_for(
        Table(SCHEMA, SCHEMA.names, counts)
    )


@pytest.mark.parametrize("figures", FIGURES.values(), ids=FIGURES)
def test_a_search_that_is_given_up_after_the_draw_leaves_whole_counts(monkeypatch, figures) -> None:
    found = one(figures)
    assert not found.why_no_counts
    best = found.answer(drawn(found, 1)).counts[0]
    searched = general_fit.search

    def real_only(costs, rows, ends, limits, whole, *nodes):
        return GIVEN_UP if np.any(whole) else searched(costs, rows, ends, limits, whole, *nodes)

    for planted in (real_only, lambda *_: GIVEN_UP):
        monkeypatch.setattr(general_fit, "search", planted)
        answer = found.answer(drawn(found, 1))
        assert all(counts is not None for counts in answer.counts)
        assert has_all_figures(found, answer.counts[0])
        if planted is real_only and figures != FIGURES["weights"]:
            off = [
                np.abs(counts - answer.estimates[0]).sum() for counts in (answer.counts[0], best)
            ]
            assert off[0] <= 1.5 * off[1]


def test_a_search_that_is_given_up_before_the_draw_prints_estimates(monkeypatch) -> None:
    monkeypatch.setattr(general_fit, "search", lambda *_, **__: GIVEN_UP)
    found = one(FIGURES["bounds"])
    assert "was not settled in" in found.why_no_counts
    assert found.answer(drawn(found, 1)).counts == (None, None, None)


def test_a_fit_that_stops_at_once_still_has_every_sum(monkeypatch) -> None:
    monkeypatch.setattr(transport_fit, "STEPS", 0)
    monkeypatch.setattr(whole_counts, "_crossing", lambda _: [])  # targets far from the sums
    found = one((total(by="area"), count("sex = 'f'", by="area")))
    stopped = []
    real = transport_fit.real_fit

    def watched(children):
        stopped.append(real(children)[1])
        return real(children)

    monkeypatch.setattr(transport_fit, "real_fit", watched)
    values = drawn(found, 2)
    values[0][0] += 40  # far from the sums
    assert has_all_figures(found, found.answer(values).counts[0])
    assert max(stopped) > transport_fit.ENOUGH  # the plant works


def test_what_is_filled_has_the_sums() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        wanted = rng.poisson(rng.choice([0.3, 5, 400]), rng.integers(1, 7, 2))
        x = rng.normal(wanted, 1 + rng.random() * 50)
        got = filled(x, wanted.sum(axis=1), wanted.sum(axis=0))
        assert np.array_equal(got.sum(axis=1), wanted.sum(axis=1))
        assert np.array_equal(got.sum(axis=0), wanted.sum(axis=0))
        assert got.min() >= 0
        same = filled(wanted.astype(float), wanted.sum(axis=1), wanted.sum(axis=0))
        assert np.array_equal(same, wanted)


# ---- other counts that are as near -----------------------------------------------------------


def test_counts_by_programme_are_told_from_farther_ones() -> None:
    found = one(FIGURES["bounds"])
    values = drawn(found, 5)
    fitted = estimate(found.measurements, values)
    whole = fit_whole_counts(fitted)
    assert as_near_tables(fitted, (), whole.cells)
    assert found.as_near(values, [whole.table(names) for names in TABLES])
    cells = whole.cells.copy()
    cells[0, 0, 0] += 1
    cells[0, 0, 1] -= 1
    assert not as_near_tables(fitted, (), cells)
    cells[0, 0, 0] += 1  # not a figure of area A any more
    assert not as_near_tables(fitted, (), cells)


def test_chords_count_the_same_distance() -> None:
    """The programme's minimum is the least over a small universe that is listed whole."""
    found = one((total(), at_most(count("sex = 'f'"), 60)))
    public = PublicProgramme.of(found.measurements)
    people = int(COUNTS.sum())
    half = (np.arange(found.measurements.size) % 2 == 0)[None].astype(float)
    for target in (-3.4, 41.49, 41.51, people + 0.7):
        nearest = NearestTable(public.conforming, half, np.array([target]))
        got = nearest.nearest(public.cells)
        least = min((n - target) ** 2 for n in range(people + 1))
        assert nearest.distance(got) == pytest.approx(least)
        assert got.sum() == people


def test_bounds_over_thousands_of_cells_have_whole_counts() -> None:
    """2,400 cells, where integer programmes used to end at 2,000."""
    ages = {"edges": [0, 18, 65], "top": "65+"}
    districts = {"levels": [f"d{i}" for i in range(200)]}
    schema = Schema.from_dict({"d": districts, "g": {"levels": list("uvwx")}, "age": ages})
    counts = np.random.default_rng(1).poisson(3.0, (200, 4, 3))
    known = publish(
        Table(schema, schema.names, counts),
        total(by="d"),
        at_most(count("age >= 65 and g = 'u'"), int(counts[:, 0, 2].sum()) + 5),
    )
    work = Workload.of(schema, [["d", "g", "age"], ["g", "age"], ["g"]])
    found = JointEstimator(work, "discrete_gaussian", (Fraction(4),) * 3, known)
    assert found.why_no_counts == ""
    assert known.holds_for(Table(schema, schema.names, found.rehearsal.table(schema.names)))
