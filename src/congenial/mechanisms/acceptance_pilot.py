"""Whether bounds on sums can be met by drawing again, judged on public tables before a release.

How often a draw meets the bounds depends on the confidential table, so that the data must not
decide whether a release is refused: that would publish something about them. Instead a few tables
that agree with everything published are made up, spread over what is possible, and draws around
those are counted. The release itself then draws until the bounds hold and never gives up.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures.limits import conforming_tables
from congenial.mechanisms.congenial import CongenialCounts
from congenial.sampling.randomness import SeededRandomness
from congenial.tables.conforming_tables import ConformingTables
from congenial.tables.general_fit import nearest_in

LEAST = 1e-3  # share of draws that must meet the bounds
_SEED = 20200101  # public: everybody gets the same answer
_PROPOSALS = 4000
_TABLES = 8
_NUMBERS = 2_000_000  # cells drawn for one table


def refuse_hopeless(mechanism: CongenialCounts) -> None:
    """StructureError where bounds on sums would hardly ever be met; nothing confidential is used.

    Passes before figures are published, when there is nothing to try.
    """
    share = acceptance(mechanism)
    if share is not None and share < LEAST:
        raise StructureError(
            f"fewer than {LEAST:.1%} of all draws would keep the published bounds on sums (tried "
            "on made-up tables).",
            remedy="Use nonnegative = 'project', which is free, or a larger epsilon.",
        )


@lru_cache(maxsize=16)
def acceptance(mechanism: CongenialCounts) -> float | None:
    """The least share of draws that meet the bounds, over made-up conforming tables.

    None without bounds on sums, or before the figures are published.
    """
    if not mechanism.limits.sums or mechanism.support.totals is None:
        return None
    proposals = int(np.clip(_NUMBERS // mechanism.limits.low.size, 50, _PROPOSALS))
    source = SeededRandomness(_SEED)
    return min(mechanism.given(table).acceptance(source, proposals) for table in made_up(mechanism))


def made_up(mechanism: CongenialCounts) -> list[Ints]:
    """Conforming tables: some of all, or the nearest ones to even, empty and lopsided tables."""
    description = mechanism.description
    listed = conforming_tables(description.support, description.table)
    if listed is not None:
        chosen = np.linspace(0, len(listed) - 1, _TABLES).round().astype(np.int64)
        return list(listed[np.unique(chosen)])
    structure, bounds = mechanism.support, mechanism.limits
    exact = ConformingTables.given(structure)
    allowed = replace(
        exact.plus(bounds.rows, bounds.least, bounds.most),
        lower=np.maximum(exact.lower, bounds.low),
        upper=np.minimum(exact.upper, bounds.high),
    )
    size, source = bounds.low.size, SeededRandomness(_SEED)
    typical = _typical(mechanism)
    starts: list[Any] = [typical, np.zeros(size, dtype=np.int64)]
    for _ in range(2 if size > 2000 else 4):  # few cells hold nearly everybody
        weight = (source.words(size).astype(float) / 2.0**64) ** 8
        starts.append(np.rint(typical * weight / weight.mean()))
    return [nearest_in(start.astype(np.int64), allowed, source) for start in starts]


def _typical(mechanism: CongenialCounts) -> Any:
    """Everybody spread evenly over the cells of each group of known total."""
    structure = mechanism.support
    assert structure.totals is not None
    labels = structure.labels.reshape(-1)
    totals = np.where(structure.tied, 0, structure.totals)
    for tie in structure.ties:
        people = float(np.max(tie.values, initial=0)) if tie.values is not None else 0.0
        totals[tie.groups] = people / len(tie.groups)
    each = np.append(totals // np.maximum(structure.sizes, 1), 0)
    return each[np.maximum(labels, -1)]
