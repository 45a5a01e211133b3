"""Which promises may stand beside each other in one ledger, and beside newly published figures.

Promises about pairs of databases add up. Others do not: two releases that each hide a property of
the whole dataset can reveal it together, and so can an exact figure, or a table that protects
persons only. A promise that is calibrated to the law of one statistic given public information
(secret pairs at level "query") stands alone too, and is void once more is public.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from congenial.errors import LedgerError
from congenial.privacy.history import State
from congenial.public.invariants import Invariants

WHOLE_DATASET = "pairs of distributions"
SECRETS = "secret pairs"


def refuse_release(state: State, adjacency: Mapping[str, Any]) -> None:
    """LedgerError when a promise about these pairs cannot stand beside those that are counted."""
    _refuse_whole(state, whole=adjacency["metric"] == WHOLE_DATASET)
    alone = _for_one_statistic(adjacency)
    kept = [e for e in state.counted if alone or _for_one_statistic(e.pairs)]
    if kept:
        raise LedgerError(
            f"this ledger counts the release '{kept[0].name}' from the same data; a promise whose "
            "distance is assumed for one table does not add up with any other release.",
            remedy="Use scenarios = { believe = 'independent records' } for all of them. Other "
            "people's data need another ledger.",
        )


def refuse_figures(state: State, figures: Invariants, accepted: bool) -> None:
    """LedgerError when new exact figures would make a counted promise void.

    A promise about the whole dataset cannot be given up; one given public information can, if that
    is accepted: what its release does to single records is still counted.
    """
    _refuse_whole(state, whole=False)
    new = [s for s in figures.equalities if s not in state.mandates.statements]
    void = [e.name for e in state.counted if e.pairs["metric"] == SECRETS]
    if new and void and not accepted:
        raise LedgerError(
            f"'{void[0]}' promises something given the figures published before it; once "
            f"'{new[0].label}' is published too, that promise is void.",
            remedy="Publish with --accept-weaker if it must be published; what the release does to "
            "single records is still counted.",
        )


def _refuse_whole(state: State, whole: bool) -> None:
    kept = [e for e in state.counted if whole or e.pairs["metric"] == WHOLE_DATASET]
    if kept:
        raise LedgerError(
            f"this ledger counts the release '{kept[0].name}' from the same data; a promise about "
            "the whole dataset does not add up with any other release.",
            remedy="Put all statistics into one release. Other people's data need another ledger.",
        )
    if whole and state.mandates.statements:
        raise LedgerError(
            "exact figures of these data are published; a promise about the whole dataset does not "
            "take them into account.",
            remedy="Release a table given those figures, which protects persons.",
        )


def _for_one_statistic(adjacency: Mapping[str, Any]) -> bool:
    return adjacency["metric"] == SECRETS and adjacency.get("level") == "query"
