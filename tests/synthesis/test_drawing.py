"""The exact draws: sampler against density, also when proposals are poor; negative controls."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from congenial import Schema, SeededRandomness
from congenial.errors import GuaranteeError
from congenial.synthesis import Grid, LinearRegression, MultinomialColumn, weighted_posterior
from congenial.synthesis.column_kernels import kernel_of
from congenial.synthesis.record_scores import FULL
from congenial.synthesis.weighted_posterior import Finite, WeightedComposition

ALPHA = 1e-6  # false-alarm rate of every test of a law here
SEED = 20
UNIT = Fraction(1, 2) / FULL


def rejects(seen: np.ndarray, expected: np.ndarray) -> bool:
    """Pearson's test; outcomes expected fewer than 5 times are merged."""
    rare = expected < 5
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-12))
    statistic = ((seen - expected) ** 2 / expected).sum()
    return bool(chi2.sf(statistic, len(seen) - 1) < ALPHA)


def a_finite_law() -> Finite:
    rng = np.random.default_rng(SEED)
    return Finite(rng.integers(0, 5 * FULL, 23), rng.normal(size=23), UNIT)


def a_composition(concentration: float = 0.4) -> WeightedComposition:
    values = np.arange(1, 8)
    score = np.rint(np.log(values) / np.log(7) * FULL).astype(np.int64)
    return WeightedComposition(
        np.array([6, 0, 2]), score, (concentration - 1) * np.log(values), UNIT, 1, 9
    )


def outcomes(law: WeightedComposition) -> tuple[list[tuple[int, ...]], np.ndarray]:
    cells = range(law.low, law.high + 1)
    every = [c for c in product(cells, repeat=len(law.counts)) if sum(c) == law.size]
    log_w = np.array([float(law.exact_log_weight(np.array(c))) for c in every])
    p = np.exp(log_w - log_w.max())
    return every, p / p.sum()


def count_finite(law: Finite, n: int) -> np.ndarray:
    print(f"seed {SEED}")
    source = SeededRandomness(SEED)
    return np.bincount([law.draw(source) for _ in range(n)], minlength=len(law.total))


def count_compositions(law: WeightedComposition, n: int) -> np.ndarray:
    print(f"seed {SEED}")
    source, every = SeededRandomness(SEED), outcomes(law)[0]
    places = {c: i for i, c in enumerate(every)}
    drawn = [places[tuple(int(v) for v in law.draw(source))] for _ in range(n)]
    return np.bincount(drawn, minlength=len(every))


def test_finite_draws_have_the_law():
    law, n = a_finite_law(), 12_000
    seen = count_finite(law, n)
    assert not rejects(seen, n * np.exp(law.log_probabilities))
    # negative control: 20 % more weight on every other outcome is noticed
    wrong = np.exp(law.log_probabilities)
    wrong[::2] *= 1.2
    assert rejects(seen, n * wrong / wrong.sum())


def test_composition_draws_have_the_law():
    law, n = a_composition(), 4000
    every, p = outcomes(law)
    assert len(every) == 28
    seen = count_compositions(law, n)
    assert not rejects(seen, n * p)
    # negative control: the law of another prior is noticed
    assert rejects(seen, n * outcomes(a_composition(1.4))[1])


@pytest.mark.parametrize("draw", ["finite", "composition"])
def test_poor_proposals_do_not_change_the_law(draw, monkeypatch):
    """The proposal is three times too large at odd places; acceptance sets it right."""
    good = weighted_posterior._upper

    def poor(log_w, scale):
        weights = good(log_w, scale / 4)
        weights[1::2] *= 3
        return weights

    def true_scale(law):
        constant, *rest = type(law)._proposal.func(law)
        quarter = constant / 4 if isinstance(constant, Fraction) else [k / 4 for k in constant]
        return (quarter, *rest)

    monkeypatch.setattr(weighted_posterior, "_upper", poor)
    law = a_finite_law() if draw == "finite" else a_composition()
    law.__dict__["_proposal"] = true_scale(law)
    if draw == "finite":
        n, p, seen = 3000, np.exp(law.log_probabilities), count_finite(law, 3000)
    else:
        n, p, seen = 700, outcomes(law)[1], count_compositions(law, 700)
    assert not rejects(seen, n * p)
    # negative control: without the acceptance step the same draws are noticed
    monkeypatch.setattr(weighted_posterior, "happens", lambda *_: True)
    seen = count_finite(law, n) if draw == "finite" else count_compositions(law, n)
    assert rejects(seen, n * p)


def test_weights_that_underflow_can_still_be_drawn():
    """Where doubles see zero the exact weight counts: probabilities 1 - e^-2000 and e^-2000."""
    far = Finite(np.array([0, 4000 * FULL]), np.zeros(2), UNIT)
    source = SeededRandomness(1)
    assert {far.draw(source) for _ in range(50)} == {1}
    assert far.log_probabilities[0] == pytest.approx(-2000)
    assert float(far.exact_log_weight(0)) == -2000


def test_proposal_weights_bound_the_exact_ones():
    law = a_finite_law()
    scale, weights, _ = law._proposal
    for j in range(len(weights)):
        assert float(np.exp(float(law.exact_log_weight(j)))) * float(scale) <= int(weights[j])
    law = a_composition()
    scales, levels, best, weights, running = law._proposal
    assert running.max() < 2**62
    for kind, k in enumerate(scales):
        exact = (levels[kind] - levels[kind, best[kind]]) * float(UNIT)
        exact = exact + law.log_prior - law.log_prior[best[kind]]
        assert (np.exp(exact) * float(k) <= weights[kind]).all()


def test_large_compositions_are_drawn_near_the_data():
    """200 levels, 10,000 people: probabilities follow the weighted counts."""
    rng = np.random.default_rng(SEED)
    counts = rng.multinomial(10_000, rng.dirichlet(np.full(200, 2.0)))
    values = np.arange(2, 2001)
    score = np.rint(np.log(values / 2) / np.log(1000) * FULL).astype(np.int64)
    law = WeightedComposition(counts, score, np.zeros(len(values)), Fraction(4) / FULL, 2, 8000)
    found = law.draw(SeededRandomness(SEED))
    assert found.sum() == 8000
    assert found.min() >= 2
    assert np.corrcoef(found, counts)[0, 1] > 0.8


def test_impossible_laws_are_refused():
    score, prior = np.array([0, FULL]), np.zeros(2)
    with pytest.raises(GuaranteeError, match="Lower the floor"):
        WeightedComposition(np.zeros(3, dtype=np.int64), score, prior, UNIT, 4, 11)
    with pytest.raises(GuaranteeError, match="prior is zero"):
        Finite(np.array([0, 1]), np.array([0.0, -np.inf]), UNIT)


@pytest.mark.parametrize("counts", [[[1 << 33, 10, 10]], [[1 << 31] * 3], [[1 << 62, 1 << 62, 0]]])
def test_more_records_than_64_bits_hold_are_refused(counts):
    """Sums of scores would wrap around, and the draw follow another law, or never end."""
    attribute = Schema.from_dict({"x": {"levels": ["a", "b", "c"]}}).attribute("x")
    kernel = kernel_of(
        MultinomialColumn(floor=0.2, steps=1, concentration=1.0),
        attribute=attribute,
        allowed=np.ones((1, 3), dtype=bool),
        bound=Fraction(1, 1 << 20),
    )
    with pytest.raises(GuaranteeError, match="do not fit 64 bits"):
        kernel.laws(np.array(counts, dtype=np.int64))
    kernel.laws(np.array([[1 << 31, 1 << 31, 0]]))[0].prepare()


def test_contexts_of_one_shared_parameter_are_counted_together():
    attribute = Schema.from_dict({"x": {"edges": [0, 1, 2, 3]}}).attribute("x")
    kernel = kernel_of(
        LinearRegression((Grid(0, 3, 4), Grid(0, 1, 4)), Grid(0.5, 2, 3)),
        attribute=attribute,
        allowed=np.ones((2, 3), dtype=bool),
        bound=Fraction(1, 1 << 20),
        predictors=np.array([[0.0], [1.0]]),
    )
    half = np.full((2, 3), 1 << 30, dtype=np.int64)  # each context fits, both do not
    with pytest.raises(GuaranteeError, match="do not fit 64 bits"):
        kernel.laws(half)
    assert len(kernel.laws(half // 2)) == 1
