"""`congenial publish`: the exact figures, computed, recorded, and public from here on."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli import output
from congenial.cli.check import next_command
from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import Document, emit, say, working
from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.publication.published_document import (
    of_preview,
    of_published,
    preview_words,
    published_words,
)

if TYPE_CHECKING:
    from congenial.publication.workflow import PublishPreview


@with_examples(
    "congenial publish plan.toml --dry-run",
    "congenial publish plan.toml",
    "congenial publish plan.toml --yes --out figures",
)
def publish(
    plan: PlanFile,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the figures [default: published, beside the plan]."),
    ] = None,
    accept_weaker: Annotated[
        bool,
        typer.Option(
            "--accept-weaker", help="Publish even if earlier releases would then promise less."
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only show what would be published (CONFIDENTIAL); records nothing.",
        ),
    ] = False,
    fewer_than: Annotated[
        int,
        typer.Option(min=0, help="With --dry-run: point out figures about fewer people than this."),
    ] = 3,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Compute, record and write the exact figures.

    They are public from then on. On a terminal it shows them first and asks.
    """
    loaded = Plan.load(plan)
    if dry_run:
        with working("computing the exact figures") as progress:
            preview = workflow.preview(loaded, fewer_than=fewer_than, progress=progress)
        document = of_preview(loaded, preview)
        emit(document) if as_json else output.show(preview_words(document, loaded.schema))
        return
    asks = output.on_terminal() and not yes and not as_json
    document = carry_out(loaded, out, accept_weaker=accept_weaker, asks=asks)
    if as_json:
        emit(document)
        return
    output.show(published_words(document, loaded.schema))
    say("next.txt", command=next_command(loaded, plan, open_ledger(loaded, create=False)))


def _ask(plan: Plan, found: PublishPreview) -> None:
    """Show what would be public, and stop unless the curator says yes."""
    if not found.new:
        return
    output.show(preview_words(of_preview(plan, found), plan.schema))
    typer.confirm("Publish these figures? This cannot be undone.", abort=True)


def carry_out(
    plan: Plan, out: Path | None = None, *, accept_weaker: bool = False, asks: bool = False
) -> Document:
    """Publish, and say as plain data what is public now and what that did to earlier promises."""
    confirm = partial(_ask, plan) if asks else None
    # a question and a spinner do not go together
    with nullcontext(lambda _: None) if asks else working("computing the figures") as progress:
        result = workflow.publish(
            plan, out, accept_weaker=accept_weaker, progress=progress, confirm=confirm
        )
    return of_published(plan, result)
