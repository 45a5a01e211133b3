"""The law of a count, and redraws along lines, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from congenial.inference.samplers import count_kernels, line_kernels
from tests.inference.exact import ALPHA
from tests.sampling.conftest import p_value

SEED = 71
NO_TABLE = np.zeros((1, 1))
CELLS = {
    "Poisson": (50.0, 0, -1, 0),
    "negative binomial": (0.98, 2.5, -1, 0),
    "negative binomial, spike at 0": (0.99, 0.3, -1, 0),
    "Jeffreys": (1.0, 0.5, -1, 0),
    "binomial": (0.4, 0, 80, 0),
    "beta-binomial, two spikes": (1.0, 0.5, 200, 0.5),
    "beta-binomial": (1.0, 2.0, 200, 3.0),
}
NOISES = {"l1 wide": (0, 0.05), "l1": (0, 1.0), "l2 wide": (1, 0.001), "l2": (1, 0.5)}


def log_weights(x, y, cell, kind, scale):
    c, a, n, b = cell
    possible = (x >= 0) & ((n < 0) | (x <= n))
    x = np.where(possible, x, 0)
    w = x * np.log(c) - gammaln(x + 1)
    w = w + (gammaln(x + a) if a > 0 else 0)
    if n >= 0:
        w = w - gammaln(n - x + 1) + (gammaln(n - x + b) if b > 0 else 0)
    noise = -scale * (np.abs(y - x) if kind == 0 else (y - x) ** 2)
    return np.where(possible, w + noise, -np.inf)


def argument(kind, scale):
    return np.exp(scale) if kind == 0 else scale


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", CELLS)
def test_the_law_of_a_count_equals_its_sum(name, noise):
    cell, (kind, scale) = np.array(CELLS[name], dtype=float), NOISES[noise]
    x = np.arange(20_000 if cell[2] < 0 else int(cell[2]) + 1)
    for y in (-30.0, 0.0, 7.0, 60.0, 400.0, 55.5):
        first, length, second, weights, unit = count_kernels.cell_law(
            y, cell, kind, argument(kind, scale), NO_TABLE[0]
        )
        at = np.concatenate([first + np.arange(length), second + np.arange(len(weights) - length)])
        logs = log_weights(x, y, cell, kind, scale)
        exact = np.exp(logs - logs.max())
        found = np.zeros(len(x))
        found[at] = weights / weights.sum()
        assert np.abs(found - exact / exact.sum()).sum() < 1e-10
        log_sum = logs.max() + np.log(exact.sum())
        assert unit + np.log(weights.sum()) == pytest.approx(log_sum, abs=1e-9)
        marginal = count_kernels.log_marginals(
            np.array([y]),
            cell[None, None],
            kind,
            np.array([argument(kind, scale)]),
            NO_TABLE,
            np.zeros(1, np.int64),
        )
        assert marginal[0, 0] == pytest.approx(log_sum, abs=1e-8)


LINES = {
    "one cell": ([(50, 0, -1, 0)], (0, 0.05), [60], [40], [0, -1, -1, -1], None),
    "one cell at zero": ([(50, 0, -1, 0)], (0, 1.0), [-5], [0], [0, -1, -1, -1], None),
    "l2": ([(0.9, 2, -1, 0)], (1, 0.005), [30], [3], [0, -1, -1, -1], None),
    "pair": ([(1, 1, -1, 0), (1, 1, -1, 0)], (0, 0.5), [5, 7], [4, 6], [0, -1, 1, -1], None),
    "pair with capacities": (
        [(2, 0, 30, 0), (1, 2, 50, 3)], (0, 0.03), [10, 40], [11, 35], [0, -1, 1, -1], None,
    ),
    "swap": (
        [(5, 0, -1, 0), (2, 0, -1, 0), (1, 2, -1, 0), (3, 1, -1, 0)],
        (0, 0.2), [5, 3, 9, 20], [4, 4, 10, 18], [0, 1, 2, 3], None,
    ),
    "free total": (
        [(0.3, 0, -1, 0), (0.7, 0, -1, 0)], (0, 0.2), [5, 9], [4, 4], [0, -1, -1, -1], [0, 0],
    ),
    "between free totals": (
        [(0.3, 0, -1, 0), (0.7, 0, -1, 0), (0.4, 0, -1, 0)],
        (0, 0.2), [5, 9, 12], [4, 4, 10], [0, -1, 2, -1], [0, 0, 1],
    ),
    "sums with noise": (
        [(1, 1, -1, 0), (3, 0, -1, 0), (1, 2, -1, 0)],
        (0, 0.2), [5, 7, 9], [4, 6, 8], [0, -1, 2, -1], None,
    ),
    "a free cell below sums with noise": (
        [(20, 0, -1, 0), (3, 0, -1, 0)], (0, 0.2), [15, 7], [4, 6], [0, -1, -1, -1], None,
    ),
    "swap below sums with noise": (
        [(5, 0, -1, 0), (2, 0, -1, 0), (1, 2, -1, 0), (3, 1, -1, 0)],
        (0, 0.2), [5, 3, 9, 20], [4, 4, 10, 18], [0, 1, 2, 3], None,
    ),
    "swap below sums with Gaussian noise": (
        [(5, 0, -1, 0), (2, 0, -1, 0), (1, 2, -1, 0), (3, 1, -1, 0)],
        (1, 0.0), [0, 0, 0, 0], [4, 4, 10, 18], [0, 1, 2, 3], None,
    ),
    "both ends that go up in one modelled count": (
        [(6, 0, -1, 0), (1, 3, -1, 0), (2, 0, 40, 0)],
        (1, 0.02), [5, 3, 9, 20, 7], [4, 4, 10, 18, 7], [0, 1, 2, 3], None,
    ),
}  # fmt: skip

# the modelled count that each cell belongs to, where that is not the cell itself
OWNERS = {"both ends that go up in one modelled count": [0, 0, 1, 2, 1]}

# node above each cell at each level, eps of the nodes, and the noise there now
SUMS = {
    "sums with noise": ([[0, 1], [0, 2], [0, 3]], [0.5, 0.3, 0.7, 0.1], [2, 3, -4, -9]),
    "a free cell below sums with noise": ([[0], [0]], [0.4], [-6]),
    "swap below sums with noise": ([[0, 2], [0, 3], [1, 2], [1, 4]], [0.4, 0.1, 3, 0.2, 0.3],
                                   [-6, 2, 5, 1, 8]),
    "swap below sums with Gaussian noise": (
        [[0, 2], [0, 3], [1, 2], [1, 4]], [0.01, 0.02, 3, 0.05, 0.004], [-6, 2, 5, 1, 8],
    ),
}  # fmt: skip
SQUARED = "swap below sums with Gaussian noise"


def sums_of(name, cells):
    """The nodes above the cells, their eps and their noise; none for most lines."""
    above, rates, gaps = SUMS.get(name, (np.zeros((cells, 0)), [], []))
    return np.array(above, dtype=np.int64), np.array(rates, dtype=float), np.array(gaps, dtype=int)


def log_of_sums(name, line, t):
    """What the noise in sums adds to the log weight of each move."""
    above, rates, gaps = sums_of(name, 4)
    noise = np.repeat(gaps[:, None], len(t), axis=1)
    for k, j in enumerate(line):
        if j >= 0:
            for node in above[j]:
                noise[node] += -t if k < 2 else t
    size = noise**2 if name == SQUARED else np.abs(noise)
    return -(rates[:, None] * size).sum(axis=0)


def log_of_counts(name, x, line, t):
    """Log weight of the modelled counts at each move: c^s G(s + a)/G(s + k), capacities kept."""
    cells, owner = LINES[name][0], np.array(OWNERS.get(name, range(len(x))))
    moved = np.repeat(np.asarray(x)[:, None], len(t), axis=1)
    for k, j in enumerate(line):
        if j >= 0:
            moved[j] += t if k < 2 else -t
    logs = np.where((moved < 0).any(axis=0), -np.inf, 0.0)
    for m, (c, a, n, b) in enumerate(cells):
        s, width = moved[owner == m].sum(axis=0), np.count_nonzero(owner == m)
        inside = np.where((s >= 0) & ((n < 0) | (s <= n)), s, 0)
        logs += np.where(inside == s, 0, -np.inf) + inside * np.log(c) - gammaln(inside + width)
        logs += gammaln(inside + a) if a > 0 else 0
        if n >= 0:
            logs += -gammaln(n - inside + 1) + (gammaln(n - inside + b) if b > 0 else 0)
    return logs


def moves(name, rng, chains=20_000):
    """Moves drawn along a line, and the log weight of each move in -3000 .. 3000."""
    cells, (kind, scale), y, x, line, parts = LINES[name]
    x = np.array(x, dtype=np.int64)
    part = np.zeros(len(x), np.int64) if parts is None else np.array(parts, dtype=np.int64)
    totals = np.zeros((1, 0), np.int64) if parts is None else np.bincount(part, x)[None].astype(int)
    tables = np.tile(x, (chains, 1))
    owner = np.array(OWNERS.get(name, range(len(x))), dtype=np.int64)
    above, rates, gaps = sums_of(name, len(x))
    line_kernels.sweep(
        tables,
        np.array([line]),
        rng,
        np.array(y, dtype=float),
        np.tile(np.array(cells, dtype=float), (chains, 1, 1)),
        kind,
        np.full(len(x), argument(kind, scale)),
        NO_TABLE,
        np.zeros(len(x), np.int64),
        part,
        np.tile(totals, (chains, 1)),
        above,
        rates,
        np.tile(gaps, (chains, 1)),
        name == SQUARED,
        owner,
        np.bincount(owner).astype(float),
        np.tile(np.bincount(owner, x).astype(np.int64), (chains, 1)),
        np.empty((8 + 4 * above.shape[1], 3)),
    )
    t = np.arange(-3000, 3001)
    logs = log_of_sums(name, line, t) + log_of_counts(name, x, line, t)
    change = np.zeros((totals.shape[1], len(t)), dtype=int)
    for k, j in enumerate(line):
        if j >= 0:
            sign = 1 if k < 2 else -1
            away = np.abs(y[j] - x[j] - sign * t)
            logs = logs - scale * (away if kind == 0 else away**2)
            if parts is not None:
                change[part[j]] += sign * t
    if parts is not None:
        logs = logs + gammaln(np.maximum(totals[0][:, None] + change, 0) + 1).sum(axis=0)
    return tables[:, line[0]] - x[line[0]], np.exp(logs - logs[np.isfinite(logs)].max())


@pytest.mark.parametrize("name", LINES)
def test_redraws_along_a_line_are_exact(name):
    t, mass = moves(name, np.random.default_rng(SEED))
    counts = np.bincount(t + 3000, minlength=len(mass))
    assert p_value(counts, mass / mass.sum()) >= ALPHA


def test_negative_control_another_law_is_noticed():
    t, mass = moves("pair", np.random.default_rng(SEED))
    counts = np.bincount(t + 3000, minlength=len(mass))
    wrong = mass**0.8  # a fifth of the log weights missing
    assert p_value(counts, wrong / wrong.sum()) < ALPHA


@pytest.mark.parametrize("name", SUMS)
def test_negative_control_noise_in_sums_left_out_is_noticed(name):
    t, mass = moves(name, np.random.default_rng(SEED))
    counts = np.bincount(t + 3000, minlength=len(mass))
    t = np.arange(-3000, 3001)
    possible = (np.abs(t) < 200) & (mass > 0)
    wrong = np.zeros(len(mass))
    wrong[possible] = mass[possible] / np.exp(log_of_sums(name, LINES[name][4], t[possible]))
    assert p_value(counts, wrong / wrong.sum()) < ALPHA
