"""The paper's figures and statements: against oracles, and on real data."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from congenial.errors import DataError
from congenial.mechanisms.wasserstein.base_measure import congenial, naive, prior_congenial
from congenial.papers import catalogue
from congenial.papers.item import Study
from congenial.papers.partially_private_data import ITEMS, pennsylvania, theory
from congenial.papers.partially_private_data import pennsylvania as pa
from congenial.sampling.randomness import SeededRandomness

SEED, ALPHA = 11, 1e-6
QUICK = Study(seed=SEED, quick=True)


@pytest.fixture
def oracle(oracles):
    lines = json.loads((oracles / "partially-private-data.json").read_text())
    return {one["id"]: one for one in lines}


@pytest.fixture(scope="module")
def study(shared):
    return Study(data=shared / "data", seed=SEED, quick=True)


@pytest.mark.parametrize("name", [name for name, item in ITEMS.items() if not item.files])
def test_items_without_data(name):
    result = catalogue.run("partially-private-data", name, QUICK)
    assert result["rows"]
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("name", [name for name, item in ITEMS.items() if item.files])
def test_items_with_data(name, study):
    result = catalogue.run("partially-private-data", name, study)
    assert any("Delta_z = 2 in l1" in note for note in result["notes"])
    assert "l1" in result["source"]
    json.dumps(result, allow_nan=False)
    with pytest.raises(DataError, match="--data DIR"):
        catalogue.run("partially-private-data", name, QUICK)


def test_data_are_as_described(study):
    data = pa.load(study)
    assert data.cases.shape == (24, 67)
    assert data.corrected == 4
    assert any("4 cells with new_deaths = -1" in note for note in data.notes)
    assert data.cases.sum(axis=1).max() == 625_057
    assert (data.deaths <= data.cases).all()


def test_releases_agree_with_what_is_public(study):
    data, months = pa.load(study), list(pa.months_of(study))
    totals = data.cases[months].sum(axis=1)[:, None]
    both = [one for loss in pa.LOSSES for one in pa.released(study, loss).items()]
    assert len(both) == 2 * len(pa.METHODS) * len(pa.EPSILONS)
    for (method, _), (cases, deaths, noisy) in both:
        if method == "naive":
            assert (cases.sum(axis=-1) != totals).any()
            continue
        assert (cases.sum(axis=-1) == totals).all()
        assert (deaths >= 0).all()
        assert (cases >= deaths).all()
        assert (noisy is not None) == (method == "post-processing")


def test_prior_helps_most_where_epsilon_is_small(study):
    found = pennsylvania.figure2(study)
    at = found["columns"].index("99 %")
    errors = {(row[0], row[1]): row[at] for row in found["rows"]}
    for loss in pa.LOSSES:
        panel = f"{loss} loss, epsilon = 0.01"
        assert errors[panel, "prior-congenial"] < errors[panel, "post-processing"]


def test_panels_are_in_reading_order_and_show_whole_distributions(study):
    """Left to right: the smaller epsilon first, method by method; boxes from true quantiles."""
    found = pennsylvania.figure1(study)
    panels = list(dict.fromkeys(row[0] for row in found["rows"]))
    methods = ("post-processing", "naive", "congenial", "prior-congenial")
    assert panels == [
        f"{m}, {loss}, epsilon = {e}" for m in methods for loss in ("l1", "l2") for e in (0.01, 1)
    ]
    data = pa.load(study)
    (cases, _, _), erie = pa.released(study, "l1")["congenial", pa.EPSILONS[0]], "Erie"
    j, t = data.counties.index(erie), list(pa.months_of(study))[1]
    want = np.quantile(cases[1, :, j], pennsylvania.LEVELS) * 1e5 / data.population[j]
    epsilon = float(pa.EPSILONS[0])
    (row,) = (
        row
        for row in found["rows"]
        if row[0] == f"congenial, l1, epsilon = {epsilon:g}"
        and row[1].startswith(erie)
        and row[2] == data.months[t]
    )
    assert row[3:8] == pytest.approx(want)
    assert row[8] == pytest.approx(data.cases[t, j] * 1e5 / data.population[j])
    assert found["chart"]["kind"] == "quartiles"


def conforming(total, size):
    """Wholes that add up to the total, with parts between 0 and their whole."""
    for wholes in product(range(total + 1), repeat=size):
        if sum(wholes) == total:
            for parts in product(*(range(whole + 1) for whole in wholes)):
                yield (*wholes, *parts)


@pytest.mark.parametrize("prior", [False, True])
def test_the_l2_walk_has_its_law_by_enumeration(prior, monkeypatch):
    """Two counties, five cases: every conforming table with its probability."""
    monkeypatch.setattr(pa, "SWEEPS", 20)
    totals, parts, truth = [((0, 1), 5)], [(2, 0), (3, 1)], np.array([3, 2, 1, 0])
    shapes, rate = (0.6, 2.1), Fraction(1, 2)
    if prior:
        base = prior_congenial(4, totals, [1, 4, 0, 0], alpha=Fraction(1, 2), kappa=Fraction(1, 5),
                               parts=parts)  # fmt: skip
        assert [float(a) for a in base.shapes[:2]] == pytest.approx(shapes)
    else:
        base = congenial(4, totals, parts=parts)
    tables = list(conforming(5, 2))
    logs = [-float(rate) * math.dist(y, truth) for y in tables]
    if prior:
        logs = [
            log + sum(math.lgamma(y[i] + shapes[i]) - math.lgamma(y[i] + 1) for i in (0, 1))
            for log, y in zip(logs, tables, strict=True)
        ]
    law = np.exp(np.array(logs))
    draws = pa.L2Walk(base, truth, rate).draw_many(SeededRandomness(SEED), 40_000)
    seen = Counter(map(tuple, draws.tolist()))
    assert set(seen) <= set(tables)
    counts = np.array([seen[y] for y in tables])
    assert stats.chisquare(counts, law / law.sum() * len(draws)).pvalue > ALPHA
    wrong = np.exp(0.8 * np.array(logs))  # 20 % less loss is noticed
    assert stats.chisquare(counts, wrong / wrong.sum() * len(draws)).pvalue < ALPHA


def test_the_l2_walk_without_constraints_has_its_radius(monkeypatch):
    """exp(-r ||u||) on the plane: far from the grid's step the radius is Gamma(2) / r."""
    monkeypatch.setattr(pa, "SWEEPS", 50)
    rate = Fraction(1, 100)
    draws = pa.L2Walk(naive(2), np.array([50, 7]), rate).draw_many(SeededRandomness(SEED), 20_000)
    radius = np.linalg.norm(draws - [50, 7], axis=1) * float(rate)
    assert radius.mean() == pytest.approx(2, abs=5 * math.sqrt(2 / 20_000) * 1.5)
    assert (radius**2).mean() == pytest.approx(6, rel=0.05)


def test_only_post_processing_contracts(study):
    for effect, _, _, _, method, share, contracted in pennsylvania.figure3(study)["rows"]:
        assert contracted <= share
        assert method == "post-processing" or contracted == 0
        assert effect


def test_figure4_and_corollary13(oracle):
    table = oracle["delta_z_table"]["output"]
    for n, dependence, _, value, _ in theory.figure4(Study())["rows"]:
        z0, z1 = dependence.split(" / ")
        assert table[f"{n}|{z0}|{z1}"] == value
    rows = {(row[0], row[1]): row for row in theory.corollary13(QUICK)["rows"]}
    for d1, d2 in ((10, 2), (40, 39)):
        _, _, projected, seen, intrinsic, also = rows[d1, d2]
        assert [projected, intrinsic] == oracle[f"cor13_{d1}_{d2}"]["output"]
        assert seen == pytest.approx(projected, rel=0.06)
        assert also == pytest.approx(intrinsic, rel=0.06)


def test_factor_two_and_prior(oracle):
    loss = theory.worst_loss(3, 10, "l2", 1 / math.sqrt(2))
    assert loss == pytest.approx(oracle["congenial_J3_s10_without2"]["output"], abs=1e-10)
    assert all(row[-1] for row in theory.factor2(QUICK)["rows"] if row[3] == 2)
    first = theory.prior_pmf(QUICK)["rows"][0]
    assert first[3] == pytest.approx(oracle["dm_printed_sum"]["output"], abs=1e-10)
    assert all(row[4] == pytest.approx(1) for row in theory.prior_pmf(QUICK)["rows"])


def test_algorithms(oracle):
    for y in (1, 3):
        known = oracle[f"alg1_y{y}"]["output"]
        assert theory.exact(y) == pytest.approx(known["exact"], abs=1e-12)
        printed = theory.printed(y)
        assert printed["Algorithm 1, bound over y"] == pytest.approx(known["per_x_sup"], abs=1e-12)
        assert printed["Algorithm 1, as printed"] == pytest.approx(known["printed_direction"])
    assert theory.printed(0)["Algorithm 2, as printed"] == pytest.approx(
        oracle["alg2_y0"]["output"]["as_printed"], abs=1e-12
    )
    for y, name, value in theory.posterior_means(QUICK)["rows"]:
        if "corrected" in name:  # 20,000 draws: five standard errors
            assert value == pytest.approx(theory.exact(y), abs=0.012)
        elif "as printed" in name and y != 2:
            assert abs(value - theory.exact(y)) > 0.02


def test_gradient_errors_fall_like_one_over_n():
    rows = theory.gradient(QUICK)["rows"]
    means = [row[3] for row in rows if row[0] == "mean"]
    five_errors = 5 / np.sqrt(200)  # mean absolute values of 200 Laplace draws
    assert np.allclose(means, 2, rtol=five_errors)
