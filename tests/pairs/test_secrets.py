"""Secret pairs: words, plain data, which pairs count, and which promises may be put together."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from congenial import Figures, Schema, total
from congenial.errors import BundleError, GuaranteeError
from congenial.pairs import (
    BoundedCounts,
    ConditionalNormal,
    DependentCounts,
    FiniteScenarios,
    IndependentRecords,
    SecretPairs,
    StatedLaws,
    k_anonymity,
    may_add,
    pmf,
    t_closeness,
)
from congenial.pairs.finite_scenarios import ABSENT
from congenial.pairs.secrets import LEAKAGE, belief_gap, event_gap, read_scenarios
from congenial.pairs.stored_pairs import read_pairs

SCHEMA = Schema.from_dict({"answer": {"levels": ["no", "yes"]}, "county": {"levels": ["A", "B"]}})
FAIR = [1, 1]


def bits(n, secrets="replace-one"):
    return FiniteScenarios.independent({"fair": [FAIR] * n}, secrets)


def pairs(*scenarios, level="query", **more):
    return SecretPairs(SCHEMA, scenarios, level=level, **more)


ALL = [
    IndependentRecords("presence", sensitivity=Fraction(2, 3)),
    IndependentRecords("replace-one"),
    BoundedCounts(9, k_anonymity(2)),
    BoundedCounts(9, t_closeness("1/4", ".5")),
    DependentCounts(9, ".1", ".9"),
    ConditionalNormal(5, 4, 3, 1, 1, 2),
    StatedLaws("a model", (("a", pmf([0, 1], [1, 1]), pmf([1, 2], [1, 1])),), facts=("Z",)),
    bits(3).given("the sum is 1", lambda x: sum(x) == 1),
]


@pytest.mark.parametrize("scenarios", ALL, ids=lambda s: s.kind)
def test_plain_data_comes_back(scenarios):
    told = pairs(scenarios, level="query", given=("last month's counts",))
    data = json.loads(json.dumps(told.to_dict()))
    back = read_pairs(Figures(SCHEMA), data)
    assert back.same(told)
    assert back.words == told.words
    assert read_scenarios(data["scenarios"][0]) == scenarios
    assert told.metric == "secret pairs"


def test_words_are_a_clause():
    plain = pairs(IndependentRecords())
    assert plain.words == (
        "the absence of one person and the person's presence with any one record, as seen by "
        "somebody who believes that the records of different people are independent"
    )
    assert LEAKAGE not in plain.not_covered
    rule = pairs(BoundedCounts(9, k_anonymity(2)), given=("last month's counts",))
    assert rule.words == (
        "any two answers that one person may have given, as seen by somebody who "
        "knows the public figures (last month's counts; the count and its complement are 2 or "
        "more) and believes that the answers of 9 people are independent, except for what is public"
    )
    assert LEAKAGE in rule.not_covered
    assert rule.side == "answer"


def test_mandates_are_public_figures():
    published = Figures(SCHEMA, (total(by="county"),))
    told = pairs(ALL[6], published=published)
    assert told.figures == published
    assert "Population by county" in told.words
    back = read_pairs(published, told.to_dict())
    assert back == told


# --- which pairs count -----------------------------------------------------------------------


def test_pairs_of_probability_0_or_1_are_left_out_per_scenario():
    """One belief that is sure of somebody must not empty the promise of the others (Eq 10)."""
    told = FiniteScenarios.independent({"open": [FAIR, FAIR], "sure": [[0, 1], FAIR]})
    kept = [(c.scenario, c.secret) for c in told.conditionals("query", sum)]
    assert kept == [
        ("open", "person 1 is 0 or 1"),
        ("open", "person 2 is 0 or 1"),
        ("sure", "person 2 is 0 or 1"),
    ]
    assert told.excluded == ("sure: person 1 is 0 or 1",)


def test_presence_secrets_compare_with_absence():
    told = FiniteScenarios.independent({"law": [[1, 1, 1]] * 2}, "presence", (ABSENT, 0, 1))
    secrets = {c.secret for c in told.conditionals("database")}
    assert secrets == {f"person {i} is {v} or absent" for i in (1, 2) for v in (0, 1)}


def test_conditioning_is_bayes():
    told = FiniteScenarios.of([(0, 0), (0, 1), (1, 1)], {"law": ["1/2", "1/3", "1/6"]})
    known = told.given("some yes", lambda x: sum(x) > 0)
    assert known.tables == (("law", (Fraction(2, 3), Fraction(1, 3))),)
    assert known.facts == ("some yes",)
    with pytest.raises(GuaranteeError, match="probability 0"):
        told.given("impossible", lambda x: sum(x) > 2)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: FiniteScenarios.of([(0,), (1,)], {"a": [0.5, 0.4]}), "add up to exactly one"),
        (lambda: FiniteScenarios.of([(0,), (0,)], {"a": [1, 1]}), "twice"),
        (lambda: FiniteScenarios.of([(0,), (0, 1)], {"a": [1, 1]}), "same number of people"),
        (lambda: FiniteScenarios.independent({"a": [[1, 1]], "b": [[1, 1]] * 2}), "differ"),
        (lambda: FiniteScenarios.independent({"a": [[1, 1]] * 60}), "too many to write out"),
        (lambda: DependentCounts(5, ".9", ".1"), "above z1"),
        (lambda: DependentCounts(5, "2", "3"), "not a probability"),
        (lambda: DependentCounts(0, ".1", ".1"), "0 people"),
        (lambda: BoundedCounts(5, k_anonymity(3)), "no count of 5"),
        (lambda: IndependentRecords("everything"), "secrets = 'everything'"),
        (lambda: pairs(), "without scenarios"),
        (lambda: pairs(bits(2), level="table"), "level = 'table'"),
        (lambda: pairs(bits(2), IndependentRecords("presence")), "hide different things"),
        (lambda: list(bits(2).conditionals("query")), "needs a query"),
        (lambda: list(bits(2).conditionals("database", sum)), "needs no query"),
        (lambda: list(IndependentRecords().conditionals("query")), "sensitivity"),
        (lambda: list(ALL[4].conditionals("query", sum)), "their own statistic"),
        (lambda: list(StatedLaws("words").conditionals("query")), "in words only"),
        (lambda: list(ALL[6].conditionals("database")), "not of databases"),
    ],
)
def test_bad_scenarios_are_refused(build, said):
    with pytest.raises(GuaranteeError, match=said):
        build()


def test_unknown_scenarios_of_a_bundle():
    with pytest.raises(BundleError, match="kind 'dreams'"):
        read_scenarios({"kind": "dreams"})


# --- what the promise means ----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_gaps_are_sharp(epsilon):
    """Randomised response reaches both; nothing on a grid of two-point releases exceeds them."""
    keep = 1 / (1 + math.exp(-epsilon))
    assert keep - (1 - keep) == pytest.approx(event_gap(epsilon))
    prior = 1 / (1 + math.exp(epsilon / 2))
    after = prior * keep / (prior * keep + (1 - prior) * (1 - keep))
    assert after - prior == pytest.approx(belief_gap(epsilon))
    p = np.linspace(1e-6, 1 - 1e-6, 400)
    a, b = p[:, None], p[None, :]
    lawful = (np.abs(np.log(a / b)) <= epsilon) & (np.abs(np.log((1 - a) / (1 - b))) <= epsilon)
    assert np.max(np.abs(a - b)[lawful]) <= event_gap(epsilon) + 1e-12


def test_gaps_against_the_oracle(oracles):
    told = json.loads((oracles / "partially-private-data.json").read_text())
    cases = {case["id"]: case for case in told}
    for epsilon in (0.1, 1.0, 3.0):
        if case := cases.get(f"tv_eps{epsilon}"):
            assert event_gap(epsilon) == pytest.approx(case["output"], abs=case["tol"])


# --- putting promises together: the truth is enumerated --------------------------------------


def joint_loss(table, statistics, epsilons):
    """Worst log ratio, over secrets and outcomes, of randomised response on each statistic."""
    n, worst = len(table[0][0]), 0.0
    for person in range(n):
        chances = {}
        for value in (0, 1):
            law = dict.fromkeys(product((0, 1), repeat=len(statistics)), 0.0)
            for row, mass in table:
                if row[person] != value:
                    continue
                for y in law:
                    noise = 1.0
                    for told, statistic, epsilon in zip(y, statistics, epsilons, strict=True):
                        keep = 1 / (1 + math.exp(-epsilon))
                        noise *= keep if told == statistic(row) else 1 - keep
                    law[y] += float(mass) * noise
            chances[value] = law
        total = {v: sum(law.values()) for v, law in chances.items()}
        if min(total.values()) > 0:
            ratios = [chances[0][y] / total[0] / (chances[1][y] / total[1]) for y in chances[0]]
            worst = max(worst, *(abs(math.log(r)) for r in ratios))
    return worst


def rows(finite):
    return list(zip(finite.databases, finite.tables[0][1], strict=True))


def x12(x):
    return x[0] ^ x[1]


def x123(x):
    return x[0] ^ x[1] ^ x[2]


def test_the_xor_pair_is_refused():
    """Planted: each alone hides every bit perfectly, together they reveal the third."""
    fair = bits(3)
    table = rows(fair)
    assert joint_loss(table, [x12], [1]) == pytest.approx(0, abs=1e-12)
    assert joint_loss(table, [x123], [1]) == pytest.approx(0, abs=1e-12)
    assert joint_loss(table, [x12, x123], [1, 1]) == pytest.approx(0.4337808304830273)
    told = may_add(pairs(fair), pairs(fair))
    assert told.rule == "refuse"
    assert "own statistic" in told.reason
    with pytest.raises(GuaranteeError, match="cannot be combined"):
        told.require()
    assert not pairs(fair).composes


def test_one_coupling_of_databases_adds():
    """Both calibrated to records: a release of one bit's parity costs eps per record."""
    fair = bits(3)
    one = pairs(fair, level="database")
    assert may_add(one, one).rule == "add"
    assert one.composes
    assert joint_loss(rows(fair), [x12, x123], [1, 1]) <= 2
    assert joint_loss(rows(fair), [lambda x: x[0]] * 2, [1, 1]) == pytest.approx(2)
    assert may_add(one, pairs(fair)).rule == "refuse"


def test_independent_blocks_cost_the_larger():
    fair = bits(4)
    told = may_add(pairs(fair), pairs(fair), ({0, 1}, {2, 3}))
    assert told.rule == "max"
    found = joint_loss(rows(fair), [lambda x: x[0], lambda x: x[2]], [1, 0.5])
    assert found == pytest.approx(1)


def test_blocks_tied_by_a_public_sum_add():
    """X1 + X2 = 1 is public: the printed rule says eps, the truth is 2 eps."""
    tied = bits(2).given("the sum is 1", lambda x: sum(x) == 1)
    told = may_add(pairs(tied), pairs(tied), ({0}, {1}))
    assert told.rule == "add"
    found = joint_loss(rows(tied), [lambda x: x[0], lambda x: x[1]], [1, 1])
    assert found == pytest.approx(2)


def test_blocks_tied_by_a_public_parity_are_refused():
    """Planted: the two blocks are independent of each other, yet they reveal the fifth person."""
    tied = bits(5).given("the parity is even", lambda x: sum(x) % 2 == 0)
    told = may_add(pairs(tied), pairs(tied), ({0, 1}, {2, 3}))
    assert told.rule == "refuse"
    statistics = [x12, lambda x: x[2] ^ x[3]]
    for one in statistics:
        assert joint_loss(rows(tied), [one], [1]) == pytest.approx(0, abs=1e-12)
    assert joint_loss(rows(tied), statistics, [1, 1]) == pytest.approx(0.4337808304830273)


@pytest.mark.parametrize("seed", range(8))
def test_rules_hold_on_random_tables(seed):
    """Whatever the rule says bounds the enumerated loss, on random tables of four bits."""
    rng = np.random.default_rng([41, seed])
    weights = rng.integers(0, 4, 16)
    weights[0] = weights[-1] = 1
    if seed % 2:  # make the two halves independent
        half = rng.integers(1, 5, (2, 4))
        weights = np.kron(half[0], half[1])
    table = FiniteScenarios.of(product((0, 1), repeat=4), {"law": [int(w) for w in weights]})
    blocks = ({0, 1}, {2, 3})
    told = may_add(pairs(table), pairs(table), blocks)
    statistics = [lambda x: x[0] & x[1], lambda x: x[2] | x[3]]
    single = [joint_loss(rows(table), [one], [1]) for one in statistics]
    together = joint_loss(rows(table), statistics, [1, 1])
    if told.rule == "max":
        assert seed % 2
        assert together <= max(single) + 1e-12
    elif told.rule == "add":
        assert together <= sum(single) + 1e-12


def test_classes_know_their_independence():
    blocks = ({0, 1}, {2})
    rule = {s.kind: may_add(pairs(s), pairs(s), blocks).rule for s in ALL}
    assert rule == {
        "independent records": "max",
        "bounded counts": "refuse",
        "dependent counts": "refuse",
        "conditional normal": "refuse",
        "stated laws": "refuse",
        "finite table": "refuse",
    }
    loose = BoundedCounts(9, k_anonymity(0))
    assert may_add(pairs(loose), pairs(loose), blocks).rule == "max"


def test_different_beliefs_are_never_put_together():
    one, other = pairs(bits(3), level="database"), pairs(bits(2), level="database")
    assert may_add(one, other).rule == "refuse"
    public = pairs(bits(3), level="database", given=("last month's counts",))
    assert "different public figures" in may_add(one, public).reason
    with pytest.raises(GuaranteeError, match="overlap"):
        may_add(one, one, ({0, 1}, {1, 2}))
