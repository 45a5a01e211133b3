"""`congenial check` and `compare`: what plans would promise and how accurate they would be."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli import output
from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import emit, say, working
from congenial.publication import workflow
from congenial.publication.check_document import compare_plans, of_check, words, write_review
from congenial.publication.plan import Plan

if TYPE_CHECKING:
    from congenial.ledger.ledger import Ledger
    from congenial.publication.check_document import PlanComparison


@with_examples(
    "congenial check plan.toml",
    "congenial check plan.toml --html review.html",
    "congenial check plan.toml --want \"margin('county','sex') within 50 at 95%\"",
)
def check(
    plan: PlanFile,
    want: Annotated[
        str | None,
        typer.Option(help="An accuracy you need; shows the smallest budget that gives it."),
    ] = None,
    suppose: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "A count that an attacker may also know, such as \"sex = 'f'\"; treated as one "
                "more exact figure."
            )
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Also write everything to one page for a reviewer."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show everything, not only what matters most.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what a plan promises and how accurate it is.

    Reads no data, except the modelling data of a release with `statistics`; spends nothing.
    """
    with working("checking the plan") as tell:
        again = bool(suppose or html)
        result = workflow.check(Plan.load(plan), want, again=again, progress=tell)
        document = of_check(result, want, suppose or [], tell)
        if html is not None:
            write_review(result.plan, document, plan, html)
    if as_json:
        emit(document)
        return
    output.show(words(document, full=full))
    output.paragraph("")
    command = (
        next_command(result.plan, plan, result.ledger) if document["budget"]["allowed"] else ""
    )
    output.say("check_end.txt", page=html or "", full=full, command=command)


def next_command(plan: Plan, path: Path, ledger: Ledger | None) -> str:
    """The command that comes next for a plan; empty where all of it is done."""
    public = () if ledger is None else ledger.figures.told
    done = set() if ledger is None else {e.name for e in ledger.entries() if e.counted}
    left = [section.name for section in plan.release if section.name not in done]
    words = ["congenial", "release", str(path)]
    if not set(plan.statements) <= set(public):
        words[1] = "publish"
    elif not left:
        return ""
    elif done:
        words += [word for name in left for word in ("--name", name)]
    return shlex.join(words)


# ---- compare -------------------------------------------------------------------------------------


@with_examples("congenial compare plan.toml other.toml", "congenial compare a.toml b.toml --json")
def compare(
    first: Annotated[Path, typer.Argument(help="A plan file.")],
    second: Annotated[Path, typer.Argument(help="Another plan file.")],
    as_json: Json = False,
) -> None:
    """Set two plans side by side: exact figures, promise, error.

    Reads no data, except modelling data; spends nothing. A star marks what differs.
    """
    with working("checking both plans") as tell:
        comparison = compare_plans(Plan.load(first), Plan.load(second), tell)
    if as_json:
        emit(comparison.to_dict())
        return
    show(comparison, (first.name, second.name))


def show(found: PlanComparison, names: tuple[str, str]) -> None:
    """The comparison for people."""
    first, second = names if names[0] != names[1] else ("first", "second")
    say("compare.txt", found=found, first=first, second=second)
