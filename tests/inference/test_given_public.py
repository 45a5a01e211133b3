"""Inference from counts released given public information: posteriors against enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.special import gammaln

import congenial as cg
from congenial import infer
from congenial.figures.support import support
from congenial.inference import (
    Chain,
    Gamma,
    InferenceError,
    Multinomial,
    Poisson,
    coverage,
    naive,
    observe,
)
from congenial.inference.feasibility import outlook_of_values
from congenial.inference.models.priors import Dirichlet
from congenial.inference.samplers.log_normaliser import Normaliser
from congenial.mechanisms import ValuesRelease, WassersteinExponential, prior_congenial
from congenial.mechanisms.wasserstein.base_measure import congenial, published_sums
from congenial.mechanisms.wasserstein.base_measure import naive as naive_base
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.pairs import IndependentRecords, SecretPairs
from congenial.transport.delta_z import delta_z
from tests.inference.exact import ALPHA, agrees, one_axis, tables, weighted_mean

SEED = 29
QUICK = Chain(8, 100, check=False)
TRUTH, PREVIOUS = (2, 5, 0), (4, 1, 3, 9, 2)


def release(base="prior", values=(1, 6, 0), loss="l1", epsilon=F(2), truth=TRUTH) -> ValuesRelease:
    """A release of a table with public total, with given values as if they had been drawn."""
    schema = one_axis(len(truth))
    published = cg.publish(cg.Table(schema, ("x",), np.array(truth)), cg.total())
    pairs = SecretPairs(schema, (IndependentRecords("replace-one"),), (), "database", published)
    sums = published_sums(support(published, ("x",)))
    made = {
        "naive": naive_base(len(truth)),
        "congenial": congenial(len(truth), sums),
        "prior": prior_congenial(len(truth), sums, PREVIOUS[: len(truth)], alpha=2, kappa="1/2"),
    }[base]
    mechanism = WassersteinExponential(
        pairs, delta_z(pairs), made, epsilon, loss, F(2) if loss == "l1" else F(3, 2), ("x",)
    )
    drawn = mechanism.release(truth, cg.SeededRandomness(SEED))
    return drawn if values is None else replace(drawn, values=values)


def law_at(made: ValuesRelease, x) -> float:
    """p(y | x), normalised by the sampler's own density."""
    return float(np.exp(made.law(x).log_density(made.counts)))


def exact_counts(made: ValuesRelease, weight) -> np.ndarray:
    every = list(tables(sum(TRUTH), len(TRUTH)))
    return weighted_mean([law_at(made, x) * weight(x) for x in every], every)


def collapsed(x, shape=2.0, rate=0.5) -> float:
    """Poisson counts with Gamma rates integrated out."""
    q = 1 / (1 + rate)
    return float(np.exp((gammaln(x + shape) - gammaln(x + 1) + x * np.log(q)).sum()))


POISSON = Poisson(prior=Gamma(2, 0.5))


@pytest.mark.parametrize("base", ["naive", "congenial", "prior"])
def test_posterior_equals_enumeration(base):
    made = release(base)
    found = infer(made, POISSON, draws=3000, seed=SEED, counts=True, chain=QUICK)
    assert agrees(found, "count", exact_counts(made, collapsed))


def test_leaving_the_normaliser_out_is_noticed():
    """Planted: the analysis that takes the law for plain noise given the total."""
    made = release("prior", (0, 7, 0), epsilon=F(1))
    wrong = replace(observe(made), normaliser=None)
    found = infer(wrong, POISSON, draws=6000, seed=SEED, counts=True, chain=QUICK)
    assert not agrees(found, "count", exact_counts(made, collapsed))
    right = infer(made, POISSON, draws=3000, seed=SEED, counts=True, chain=QUICK)
    assert agrees(right, "count", exact_counts(made, collapsed))


def test_shares_where_every_table_is_as_likely():
    made = release("prior")
    model = Multinomial(prior=Dirichlet(1))  # every table is as likely as any other
    every = list(tables(sum(TRUTH), len(TRUTH)))
    mean = weighted_mean([law_at(made, x) for x in every], [(x + 1) / 10 for x in every])
    found = infer(made, model, draws=2000, seed=SEED, chain=QUICK)
    assert agrees(found, "share", mean)


def test_an_l2_release_under_the_naive_base():
    made = release("naive", (1, 6, 1), loss="l2")
    found = infer(made, POISSON, draws=2000, seed=SEED, counts=True, chain=Chain(8, 100, False))
    every = list(tables(sum(TRUTH), len(TRUTH)))
    away = [np.sqrt(((np.array((1, 6, 1)) - x) ** 2).sum()) for x in every]
    weights = [
        np.exp(-float(made.rate) * d) * collapsed(x) for d, x in zip(away, every, strict=True)
    ]
    assert agrees(found, "count", weighted_mean(weights, every))
    with pytest.raises(InferenceError, match="changes with the true table"):
        observe(release("prior", loss="l2"))


def signs_only(values=(0, 0, 1), published=None) -> ValuesRelease:
    """Counts of which nothing is public but that none is negative."""
    schema = one_axis(3)
    pairs = SecretPairs(schema, (IndependentRecords("replace-one"),), (), "database", published)
    made = WassersteinExponential(pairs, delta_z(pairs), congenial(3), F(1), "l1", F(2), ("x",))
    return replace(made.release((1, 2, 1), cg.SeededRandomness(SEED)), values=values)


def test_signs_without_sums():
    """Each count has a normaliser of its own; plain noise given nothing would be another law."""
    made = signs_only()
    found = infer(made, POISSON, draws=6000, seed=SEED, counts=True, chain=Chain(60, 200, False))
    k = np.arange(60)
    prior = np.array([collapsed(np.array([c])) for c in k])
    exact, plain = [], []
    for y in made.values:
        away = np.exp(-float(made.rate) * np.abs(k - y))
        z = np.exp(-float(made.rate) * np.abs(np.arange(400)[:, None] - k)).sum(axis=0)
        exact.append(weighted_mean(prior * away / z, k))
        plain.append(weighted_mean(prior * away, k))
    assert agrees(found, "count", np.array(exact))
    assert not agrees(found, "count", np.array(plain))  # planted
    x = np.array([4, 0, 2])
    assert observe(made).density(x[None])[0] == pytest.approx(
        float(made.law(x).log_density((0, 0, 1)))
    )
    assert outlook_of_values("l1", made.base).way == "density"


@pytest.mark.parametrize(
    ("base", "why"),
    [
        (congenial(3, [((0, 1), 3)]), "cells in no public sum"),
        (congenial(3, [((0, 1), 3)], parts=[(2, 0)]), "parts of other counts"),
    ],
)
def test_laws_without_a_normaliser_are_not_offered(base, why):
    """Neither by `observe` nor where a report asks whether it could."""
    assert not base.normaliser_known("l1")
    assert why in outlook_of_values("l1", base).why
    law = {**signs_only().description.law, "base_measure": base.to_dict()}
    other = replace(signs_only(), description=replace(signs_only().description, law=law))
    assert not other.density_known
    assert other.usage == ("release.values",)
    with pytest.raises(InferenceError, match=why):
        observe(other)


def test_sums_that_are_not_published_are_refused():
    law = {**release().description.law, "base_measure": congenial(3, [((0, 1, 2), 9)]).to_dict()}
    other = replace(release(), description=replace(release().description, law=law))
    assert not other.density_known
    with pytest.raises(InferenceError, match="not those that published figures fix"):
        observe(other)


@pytest.mark.parametrize(
    ("cells", "total", "alpha", "rate"),
    [(3, 10, "1/2", F(1, 4)), (5, 400, "1/10", F(1, 40)), (2, 30, 3, F(1, 2)), (7, 90, 20, F(1))],
)
def test_normaliser_equals_the_samplers(cells, total, alpha, rate):
    rng = np.random.default_rng(SEED)
    y, before = (rng.multinomial(total, np.ones(cells) / cells) for _ in range(2))
    sums = [(tuple(range(cells)), total)]
    base = prior_congenial(cells, sums, before, alpha=alpha, kappa="1/2")
    found = Normaliser(base, y, rate)
    x = rng.multinomial(total, rng.dirichlet(np.ones(cells)), 4)
    exact = [TableLaw(base, row, rate).groups[0].log_Z for row in x]
    assert found.log(x) == pytest.approx(exact, abs=1e-8)
    logs = observe_log(base, y, rate, x)
    assert logs == pytest.approx([float(TableLaw(base, row, rate).log_density(y)) for row in x])


def observe_log(base, y, rate, x):
    known = Normaliser(base, y, rate)
    return known.log_base - float(rate) * np.abs(y - x).sum(axis=1) - known.log(x)


def test_tables_grow_with_a_prior_far_from_the_release():
    made = release("congenial", (199, 1, 0), epsilon=F(2), truth=(100, 50, 50))
    far = Poisson(prior=Gamma(100, 1), exposure=np.array([0.2, 4.9, 4.9]))  # 2 : 49 : 49
    found = infer(made, far, draws=800, seed=SEED, counts=True, chain=QUICK)
    assert found.mean("count")[0] < 50


def test_naive_and_coverage():
    made = release("prior", None, epsilon=F(1), truth=(20, 45, 5))
    right = infer(made, POISSON, draws=800, seed=SEED, chain=QUICK)
    wrong = naive(made, POISSON, draws=800, seed=SEED, chain=QUICK)
    assert np.all(wrong.sd("rate") < right.sd("rate"))
    found = coverage(
        made, POISSON, releases=2, draws=200, seed=SEED, given=right, chain=Chain(4, 50, False)
    )
    assert found.intervals == 6
    assert found.naive <= found.valid


@pytest.mark.audit
def test_coverage_of_counts_given_public_information():
    made = release("prior", None, epsilon=F(1, 2), truth=(20, 45, 5, 60, 12))
    given = np.array([20.0, 45.0, 5.0, 60.0, 12.0])
    found = coverage(
        made, Poisson(), releases=80, draws=400, seed=SEED, given=given, chain=Chain(4, 100, False)
    )
    print(found.words)
    assert abs(found.valid - 0.95) < 5 * found.standard_error + 0.01  # ALPHA is below 1e-6 at 5
    assert found.naive < found.valid
    assert ALPHA == 1e-6


def calibrated(base, values, table=()) -> ValuesRelease:
    """As `calibrate` makes it, with given values as if they had been drawn."""
    schema = one_axis(3)
    published = cg.publish(cg.Table(schema, ("x",), np.array(TRUTH)), cg.total())
    pairs = SecretPairs(
        schema, (IndependentRecords("replace-one"),), (), "database", published if table else None
    )
    made = WassersteinExponential.calibrate(pairs, F(2), base, ordinary=2, table=table)
    return replace(made.release(TRUTH, cg.SeededRandomness(SEED)), values=values)


@pytest.mark.parametrize(
    "base",
    [
        congenial(3, [((0, 1, 2), 7)]),
        prior_congenial(3, [((0, 1, 2), 7)], (4, 1, 3), alpha=2, kappa=1),
    ],
    ids=["congenial", "prior"],
)
@pytest.mark.parametrize("table", [(), "x"])
def test_what_calibrate_releases_can_be_inferred_from(base, table):
    """With a table, and as values of none: the posterior is that of enumeration."""
    made = calibrated(base, (1, 6, 0), table)
    assert made.density_known
    assert made.table == (("x",) if table else ())
    found = infer(made, POISSON, draws=3000, seed=SEED, counts=True, chain=QUICK)
    assert agrees(found, "count", exact_counts(made, collapsed))
    every = list(tables(sum(TRUTH), len(TRUTH)))
    assert not agrees(found, "count", weighted_mean([collapsed(x) for x in every], every))


def test_values_of_no_table_with_sums_and_without():
    """A sum over some cells and signs only; what has no normaliser is refused as before."""
    two = calibrated(congenial(3, [((0, 1), 7), ((2,), 0)]), (2, 5, 0))
    possible = observe(two).conforming.holds(np.array([[7, 0, 0], [5, 0, 0], [6, 0, 1]]))
    assert possible.tolist() == [True, False, False]
    signs = calibrated(congenial(3), (0, 0, 1))
    x = np.array([4, 0, 2])
    law = float(signs.law(x).log_density((0, 0, 1)))
    assert observe(signs).log_law(x[None])[0] == pytest.approx(law)
    assert any("treated as counts" in note for note in observe(signs).notes)
    with pytest.raises(InferenceError, match="Leave out"):
        observe(signs, by="x")


def test_refusals():
    with pytest.raises(InferenceError, match="as released"):
        observe(release(), by=())
    with pytest.raises(InferenceError, match="as released"):
        observe(release(), public=False)
    bare = replace(release(), description=replace(release().description, law={"table": []}))
    with pytest.raises(InferenceError, match="no density"):
        observe(bare)
