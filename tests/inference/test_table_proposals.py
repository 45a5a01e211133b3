"""Whole tables drawn from a Gaussian law of integers, against every table that conforms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chisquare

import congenial as cg
from congenial.inference import Chain, Observation
from congenial.inference.cell_noise import LevelNoise, Noise
from congenial.inference.feasibility import sampler_of_tables
from congenial.inference.inference import _sampler, bind
from congenial.inference.samplers import count_kernels
from congenial.inference.samplers.chains import Collapsed
from congenial.inference.samplers.table_proposals import TableProposals
from congenial.mechanisms.measured_tables import MeasuredTables
from tests.inference.exact import ALPHA
from tests.inference.test_given_sums import (
    COUNTS,
    FIGURES,
    MODELS,
    NAMES,
    SCHEMA,
    enumerated,
    observed,
    p_value,
)

SEED = 6
DRAWN = np.array([3, -1, 2, 0, 4, 0, 5, 1, 2, 4, 3])  # six cells, three levels of x, two of g


def several(figures, rate=0.3):
    """Cells, x and g measured at once."""
    g, x = np.divmod(np.arange(6), 3)
    above = np.stack([np.arange(6), 6 + x, 9 + g], axis=1)
    rates = np.repeat([rate, 0.5 * rate, 0.4 * rate], [6, 3, 2])
    plain = observed(figures)
    levels = LevelNoise(above, rates, DRAWN, squared=True)
    return Observation(
        DRAWN[:6].astype(float), plain.conforming, Noise.flat(6), levels=levels, axes=plain.axes,
        published=plain.published,
    )  # fmt: skip


def proposed(chains, every):
    """Log probability with which each table is proposed, cell after cell."""
    factor, centre, x = chains.factor, chains.centre, np.arange(80)
    counts = every[:, chains.freedom.free]
    found = np.zeros(len(every))
    for j, (origin, slope, bend, a) in enumerate(chains.law[chains.freedom.free]):
        pull = (counts[:, :j] - centre[:j]) @ factor[j, :j]
        near = (centre[j] - pull / factor[j, j])[:, None]
        logs = -0.5 * (factor[j, j] * (x - near)) ** 2 - slope * (x - origin)
        logs = logs + 0.5 * bend * (x - origin) ** 2 + gammaln(x + a) - gammaln(x + 1)
        found += np.take_along_axis(logs, counts[:, [j]], axis=1)[:, 0] - logsumexp(logs, axis=1)
    return found


@pytest.mark.parametrize("model", ["multinomial", "poisson", "poisson, a spike at 0"])
@pytest.mark.parametrize("figures", ["crossing", "groups", "one total"])
def test_proposals_times_their_weights_are_the_posterior(figures, model):
    bound = bind(several(figures), MODELS[model])
    chains = TableProposals(bound, 2, np.random.default_rng(SEED))
    x, weights = chains.propose(20_000)
    x, weights = x[np.isfinite(weights)], weights[np.isfinite(weights)]
    assert bound.observation.conforming.holds(x).all()
    every, law = enumerated(bound)
    chance = proposed(chains, every)
    wanted = dict(zip(map(tuple, every), np.log(law) - chance, strict=True))
    gap = weights - [wanted[tuple(row)] for row in x]
    assert gap == pytest.approx(gap[0], abs=1e-8)
    assert p_value(x, every, np.exp(chance) / np.exp(chance).sum()) >= ALPHA
    _, other = enumerated(bind(several(figures, rate=0.2), MODELS[model]))
    assert p_value(x, every, other) < ALPHA


def test_chains_follow_the_law_and_without_weights_they_do_not():
    bound = bind(several("crossing"), MODELS["poisson, a spike at 0"])
    every, law = enumerated(bound)

    def last(forget):
        chains = TableProposals(bound, 2000, np.random.default_rng(SEED))
        for _ in range(40):
            chains.iterate(learn=False)
            if forget:
                chains._weights[:] = -np.inf
        x = chains.x
        return p_value(
            x[bound.observation.conforming.holds(x) & np.all(x >= 0, axis=1)], every, law
        )

    assert last(forget=False) >= ALPHA
    assert last(forget=True) < ALPHA


def draws_of(c, r, a, count=8000):
    rng = np.random.default_rng(SEED)
    return np.array([count_kernels.draw_count(rng, c, r, a) for _ in range(count)])


@pytest.mark.parametrize(
    ("c", "r", "a"),
    [
        (3.3, 0.4, 1.0),
        (-4.0, 0.5, 1.0),
        (2.2, 0.3, 0.5),
        (1.7, 1.4, 1.0),
        (0.4, 0.9, 2.5),
        (31.0, 0.1, 150.0),  # a strong prior: nearly all counts are far above the centre
        (10.501, 40.0, 1.5),  # hardly any noise, and two counts that are about equally near
    ],
)
def test_a_count_near_zero_has_its_law_and_its_sum(c, r, a):
    found = draws_of(c, r, a)
    x = np.arange(400)
    logs = -0.5 * (r * (x - c)) ** 2 + gammaln(x + a) - gammaln(x + 1)
    sum_of_all = logsumexp(logs) + np.log(r / np.sqrt(2 * np.pi))
    assert found[:, 1] == pytest.approx(sum_of_all, rel=1e-12, abs=1e-12)
    law = np.exp(logs - logsumexp(logs))
    assert _p_value(found[:, 0], law) >= ALPHA
    wider = np.exp(0.8 * (logs - logs.max()))
    assert _p_value(found[:, 0], wider / wider.sum()) < ALPHA


@pytest.mark.parametrize(("r", "a"), [(0.3, 1.0), (0.15, 0.5)])
def test_a_count_far_from_zero_leaves_the_model_to_the_weight(r, a):
    c = 10.4 / r
    found = draws_of(c, r, a)
    x = np.arange(round(c + 10 / r))
    law = np.exp(-0.5 * (r * (x - c)) ** 2)
    assert law.sum() * r / np.sqrt(2 * np.pi) == pytest.approx(1, abs=1e-13)
    assert _p_value(found[:, 0], law / law.sum()) >= ALPHA
    factor = gammaln(found[:, 0] + a) - gammaln(found[:, 0] + 1)
    assert found[:, 1] == pytest.approx(factor, abs=1e-9)


def _p_value(x, law) -> float:
    seen = np.bincount(x.astype(int), minlength=len(law))
    rare = law * len(x) < 10
    expected = np.append(law[~rare], max(law[rare].sum(), 1e-9)) * len(x)
    found = np.append(seen[~rare], seen[rare].sum())
    return float(chisquare(found, expected * len(x) / expected.sum()).pvalue)


def test_where_whole_tables_are_proposed():
    rng = np.random.default_rng(SEED)
    seen = several("crossing", rate=0.02)
    model = MODELS["multinomial"]
    assert isinstance(_sampler(bind(seen, model), Chain(4), rng), TableProposals)
    l1 = LevelNoise(seen.levels.above, seen.levels.rates, seen.levels.values, squared=False)
    other = Observation(seen.y, seen.conforming, seen.noise, levels=l1)
    assert type(_sampler(bind(other, MODELS["poisson, a spike at 0"]), Chain(4), rng)) is Collapsed
    coarse = LevelNoise(
        seen.levels.above[:, 1:] - 6, seen.levels.rates[6:], seen.levels.values[6:], squared=True
    )
    nothing = Observation(seen.y, seen.conforming, seen.noise, levels=coarse)
    assert (
        type(_sampler(bind(nothing, MODELS["poisson, a spike at 0"]), Chain(4), rng)) is Collapsed
    )


def test_check_knows_where_whole_tables_are_proposed():
    table = cg.Table(SCHEMA, NAMES, 40 * COUNTS)
    tables, scales = [NAMES, ("x",)], [Fraction(9), Fraction(16)]
    for figures, family, said in [
        ("crossing", "discrete_gaussian", "whole"),
        ("crossing", "double_geometric", "lines"),
    ]:
        under = cg.SemiAdjacent(cg.publish(table, *FIGURES[figures]))
        release = MeasuredTables.of(under, tables, family, scales).release(
            table, cg.SeededRandomness(SEED)
        )
        assert sampler_of_tables(release.description) == said
        made = _sampler(bind(release, MODELS["multinomial"]), Chain(4), np.random.default_rng(SEED))
        assert isinstance(made, TableProposals) == (said == "whole")
