"""What several commands have in common before they run: arguments, options, the end of a help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from congenial.errors import InferenceError

PlanFile = Annotated[Path, typer.Argument(help="The plan file.")]
BundleFolder = Annotated[Path, typer.Argument(help="The bundle's folder.")]
SyntheticName = Annotated[
    str | None, typer.Option(help="A release of synthetic records [default: the only one].")
]
NationPart = Annotated[
    str | None,
    typer.Option(
        "--part", help="The part to read, such as a state, if the bundle was released by parts."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Command = TypeVar("Command", bound=Callable[..., None])


def examples(*lines: str) -> str:
    """The end of a command's help."""
    listed = "\n".join(f"  {line}" for line in lines)
    return f"\b\nExample{'s' if len(lines) > 1 else ''}:\n{listed}"


def with_examples(*lines: str) -> Callable[[Command], Command]:
    """A command of the program, and how it is called."""

    def add(command: Command) -> Command:
        command.epilog = examples(*lines)  # type: ignore[attr-defined]
        return command

    return add


def asked_part(release: Any, part: str | None) -> Any:
    """A release as read, or the part of a nation that is asked."""
    if part is None:
        return release
    if not callable(getattr(release, "of_part", None)):
        raise InferenceError(
            f"a bundle of '{release.kind}' has no parts.", remedy="Leave out --part."
        )
    return release.of_part(part)
