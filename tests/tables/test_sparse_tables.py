"""Printed counts of sparse tables: posterior means by empirical Bayes, where a public rule says."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.tables_sparse import TABLES, county, rows_of

from congenial import SemiAdjacent, publish, total
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.tables_release import TablesRelease
from congenial.publication.bundle_texts import readme
from congenial.report.tables_report import render
from congenial.sampling.randomness import SeededRandomness
from congenial.tables.sparse_tables import WORDS, posterior

PEOPLE = county()
KNOWN = publish(PEOPLE, total())


def made(names: Sequence[Sequence[str]], deviation: int) -> MeasuredTables:
    tables = [tuple(each) for each in names]
    scales = [Fraction(deviation**2)] * len(tables)
    return MeasuredTables.of(SemiAdjacent(KNOWN), tables, "discrete_gaussian", scales)


@pytest.mark.parametrize("tables", [TABLES[3:], TABLES])
def test_errors_and_biases_are_smaller_than_by_least_squares(tables: list[list[str]]) -> None:
    case = ("together" if len(tables) > 1 else "alone", PEOPLE, KNOWN, tables)
    for row in rows_of(case, "discrete_gaussian", 150, 8):
        assert row["used"]
        assert row["ratio"] < 0.77, row
        assert row["inside"] > 0.88, row
        if row["sd"] > 100:
            assert abs(row["bias"]) < 0.55 * abs(row["bias before"]), row


@pytest.mark.parametrize("tables", [TABLES[3:], TABLES])
def test_counts_are_a_function_of_the_draw_and_agree(tables: list[list[str]]) -> None:
    mechanism = made(tables, 66)
    release = mechanism.release(PEOPLE, SeededRandomness(1))
    again = TablesRelease(
        release.name, release.description, release.guarantee, "", True, release.drawn
    )
    for names, counts, printed in zip(release.tables, again.counts, release.counts, strict=True):
        assert counts is not None
        assert printed is not None
        assert np.array_equal(counts, printed)
        assert counts.min() >= 0
        assert counts.sum() == PEOPLE.counts.sum()
        finest = release.counts[0]
        assert finest is not None
        axes = tuple(i for i, name in enumerate(release.tables[0]) if name not in names)
        assert np.array_equal(finest.sum(axis=axes), counts)
    assert release.estimator.as_near(release.drawn, release.counts) or len(tables) > 1


def test_the_rule_sees_no_data_and_is_said_where_it_applies() -> None:
    for deviation, words in ((66, WORDS), (2, "")):
        mechanism = made(TABLES[3:], deviation)
        release = mechanism.release(PEOPLE, SeededRandomness(1))
        assert release.counts_words == words
        shown = (" ".join(text.split()) for text in (render(release, "p"), readme(release, "p")))
        assert all((WORDS in text) == bool(words) for text in shown)


def test_counts_far_above_their_noise_keep_their_estimates() -> None:
    """Against a plain integral over the mixture, and with the large counts moved by little."""
    t = np.array([9000.0, 4000.0, *np.random.default_rng(1).normal(0, 20, 60)])
    mean, variance = posterior(t, np.full(62, 20.0))
    assert np.abs(mean[:2] - t[:2]).max() < 2
    assert np.allclose(variance[:2], 400, rtol=0.02)
    assert np.abs(mean[2:]).max() < 10
