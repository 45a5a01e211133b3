"""Broken laws and broken accounts for the list in `planted`: each function says whether its check
notices, with the defect in place or without it.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from flint import arb, ctx

from congenial import Budget, Ledger, ReplaceOne, SeededRandomness, SemiAdjacent, calibrate
from congenial.audit import UNIVERSES, audit_laws, exact_audit
from congenial.figures import publish, structural_zeros, total
from congenial.pairs.universe import Universe, selected
from congenial.papers.congenial_dp.congenial_statements import StoppedChain
from congenial.privacy import Guarantee, Pure, joint_loss
from congenial.sampling.exact_decisions import ball
from congenial.sampling.lattice_gaussian import CrossingGaussian
from tests.pairs.brute import table_of
from tests.sampling.conftest import p_value
from tests.sampling.test_lattice_gaussian import SMALL, enumerated, tally
from tests.worlds import levels

ALPHA = 1e-6  # false-alarm rate of every statistical check
SEED = 20_261_116
VOTING = next(universe for universe in UNIVERSES if universe.label == "voting age")


# ---- laws ----------------------------------------------------------------------------------------


def inverted_in_doubles(eps: Fraction, width: int, bits: int = 53) -> np.ndarray:
    """log masses on -width .. width of F^{-1}(U), U one of 2^53 equally likely doubles."""
    with ctx.workprec(300):
        a = (-ball(eps)).exp()

        def below(v: int) -> int:  # how many of them lie at or below F(v)
            F = 1 - a ** (v + 1) / (1 + a) if v >= 0 else a ** (-v) / (1 + a)
            return int((F * arb(2) ** bits).floor().unique_fmpz())

        counts = np.diff([below(v) for v in range(-width - 1, width + 1)]).astype(float)
    with np.errstate(divide="ignore"):
        return np.log(counts) - bits * math.log(2)


def shifted_by_one(logs: np.ndarray, eps: Fraction) -> bool:
    """Two counts that differ by one, released with this noise: is eps broken?"""
    return bool(audit_laws(Pure(eps), [(logs[:-1], logs[1:]), (logs[1:], logs[:-1])]).violations())


def stopped_chain(steps: int | None) -> bool:
    """Algorithm 1 after so many steps from the truth: is the loss of its limit exceeded?"""
    chain = StoppedChain()
    with np.errstate(divide="ignore"):
        logs = np.log(chain.laws(steps))
    pairs = [(logs[i], logs[j]) for i, j in chain.neighbours]
    return bool(audit_laws(Pure(chain.loss(None)), pairs).violations())


def klein(accepts: bool) -> bool:
    """Draws of Klein's sampler against the enumerated law at sigma = 0.7: rejected?"""
    u, w = enumerated((3, 4), SMALL, 3)
    noise = CrossingGaussian.of_table((3, 4), SMALL)
    if not accepts:
        noise.sampler.__dict__["sure"] = 2**64 - 1  # every proposal is taken
    draws = noise.draw_many(SeededRandomness(SEED), 60_000)
    return p_value(*tally(draws, u, w / w.sum())) < ALPHA


# ---- accounts ------------------------------------------------------------------------------------


def forgotten(ledger: Ledger) -> Fraction:
    """What a ledger says that starts anew with every adjacency."""
    now = ledger.adjacency.to_dict()
    kept = [e.description for e in ledger.entries() if e.guarantee["adjacency"] == now]
    return joint_loss(kept, ledger.adjacency).epsilon if kept else Fraction(0)


def overspent(account: Callable[[Ledger], Fraction]) -> bool:
    """Two releases, then figures are published: does the account show less than pairs lose?"""
    table = VOTING.table
    before, public = ReplaceOne(table.schema), publish(table, *VOTING.statements)
    mechanisms = [calibrate("auto", Guarantee.pure(1, before), ("age",)) for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(Path(folder) / "l.sqlite", table.schema, budget=Budget(epsilon=9))
        for k, mechanism in enumerate(mechanisms):
            with ledger.reserve(mechanism.description, mechanism.guarantee, f"{k}") as entry:
                entry.mark_drawn()
                entry.commit("d" * 64)
        ledger.publish(public, accept_weaker=True)
        told = account(ledger)
    # Independent releases at their most telling outputs: log ratios add.
    lost = sum(exact_audit(m, VOTING.pairs(), radius=1).log_ratio for m in mechanisms)
    return lost > float(told) + 1e-9


def stand_ins(shared_rule: bool) -> bool:
    """Two releases, by a and by b, each compared with a stand-in of (0, 0): is the joint loss
    above the sum of the two promises, whatever the stand-in?
    """
    schema = levels(a=2, b=2)
    table = table_of(schema, (1, 2))  # answers (0, 1) and (1, 0); nobody has (0, 0)
    public = publish(table, total(), structural_zeros("a = '1' and b = '1'"))
    mechanisms = [
        calibrate("auto", Guarantee.pure(1, SemiAdjacent(public, "existential")), (name,))
        for name in ("a", "b")
    ]

    def losses(other) -> list[float]:
        pair = [(table, other), (other, table)]
        return [exact_audit(m, pair, radius=2).log_ratio for m in mechanisms]

    others = [t for t in Universe(public).tables(2) if t.counts[0, 0] > 0]
    if shared_rule:
        others = [selected(public, table, (0, 0))]
        told = sum(losses(others[0]))
    else:
        told = sum(min(losses(t)[k] for t in others) for k in range(2))  # each its own: 0 and 0
    return min(sum(losses(t)) for t in others) > told + 1e-9
