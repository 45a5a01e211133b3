"""`congenial approve`: approve or refuse a plan of somebody else, or take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.check import next_command
from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import emit, paragraph, say
from congenial.cli.propose import show
from congenial.errors import PlanError

if TYPE_CHECKING:
    from congenial.ledger.approvals import Word


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
    """Approve a plan that somebody else proposed; needs the role reviewer or owner.

    Where the ledger requires approval, nothing is published or released without it. An approval can
    be withdrawn until the draw; what is drawn stays.
    """
    from congenial.publication.plan import Plan
    from congenial.publication.plan_ledger import opened_or_made, review

    if refuse and withdraw:
        raise PlanError("--refuse and --withdraw exclude each other.", remedy="Give one of them.")
    loaded = Plan.load(plan)
    word: Word = "withdraw" if withdraw else "refuse" if refuse else "approve"
    standing = review(loaded, word, because)
    ledger = opened_or_made(loaded)
    drawn = ledger.drawn_from(loaded.digest) if withdraw else ()
    document = standing.to_dict() | {"drawn_before": list(drawn)}
    if as_json:
        emit(document)
        return
    show(document)
    if drawn:
        paragraph(f"Drawn before, so it stays: {', '.join(drawn)}.")
    if standing.standing == "approved":
        say("next.txt", command=next_command(loaded, plan, ledger))
