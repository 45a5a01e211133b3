"""Models: oscillations in closed form, conjugate posteriors, probabilities of levels, bad input."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from congenial.data.attribute import Attribute
from congenial.errors import GuaranteeError, SchemaError
from congenial.synthesis.certified import certified_law
from congenial.synthesis.models import (
    BinomialColumn,
    LinearRegression,
    MultinomialColumn,
    NormalColumn,
    PoissonColumn,
    Spike,
    read_model,
)
from congenial.synthesis.models.level_columns import numbers, values_within
from congenial.synthesis.record_model import Grid, RecordModel, product_of
from congenial.synthesis.record_scores import oscillation, score_table, weights_of

BINS = Attribute("x", "bins", edges=(0, 1, 2, 5, 10), top="10+")
ROWS = np.column_stack([np.linspace(-2, 3, 7), np.linspace(-4, 9, 7) ** 2])

CASES = [
    (PoissonColumn(Grid(2, 30, 2001)), np.array([0.0, 1, 5, 29, 31, 400])),
    (BinomialColumn(12, Grid(0.05, 0.9, 2001)), np.arange(13.0)),
    (NormalColumn(Grid(-3, 4, 301), Grid(0.5, 6, 301)), np.array([-50.0, -3, 0, 1.7, 5, 60])),
    (NormalColumn(Grid(1, 9, 301), Grid(0.5, 6, 301), "root"), np.array([-50.0, 0, 4, 100, 1e6])),
    (LinearRegression((Grid(-1, 1, 21), Grid(-2, 2, 21)), Grid(0.5, 3, 201)), ROWS),
]


@pytest.mark.parametrize(("model", "records"), CASES)
def test_closed_form_of_the_oscillation(model, records):
    """Over a fine grid it is met within the grid's step, and never exceeded."""
    assert isinstance(model, RecordModel)
    on_grid = oscillation(model.log_likelihood(model.points(), records))
    closed = model.oscillation(records)
    assert (on_grid <= closed + 1e-9).all()
    assert on_grid == pytest.approx(closed, rel=2e-3)


def test_oscillations_against_the_oracle(oracles):
    told = json.loads((oracles / "pseudo-posterior.json").read_text())
    for case in (one for one in told if one["id"].startswith("sup_theta")):
        given = case["inputs"]
        model = PoissonColumn(Grid(given["lo"], given["hi"], 2))
        found = model.oscillation(np.array(given["x"], dtype=float))
        assert found == pytest.approx(case["output"]["osc"], abs=case["tol"])


def test_oscillation_does_not_depend_on_units():
    dollars = NormalColumn(Grid(-3, 4), Grid(0.5, 6))
    cents = NormalColumn(Grid(-300, 400), Grid(50, 600))
    y = np.array([-9.0, 0.3, 12.0])
    assert dollars.oscillation(y) == pytest.approx(cents.oscillation(100 * y))


@pytest.mark.parametrize(
    ("model", "records", "law"),
    [
        (
            PoissonColumn(Grid(0.05, 40, 4001), shape=1.5, rate=0.2),
            np.array([3.0, 9, 4]),
            lambda a, x: stats.gamma(1.5 + a @ x, scale=1 / (0.2 + a.sum())),
        ),
        (
            BinomialColumn(9, Grid(0.0005, 0.9995, 4001), yes=2, no=1),
            np.array([3.0, 9, 4]),
            lambda a, x: stats.beta(2 + a @ x, 1 + a @ (9 - x)),
        ),
    ],
)
def test_certified_law_is_the_weighted_conjugate_posterior(model, records, law):
    """On a fine grid the exact law has the distribution function of the conjugate posterior."""
    weights = weights_of(oscillation(model.log_likelihood(model.points(), records)), Fraction(2))
    found = np.exp(certified_law(model, records, Fraction(2)).log_probabilities).cumsum()
    expected = law(weights, records).cdf(model.points()[:, 0])
    assert np.abs(found - expected).max() < 2e-3


ALPHA = 1e-6  # false-alarm rate of each Kolmogorov-Smirnov test


@pytest.mark.parametrize(
    ("model", "records"),
    [
        (PoissonColumn(shape=1.5, rate=0.2), np.array([3.0, 9, 4])),
        (BinomialColumn(9), np.array([3.0, 9, 4])),
        (NormalColumn(prior_records=0.5, prior_shape=2, prior_scale=3), np.array([1.0, 5.0, -2.0])),
    ],
)
def test_conjugate_draws_follow_prior_times_likelihood(model, records):
    """First parameter of the weighted posterior draws against its density, integrated on a grid."""
    print("seed 4")
    weights = np.array([0.2, 1.0, 0.7])
    drawn = model.posterior(records, weights, 4000, np.random.default_rng(4))
    grids = [np.linspace(*np.quantile(c, [0, 1]) * [0.7, 1.3] + [-1e-9, 0], 400) for c in drawn.T]
    if isinstance(model, NormalColumn):
        grids = [np.linspace(-15, 20, 700), np.linspace(0.05, 20, 800)]
    if isinstance(model, BinomialColumn):
        grids = [np.linspace(1e-4, 1 - 1e-4, 2000)]
    if isinstance(model, PoissonColumn):
        grids = [np.linspace(1e-3, 40, 4000)]
    theta = np.stack([g.reshape(-1) for g in np.meshgrid(*grids, indexing="ij")], axis=1)
    log_p = model.log_prior(theta) + model.log_likelihood(theta, records) @ weights
    p = np.exp(log_p - log_p.max()).reshape([len(g) for g in grids])
    p = p.reshape(len(grids[0]), -1).sum(axis=1)
    cdf = np.cumsum(p) / p.sum()
    test = stats.kstest(drawn[:, 0], lambda x: np.interp(x, grids[0], cdf))
    assert test.pvalue > ALPHA
    # negative control: the unweighted posterior is not mistaken for it
    plain = model.posterior(records, np.ones(3), 4000, np.random.default_rng(4))
    assert stats.kstest(plain[:, 0], lambda x: np.interp(x, grids[0], cdf)).pvalue < ALPHA


def test_regression_draws_centre_on_least_squares():
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    rows = np.column_stack([x, 2 + 3 * x + rng.normal(size=400)])
    drawn = LinearRegression().posterior(rows, np.ones(400), 2000, rng)
    slope, constant = np.polyfit(x, rows[:, 1], 1)
    residual = np.sqrt(np.sum((rows[:, 1] - constant - slope * x) ** 2) / 398)
    # 2000 draws of deviations up to .05: five standard errors
    assert drawn.mean(axis=0) == pytest.approx([constant, slope, residual], abs=0.006)
    assert LinearRegression().draw(drawn[0], rows, rng)[:, 0] == pytest.approx(x)


def test_multinomial_weights_are_equal_and_known():
    model = MultinomialColumn(floor=0.05, ceiling=0.6, steps=2, levels=4)
    assert model.lattice(4) == (40, 2, 24)
    assert model.oscillation([0, 3]) == pytest.approx([np.log(12)] * 2)


@pytest.mark.parametrize(
    "model",
    [
        PoissonColumn(Grid(0.2, 20, 7)),
        BinomialColumn(30, Grid(0.1, 0.9, 7)),
        Spike(NormalColumn(Grid(-1, 3, 3), Grid(0.5, 2, 3), "log"), "0", Grid(0.1, 0.5, 3)),
    ],
)
def test_levels_that_cover_everything_have_probability_one(model):
    p = np.exp(model.log_probability(model.points(), BINS))
    assert p.sum(axis=1) == pytest.approx(np.ones(len(p)))


def test_level_probabilities_against_scipy():
    theta = np.array([[4.0, 2.5]])
    edges = [0, 1, 2, 5, 10, np.inf]
    normal = np.diff(stats.norm(4, 2.5).cdf(edges))
    assert np.exp(NormalColumn().log_probability(theta, BINS))[0] == pytest.approx(normal)
    poisson = np.diff(stats.poisson(4).cdf([-1, 0, 1, 4, 9, np.inf]))
    assert np.exp(PoissonColumn().log_probability(theta, BINS))[0] == pytest.approx(poisson)
    binomial = np.diff(stats.binom(12, 0.4).cdf([-1, 0, 1, 4, 9, 12]))
    found = np.exp(BinomialColumn(12).log_probability(np.array([[0.4]]), BINS))[0]
    assert found == pytest.approx(binomial)


def test_far_tails_stay_finite():
    far = Attribute("x", "bins", edges=(0, 10**6), top="more")
    assert np.isfinite(PoissonColumn().log_probability(np.array([[0.5]]), far)).all()
    assert np.isfinite(NormalColumn().log_probability(np.array([[0.0, 1.0]]), far)).all()


def test_plain_data_round_trip():
    model = Spike(
        LinearRegression((Grid(0, 1, 3), Grid(-1, 1, 5)), Grid(1, 2, 2), "asinh"),
        "0",
        Grid(0.1, 0.2),
    )
    assert read_model(json.loads(json.dumps(model.to_dict())), "here") == model
    assert read_model("multinomial", "here") == MultinomialColumn()


def test_values_inside_levels():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(5), 200)
    values = values_within(BINS, codes, rng)
    assert np.array_equal(np.digitize(values, [0, 1, 2, 5, 10]) - 1, codes)
    assert set(values[codes == 4]) == {10.0}
    assert set(values[codes == 2]) == {2.0, 3.0, 4.0}


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Grid(0, np.inf), "not compact"),
        (lambda: Grid(np.nan, 1), "not compact"),
        (lambda: Grid(2, 1), "empty"),
        (lambda: Grid(1, 1), "repeats"),
        (lambda: Grid(-1, 1, 5, "log"), "no logarithm"),
        (lambda: PoissonColumn(Grid(0, 5)), "impossible"),
        (lambda: PoissonColumn().oscillation(np.ones(2)), "not compact"),
        (lambda: NormalColumn(Grid(0, 1), Grid(0, 1)), "impossible"),
        (lambda: NormalColumn(scale="cubic"), "not known"),
        (lambda: BinomialColumn(3, Grid(0, 0.5)), "impossible"),
        (lambda: MultinomialColumn(floor=0.0), "infinite for every record"),
        (lambda: MultinomialColumn(floor=0.3).lattice(4), "cannot all"),
        (
            lambda: MultinomialColumn().posterior([0], np.ones(1), 1, np.random.default_rng(0)),
            "levels",
        ),
        (lambda: read_model({"kind": "gauss"}, "column 'x'"), "not known"),
        (lambda: read_model({"kind": "poisson", "men": [1, 2]}, "column 'x'"), "no key 'men'"),
        (lambda: read_model({"kind": "poisson", "mean": "wide"}, "column 'x'"), "range"),
        (lambda: product_of([Grid(0, 1, 2000)] * 2), "more than"),
        (lambda: score_table(np.full((3, 2), -np.inf), Fraction(1)), "infinite for every"),
    ],
)
def test_bad_input(build, words):
    with pytest.raises(GuaranteeError, match=words):
        build()


def test_predictors_need_numbers():
    with pytest.raises(SchemaError, match="no numbers"):
        numbers(Attribute("c", "categorical", levels=("a", "b", "c")))


def test_a_range_may_leave_out_how_many_points() -> None:
    assert Grid.from_value([0.5, 2.0], "here") == Grid(0.5, 2.0)
    assert Grid.from_value([0.5, 2.0, 7], "here") == Grid(0.5, 2.0, 7)
    assert Grid.from_value(3, "here") == Grid(3.0, 3.0, 1)
    for wrong in ([0.5], [0.5, 2.0, 7, "log", 1], [0.5, "2"], True, None):
        with pytest.raises(GuaranteeError, match="here is not a range"):
            Grid.from_value(wrong, "here")


def test_the_ridge_of_a_regression_is_in_units_of_its_error() -> None:
    """-log sd - ridge |b|^2 / (2 sd^2), by hand."""
    model = LinearRegression(ridge=3.0)
    theta = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 2.0]])
    expected = [-np.log(0.5) - 3 * 5 / (2 * 0.25), -np.log(2) - 3 * 1 / (2 * 4)]
    assert model.log_prior(theta) == pytest.approx(expected)


def test_new_values_of_a_regression_have_its_error() -> None:
    model, rows = LinearRegression(), np.array([[1.0, 9.0], [4.0, 9.0], [2.0, 9.0]])
    theta = np.array([0.5, 2.0, 0.01])  # intercept, slope, sd
    drawn = model.draw(theta, rows, np.random.default_rng(7))
    noise = np.random.default_rng(7).standard_normal(3)
    assert drawn[:, 0] == pytest.approx(rows[:, 0])
    assert drawn[:, -1] == pytest.approx(model._design(rows)[0] @ theta[:-1] + 0.01 * noise)
