"""What several tables say together where partitions cut across each other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial import Schema, SemiAdjacent, Table, publish, total
from congenial.tables import Workload, difference_types, fit_whole_counts
from congenial.tables.design_document import variance_model
from congenial.tables.joint_estimator import NOT_YET, JointEstimator

COUNTIES = 90
URBAN = np.random.default_rng(4).random(COUNTIES) < 0.3
SCHEMA = Schema.from_dict(
    {
        "county": {
            "levels": [f"c{i}" for i in range(COUNTIES)],
            "within": {
                "state": [f"s{i * 5 // COUNTIES}" for i in range(COUNTIES)],
                "urban": ["u" if one else "r" for one in URBAN],
            },
        },
        "sex": {"levels": ["f", "m"]},
        "age": {"levels": ["child", "young", "mid", "old"]},
    }
)
SPARSE = np.random.default_rng(8).poisson(
    np.where(URBAN, 6.0, 0.4)[:, None, None], (COUNTIES, 2, 4)
)
TABLE = Table(SCHEMA, SCHEMA.names, SPARSE)
NAMES = (("county", "sex", "age"), ("state", "age"), ("urban", "age"), ("age",))
SCALES = (Fraction(9), Fraction(40), Fraction(40), Fraction(40))


def estimator() -> JointEstimator:
    known = publish(TABLE, total(by="county"))
    workload = Workload.of(SCHEMA, NAMES)
    return JointEstimator(workload, "discrete_gaussian", SCALES, known)


def noisy(seed: int) -> list[np.ndarray]:
    """Tables with normal noise around the counts; figures are kept by the estimates."""
    random = np.random.default_rng(seed)
    return [
        TABLE.marginal(names).counts
        + random.normal(scale=float(s) ** 0.5, size=TABLE.marginal(names).counts.shape)
        for names, s in zip(NAMES, SCALES, strict=True)
    ]


def spread(errors: list[np.ndarray]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def test_tables_that_cut_across_others_print_estimates() -> None:
    """Sums of whole counts are off for urban x age, kept or not: estimates are printed there,
    unless a plan asks for whole counts that follow it.
    """
    one, truth = estimator(), [TABLE.marginal(names).counts for names in NAMES]
    kept = replace(one, keep=("urban",))
    errors: dict[str, list[np.ndarray]] = {"estimate": [], "kept": [], "not kept": []}
    for seed in range(6):
        found = one.answer(noisy(seed))
        assert [counts is None for counts in found.counts] == [False, False, True, False]
        errors["estimate"].append(found.estimates[2] - truth[2])
        plain = fit_whole_counts(found.fitted, ())
        errors["not kept"].append(plain.table(NAMES[2]) - truth[2])
        follows = kept.answer(noisy(seed)).counts[2]
        assert follows is not None
        errors["kept"].append(follows - truth[2])
    assert one.across == (NAMES[2],)
    assert 1.2 * spread(errors["estimate"]) < spread(errors["not kept"])
    assert 1.2 * spread(errors["estimate"]) < spread(errors["kept"])


def test_a_design_knows_about_how_precise_tables_that_cross_are() -> None:
    """Mean variances of the stand-in are near those that are solved for, and it says what it is."""
    one = estimator()
    types = difference_types(SemiAdjacent(one.figures), one.workload)
    model = variance_model(one.workload, one.figures, types)
    assert model.approximate
    told = model.variances(np.array(one.measurements.precisions))
    solved = [float(np.mean(one.deviations(names).values ** 2)) for names in NAMES]
    assert told == pytest.approx(solved, rel=0.35)


def test_without_values_of_the_figures_there_are_no_counts_yet() -> None:
    one = estimator()
    bare = type(one.figures)(SCHEMA, one.figures.statements)
    early = JointEstimator(one.workload, one.family, one.scales, bare)
    assert early.why_no_counts == NOT_YET
    assert early.deviations(("age",)).values == pytest.approx(one.deviations(("age",)).values)
