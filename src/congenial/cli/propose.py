"""`congenial propose`: put a plan up for review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import Document, emit, line, paragraph, table

if TYPE_CHECKING:
    from congenial.publication.plan_approval import PlanStanding


@with_examples("congenial propose plan.toml")
def propose(plan: PlanFile, as_json: Json = False) -> None:
    """Put a plan up for review: its digest, its text and those of the files it names are recorded.

    A reviewer then runs `congenial approve`. Whoever proposed a plan cannot approve it, and a
    change to the plan or to a file it names needs a new proposal.
    """
    from congenial.publication.plan_approval import propose as put_up

    document = standing_document(put_up(plan))
    if as_json:
        emit(document)
        return
    show(document)
    line("Next", f"a reviewer runs `congenial approve {plan}`")


def standing_document(standing: PlanStanding) -> Document:
    """Where a plan stands, as plain data."""
    return {
        "plan_digest": standing.digest,
        "standing": standing.standing,
        "approval_required": standing.required,
        "proposed_by": list(standing.proposers),
        "reviews": [
            {"who": one.who, "at": one.at, "said": one.word, "because": one.because}
            for one in standing.reviews
        ],
        "words": standing.words,
    }


def show(document: Document) -> None:
    """Where a plan stands, for people."""
    paragraph(document["words"])
    if document["reviews"]:
        rows = [
            (one["who"], one["said"], one["at"][:16].replace("T", " "), one["because"])
            for one in document["reviews"]
        ]
        table(("who", "said", "when (UTC)", "because"), rows)
    from congenial.publication.plan import DIGEST_OF

    line("Plan digest", document["plan_digest"])
    line("It covers", DIGEST_OF)
