"""`congenial compare`: two plans side by side, before any data are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import emit, say, working

if TYPE_CHECKING:
    from congenial.publication.plan_comparison import PlanComparison


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
        from congenial.publication.plan import Plan
        from congenial.publication.plan_comparison import compare_plans

        found = compare_plans(Plan.load(first), Plan.load(second), tell)
    if as_json:
        emit(found.to_dict())
        return
    show(found, (first.name, second.name))


def show(found: PlanComparison, names: tuple[str, str]) -> None:
    """The comparison for people."""
    first, second = names if names[0] != names[1] else ("first", "second")
    say("compare.txt", found=found, first=first, second=second)
