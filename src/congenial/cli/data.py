"""`congenial data`: everything that is wrong with the records of a plan, for the curator alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import emit, say, warn, working
from congenial.publication import data_report
from congenial.publication.data_report import CONFIDENTIAL, SCHEMA_IS_PUBLIC
from congenial.publication.plan import Plan

if TYPE_CHECKING:
    from congenial.data.data_problems import DataCheck, DataProblem

PROBLEMS = 1  # exit code where there are some


@with_examples(
    "congenial data plan.toml",
    "congenial data plan.toml --examples 5",
    "congenial data plan.toml --json --examples 5",
)
def data(
    plan: PlanFile,
    shown: Annotated[
        int,
        typer.Option("--examples", min=0, help="Values and row numbers to show for each problem."),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Private folder for the results [default: data-check, beside the plan]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List everything that is wrong with the records.

    Reads CONFIDENTIAL data, for the curator only; spends nothing. Writes the list to a private
    folder. Exit code 1 if there are problems.
    """
    loaded = Plan.load(plan)
    with working("reading the files") as progress:
        report = data_report.check_records(loaded, shown, progress)
    files = data_report.write(report, loaded.folder / data_report.FOLDER if out is None else out)
    if as_json:
        warn(data_report.CONFIDENTIAL)
        emit(
            {"note": data_report.CONFIDENTIAL} | report.to_dict() | {"files": list(map(str, files))}
        )
    else:
        show(report, files)
    if not report.fits:
        raise typer.Exit(PROBLEMS)


def show(found: DataCheck, files: Sequence[Path]) -> None:
    """The check for the curator."""
    say(
        "data.txt",
        found=found,
        files=files,
        remedies=dict.fromkeys(_remedy(problem) for problem in found.problems),
        fixes=_fixes(found),
        shown=_shown,
        schema_is_public=SCHEMA_IS_PUBLIC,
        confidential=CONFIDENTIAL,
    )


def _remedy(one: DataProblem) -> str:
    return f"{one.column}: {one.remedy}" if one.column else one.remedy


def _shown(value: str | None, column: str) -> str:
    if value is None:
        return "(empty)" if column else "-"
    return repr(value)


def _fixes(found: DataCheck) -> list[tuple[str, list[str]]]:
    """Lines for the plan, by section; values of the data only where they are shown anyway."""
    shown_values = any(problem.examples for problem in found.problems)
    sections: dict[str, list[str]] = {}
    for problem_line in found.lines:
        hidden = problem_line.shows_values and not shown_values
        line = (
            f"# {problem_line.key}: a recoding with values of the data: see lines.toml"
            if hidden
            else problem_line
        )
        sections.setdefault(problem_line.section, []).append(str(line))
    return list(sections.items())
