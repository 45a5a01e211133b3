"""Independent draws given published sums, against every table that conforms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

import congenial as cg
from congenial.figures.support import support
from congenial.inference import (
    Beta,
    Binomial,
    Chain,
    Dirichlet,
    Gamma,
    InferenceError,
    Multinomial,
    Observation,
    Poisson,
    infer,
)
from congenial.inference.cell_noise import Noise
from congenial.inference.inference import bind
from congenial.inference.latent_tables import LatentTables
from congenial.inference.models.counts import log_weights
from congenial.inference.samplers import given_sums
from congenial.inference.samplers.given_sums import DrawsGivenSums
from tests.inference.exact import ALPHA, tables, weighted_mean

SEED = 4
NAMES = ("g", "x")
SCHEMA = cg.Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
COUNTS = np.array([[2, 0, 1], [1, 2, 1]])
FIGURES = {
    "crossing": (cg.total(), cg.count("g = 'p'"), cg.count("x = 'a'")),
    "groups": (cg.total(by="g"),),
    "one total": (cg.total(),),
}
NEAR, FAR = np.array([3, -1, 2, 0, 4, 0]), np.array([-80, 70, 90, 60, -50, 100])
MODELS = {
    "multinomial": Multinomial(prior=Dirichlet(1.0)),
    "poisson": Poisson(prior=Gamma(1.5, 0.5), exposure=np.array([[1.0, 2, 0.5], [1, 1, 3]])),
    "poisson, a spike at 0": Poisson(),
    "binomial": Binomial(trials=6, prior=Beta(0.5, 2)),
}
NOISES = {
    "l1": ("double_geometric", Fraction(1, 2), [1] * 6),
    "l2": ("discrete_gaussian", Fraction(3), [1] * 6),
    "table": ("double_geometric", Fraction(1, 2), [1, 2, 1, 3, 1, 2]),
}


def observed(figures="crossing", y=NEAR, noise="l1", scale=Fraction(1), counts=COUNTS):
    published = cg.publish(cg.Table(SCHEMA, NAMES, counts), *FIGURES[figures])
    family, rate, terms = NOISES[noise]
    return Observation(
        y.astype(float),
        LatentTables.of_support(support(published, NAMES)),
        Noise.of_family(family, rate * scale, np.array(terms)),
        axes=SCHEMA.axes(NAMES),
        published=published,
    )


def enumerated(bound):
    """Every table that conforms, and its probability given the release."""
    seen = bound.observation
    every = np.array([x for x in tables(int(COUNTS.sum()), 6) if seen.conforming.holds(x)])
    logs = seen.log_law(every) + log_weights(every, bound.collapsed()).sum(axis=-1)
    law = np.exp(logs - logs.max())
    return every, law / law.sum()


def chance(trees, x) -> float:
    """The probability with which the trees draw a table: of the unknown totals, then each split."""
    left, right, low, begin, size, unit, _, _, pool = trees.forest
    sums = np.zeros(len(left), dtype=np.int64)
    sums[: len(trees.groups.order)] = x[trees.groups.order]
    found = 1.0
    for node, (a, b) in enumerate(zip(left, right, strict=True)):
        sums[node] = sums[node] if a < 0 else sums[a] + sums[b]
        at = [sums[k] - low[k] for k in (node, a, b)]
        if a >= 0 and all(0 <= i < size[k] for i, k in zip(at, (node, a, b), strict=True)):
            here, one, two = (pool[begin[k] + i] for i, k in zip(at, (node, a, b), strict=True))
            found *= one * two / (unit[node] * here)
        elif a >= 0:
            return 0.0
    for tied, first, cdf in trees.moves:
        group = tied[0]
        move = (sums[trees.roots[group]] - trees.groups.totals[group]) * trees.groups.signs[group]
        weights = np.diff(cdf, prepend=0.0)
        found *= weights[int(move) - first] / cdf[-1] if 0 <= move - first < len(cdf) else 0.0
    return found


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("figures", FIGURES)
def test_every_table_has_its_probability(figures, model, noise):
    bound = bind(observed(figures, noise=noise), MODELS[model])
    every, law = enumerated(bound)
    trees = DrawsGivenSums.of(bound)
    assert [chance(trees, x) for x in every] == pytest.approx(law, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("noise", ["l1", "l2"])
def test_a_release_far_from_the_figures(noise):
    bound = bind(observed(y=FAR, noise=noise), MODELS["poisson"])
    every, law = enumerated(bound)
    trees = DrawsGivenSums.of(bound)
    assert [chance(trees, x) for x in every] == pytest.approx(law, rel=1e-9, abs=1e-15)


def p_value(x, every, law) -> float:
    """Pearson's test of drawn tables, those that are rare taken together."""
    place = {tuple(row): i for i, row in enumerate(every)}
    seen = np.bincount([place[tuple(row)] for row in x], minlength=len(every))
    order = np.argsort(law)
    part = np.cumsum(law[order]) * len(x) // 10  # neighbours in size, about ten expected or more
    expected = np.bincount(np.unique(part, return_inverse=True)[1], law[order]) * len(x)
    found = np.bincount(np.unique(part, return_inverse=True)[1], seen[order])
    return float(chisquare(found, expected).pvalue)


@pytest.mark.parametrize("figures", FIGURES)
def test_draws_follow_the_law_and_noise_of_another_scale_is_noticed(figures):
    bound = bind(observed(figures), MODELS["poisson"])
    theta, x = DrawsGivenSums.of(bound).draw(20_000, np.random.default_rng(SEED))
    assert p_value(x, *enumerated(bound)) >= ALPHA
    assert (
        p_value(x, *enumerated(bind(observed(figures, scale=Fraction(4, 5)), MODELS["poisson"])))
        < ALPHA
    )
    every, law = enumerated(bound)
    shape, rate = 1.5, 0.5 + bound.numbers
    mean = (shape + weighted_mean(law, every)) / rate
    assert np.abs(theta.mean(axis=0) - mean).max() < 6 * theta.std(axis=0).max() / np.sqrt(20_000)


def test_planted_a_tied_total_that_is_taken_for_known_is_noticed():
    bound = bind(observed(), MODELS["poisson"])
    trees = DrawsGivenSums.of(bound)
    (tied, first, cdf), = trees.moves  # fmt: skip
    object.__setattr__(trees, "moves", ((tied, 0, np.ones(1)),))
    _, x = trees.draw(2000, np.random.default_rng(SEED))
    assert bound.observation.conforming.holds(x).all()
    assert p_value(x, *enumerated(bound)) < ALPHA
    assert first < 0
    assert len(cdf) > 1


def test_trees_and_chains_agree_where_some_cells_are_in_no_sum():
    """Women of each group are published, and nothing about others."""
    published = cg.publish(cg.Table(SCHEMA, NAMES, COUNTS), cg.count("g = 'p'"))
    seen = Observation(
        NEAR.astype(float),
        LatentTables.of_support(support(published, NAMES)),
        Noise.of_family("double_geometric", Fraction(1, 2), np.ones(6, dtype=np.int64)),
        axes=SCHEMA.axes(NAMES),
        published=published,
    )
    found = infer(seen, MODELS["poisson"], draws=8000, seed=SEED, counts=True)
    chains = infer(
        seen, MODELS["poisson"], method="augmentation", draws=8000, seed=SEED, counts=True,
        chain=Chain(40, 50),
    )  # fmt: skip
    assert (found.method, chains.method) == ("exact", "augmentation")
    error = np.hypot(found.standard_error("count"), chains.standard_error("count"))
    gap = np.abs(found.mean("count") - chains.mean("count"))
    assert np.all(gap <= 6 * np.maximum(error, 1e-9))


def test_many_cells_given_margins_whose_totals_are_zero_or_small():
    """A county without minors: two of the four groups are empty."""
    counts = COUNTS * np.array([0, 1, 1])
    bound = bind(observed(y=NEAR, counts=counts), MODELS["multinomial"])
    theta, x = DrawsGivenSums.of(bound).draw(500, np.random.default_rng(SEED))
    assert bound.observation.conforming.holds(x).all()
    assert np.all(x.reshape(-1, 2, 3)[:, :, 0] == 0)
    assert theta.shape == (500, 6)


def test_other_laws_and_other_figures_are_left_to_chains(monkeypatch):
    model = MODELS["poisson"]
    margins = cg.publish(cg.Table(SCHEMA, NAMES, COUNTS), cg.margin("g"), cg.margin("x"))
    wide = LatentTables.of_support(support(margins, NAMES))
    seen = observed()
    assert DrawsGivenSums.of(bind(Observation(seen.y, wide, seen.noise), Poisson())) is None
    with pytest.raises(InferenceError, match="two by two"):
        infer(Observation(seen.y, wide, seen.noise), Poisson(), method="exact", seed=SEED)
    assert DrawsGivenSums.of(bind(seen, model)) is not None
    monkeypatch.setattr(given_sums, "MOST_WORK", 10.0)
    assert DrawsGivenSums.of(bind(seen, model)) is None
    assert infer(seen, model, draws=200, seed=SEED, chain=Chain(8, 10, check=False)).method == (
        "augmentation"
    )
