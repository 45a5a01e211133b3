"""The black-box audit: its bounds are bounds, its pairs conform, and right mechanisms pass."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from congenial import Congenial, ReplaceOne, SeededRandomness, SemiAdjacent, Table, calibrate
from congenial.audit import UNIVERSES, Prover, black_box, clopper_pearson_bounds, hostile_pairs
from congenial.audit.universes import FURTHER
from congenial.errors import GuaranteeError, StructureError
from congenial.figures import Figures, count, margin, publish, total
from congenial.privacy import Guarantee, Pure
from tests.audit.every_mechanism import table_cases
from tests.audit.planted import neighbours
from tests.worlds import levels

ALPHA = 1e-6
SEED = 20_261_117
ALL = {universe.label: universe for universe in (*UNIVERSES, *FURTHER)}


# ---- bounds --------------------------------------------------------------------------------------


def test_bounds_of_probabilities_hold_as_often_as_they_say():
    for p in (0.003, 0.2, 0.9):
        hits = np.arange(401)
        mass = stats.binom.pmf(hits, 400, p)
        low, high = clopper_pearson_bounds(hits, 400, 0.01)
        assert mass[low > p].sum() <= 0.01
        assert mass[high < p].sum() <= 0.01
        assert mass[low > p].sum() > 0.001 or p == 0.003  # not idle


def test_what_is_proved_is_below_the_truth():
    """Histograms of two normal laws one deviation apart, exact to the draw: G_1, rho = 1/2."""
    edges = np.linspace(-4, 5, 60)
    p, q = (np.diff(stats.norm.cdf(np.concatenate([[-99], edges, [99]]), m)) for m in (1, 0))
    n = 10**9
    p, q = (np.round(x * n).astype(np.int64)[::-1] for x in (p, q))
    prover = Prover(n, ALPHA, 0.0)
    for aim, truth, share in (("mu", 1.0, 0.99), ("rho", 0.5, 0.95)):
        value, cuts = prover.best(aim, p, q)
        assert share * truth < value <= truth
        assert value == prover.proved(aim, p, q, cuts)
    few = Prover(10**4, ALPHA, 0.0)
    assert 0.7 < few.best("mu", p // 10**5, q // 10**5)[0] < 0.99


def test_randomised_response_is_nearly_attained():
    counts = np.array([731_059, 268_941])  # e / (1 + e)
    prover = Prover(10**6, ALPHA, 0.0)
    assert 0.97 < prover.best("epsilon", counts, counts[::-1])[0] < 1
    at = Prover(10**6, ALPHA, 0.1).best("epsilon", counts, counts[::-1])[0]
    assert at == pytest.approx(np.log(0.631059 / 0.268941), abs=0.03)
    assert prover.best("epsilon", np.array([5, 5]), np.array([5, 5]))[0] == 0


# ---- hostile pairs -------------------------------------------------------------------------------

FIXED = [u for u in ALL.values() if u.statements and u.metric == "replace-one"]


@pytest.mark.parametrize("universe", FIXED, ids=lambda u: u.label)
def test_hostile_pairs_are_pairs_of_the_universe(universe):
    generator = np.random.default_rng(SEED)
    found = hostile_pairs(universe.adjacency, universe.release, 4, generator)
    every = {
        tuple(t.marginal(universe.release).counts.tobytes() for t in pair)
        for pair in universe.pairs()
    }
    told = {(p.left.counts.tobytes(), p.right.counts.tobytes()) for p in found}
    if universe.complete:
        assert told <= every  # the others leave the number of people open
    largest = universe.adjacency.l1(universe.release)
    assert max(int(np.abs(p.move).sum()) for p in found) == largest.value
    assert "change by" in found[0].words


def test_pairs_before_anything_is_published():
    """Figures are made up; under two margins a hexagon is the largest move."""
    schema = levels(a=4, b=5)
    adjacency = SemiAdjacent(Figures(schema, (margin("a"), margin("b"))))
    found = hostile_pairs(adjacency, ("a", "b"), 4, np.random.default_rng(SEED))
    assert np.abs(found[0].move).sum() == 6
    for pair in found:
        assert not pair.move.sum(axis=0).any()
        assert not pair.move.sum(axis=1).any()
        assert pair.left.counts.min() >= 0


def test_nothing_left_is_said():
    schema = levels(a=2)
    public = publish(Table(schema, ("a",), np.array([2, 1])), margin("a"))
    with pytest.raises(StructureError, match="no two datasets that agree"):
        hostile_pairs(SemiAdjacent(public), ("a",), 2, np.random.default_rng(SEED))


def test_large_schemas_move_people_in_a_block():
    schema = levels(county=40, sex=2, age=30)
    adjacency = SemiAdjacent(Figures(schema, (total(by="county"), count("sex = '0'"))))
    found = hostile_pairs(adjacency, schema.names, 3, np.random.default_rng(SEED))
    assert np.abs(found[0].move).sum() == adjacency.l1(schema.names).value


# ---- the attack ----------------------------------------------------------------------------------

FAST = [
    case
    for case in table_cases([ALL["voting age"], ALL["both margins"]])
    if case.mechanism is not None
    and case.name != "congenial_chain"
    and not (case.name.startswith("plain") and case.universe.label == "both margins")
]


@pytest.mark.parametrize("case", FAST, ids=str)
def test_right_mechanisms_pass(case, attempt):
    """Control at false-alarm rate ALPHA; the bound is not idle either."""
    pairs, source = neighbours(case.mechanism, 2), SeededRandomness(SEED)
    found = black_box(case.mechanism, pairs=pairs, draws=6_000, randomness=source)
    assert not found.violated
    assert "No attack does better" in found.words
    assert found.proved("epsilon") > 1
    attempt("black box", pairs=len(found.pairs), draws=len(found.pairs) * found.draws)


LESS = {"l2": Fraction(16, 25), "length": Fraction(25, 16)}  # a variance; the square of a rate


def weaker(mechanism):
    """20 % less noise: four fifths of its deviation, or five fourths of its rate."""
    factor = LESS.get(mechanism.description.norm, Fraction(5, 4))
    less = replace(mechanism.description, scale=mechanism.description.scale * factor)
    return replace(mechanism, description=less)


@pytest.mark.audit
@pytest.mark.parametrize(
    "case",
    [
        case
        for case in table_cases([ALL["total"], ALL["voting age"], ALL["hexagon"], ALL["bounds"]])
        if case.mechanism is not None and "Approximate" not in case.target
    ],
    ids=str,
)
def test_a_million_draws(case, attempt):
    """Every mechanism at parameters people use: what is right passes, 20 % less noise does not."""
    targets = {
        "Pure": lambda under: Guarantee.pure(1, under),
        "ZeroConcentrated": lambda under: Guarantee.zero_concentrated(Fraction(1, 2), under),
        "Gaussian": lambda under: Guarantee.gaussian(1, under),
    }
    target = targets[case.target](case.universe.adjacency)
    mechanism = type(case.mechanism).calibrate(target, case.universe.release)
    draws = 100_000 if case.name == "congenial_chain" else 1_000_000
    found = black_box(mechanism, pairs=4, draws=draws, randomness=SeededRandomness(SEED))
    assert not found.violated
    attempt("black box", pairs=len(found.pairs), draws=len(found.pairs) * found.draws)
    priced = mechanism.description.nonnegative
    if not priced and draws == 1_000_000:  # whose promise is attained
        less = black_box(
            weaker(mechanism), target.tradeoff, pairs=4, draws=draws, randomness=SeededRandomness(1)
        )
        assert less.violated


def test_it_reads_the_promise_it_is_given():
    universe = ALL["total"]
    target = Guarantee.pure(2, universe.adjacency)
    mechanism = calibrate(Congenial, target, universe.release)
    source = SeededRandomness(SEED)
    found = black_box(mechanism, Pure(1), pairs=2, draws=20_000, randomness=source)
    assert found.violated
    assert "1 is promised" in found.violations[0]
    told = found.to_dict()
    assert told["violated"]
    assert told["allowed"] == {"epsilon": 1.0}
    assert told["pairs"][0]["findings"][0]["value"] <= 2  # never above the truth
    rows = np.array(told["curve"]["rows"])
    assert rows[:, 3] == pytest.approx(np.minimum(rows[:, 3], rows[:, 4]))
    assert np.any(rows[:, 4] < rows[:, 1])  # the whole band is below the promise somewhere
    kink = math.e / (1 + math.e)  # where the promised line bends: between two points it is too high
    at = int(np.argmin(abs(rows[:, 0] - kink)))
    assert rows[at, :2] == pytest.approx([kink, kink / math.e], abs=1e-12)
    assert (np.diff(rows[:, 0]) > 0).all()


def test_noise_is_shared_only_where_draws_are_additive():
    class Shifted(Congenial):
        """Draws ignore what `noise` says."""

        def draw(self, truth, randomness, draws):
            return np.broadcast_to(truth, (draws, *truth.shape))

    universe = ALL["total"]
    sound = calibrate(Congenial, Guarantee.pure(1, universe.adjacency), universe.release)
    bare = Shifted(sound.adjacency, sound.description)
    source = SeededRandomness(SEED)
    assert black_box(bare, pairs=1, draws=4_000, randomness=source).violated


def test_too_few_draws_are_refused():
    adjacency = ReplaceOne(levels(a=2))
    mechanism = calibrate("auto", Guarantee.pure(1, adjacency))
    with pytest.raises(GuaranteeError, match="prove nothing"):
        black_box(mechanism, draws=100)


def test_progress_runs_to_the_end():
    mechanism = calibrate("auto", Guarantee.pure(1, ReplaceOne(levels(a=2))))
    seen: list[float] = []
    black_box(mechanism, pairs=1, draws=800, randomness=SeededRandomness(1), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1
