"""`congenial init`, a first plan from the columns of a file, and `congenial schema`, its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import answer, emit, warn, working
from congenial.publication.draft import write_draft
from congenial.publication.json_schema import plan_schema

DISCLOSURE = (
    "the categories were read from the data, so the plan and every release show which values "
    "occur. No promise covers that: replace them with a public code list, or make sure that this "
    "may be known."
)


@with_examples(
    "congenial init people.parquet --out draft.toml",
    "congenial init people.csv --unit person --out survey/plan.toml",
)
def init(
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file, or a folder of them.")],
    out: Annotated[Path, typer.Option(help="The plan to write; never overwritten.")] = Path(
        "plan.toml"
    ),
    unit: Annotated[
        str | None,
        typer.Option(
            help="The column that identifies a person [default: the only one called ..._id]."
        ),
    ] = None,
    levels_from_data: Annotated[
        bool,
        typer.Option(
            "--levels-from-data",
            help="List the categories that occur in the data; this publishes them.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Draft a plan from the columns of a file; then edit it.

    Reads only the names and types of the columns. The first row of a CSV file must be their names;
    a first row that looks like a record is refused. Columns in which nearly every row has its own
    value are taken for ids and left out.
    """
    with working("reading the columns"):
        columns = write_draft(file, out, unit, levels_from_data=levels_from_data)
    if levels_from_data:
        warn(DISCLOSURE)
    document = {
        "plan": str(out),
        "columns": columns,
        "levels_from_data": levels_from_data,
        "first_row_names": file.suffix.lower() != ".parquet",
    }
    answer("init.txt", as_json, draft=document)


@with_examples("congenial schema > plan.schema.json")
def schema() -> None:
    """Print the JSON Schema of plans, for editors that check keys."""
    emit(plan_schema())
