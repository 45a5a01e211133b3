"""What several commands have in common before they run: arguments, options, the end of a help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from congenial.errors import InferenceError

PlanFile = Annotated[Path, typer.Argument(help="The plan file.")]
BundleFolder = Annotated[Path, typer.Argument(help="The bundle's folder.")]
SyntheticName = Annotated[
    str | None, typer.Option(help="A release of synthetic records [default: the only one].")
]
NationPart = Annotated[
    str | None,
    typer.Option("--part", help="Of a nation drawn by parts: the part to ask, such as a state."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def examples(*lines: str) -> str:
    """The end of a command's help."""
    listed = "\n".join(f"  {line}" for line in lines)
    return f"\b\nExample{'s' if len(lines) > 1 else ''}:\n{listed}"


def asked_part(release: Any, part: str | None) -> Any:
    """A release as read, or the part of a nation that is asked."""
    if part is None:
        return release
    if not callable(getattr(release, "of_part", None)):
        raise InferenceError(
            f"a bundle of kind '{release.kind}' is not cut into parts.", remedy="Leave out --part."
        )
    return release.of_part(part)
