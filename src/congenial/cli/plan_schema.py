"""`congenial schema`: the plan file as JSON Schema, for editors."""

from __future__ import annotations

from congenial.cli.command_options import with_examples
from congenial.cli.output import emit


@with_examples("congenial schema > plan.schema.json")
def schema() -> None:
    """Print the JSON Schema of plans, for editors that check keys."""
    from congenial.publication.json_schema import plan_schema

    emit(plan_schema())
