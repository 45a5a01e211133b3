"""`congenial propose`: put a plan up for review."""

from __future__ import annotations

from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import Document, emit, line, paragraph, table


@with_examples("congenial propose plan.toml")
def propose(plan: PlanFile, as_json: Json = False) -> None:
    """Put a plan up for review: its text, its digest and those of the files it names are recorded.

    A reviewer then runs `congenial approve`. Whoever proposed a plan cannot approve it, and a
    change to the plan or to a file it names needs a new proposal.
    """
    from congenial.publication import plan_ledger

    document = plan_ledger.propose(plan).to_dict()
    if as_json:
        emit(document)
        return
    show(document)
    line("Next", f"a reviewer runs `congenial approve {plan}`")


def show(document: Document) -> None:
    """Where a plan stands, for people."""
    from congenial.publication.plan import DIGEST_OF

    paragraph(document["words"])
    if document["reviews"]:
        rows = [
            (one["who"], one["said"], one["at"][:16].replace("T", " "), one["because"])
            for one in document["reviews"]
        ]
        table(("who", "said", "when (UTC)", "because"), rows)
    line(DIGEST_OF, document["plan_digest"])
