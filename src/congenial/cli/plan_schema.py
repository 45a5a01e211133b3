"""`congenial schema`: the plan file as JSON Schema, for editors."""

from __future__ import annotations

import typer

from congenial.cli.command_options import examples
from congenial.cli.output import emit


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("congenial schema > plan.schema.json"))(schema)


def schema() -> None:
    """Print the plan file's JSON Schema, with which editors complete and check keys."""
    from congenial.publication.json_schema import plan_schema

    emit(plan_schema())
