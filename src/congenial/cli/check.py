"""`congenial check`: what a plan would promise and how accurate it would be, before a release."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli import output
from congenial.cli.output import (
    Document,
    Json,
    PlanFile,
    emit,
    examples,
    facts,
    heading,
    line,
    paragraph,
    table,
    working,
)

if TYPE_CHECKING:
    from congenial.ledger.ledger import Ledger
    from congenial.publication.plan import Plan


STRUCTURES = {
    "none": "no published sum",
    "laminar": "nested: the figures fix the total of every group of people they tell apart",
    "two-way": "crossing: of some groups of people only sums in two directions are known",
    "one-way": "crossing: of some groups of people only sums in several directions are known",
    "general": "groups of people tied by linear equations",
}


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=examples(
            "congenial check plan.toml",
            "congenial check plan.toml --want \"margin('county','sex') within 50 at 95%\"",
        )
    )(check)


def check(
    plan: PlanFile,
    want: Annotated[
        str | None,
        typer.Option(help="A wished accuracy; the smallest epsilon that meets it is worked out."),
    ] = None,
    suppose: Annotated[
        list[str] | None,
        typer.Option(
            help="What an adversary is supposed to know besides, such as \"sex = 'f'\": the number "
            "of people who meet a condition. Treated as one more published figure."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a plan promises and how accurate it is. Reads no data, except modelling data of a
    release with `statistics`; spends nothing.
    """
    with working("checking the plan"):
        from congenial.publication import workflow
        from congenial.publication.check_document import of_check
        from congenial.publication.plan import Plan

        result = workflow.check(Plan.load(plan), want, again=bool(suppose))
        document = of_check(result, want, suppose or [])
    if as_json:
        emit(document)
        return
    show(document)
    if document["budget"]["allowed"]:
        say_next(result.plan, plan, result.ledger)


def say_next(plan: Plan, path: Path, ledger: Ledger | None) -> None:
    """The command that comes next for a plan; nothing where all of it is done."""
    public = () if ledger is None else ledger.mandates.statements
    done = set() if ledger is None else {e.name for e in ledger.entries() if e.counted}
    left = [section.name for section in plan.release if section.name not in done]
    words = ["congenial", "release", str(path)]
    if not set(plan.statements) <= set(public):
        words[1] = "publish"
    elif not left:
        return
    elif done:
        words += [word for name in left for word in ("--name", name)]
    paragraph("")
    line("Next", shlex.join(words))


def show(document: Document) -> None:
    """The check for people."""
    from congenial.kinds.registry import by_name

    kinds = [by_name(one["kind"]) for one in document["releases"]]
    if not kinds or any(kind.given_figures for kind in kinds):
        _show_mandates(document)
    if document["already_released"]:
        paragraph("")
        names = ", ".join(f"'{name}'" for name in document["already_released"])
        paragraph(f"Released already, and not worked out again: {names}.")
    elif not document["releases"]:
        paragraph("")
        paragraph("Nothing else is released: everything but these figures is suppressed.")
    for kind, one in zip(kinds, document["releases"], strict=True):
        kind.show(one, output, document["want"])
    if document["supposed"] is not None:
        supposed = document["supposed"]
        heading(f"Supposing that these counts are known: {'; '.join(supposed['known'])}")
        paragraph(f"Records that differ: a* = {supposed['records']}")
        rows = [tuple(one.values()) for one in supposed["releases"]]
        table(("release", "promise as planned", "promise then"), rows)
    budget = document["budget"]
    heading("Budget")
    shown = {name.capitalize(): budget[name] for name in ("limit", "spent", "asked")}
    facts(shown | {"Left then": budget["left"] if budget["allowed"] else "not enough"})
    if not budget["allowed"]:
        paragraph("The budget does not allow all of this: a release will be refused.", style="red")


def _show_mandates(document: Document) -> None:
    from congenial.privacy.semantics import NEIGHBOURHOOD_WORDS

    heading("Published exactly")
    adjacency = document["adjacency"]
    if not document["mandates"]:
        public = " but the number of people" if adjacency["metric"] == "replace-one" else ""
        paragraph(f"Nothing{public}: this is ordinary differential privacy.")
    else:
        rows = [
            (
                one["label"],
                ", ".join(one["by"]) or "-",
                one["figures"] or "-",
                one["because"] or "-",
                _note(one),
            )
            for one in document["mandates"]
        ]
        table(("figure", "by", "numbers", "because", "note"), rows, numbers="numbers")
    paragraph("")
    facts(
        {
            "Structure": STRUCTURES[document["structure"]],
            "Independent figures": document["independent_figures"],
            "Must look alike": adjacency["words"],
            "Records that differ": f"a* = {adjacency['records']} ({adjacency['metric']})",
            "Neighbourhoods": NEIGHBOURHOOD_WORDS[adjacency["neighbourhood"]],
            "Numbers below are": document["basis"],
        }
    )


def _note(mandate: Document) -> str:
    """What a published statement is, where it is no figure that says something new."""
    if mandate["bound"]:
        return f"public bound: {mandate['bound']}"
    if mandate["relation"] == "zero":
        return "impossible by definition"
    return "follows from the others" if mandate["redundant"] else ""
