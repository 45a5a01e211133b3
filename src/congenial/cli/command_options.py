"""What several commands have in common before they run: arguments, options, the end of a help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PlanFile = Annotated[Path, typer.Argument(help="The plan file.")]
BundleFolder = Annotated[Path, typer.Argument(help="The bundle's folder.")]
SyntheticName = Annotated[
    str | None, typer.Option(help="A release of synthetic records [default: the only one].")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def examples(*lines: str) -> str:
    """The end of a command's help."""
    listed = "\n".join(f"  {line}" for line in lines)
    return f"\b\nExample{'s' if len(lines) > 1 else ''}:\n{listed}"
