"""`congenial site`: several bundles as one site, with a finder over all their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import answer, working
from congenial.exports.site_of_bundles import write_site


@with_examples(
    "congenial site bundles/* --out site",
    'congenial site bundles/* --out site --title "Census 2020"',
)
def site(
    bundles: Annotated[
        list[Path], typer.Argument(metavar="BUNDLE...", help="Folders of the bundles to show.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not exist yet.")],
    title: Annotated[str, typer.Option(help="The heading of the first page.")] = "",
    as_json: Json = False,
) -> None:
    """Put several bundles on one site, with a search over all tables.

    Plain files: open index.html, or copy the folder to any web server. Spends nothing.
    """
    with working("checking the bundles") as tell:
        document = write_site(bundles, out, title, tell)
    answer("site.txt", as_json, site=document)
