"""`congenial propose` and `approve`: put a plan up for review; approve it, refuse it, withdraw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.check import next_command
from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import Document, emit, say
from congenial.errors import PlanError
from congenial.publication import plan_ledger
from congenial.publication.plan import DIGEST_OF, Plan
from congenial.publication.plan_ledger import opened_or_made, review

if TYPE_CHECKING:
    from congenial.ledger.approvals import Word


@with_examples("congenial propose plan.toml")
def propose(plan: PlanFile, as_json: Json = False) -> None:
    """Put a plan up for review.

    Its text, its digest and those of the files it names are recorded. A reviewer then runs
    `congenial approve`. Whoever proposed a plan cannot approve it, and a change to the plan or to a
    file it names needs a new proposal.
    """
    command = f"a reviewer runs `congenial approve {plan}`"
    _answer(plan_ledger.propose(plan).to_dict(), command, as_json)


@with_examples(
    "congenial approve plan.toml",
    'congenial approve plan.toml --refuse --because "age by block is too fine"',
    "congenial approve plan.toml --withdraw",
)
def approve(
    plan: PlanFile,
    because: Annotated[str, typer.Option(help="The reason; stays in the history.")] = "",
    refuse: Annotated[
        bool, typer.Option("--refuse", help="Say that the plan may not be released.")
    ] = False,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take your own approval or refusal back.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Approve or refuse a plan that somebody else proposed.

    Needs the role reviewer or owner. Where the ledger requires approval, nothing is published or
    released without it. An approval can be withdrawn until the draw; what is drawn stays.
    """
    if refuse and withdraw:
        raise PlanError("--refuse and --withdraw exclude each other.", remedy="Give one of them.")
    loaded = Plan.load(plan)
    word: Word = "withdraw" if withdraw else "refuse" if refuse else "approve"
    standing = review(loaded, word, because)
    ledger = opened_or_made(loaded)
    drawn = ledger.drawn_from(loaded.digest) if withdraw else ()
    document = standing.to_dict() | {"drawn_before": list(drawn)}
    approved = standing.standing == "approved"
    command = next_command(loaded, plan, ledger) if approved and not as_json else ""
    _answer(document, command, as_json)


def _answer(document: Document, command: str, as_json: bool) -> None:
    if as_json:
        emit(document)
    else:
        say("standing.txt", plan=document, digest_of=DIGEST_OF, command=command)
