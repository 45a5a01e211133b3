"""Delta_z of every class of scenarios, against enumeration; the promise it calibrates."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.errors import GuaranteeError
from congenial.pairs.finite_scenarios import ABSENT, FiniteScenarios
from congenial.pairs.scenarios import (
    BoundedCounts,
    ConditionalNormal,
    Conditionals,
    DependentCounts,
    IndependentRecords,
    StatedLaws,
    k_anonymity,
    t_closeness,
)
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.stated_laws import StatedNormal, pmf, sample
from congenial.transport.delta_z import below_ordinary, conditioned_epsilon, delta_z, meaning

SCHEMA = Schema.from_dict({"answer": {"levels": ["no", "yes"]}})
FAIR = [1, 1]
BOUNDS = [("1/4", "3/4"), ("1/10", "1/5"), ("2/5", "1/2"), ("0", "1")]


def pairs(*scenarios, level="query", **more):
    return SecretPairs(SCHEMA, scenarios, level=level, **more)


def both_levels(finite, query=sum):
    query_level = delta_z(pairs(finite), query)
    return query_level.value, delta_z(pairs(finite, level="database")).value


def random_products(rng, n, many):
    """Independent yes-or-no answers with random chances out of 20."""
    chances = rng.integers(1, 20, (many, n))
    return {f"law {k}": [[20 - int(c), int(c)] for c in row] for k, row in enumerate(chances)}


def loss_of_geometric_noise(conditionals, epsilon, delta):
    """Worst log ratio of the released count, noise a^|u| with a = exp(-epsilon / delta)."""
    worst = 0.0
    for pair in conditionals:
        laws = []
        for law in (pair.left, pair.right):
            y = np.arange(-40, 60)
            reach = np.exp(-epsilon / delta * np.abs(y[:, None] - law.points[None, :]))
            laws.append(reach @ (law.masses / law.total).astype(float))
        worst = max(worst, float(np.max(np.abs(np.log(laws[0] / laws[1])))))
    return worst


# --- no public figures: ordinary differential privacy ----------------------------------------


@pytest.mark.parametrize("secrets", ["replace-one", "presence"])
def test_without_public_figures_it_is_ordinary_privacy(secrets):
    rng = np.random.default_rng(31)
    answers = [0, 1] if secrets == "replace-one" else [ABSENT, 0, 1]
    weights = {
        f"law {k}": [[int(w) for w in rng.integers(1, 9, len(answers))] for _ in range(3)]
        for k in range(4)
    }
    finite = FiniteScenarios.independent(weights, secrets, answers)
    counted = delta_z(pairs(finite), lambda x: sum(v == 1 for v in x))
    records = delta_z(pairs(finite, level="database"))
    stated = IndependentRecords(secrets, sensitivity=1)
    assert counted.value == delta_z(pairs(stated)).value == 1
    assert records.value == delta_z(pairs(stated, level="database")).value == 1
    assert records.coupling.verify()
    assert below_ordinary(counted, 1) is None


def test_point_beliefs_reach_the_ordinary_sensitivity():
    """Beliefs that come near single databases: Delta_z is the sensitivity of any query."""

    def query(x):
        return 3 * x[0] + x[0] * x[1] - 2 * x[1]

    sensitivity = max(
        abs(query(x) - query((*x[:i], 1 - x[i], *x[i + 1 :])))
        for x in product((0, 1), repeat=2)
        for i in range(2)
    )
    near = {
        f"{x}, person {i} open": [FAIR if i == k else [1 - v, v] for k, v in enumerate(x)]
        for x in product((0, 1), repeat=2)
        for i in range(2)
    }
    finite = FiniteScenarios.independent(near)
    assert delta_z(pairs(finite), query).value == sensitivity
    assert finite.excluded  # a belief that settles a person says nothing about that person


# --- disclosure rules ----------------------------------------------------------------------------


def test_disclosure_rules_change_delta(oracles):
    told = json.loads((oracles / "partially-private-data.json").read_text())
    for case in told:
        if case["id"].startswith("sdl"):
            n, k = (int(v) for v in case["inputs"]["nk"][1:].split("k"))
            stated = BoundedCounts(n, k_anonymity(k))
            found = [delta_z(pairs(stated, level=level)).value for level in ("query", "database")]
            assert found == case["output"]


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_disclosure_rules_by_enumeration(n):
    rng = np.random.default_rng([32, n])
    finite = FiniteScenarios.independent(random_products(rng, n, 3))
    rules = [k_anonymity(k) for k in range(n // 2 + 1)]
    rules += [t_closeness("1/4", share) for share in ("0", "1/4", "1/2", "1")]
    for rule in rules:
        low, high = rule.range(n)
        if low > high:
            with pytest.raises(GuaranteeError, match="no count"):
                BoundedCounts(n, rule)
            continue
        known = finite.given(rule.label, rule)
        stated = BoundedCounts(n, rule)
        for level, query in (("query", sum), ("database", None)):
            told = delta_z(pairs(stated, level=level))
            found = delta_z(pairs(known, level=level), query)
            assert (told.value, told.vacuous) == (found.value, found.vacuous), (rule, level)
            assert told.at_least == told.value
            assert bool(told.notes) or told.value > 0


# --- dependence ----------------------------------------------------------------------------------


def dependent_laws(p0, p1, query):
    """Laws given the first person's answer; the others are independent with chances p0 or p1."""
    laws = []
    for first, chances in ((0, p0), (1, p1)):
        masses = {}
        for others in product((0, 1), repeat=len(chances)):
            share = math.prod(p if v else 1 - p for v, p in zip(others, chances, strict=True))
            point = (first, *others) if query is None else (query((first, *others)),)
            masses[point] = masses.get(point, Fraction(0)) + share
        laws.append(pmf(masses))
    return StatedLaws("as given", (("first person", *laws),))


@pytest.mark.parametrize(("z0", "z1"), BOUNDS)
def test_dependent_counts_by_enumeration(z0, z1):
    n, low, high = 5, Fraction(z0), Fraction(z1)
    stated = DependentCounts(n, low, high)
    told = delta_z(pairs(stated)).value
    assert told == delta_z(pairs(stated, level="database")).value
    extreme = [low] * (n - 1), [high] * (n - 1)
    assert delta_z(pairs(dependent_laws(*extreme, sum))).value == told
    assert delta_z(pairs(dependent_laws(*extreme, None)), norm="hamming").value == told
    rng = np.random.default_rng(33)
    for _ in range(6):
        steps = np.sort(rng.integers(0, 9, (2, n - 1)), axis=0)
        p0, p1 = ([low + (high - low) * Fraction(int(k), 8) for k in row] for row in steps)
        assert delta_z(pairs(dependent_laws(p0, p1, sum))).value <= told
        same = [p0[0]] * (n - 1), [p1[0]] * (n - 1)
        assert delta_z(pairs(dependent_laws(*same, None)), norm="hamming").value <= told


def test_figure_4_through_scenarios():
    told = {".01": 99, ".05": 91, ".1": 81, ".25": 51, ".4": 21, ".5": 1}
    for z0, value in told.items():
        bound = delta_z(pairs(DependentCounts(100, z0, 1 - Fraction(z0))))
        assert bound.value == bound.at_least == value
        assert bound.basis == "theorem"
        assert bound.coupling.verify()


@pytest.mark.parametrize("z", [("1/3", "1/2"), ("1/10", "2/5")])
def test_noise_scaled_to_delta_z_keeps_the_promise(z):
    """Released count = truth + geometric noise of exp(-eps / Delta_z): the loss is at most eps."""
    n, epsilon = 8, 0.7
    told = pairs(DependentCounts(n, *z))
    bound = delta_z(told)
    laws = [
        Conditionals(p.secret, p.scenario, p.left.tabulated(), p.right.tabulated())
        for p in told.conditionals()
    ]
    assert loss_of_geometric_noise(laws, epsilon, bound.value) <= epsilon + 1e-12
    assert loss_of_geometric_noise(laws, epsilon, 1) > epsilon  # planted: ordinary sensitivity


def test_delta_buys_a_shorter_distance():
    stated = pairs(DependentCounts(200, "1/10", "1/5"))
    assert delta_z(stated).value == 35
    assert delta_z(stated, delta="1/1000").value == 24


# --- a mean of normal records --------------------------------------------------------------------


def test_conditional_normal(oracles):
    told = json.loads((oracles / "partially-private-data.json").read_text())
    for case in told:
        if case["id"].startswith("eq16"):
            i = case["inputs"]
            stated = ConditionalNormal(
                i["n"], i["sigma2"], i["var_z"], i["cov_x1_z"], i["cov_xbar_z"], i["Delta"]
            )
            assert delta_z(pairs(stated)).value == pytest.approx(case["output"], abs=case["tol"])


def test_conditional_normal_by_regression():
    """The coefficient of X_1 when Xbar is regressed on (X_1, Z), from the covariance matrix."""
    rng = np.random.default_rng(34)
    for _ in range(20):
        n, s2 = int(rng.integers(2, 9)), Fraction(int(rng.integers(1, 9)))
        load = [Fraction(int(v), 4) for v in rng.integers(-4, 5, n)]  # Z = sum load X + own noise
        own = Fraction(int(rng.integers(1, 5)))
        a, b = load[0] * s2, sum(load) * s2 / n
        t2 = sum(v**2 for v in load) * s2 + own
        stated = ConditionalNormal(n, s2, t2, a, b, 1)
        inner = np.array([[s2, a], [a, t2]], dtype=float)
        slope = np.linalg.solve(inner, np.array([s2 / n, b], dtype=float))[0]
        assert float(stated.coefficient) == pytest.approx(slope)
    independent = ConditionalNormal(7, 2, 1, 0, 0, 3)
    bound = delta_z(pairs(independent))
    assert bound.value == pytest.approx(3 / 7)  # nothing public: diameter / n
    assert Fraction(bound.value) >= Fraction(3, 7)


def test_impossible_covariances_are_refused():
    with pytest.raises(GuaranteeError, match="determines a record"):
        ConditionalNormal(5, 4, 3, Fraction(12) ** 2, 1, 2)
    with pytest.raises(GuaranteeError, match="negative eigenvalue"):
        ConditionalNormal(5, 4, 3, 1, 3, 2)
    with pytest.raises(GuaranteeError, match="level 'query'"):
        delta_z(pairs(ConditionalNormal(5, 4, 3, 1, 1, 2), level="database"))


# --- stated laws -----------------------------------------------------------------------------


def test_samples_give_estimates():
    rng = np.random.default_rng(35)
    drawn = (sample(rng.binomial(9, 0.5, 500) + secret) for secret in (0, 1))
    stated = StatedLaws("the figures follow last year's model", (("one person", *drawn),))
    bound = delta_z(pairs(stated), delta=0.05)
    assert bound.basis == "estimate"
    assert 0 < bound.value <= 2
    assert bound.coupling.verify()


def test_the_worst_of_several_scenarios_counts():
    near = StatedLaws("near", (("a", pmf([0, 1], [1, 1]), pmf([1, 2], [1, 1])),))
    far = StatedLaws("far", (("b", pmf([0], [1]), pmf([0, 7], [1, 3])),))
    bound = delta_z(pairs(near, far))
    assert (bound.value, bound.worst.scenario) == (7, "far")
    vectors = StatedLaws("pairs", (("c", pmf([[0, 0]], [1]), pmf([[3, 4]], [1])),))
    found = [delta_z(pairs(vectors), norm=norm).value for norm in ("l1", "l2", "linf")]
    assert found == [7, 5, 4]


def test_infinite_and_vacuous_and_degenerate():
    wide = pairs(StatedLaws("spread", (("a", StatedNormal(0, 1), StatedNormal(0, 2)),)))
    bound = delta_z(wide)
    assert math.isinf(bound.value)
    assert "(W, delta)" in bound.notes[0]
    with pytest.raises(GuaranteeError, match=r"\(W, delta\)-closeness"):
        bound.require()
    settled = FiniteScenarios.of([(0, 1), (1, 0)], {"sure": [1, 0]})
    bound = delta_z(pairs(settled), sum)
    assert bound.vacuous
    assert not bound.degenerate
    with pytest.raises(GuaranteeError, match="nothing to protect"):
        bound.require()
    xor = delta_z(pairs(FiniteScenarios.independent({"fair": [[1, 1]] * 3})), lambda x: x[0] ^ x[1])
    assert xor.degenerate
    assert "no noise" in xor.notes[0]
    assert below_ordinary(xor, 1) is not None


def test_a_sample_beside_a_theorem_is_an_estimate():
    drawn = StatedLaws("drawn", (("a", sample([0, 0, 1]), sample([0, 1, 1])),))
    assert delta_z(pairs(drawn, DependentCounts(4, "1/2", "1/2"))).basis == "estimate"


# --- Lemma 8 and the meaning ---------------------------------------------------------------------


def conditioned_loss(n, epsilon):
    """What per-bit randomised response loses once it is kept only if all bits agree."""
    keep = 1 / (1 + math.exp(-epsilon))
    kept = keep**n / (keep**n + (1 - keep) ** n)
    return math.log(kept / (1 - kept))


def test_lemma_8_against_the_oracle(oracles):
    told = json.loads((oracles / "partially-private-data.json").read_text())
    cases = {case["id"]: case for case in told}
    for n in (2, 3, 5):
        if case := cases.get(f"lemma8_n{n}"):
            assert conditioned_loss(n, 1.0) == pytest.approx(case["output"])


@pytest.mark.parametrize("n", [2, 3, 5])
def test_conditioning_a_release_costs_two_epsilon_per_record(n):
    """Per-bit randomised response, kept if it is all 0 or all 1: n eps is reached, not 2 eps."""
    epsilon = 1.0
    same = FiniteScenarios.independent({"fair": [[1, 1]] * n}).given(
        "all answers agree", lambda x: len(set(x)) == 1
    )
    bound = delta_z(pairs(same, level="database"))
    assert bound.value == n
    loss = conditioned_loss(n, epsilon)
    assert loss == pytest.approx(n * epsilon)
    assert loss <= conditioned_epsilon(epsilon, bound) == 2 * n * epsilon
    assert n <= 2 or loss > 2 * epsilon  # planted: the printed bound
    with pytest.raises(GuaranteeError, match="level 'database'"):
        conditioned_epsilon(epsilon, delta_z(pairs(same), sum))


def test_meaning_in_words():
    told = meaning(Fraction(1))
    assert "2.72 times" in told
    assert "0.463" in told  # tanh(1/2) = .4621, rounded up
    assert "0.245" in told  # tanh(1/4) = .2449
