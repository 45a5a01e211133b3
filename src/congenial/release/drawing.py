"""From a release that is ready to a bundle that is out, whatever kind of release it is.

Order, so that a crash never under-counts: reserve in the ledger, mark as drawn, draw, write the
bundle under a temporary name, rename it, commit. Whatever was marked as drawn stays spent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from congenial.errors import LedgerError, MandateError
from congenial.privacy.description import AnyDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.ledger import Ledger
from congenial.release import bundle
from congenial.release.plan import Plan

WHOLE_DATASET = "pairs of distributions"  # promises about these pairs never add up


@dataclass(frozen=True)
class Offer:
    """A release that is ready: its law, its promise, how it is drawn, and its report.

    `holds` says, once the share of the budget is reserved, whether what it rests on still does.
    """

    name: str
    description: AnyDescription
    guarantee: Guarantee
    draw: Callable[[], Any]
    report: Callable[[Any, str], str]
    holds: Callable[[Ledger], bool] = lambda _: True


@dataclass(frozen=True)
class ReleaseResult:
    """Result of `release`: what was drawn, where the bundle is, and the promise in words."""

    release: Any
    folder: Path
    digest: str
    promise: str


def carry_out(
    plan: Plan, offer: Offer, folder: Path, ledger: Ledger, progress: Callable[[str], Any]
) -> ReleaseResult:
    """Reserve, mark as drawn, draw, write, rename, commit."""
    guarantee = offer.guarantee
    with ledger.reserve(offer.description, guarantee, offer.name, plan.digest) as reservation:
        progress("drawing")
        refuse_company(ledger, guarantee.adjacency.metric, reservation.id)
        if not offer.holds(ledger):
            raise MandateError(
                "a figure was published while this release was being prepared.",
                remedy="Run the release again; nothing was drawn.",
            )
        reservation.mark_drawn()
        drawn = replace(offer.draw(), guarantee=guarantee)
        words = guarantee.explain(ledger.spent_words(), plan.budget.budget().words)
        progress("writing the bundle")
        prepared = bundle.write(drawn, folder, words, offer.report(drawn, words))
        prepared.publish()
        reservation.commit(prepared.digest)
    return ReleaseResult(drawn, folder, prepared.digest, words)


def refuse_company(ledger: Ledger, metric: str = "", own: str = "") -> None:
    """Refuse what would stand beside a promise about the whole dataset.

    `metric` is how the new promise's pairs differ, `own` its own entry in the ledger.

    Two releases that each hide a property can reveal it together, and so can an exact figure or a
    table that protects persons only.
    """
    others = [entry for entry in ledger.entries() if entry.counted and entry.id != own]
    whole = metric == WHOLE_DATASET
    kept = [e for e in others if whole or e.guarantee["adjacency"]["metric"] == WHOLE_DATASET]
    if kept:
        raise LedgerError(
            f"this ledger counts the release '{kept[0].name}' from the same data; a promise about "
            "the whole dataset does not add up with any other release.",
            remedy="Put all statistics into one release. Other people's data need another ledger.",
        )
    if whole and ledger.mandates.statements:
        raise LedgerError(
            "exact figures of these data are published; a promise about the whole dataset does not "
            "take them into account.",
            remedy="Release a table given those figures, which protects persons.",
        )


def unit_words(plan: Plan) -> str:
    """What the plan assumes about who is one person."""
    if plan.data.unit is None:
        return "each row of the data is one person (no unit column was given to check it)"
    if plan.data.max_rows is not None:
        return f"a person has at most {plan.data.max_rows} rows (checked in '{plan.data.unit}')"
    return f"each person is one row (checked in '{plan.data.unit}')"
