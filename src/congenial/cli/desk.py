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
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    browse: Annotated[
        bool, typer.Option("--browse", help="Open the link in the browser of this machine.")
    ] = False,
    user_header: Annotated[
        str, typer.Option(help="For a team: the header in which a proxy names the user.")
    ] = "",
    proxy_secret_file: Annotated[
        Path | None,
        typer.Option(help="For a team: its first line is what the proxy proves itself with."),
    ] = None,
    origin: Annotated[
        str, typer.Option(help="For a team: the proxy's name in browsers, such as desk.example.")
    ] = "",
    listen: Annotated[
        str, typer.Option(help="For a team: the address of this machine to listen on.")
    ] = "127.0.0.1",
) -> None:
    """Open the desk: a web application on this machine, by a link that works once.

    Everything it does can be done by commands, and it calls the same functions. It needs the extra
    `desk`: pip install 'congenial[desk]'.
    """
    try:
        from congenial.desk.desk_settings import DeskSettings
        from congenial.desk.server import link, serve
        from congenial.desk.server import listen as open_socket
    except ModuleNotFoundError:
        raise PlanError(
            "the desk needs the packages starlette, uvicorn and python-multipart.",
            remedy="Install them: pip install 'congenial[desk]'.",
        ) from None
    secret = "" if proxy_secret_file is None else _first_line(proxy_secret_file)
    public = f"https://{origin.removeprefix('https://')}" if origin else ""
    settings = DeskSettings(folder.absolute(), listen, port, user_header, secret, public)
    with open_socket(settings) as opened:
        address = link(settings, opened.getsockname()[1])
        line("Desk", address)
        paragraph("The link works once. Press Ctrl-C to close the desk.")
        if browse:
            typer.launch(address)
        serve(settings, opened)


def _first_line(path: Path) -> str:
    try:
        return (path.read_text(encoding="utf-8").splitlines() or [""])[0].strip()
    except (OSError, UnicodeDecodeError):
        raise PlanError(f"'{path}' cannot be read.", remedy="Check the path.") from None
