"""`congenial data`: everything that is wrong with the records of a plan, for the curator alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from congenial.cli.command_options import Json, PlanFile, with_examples
from congenial.cli.output import emit, heading, line, paragraph, table, warn, working

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
        typer.Option(
            "--examples", min=0, help="Values and row numbers of each problem to show and write."
        ),
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Private folder of the results [default: data-check, by the plan]."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List everything that is wrong with the records. Reads CONFIDENTIAL data, for the curator
    alone; spends nothing.

    Writes the list to a private folder. Ends with 1 where there are problems.
    """
    from congenial.publication import data_report
    from congenial.publication.plan import Plan

    loaded = Plan.load(plan)
    with working("looking at the files") as progress:
        found = data_report.check_records(loaded, shown, progress)
    files = data_report.write(found, loaded.folder / data_report.FOLDER if out is None else out)
    if as_json:
        warn(data_report.CONFIDENTIAL)
        emit(
            {"note": data_report.CONFIDENTIAL} | found.to_dict() | {"files": list(map(str, files))}
        )
    else:
        show(found)
        for path in files:
            line("Written", path)
        paragraph(data_report.CONFIDENTIAL, style="bold red")
    if not found.fits:
        raise typer.Exit(PROBLEMS)


def show(found: DataCheck) -> None:
    """The check for the curator."""
    from congenial.publication.data_report import SCHEMA_IS_PUBLIC

    heading("The records beside the plan")
    if found.fits:
        paragraph(f"{found.rows:,} rows, all of which fit.")
        return
    if found.rows is not None:
        paragraph(f"{found.rows:,} rows could be read.")
    rows = [(one.column or "(file)", one.kind, _number(one), _said(one)) for one in found.problems]
    table(("column", "problem", "rows", "what"), rows, numbers=("rows",))
    for one in found.problems:
        _show_examples(one)
    heading("What to do")
    for remedy in dict.fromkeys(_remedy(one) for one in found.problems):
        paragraph(remedy)
    if found.unread:
        paragraph(f"Not looked at: {', '.join(found.unread)}.")
    if found.lines:
        heading("Suggested fixes")
        _show_lines(found)
        paragraph(SCHEMA_IS_PUBLIC)
    paragraph("")


def _number(one: DataProblem) -> str:
    return "-" if one.rows is None else f"{one.rows:,}"


def _said(one: DataProblem) -> str:
    different = f" ({one.distinct:,} different)" if one.distinct else ""
    return one.words + different + (f"; {one.pattern}" if one.pattern else "")


def _remedy(one: DataProblem) -> str:
    return f"{one.column}: {one.remedy}" if one.column else one.remedy


def _show_examples(one: DataProblem) -> None:
    if not one.examples:
        return
    paragraph("")
    paragraph(f"{one.column or '(file)'}, {one.kind}:")
    rows = [
        (
            _shown(example.value, one.column),
            f"{example.rows:,}" if example.rows else "-",
            " ".join(map(str, example.at)) or "-",
            example.meant or "-",
        )
        for example in one.examples
    ]
    table(("value", "rows", "first of them", "meant, perhaps"), rows, numbers=("rows",))


def _shown(value: str | None, column: str) -> str:
    if value is None:
        return "(empty)" if column else "-"
    return repr(value)


def _show_lines(found: DataCheck) -> None:
    shown_values = any(one.examples for one in found.problems)
    for section in dict.fromkeys(one.section for one in found.lines):
        paragraph(f"[{section}]")
        for one in found.lines:
            if one.section == section and (shown_values or not one.shows_values):
                paragraph(str(one))
            elif one.section == section:
                paragraph(f"# {one.key}: a recoding, with values of the data: see lines.toml")
