"""Simulated laws of error: fewer draws where a chain is slow, and bounds that say so."""

from __future__ import annotations

import numpy as np
import pytest

from congenial import Figures, Guarantee, Schema, SeededRandomness, SemiAdjacent, calibrate, margin
from congenial.errors import StructureError
from congenial.mechanisms.error_laws import (
    CHAIN_DRAWS,
    CHAIN_STEPS,
    DRAWS,
    SimulatedLaw,
    sums_alike,
)
from congenial.mechanisms.measured_tables import MeasuredTables

SEED = 20_261_116


def chain(*sizes):
    schema = Schema.from_dict(
        {name: {"integers": [1, size]} for name, size in zip("abc", sizes, strict=True)}
    )
    figures = Figures(schema, tuple(margin(name) for name in schema.names))
    target = Guarantee.pure(8, under=SemiAdjacent(figures))
    return calibrate("congenial_chain", target, schema.names)


def one_cell(mechanism):
    mask = np.zeros(mechanism.shape, dtype=bool)
    mask.flat[0] = True
    return mechanism.error_law(mask)


def test_a_slow_chain_is_asked_for_fewer_draws():
    (tie, _), *_ = chain(3, 3, 3).conditioned.ties()
    assert tie.steps == 20 * 52  # 27 cells, 7 independent figures; 12 + 2 * 20 sweeps
    law = one_cell(chain(3, 3, 3))
    assert len(law.draws) == CHAIN_DRAWS == max(CHAIN_DRAWS, CHAIN_STEPS // tie.steps)
    assert CHAIN_DRAWS < len(one_cell(chain(2, 3, 2)).draws) <= DRAWS
    assert law.interval(0.95) >= np.quantile(np.abs(law.draws), 0.95)
    with pytest.raises(StructureError, match=r"more than 500 simulated draws.*at most 0\.972"):
        law.interval(0.99)


@pytest.mark.parametrize(("draws", "highest"), [(200, 0.933), (500, 0.972), (DRAWS, 0.998)])
def test_the_level_that_a_refusal_names_is_served(draws, highest):
    law = SimulatedLaw(np.random.default_rng(SEED).integers(-9, 10, draws))
    with pytest.raises(StructureError, match=f"at most {highest}"):
        law.interval(highest + 0.001)
    assert law.interval(highest) == 9


@pytest.mark.parametrize(("name", "simulated"), [("auto", False), ("congenial_chain", True)])
def test_only_exact_samplers_have_exact_laws_of_error(name, simulated):
    """One free sum in every 2 x 2 table: its law is tabulated, but a chain's own is not known."""
    schema = Schema.from_dict(
        {"county": {"integers": [1, 3]}, "a": {"levels": ["n", "y"]}, "b": {"levels": ["n", "y"]}}
    )
    figures = Figures(schema, (margin("county", "a"), margin("county", "b")))
    target = Guarantee.pure(4, under=SemiAdjacent(figures))
    law = one_cell(calibrate(name, target, schema.names))
    assert isinstance(law, SimulatedLaw) == simulated


def two_ages(areas):
    """Two exact margins in every area: as many ties of one make, each with two free sums."""
    schema = Schema.from_dict(
        {
            "area": {"integers": [1, areas]},
            "sex": {"levels": ["f", "m"]},
            "age": {"integers": [1, 3]},
            "race": {"integers": [1, 2]},
        }
    )
    figures = Figures(schema, (margin("area", "sex"), margin("area", "age")))
    return calibrate("auto", Guarantee.pure(1, under=SemiAdjacent(figures)), schema.names)


def test_a_law_does_not_depend_on_which_laws_were_asked_for_before():
    """Sums over 97 areas take 412 draws of a tie at a time, single cells 10,000 at once."""

    def single(mechanism):
        return one_cell(mechanism)

    def over_areas(mechanism):
        return mechanism.error_law(np.broadcast_to([True, False], mechanism.shape))

    first, second = two_ages(97), two_ages(97)
    found = single(first), over_areas(first)
    turned = over_areas(second), single(second)
    for law, again in zip(found, reversed(turned), strict=True):
        assert isinstance(law, SimulatedLaw)
        assert np.array_equal(law.draws, again.draws)


def test_errors_in_a_file_are_worked_out_again_to_the_last_unit(monkeypatch):
    """Draws come from public words alone, so that a width that is off by one is noticed."""

    def errors():
        estimator = MeasuredTables.of_one(chain(2, 3, 2)).estimator
        names = estimator.table
        return estimator.deviations(names).values, estimator.reach(names, 0.9)

    found = errors()

    def refuse(*_):
        raise AssertionError("numpy's own methods of drawing may change from version to version")

    monkeypatch.setattr(np.random, "default_rng", refuse)
    for one, again in zip(found, errors(), strict=True):
        assert one.min() > 0
        assert np.array_equal(one, again)


def test_the_upper_rank_is_the_one_of_the_binomial_law():
    from scipy import stats

    from congenial.tables.simulated_errors import FALSE_ALARM, upper_rank

    for n, level in ((10, 0.5), (400, 0.9), (2000, 0.95), (10_000, 0.998)):
        assert upper_rank(level, n) == int(stats.binom.isf(FALSE_ALARM, n, level)) + 1


def test_cells_between_two_margins_share_one_law():
    """Permuting rows and columns takes each cell to each other: one law, that of every cell's
    draws; two cells of a row and two of a column are other sums.
    """
    schema = Schema.from_dict({"a": {"integers": [1, 5]}, "b": {"integers": [1, 4]}})
    figures = Figures(schema, (margin("a"), margin("b")))
    mechanism = calibrate(
        "auto", Guarantee.zero_concentrated("1/2", under=SemiAdjacent(figures)), schema.names
    )
    (law,), of_cell = mechanism.different_error_laws(np.arange(20), 20)
    assert of_cell.tolist() == [0] * 20
    drawn = mechanism.conditioned.draw_many(SeededRandomness(SEED), 10_000).astype(float)
    # 20 variances from 10,000 draws each are within 5 standard errors of the stated one
    off = np.abs((drawn**2).mean(axis=0) / law.variance - 1)
    assert off.max() < 5 * np.sqrt(2 * 2 / 10_000)
    pairs = np.full((5, 4), -1)
    pairs[0, :2], pairs[3:, 3] = 0, 1
    laws, _ = mechanism.different_error_laws(pairs, 2)
    assert len(laws) == 2


# ---- sums of cells that share a law of error are found together ----------------------------------


def test_sums_that_meet_groups_in_the_same_way_are_alike() -> None:
    chance = np.random.default_rng(SEED)
    for sums in (1, 5, 60):
        parts = chance.integers(0, 4, size=sums)
        start = np.r_[0, np.cumsum(parts)]
        met = chance.integers(1, 3, size=(start[-1], 2))
        loose = chance.integers(0, 2, size=sums)
        expected: dict[object, list[int]] = {}
        for i in range(sums):
            key = (tuple(sorted(map(tuple, met[start[i] : start[i + 1]].tolist()))), int(loose[i]))
            expected.setdefault(key, []).append(i)
        found = [one.tolist() for one in sums_alike(start, met, loose)]
        assert sorted(found) == sorted(expected.values())
