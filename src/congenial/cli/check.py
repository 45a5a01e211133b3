"""`congenial check`: what a plan would promise and how accurate it would be, before a release."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli import output
from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import Document, emit, line, paragraph, working

if TYPE_CHECKING:
    from congenial.ledger.ledger import Ledger
    from congenial.publication.plan import Plan


@with_examples(
    "congenial check plan.toml",
    "congenial check plan.toml --html review.html",
    "congenial check plan.toml --want \"margin('county','sex') within 50 at 95%\"",
)
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
    html: Annotated[
        Path | None,
        typer.Option(help="Also write everything as one page, to send to a reviewer."),
    ] = None,
    brief: Annotated[
        bool | None,
        typer.Option(
            "--brief/--all",
            help="The promise, the errors and the next command; or everything [default: brief on "
            "a terminal, everything elsewhere].",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a plan promises and how accurate it is. Reads no data, except modelling data of a
    release with `statistics`; spends nothing.
    """
    with working("checking the plan") as tell:
        from congenial.publication import workflow
        from congenial.publication.check_document import of_check
        from congenial.publication.check_words import show_brief
        from congenial.publication.plan import Plan

        again = bool(suppose or html)
        result = workflow.check(Plan.load(plan), want, again=again, progress=tell)
        document = of_check(result, want, suppose or [], tell)
        if html is not None:
            from congenial.publication.review_page import write_review

            write_review(result.plan, document, plan, html)
    if as_json:
        emit(document)
        return
    short = output.on_terminal() if brief is None else brief
    show_brief(document, output) if short else show(document)
    if html is not None:
        paragraph("")
        line("Page for a reviewer", html)
    if document["budget"]["allowed"]:
        say_next(result.plan, plan, result.ledger)
    if short:
        paragraph("More: congenial check --all")


def say_next(plan: Plan, path: Path, ledger: Ledger | None) -> None:
    """The command that comes next for a plan; nothing where all of it is done."""
    public = () if ledger is None else ledger.figures.told
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
    """The check for people, all of it."""
    from congenial.publication.check_words import show as show_all

    show_all(document, output)
