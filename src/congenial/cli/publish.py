"""`congenial publish`: the exact figures, computed, recorded, and public from here on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from congenial.cli import output
from congenial.cli.check import next_command
from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import Document, emit, say, working
from congenial.mechanisms.cell_labels import beside_label
from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.publication.workflow import FEWER_THAN

if TYPE_CHECKING:
    from congenial.data.schema import Schema
    from congenial.figures.figures import Figures
    from congenial.figures.statements import Statement
    from congenial.ledger.spent_and_left import Repricing
    from congenial.publication.workflow import PublishPreview

CONFIDENTIAL = (
    "CONFIDENTIAL until they are published: these figures are computed from the records. Nothing "
    "was recorded or written."
)
SHOWN = 12  # numbers per figure on the screen; published.csv has them all


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
        document = rehearse(loaded, fewer_than)
        emit(document) if as_json else show_preview(document, loaded.schema)
        return
    asks = output.on_terminal() and not yes and not as_json
    document = carry_out(loaded, out, accept_weaker=accept_weaker, asks=asks)
    if as_json:
        emit(document)
        return
    show(document, loaded.schema)
    say("next.txt", command=next_command(loaded, plan, open_ledger(loaded, create=False)))


def rehearse(plan: Plan, fewer_than: int) -> Document:
    """What publishing would make public, as plain data. CONFIDENTIAL; nothing is recorded."""
    with working("computing the exact figures") as progress:
        found = workflow.preview(plan, fewer_than=fewer_than, progress=progress)
    return _previewed(plan, found, fewer_than)


def _previewed(plan: Plan, found: PublishPreview, fewer_than: int) -> Document:
    prices = {} if found.repricing is None else _prices(plan, found.repricing)
    return {
        "note": CONFIDENTIAL,
        "fewer_than": fewer_than,
        "warnings": [
            {
                "label": warning.label,
                "kind": warning.kind,
                "groups": warning.groups,
                "of": warning.of,
                "words": warning.words,
                "where": [list(group) for group in warning.where],
            }
            for warning in found.warnings
        ],
        **_public(plan, found.figures, found.new),
        **prices,
    }


def _ask(plan: Plan, found: PublishPreview) -> None:
    """Show what would be public, and stop unless the curator says yes."""
    if not found.new:
        return
    show_preview(_previewed(plan, found, FEWER_THAN), plan.schema)
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
    return {
        "folder": str(result.folder),
        **_public(plan, result.figures, result.new),
        **_prices(plan, result.repricing),
    }


def _public(plan: Plan, figures: Figures, new: Sequence[Statement]) -> Document:
    return {
        "new": [statement.label for statement in new],
        "figures": [
            {"label": s.label, "because": s.because, "by": list(s.by), "cells": _cells(plan, s, v)}
            for s, v in zip(figures.told, figures.told_values, strict=True)
            if v is not None
        ],
        "bounds": [
            {"label": s.label, "because": s.because, "by": list(s.by), "limit": s.limit}
            for s in figures.told
            if s.limit
        ],
    }


def _prices(plan: Plan, repricing: Repricing) -> Document:
    """What earlier releases promise before and after."""
    budget = plan.budget.budget()
    return {
        "before": budget.say(repricing.before),
        "after": budget.say(repricing.after),
        "weaker": repricing.weaker,
        "over_budget": repricing.over_budget,
        "releases": [
            {
                "id": release.entry.id,
                "name": release.entry.name,
                "before": budget.say(release.then),
                "after": budget.say(release.now),
                "weaker": release.weaker,
            }
            for release in repricing.releases
        ],
    }


def _cells(plan: Plan, statement: Any, values: Any) -> list[Document]:
    from itertools import product

    levels = product(*(axis.levels for axis in plan.schema.axes(statement.by)))
    return [
        {"for": list(where), "value": int(value)}
        for where, value in zip(levels, values.reshape(-1), strict=True)
    ]


def show_preview(document: Document, schema: Schema) -> None:
    """What would be public, for the curator; categories with their labels."""
    by = {figure["label"]: figure["by"] for figure in document["figures"]}
    warnings = [
        one
        | {
            "first": "; ".join(_group(schema, by[one["label"]], group) for group in one["where"]),
            "more": one["groups"] > len(one["where"]),
        }
        for one in document["warnings"]
    ]
    say(
        "publish_preview.txt",
        document=document,
        figures=_shown(document, schema),
        warnings=warnings,
    )


def show(document: Document, schema: Schema) -> None:
    """What is public now, for people; categories with their labels."""
    say("publish.txt", document=document, figures=_shown(document, schema))


def _group(schema: Schema, by: Sequence[str], levels: Sequence[str]) -> str:
    """The people that a figure is about."""
    told = (beside_label(schema, name, level) for name, level in zip(by, levels, strict=True))
    return ", ".join(told) or "all"


def _shown(document: Document, schema: Schema) -> list[Document]:
    """Each figure with its first values."""
    new = document["new"]
    return [
        figure
        | {
            "already": bool(new) and figure["label"] not in new,
            "rows": [
                (_group(schema, figure["by"], cell["for"]), cell["value"])
                for cell in figure["cells"][:SHOWN]
            ],
            "left_out": max(0, len(figure["cells"]) - SHOWN),
        }
        for figure in document["figures"]
    ]
