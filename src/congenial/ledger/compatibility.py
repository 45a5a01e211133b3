"""Which promises may stand beside each other in one ledger, and beside newly published figures.

Promises about pairs of databases add up. Others do not: two releases that each hide a property of
the whole dataset can reveal it together, and so can an exact figure, or a table that protects
persons only. A promise that is calibrated to the law of one statistic given public information
(secret pairs at level "query") stands alone too. Every promise given public information is void
once more is public, be it a figure, a bound or a rule; one about single values of a person is void
once a figure or a bound ties those values to other people's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from congenial.errors import LedgerError
from congenial.figures.cells import Cells
from congenial.figures.invariants import Invariants
from congenial.figures.statements import Statement
from congenial.ledger.state import LedgerState

WHOLE_DATASET = "pairs of distributions"
SECRETS = "secret pairs"
VALUES = "replace-one value"


# Kinds of pairs whose rules beside others are stated here; any other is refused beside anything.
KNOWN = ("replace-one", "symmetric difference", VALUES, SECRETS)


def refuse_release(state: LedgerState, adjacency: Mapping[str, Any], composes: bool = True) -> None:
    """LedgerError when a promise about these pairs cannot stand beside those that are counted.

    `composes`: what the pairs themselves say; it can only refuse more than their kind does.
    """
    _refuse_whole(state, whole=_stands_alone(adjacency))
    tied = _tied(state, adjacency, state.mandates.statements)
    if tied:
        raise LedgerError(
            f"'{tied[0].label}' is published, so nobody's protected values can change alone.",
            remedy="Use SemiAdjacent, which prices such figures.",
        )
    alone = not composes or _for_one_statistic(adjacency)
    kept = [e for e in state.counted if alone or _for_one_statistic(e.pairs)]
    if kept:
        raise LedgerError(
            f"this ledger counts the release '{kept[0].name}' from the same data; a promise whose "
            "distance is assumed for one table does not add up with any other release.",
            remedy="Use scenarios = { believe = 'independent records' } for all of them. Other "
            "people's data need another ledger.",
        )


def refuse_figures(state: LedgerState, figures: Invariants, accepted: bool) -> None:
    """LedgerError when new figures, bounds or rules would make a counted promise void.

    A promise about the whole dataset cannot be given up; one given public information, or about
    single values, can, if that is accepted: what its release does to single records is still
    counted.
    """
    _refuse_whole(state, whole=False)
    new = [s for s in figures.statements if s not in state.mandates.statements]
    if accepted or not new:
        return
    for entry in state.counted:
        why = _void(state, entry.pairs, new)
        if why:
            raise LedgerError(
                f"'{entry.name}' promises something {why} that promise is void.",
                remedy="Publish with --accept-weaker if it must be published; what the release "
                "does to single records is still counted.",
            )


def ended(state: LedgerState, pairs: Mapping[str, Any], new: Sequence[Statement]) -> bool:
    """Whether statements published since have ended a promise about these pairs."""
    return bool(new) and bool(_void(state, pairs, new))


def _void(state: LedgerState, pairs: Mapping[str, Any], new: Sequence[Statement]) -> str:
    """What a promise about these pairs is of, and the first statement that ends it; or ""."""
    if pairs["metric"] == SECRETS:
        return f"given what was public before it; once '{new[0].label}' is published too,"
    tied = _tied(state, pairs, new)
    if not tied:
        return ""
    values = ", ".join(name for name in state.schema.names if name not in pairs["public"])
    return (
        f"about one person's {values} alone; once '{tied[0].label}' is published, nobody's can "
        "change alone, and"
    )


def _tied(
    state: LedgerState, pairs: Mapping[str, Any], statements: Sequence[Statement]
) -> list[Statement]:
    """The figures and bounds that say something about values promised to be protected alone.

    A rule that is zero by definition leaves fewer pairs, and the promise holds for them.
    """
    if pairs["metric"] != VALUES:
        return []
    public = set(pairs["public"])
    told = [s for s in statements if s.relation != "zero"]
    return [s for s in told if not set(Cells(state.schema, (s,)).bases) <= public]


def _refuse_whole(state: LedgerState, whole: bool) -> None:
    kept = [e for e in state.counted if whole or _stands_alone(e.pairs)]
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


def _stands_alone(pairs: Mapping[str, Any]) -> bool:
    """Whether a promise about such pairs adds up with no other: so it is unless a rule is known."""
    return pairs["metric"] not in KNOWN


def _for_one_statistic(adjacency: Mapping[str, Any]) -> bool:
    return adjacency["metric"] == SECRETS and adjacency.get("level") == "query"
