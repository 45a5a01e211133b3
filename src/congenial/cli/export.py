"""`congenial export`: a bundle in the formats that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import BundleFolder, Json, with_examples
from congenial.cli.output import answer, working
from congenial.errors import InferenceError
from congenial.exports.export_formats import export_bundle


@with_examples(
    "congenial export bundles/sex-by-age --to xlsx --out spreadsheet",
    "congenial export bundles/sex-by-age --to sdmx --out sdmx --level 0.9",
    "congenial export bundles/nation --to datapackage --part 01 --out state-01",
)
def export(
    bundle: BundleFolder,
    to: Annotated[str, typer.Option(help="datapackage, sdmx, xlsx or registry.")],
    out: Annotated[Path, typer.Option(help="The folder to write to; no file is overwritten.")],
    level: Annotated[float, typer.Option(help="Level of the intervals of cells.")] = 0.9,
    part: Annotated[
        str | None,
        typer.Option(
            help="Export the tables of this part; without it, the tables above the parts."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a bundle's tables for Excel, SDMX and other tools.

    Every cell comes with an interval. Spends nothing.
    """
    if not 0 < level < 1:
        raise InferenceError(f"level {level:g} is not between 0 and 1.", remedy="Use 0.9 or 0.95.")
    with working("reading the bundle") as tell:
        document = export_bundle(bundle, to, out, level, part, tell)
    answer("export.txt", as_json, export=document)
