"""H of counts that are drawn column by column, from published figures alone.

Counts >= 0 on a table with both margins, of which three rows (or columns) have people, are drawn by
a dynamic programme over columns in doubles (`sampling.two_way_counts`): a sum of positive
terms with relative error (terms + 700) 2^-52 per column. Which table is drawn in this way, and H,
follow from its margins, so the promise, a bundle's reader and a ledger that has no sampler at hand
can all work it out.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from congenial.figures.lattice import Ints
from congenial.figures.support import Support, Tie, support
from congenial.privacy.description import Description
from congenial.privacy.descriptions import AnyDescription, TablesDescription

WORK = 1 << 31  # steps granted to the dynamic programme over columns


def columns_error(columns: Ints) -> float:
    """H, from the sums of the columns."""
    terms: int = sum((int(n) + 1) ** 2 + 700 for n in columns)
    return 2 * len(columns) * terms * 2.0**-52


def columns_fit(rows: Ints, columns: Ints, eps: Fraction) -> bool:
    """Whether work and memory are small and no weight leaves the range of doubles."""
    states = prod(int(n) + 1 for n in rows[:2])
    work = states * sum((int(n) + 1) ** 2 for n in columns)
    entries = (len(columns) + 1) * states
    return work <= WORK and entries <= 1 << 24 and 2 * int(np.sum(rows)) * eps <= 600


def is_wide(tie: Tie, known: Support) -> bool:
    """A table of single cells with both margins, too large for elimination."""
    alone = bool(np.all(known.sizes[tie.groups] == 1))
    return alone and tie.shape is not None and len(tie.shape) == 2 and min(tie.shape) > 3


def counts_error(known: Support, eps: Fraction) -> float:
    """H of one draw of the whole table, for every table that agrees with the published figures.

    Before they are published, a bound for all figures. Parts are independent: their errors add up.
    """
    return sum(_tie_error(tie, eps) for tie in known.ties if is_wide(tie, known))


def with_sampler_error(told: AnyDescription) -> AnyDescription:
    """The description with H of its sampler, where it states less."""
    if isinstance(told, TablesDescription):
        return replace(told, measured=tuple(_with_error(one) for one in told.measured))
    return _with_error(told) if isinstance(told, Description) else told


def _with_error(told: Description) -> Description:
    if not told.nonnegative:
        return told
    error = Fraction(counts_error(support(told.support, told.table), told.rate))
    return told if error <= told.log_ratio_error else replace(told, log_ratio_error=error)


def _tie_error(tie: Tie, eps: Fraction) -> float:
    """H of one wide tie; its margins follow from what ties it."""
    assert tie.features is not None
    assert tie.shape is not None
    if tie.values is None:  # the work granted bounds the columns: at least 4 states
        most = max(tie.shape)
        return 2 * most * (WORK / 4 + 700 * most) * 2.0**-52
    some = np.linalg.lstsq(tie.equations.astype(float), tie.values.astype(float), rcond=None)[0]
    rows, columns = (np.rint(np.bincount(f, weights=some)).astype(np.int64) for f in tie.features.T)
    return _margins_error(rows[rows > 0], columns[columns > 0], eps)


def _margins_error(rows: Ints, columns: Ints, eps: Fraction) -> float:
    if min(len(rows), len(columns)) != 3:
        return 0.0
    if len(rows) != 3:
        rows, columns = columns, rows
    return columns_error(columns) if columns_fit(np.sort(rows), columns, eps) else 0.0
