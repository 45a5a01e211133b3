"""Shared by the tests of sums drawn down a tree: enumeration and the exact law of an attempt."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from flint import arb, ctx

from congenial.sampling import DoubleGeometric


def tables(lows, highs):
    axes = [np.arange(a, b + 1) for a, b in zip(lows, highs, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def weights(law, u):
    """Product of cell weights, in floats, written out independently."""
    u = np.asarray(u, dtype=float)
    if isinstance(law, DoubleGeometric):
        return np.exp(-float(law.eps) * np.abs(u).sum(axis=1))
    return np.exp(-(u * u).sum(axis=1) / float(2 * law.sigma2))


def counts_and_probs(draws, places, w):
    """Counts of listed tables with an expectation of 8 or more, and of the rest, and their
    probabilities.
    """
    probs = w / w.sum()
    often = probs * len(draws) >= 8
    seen = Counter(map(tuple, draws.tolist()))
    counts = [seen[tuple(p)] for p in places[often].tolist()]
    return [*counts, len(draws) - sum(counts)], [*probs[often], 1 - probs[often].sum()]


def attempt(splitter, row, leaves):
    """log of the probability that one attempt proposes these leaves and keeps them, and the largest
    log factor, all as balls at 256 bits.
    """
    with ctx.workprec(256):
        values, law = splitter.values(np.asarray(leaves)), splitter.law
        assert values[splitter._plan[1]].tolist() == list(row)
        total, factors = arb(0), []
        for t, x, y in splitter.splits(values):
            factors.append(law.log_factor(t, x, y))
            total += law.chance(t, x, y).log() + factors[-1]
        for t, u in splitter.ends(values):
            factors.append(law.log_leaf(t, u))
            total += factors[-1]
        return total, max(float(f.upper()) for f in factors)


def constant(values):
    """Whether balls agree to 60 digits."""
    with ctx.workprec(256):
        middle = values[0]
        return all(abs(float((v - middle).upper())) < 1e-60 for v in values)


def log_sum(w):
    return math.log(math.fsum(w))
