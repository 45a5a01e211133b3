"""Example 1, Definition 10, Remark 14, Propositions 6, 7, 21, 25, 26 and 30, Theorem 16, Lemma 42,
Algorithm 3 and section 7: by enumeration, in closed form, or by counting with a stated Monte Carlo
error.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import integrate, stats

from congenial import Plan, ReplaceOne, Schema, SeededRandomness, SemiAdjacent, verify
from congenial.errors import StructureError
from congenial.figures import Figures, margin, total
from congenial.papers import Hull, catalogue, composition_orders, subspace
from congenial.papers.item import Study
from congenial.papers.semi_dp import examples, propositions, semi_figures
from congenial.papers.semi_dp.real_knorm import NormNoise, table_cones
from congenial.papers.semi_dp.semi_figures import projection
from congenial.privacy.tradeoff import Gaussian, Pure, ZeroConcentrated
from congenial.publication import bundle, workflow

ALPHA = 1e-6
QUICK = Study(quick=True, seed=3)


def run(item):
    return catalogue.run("semi-dp", item, QUICK)


def test_distances_count_steps_and_conforming_ones_do_not():
    assert [row[-1] for row in run("example-1")["rows"]] == [True, True, False]
    walked = examples.steps([(0, 1), (1, 0)], examples.hamming)
    assert walked.tolist() == [[0, examples.UNREACHED], [examples.UNREACHED, 0]]


def test_semi_first_is_never_weaker_and_ties_for_gaussians():
    rows = run("proposition-21")["rows"]
    assert all(row[-1] >= -1e-12 for row in rows)
    assert max(row[-1] for row in rows) > 0.05
    mu = 2 * math.sqrt(2)  # a sqrt(1 + 1)
    for words, alpha, semi, composed, _ in rows:
        if words.startswith("mu"):
            exact = stats.norm.cdf(stats.norm.ppf(alpha) - mu)
            assert [semi, composed] == pytest.approx([exact, exact], abs=1e-9)


@pytest.mark.parametrize(
    "promises",
    [
        (Pure(Fraction(1, 3)), Pure(Fraction(1, 2))),
        (Gaussian(Fraction(1, 2)), Gaussian(1)),
        (ZeroConcentrated("0.1"), ZeroConcentrated("0.2")),
    ],
)
@pytest.mark.parametrize("records", [2, 3])
def test_semi_first_is_never_worse_than_composition_first(promises, records):
    """Proposition 21."""
    both = composition_orders(promises, records)
    alphas = np.linspace(0, 1, 41)
    assert np.all(both.composition_first(alphas) <= both.semi_first(alphas) + 1e-9)
    for delta in (1e-6, 0.01):
        assert both.semi_first.epsilon(delta) <= both.composition_first.epsilon(delta) * (1 + 1e-9)


def test_figures_take_their_rank():
    for words, cells, figures, rank in run("proposition-25")["rows"]:
        assert rank + figures == cells, words
        assert rank < cells


def test_the_k_norm_sensitivity_is_one_in_all_coordinates():
    rows = run("proposition-30")["rows"]
    assert [row[-1] for row in rows[:-1]] == pytest.approx([1] * (len(rows) - 1))
    assert rows[-1][-1] == 0
    points = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0.4, 0.4]])
    assert propositions.largest_gauge(points) == 1  # one inside does not matter


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_projected_noise_has_its_density(norm):
    """By integration: mass 1, a quarter of the variance; drawn noise follows it."""

    def density(w):
        return propositions.projected_density(norm, 1.0, w)

    mass, _ = integrate.quad(density, -90, 90, points=[0], limit=300)
    assert mass == pytest.approx(1, abs=1e-6)
    noise = NormNoise(norm, 4, propositions.SENSITIVITY[norm], 1.0)
    square, _ = integrate.quad(lambda w: w * w * density(w), -150, 150, points=[0], limit=300)
    assert square == pytest.approx(noise.mean_square / 4, rel=1e-6)
    drawn = projection(2).apply(noise.draw(SeededRandomness(4), 4000)) @ [0.5, -0.5, -0.5, 0.5]
    edges = np.array([-8.0, -4, -2, -1, 0, 1, 2, 4, 8])
    shares = [integrate.quad(density, a, b)[0] for a, b in pairwise(edges)]
    counts = np.histogram(drawn, edges)[0]
    rest = [1 - sum(shares)]
    test = stats.chisquare([*counts, 4000 - counts.sum()], 4000 * np.array(shares + rest))
    assert test.pvalue > ALPHA
    wrong = np.histogram(0.7 * drawn, edges)[0]
    control = stats.chisquare([*wrong, 4000 - wrong.sum()], 4000 * np.array(shares + rest))
    assert control.pvalue < ALPHA


def test_projected_noise_keeps_its_promise_and_approaches_it():
    rows = run("proposition-26")["rows"]
    assert all(row[-1] for row in rows)
    assert all(0.85 * row[1] < row[4] for row in rows)
    assert propositions.largest_loss("l1", 1.0, 600.0) > 0.98  # in the tail
    assert propositions.largest_loss("linf", 1.25) > 1.2  # planted: 20 % less noise is noticed


def test_proposition_6_needs_the_square_of_sigma():
    """Delta_2 = 4, mu = 1: sigma = 4. As a covariance it loses twice as much as is promised."""
    far, sigma, promised = 4.0, 4.0, Gaussian(1)
    for alpha in (0.3, 0.7, 0.95):

        def error(deviation, level=alpha):  # of the second kind, between N(0, .) and N(far, .)
            return stats.norm.cdf(stats.norm.ppf(level) - far / deviation)

        assert error(sigma) == pytest.approx(float(promised(alpha)), abs=1e-9)
        assert error(math.sqrt(sigma)) == pytest.approx(float(Gaussian(2)(alpha)), abs=1e-9)
        assert error(math.sqrt(sigma)) < float(promised(alpha)) - 0.01


def test_proposition_7_takes_the_largest_norm_and_not_the_sum():
    """Two swaps, v and -v: the largest norm on their hull is 1, the printed sum 2."""
    swaps = np.array([[1.0, -1, -1, 1], [-1, 1, 1, -1]])
    hull = Hull(swaps.astype(int))
    norms = [hull.gauge(one) for one in swaps]
    assert max(norms) == pytest.approx(1)
    assert sum(norms) == pytest.approx(2)


def test_what_is_orthogonal_to_s_need_not_be_constant():
    found = run("lemma-42")
    at = {(row[0], row[1]): row[2:] for row in found["rows"]}
    cube = "2 x 2 x 2, all two-way margins"
    assert at[cube, "A_2"] == at[cube, "A_3"] == [2, 0, 1, 2]  # no difference, two tables
    assert at[cube, "A_4"] == [2, 1, 1, 1]
    assert at["weights 4, 3, 1, total 20", "A_2"] == [2, 0, 1, 2]
    assert at["2 x 2, both margins", "A_3"][-1] == 1


def test_subspace_privacy_has_the_same_projection_and_another_number():
    for figures, theirs, ours, apart in run("definition-10")["rows"]:
        assert apart == 0
        assert theirs < ours or figures == "4 cells, total"


def test_subspace_privacy_is_computed_and_called_what_it_is():
    """3 x 3 with both margins: 2 / sqrt 3 against sqrt 6."""
    schema = Schema.from_dict({"r": {"integers": [1, 3]}, "c": {"integers": [1, 3]}})
    adjacency = SemiAdjacent(Figures(schema, (margin("r"), margin("c"))))
    found = subspace(adjacency, ("r", "c"))
    assert found.projected == pytest.approx(2 / math.sqrt(3), rel=1e-6)
    assert found.projected >= 2 / math.sqrt(3)
    assert found.semi.value == 6
    assert "protects nobody" in found.words
    assert "2.4495" in found.words
    centre = np.eye(3) - 1 / 3
    project = np.kron(centre, centre)
    brute = max(
        np.linalg.norm(project @ (np.eye(9)[i] - np.eye(9)[j]))
        for i, j in product(range(9), repeat=2)
    )
    assert found.projected == pytest.approx(brute, rel=1e-6)
    large = Schema.from_dict({"state": {"integers": [1, 51]}, "age": {"integers": [0, 99]}})
    with pytest.raises(StructureError, match="too large for the projection"):
        subspace(SemiAdjacent(Figures(large, (total(by="state"),))), large.names)


def test_subspace_privacy_without_figures_is_ordinary():
    schema = Schema.from_dict({"g": {"levels": ["a", "b"]}, "x": {"levels": ["0", "1"]}})
    found = subspace(ReplaceOne(schema), schema.names)
    assert found.projected == pytest.approx(math.sqrt(2))
    assert found.semi.value == 2


def test_the_choices_of_remark_14_by_listing():
    at = {row[0]: row[2:] for row in run("remark-14")["rows"]}
    assert at["three bits, 2 ones"] == [2, 2, 2, 2, 0]
    assert at["three bits, anything but two ones"] == [1, 2, 1, 2, 1]  # 111 is alone
    (table,) = (v for k, v in at.items() if k.startswith("2 x 2"))
    assert table == [2, 2, 2, 3, 0]


def test_projection_can_raise_an_l1_norm():
    assert np.abs(projection(3).apply(np.eye(9)[0])).sum() == pytest.approx(16 / 9)


@pytest.mark.parametrize(("shape", "records"), [((2, 3), 2), ((3, 3), 2), ((3, 3), 3)])
@pytest.mark.parametrize("words", ["inner cells", "orthonormal"])
def test_the_cube_accepts_what_volumes_say(shape, records, words):
    cones, n = table_cones(shape, records), 20_000
    one = semi_figures.CubeRejection(cones, propositions.coordinates(shape)[words])
    noise, kept = one.draw(SeededRandomness(5), n, 1.0)
    assert stats.binomtest(kept, n, one.acceptance).pvalue > ALPHA
    assert stats.binomtest(int(1.2 * kept), n, one.acceptance).pvalue < ALPHA
    squares = (noise**2).sum(axis=1)
    error = squares.std() / math.sqrt(kept)
    assert abs(squares.mean() - float(cones.mean_square())) < -stats.norm.ppf(ALPHA / 2) * error
    assert np.abs(noise.reshape(-1, *shape).sum(axis=1)).max() < 1e-9 * np.abs(noise).max()


def test_acceptance_is_the_known_one():
    """3 x 3 and the printed set: .17; 4 x 4: 4 in 10,000."""
    known = {(3, 3): 0.171875, (4, 4): 0.00036625}
    for shape, value in known.items():
        theta = propositions.coordinates(shape)["inner cells"]
        found = semi_figures.CubeRejection(table_cones(shape, 2), theta).acceptance
        assert found == pytest.approx(value, rel=1e-4)


def test_a_radius_of_one_less_is_caught():
    """Planted: Gamma(s) instead of Gamma(s + 1)."""
    cones = table_cones((3, 3), 3)
    one = semi_figures.CubeRejection(cones, propositions.coordinates((3, 3))["inner cells"])
    noise, kept = one.draw(SeededRandomness(6), 20_000, 1.0)
    shorter = (noise**2).sum(axis=1) * (4 * 5) / (5 * 6)  # E r^2 of Gamma(4) over Gamma(5)
    error = shorter.std() / math.sqrt(kept)
    assert abs(shorter.mean() - float(cones.mean_square())) > -stats.norm.ppf(ALPHA / 2) * error


def test_what_other_records_tell_by_listing_everything():
    """Three people: the lines of the item against a slow count."""
    rows = {(row[0], row[1]): row[2:] for row in run("section-7")["rows"]}
    assert rows["nothing", 2] == [4, 4.0, 0.0]
    assert rows["margins of A1 and A2", 2] == [1, 1.0, 1.0]
    every = list(product(examples.ANSWERS, repeat=3))
    figures = examples.PUBLISHED["margins of A1 and A2"]
    left = [len({y[0] for y in every if figures(y) == figures(x) and y[1] == x[1]}) for x in every]
    least, average, alone = rows["margins of A1 and A2", 1]
    assert [min(left), np.mean(left), np.mean(np.array(left) == 1)] == [least, average, alone]


THEOREM_16 = """
[data]
source = "people.csv"
[schema]
ill = { levels = ["no", "yes"] }
old = { levels = ["no", "yes"] }
poor = { levels = ["no", "yes"] }
[publish]
"Ill" = { margin = ["ill"] }
"Old" = { margin = ["old"] }
"Poor" = { margin = ["poor"] }
[[release]]
name = "t"
table = ["ill", "old", "poor"]
epsilon = 3
[budget]
epsilon = 3
"""


def test_theorem_16_at_p_3_is_drawn_from_a_plan(tmp_path):
    """One-way margins of three attributes: a* is at most p + 1 = 4, and is 4 here."""
    counts = {"nnn": 30, "nny": 4, "nyn": 5, "nyy": 1, "ynn": 4, "yny": 1, "yyn": 1, "yyy": 2}
    words = {"n": "no", "y": "yes"}
    lines = [",".join(words[one] for one in cell) for cell, n in counts.items() for _ in range(n)]
    (tmp_path / "people.csv").write_text("ill,old,poor\n" + "\n".join(lines) + "\n")
    (tmp_path / "plan.toml").write_text(THEOREM_16)
    plan = Plan.load(tmp_path / "plan.toml")
    workflow.publish(plan)
    folder = workflow.release(plan, "t", randomness=SeededRandomness(16)).folder
    assert all(check.holds for check in verify(folder) if "random" not in check.what)
    release = bundle.read(folder)
    assert release.guarantee.tradeoff.eps == 3
    assert release.only.adjacency.records == 4
    margins = [release.margin(name).tolist() for name in ("ill", "old", "poor")]
    assert margins == [[40, 8], [39, 9], [40, 8]]
    assert release.drawn[0].reshape(-1).tolist() != [*counts.values()]
