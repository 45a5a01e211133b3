"""The ledger of a plan: opened, made when it is absent, and refused where another one counts; what
is said about the plan there.

A plan that names another ledger than the one that counts would get a fresh budget. published.json
therefore notes the ledger that recorded the figures, by the digest of its first event, which no two
share, not by the spelling of a path or URL, so that a ledger may be moved or renamed. A bundle of
the plan tells that there was a ledger too, and that an older copy of it was put back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from congenial.data.source import POSTGRES_SCHEMES, refuse_unconfirmed
from congenial.errors import BundleError, LedgerError
from congenial.figures.figures import Figures
from congenial.ledger.approvals import PlanStanding, Word
from congenial.ledger.ledger import Ledger
from congenial.ledger.state import Entry
from congenial.publication.bundle import DIGEST, read_bytes
from congenial.publication.number_of_people import figures_beside
from congenial.publication.plan import Plan

PUBLISHED = "published"  # the folder beside the plan that holds the exact figures
BUNDLES = "bundles"  # the folder beside it that holds its releases
RIGHT_LEDGER = (
    "Name that ledger in the plan (published.json says where it was, under recorded_in), and "
    "restore it if it is lost. For another population, use another folder."
)
RIGHT_LEDGER_OF_BUNDLE = (
    "Restore the newest copy of its ledger, or name that ledger in the plan. Move a bundle of "
    "other data, or one that was changed by hand, to another folder."
)


def open_ledger(plan: Plan, create: bool, timeout: float = 10.0) -> Ledger | None:
    """The plan's ledger; None when it does not exist yet and is not to be created.

    Refused where it is missing though figures beside the plan were recorded in one.
    """
    if plan.ledger.startswith(POSTGRES_SCHEMES):
        refuse_unconfirmed(plan.ledger)
    if not Ledger.exists(plan.ledger, timeout):
        refuse_fresh_start(plan)
        if not create:
            return None
    ledger = Ledger.open(
        plan.ledger,
        schema=plan.schema,
        adjacency=plan.unit_kind,
        max_rows=plan.data.max_rows,
        budget=plan.budget.budget(),
        timeout=timeout,
    )
    refuse_other_ledger(plan, ledger)
    return ledger


def opened_or_made(plan: Plan, ledger: Ledger | None = None) -> Ledger:
    """The ledger if it was opened before, or the plan's, which is made if it is absent."""
    ledger = open_ledger(plan, create=True) if ledger is None else ledger
    assert ledger is not None
    return ledger


def standing(plan: Plan, ledger: Ledger | None) -> PlanStanding:
    """Whether a plan is proposed, approved or refused; it is neither where there is no ledger."""
    return PlanStanding(plan.digest) if ledger is None else ledger.approvals.plan(plan.digest)


def propose(path: Path) -> PlanStanding:
    """Put the plan at `path` up for review; its ledger is started where it is absent."""
    text = Plan.read(path)
    plan = Plan.parse(text, path.parent)
    _ = plan.figures  # what cannot be planned is not proposed
    ledger = opened_or_made(plan)
    ledger.propose(plan.digest, text, plan.file_digests)
    return standing(plan, ledger)


def review(plan: Plan, word: Word, because: str = "") -> PlanStanding:
    """Approve or refuse a plan that somebody else proposed, or withdraw your last review."""
    ledger = open_ledger(plan, create=False)
    if ledger is None:
        raise LedgerError(
            f"there is no ledger at '{plan.ledger}' yet, so nothing was proposed.",
            remedy="Whoever wrote the plan runs `congenial propose PLAN`.",
        )
    ledger.review(plan.digest, word, because)
    return standing(plan, ledger)


def note(plan: Plan, ledger: Ledger) -> dict[str, str]:
    """Where the figures are recorded: as the plan spells a file, a URL without its secrets."""
    spelled = plan.budget.ledger
    place = ledger.where if "://" in ledger.where else spelled
    return {"recorded_in": place, "ledger": ledger.identity}


def refuse_fresh_start(plan: Plan) -> None:
    """A ledger that went missing must not become a fresh budget."""
    recorded, remedy = [_file(plan)], RIGHT_LEDGER
    if _recorded(plan) is None:
        recorded, remedy = _released(plan), RIGHT_LEDGER_OF_BUNDLE
    if recorded:
        raise LedgerError(
            f"there is no ledger at '{plan.ledger}', but '{recorded[0]}' was recorded in one: how "
            "much budget is spent is unknown.",
            remedy=remedy,
        )


def refuse_other_ledger(plan: Plan, ledger: Ledger) -> None:
    """Figures or bundles beside the plan that this ledger does not hold were counted in another."""
    _refuse_other_figures(plan, ledger)
    _refuse_other_bundles(plan, ledger)


def _refuse_other_figures(plan: Plan, ledger: Ledger) -> None:
    recorded = _recorded(plan)
    if recorded is not None and recorded.get("ledger") != ledger.identity:
        raise LedgerError(
            f"'{_file(plan)}' was recorded in another ledger, not in '{ledger.where}'; the other "
            "one holds what was spent on these data.",
            remedy=RIGHT_LEDGER,
        )


def _refuse_other_bundles(plan: Plan, ledger: Ledger) -> None:
    """Bundles are listed before the ledger is read: a draw is recorded first, then written."""
    bundles = _released(plan)
    entries = ledger.entries() if bundles else ()
    for bundle in bundles:
        if not _holds_bundle(entries, bundle):
            raise LedgerError(
                f"the bundle '{bundle}' is not in the ledger '{ledger.where}': its cost is "
                "recorded in another ledger, or in a newer copy of this one.",
                remedy=RIGHT_LEDGER_OF_BUNDLE,
            )


def _holds_bundle(entries: Sequence[Entry], bundle: Path) -> bool:
    """Whether an entry is about this bundle: by digest, and by name if it was drawn and no digest
    is recorded or readable. An attempt that drew nothing left no bundle.
    """
    try:
        digest = read_bytes(bundle / DIGEST).decode().strip()
    except (BundleError, UnicodeDecodeError):
        digest = ""
    return any(
        entry.bundle_digest == digest
        if entry.bundle_digest and digest
        else entry.name == bundle.name
        for entry in entries
        if entry.was_drawn
    )


def _released(plan: Plan) -> list[Path]:
    """The bundles of this plan that are in their usual place: they were drawn under a ledger."""
    places = (plan.folder / BUNDLES / section.name for section in plan.release)
    return [place for place in places if place.is_dir()]


def _file(plan: Plan) -> Path:
    return plan.folder / PUBLISHED / "published.json"


def _recorded(plan: Plan) -> dict[str, Any] | None:
    """What published.json says, if it is there and names a ledger."""
    try:
        read = json.loads(_file(plan).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return read if isinstance(read, dict) and read.get("recorded_in") is not None else None


def exact_figures(plan: Plan, ledger: Ledger | None) -> Figures:
    """All figures that are exact once the plan's are published: those of the ledger too, which the
    plan need not name. With values where everything is published.
    """
    if ledger is None:
        return plan.figures
    published = ledger.figures
    if published.schema is not plan.schema and published.schema == plan.schema:
        # with words for readers, and what came from files
        published = replace(published, schema=plan.schema)
    asked = figures_beside(plan, plan.release, published)
    return published if set(asked.told) <= set(published.told) else published.join(asked)
