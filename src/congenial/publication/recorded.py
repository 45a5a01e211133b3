"""The note in published.json of the ledger that recorded the figures, and what it guards against.

A plan that names another ledger than the one that counts would get a fresh budget. Ledgers are told
apart by the digest of their first event, which no two share, not by the spelling of a path or URL,
so that a ledger may be moved or renamed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from congenial.errors import CongenialError, LedgerError
from congenial.figures.invariants import Invariants
from congenial.ledger.ledger import Ledger
from congenial.publication.plan import Plan

PUBLISHED = "published"  # the folder beside the plan that holds the exact figures
REMEDY = (
    "Name the ledger that recorded them in the plan (the file says where it was, under "
    "recorded_in), restoring it if need be; for another population, use another folder."
)


def note(plan: Plan, ledger: Ledger) -> dict[str, str]:
    """Where the figures are recorded: as the plan spells a file, a URL without its secrets."""
    spelled = plan.budget.ledger
    place = ledger.where if "://" in ledger.where else spelled
    return {"recorded_in": place, "ledger": ledger.identity}


def refuse_fresh_start(plan: Plan) -> None:
    """A ledger that went missing must not become a fresh budget."""
    if _recorded(plan) is not None:
        raise LedgerError(
            f"there is no ledger at '{plan.ledger}', but '{_file(plan)}' was recorded in "
            "a ledger: what was spent is unknown.",
            remedy=REMEDY,
        )


def refuse_other_ledger(plan: Plan, ledger: Ledger) -> None:
    """Figures beside the plan that another ledger recorded were not counted in this one.

    Notes of version 0.1.0 do not tell ledgers apart: there the figures must be in this ledger.
    """
    recorded = _recorded(plan)
    if recorded is None:
        return
    identity = recorded.get("ledger")
    same = _holds(ledger, recorded) if identity is None else identity == ledger.identity
    if not same:
        raise LedgerError(
            f"'{_file(plan)}' was recorded in another ledger than '{ledger.where}': what was spent "
            "on these data is counted there.",
            remedy=REMEDY,
        )


def _holds(ledger: Ledger, recorded: dict[str, Any]) -> bool:
    try:
        figures = Invariants.from_dict(ledger.schema, recorded)
    except (CongenialError, KeyError, TypeError, ValueError, AttributeError):
        return False
    return set(figures.statements) <= set(ledger.mandates.statements)


def _file(plan: Plan) -> Path:
    return plan.folder / PUBLISHED / "published.json"


def _recorded(plan: Plan) -> dict[str, Any] | None:
    """What published.json says, if it is there and names a ledger."""
    try:
        read = json.loads(_file(plan).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) and read.get("recorded_in") is not None else None
