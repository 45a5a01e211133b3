"""l2 and l_infinity noise given figures: the promise by enumeration, draws, plans, refusals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial import Figures, Plan, Schema, SeededRandomness, SemiAdjacent, margin, total, verify
from congenial.audit.exact_audit import exact_audit
from congenial.audit.universes import FURTHER
from congenial.errors import StructureError
from congenial.mechanisms import Congenial, CongenialLargest, CongenialLength
from congenial.privacy import Guarantee, joint_loss
from congenial.publication import bundle, workflow
from congenial.publication.check_document import examine
from congenial.sampling import norm_given_sums
from congenial.sampling.norm_given_sums import log_sum_of_largest, log_sum_of_lengths
from tests.commands import run
from tests.worlds import zero_margins

BOTH = (CongenialLength, CongenialLargest)
HEXAGON = next(one for one in FURTHER if one.label == "hexagon")
each = pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.name)


def made(kind, universe=HEXAGON, epsilon=Fraction(3, 2)):
    return kind.calibrate(Guarantee.pure(epsilon, universe.adjacency), universe.release)


@each
def test_the_promise_is_what_was_asked_for_and_some_pair_of_hexagons_attains_it(kind):
    mechanism = made(kind)
    assert mechanism.guarantee.tradeoff.eps == Fraction(3, 2)
    audit = exact_audit(mechanism, HEXAGON, 1)
    assert audit.violations() == []
    assert audit.worst == pytest.approx(1.5, abs=1e-9)


def test_planted_noise_for_swaps_alone_breaks_the_promise():
    """Delta_2 = 2, as printed for two margins: hexagons have sqrt(6)."""
    sound = made(CongenialLength)
    scale = Fraction(3, 2) ** 2 / 4
    printed = CongenialLength(sound.adjacency, replace(sound.description, scale=scale))
    audit = exact_audit(printed, HEXAGON, 1)
    assert audit.violations(sound.guarantee.tradeoff)
    assert audit.worst == pytest.approx(1.5 * 6**0.5 / 2, abs=1e-9)
    assert float(printed.guarantee.tradeoff.eps) >= audit.worst - 1e-12  # it says what it loses


def test_two_releases_lose_what_they_lose_apart():
    first, second = made(CongenialLength), made(CongenialLargest, epsilon=Fraction(1, 4))
    loss = joint_loss([first.description, second.description], HEXAGON.adjacency)
    assert loss.epsilon == Fraction(7, 4)
    assert not loss.exact


@pytest.mark.parametrize(("norm", "scale"), [("l2", Fraction(9, 2)), ("linf", Fraction(3))])
def test_normalisers_equal_the_sum_over_all_tables(norm, scale):
    """3 x 3 tables with zero margins, every one whose four free entries are within 8."""
    mechanism = made(CongenialLength)
    u = zero_margins((3, 3), 8).reshape(-1, 9)
    if norm == "l2":
        weights = np.exp(-np.sqrt(float(scale) * (u**2).sum(axis=1)))
        found = log_sum_of_lengths(scale, mechanism.support)
    else:
        weights = np.exp(-float(scale) * np.abs(u).max(axis=1))
        found = log_sum_of_largest(scale, mechanism.support)
    assert found == pytest.approx(np.log(weights.sum()), abs=2e-6)


@each
def test_ball_arithmetic_decides_as_doubles_do(kind, monkeypatch):
    """With a slack so wide that nothing is clear in doubles, the same words give the same draws."""
    law = made(kind).law
    fast = law.draw_many(SeededRandomness(3), 300)
    monkeypatch.setattr(norm_given_sums, "_SLACK", 1e3)
    assert np.array_equal(law.draw_many(SeededRandomness(3), 300), fast)


def test_sums_that_are_no_network_have_no_polynomial():
    """One-way margins of three attributes: corners of the polytope need not be whole."""
    schema = Schema.from_dict({n: {"integers": [1, 2]} for n in "abc"})
    figures = Figures(schema, (margin("a"), margin("b"), margin("c")))
    pairs = SemiAdjacent(figures)
    mechanism = CongenialLargest.calibrate(Guarantee.pure(3, pairs), ("a", "b", "c"))
    assert not mechanism.normalised
    u = mechanism.noise(SeededRandomness(1), 50)
    assert not any(u.sum(axis=axes).any() for axes in ((2, 3), (1, 3), (1, 2)))


@each
def test_tables_with_many_free_cells_are_refused_with_a_remedy_that_works(kind):
    schema = Schema.from_dict({"x": {"integers": [1, 40]}})
    target = Guarantee.pure(1, SemiAdjacent(Figures(schema, (total(),))))
    with pytest.raises(StructureError, match="39 directions free"):
        kind.calibrate(target, ("x",))
    assert Congenial.calibrate(target, ("x",)).name == "congenial"


def test_which_norm_has_less_noise_depends_on_the_figures():
    """Mean squares as the documentation says: two margins of 3 x 3, and one total of six cells."""
    schema = Schema.from_dict({"x": {"integers": [1, 6]}})
    totals = Guarantee.pure(1, SemiAdjacent(Figures(schema, (total(),))))
    largest, l1 = (spread(kind, totals, ("x",)) for kind in (CongenialLargest, Congenial))
    assert largest > 2 * l1
    margins = Guarantee.pure(1, HEXAGON.adjacency)
    largest, l1 = (spread(kind, margins, ("g", "x")) for kind in (CongenialLargest, Congenial))
    assert largest < 0.8 * l1


def spread(kind, target, names):
    return float((kind.calibrate(target, names).noise(SeededRandomness(1), 4000) ** 2.0).mean())


PLAN = """
[data]
source = "people.csv"
[schema]
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"By sex" = { margin = ["sex"] }
"By age" = { margin = ["age"] }
[[release]]
name = "t"
table = ["sex", "age"]
epsilon = 0.75
mechanism = "NAME"
[budget]
epsilon = 1
"""
PEOPLE = "sex,age\nf,3\nm,9\nf,30\nm,44\nm,22\nf,70\nm,80\n"
NOISE = {"congenial_l2": ("l2 squared", "l2 norm"), "congenial_linf": ("largest entry", "largest")}


@pytest.mark.parametrize("name", NOISE)
def test_from_a_plan_to_a_verified_bundle(tmp_path, name):
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    (tmp_path / "plan.toml").write_text(PLAN.replace("NAME", name), encoding="utf-8")
    plan = Plan.load(tmp_path / "plan.toml")
    workflow.publish(plan)
    (told,) = examine(plan)["releases"]
    assert told["mechanism"] == name
    assert told["sensitivity"]["norm"] == NOISE[name][0]
    assert f"Epsilon per unit of the {NOISE[name][1]}" in run(
        "check", tmp_path / "plan.toml", "--full"
    )
    folder = workflow.release(plan, "t", randomness=SeededRandomness(5)).folder
    assert all(check.holds for check in verify(folder) if "random" not in check.what)
    release = bundle.read(folder)
    assert release.guarantee.tradeoff.eps == Fraction(3, 4)
    assert release.margin("sex").tolist() == [3, 4]
    assert release.margin("age").tolist() == [2, 3, 2]
    assert NOISE[name][1] in (folder / "report.html").read_text(encoding="utf-8")
