"""The paper's tables and figures: against oracles, enumeration, and exact draws."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.stats import chi2, norm

from congenial.errors import StructureError
from congenial.papers.congenial_dp import ITEMS, congenial_statements, counties
from congenial.papers.congenial_dp.congenial_statements import StoppedChain
from congenial.papers.congenial_dp.congenial_tables import index_sets
from congenial.papers.congenial_dp.example import ATOMS, EPS_CELL, TABLE1, A, conditional, published
from congenial.papers.congenial_dp.printed_chain import PrintedChain, acceptance, effective_share
from congenial.papers.congenial_dp.printed_chain_kernels import OPEN, decided, invert
from congenial.papers.item import Study
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.randomness import SeededRandomness

ALPHA = 1e-6
SEED = 11
QUICK = Study(seed=SEED, quick=True)


@pytest.fixture(scope="module")
def exact_draws() -> np.ndarray:
    return conditional(TABLE1).draw_many(SeededRandomness(SEED), 60_000)


@pytest.fixture(scope="module")
def log_Z() -> float:
    return congenial_statements.normaliser(TABLE1)


@pytest.fixture
def oracle(oracles):
    return json.loads((oracles / "congenial-dp.json").read_text())


# ---- the example ---------------------------------------------------------------------------------


def test_table_is_the_printed_one():
    table, known = published(TABLE1)
    assert (A @ TABLE1).tolist() == [256, 130, 43]
    assert table.counts[:, 4:].sum() == 213
    assert known.groups == 4
    assert len(known.ties) == 1


def test_table1_keeps_its_figures():
    found = ITEMS["table-1"].run(QUICK)
    rows = {row[0]: row[1:] for row in found["rows"]}
    assert rows["total"] == [130, 126, 256] * 2
    assert rows["18 and over"][2] == rows["18 and over"][5] == 213
    cells = np.array([row[1:] for row in found["rows"][:23]])
    assert cells[:, [0, 1]].T.reshape(-1).tolist() == TABLE1.tolist()
    np.testing.assert_array_equal(cells[:, [0, 3]] + cells[:, [1, 4]], cells[:, [2, 5]])
    assert (cells[:, :3] != cells[:, 3:]).any()


def test_table1_fits_a_terminal_with_all_its_columns(monkeypatch):
    """Seven columns of a head and 25 ages below each other, the total among them."""
    from typer.testing import CliRunner

    from congenial.cli import app

    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, ["reproduce", "congenial-dp", "table-1"]).output
    lines = [line.split() for line in shown.splitlines() if line.startswith("total")]
    assert lines == [["total", "130", "126", "256", "130", "126", "256"]]


def test_expected_distance_is_the_oracles(oracle, exact_draws, log_Z):
    case = oracle["section3_table1"]
    distance = np.abs(exact_draws - TABLE1).sum(axis=1)
    error = distance.std() / math.sqrt(distance.size)
    z = norm.isf(ALPHA / 2)
    assert abs(distance.mean() - float(case["E_L1_conditional"])) < z * error
    chance = 46 * math.log(math.tanh(0.25)) + log_Z
    assert math.exp(chance) == pytest.approx(float(case["P_M_in_Sstar"]), rel=1e-9)
    a = math.exp(-1)
    assert 46 * 2 * a / (1 - a * a) == pytest.approx(float(case["E_L1_unconstrained_eps1"]))


# ---- Algorithm 1 ---------------------------------------------------------------------------------


def test_proposals_have_the_double_geometric_law():
    """Bits that decide agree with the law's own quantile; the rest is left open."""
    for eps in (0.3, 0.6, 2.0):
        a, law = math.exp(-eps), DoubleGeometric(Fraction(str(eps)))
        table = decided(a)
        assert np.mean(table == OPEN) < 0.01
        for piece in range(1, 2**16, 97):
            if table[piece] != OPEN:
                u = int(table[piece])
                assert law.cdf(u - 1) <= piece / 2**16
                assert law.cdf(u) >= (piece + 1) / 2**16
        for v in (1e-9, 0.2, 0.5, 1 / (1 + a), 0.9, 1 - 1e-9):
            u = invert(v, a)
            assert law.cdf(u - 1) < v <= law.cdf(u) + 1e-12


def test_rejection_draws_the_law_of_the_exact_sampler(exact_draws):
    """alpha = 1e-6, chi-square on the l1 distance; the chain's own proposal with eps = .5."""
    drawn, proposals = PrintedChain(TABLE1, eps_proposal=EPS_CELL).reject(
        SeededRandomness(SEED), 300
    )
    assert not np.any(A @ (drawn - TABLE1).T)
    assert drawn.min() >= 0
    cuts = np.quantile(np.abs(exact_draws - TABLE1).sum(axis=1), np.arange(0.1, 1, 0.1))

    def share(tables):
        classes = np.searchsorted(cuts, np.abs(tables - TABLE1).sum(axis=1))
        return np.bincount(classes, minlength=10)

    expected = share(exact_draws) / len(exact_draws) * len(drawn)
    statistic = ((share(drawn) - expected) ** 2 / expected).sum()
    print(f"seed {SEED}: chi-square {statistic:.1f}, {proposals / 300:.0f} proposals per draw")
    assert chi2.sf(statistic, 9) > ALPHA
    wrong = share(exact_draws[np.abs(exact_draws - TABLE1).sum(axis=1) > cuts[2]])
    wrong = wrong / wrong.sum() * len(drawn)
    assert chi2.sf(((wrong - expected) ** 2 / expected).sum(), 9) < ALPHA  # negative control


def test_rejection_needs_a_bounded_ratio():
    with pytest.raises(StructureError, match="lighter tails"):
        PrintedChain(TABLE1).reject(SeededRandomness(1), 1)


def test_long_run_acceptance_is_predicted_by_exact_draws(exact_draws, log_Z):
    """200 runs of 2,000 steps that start at exact draws, against the computed acceptance."""
    chain, randomness = PrintedChain(TABLE1), SeededRandomness(SEED)
    told = acceptance(chain.weights(exact_draws, log_Z))
    rates = [chain.run(randomness, 2000, start=s)[2] / 2000 for s in exact_draws[:200]]
    error = float(np.std(rates)) / math.sqrt(len(rates))
    print(f"seed {SEED}: {np.mean(rates):.5f} +- {error:.5f}, told {told:.5f}")
    assert abs(np.mean(rates) - told) < norm.isf(ALPHA / 2) * error
    assert told == pytest.approx(0.0152, abs=0.0004)
    for solved in index_sets().values():
        assert PrintedChain(TABLE1, solved=solved).run(randomness, 500)[0].size == 500


def test_chain_stays_in_the_conforming_set():
    distance, states, accepted = PrintedChain(TABLE1).run(SeededRandomness(3), 4000, trace=True)
    assert accepted > 0
    assert states.min() >= 0
    assert np.array_equal(A @ states.T, np.repeat((A @ TABLE1)[:, None], 4000, axis=1))
    assert np.array_equal(np.abs(states - TABLE1).sum(axis=1), distance)


def test_effective_share_against_the_transition_matrix():
    """A chain small enough to invert: sigma^2 from the fundamental matrix."""
    chain, truth = StoppedChain(bins=3, people=4), 5
    P = chain.transition(truth)
    pi = chain.laws(None)[truth]
    g = np.abs(chain.tables - chain.tables[truth]).sum(axis=1).astype(float)
    f = g - pi @ g
    h = np.linalg.solve(np.eye(len(P)) - P + np.outer(np.ones(len(P)), pi), f)
    sigma2 = 2 * pi @ (f * h) - pi @ (f * f)
    # equal weights stand for probabilities: repeat each state in proportion (multiples of 1e-4)
    times = np.rint(pi * 20_000).astype(int)
    a = math.exp(-chain.eps_proposal)
    inner = np.abs(chain.tables - chain.tables[truth])[:, :-1].sum(axis=1)
    q = ((1 - a) / (1 + a)) ** 2 * np.exp(-chain.eps_proposal * inner)
    share = effective_share(np.repeat(q / pi, times), np.repeat(g, times))
    assert share == pytest.approx(float(pi @ (f * f)) / sigma2, rel=2e-3)


def test_printed_quantile_halves_the_acceptance():
    accepted = PrintedChain(TABLE1, printed=True).run(SeededRandomness(2), 100_000)[2]
    assert accepted / 1e5 < 0.008  # .0049 against .0152


def test_a_solved_cell_in_every_wrong_place_is_refused():
    with pytest.raises(StructureError, match="whole numbers"):
        PrintedChain(TABLE1, solved=(0, 1, 2)).run(SeededRandomness(1), 10)


# ---- misprints and prices ------------------------------------------------------------------------


def test_quantiles_of_the_oracle(oracle):
    for case in oracle["double_geometric_quantile"]:
        v, eps = float(case["v"]), float(case["eps"])
        assert congenial_statements.quantile_value(v, eps) == case["correct"]
        assert congenial_statements.quantile_value(v, eps, printed=True) == case["printed_formula"]


def test_hole_at_one_is_found():
    found = ITEMS["quantile"].run(QUICK)
    printed = {row[1]: row for row in found["rows"] if row[0] == "printed"}
    assert printed[1][2] == 0.0
    assert printed[1][3] == "infinite"
    assert all(row[3] == 0.5 for row in found["rows"] if row[0] == "correct")
    u = np.arange(-400, 400)
    assert np.exp(congenial_statements.printed_log_pmf(u, EPS_CELL)).sum() == pytest.approx(1.0)


def test_stopped_chain_of_the_oracle(oracle):
    told = oracle["finite_run_MIS_started_at_truth"]["4bin_total5_eps.5_te.6_k1"]
    chain = StoppedChain()
    for name, loss in told.items():
        steps = None if name == "stationary" else int(name[1:])
        assert chain.loss(steps) == pytest.approx(loss, abs=1e-8)
    P = chain.transition(3)
    assert np.allclose(chain.laws(None)[3] @ P, chain.laws(None)[3])  # it leaves the law alone


def test_gamma_of_the_oracle(oracle):
    universes = {
        **{f"twobin_n{n}_eps0.5": (congenial_statements.two_bins(n), 0.5) for n in (1, 3, 10)},
        **{f"twobin_n{n}_eps1.0": (congenial_statements.two_bins(n), 1.0) for n in (2, 5, 50)},
        "2x2_(2, 2)_(2, 2)_eps0.5": (congenial_statements.two_way_tables((2, 2), (2, 2)), 0.5),
        "3x3_222_eps0.5": (congenial_statements.two_way_tables((2, 2, 2), (2, 2, 2)), 0.5),
    }
    for name, (tables, eps) in universes.items():
        for records, told in oracle["effective_eps"][name].items():
            loss = congenial_statements.exact_loss(tables, eps, int(records[-1]))
            assert loss.loss == pytest.approx(told["eff"], abs=1e-9)
            assert loss.ratio == pytest.approx(told["maxlogZratio"], abs=1e-9)
            exact, star = loss.gamma(int(records[-1]), eps)
            assert exact == pytest.approx(told["gamma_exact"], abs=1e-9)
            assert star == pytest.approx(told["gamma_star_eq25"], abs=1e-9)


def test_price_next_to_table1(oracle):
    """The dearest move found by the full item, and a swap; 8 s for all moves, so two here."""
    told = oracle["section3_effective_eps"]
    one = np.zeros(46, np.int64)
    moves = congenial_statements.moves_inside_atoms()
    assert len(moves) > 100
    one[[4, 12]] = [1, -1]  # the last of the 45-49 females becomes 18-19
    assert congenial_statements.table1_loss([one]) <= told["k1_pairs_touching_table1"] + 1e-12
    for u in congenial_statements.sex_swaps()[:2]:
        assert not np.any(A @ u)
        assert (
            2.0
            < congenial_statements.table1_loss([u])
            <= told["swap_of_sex_within_nonvoting_touching_table1"] + 1e-12
        )


@pytest.mark.audit
def test_all_moves_next_to_table1(oracle):
    told = oracle["section3_effective_eps"]
    loss = congenial_statements.table1_loss(congenial_statements.moves_inside_atoms())
    assert loss == pytest.approx(told["k1_pairs_touching_table1"], abs=1e-9)
    swap = congenial_statements.table1_loss(congenial_statements.sex_swaps())
    assert swap == pytest.approx(told["swap_of_sex_within_nonvoting_touching_table1"], abs=1e-9)


# ---- items ---------------------------------------------------------------------------------------


def test_table2_is_corrected():
    rows = ITEMS["table-2"].run(QUICK)["rows"]
    assert {row[2] for row in rows} == {"(s1, s2)"}
    assert [row[3] for row in rows] == pytest.approx([2, 4, 4.16, 5.44, 8])
    assert all(row[5] <= row[3] + 1e-12 for row in rows)


def test_figure1_orders_the_methods():
    rows = ITEMS["figure-1"].run(QUICK)["rows"]
    mean = {
        words: np.mean([r[3] for r in rows if r[1] == words and r[2] == "l1"])
        for words in {r[1] for r in rows}
    }
    raw, nnl2, conditioned, half = (mean[name] for name in sorted(mean, key=lambda w: mean[w]))
    assert mean["conditioned, eps_cell = 0.5"] == conditioned
    assert mean["unconstrained, eps_cell = 0.5"] == half
    assert half / raw > 1.9
    assert nnl2 / raw < 1.15


def test_figure2_and_3_run():
    rows = ITEMS["figure-2"].run(QUICK)["rows"]
    best = {name: max(r[2] for r in rows if r[0] == name) for name in {r[0] for r in rows}}
    assert best["largest counts"] > best["smallest counts"]
    rows = ITEMS["figure-3"].run(QUICK)["rows"]
    chain = [r[2] for r in rows if r[0].startswith("Algorithm 1: second")]
    exact = [r[2] for r in rows if r[0].startswith("exact draws: second")]
    assert np.mean(np.diff(chain) != 0) < 0.1 < np.mean(np.diff(exact) != 0)


def test_rejection_item_counts_what_it_predicts():
    rows = ITEMS["rejection"].run(QUICK)["rows"]
    assert rows[0][2] == pytest.approx(1 / 9.7271895272009833e-6, rel=1e-9)
    assert rows[1][2] == pytest.approx(1510, rel=0.01)
    least, most = stats.gamma.ppf([ALPHA / 2, 1 - ALPHA / 2], 20) / 20  # 20 waiting times
    assert least < rows[1][3] / rows[1][2] < most


def test_county_studies(shared):
    study = Study(data=shared / "data", seed=SEED, quick=True)
    rows = ITEMS["counties"].run(study)["rows"]
    eps = {row[0]: row[2] for row in rows if row[1] == "conditioned on the figures"}
    assert eps == pytest.approx(
        {"state totals": 1 / 4, "county totals": 1 / 4, "sex and voting age by county": 1 / 6}
    )
    rows = ITEMS["counties-by-size"].run(study)["rows"]
    kept = [r for r in rows if r[0] == "county totals" and r[1].startswith("conditioned")]
    assert all(r[5] == 0 for r in kept)
    assert any(r[6] > 0 for r in kept)
    kept = [r for r in rows if r[0].startswith("sex") and not r[1].startswith("plain noise")]
    assert all(r[5] == r[6] == 0 for r in kept)
    found = ITEMS["counties-topdown"].run(study)
    assert found["rows"][0][0] == "Census Bureau, TopDown"
    assert found["rows"][0][2] == 58 * 46
    assert abs(found["rows"][0][4]) < 1e-12  # California's total is exact in both
    assert "rho" in found["notes"][0]


def test_all_counties_are_read(shared):
    counts = counties.read_p12(shared / "data" / counties.SF1, "fips")
    assert len(counts) == 3143
    assert sum(int(t.sum()) for t in counts.values()) == 308_745_538
    assert ATOMS.size == counts["01001"].size
