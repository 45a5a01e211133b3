"""`congenial compare`: two plans side by side, before any data are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import emit, heading, paragraph, table, working

if TYPE_CHECKING:
    from congenial.publication.plan_comparison import ErrorInBothPlans, InBothPlans, PlanComparison


@with_examples("congenial compare plan.toml other.toml", "congenial compare a.toml b.toml --json")
def compare(
    first: Annotated[Path, typer.Argument(help="A plan file.")],
    second: Annotated[Path, typer.Argument(help="Another plan file.")],
    as_json: Json = False,
) -> None:
    """Set two plans side by side: exact figures, promise, budget, errors per table. Reads no data,
    except modelling data; spends nothing.
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
    for title, rows in (
        ("Published exactly", found.figures),
        ("Promised", found.promises),
        ("Budget", found.budget),
    ):
        heading(title)
        if rows:
            table(("what", first, second), [_row(one) for one in rows])
        else:
            paragraph("Nothing in either plan.")
    heading("Expected error (standard deviation of the worst cell)")
    if not found.errors:
        paragraph("It depends on the data under both plans.")
        return
    columns = ("release", "table", first, second, "ratio")
    table(columns, [_error(one) for one in found.errors], numbers=(first, second, "ratio"))


def _row(one: InBothPlans) -> Sequence[str]:
    mark = "" if not one.differs else " *"
    return one.what + mark, one.first or "-", one.second or "-"


def _error(one: ErrorInBothPlans) -> Sequence[str]:
    shown = ["-" if value is None else f"{value:.2f}" for value in (one.first, one.second)]
    return one.release, one.what, *shown, "-" if one.ratio is None else f"{one.ratio:.2f}"
