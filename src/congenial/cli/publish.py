"""`congenial publish`: the mandated figures, exactly, on record, and public from here on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from congenial.cli.check import say_next
from congenial.cli.output import (
    Document,
    Json,
    PlanFile,
    emit,
    examples,
    heading,
    line,
    paragraph,
    table,
    working,
)

if TYPE_CHECKING:
    from congenial.publication.plan import Plan

SHOWN = 12  # figures per figure on the screen; published.csv has them all


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=examples("congenial publish plan.toml", "congenial publish plan.toml --out figures")
    )(publish)


def publish(
    plan: PlanFile,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the figures [default: published, by the plan].")
    ] = None,
    accept_weaker: Annotated[
        bool,
        typer.Option("--accept-weaker", help="Publish even if earlier releases then promise less."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compute the mandated figures exactly, record and write them. They are public from then on."""
    from congenial.publication import workflow
    from congenial.publication.plan import Plan

    loaded = Plan.load(plan)
    document = carry_out(loaded, out, accept_weaker=accept_weaker)
    if as_json:
        emit(document)
        return
    show(document)
    say_next(loaded, plan, workflow.open_ledger(loaded, create=False))


def carry_out(plan: Plan, out: Path | None = None, *, accept_weaker: bool = False) -> Document:
    """Publish, and say as plain data what is public now and what that did to earlier promises."""
    with working("computing the mandated figures") as progress:
        from congenial.publication import workflow

        result = workflow.publish(plan, out, accept_weaker=accept_weaker, progress=progress)
    budget = plan.budget.budget()
    repricing = result.repricing
    return {
        "folder": str(result.folder),
        "new": [statement.label for statement in result.new],
        "figures": [
            {"label": s.label, "because": s.because, "by": list(s.by), "cells": _cells(plan, s, v)}
            for s, v in zip(result.mandates.statements, result.mandates.values or (), strict=True)
            if v is not None
        ],
        "bounds": [
            {"label": s.label, "because": s.because, "by": list(s.by), "limit": s.limit}
            for s in result.mandates.bounds
        ],
        "before": budget.say(repricing.before),
        "after": budget.say(repricing.after),
        "weaker": repricing.weaker,
        "over_budget": repricing.over_budget,
        "releases": [
            {
                "id": one.id,
                "name": one.name,
                "before": budget.say(one.before),
                "after": budget.say(one.after),
                "weaker": one.weaker,
            }
            for one in repricing.releases
        ],
    }


def _cells(plan: Plan, statement: Any, values: Any) -> list[Document]:
    from itertools import product

    levels = product(*(axis.levels for axis in plan.schema.axes(statement.by)))
    return [
        {"for": list(where), "value": int(value)}
        for where, value in zip(levels, values.reshape(-1), strict=True)
    ]


def show(document: Document) -> None:
    """What is public now, for people."""
    new = document["new"]
    if new:
        heading("Public from now on, exactly and unprotected")
    else:
        heading("Nothing new: all of this is public already")
    for figure in document["figures"]:
        because = f" ({figure['because']})" if figure["because"] else ""
        already = ", public already" if new and figure["label"] not in new else ""
        paragraph(f"{figure['label']}{because}{already}")
        cells = figure["cells"]
        rows = [(", ".join(cell["for"]) or "all", cell["value"]) for cell in cells[:SHOWN]]
        table((", ".join(figure["by"]) or "for", "value"), rows, numbers="value")
        if len(cells) > SHOWN:
            paragraph(f"... and {len(cells) - SHOWN} more in published.csv")
        paragraph("")
    if document["bounds"]:
        fresh = any(one["label"] in new for one in document["bounds"])
        heading("Public bounds from now on" if fresh else "Public bounds")
        told = [(one["label"], one["limit"], one["because"] or "-") for one in document["bounds"]]
        table(("bound", "is", "because"), told)
    if document["releases"]:
        heading("What earlier releases promise")
        together = {"name": "all together"} | document
        changes = [*document["releases"], together]
        columns = ("name", "before", "after")
        table(columns, [[one[column] for column in columns] for one in changes])
        if document["over_budget"]:
            paragraph("Together they are beyond the budget now.", style="red")
    line("Figures", document["folder"])
