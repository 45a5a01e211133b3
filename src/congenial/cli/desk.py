"""`congenial desk`: plan, price, review, publish and release in a browser on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import with_examples
from congenial.cli.output import line, paragraph
from congenial.errors import PlanError


@with_examples("congenial desk", "congenial desk releases --port 8765")
def desk(
    folder: Annotated[Path, typer.Argument(help="The folder with plans and data.")] = Path(),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    browse: Annotated[
        bool, typer.Option("--browse", help="Open the link in this computer's browser.")
    ] = False,
) -> None:
    """Open the commands as pages in your browser.

    The desk runs on this computer and prints a link that works once. It does what the commands do.
    It needs the extra `desk`: pip install 'congenial[desk]'.
    """
    try:
        from congenial.desk.access import DeskSettings
        from congenial.desk.server import link, listen, serve
    except ModuleNotFoundError:
        raise PlanError(
            "the desk needs the packages starlette, uvicorn and python-multipart.",
            remedy="Install them: pip install 'congenial[desk]'.",
        ) from None
    settings = DeskSettings(folder.absolute(), port=port)
    with listen(settings) as opened:
        address = link(settings, opened.getsockname()[1])
        line("Desk", address)
        paragraph("The link works once. Press Ctrl-C to close the desk.")
        if browse:
            typer.launch(address)
        serve(settings, opened)
