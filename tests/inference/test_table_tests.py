"""Tests on noisy tables: p-values are uniform under the null, and small where it is far off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.inference import InferenceError, equality_test, independence_test, trend_test
from congenial.inference.estimates.cell_estimates import SingleTableEstimates
from congenial.inference.estimates.table_tests import carry_out_test

SEED = 20260402
ALPHA = 1e-6
REPEATED = 150
SCHEMA = cg.Schema.from_dict(
    {
        "area": {"levels": ["A", "B"]},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 40, 65, 90]},
    }
)
SHARES = np.array([0.3, 0.35, 0.25, 0.1])
TESTS = {
    "equality": lambda r: equality_test(r, "age", "area = 'A'", "area = 'B'"),
    "independence": lambda r: independence_test(r, "sex", "age", "area = 'A'"),
    "trend": lambda r: trend_test(r, "sex = 'f'", "age"),
}


def releases(people: int, repeated: int, figures: bool = False):
    """People drawn under the null hypothesis, protected; simulated noise is shared."""
    rng = np.random.default_rng(SEED)
    kept: dict = {}
    mechanism = None
    for i in range(repeated):
        shape = np.outer([0.6, 0.4], SHARES).reshape(-1)
        counts = rng.multinomial(people, shape, size=2).reshape(2, 2, 4)
        table = cg.Table(SCHEMA, ["area", "sex", "age"], counts)
        if mechanism is None or figures:
            under = cg.ReplaceOne(SCHEMA)
            if figures:
                under = cg.SemiAdjacent(cg.publish(table, cg.total(by="area")))
            mechanism = cg.calibrate("auto", cg.Guarantee.pure(1, under=under))
        release = cg.release_table(mechanism, table, cg.SeededRandomness(SEED + i))
        vars(release.only)["mechanism"] = mechanism  # as the cached property would keep it
        found = SingleTableEstimates(release.only)
        vars(found)["_kept"] = kept
        yield found


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("people", [40, 4000])
def test_p_values_are_uniform_under_the_null(name, people):
    found = [TESTS[name](one).p_value for one in releases(people, REPEATED)]
    assert stats.kstest(found, "uniform").pvalue > ALPHA


def test_p_values_are_uniform_given_figures():
    found = [TESTS["equality"](one).p_value for one in releases(60, 80, figures=True)]
    assert stats.kstest(found, "uniform").pvalue > ALPHA


def test_an_ordinary_test_of_noisy_counts_would_be_noticed():
    found = []
    for one in releases(40, REPEATED):
        table = np.maximum(one.cells.reshape(2, 8), 0) + 1e-9
        found.append(stats.chi2_contingency(table).pvalue)
    assert stats.kstest(found, "uniform").pvalue < ALPHA


def test_a_real_difference_is_found():
    source = next(releases(4000, 1))
    counts = source.cells.reshape(2, 2, 4).copy()
    counts[1, :, 0] += 800
    moved = SingleTableEstimates(replace(source.release, values=counts))
    assert equality_test(moved, "age", "area = 'A'", "area = 'B'").p_value < 0.001
    text = "equal(age | area = 'A', area = 'B')"
    assert carry_out_test(moved, text) == equality_test(moved, "age", "area = 'A'", "area = 'B'")
    assert carry_out_test(moved, "independent(area, age)").p_value < 0.001
    assert carry_out_test(moved, "trend(area = 'B' by age | sex = 'f')").p_value < 0.001


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("equal(age | area = 'A', sex = 'f')", "have people in common"),
        ("independent(age, age)", "are the same attribute"),
        ("trend(sex = 'f' by area)", "text, not numbers"),
        ("trend(by age)", "needs a condition"),
        ("equal(age, area = 'A')", "two conditions"),
        ("different(age)", "independent, equal or trend"),
        ("independent(sex, age) and more", "the end"),
    ],
)
def test_what_cannot_be_tested_is_refused_in_words(text, words):
    source = next(releases(40, 1))
    with pytest.raises(InferenceError, match=words):
        carry_out_test(source, text)
