"""Columns of a release: what they learn, the law of new records, models of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, norm

from congenial import ReplaceOne, Schema, SeededRandomness, Table
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.columns import Column
from congenial.synthesis.models import MultinomialColumn, NormalColumn, PoissonColumn
from congenial.synthesis.record_model import Grid, LevelModel


def fitted_distance(schema, counts, model, correct=True) -> float:
    """Total variation between the data's shares and the law new records are drawn from."""
    column = Column("x", model, correct=correct)
    one = Synthesizer(ReplaceOne(schema), (column,), Fraction(2))
    theta = one.draw(one.fetch(Table(schema, ["x"], counts))[0], SeededRandomness(1))
    law = one.kernels[0].probabilities(theta[0])[0]
    return float(np.abs(law - counts / counts.sum()).sum() / 2)


def test_a_column_learns_from_the_data():
    """A model that contains the law of the data finds it, if it allows for the weights; so does a
    multinomial for any law. As in the paper the fit stays off however many data there are.
    """
    schema = Schema.from_dict({"x": {"integers": [-40, 40]}})
    edges = np.arange(-40, 42)
    model = NormalColumn(Grid(-10, 10, 41), Grid(1, 15, 29))
    truth = np.diff(norm(3, 5).cdf(edges))
    counts = np.rint(1e6 * truth).astype(np.int64)
    assert fitted_distance(schema, counts, model) < 0.02
    assert fitted_distance(schema, counts, model, correct=False) > 0.08
    schema = Schema.from_dict({"x": {"levels": list("abcdef")}})
    counts = np.array([1000, 8000, 16000, 8000, 4000, 3000])
    assert fitted_distance(schema, counts, MultinomialColumn()) < 0.04


ALPHA = 1e-6  # false-alarm rate of the test of the law


def test_synthetic_records_follow_the_predictive_law():
    """First record of many releases against sum over theta of P(theta) p(level | theta)."""
    print("seed 6")
    schema = Schema.from_dict({"x": {"integers": [0, 4]}})
    table = Table(schema, ["x"], np.array([9, 3, 0, 1, 0]))
    column = Column("x", PoissonColumn(Grid(0.3, 6, 6)))
    one = Synthesizer(ReplaceOne(schema), (column,), Fraction(3), records=1, copies=3000)
    found = one.release(table, SeededRandomness(6))
    seen = np.bincount([copy["x"][0].as_py() for copy in found.copies], minlength=5)
    law = one.laws(one.fetch(table)[0])[0][0]
    expected = np.exp(law.log_probabilities) @ np.concatenate(
        [one.kernels[0].probabilities([j]) for j in range(6)]
    )
    statistic = ((seen - 3000 * expected) ** 2 / (3000 * expected)).sum()
    assert statistic < chi2.ppf(1 - ALPHA, 4)
    # negative control: the shares of the data are noticed, as are equal ones
    for wrong in (np.array([9, 3, 0.5, 1, 0.5]) / 14, np.full(5, 0.2)):
        assert ((seen - 3000 * wrong) ** 2 / (3000 * wrong)).sum() > chi2.ppf(1 - ALPHA, 4)


@dataclass(frozen=True)
class Zipf(LevelModel):
    """A model of one's own: P(level k) ~ (k + 1)^-power."""

    kind = "zipf"
    power: Grid

    def log_prior(self, theta):
        return np.zeros(len(theta))

    def log_probability(self, theta, attribute, predictors=None):
        weights = -theta * np.log(np.arange(1, attribute.size + 1))
        return weights - np.log(np.exp(weights).sum(axis=1, keepdims=True))


def test_a_model_of_ones_own_is_certified_on_its_grid():
    schema = Schema.from_dict({"x": {"levels": list("abcdef")}})
    table = Table(schema, ["x"], np.array([500, 250, 160, 120, 100, 80]))
    one = Synthesizer(ReplaceOne(schema), (Column("x", Zipf(Grid(0, 3, 61))),), Fraction(1))
    theta = one.draw(one.fetch(table)[0], SeededRandomness(1))[0][0]
    # one draw of a posterior with deviation .07 on a grid of step .05
    assert one.kernels[0].theta[theta, 0] == pytest.approx(1, abs=0.25)
    assert one.guarantee.basis == "theorem"
