"""`congenial init`: a first plan from the columns of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import emit, line, paragraph, warn, working

DISCLOSURE = (
    "the levels were read from the data. The plan and everything made with it show which values "
    "occur, and no promise covers that: replace them by a code list fixed without the data, or "
    "make sure that this may be known."
)


@with_examples(
    "congenial init people.parquet",
    "congenial init people.csv --unit person --out survey/plan.toml",
)
def init(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file, or a folder of them.")],
    out: Annotated[Path, typer.Option(help="The plan to write; never overwritten.")] = Path(
        "plan.toml"
    ),
    unit: Annotated[
        str | None,
        typer.Option(help="The column that names a person  [default: the only one called ..._id]."),
    ] = None,
    levels_from_data: Annotated[
        bool,
        typer.Option("--levels-from-data", help="List the levels that occur: a publication."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Draft a plan from column names and types alone; then edit it and run `congenial check`.

    The first row of a CSV file must be the names; one that looks like a record is refused. Columns
    in which (nearly) every row has its own value are taken for ids and left out.
    """
    with working("reading the columns"):
        from congenial.publication.draft import write_draft

        columns = write_draft(file, out, unit, levels_from_data=levels_from_data)
    if levels_from_data:
        warn(DISCLOSURE)
    if as_json:
        emit({"plan": str(out), "columns": columns, "levels_from_data": levels_from_data})
        return
    line("Plan", out)
    paragraph("Fill in the places marked FILL IN, then run `congenial check` on it.")
    if file.suffix.lower() != ".parquet":
        paragraph(
            "Its column names are the first row of the file: if that is a record, delete the plan, "
            "which shows it."
        )
