"""Theorem 1.3, Definition 1.4, equations (5.1) and (5.2), and Example 5.2, by enumeration.

Three people with a bit each; the number of ones is released with double geometric noise, whose
sensitivity is 1 between databases that differ in one record. Noise beyond a window adds nothing:
outside the range of the counts every ratio is that of its end.

What goes wrong if the paper is followed to the letter: three demonstrations.

The printed quantile never draws +1; a chain that is stopped leaks; and rejection, which is exact,
says how rare conforming proposals are.

A chain that is stopped leaks: the exact loss of Algorithm 1 after t steps from the truth.

Small enough for exact transition matrices: compositions of n people into bins, given the total and
m >= 0. The chain for truth s starts at s, so after t steps its law is row s of P_s^t, and the loss
between neighbours s, s' is the largest log ratio of those rows. It tends to that of the conditional
mechanism only as t grows.

What conditioning really costs: the exact gamma of Theorem 2.1 on small universes.

loss(s, s') = eps_cell ||s - s'||_1 + log Z(s')/Z(s), attained at m = s. The paper's gamma* (2.5)
takes the largest ratio of normalisers by itself, which need not occur with the largest distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any, NamedTuple

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.papers.congenial_dp.example import ATOMS, EPS_CELL, TABLE1
from congenial.papers.congenial_dp.printed_chain import PrintedChain
from congenial.papers.item import Study
from congenial.privacy.semantics import belief
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.randomness import SeededRandomness

PEOPLE = 3
DATABASES = np.array(list(product((0, 1), repeat=PEOPLE)))
RESULTS = np.arange(-2, PEOPLE + 3)
ROUNDING = 1e-12


def likelihood(epsilon: float) -> Floats:
    """P(M(x) = y) up to a factor that depends on y alone: rows x, columns y."""
    return np.asarray(np.exp(-epsilon * np.abs(RESULTS - DATABASES.sum(axis=1)[:, None])))


def priors() -> dict[str, Floats]:
    """Beliefs about the three bits: independent ones, and two that tie people to each other."""
    ones = DATABASES.sum(axis=1)
    independent = 0.3**ones * 0.7 ** (PEOPLE - ones)
    alike = np.where(ones % PEOPLE == 0, 0.5, 0.0)
    leaning = np.where(ones % PEOPLE == 0, 0.45, 0.1 / 6)
    return {
        "independent, 30 % each": independent,
        "nearly the same answer": leaning,
        "the same answer": alike,
    }


def posterior_factors(prior: Floats, epsilon: float) -> Floats:
    """pi(x_1 = omega | y) / pi(x_1 = omega) for both answers and every result."""
    joint = prior[:, None] * likelihood(epsilon)
    rows = []
    for omega in (0, 1):
        has = DATABASES[:, 0] == omega
        rows.append(joint[has].sum(axis=0) / joint.sum(axis=0) / prior[has].sum())
    return np.array(rows)


def theorem13(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """How far a release moves a belief about one person, for three priors."""
    rows = []
    for epsilon in (0.5, 1.0):
        for words, prior in priors().items():
            factors = posterior_factors(prior, epsilon)
            low, high = float(factors.min()), float(factors.max())
            inside = math.exp(-epsilon) - ROUNDING <= low and high <= math.exp(epsilon) + ROUNDING
            rows.append([words, epsilon, low, high, math.exp(epsilon), inside])
    return {
        "columns": ["prior", "epsilon", "least factor", "largest factor", "e^epsilon", "holds"],
        "rows": rows,
        "notes": [
            "Factor: posterior over prior of the first person's answer, over all results. Three "
            "people, the number of ones with double geometric noise.",
            "The theorem is stated for every prior. It needs beliefs that are independent between "
            "people: someone who thinks that all three answer alike learns from the others' noise "
            "too, up to e^(3 epsilon) in the odds. Where exact figures force other records to "
            "change with one, independent beliefs are not enough either: with one resident in each "
            "of n areas and exact totals the odds can move by e^(n epsilon / 2).",
            f"Sharper for a pure promise: a belief of 1 % becomes at most {belief(0.01, 1.0):.2%} "
            "at epsilon = 1 (`congenial.privacy.belief`), not 2.72 %.",
        ],
    }


def definition14(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """Towards epsilon = 0: beliefs stay, and every bounded event loses its probability."""
    prior, rows = priors()["independent, 30 % each"], []
    for epsilon in (1.0, 0.1, 0.01, 0.001):
        factors = posterior_factors(prior, epsilon)
        a = math.exp(-epsilon)
        within = 1 - 2 * a**11 / (1 + a)  # P(|U| <= 10) of double geometric noise
        rows.append([str(epsilon), float(np.abs(factors - 1).max()), within, within])
    rows.append(["0: suppression", 0.0, 0.0, 1.0])
    return {
        "columns": [
            "epsilon",
            "largest change of a belief, relative",
            "lower probability of -10 to 10",
            "upper probability of -10 to 10",
        ],
        "rows": rows,
        "notes": [
            "Count of nobody: the result is the noise. For epsilon > 0 the mechanism is a "
            "probability, lower and upper are one number, and it tends to 0 for every bounded "
            "event, while that of the whole line stays 1: there is no limiting probability.",
            "M_0 is the vacuous lower probability of (5.2): 0 below and 1 above for every event "
            "but the empty one and the whole line. Conditioning on it leaves every prior as it is, "
            "as (1.7) asks. In practice: nothing is released.",
        ],
    }


# ---- (5.1) ---------------------------------------------------------------------------------------


def neighbours(x: int) -> list[int]:
    """The database itself and those that differ in one record, by number."""
    away = np.abs(DATABASES - DATABASES[x]).sum(axis=1)
    return np.flatnonzero(away <= 1).tolist()


def odds_factor(prior: Floats, epsilon: float) -> float:
    """The largest change of the odds of any statement, when every database may have been replaced
    by a neighbour before the draw: over statements, results and replacements.
    """
    p = likelihood(epsilon)
    around = [p[neighbours(x)] for x in range(len(p))]
    most, least = (
        np.array([f(densities, axis=0) for densities in around]) for f in (np.max, np.min)
    )
    worst = 1.0
    for statement in product((False, True), repeat=len(p)):
        has = np.array(statement)
        if not prior[has].sum() or not prior[~has].sum():
            continue
        up = (prior[has] @ most[has]) / (prior[has] @ p[has])
        down = (prior[~has] @ least[~has]) / (prior[~has] @ p[~has])
        worst = max(worst, float((up / down).max()))
    return worst


def posterior_to_posterior(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """(5.1): odds after one and the same result, from the data and from a look-alike of them."""
    rows = []
    for epsilon in (0.5, 1.0):
        for words, prior in priors().items():
            factor, allowed = odds_factor(prior, epsilon), math.exp(2 * epsilon)
            rows.append([words, epsilon, factor, allowed, factor <= allowed + ROUNDING])
    return {
        "columns": ["prior", "epsilon", "largest change of odds", "e^(2 epsilon)", "holds"],
        "rows": rows,
        "notes": [
            "Every database is replaced by itself or a neighbour before the draw, in the way that "
            "changes the odds of a statement most; the largest over all 254 statements and all "
            "results. No independence of people is needed. Both the statement's weight and its "
            "opposite's may move, hence twice epsilon.",
            "The paper compares the posteriors of one person's answer given M(x) and M(x') in the "
            "same set; what the second means needs a rule such as this one.",
        ],
    }


# ---- Example 5.2 ---------------------------------------------------------------------------------

GROUP, LOW, HIGH, RECORDS = 10, 41, 50, 60


def example52(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """ceil(sum / 10) with the mandate 41 <= sum <= 50: what conditioning leaves of the noise."""
    rows: list[list[Any]] = []
    for epsilon in (0.5, 1.0):
        answer = np.ceil(np.arange(RECORDS + 1) / GROUP)
        everywhere = float(np.abs(np.diff(answer)).max()) * epsilon
        allowed = answer[LOW : HIGH + 1]
        laws = _conditioned(allowed, np.unique(allowed), epsilon)
        loss = float(np.abs(np.diff(np.log(laws), axis=0)).max())
        rows.append(["all databases", epsilon, RECORDS + 1, len(np.unique(answer)), everywhere, 0])
        gamma = loss / epsilon - 1
        rows.append(["41 to 50 ones", epsilon, len(allowed), len(laws[0]), loss, gamma])
    return {
        "columns": ["universe", "epsilon", "numbers of ones", "possible answers", "loss", "gamma"],
        "rows": rows,
        "notes": [
            f"{RECORDS} people; neighbours differ in one record, so their numbers of ones in at "
            "most 1.",
            "The mandate fixes the answer, 5: the conditioned law is a point, loses nothing among "
            "conforming databases, and gamma = -1 as printed. Which of the ten numbers of ones is "
            "true is not in the release at all; that it is one of them follows from the mandate.",
        ],
    }


def _conditioned(truth: Floats, support: Floats, epsilon: float) -> Floats:
    """Double geometric laws given that the result is in `support`, one row for each true value."""
    weights = np.exp(-epsilon * np.abs(support - truth[:, None]))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def quantile_value(v: float, eps: float, printed: bool = False) -> int:
    """F^{-1}(v) of the double geometric law; `printed`: as in Appendix B, without the -1.

    >>> quantile_value(0.63, 0.5), quantile_value(0.63, 0.5, printed=True)
    (1, 2)
    """
    a = math.exp(-eps)
    if v <= 1 / (1 + a):
        return math.ceil((-math.log(v) - math.log1p(a)) / math.log(a))
    above = math.ceil((math.log1p(-v) + math.log1p(a)) / math.log(a))
    return above if printed else above - 1


def printed_log_pmf(u: Any, eps: Fraction) -> Any:
    """log mass the printed quantile gives u: positive values are one too large, +1 is empty."""
    at = np.asarray(u)
    shifted = np.where(at > 1, at - 1, at)
    return np.where(at == 1, -np.inf, DoubleGeometric(eps).log_pmf(shifted))


def quantile(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing is drawn
    """The law of the noise with the printed quantile, and the loss of one person's move."""
    eps, law = EPS_CELL, DoubleGeometric(EPS_CELL)
    u = np.arange(-6, 8)
    rows = []
    for words, logs in (("correct", law.log_pmf(u)), ("printed", printed_log_pmf(u, eps))):
        moved = law.log_pmf(u - 1) if words == "correct" else printed_log_pmf(u - 1, eps)
        with np.errstate(invalid="ignore"):
            loss = np.abs(moved - logs)
        for k, value in enumerate(u.tolist()):
            size = float(loss[k])
            rounded = "infinite" if math.isinf(size) else round(size, 6)
            rows.append([words, value, float(np.exp(logs[k])), rounded])
    return {
        "columns": ["quantile", "noise", "probability", "loss_of_one_cell"],
        "rows": rows,
        "notes": [
            "Appendix B prints ceil(...) for the upper branch where ceil(...) - 1 is right: +1 is "
            "never drawn. A released count of s + 1 then rules s out: no epsilon holds.",
            "The loss is |log p(u - 1) - log p(u)|: what one count more or less does to one cell.",
        ],
        "chart": {"kind": "bar", "x": "noise", "y": "probability", "by": "quantile"},
    }


def stopped_chain(study: Study) -> dict[str, Any]:
    """Loss of Algorithm 1 after t steps from the truth: four bins, five people."""
    steps = (1, 10, 50, 100) if study.quick else (1, 2, 5, 10, 20, 50, 100, 200, 500)
    chain = StoppedChain()
    limit = chain.loss(None)
    rows = [[t, "stopped chain", chain.loss(t)] for t in steps]
    rows += [[t, "exact draw", limit] for t in steps]
    return {
        "columns": ["steps", "sampler", "loss"],
        "rows": rows,
        "notes": [
            "eps_cell = 0.5, proposal 0.6; neighbours are one record apart; exact, by powers of "
            f"the transition matrices. The conditional mechanism loses {limit:.4f}.",
            "A chain that starts at the confidential table and is stopped publishes that table too "
            "often; how much it adds must be proved, or exact draws used.",
        ],
        "chart": {
            "kind": "line",
            "x": "steps",
            "y": "loss",
            "by": "sampler",
            "x_log": True,
            "x_title": "steps of the chain",
            "y_title": "loss (epsilon)",
        },
    }


def rejection(study: Study) -> dict[str, Any]:
    """Proposals per exact draw by rejection, for several proposals, predicted and counted."""
    randomness = SeededRandomness(study.seed)
    log_Z, rows = normaliser(TABLE1), []
    plain = 46 * math.log(math.tanh(float(EPS_CELL) / 2)) + log_Z
    rows.append(["the unconstrained mechanism", 0.5, math.exp(-plain), None])
    for percent in (50,) if study.quick else (50, 45):
        chain = PrintedChain(TABLE1, eps_proposal=Fraction(percent, 100))
        inside = 43 * math.log(math.tanh(percent / 200)) + log_Z
        draws = 20 if study.quick else 2_000 if percent == 50 else 100
        study.progress(f"rejection, proposal eps {percent / 100}")
        accepted = chain.reject(randomness, draws)[1] / draws
        rows.append(["43 cells proposed, 3 solved for", percent / 100, math.exp(-inside), accepted])
    return {
        "columns": ["proposal", "proposal_eps", "proposals_per_draw", "counted"],
        "rows": rows,
        "notes": [
            "Exact and independent draws, unlike the chain's. A proposal with eps above eps_cell "
            "has lighter tails than the law and cannot be used.",
            "The second column is 1 / (Z(s) q(s)), from the exact normaliser.",
        ],
    }


@dataclass(frozen=True)
class StoppedChain:
    """Algorithm 1 on `bins` bins with total n; the last bin is solved for."""

    bins: int = 4
    people: int = 5
    eps: float = 0.5
    eps_proposal: float = 0.6

    @cached_property
    def tables(self) -> Ints:
        """All conforming tables."""
        gaps = combinations(range(self.people + self.bins - 1), self.bins - 1)
        edges = np.array([(-1, *g, self.people + self.bins - 1) for g in gaps])
        return np.asarray(np.diff(edges, axis=1) - 1)

    @cached_property
    def neighbours(self) -> list[tuple[int, int]]:
        """Ordered pairs of tables one person's move apart."""
        far = np.abs(self.tables[:, None] - self.tables[None]).sum(axis=2)
        return [(int(i), int(j)) for i, j in zip(*np.nonzero(far == 2), strict=True)]

    def transition(self, truth: int) -> Floats:
        """P of the chain whose confidential table is number `truth`."""
        u = np.abs(self.tables - self.tables[truth])
        a = math.exp(-self.eps_proposal)
        log_q = (self.bins - 1) * math.log((1 - a) / (1 + a)) - self.eps_proposal * u[:, :-1].sum(1)
        log_w = -self.eps * u.sum(axis=1) - log_q
        accept = np.exp(np.minimum(0.0, log_w[None, :] - log_w[:, None]))
        P = np.exp(log_q)[None, :] * accept
        np.fill_diagonal(P, 0.0)
        np.fill_diagonal(P, 1.0 - P.sum(axis=1))  # proposals that do not conform stay, too
        return np.asarray(P)

    def laws(self, steps: int | None) -> Floats:
        """Row s: the law of the released table when the truth is s; None for the limit."""
        if steps is None:
            far = np.abs(self.tables[:, None] - self.tables[None]).sum(axis=2)
            weight = np.exp(-self.eps * far)
            return np.asarray(weight / weight.sum(axis=1, keepdims=True))
        rows = [
            np.linalg.matrix_power(self.transition(s), steps)[s] for s in range(len(self.tables))
        ]
        return np.stack(rows)

    def loss(self, steps: int | None) -> float:
        """Largest log ratio over neighbours and released tables; infinite if a support differs."""
        law = self.laws(steps)
        with np.errstate(divide="ignore"):
            logs = np.log(law)
        return max(float(np.max(logs[i] - logs[j])) for i, j in self.neighbours)


EQUATIONS = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]]  # of atom totals


class PairLoss(NamedTuple):
    """Exact loss, the part of it that is distance, and the largest log ratio of normalisers."""

    loss: float
    distance: float
    ratio: float

    def gamma(self, records: int, eps_cell: float) -> tuple[float, float]:
        """(exact gamma, the paper's gamma* of (2.5)), both with eps per person = 2 eps_cell."""
        budget = records * 2 * eps_cell
        return self.loss / budget - 1, max(self.ratio, 0.0) / budget


def exact_loss(tables: Any, eps_cell: float, records: int) -> PairLoss:
    """Loss of conditioning on a set of tables, over pairs at most `records` records apart."""
    far = np.abs(tables[:, None] - tables[None]).sum(axis=2)
    log_Z = np.log(np.exp(-eps_cell * far).sum(axis=1))
    near = (far <= 2 * records) & (far > 0)
    ratio = np.where(near, log_Z[None, :] - log_Z[:, None], -math.inf)  # [s, s']: Z(s')/Z(s)
    loss = eps_cell * far + ratio
    s, other = np.unravel_index(int(np.argmax(loss)), loss.shape)
    return PairLoss(float(loss.max()), float(eps_cell * far[s, other]), float(ratio.max()))


def two_bins(people: int) -> Ints:
    """All tables of two bins with this total."""
    first = np.arange(people + 1)
    return np.stack([first, people - first], axis=1)


def two_way_tables(rows: Sequence[int], columns: Sequence[int]) -> Ints:
    """All nonnegative tables with these margins, flat."""
    inner = [range(min(r, c) + 1) for r in rows[:-1] for c in columns[:-1]]
    tables = []
    for cells in product(*inner):
        table = np.zeros((len(rows), len(columns)), dtype=np.int64)
        table[:-1, :-1] = np.array(cells).reshape(len(rows) - 1, len(columns) - 1)
        table[:-1, -1] = np.array(rows[:-1]) - table[:-1, :-1].sum(axis=1)
        table[-1] = np.array(columns) - table[:-1].sum(axis=0)
        if table.min() >= 0:
            tables.append(table.reshape(-1))
    return np.array(tables)


def normaliser(s: Ints, eps_cell: Fraction = EPS_CELL) -> float:
    """log Z(s) of the paper's table given its three figures and m >= 0."""
    return CrossingGroups(ATOMS, s, EQUATIONS, DoubleGeometric(eps_cell)).log_Z


def table1_loss(moves: Sequence[Ints]) -> float:
    """Largest loss of a move of Table 1, up or down: both (s, s + u) and (s + u, s)."""
    normalisers: dict[Any, float] = {}

    def log_Z(s: Ints) -> float:
        # cells of one atom are exchangeable: sorted, equal tables share a normaliser
        key = tuple(tuple(sorted(s[atom == ATOMS].tolist())) for atom in range(4))
        if key not in normalisers:
            normalisers[key] = normaliser(s, EPS_CELL)
        return normalisers[key]

    own = log_Z(TABLE1)
    return max(
        float(EPS_CELL) * float(np.abs(u).sum()) + abs(log_Z(TABLE1 + u) - own) for u in moves
    )


def moves_inside_atoms() -> list[Ints]:
    """One person of Table 1 moves inside an atom, one move of each kind."""
    kinds: dict[tuple[int, ...], Ints] = {}
    for i, j in product(range(46), repeat=2):
        if i != j and ATOMS[i] == ATOMS[j] and TABLE1[j] > 0:
            u = np.zeros(46, np.int64)
            u[i], u[j] = 1, -1
            kinds[int(ATOMS[i]), int(TABLE1[i]), int(TABLE1[j])] = u
    return list(kinds.values())


def sex_swaps() -> list[Ints]:
    """Two minors of Table 1 exchange sexes: the smallest move between atoms."""
    kinds = {}
    for females, males in product(permutations(range(4), 2), permutations(range(23, 27), 2)):
        cells = [*females, *males]
        u = np.zeros(46, np.int64)
        u[cells] = [1, -1, 1, -1]
        if (TABLE1 + u).min() >= 0:
            kinds[tuple(TABLE1[cells].tolist())] = u
    return list(kinds.values())


def run(study: Study) -> dict[str, Any]:
    """The item: exact loss, gamma and gamma* for small universes, and for Table 1."""
    cases = [(f"two bins, n = {n}", two_bins(n), e) for n in (1, 3, 10, 50) for e in (0.5, 1.0)]
    margins = (((2, 2), (2, 2)), ((10, 10), (10, 10)), ((2, 2, 2), (2, 2, 2)))
    cases += [(f"margins {r} x {c}", two_way_tables(r, c), 0.5) for r, c in margins]
    rows = []
    for name, tables, eps in cases:
        for records in (1, 2, 3):
            row = _row(name, tables, eps, records)
            rows += [row] if row else []
    if not study.quick:
        study.progress("normalisers of tables next to Table 1")
        inside, two = table1_loss(moves_inside_atoms()), table1_loss(sex_swaps())
        rows.append(
            ["Table 1, one person moves inside an atom", 0.5, 1, inside, 1.0, inside - 1, None]
        )
        rows.append(["Table 1, two minors exchange sexes", 0.5, 2, two, 2.0, two / 2 - 1, None])
    return {
        "columns": ["universe", "eps_cell", "records", "loss", "adjacency", "gamma", "gamma_star"],
        "rows": rows,
        "notes": [
            "eps per person is 2 eps_cell; loss is exact, by enumeration; adjacency is its first "
            "term, eps_cell times the distance.",
            "gamma = loss / (records x 2 eps_cell) - 1. The -0.5 printed for Example 4.1 is wrong: "
            "flipping one bit keeps the total, so neighbours are one record apart.",
        ],
    }


def _row(name: str, tables: Ints, eps: float, records: int) -> list[Any] | None:
    far = np.abs(tables[:, None] - tables[None]).sum(axis=2)
    if not np.any((far > 0) & (far <= 2 * records)):
        return None
    loss = exact_loss(tables, eps, records)
    return [name, eps, records, loss.loss, loss.distance, *loss.gamma(records, eps)]
