"""Whether a release can be inferred from, said beforehand; and tables so few that all are seen."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.figures.limits import conforming_tables
from congenial.figures.statements import at_least, at_most, count, margin, total
from congenial.inference import (
    Chain,
    Dirichlet,
    GaussianPrior,
    InferenceError,
    Multinomial,
    Poisson,
    infer,
    inference,
    observe,
)
from congenial.inference.feasibility import expected_minutes, outlook, sampler_of_cells
from congenial.inference.samplers.given_sums import DrawsGivenSums
from congenial.pairs.adjacency import ReplaceOne
from tests.inference.exact import agrees, l1, release_of, tables, weighted_mean
from tests.inference.test_samplers import dirichlet_multinomial, eps_cell

SEED = 11
SCHEMA = cg.Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
ACROSS = (total(by="g"), at_least(count("x = 'a'"), 3), at_most(count("x = 'b'"), 3))


def made(statements, counts, name="congenial_counts", people=1):
    table = cg.Table(SCHEMA, ["g", "x"], people * np.array(counts))
    under = cg.SemiAdjacent(cg.publish(table, *statements))
    return cg.calibrate(name, cg.Guarantee.pure(3, under=under)), table


COUNTS = [[1, 2, 0], [3, 0, 1]]
CASES = {
    "independent noise given sums": ((total(by="g"),), "congenial", 40, "cells"),
    "crossing figures": ((margin("g"), margin("x")), "congenial", 40, "cells"),
    "crossing figures, two by two": (
        (total(), count("g = 'p'"), count("x = 'a'")), "congenial", 40, "cells",
    ),
    "signs and sums": ((total(by="g"),), "congenial_counts", 40, "counts"),
    "signs and crossing figures": ((margin("g"), margin("x")), "congenial_counts", 90, "density"),
    "the same, few people": ((margin("g"), margin("x")), "congenial_counts", 1, "listed"),
    "a bounded cell": (
        (total(by="g"), at_most(count("g = 'p' and x = 'a'"), 70)), "congenial_counts", 60,
        "density",
    ),
    "bounds across groups": (ACROSS, "congenial_counts", 1, "listed"),
    "the same, many people": (
        (total(by="g"), at_least(count("x = 'a'"), 3), at_most(count("x = 'b'"), 200)),
        "congenial_counts", 60, "none",
    ),
    "gauge noise": ((margin("g"), margin("x")), "knorm", 40, "density"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_said_is_what_happens(name):
    statements, mechanism, people, way = CASES[name]
    law, table = made(statements, COUNTS, mechanism, people)
    found = outlook(law)
    assert found.way == way
    assert found.slow == (way == "density")
    release = release_of(law, table.counts)
    if not found.works:
        with pytest.raises(InferenceError, match="no sampler is proved"):
            observe(release)
        return
    seen = observe(release)
    assert np.isfinite(seen.log_law(table.counts.reshape(1, -1)))
    assert found.model == "multinomial"
    trees = DrawsGivenSums.of(Multinomial().bind(seen))
    assert (sampler_of_cells(law) == "independent") == (trees is not None)
    if found.slow:
        assert found.why
        assert expected_minutes(law) > 0


def test_before_figures_are_published_structure_alone_decides():
    _, table = made(ACROSS, COUNTS)
    under = cg.SemiAdjacent(cg.Figures(table.schema, ACROSS))
    law = cg.calibrate("congenial_counts", cg.Guarantee.pure(3, under=under))
    assert not outlook(law).works
    assert "once figures are published" in outlook(law).why
    assert expected_minutes(law) is None


def test_cells_in_no_published_sum_are_for_another_model(monkeypatch):
    monkeypatch.setattr(inference, "MOST_ROUNDS", 1)
    target = cg.Guarantee.pure(3, under=ReplaceOne(SCHEMA))
    law = cg.calibrate("congenial_counts", target, ("g", "x"))
    found = outlook(law)
    assert (found.way, found.model) == ("density", "poisson")
    assert expected_minutes(law) > 0
    chain = Chain(4, 20, check=False)
    assert infer(release_of(law, 9 * np.array(COUNTS)), Poisson(), draws=100, chain=chain)


# ---- few tables ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def across():
    """Two groups of known total, bounded together: no sampler is proved are proved."""
    law, table = made(ACROSS, COUNTS)
    every = conforming_tables(law.adjacency.figures, ("g", "x"))
    chances = [
        float(np.exp(law.log_density(table.counts, cg.Table(SCHEMA, ["g", "x"], x))))
        for x in every.reshape(-1, 2, 3)
    ]
    return release_of(law, table.counts), every, np.array(chances)


@pytest.mark.parametrize("method", ["auto", "augmentation"])
def test_bounds_across_groups_where_few_tables_conform(across, method):
    release, every, law = across
    assert np.exp(observe(release).listed[1]) == pytest.approx(law)
    model, chain = Multinomial(prior=Dirichlet(0.7)), Chain(20, 20)
    found = infer(release, model, method=method, draws=4000, seed=SEED, chain=chain)
    weight = [w * dirichlet_multinomial(x, 0.7) for x, w in zip(every, law, strict=True)]
    shares = [(0.7 + x.reshape(2, 3)) / (7 + 4.2) for x in every]
    assert agrees(found, "share", weighted_mean(weight, shares))
    # planted: bounds and normaliser forgotten
    eps, drawn = eps_cell(release.only.mechanism), release.drawn[0].reshape(-1)
    sums = [x for x in tables(7, 6) if x[:3].sum() == 3]
    wrong = [dirichlet_multinomial(x, 0.7) * l1(drawn, x, eps) for x in sums]
    forgotten = weighted_mean(wrong, [(0.7 + x.reshape(2, 3)) / (7 + 4.2) for x in sums])
    assert not agrees(found, "share", forgotten)


def test_a_regression_over_listed_tables(across, monkeypatch):
    monkeypatch.setattr(inference, "MOST_ROUNDS", 1)
    release, every, law = across
    model = Poisson(prior=GaussianPrior(0, 1), covariates=("g",))
    chain = Chain(10, 20, check=False)
    found = infer(release, model, draws=1000, seed=SEED, counts=True, chain=chain)
    assert "list" in found.notes[0]
    bound = model.bind(observe(release))
    theta = bound.draw_prior(np.random.default_rng(SEED), 2000)
    rows = (np.broadcast_to(x, (len(theta), 6)) for x in every)
    chance = np.array([np.exp(bound.log_likelihood(row, theta)).mean() for row in rows])
    exact = weighted_mean(law * chance, every.reshape(-1, 2, 3))
    assert np.abs(found.mean("count") - exact).max() < 0.2
