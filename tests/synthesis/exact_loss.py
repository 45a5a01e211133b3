"""Exact privacy losses of small laws, in ball arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
from flint import arb

from congenial.sampling.exact_decisions import ball, working_precision
from congenial.synthesis.weighted_posterior import Finite, WeightedComposition


def log_probabilities(law: Finite | WeightedComposition, outcomes=None) -> list:
    """log P of every outcome as balls of 200 bits."""
    if isinstance(law, Finite):
        weights = [law.exact_log_weight(j) for j in range(len(law.total))]
    else:
        weights = [law.exact_log_weight(np.array(c)) for c in outcomes]
    top = max(weights)
    logs = [ball(w - top) for w in weights]
    total = arb(0)
    for one in logs:
        total += one.exp()
    return [one - total.log() for one in logs]


def loss(a: list, b: list) -> arb:
    """An upper bound of max |log P_a - log P_b| to some 50 digits: no rounding to a double."""
    with working_precision(200):
        return max(abs(x - y).upper() for x, y in zip(a, b, strict=True))


def compositions(law: WeightedComposition) -> list[tuple[int, ...]]:
    """All outcomes of a composition law."""
    cells = len(law.counts)

    def extend(head: tuple[int, ...], left: int) -> list[tuple[int, ...]]:
        if len(head) == cells - 1:
            return [(*head, left)] if law.low <= left <= law.high else []
        found = []
        for value in range(law.low, law.high + 1):
            found += extend((*head, value), left - value)
        return found

    return extend((), law.size)


def databases(levels: int, n: int) -> list[np.ndarray]:
    """All tables of n people over so many levels."""
    return [
        np.bincount(np.array(people, dtype=np.int64), minlength=levels)
        for people in combinations_with_replacement(range(levels), n)
    ]


def largest_losses(law_of, tables: dict[int, list[np.ndarray]]) -> tuple[arb, arb]:
    """Largest loss over pairs one record apart: (added or removed, replaced)."""
    with working_precision(200):
        found = {n: [(t, log_probabilities(law_of(t))) for t in some] for n, some in tables.items()}
        added = max(
            loss(p, q)
            for n in found
            if n + 1 in found
            for s, p in found[n]
            for t, q in found[n + 1]
            if (t >= s).all()
        )
        replaced = max(
            loss(p, q)
            for some in found.values()
            for s, p in some
            for t, q in some
            if np.abs(s - t).sum() == 2
        )
    return added, replaced


M = Fraction(1, 2)  # exact as a double, so that losses can be compared with it
