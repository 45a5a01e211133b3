"""The Wasserstein exponential mechanism: its loss by enumeration, its law, its promise."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import chi2

from congenial import Schema, SeededRandomness, Table, publish, total
from congenial.errors import FigureError, GuaranteeError, StructureError
from congenial.figures.support import support
from congenial.kinds.given_public import KIND
from congenial.mechanisms import ValuesRelease, WassersteinExponential, prior_congenial
from congenial.mechanisms.wasserstein.base_measure import Base, congenial, naive, published_sums
from congenial.mechanisms.wasserstein.exponential import ORDINARY
from congenial.mechanisms.wasserstein.l2_chain import LABEL, L2Chain, log_base
from congenial.mechanisms.wasserstein.secret_promise import assumed_delta
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.pairs.scenarios import IndependentRecords
from congenial.pairs.secrets import LEAKAGE, SecretPairs
from congenial.transport.delta_z import delta_z
from tests.mechanisms.wasserstein import cases

ALPHA = 1e-6
SEED = 97
EPS = F(1)


def simplex(total: int, cells: int) -> list[tuple[int, ...]]:
    every = itertools.product(range(total + 1), repeat=cells)
    return [p for p in every if sum(p) == total]


def loss_of(mechanism, points, query=None, push=None) -> float:
    laws: dict = {}

    def density(y, x):
        if x not in laws:
            laws[x] = mechanism.law(x)
        return laws[x].log_density(y)

    return cases.exact_loss(mechanism.pairs, density, points, query, push)


# ---- the loss never exceeds the promise ----------------------------------------------------------

COUNTS = {"dependent": cases.dependent(), "stated": cases.stated(), "k-anonymity": None}
LINE = [(v,) for v in range(-60, 70)]
BASES_1D = {
    "naive": (naive(1), LINE),
    "signs": (congenial(1), [p for p in LINE if p[0] >= 0]),
}


@pytest.mark.parametrize("base", BASES_1D)
@pytest.mark.parametrize("pairs", ["dependent", "stated"])
def test_loss_of_counts(pairs, base):
    measure, points = BASES_1D[base]
    mechanism = WassersteinExponential.calibrate(COUNTS[pairs], EPS, measure)
    loss = loss_of(mechanism, points)
    assert loss <= 1 + 1e-9
    assert loss > 0.25  # not vacuous
    assert mechanism.factor == (1 if base == "naive" else 2)


def test_loss_of_closed_forms():
    """Classes whose Delta_z is stated: every pair of counts that far apart is a pair."""
    independent = SecretPairs(cases.SCHEMA, (IndependentRecords("replace-one", F(2)),))
    for pairs, reach in ((independent, 2), (cases.anonymous(), 1)):
        for base, points in BASES_1D.values():
            mechanism = WassersteinExponential.calibrate(pairs, EPS, base)
            for x in range(4):
                one, other = (mechanism.law([v]).log_density(points) for v in (x, x + reach))
                assert np.abs(one - other).max() <= 1 + 1e-9


THREE = simplex(3, 3)
BASES_3D = {
    "sums": Base(3, (((0, 1, 2), 3),)),
    "signs": congenial(3, [((0, 1, 2), 3)]),
    "prior": prior_congenial(3, [((0, 1, 2), 3)], [4, 0, 1], alpha="1/2", kappa="1/2"),
}


@pytest.mark.parametrize("loss", ["l1", "squared l2"])
@pytest.mark.parametrize("level", ["query", "database"])
@pytest.mark.parametrize("base", BASES_3D)
def test_loss_of_tables(base, level, loss):
    if base == "sums" and loss != "l1":
        return
    query = cases.histogram(3)
    pairs = cases.finite(level)
    mechanism = WassersteinExponential.calibrate(
        pairs, EPS, BASES_3D[base], loss=loss,
        query=query if level == "query" else None, ordinary=2,
    )  # fmt: skip
    assert mechanism.factor == (1 if base == "sums" else 2)
    points = THREE
    if base == "sums":
        points = [p for p in itertools.product(range(-9, 13), repeat=3) if sum(p) == 3]
    push = query if level == "database" else None
    found = loss_of(mechanism, points, query if level == "query" else None, push)
    assert found <= 1 + 1e-9


def test_loss_with_parts():
    """Deaths among cases: cases (2 counties) with a public sum, deaths at most cases."""
    base = congenial(4, [((0, 1), 3)], parts=[(2, 0), (3, 1)])
    weighted = prior_congenial(
        4, [((0, 1), 3)], [5, 1, 0, 0], alpha=1, kappa="1/2", parts=[(2, 0), (3, 1)]
    )

    def counties(x):  # an answer is (county, died)
        return (
            sum(v in (0, 2) for v in x), sum(v in (1, 3) for v in x),
            sum(v == 2 for v in x), sum(v == 3 for v in x),
        )  # fmt: skip

    pairs = SecretPairs(
        cases.SCHEMA, (cases.FiniteScenarios.independent({"any": [[4, 2, 1, 1]] * 3}),)
    )
    every = itertools.product(range(4), repeat=4)
    points = [p for p in every if p[0] + p[1] == 3 and p[2] <= p[0] and p[3] <= p[1]]
    for measure in (base, weighted):
        mechanism = WassersteinExponential.calibrate(pairs, EPS, measure, query=counties)
        assert np.exp(mechanism.log_density(points, (2, 1, 0, 1))).sum() == pytest.approx(1)
        assert loss_of(mechanism, points, counties) <= 1 + 1e-9


def test_dependence_costs_noise():
    pairs = cases.correlated()
    mechanism = WassersteinExponential.calibrate(
        pairs, EPS, naive(1), query=lambda x: sum(x), ordinary=1
    )
    assert mechanism.sigma == 2  # both change together
    assert loss_of(mechanism, LINE, lambda x: sum(x)) <= 1 + 1e-9


PLACES = Schema.from_dict({"place": {"levels": ["a", "b", "c"]}})
SEVEN = publish(Table(PLACES, ("place",), np.array([3, 3, 1])), total())


def of_places(loss, level="database", ordinary=F(2), **scenario):
    """A table of seven people, whose number is public."""
    belief = IndependentRecords("replace-one", **scenario)
    pairs = SecretPairs(PLACES, (belief,), (), level, SEVEN)
    bound = delta_z(pairs, norm="l2" if loss == "l2" else "l1")
    base = congenial(3, published_sums(support(SEVEN, ("place",))))
    return WassersteinExponential(pairs, bound, base, EPS, loss, ordinary, ("place",))


@pytest.mark.parametrize("loss", ["l1", "squared l2"])
def test_what_one_record_costs(loss):
    """Every two tables one record apart; the squared loss changes by more than they do."""
    made, every = of_places(loss), simplex(7, 3)
    logs = {x: np.asarray(made.law(x).log_density(every)) for x in every}
    near = [(x, z) for x, z in itertools.product(every, repeat=2) if _apart(x, z) == 2]
    worst = max(float((logs[x] - logs[z]).max()) for x, z in near)
    assert worst <= made.description.epsilon == 1
    if loss == "squared l2":  # planted: tables two apart, as if their losses were
        assert worst > 4 * made.factor * made.rate * made.ordinary
    release = made.release([3, 3, 1], SeededRandomness(SEED))
    assert release.persons.tradeoff.eps == 1
    assert all(KIND.checks(release).values())
    cheap = replace(release.description, epsilon=made.factor * made.rate * made.ordinary)
    again = replace(release, description=cheap)
    assert KIND.checks(again)["the promise follows from the description"] == (loss == "l1")


def _apart(x, z):
    return sum(abs(a - b) for a, b in zip(x, z, strict=True))


@pytest.mark.parametrize("loss", ["l1", "l2", "squared l2"])
def test_a_record_changes_a_table_as_much_as_it_does(loss):
    assert of_places(loss, ordinary=ORDINARY[loss]).description.persons
    with pytest.raises(GuaranteeError, match="it changes a table of counts by"):
        of_places(loss, ordinary=F(7, 5))
    with pytest.raises(GuaranteeError, match="it changes a table of counts by"):
        of_places(loss, "query", sensitivity=F(7, 5))
    good = of_places(loss)
    with pytest.raises(GuaranteeError, match="cannot be used for pairs at level 'database'"):
        replace(good, bound=assumed_delta(2, "l1"))


# ---- planted defects -----------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "expected"), [(2, 0.7737134746020767), (1, 1.3263957859244748)])
def test_factor_two_under_signs(factor, expected):
    """J = 3, s = 10, l2 loss, one unit moves: without the factor the loss is 1.326 at eps = 1."""
    points = simplex(10, 3)
    rate = 1 / (factor * math.sqrt(2))
    table = np.array(points, dtype=float)
    logs = -rate * np.sqrt(((table[:, None] - table) ** 2).sum(-1))
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    near = ((table[:, None] - table) ** 2).sum(-1) == 2
    worst = max(float((logs[i] - logs[j]).max()) for i, j in np.argwhere(near))
    assert worst == pytest.approx(expected, abs=1e-10)
    assert (worst <= 1) == (factor == 2)
    # the mechanism keeps the factor: its rate is the safe one
    pairs = cases.finite()
    base = congenial(3, [((0, 1, 2), 10)])
    mechanism = WassersteinExponential(
        pairs, assumed_delta("1.4142135623730951", "l2"), base, EPS, "l2"
    )
    assert float(mechanism.rate) == pytest.approx(1 / (2 * math.sqrt(2)))
    if factor == 2:
        ours = logs[points.index((4, 3, 3))]
        raw = mechanism.law((4, 3, 3)).log_density(points)
        assert raw - raw[0] == pytest.approx(ours - ours[0])


def test_dropping_the_factor_breaks_the_promise_under_l1():
    base = congenial(3, [((0, 1, 2), 10)])
    points = simplex(10, 3)
    one = TableLaw(base, (1, 0, 9), F(1, 2)).log_density(points)
    other = TableLaw(base, (0, 1, 9), F(1, 2)).log_density(points)
    middle = TableLaw(base, (3, 3, 4), F(1, 2)).log_density(points)
    corner = TableLaw(base, (4, 3, 3), F(1, 2)).log_density(points)
    worst = max(np.abs(one - other).max(), np.abs(middle - corner).max())
    edge = np.abs(
        TableLaw(base, (0, 0, 10), F(1, 2)).log_density(points)
        - TableLaw(base, (0, 1, 9), F(1, 2)).log_density(points)
    ).max()
    assert max(worst, edge) > 1.05  # epsilon = 1 would be the promise at this rate


# ---- law -----------------------------------------------------------------------------------------


def test_draws_follow_the_density():
    base = prior_congenial(
        5, [((0, 1, 2), 5)], [3, 0, 4, 0, 0], alpha="1/2", kappa=1, parts=[(3, 0)]
    )
    law = TableLaw(base, [3, 1, 1, 2, 1], F(3, 4))
    drawn = law.draw_many(SeededRandomness(SEED), 30_000)
    drawn[:, 4] = np.minimum(drawn[:, 4], 12)
    points = [(*p, d, f) for p in simplex(5, 3) for d in range(p[0] + 1) for f in range(12)]
    p = np.exp(law.log_density(points))
    seen: dict[tuple[int, ...], int] = {}
    for row in drawn.tolist():
        seen[tuple(row)] = seen.get(tuple(row), 0) + 1
    observed = np.array([seen.get(q, 0) for q in points])
    common = p * 30_000 >= 10
    expected = np.append(p[common], 1 - p[common].sum()) * 30_000
    counts = np.append(observed[common], 30_000 - observed[common].sum())
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, len(expected) - 1) > ALPHA
    off = np.roll(expected, 1)  # negative control: another law
    assert chi2.sf(((counts - off) ** 2 / off).sum(), len(off) - 1) < ALPHA


def test_sums_only_are_kept_without_signs():
    base = Base(3, (((0, 1, 2), 3),))
    drawn = TableLaw(base, [0, 0, 3], F(1, 4)).draw_many(SeededRandomness(SEED), 50)
    assert (drawn.sum(axis=1) == 3).all()
    assert drawn.min() < 0


def test_chain_is_near_the_law_and_says_what_it_is():
    base = congenial(3, [((0, 1, 2), 4)])
    points = simplex(4, 3)
    chain = L2Chain(base, (2, 1, 1), F(3, 4))
    logs = np.asarray(chain.log_density(points))
    p = np.exp(logs) / np.exp(logs).sum()
    drawn = chain.draw_many(SeededRandomness(SEED), 400, burn_in=20, thin=1)
    at = {q: i for i, q in enumerate(points)}
    seen = np.bincount([at[tuple(r)] for r in drawn.tolist()], minlength=len(points)) / len(drawn)
    assert np.abs(seen - p).max() < 0.12
    assert chain.label == LABEL
    mechanism = WassersteinExponential.assuming(cases.finite(), "1.5", EPS, base, loss="l2")
    assert mechanism.guarantee.basis == "uncertified chain"
    assert mechanism.description.law["sampler"] == LABEL
    assert log_base(base, (1, 1, 1)) == -math.inf


# ---- promise -------------------------------------------------------------------------------------


def test_promise_in_words():
    mechanism = WassersteinExponential.calibrate(cases.dependent(), EPS, naive(1), ordinary=20)
    guarantee = mechanism.guarantee
    assert LEAKAGE in guarantee.not_covered
    assert any("below the ordinary sensitivity" in line for line in guarantee.assumptions)
    assert "0.462" in mechanism.words or "0.463" in mechanism.words  # tanh(1/2)
    assert "odds" in mechanism.words
    assert "Not covered" in guarantee.explain()
    assert guarantee.basis == "theorem"
    assumed = WassersteinExponential.assuming(cases.dependent(), 2, EPS, naive(1))
    assert assumed.guarantee.basis == "estimate"
    assert any("in l1 is assumed" in line for line in assumed.guarantee.assumptions)


def test_release_round_trip():
    base = congenial(3, [((0, 1, 2), 3)])
    mechanism = WassersteinExponential.calibrate(
        cases.finite(), EPS, base, query=cases.histogram(3)
    )
    release = mechanism.release([1, 2, 0], SeededRandomness(1))
    assert sum(release.values) == 3
    assert not release.publishable
    again = ValuesRelease.from_payload(
        name=release.name, description=release.description, guarantee=release.guarantee,
        randomness=release.randomness, publishable=False, payload=release.payload(),
    )  # fmt: skip
    assert again == release
    assert Base.from_dict(release.description.law["base_measure"]) == base


# ---- bad input -----------------------------------------------------------------------------------


def test_refusals():
    with pytest.raises(StructureError, match="share a cell"):
        congenial(3, [((0, 1), 2), ((1, 2), 2)])
    with pytest.raises(StructureError, match="kappa"):
        prior_congenial(2, [((0, 1), 2)], [0, 1], alpha=1, kappa=0)
    with pytest.raises(StructureError, match="1 previous counts for 2 cells"):
        prior_congenial(2, [((0, 1), 2)], [0], alpha=1, kappa=1)
    with pytest.raises(StructureError, match="a number of cells up to 4,194,304"):
        prior_congenial(2**40, [((0, 1), 2)], [0, 1], alpha=1, kappa=1)
    with pytest.raises(StructureError, match="in no public sum"):
        congenial(3, [((0, 1), 2)], parts=[(0, 1)])
    with pytest.raises(FigureError, match="public figures"):
        TableLaw(congenial(2, [((0, 1), 2)]), [1, 2], F(1))
    with pytest.raises(GuaranteeError, match="without limit"):
        WassersteinExponential.assuming(cases.finite(), 2, 1, naive(2), loss="squared l2")
    with pytest.raises(GuaranteeError, match="the effect of one record"):
        WassersteinExponential.calibrate(cases.finite("database"), 1, naive(3))
    with pytest.raises(GuaranteeError, match="not positive"):
        WassersteinExponential.assuming(cases.finite(), 2, 0, naive(2))
    with pytest.raises(GuaranteeError, match="Delta_z is 0"):
        WassersteinExponential.calibrate(cases.finite(), 1, naive(1), query=len)
    with pytest.raises(GuaranteeError, match="does not bound"):
        WassersteinExponential(cases.finite(), assumed_delta(2, "l2"), naive(1), F(1), "l1")


def test_calibrate_takes_a_table():
    """What one record changes in a table of counts need not be said; another size is refused."""
    schema = Schema.from_dict({"x": {"levels": ["a", "b", "c"]}})
    pairs = SecretPairs(schema, (IndependentRecords("replace-one"),), (), "database")
    made = WassersteinExponential.calibrate(pairs, EPS, naive(3), table="x")
    assert made.table == ("x",)
    assert made.description.law["table"] == ["x"]
    assert (made.ordinary, made.description.persons) == (ORDINARY["l1"], True)
    with pytest.raises(GuaranteeError, match="3 cells and the base measure 4"):
        WassersteinExponential.calibrate(pairs, EPS, naive(4), table=["x"])
