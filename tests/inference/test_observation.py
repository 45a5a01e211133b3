"""What a release says about a table or a margin of it, and the releases that say nothing usable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

import congenial as cg
from congenial.inference import Chain, Gamma, InferenceError, Multinomial, Poisson, infer, observe
from congenial.inference.cell_noise import Noise
from congenial.inference.observation import _change_of_one_record
from tests.inference.exact import agrees, mechanism, one_axis, release_of, weighted_mean

SEED = 29
PRIOR = Gamma(1.5, 0.5)
GROUPED = cg.Schema.from_dict(
    {"g": {"levels": ["p", "q"]}, "s": {"levels": ["f", "m"]}, "x": {"levels": ["a", "b", "c"]}}
)
COUNTS = np.arange(12).reshape(2, 2, 3) % 5


def in_bundle(made, drawn):
    return release_of(made, drawn)


# ---- the noise of sums --------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["double_geometric", "discrete_gaussian"])
def test_noise_of_sums_equals_convolution(family):
    scale = Fraction(1, 2) if family == "double_geometric" else Fraction(3)
    u = np.arange(-80, 81)
    one = np.exp(-0.5 * np.abs(u) if family == "double_geometric" else -u * u / 6.0)
    noise = Noise.of_family(family, scale, np.array([3, 1, 3, 2]))
    assert noise.kind == "table"
    three = np.convolve(np.convolve(one, one), one)[160:321]
    at = np.arange(-10, 11)
    found = noise.log_weight(at[:, None] * np.ones(4))
    for cell, law in ((0, three), (1, one), (2, three)):
        exact = np.log(law[80 + at] / law[80])
        assert found[:, cell] - found[10, cell] == pytest.approx(exact, abs=1e-9)


def test_the_largest_step_of_sums_of_different_size():
    """Shorter laws end in -inf: no difference of two of these is taken."""
    noise = Noise.of_family("double_geometric", Fraction(1, 2), np.array([1, 3]))
    assert noise.largest_step == pytest.approx(0.5, rel=1e-6)


def test_sums_of_gaussian_noise_add_variances_and_sums_of_laplace_noise_are_refused():
    noise = Noise.of_family("gaussian", Fraction(2), np.array([1, 4]))
    assert noise.scale == pytest.approx([1 / 4, 1 / 16])
    with pytest.raises(InferenceError, match="Laplace"):
        Noise.of_family("laplace", Fraction(2), np.array([1, 4]))


# ---- margins ------------------------------------------------------------------------------------


def test_a_margin_of_independent_noise():
    made, _ = mechanism(GROUPED, COUNTS)
    release = in_bundle(made, COUNTS + 1)
    seen = observe(release, ("x", "g"))
    assert seen.y.reshape(3, 2) == pytest.approx((COUNTS + 1).sum(axis=1).T)
    assert seen.dims[0] == ("x", ("a", "b", "c"))
    posterior = infer(release, Poisson(by="x", prior=PRIOR), draws=20_000, seed=SEED)
    assert posterior.method == "exact"
    law = made.error_laws(np.broadcast_to(np.arange(3), (2, 2, 3)), 3)[0]
    exact = []
    for y in (COUNTS + 1).sum(axis=(0, 1)):
        x = np.arange(200)
        weight = np.exp(x * np.log(1 / 1.5) + gammaln(x + 1.5) - gammaln(x + 1))
        at = y - x - law.lo
        inside = (at >= 0) & (at < len(law.probs))
        weight *= np.where(inside, law.probs[np.where(inside, at, 0)], 0)
        exact.append(float(weight @ (1.5 + x) / 1.5 / weight.sum()))
    assert agrees(posterior, "rate", exact)


def test_a_margin_inside_groups_keeps_their_totals():
    counts = np.array([[[1, 0, 1], [0, 1, 0]], [[0, 1, 0], [1, 0, 1]]])
    made, _ = mechanism(GROUPED, counts, (cg.total(by="g"),), eps=2)
    drawn = counts + np.array([[[1, 0, 0], [-1, 0, 0]], [[0, 2, 0], [0, -1, -1]]])
    posterior = infer(
        in_bundle(made, drawn),
        Poisson(by=("g", "x"), prior=PRIOR),
        draws=8000,
        seed=SEED,
        chain=Chain(chains=20, warmup=50),
    )
    # by hand: sum the law of the noise over the tables with the same sums over s
    eps = float(made.description.scale)
    y = drawn.sum(axis=1)
    u = np.arange(-60, 61)
    two = np.convolve(np.exp(-eps * np.abs(u)), np.exp(-eps * np.abs(u)))
    exact = np.zeros((2, 3))
    for g in range(2):
        every = [np.array(x) for x in product(range(4), repeat=3) if sum(x) == counts[g].sum()]
        weight = [
            np.prod(two[y[g] - x + 120])
            * np.exp((x * np.log(1 / 1.5) + gammaln(x + 1.5) - gammaln(x + 1)).sum())
            for x in every
        ]
        exact[g] = weighted_mean(weight, [(1.5 + x) / 1.5 for x in every])
    assert agrees(posterior, "rate", exact)


def test_a_margin_that_is_published_is_known():
    made, _ = mechanism(GROUPED, COUNTS, (cg.total(by="g"),))
    release = in_bundle(made, COUNTS)
    posterior = infer(release, Poisson(by="g", prior=PRIOR), draws=4000, seed=SEED, counts=True)
    assert np.all(posterior["count"] == COUNTS.sum(axis=(1, 2)))
    assert agrees(posterior, "rate", (1.5 + COUNTS.sum(axis=(1, 2))) / 1.5)


def test_sums_that_mix_parts_of_groups_are_seen_through_the_finest_cells():
    made, _ = mechanism(GROUPED, COUNTS, (cg.total(by="g"),))
    seen = observe(in_bundle(made, COUNTS), "x")  # test_finer_cells compares with enumeration
    assert seen.finer is not None
    fine, owner = seen.finer
    assert fine.shape == COUNTS.shape
    assert np.array_equal(np.bincount(owner, COUNTS.reshape(-1)), seen.y)


# ---- what has no density, and what cannot be left out --------------------------------------------


def test_printed_counts_are_not_used_but_the_draw_is():
    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(),))
    drawn = in_bundle(made, [5, -1, 2])
    printed = replace(drawn, description=replace(drawn.description, whole=True))
    assert printed.counts[0].tolist() == [4, 0, 2]
    assert observe(printed).y.tolist() == [5, -1, 2]


def test_counts_drawn_given_their_signs_are_the_printed_counts():
    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(),), name="congenial_counts")
    release = in_bundle(made, [4, 0, 2])
    assert release.counts[0].tolist() == [4, 0, 2]
    assert release.count("x = 'l0'") == 4
    assert b'"l2",2' in release.payload()["table.csv"]


def test_a_release_without_a_density_is_refused():
    @dataclass(frozen=True)
    class Records:
        description: str = "weighted posterior"

    with pytest.raises(InferenceError, match="no density"):
        infer(Records(), Poisson(), seed=SEED)


def test_figures_inside_the_release_cannot_be_left_out():
    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(),))
    with pytest.raises(InferenceError, match="cannot be ignored"):
        infer(in_bundle(made, [3, 1, 2]), Poisson(), public=False, seed=SEED)


def test_a_law_known_for_the_released_table_only():
    made, _ = mechanism(GROUPED, COUNTS, (cg.total(by="g"),), name="congenial_counts")
    with pytest.raises(InferenceError, match="for the released table only"):
        infer(in_bundle(made, COUNTS), Poisson(by=("g", "x")), seed=SEED)


def test_what_one_record_can_change():
    """The promise's epsilon for replaced records, twice that where rows are added or removed."""
    from congenial.pairs.adjacency import AddRemove

    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(),), name="congenial_counts")
    assert observe(in_bundle(made, [3, 1, 2])).largest_change == 1
    promise = cg.Guarantee.pure(1, under=AddRemove(one_axis(3)))
    assert _change_of_one_record(replace(in_bundle(made, [3, 1, 2]), guarantee=promise)) == 2
    rho = cg.Guarantee.zero_concentrated(1, under=made.adjacency)
    assert _change_of_one_record(replace(in_bundle(made, [3, 1, 2]), guarantee=rho)) == np.inf


def test_published_bounds_are_left_out_and_the_posterior_says_so():
    bound = cg.at_least(cg.count("x = 'l0'"), 1)
    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(), bound))
    posterior = infer(in_bundle(made, [3, 1, 2]), Multinomial(), draws=400, seed=SEED)
    assert "published bounds are not used" in posterior.notes


def test_the_number_of_people_can_be_given():
    made, _ = mechanism(one_axis(3), [3, 1, 2])
    release = in_bundle(made, [4, 0, 3])
    posterior = infer(release, Multinomial(people=6), draws=2000, seed=SEED, counts=True)
    assert np.all(posterior["count"].sum(axis=1) == 6)


def test_impossible_cells_have_no_share():
    zeros = cg.structural_zeros("x = 'l0'")
    made, _ = mechanism(one_axis(3), [0, 4, 2], (cg.total(), zeros))
    posterior = infer(in_bundle(made, [0, 5, 1]), Multinomial(), draws=2000, seed=SEED)
    assert np.all(posterior["share"][:, 0] == 0)
    assert posterior.mean("share").sum() == pytest.approx(1)


def test_a_bundle_is_enough(tmp_path):
    from congenial.publication import bundle

    made, table = mechanism(GROUPED, COUNTS + 5, (cg.total(by="g"),))
    release = cg.release_table(made, table, cg.SeededRandomness(SEED))
    prepared = bundle.write(release, tmp_path / "made", "", "<p></p>")
    prepared.publish()
    again = cg.read(tmp_path / "made")
    model = Poisson(prior=PRIOR)
    short = Chain(warmup=20, check=False)
    one, two = (infer(r, model, draws=400, seed=SEED, chain=short) for r in (release, again))
    assert np.array_equal(one["rate"], two["rate"])
