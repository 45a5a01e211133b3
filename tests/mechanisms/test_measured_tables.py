"""Several tables drawn with exact integer noise: what estimates say is right on average, and their
standard deviations are those of the errors. Statistical tests at ALPHA with pinned seeds.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from congenial import Schema, SeededRandomness, SemiAdjacent, Table, count, publish, total
from congenial.errors import FigureError, GuaranteeError, InferenceError, StructureError
from congenial.mechanisms import MeasuredTables, calibrate_tables
from congenial.privacy import Guarantee, Pure, ZeroConcentrated
from congenial.sampling import RecordedRandomness
from congenial.tables import estimate

ALPHA = 1e-6  # false-alarm rate of each statistical test
SEED = 20_261_116
DRAWS = 600
SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"], "within": {"state": ["P", "P", "Q"]}},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 5, 18, 65], "top": "65+"},
    }
)
COUNTS = np.random.default_rng(9).integers(0, 60, (3, 2, 4))
TABLE = Table(SCHEMA, SCHEMA.names, COUNTS)
TABLES = [["county", "sex", "age"], ["state", "age"], ["county", "sex"], ["age"]]
FIGURES = {
    "nothing": (),
    "nested": (total(by="county"), count("age >= 18", by="county")),
    "crossing": (total(by="county"), total(by="sex")),
}


def made(figures: str, tradeoff: Pure | ZeroConcentrated) -> MeasuredTables:
    adjacency = SemiAdjacent(publish(TABLE, *FIGURES[figures]))
    return calibrate_tables(Guarantee(adjacency, tradeoff), TABLES)


def errors(one: MeasuredTables) -> np.ndarray:
    """Errors of combinations of the finest cells' estimates, in their stated deviations."""
    source, work = SeededRandomness(SEED), one.estimator.measurements
    names = one.description.tables[0]
    drawn = {m.description.table: m.draw(m.query(TABLE), source, DRAWS) for m in one.mechanisms}
    found = np.stack(
        [
            estimate(
                work,
                [drawn[t][i] if t in drawn else None for t in one.description.tables],
                one.estimator.covariance.inverse,
            ).table(names)
            for i in range(DRAWS)
        ]
    )
    weights = np.random.default_rng(SEED).normal(size=(12, *COUNTS.shape))
    weights[:4] = 0
    weights[0, 0, 0, 0] = weights[1, :, 0, :] = weights[2, :2, :, 3] = weights[3, 2] = 1
    variances = np.diag(one.estimator.covariance.of(names, weights))
    open_ = variances > 1e-9
    combined = np.tensordot(found - COUNTS, weights[open_], axes=([1, 2, 3], [1, 2, 3]))
    return combined / np.sqrt(variances[open_])


def p_values(z: np.ndarray) -> tuple[float, float]:
    """Of a mean of zero, and of a variance that is not above one; Bonferroni over combinations."""
    centre = stats.norm.sf(np.abs(z.mean(axis=0)) * np.sqrt(len(z))).min() * 2 * z.shape[1]
    kurtosis = max(3.0, float(((z - z.mean(0)) ** 4).mean() / (z.var() ** 2)))
    spread = (np.square(z).mean(axis=0) - 1) / np.sqrt((kurtosis - 1) / len(z))
    return float(centre), float(stats.norm.sf(spread).min() * z.shape[1])


CASES = [
    (figures, tradeoff)
    for figures in FIGURES
    for tradeoff in (ZeroConcentrated(Fraction(1, 10)), Pure(Fraction(3, 2)))
]


@pytest.mark.parametrize(("figures", "tradeoff"), CASES, ids=str)
def test_estimates_are_unbiased_and_as_precise_as_stated(figures, tradeoff) -> None:
    one = made(figures, tradeoff)
    assert min(p_values(errors(one))) > ALPHA


def test_stated_deviations_that_are_too_small_are_noticed() -> None:
    """The negative control: deviations of 30 % more precision than was drawn."""
    one = made("nested", ZeroConcentrated(Fraction(1, 10)))
    told = one.description
    sharper = tuple(replace(law, scale=law.scale * Fraction(10, 13)) for law in told.measured)
    pretended = MeasuredTables(one.adjacency, replace(told, measured=sharper))
    vars(pretended)["mechanisms"] = one.mechanisms  # drawn with the noise that was promised
    assert p_values(errors(pretended))[1] < ALPHA


def test_deviations_are_known_before_the_draw_and_figures_have_none() -> None:
    one = made("nested", ZeroConcentrated(Fraction(1, 10)))
    release = one.release(TABLE, SeededRandomness(3))
    assert release.deviation("county = 'A' and age >= 18") == 0
    exact = release.interval("county = 'A'", 0.9)
    assert exact.exact
    assert exact.low == exact.high == COUNTS[0].sum()
    assert release.count("") == COUNTS.sum()  # a figure tells it, although no table shows it


def test_data_with_other_figures_are_refused_before_anything_is_drawn() -> None:
    one, other = made("nested", Pure(1)), Table(SCHEMA, SCHEMA.names, COUNTS + 1)
    with pytest.raises(FigureError, match="do not agree with the published figures"):
        one.release(other, RecordedRandomness([]))


def test_noise_given_figures_is_not_told_as_plain() -> None:
    one = made("nested", ZeroConcentrated(Fraction(1, 10)))
    first, *rest = one.description.measured
    renamed = (replace(first, mechanism="plain_discrete_gaussian"), *rest)
    told = MeasuredTables(one.adjacency, replace(one.description, measured=renamed))
    with pytest.raises(GuaranteeError, match="contradicts itself"):
        _ = told.mechanisms


def test_a_cell_of_several_tables_has_one_number() -> None:
    one = made("crossing", ZeroConcentrated(Fraction(1, 2)))
    release = one.release(TABLE, SeededRandomness(4))
    assert release.count("state = 'Q' and age >= 65") == release.counts[1][1, 3]
    assert release.count("state = 'Q' and age >= 65") == release.counts[0][2, :, 3].sum()
    assert release.margin("age", "state").shape == (4, 2)
    assert release.to_arrow("age", "state").num_rows == 8
    with pytest.raises(InferenceError, match="the table over sex is not in this release"):
        release.to_arrow("sex")


def test_one_table_in_two_orders_is_refused() -> None:
    target = Guarantee(SemiAdjacent(publish(TABLE, *FIGURES[next(iter(FIGURES))])), Pure(1))
    first, second, *_ = TABLE.schema.names
    with pytest.raises(StructureError, match=f"{second}, {first} is listed twice"):
        calibrate_tables(target, [[first, second], [second, first]])
