"""The certificate against exact losses: every pair of small databases, hostile records included."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from congenial import AddRemove, ReplaceOne, Schema, SeededRandomness, SemiAdjacent, Table
from congenial.errors import GuaranteeError, StructureError
from congenial.figures import Figures, count, linear, margin, publish, structural_zeros, total
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.pairs.universe import Universe
from congenial.sampling.exact_decisions import working_precision
from congenial.synthesis.certified import Synthesizer, certified_law
from congenial.synthesis.column_kernels import kernel_of
from congenial.synthesis.columns import Column
from congenial.synthesis.local import min_max, risks
from congenial.synthesis.models import (
    BinomialColumn,
    LinearRegression,
    MultinomialColumn,
    NormalColumn,
    PoissonColumn,
    Spike,
)
from congenial.synthesis.record_model import Grid
from congenial.synthesis.record_scores import FULL, oscillation, scores_of, weights_of
from congenial.synthesis.weighted_posterior import Finite
from tests.synthesis.exact_loss import (
    M,
    compositions,
    databases,
    largest_losses,
    log_probabilities,
    loss,
)

COUNTS = Schema.from_dict({"x": {"edges": [0, 1, 2, 4, 50, 1_000_000], "top": "many"}})
SIX = Schema.from_dict({"x": {"integers": [0, 5]}})
MONEY = Schema.from_dict(
    {"x": {"edges": [-1_000_000, -10, 0, 1, 30, 1000], "top": "rich", "missing": "unknown"}}
)
MODELS = {
    "poisson": (COUNTS, PoissonColumn(Grid(0.5, 30, 9, "log"))),
    "binomial": (SIX, BinomialColumn(5, Grid(0.05, 0.95, 9))),
    "normal": (COUNTS, NormalColumn(Grid(0, 20, 4), Grid(1, 30, 3, "log"))),
    "spikes": (
        MONEY,
        Spike(
            Spike(NormalColumn(Grid(-3, 9, 4), Grid(1, 9, 3), "asinh"), "0", Grid(0.1, 0.4, 2)),
            "unknown",
            Grid(0.01, 0.3, 2),
        ),
    ),
}


def kernel(name: str, bound: Fraction = M, **more):
    schema, model = MODELS[name]
    attribute = schema.attribute("x")
    allowed = np.ones((1, attribute.size), dtype=bool)
    return kernel_of(model, attribute=attribute, allowed=allowed, bound=bound, **more)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighting", ["record", "scalar"])
def test_no_pair_of_small_databases_loses_more(name, weighting):
    """All databases of 0 to 3 records: M when a record is added, 2M when one is replaced."""
    one = kernel(name, weighting=weighting)
    tables = {n: databases(one.attribute.size, n) for n in range(3)}
    added, replaced = largest_losses(lambda t: one.laws(t[None, :])[0], tables)
    assert added <= float(M)
    assert replaced <= float(2 * M)
    assert replaced > 0.2 * float(M)  # something is learnt


def test_the_bound_is_nearly_met():
    """Two points of Theta far apart, many records at one end: the loss comes close to 2M."""
    law = lambda records: certified_law(PoissonColumn(Grid(1, 1000, 2)), records, M)  # noqa: E731
    many = np.array([0.0] * 60)
    with working_precision(200):
        a = log_probabilities(law(np.append(many, 0.0)))
        b = log_probabilities(law(np.append(many, 1000.0)))
    assert 1.98 * float(M) < loss(a, b) <= float(2 * M)


HOSTILE = [0.0, 1e-300, 1.0, 3.0, 1e9, 1e300, -1.0, -1e300, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize(
    "model",
    [
        PoissonColumn(Grid(0.001, 1000, 7, "log")),
        NormalColumn(Grid(-1000, 1000, 5), Grid(0.01, 100, 3, "log")),
        NormalColumn(Grid(-5, 5, 5), Grid(0.1, 2, 3), "log"),
        BinomialColumn(9, Grid(0.001, 0.999, 7)),
    ],
)
@pytest.mark.parametrize("repeated", [0, 1, 5000])
def test_hostile_records_lose_no_more(model, repeated):
    """Huge, tiny, impossible and repeated records: n is unknown to the attacker's advantage."""
    base = np.array([2.0, 3.0] + [1.0] * repeated)
    with working_precision(200):
        without = log_probabilities(certified_law(model, base, M))
        laws = [log_probabilities(certified_law(model, np.append(base, x), M)) for x in HOSTILE]
    assert all(loss(without, one) <= float(M) for one in laws)
    assert all(loss(a, b) <= float(2 * M) for a, b in product(laws, laws))


def test_records_without_a_weight_change_nothing():
    model = PoissonColumn(Grid(1, 9, 5))
    plain = certified_law(model, np.array([3.0, 4.0]), M)
    for bad in (np.nan, np.inf, -np.inf):
        odd = certified_law(model, np.array([3.0, 4.0, bad]), M)
        assert np.array_equal(plain.total, odd.total)


@pytest.mark.parametrize(("levels", "floor"), [(2, 0.2), (3, 0.1)])
def test_multinomial_lattice(levels, floor):
    """Every composition, every pair of databases of up to 4 people."""
    names = [f"l{i}" for i in range(levels)]
    attribute = Schema.from_dict({"x": {"levels": names}}).attribute("x")
    model = MultinomialColumn(floor=floor, steps=1, concentration=0.7)
    allowed = np.ones((1, levels), dtype=bool)
    one = kernel_of(model, attribute=attribute, allowed=allowed, bound=M)
    for n in range(4):
        with working_precision(200):
            found = []
            for table in databases(levels, n) + databases(levels, n + 1):
                law = one.laws(table[None, :])[0]
                found.append((table, log_probabilities(law, compositions(law))))
            for (s, p), (t, q) in product(found, found):
                moved = int(np.abs(s - t).sum())
                if moved == 1 or (moved == 2 and s.sum() == t.sum()):
                    assert loss(p, q) <= float(moved * M)


# ---- planted defects: the same comparison must notice them ---------------------------------------


def loss_over_promise(weigh) -> float:
    """The exact loss of one replaced record, over twice the most that a weighted record scores."""
    theta = np.linspace(60, 140, 41)[:, None]
    model = PoissonColumn()

    def law(records):
        likelihood = model.log_likelihood(theta, records)
        weights = weigh(risks(likelihood))
        scores = scores_of(likelihood, weights, Fraction(50)).sum(axis=1)
        return Finite(scores, model.log_prior(theta), Fraction(50, FULL))

    bulk = np.repeat(np.arange(90.0, 111.0), 20)
    tame, wild = np.append(bulk, 100.0), np.append(bulk, 400.0)
    promised = 2 * max(
        (weigh(risks(table)) * risks(table)).max()
        for table in (model.log_likelihood(theta, x) for x in (tame, wild))
    )
    with working_precision(200):
        found = loss(log_probabilities(law(tame)), log_probabilities(law(wild)))
    return float(found) / promised


def own_record_only(risk):
    """Weights that see one record each: what it may score in all is 1."""
    return np.minimum(1.0, 1 / risk)


def test_planted_weights_that_see_the_whole_data_are_caught():
    """Min-max weights (the paper's) in the same machinery, each record within what they promise."""
    assert loss_over_promise(min_max()) > 1.2
    assert loss_over_promise(own_record_only) <= 1


def test_planted_weights_that_are_too_large_are_caught():
    """No weights at all (alpha = 1) and no cut: the loss exceeds 2M."""
    model = PoissonColumn(Grid(1, 60, 30))
    theta = model.points()

    def law(records):
        likelihood = model.log_likelihood(theta, records)
        units = np.rint((likelihood - likelihood.min(axis=0)) * FULL).astype(np.int64)
        return Finite(units.sum(axis=1), model.log_prior(theta), Fraction(1, FULL))

    with working_precision(200):
        found = loss(
            log_probabilities(law(np.array([3.0, 4.0, 30.0]))),
            log_probabilities(law(np.array([3.0, 4.0, 3.0]))),
        )
    assert found > float(2 * M)


# ---- columns, contexts, figures -----------------------------------------------------------------

TWO = Schema.from_dict({"g": {"levels": ["a", "b", "c"]}, "k": {"integers": [0, 3]}})


def joint_losses(synthesizer: Synthesizer, tables: list[Table], pairs) -> list:
    """Exact loss of all parameters together, for the given pairs of tables."""
    with working_precision(200):
        found = []
        for table in tables:
            laws = synthesizer.laws(synthesizer.fetch(table)[0])
            found.append([log_probabilities(law, _outcomes(law)) for some in laws for law in some])
        # parameters are independent: the losses of the blocks add up
        return [sum(loss(p, q) for p, q in zip(found[i], found[j], strict=True)) for i, j in pairs]


def _outcomes(law):
    return None if isinstance(law, Finite) else compositions(law)


def tables_of(schema: Schema, n: int) -> list[Table]:
    return list(Universe(Figures(schema)).tables(n))


def apart(tables: list[Table], records: int) -> list[tuple[int, int]]:
    pairs = product(range(len(tables)), repeat=2)
    return [
        (i, j)
        for i, j in pairs
        if 0 < np.abs(tables[i].counts - tables[j].counts).sum() <= 2 * records
    ]


GIVEN = {
    "by context": Column("k", PoissonColumn(Grid(0.3, 4, 5, "log")), given=("g",)),
    "regression": Column(
        "k", LinearRegression((Grid(0, 3, 3), Grid(-1, 1, 3)), Grid(0.5, 2, 2)), given=("side",)
    ),
}


@pytest.mark.parametrize("which", GIVEN)
def test_columns_one_after_another_share_the_bound(which):
    """Replacing a record changes two contexts and both columns; together at most 2M."""
    schema = Schema.from_dict(
        {"side": {"levels": ["l", "r"]}, "g": {"levels": ["a", "b"]}, "k": {"integers": [0, 2]}}
    )
    first = Column("g", MultinomialColumn(floor=0.2, steps=1), share=Fraction(1, 3))
    columns = (Column("side", MultinomialColumn(floor=0.25, steps=1)), first, GIVEN[which])
    synthesizer = Synthesizer(ReplaceOne(schema), columns, M)
    tables = tables_of(schema, 1) if which == "regression" else tables_of(schema, 2)
    assert synthesizer.epsilon == 2 * M
    losses = joint_losses(synthesizer, tables, apart(tables, 1))
    assert max(losses) <= float(2 * M)
    assert max(losses) > 0.5 * float(M)


def test_mandated_totals_cost_two_a_star():
    """Conforming pairs a* = 2 records apart lose at most 2 M a*, and some more than 2 M."""
    columns = (Column("g", MultinomialColumn(floor=0.1, steps=1)), GIVEN["by context"])
    every = tables_of(TWO, 3)
    truth = next(t for t in every if t.marginal(["g"]).counts.tolist() == [1, 1, 1])
    adjacency = SemiAdjacent(publish(truth, total(by="g")))
    synthesizer = Synthesizer(adjacency, columns, M)
    assert (adjacency.records, synthesizer.epsilon) == (2, 4 * M)
    conforming = [t for t in every if adjacency.figures.holds_for(t)]
    losses = joint_losses(synthesizer, conforming, apart(conforming, 2))
    assert max(losses) <= float(synthesizer.epsilon)


def whole_losses(synthesizer: Synthesizer, every: list[Table]) -> list:
    figures, records = synthesizer.adjacency.figures, synthesizer.adjacency.records
    conforming = [t for t in every if figures.holds_for(t)]
    return joint_losses(synthesizer, conforming, apart(conforming, records))


def test_a_column_settled_by_its_totals_needs_none_of_the_bound():
    """With every level's total published the other column gets all of M, within the same promise;
    a column whose totals leave a choice keeps its share. Planted: it keeps it beside the whole M.
    """
    schema = Schema.from_dict({"g": {"integers": [0, 2]}, "k": {"integers": [0, 1]}})
    columns = tuple(Column(name, PoissonColumn(Grid(0.05, 5, 2))) for name in schema.names)
    every = tables_of(schema, 3)
    truth = next(t for t in every if t.marginal(["g"]).counts.tolist() == [1, 2, 0])
    exact = Synthesizer(SemiAdjacent(publish(truth, total(by="g"))), columns, M)
    assert exact.settled == ("g",)
    assert [kernel.bound for kernel in exact.kernels] == [0, M]
    assert [len(laws) for laws in exact.laws(exact.fetch(truth)[0])] == [0, 1]
    assert float(M) < max(whole_losses(exact, every)) <= float(exact.epsilon)
    for theta in (0, 1):  # whatever was drawn, the column is the published one
        codes = exact.records_from([[], [theta]], np.random.default_rng(theta), 3, {})
        assert np.bincount(codes["g"], minlength=3).tolist() == [1, 2, 0]
    partly = Synthesizer(SemiAdjacent(publish(truth, count("g <= 1"))), columns, M)
    assert not partly.settled
    assert [kernel.bound for kernel in partly.kernels] == [M / 2, M / 2]
    assert max(whole_losses(partly, every)) <= float(partly.epsilon)
    beside = Synthesizer(partly.adjacency, columns, 2 * M)  # M for each of the two
    assert max(whole_losses(beside, every)) > float(partly.epsilon)


def test_totals_and_rules_together_may_settle_a_column():
    """Two levels share a total, and a rule leaves one of them; one level may be what is left."""
    schema = Schema.from_dict({"g": {"levels": ["a", "b", "c"]}, "k": {"integers": [0, 2]}})
    counts = np.array([[1, 2, 0], [0, 0, 0], [3, 0, 1]])
    table = Table(schema, schema.names, counts)
    columns = (Column("g"), Column("k", PoissonColumn(Grid(0.3, 4, 5, "log")), given=("g",)))
    figure, rule = count("g = 'a' or g = 'b'"), structural_zeros("g = 'b'")
    assert not Synthesizer(SemiAdjacent(publish(table, figure)), columns, M).settled
    made = Synthesizer(SemiAdjacent(publish(table, figure, rule)), columns, M)
    assert made.settled == ("g",)
    found = made.release(table, SeededRandomness(1)).to_pandas()["g"].value_counts()
    assert found.to_dict() == {"c": 4, "a": 3}
    assert not Synthesizer(SemiAdjacent(publish(table, total())), columns, M).settled
    assert not Synthesizer(ReplaceOne(schema), columns, M).settled


def test_totals_that_leave_groups_open_are_refused_before_they_are_published():
    schema = Schema.from_dict({"g": {"levels": ["a", "b", "c"]}})
    weighted = Figures(schema, (total(), linear({"g = 'a'": 1, "g = 'b'": 2})))
    with pytest.raises(StructureError, match="leave the size of its groups open"):
        _ = Synthesizer(SemiAdjacent(weighted), (Column("g"),), M).totals
    nested = Figures(schema, (total(), count("g = 'a'")))
    assert Synthesizer(SemiAdjacent(nested), (Column("g"),), M).totals is not None


def test_partial_synthesis_protects_the_value():
    """Same public column for everybody, one value replaced: 2M, although a* would be 2."""
    truth = tables_of(TWO, 2)[5]
    published = publish(truth, margin("g"))
    pairs = SensitiveValues(published, ("g",))
    synthesizer = Synthesizer(pairs, (GIVEN["by context"],), M, public=("g",))
    assert synthesizer.epsilon == 2 * M
    conforming = [t for t in tables_of(TWO, 2) if published.holds_for(t)]
    one = apart(conforming, 1)
    assert one
    assert max(joint_losses(synthesizer, conforming, one)) <= float(2 * M)


def test_prices():
    columns = (Column("g"),)
    assert Synthesizer(AddRemove(TWO), columns, M, records=10).epsilon == M
    assert Synthesizer(AddRemove(TWO, 3), columns, M, records=10, copies=2).epsilon == 6 * M
    assert Synthesizer(ReplaceOne(TWO), columns, M, copies=20).epsilon == 40 * M
    few, many = (Synthesizer(ReplaceOne(TWO), columns, M, records=k) for k in (1, 10**6))
    assert few.epsilon == many.epsilon == 2 * M
    description = few.description
    assert (description.epsilon, description.added) == (2 * M, M)
    assert Synthesizer(ReplaceOne(TWO), columns, M).description.added is None  # n is published


def test_scores_never_exceed_the_bound():
    for name, (first, second) in product(MODELS, pairwise([Fraction(1, 100), M, Fraction(40)])):
        for bound in (first, second):
            assert kernel(name, bound).used.max() <= 1


def test_weights_that_are_too_large_cannot_break_the_promise():
    """The cut is what the promise rests on; the right weights are never above 1 and reach M."""
    likelihood = np.array([[0.0, 0.0, -3.0], [-0.2, -5.0, 0.0], [-0.3, -1.0, -1.0]])
    assert scores_of(likelihood, np.full(3, 50.0), M).max() == FULL
    weights = weights_of(oscillation(likelihood), M)
    np.testing.assert_allclose(weights, np.minimum(1, float(M) / np.array([0.3, 5.0, 3.0])))
    assert scores_of(likelihood, weights, M).max() == FULL


def test_an_impossible_level_has_no_weight_where_all_have_one():
    schema = Schema.from_dict({"x": {"integers": [0, 3]}})
    attribute = schema.attribute("x")
    allowed = np.array([[True, True, False, True], [False, True, True, True]])
    model = PoissonColumn(Grid(0.5, 2.0, 4))
    one = kernel_of(model, attribute=attribute, allowed=allowed, bound=M, weighting="scalar")
    assert (one.weights[~allowed] == 0).all()
    assert (one.weights[allowed] > 0).all()


def test_a_table_too_large_to_score_is_refused(monkeypatch):
    """Points of Theta times levels, before any of it is worked out."""
    from congenial.synthesis import column_kernels

    monkeypatch.setattr(column_kernels, "LARGEST_TABLE", 15)
    attribute = Schema.from_dict({"x": {"integers": [0, 3]}}).attribute("x")
    allowed = np.ones((1, 4), dtype=bool)
    with pytest.raises(GuaranteeError, match="4 points of Theta and 4 levels"):
        kernel_of(PoissonColumn(Grid(0.5, 2.0, 4)), attribute=attribute, allowed=allowed, bound=M)
    kernel_of(PoissonColumn(Grid(0.5, 2.0, 3)), attribute=attribute, allowed=allowed, bound=M)
