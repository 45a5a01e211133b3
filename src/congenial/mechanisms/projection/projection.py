"""Nonnegative counts by post-processing: the nearest whole, nonnegative table with the same totals.

Free in privacy, because it only sees the draw and the published figures (semi-dp, Proposition 23).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import expect
from congenial.errors import StructureError
from congenial.figures.invariants import Invariants
from congenial.figures.limits import bound_rows
from congenial.figures.support import LOOSE, Support, Tie, support
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.projection.conforming_tables import ConformingTables
from congenial.mechanisms.projection.whole_tables import nearest, nearest_in
from congenial.mechanisms.table_release import Release
from congenial.sampling.randomness import Randomness, SystemRandomness


def project(release: Release, randomness: Randomness | None = None) -> Release:
    """The release with `values` moved to the nearest nonnegative integer table (least squares).

    Cells of a group keep their published total, tied groups keep what is published about them
    together, published bounds hold, and cells of no group are cut at zero. The draw is kept
    in `raw`. Ties are broken at random so that no cell is favoured.

    Formal guarantee: post-processing of the draw and of public figures; it costs no privacy. Cells
    near zero become too large on average, and no law of their error is known: estimate from `raw`.

    Edge cases: a draw that is nonnegative stays as it is; real values are refused.

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> schema = Schema.from_dict({"ill": {"levels": ["no", "yes"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure("1/10", under=ReplaceOne(schema)))
    >>> release = mechanism.release(Table(schema, ["ill"], [40, 0]), SeededRandomness(3))
    >>> projected = project(release, SeededRandomness(4))
    >>> bool((projected.values >= 0).all()), bool((projected.drawn == release.values).all())
    (True, True)
    """
    expect(release, Release, "the release", "Give a released table.", StructureError)
    if release.description.continuous:
        raise StructureError(
            f"'{release.description.mechanism}' releases real numbers; nonnegative = 'project' "
            "is for whole counts.",
            remedy="Use nonnegative = 'no', or an integer mechanism.",
        )
    randomness = SystemRandomness() if randomness is None else randomness
    groups = support(release.description.support, release.table)
    labels = groups.labels.reshape(-1)
    drawn = release.drawn.reshape(-1)
    values = np.where(labels == LOOSE, np.maximum(drawn, 0), drawn)
    order, start = _by_group(labels, groups.groups)
    broken = np.unique(labels[(values < 0) & (labels >= 0)])
    for group in broken[~groups.tied[broken]]:
        cells = order[start[group] : start[group + 1]]
        values[cells] = project_group(drawn[cells], randomness)
    for tie in groups.ties:
        if np.any(np.isin(tie.groups, broken)):
            cells = _cells_of(tie, order, start)
            values[cells] = _project_tie(drawn[cells], tie, groups, randomness)
    bounded = _bounded(release.published, groups)
    if bounded is not None and not bounded.holds(values):
        values = nearest_in(drawn, bounded, randomness)
    return replace(
        release,
        values=values.reshape(release.values.shape),
        raw=release.drawn,
        description=replace(release.description, post_processing="project"),
    )


def rehearse(mechanism: Mechanism, randomness: Randomness | None = None) -> None:
    """Project a made-up draw, so that figures too entangled for it are refused before one is spent.

    The noise is thrown away and the table is made up from the published figures alone: nothing here
    depends on the data. Groups of known totals, and cells of none, can always be projected.
    """
    groups = support(mechanism.description.support, mechanism.description.table)
    mandates = mechanism.adjacency.mandates
    if mandates.values is None or not (groups.ties or mandates.bounds):
        return
    randomness = SystemRandomness() if randomness is None else randomness
    table = _made_up(mandates, groups, randomness).reshape(mechanism.shape)
    drawn = table + mechanism.noise(randomness, 1)[0]
    guarantee, label = mechanism.guarantee, randomness.label
    project(
        Release("rehearsal", mechanism.description, guarantee, drawn, label, publishable=False),
        randomness,
    )


def _made_up(mandates: Invariants, groups: Support, randomness: Randomness) -> Any:
    """Some nonnegative table that agrees with every published figure and bound."""
    assert groups.totals is not None
    labels = groups.labels.reshape(-1)
    order, start = _by_group(labels, groups.groups)
    table = np.zeros(labels.size, dtype=np.int64)
    alone = np.flatnonzero(~groups.tied)
    table[order[start[alone]]] = groups.totals[alone]
    for tie in groups.ties:
        assert tie.values is not None
        matrix = _of_cells(tie, groups)
        cells = _cells_of(tie, order, start)
        table[cells] = nearest(table[cells], matrix, tie.values, lower=0, randomness=randomness)
    bounded = _bounded(mandates, groups)
    return table if bounded is None else nearest_in(table, bounded, randomness)


def _by_group(labels: Any, groups: int) -> tuple[Any, Any]:
    """Cells in the order of their groups, and where each group starts."""
    order = np.argsort(labels, kind="stable")
    return order, np.searchsorted(labels[order], np.arange(groups + 1))


def _cells_of(tie: Tie, order: Any, start: Any) -> Any:
    return np.concatenate([order[start[g] : start[g + 1]] for g in tie.groups])


def _of_cells(tie: Tie, groups: Support) -> sp.csr_matrix:
    """The equations of a tie, one column for each of its cells."""
    of_cell = np.repeat(np.arange(len(tie.groups)), groups.sizes[tie.groups])
    return sp.csr_matrix(tie.equations[:, of_cell])


def _bounded(mandates: Invariants, groups: Support) -> ConformingTables | None:
    """The nonnegative tables that keep every published bound the table can show; None for none."""
    rows, low, high = bound_rows(mandates, groups.names)
    if not rows.shape[0]:
        return None
    exact = ConformingTables.given(groups)
    return ConformingTables(
        sp.vstack([exact.rows, rows], format="csr"),
        np.concatenate([exact.low, low]),
        np.concatenate([exact.high, high]),
        exact.lower,
        exact.upper,
    )


def _project_tie(x: Any, tie: Tie, groups: Support, randomness: Randomness) -> Any:
    """The nearest whole y >= 0 whose group sums satisfy the tie's equations, as those of x do."""
    matrix = _of_cells(tie, groups)
    return nearest(x, matrix, matrix @ x, lower=0, randomness=randomness)


def project_group(x: Any, randomness: Randomness) -> Any:
    """argmin over whole y >= 0 with sum y = sum x of ||y - x||_2^2.

    Separable and convex: all positive cells fall to the same level c, and the last units are taken
    from cells chosen at random among those above it, which all cost the same.
    """
    total = int(np.sum(x))
    if total <= 0:
        return np.zeros_like(x)
    high = np.sort(x)[::-1].astype(np.int64)
    # With the k largest cells kept, the level is (their sum - total) / k; the right k is the
    # largest
    # whose smallest kept cell stays above the level.
    surplus = np.cumsum(high) - total
    kept = int(np.flatnonzero(high * np.arange(1, len(high) + 1) > surplus)[-1]) + 1
    level = int(surplus[kept - 1] // kept)
    y = np.maximum(x - level, 0)
    excess = int(np.sum(y)) - total
    above = np.flatnonzero(y > 0)
    # A random order by sorting fresh words: ties among 64-bit words are as good as never.
    chosen = above[np.argsort(randomness.words(len(above)), kind="stable")][:excess]
    y[chosen] -= 1
    return y
