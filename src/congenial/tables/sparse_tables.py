"""Targets of whole counts in tables whose noise is wide: posterior means by empirical Bayes.

Least squares with counts >= 0 takes from large cells what empty ones cannot give back. Where a
table has many noisy cells, the law of its true counts can be fitted to its estimates instead, and
each count is aimed at its posterior mean, with its posterior variance:

    estimate ~ Normal(count, s^2),   count ~ sum_k w_k Normal(g_k, h_k^2),

g_0 = h_0 = 0 (empty cells), other g_k from 1 upwards by a constant factor, h_k in proportion, so
that a count far above its noise keeps its estimate. The weights w maximise the likelihood, by EM
(Kiefer and Wolfowitz 1956, for the law of means). Errors of cells are correlated and not quite
normal, so this is a composite likelihood: it decides targets only, no estimate and no interval.

Then cells x >= 0 with every exact figure make the sum over tables of r (T x - m)^2 / (v + 1/12)
least. 1/12 is the variance of rounding. r is above 1 because aims err in one direction, so that
sums of many are less sure than their variances say: n for n cells of one variance, fewer where a
few cells carry nearly all of it, n^2 for measured tables that keep their estimates. Which are
aimed at posterior means is known before a draw, from their numbers of cells and their standard
deviations (`shrinks`); `python -m benchmarks tables_sparse` says what it gains and loses. Public
values in, public values out; no randomness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Floats
from congenial.tables.gradient_inverse import indicators
from congenial.tables.measurements import Measurements

LARGEST = 10_000  # cells of all tables together
FEWEST = 48  # noisy cells from which a law of counts can be learned
WIDEST = 5.0  # standard deviation from which it is worth while
FACTOR, WIDTH = 1.35, 0.3  # from one component of the law to the next; its width by its place
STEPS, STILL = 500, 1e-6  # of EM, and the change of weights at which it stops
ROUNDING = 1 / 12
GRID = 2.0**-20  # on which sums of targets are exact
WORDS = (
    "The noise is large beside many counts. So each printed count is the best guess from all "
    "estimates of its table (empirical Bayes), rounded so that tables add up; it can differ from "
    "its estimate. For sums that no table shows add estimates. None of this changes the intervals."
)
Names = tuple[str, ...]


def sparse_tables(
    work: Measurements, tables: Iterable[Names], deviations: Callable[[Names], Floats]
) -> dict[Names, Floats]:
    """Standard deviations of all tables where counts of some are aimed at posterior means.

    Empty where none are: known before a draw.
    """
    tables = tuple(dict.fromkeys(tables))
    if work.size > LARGEST or not any(work.margin(names).size == work.size for names in tables):
        return {}
    errors = {names: deviations(names) for names in tables}
    return errors if any(map(shrinks, errors.values())) else {}


def shrinks(deviations: Floats) -> bool:
    """Whether a table's counts are aimed at posterior means, from standard deviations alone.

    >>> shrinks(np.full(63, 66.0)), shrinks(np.full(63, 2.0)), shrinks(np.full(4, 66.0))
    (True, False, False)
    """
    noisy = deviations[deviations > 0]
    return bool(noisy.size >= FEWEST and np.median(noisy) >= WIDEST)


def posterior(t: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Posterior means and variances of counts whose estimates are t with standard deviations s."""
    top = max(float(np.max(t + s)), 1.0)
    steps = FACTOR ** np.arange(int(np.ceil(np.log(top) / np.log(FACTOR))) + 1)
    g = np.append(0.0, steps)
    h2 = (WIDTH * g) ** 2
    s2 = s[:, None] ** 2
    both = s2 + h2
    log = -0.5 * ((t[:, None] - g) ** 2 / both + np.log(both))
    likelihood = np.exp(log - log.max(axis=1, keepdims=True))
    weights = np.full(len(g), 1 / len(g))
    for _ in range(STEPS):
        shares = likelihood * weights
        shares /= shares.sum(axis=1, keepdims=True)
        before, weights = weights, shares.mean(axis=0)
        if np.abs(weights - before).max() < STILL:
            break
    shares = likelihood * weights
    shares /= shares.sum(axis=1, keepdims=True)
    means, variances = (t[:, None] * h2 + g * s2) / both, s2 * h2 / both
    mean = np.sum(shares * means, axis=1)
    return mean, np.sum(shares * (variances + (means - mean[:, None]) ** 2), axis=1)


def sparse_cells(
    work: Measurements, cells: Floats, deviations: Mapping[Names, Floats]
) -> Floats | None:
    """Nonnegative cells near the aims of all tables, with every figure; None where none are found.

    `cells`: estimates, which have every figure; `deviations`: as `sparse_tables` gives them.
    """
    from congenial.tables.general_fit import displacement, public_tables

    aims = {
        names: _aims(work.margin(names).totals(cells).reshape(-1), _by_attribute(sd, names, work))
        for names, sd in deviations.items()
    }
    finest = next(names for names in deviations if work.margin(names).size == work.size)
    measured = [work.workload.tables[b] for b in work.measured]
    rows, off = [], []
    for names, (aim, variance) in aims.items():
        table = indicators(work.margin(names))
        n = np.asarray(table.sum(axis=1)).reshape(-1)
        if names in measured and not shrinks(deviations[names]):
            priority = n**2  # it has noise of its own, and keeps its estimates
        else:
            priority = np.maximum(1.0, n * _alike(table, n, aims[finest][1] + ROUNDING))
        weights = priority / (variance + ROUNDING)
        rows.append(sp.diags(np.sqrt(weights)) @ table)
        off.append(np.sqrt(weights) * (table @ cells.reshape(-1) - aim))
    _, moved = displacement(
        cells.reshape(-1), public_tables(work), sp.vstack(rows, format="csr"), np.concatenate(off)
    )
    if moved is None:
        return None
    nonnegative = np.maximum(0.0, cells.reshape(-1) + moved)
    return np.asarray(np.rint(nonnegative / GRID) * GRID).reshape(cells.shape)


def _aims(estimates: Floats, deviations: Floats) -> tuple[Floats, Floats]:
    """What each cell of a table is aimed at, and the variance that the aim has."""
    aim, variance = estimates.copy(), deviations**2
    if shrinks(deviations):
        noisy = deviations > 0
        aim[noisy], variance[noisy] = posterior(estimates[noisy], deviations[noisy])
    return aim, variance


def _by_attribute(shaped: Floats, names: Names, work: Measurements) -> Floats:
    """A table with axes in the order named, flat in the order of the cells' attributes."""
    places = [work.names.index(work.workload.schema.axis(name).base) for name in names]
    return shaped.transpose(np.argsort(places)).reshape(-1)


def _alike(table: sp.csr_matrix, n: Floats, variances: Floats) -> Floats:
    """Harmonic mean over mean of the variances of n cells: 1 where they are one number."""
    return np.asarray(n**2 / ((table @ variances) * (table @ (1 / variances))))
