"""Nonnegative counts by post-processing: whole, nonnegative, with the same published sums.

Free in privacy, because it only sees the draw and the published figures (semi-dp, Proposition 23).
From coarse to fine where the figures have a place in such an order (`node_fit`), so that sums at
its nodes are right; otherwise the nearest table, which is cell by cell inside each known sum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import expect
from congenial.errors import StructureError
from congenial.figures import lattice
from congenial.figures.alike import equal_lines
from congenial.figures.invariants import Invariants
from congenial.figures.limits import bound_rows
from congenial.figures.support import LOOSE, Support, support
from congenial.figures.ties import Pattern, Tie
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.projection.conforming_tables import ConformingTables
from congenial.mechanisms.projection.node_fit import fit_nodes, is_node_fit, node_order_of
from congenial.mechanisms.projection.whole_tables import nearest, nearest_in
from congenial.mechanisms.single_table_release import Release
from congenial.privacy.description import Description, Fit
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.tables.node_order import NodeOrder


def project(
    release: Release, randomness: Randomness | None = None, fit: Fit | None = None
) -> Release:
    """The release with `values` moved to nonnegative whole counts; the draw is kept in `raw`.

    Published sums and bounds hold. `fit`: "nodes", from coarse to fine; "cells", the nearest table
    in least squares, its ties broken at random; None: nodes where the figures allow.

    Formal guarantee: post-processing of the draw and of public figures; it costs no privacy. Counts
    near zero become too large on average; estimate from `raw`.

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
    order = release_order(release) if fit in ("nodes", None) else None
    if order is None and fit == "nodes":
        raise StructureError(
            "the published figures have no place in a fit from coarse to fine.",
            remedy="Use fit = 'cells'.",
        )
    taken: Fit = "nodes" if order is not None else fit or "cells"
    if order is not None:
        values = fit_nodes(order, release.table, release.drawn)
    else:
        values = nearest_counts(release, randomness)
    return replace(
        release, values=values, raw=release.drawn, description=release.description.projected(taken)
    )


def release_order(release: Release) -> NodeOrder | None:
    """The order in which a release's counts can be fitted from coarse to fine."""
    return _order(release.description, release.published)


def _order(description: Description, published: Invariants) -> NodeOrder | None:
    if published.bounds:
        return None
    return node_order_of(description.support, description.table)


def nearest_counts(release: Release, randomness: Randomness | None = None) -> Any:
    """The nearest nonnegative whole table (least squares) with the published sums and bounds.

    Cells of a group keep their published total, tied groups keep what is published about them
    together, and cells of no group are cut at zero. Ties are broken at random so that no cell is
    favoured.
    """
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
    return values.reshape(release.drawn.shape)


def follows_from_draw(release: Release) -> bool:
    """Whether the printed counts are what their fit makes of those drawn, ties aside."""
    if release.description.fit == "nodes":
        order = release_order(release)
        return order is not None and is_node_fit(
            order, release.table, release.drawn, release.values
        )
    nearest_ = nearest_counts(release)
    return bool(_squares(release.values - release.drawn) == _squares(nearest_ - release.drawn))


def _squares(off: Any) -> int:
    """The sum of squares, exactly."""
    found, times = np.unique(np.abs(off), return_counts=True)
    return sum(int(value) ** 2 * int(n) for value, n in zip(found, times, strict=True))


def rehearse(mechanism: Mechanism, randomness: Randomness | None = None) -> Fit:
    """Project a made-up draw, so that what cannot be done is known before one is spent.

    Returns the fit to use; figures too entangled for any are refused. The noise is
    thrown away and the table is made up from the published figures alone: nothing here
    depends on the data.
    """
    randomness = SystemRandomness() if randomness is None else randomness
    description, figures = mechanism.description, mechanism.adjacency.figures
    order = _order(description, figures)
    if order is not None and _fits_nodes(mechanism, order, randomness):
        return "nodes"
    groups = support(description.support, description.table)
    if figures.values is not None and (groups.ties or figures.bounds):
        _rehearse_ties(groups, randomness)
        table = made_up_table(mechanism, randomness)
        drawn = around(mechanism, table + mechanism.noise(randomness, 1)[0], randomness)
        project(drawn, randomness, "cells")
    return "cells"  # groups of known totals, and cells of none, can always be projected


def _rehearse_ties(groups: Support, randomness: Randomness) -> None:
    """Find nearest counts once for every kind of tie: a made-up draw may not need any."""
    for kind in groups.ties.kinds:
        assert kind.values is not None
        for same in equal_lines(groups.sizes[kind.groups]):
            tie = Tie(kind.groups[same[0]], kind.pattern, kind.values[same[0]])
            matrix = _of_cells(tie, groups)
            nobody = np.zeros(matrix.shape[1], dtype=np.int64)
            nearest(nobody, matrix, kind.values[same[0]], lower=0, randomness=randomness)


def _fits_nodes(mechanism: Mechanism, order: NodeOrder, randomness: Randomness) -> bool:
    """Whether noise around a table that agrees with the figures can be fitted: one that is made up
    if ties are margins, which is quick, otherwise a fit to zeros.
    """
    names = mechanism.description.table
    groups = support(mechanism.description.support, names)
    margins = all(kind.pattern.features is not None for kind in groups.ties.kinds)
    try:
        if groups.ties and groups.totals is not None and margins:
            agreeing = made_up_table(mechanism, randomness)
        else:
            agreeing = fit_nodes(order, names, np.zeros(mechanism.shape, dtype=np.int64))
        fit_nodes(order, names, agreeing + mechanism.noise(randomness, 1)[0])
    except StructureError:
        return False
    return True


def around(mechanism: Mechanism, drawn: Any, randomness: Randomness) -> Release:
    """A release of values that were not drawn from data."""
    description, guarantee = mechanism.description, mechanism.guarantee
    return Release("rehearsal", description, guarantee, drawn, randomness.label, publishable=False)


def made_up_table(mechanism: Mechanism, randomness: Randomness, loose: int | None = None) -> Any:
    """Some nonnegative table that agrees with every published figure and bound.

    Everybody of a known sum in one of its cells and nobody elsewhere; with `loose`, known sums are
    spread evenly, and cells of none have this count.
    """
    figures = mechanism.adjacency.figures
    groups = support(mechanism.description.support, mechanism.description.table)
    labels = groups.labels.reshape(-1)
    order, start = _by_group(labels, groups.groups)
    table = np.where(labels == LOOSE, loose or 0, 0).astype(np.int64)
    if groups.totals is None:
        return table.reshape(mechanism.shape)
    told, even = ~groups.tied, np.full(groups.groups, loose is not None)
    totals = np.maximum(groups.totals, 0)
    for kind in groups.ties.kinds if loose is None else ():
        if kind.values is not None and kind.pattern.features is not None:
            totals[kind.groups] = totals_with_margins(kind.pattern, kind.values)
            told[kind.groups] = even[kind.groups] = True
    known = np.flatnonzero(told & ~even)
    table[order[start[known]]] = totals[known]
    cells = order[labels[order] >= 0]
    cells = cells[even[labels[cells]]]
    place = np.argsort(order, kind="stable")[cells] - start[labels[cells]]
    share, rest = np.divmod(totals, np.maximum(groups.sizes, 1))
    table[cells] = share[labels[cells]] + (place < rest[labels[cells]])
    for tie in groups.ties if not np.all(told) else ():
        assert tie.values is not None
        if not told[tie.groups[0]]:
            cells = _cells_of(tie, order, start)
            table[cells] = nearest(
                table[cells], _of_cells(tie, groups), tie.values, lower=0, randomness=randomness
            )
    bounded = _bounded(figures, groups)
    table = table if bounded is None else nearest_in(table, bounded, randomness)
    return table.reshape(mechanism.shape)


def totals_with_margins(pattern: Pattern, values: Any) -> Any:
    """Some whole totals >= 0 of groups (one tie a line) that have the margins of each tie.

    As if two features were independent, where that rounds. Otherwise people are lined up by their
    levels of every feature at once; a group gets those who stand in all of its levels.
    """
    assert pattern.features is not None
    x = lattice.solution_lines(sp.csr_matrix(pattern.equations), values)
    first, last = np.zeros((len(x), x.shape[1])), np.full((len(x), x.shape[1]), np.inf)
    for level in pattern.features.T:
        people = np.rint(x @ (level[:, np.newaxis] == np.arange(level.max() + 1)))
        ends = np.cumsum(people, axis=1)
        first = np.maximum(first, (ends - people)[:, level])
        last = np.minimum(last, ends[:, level])
    lined_up = np.maximum(last - first, 0).astype(np.int64)
    if pattern.features.shape[1] != 2:
        return lined_up
    independent = _independent(pattern.features, x)
    return np.where(np.any(independent < 0, axis=1)[:, np.newaxis], lined_up, independent)


def _independent(features: Any, x: Any) -> Any:
    """Differences of rounded products of cumulated margins: the margins are right, and totals of
    more than two levels may be -1.
    """
    shape = tuple(int(level.max()) + 1 for level in features.T)
    counts = np.zeros((len(x), *shape))
    counts[:, features[:, 0], features[:, 1]] = x
    ends = [np.cumsum(np.rint(counts.sum(axis=3 - k)), axis=1) for k in (1, 2)]
    people = np.maximum(ends[0][:, -1:, np.newaxis], 1)
    below = np.rint(ends[0][:, :, np.newaxis] * ends[1][:, np.newaxis, :] / people)
    totals = np.diff(np.diff(below, axis=1, prepend=0), axis=2, prepend=0)
    return totals[:, features[:, 0], features[:, 1]].astype(np.int64)


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


def _bounded(figures: Invariants, groups: Support) -> ConformingTables | None:
    """The nonnegative tables that keep every published bound the table can show; None for none."""
    rows, low, high = bound_rows(figures, groups.names)
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
