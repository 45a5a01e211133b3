"""Noise at every node of a hierarchy: the exact law by enumeration, chi-square, slow paths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from congenial.errors import StructureError
from congenial.sampling import SeededRandomness, tree_messages, tree_splitter
from congenial.sampling.exact_decisions import ball
from tests.sampling.conditioned import attempt, constant, counts_and_probs, log_sum, tables
from tests.sampling.levels import noise_at_levels

SEED = 41173


@dataclass(frozen=True)
class Nodes:
    """A hierarchy written out: parents, rates, which rate and which nodes are mandated."""

    parents: list[int]
    rates: list[Fraction]
    rate_of: list[int]
    mandated: list[bool]

    @property
    def leaves(self) -> list[int]:
        return [v for v in range(len(self.parents)) if v not in self.parents]

    def law(self):
        """A level for each node that is not a leaf; all leaves have the same rate."""
        below = self.sums(np.eye(len(self.leaves), dtype=np.int64)).T - 1  # -1: not below
        inner = [v for v in range(len(self.parents)) if v in self.parents]
        rates = [None if self.mandated[v] else self.rates[self.rate_of[v]] for v in inner]
        cell = self.rates[self.rate_of[self.leaves[0]]]
        return noise_at_levels(list(zip(below[inner], rates, strict=True)), cell, below.shape[1])

    def sums(self, u):
        """x_v for every node, last axis, leaf by leaf."""
        u = np.asarray(u)
        x = np.zeros((*u.shape[:-1], len(self.parents)), dtype=np.int64)
        for i, leaf in enumerate(self.leaves):
            v = leaf
            while v >= 0:
                x[..., v] += u[..., i]
                v = self.parents[v]
        return x


def of_levels(children, rates, mandated) -> Nodes:
    """A root and levels below it: children[l] lists the children of each node of level l."""
    parents, level_of, last = [-1], [0], [0]
    for level, sizes in enumerate(children, 1):
        above = np.repeat(last, sizes).tolist()
        last = list(range(len(parents), len(parents) + len(above)))
        parents, level_of = parents + above, level_of + [level] * len(above)
    return Nodes(parents, rates, level_of, [mandated[level] for level in level_of])


RAGGED = Nodes(  # a root (mandated) over two nodes of two leaves each and a leaf of its own
    [-1, 0, 0, 0, 1, 1, 2, 2],
    [Fraction(1, 2), Fraction(3, 4), Fraction(3, 2)],
    [0, 0, 1, 2, 2, 2, 2, 2],
    [True] + [False] * 7,
)


def enumerated(nodes: Nodes, reach: int):
    """Conforming leaf noise with entries up to `reach` and its weight, from the definition."""
    n = len(nodes.leaves) - int(nodes.mandated[0])
    u = tables([-reach] * n, [reach] * n)
    if nodes.mandated[0]:
        u = np.column_stack([u, -u.sum(axis=1)])
    eps = np.array([float(nodes.rates[k]) for k in nodes.rate_of])
    return u, np.exp(-np.abs(nodes.sums(u)) @ eps)


def log_weight(nodes: Nodes, u):
    eps = [nodes.rates[k] for k in nodes.rate_of]
    return -ball(sum(e * abs(int(v)) for e, v in zip(eps, nodes.sums(u), strict=True)))


def test_sums():
    """The tree's sets are the nodes but the leaves, the deepest first."""
    u = np.array([1, 2, 3, 4, 5])
    assert RAGGED.sums(u).tolist() == [15, 5, 9, 1, 2, 3, 4, 5]
    assert RAGGED.law().sums.of(u).tolist() == [5, 9, 15]


def test_every_attempt_has_the_stated_law():
    """log q + log acceptance - log w is one constant, and every factor is at most 1."""
    noise = RAGGED.law()
    u = enumerated(RAGGED, 2)[0][::7]
    far = np.array([[60, -60, 0, 0, 0], [5, -70, 200, -170, 35], [-400, 0, 0, 400, 0]])
    ratios = []
    for row in np.concatenate([u, far]):
        # leaves in the order of drawing
        leaves = row[noise.splitter.order]
        log_p, largest = attempt(noise.splitter, [0], leaves)
        with ctx.workprec(256):
            ratios.append(log_p - log_weight(RAGGED, row))
        assert largest <= 0
    assert constant(ratios)


@pytest.mark.parametrize("bits", [8, 11])
def test_narrow_windows_change_nothing(monkeypatch, fits, bits):
    """With windows that hold only 2^-bits, tails and Chernoff proposals do most of the work."""
    monkeypatch.setattr(tree_messages, "_CUT", bits * math.log(2))
    noise = RAGGED.law()
    u, w = enumerated(RAGGED, 5)
    draws = noise.draw_many(SeededRandomness(SEED + bits), 1500)
    assert fits(*counts_and_probs(draws, u, w))
    assert not fits(*counts_and_probs(draws, u, np.sqrt(w)))


def test_ignoring_the_factors_is_noticed(monkeypatch, fits):
    """A planted defect: proposals outside narrow windows kept without their exact factor."""
    monkeypatch.setattr(tree_messages, "_CUT", 8 * math.log(2))
    monkeypatch.setattr(tree_splitter, "happens", lambda log_p, randomness: True)
    noise = RAGGED.law()
    u, w = enumerated(RAGGED, 5)
    assert not fits(*counts_and_probs(noise.draw_many(SeededRandomness(SEED), 1500), u, w))


def test_alias_tables_have_the_integer_weights():
    """Columns add up to n(y) of the split, exactly, and to the rest; every y of a row is common."""
    drawer = RAGGED.law().splitter
    made, checked = drawer._all_aliases, 0
    for t, (first, rows, bits, at_row, at_entry) in enumerate(made.tables.tolist()):
        full, columns = 1 << tree_messages.WHOLE - bits, 1 << bits
        for g in range(rows):
            base, codes, rest = made.of_row[at_row + g].tolist()
            here = at_entry + g * columns
            found = np.zeros(256, dtype=object)
            for e, exact in zip(made.entries[here:][:columns], made.exact[here:], strict=False):
                assert int(e) & 0xFFFF == int(exact) >> 46
                found[int(e) >> 16 & 255] += int(exact)
                found[int(e) >> 24] += full - int(exact)
            weights = [drawer.law.weight(t, first + g, base + k) for k in range(codes)]
            assert found[:codes].tolist() == weights
            assert min(weights) >= tree_messages.RARE
            assert found[255] == rest == (1 << 62) - sum(weights)
            checked += codes
    assert checked > 100


def test_plain_python_has_the_law(fits):
    """What finishes a draw that leaves the windows, from the first split on."""
    noise = RAGGED.law()
    drawer, randomness, kept = noise.splitter, SeededRandomness(SEED), []
    for _ in range(1500):
        values = np.zeros(drawer._plan[3], np.int64)
        if drawer._finish(values, 0, None, randomness):
            kept.append(values[:5])
    u, w = enumerated(RAGGED, 5)
    assert len(kept) > 1450
    assert fits(*counts_and_probs(np.array(kept), u, w))
    assert not fits(*counts_and_probs(np.array(kept), u, np.sqrt(w)))


def test_full_check_accepts_and_rejects():
    """The decision over all common factors, which takes one word in about 2^40."""
    noise = RAGGED.law()
    drawer = noise.splitter
    leaves = np.zeros(5, np.int64)
    with ctx.workprec(128):
        product = attempt(drawer, [0], leaves)[0]
        assert product < 0
    more, values = SeededRandomness(SEED), drawer.values(leaves)
    assert drawer._accept_all((1 << 64) - (1 << 40), values, more)
    assert not drawer._accept_all((1 << 64) - 1, values, more)


@pytest.mark.parametrize("leaves", [(0, 0, 0, 0, 0), (1, 0, 2, -3, 0), (2, -1, -4, 1, 2)])
def test_full_check_decides_at_the_product_of_the_common_factors(leaves):
    """To one word of 2^64, from the factors of `attempt`'s law at 256 bits."""
    drawer = RAGGED.law().splitter
    values, law = drawer.values(np.array(leaves)), drawer.law
    with ctx.workprec(256):
        likely = [v for v in drawer.splits(values) if law.is_likely(*v)]
        product = sum((law.log_factor(t, x, y) for t, x, y in likely), arb(0))
        product += sum((law.log_leaf(t, u) for t, u in drawer.ends(values)), arb(0))
        at = int((product.exp() * arb(2) ** 64).floor().unique_fmpz())
    assert 0 < at < 1 << 64
    more = SeededRandomness(SEED)
    assert drawer._accept_all(at - 1, values, more)
    assert not drawer._accept_all(at + 1, values, more)


def test_free_root_and_free_leaf(fits):
    """A root with a rate and no mandate; a leaf that is a root: plain double geometric."""
    nodes = Nodes([-1, 0, 0, -1], [Fraction(1), Fraction(2)], [0, 1, 1, 1], [False] * 4)
    noise, (u, w) = nodes.law(), enumerated(nodes, 9)
    assert noise.log_Z == pytest.approx(log_sum(w), abs=1e-3)
    draws = noise.draw_many(SeededRandomness(SEED), 40_000)
    assert fits(*counts_and_probs(draws, u, w))
    assert not fits(*counts_and_probs(draws[:, ::-1], u, w))


def test_inner_mandates_cut_the_tree():
    nodes = of_levels(
        [[2], [3, 1], [2, 1, 4, 3]],
        [0, Fraction(1, 3), Fraction(1, 2), Fraction(1)],
        [True, True, False, False],
    )
    x = nodes.sums(nodes.law().draw_many(SeededRandomness(SEED), 200))
    assert not x[:, nodes.mandated].any()
    assert x[:, 3:5].any(axis=0).all()  # the free nodes of the first mandated one do vary
    assert not x[:, 6].any()  # the only child of a mandated node does not


def test_many_leaves_share_messages():
    nodes = of_levels(
        [[7], [11] * 7, [33] * 77], [0, Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)],
        [True, True, False, False],
    )  # fmt: skip
    noise = nodes.law()
    assert len(noise.forest.nodes) < 40
    u = noise.draw(SeededRandomness(SEED))
    assert not nodes.sums(u)[nodes.mandated].any()
    # leaf noise has a variance a little below the unconditioned 2 a / (1 - a)^2 = 7.84
    assert 6.5 < u.var() < 9


def test_levels_must_nest():
    halves, across = np.array([0, 0, 1, 1]), np.array([0, 1, 0, -1])
    with pytest.raises(StructureError, match="do not nest"):
        noise_at_levels([(halves, Fraction(1)), (across, None)], Fraction(1), 4)


def test_a_sum_that_nothing_holds_is_refused():
    with pytest.raises(StructureError, match="neither fixed nor weighted"):
        noise_at_levels([(np.zeros(3, dtype=np.int64), Fraction(0))], Fraction(1), 3)


def test_exactness_is_stated():
    noise = RAGGED.law()
    assert noise.log_ratio_error == 0
    assert arb(noise.splitter.slack) < arb(2) ** -17
