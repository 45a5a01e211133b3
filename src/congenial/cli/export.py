"""`congenial export`: a bundle in the formats that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import BundleFolder, Json, with_examples
from congenial.cli.output import Document, emit, line, paragraph, working
from congenial.errors import BundleError, InferenceError


@with_examples(
    "congenial export bundles/sex-by-age --to xlsx --out spreadsheet",
    "congenial export bundles/sex-by-age --to sdmx --out sdmx --level 0.9",
    "congenial export bundles/nation --to datapackage --part 01 --out state-01",
)
def export(
    bundle: BundleFolder,
    to: Annotated[str, typer.Option(help="datapackage, sdmx, xlsx or registry.")],
    out: Annotated[Path, typer.Option(help="The folder to write to; no file is overwritten.")],
    level: Annotated[float, typer.Option(help="Level of the intervals of cells.")] = 0.95,
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
        from congenial.exports.export_formats import format_called
        from congenial.exports.exported_tables import exported_bundle
        from congenial.publication.bundle import DIGEST, read, read_index, read_text

        chosen = format_called(to)
        digest = read_text(bundle / DIGEST).strip()
        release = read(bundle)
        tell("working out intervals")
        told = exported_bundle(release, read_index(bundle), digest, level, part)
        files = chosen.files(told, tell)
        written = _write(files, out)
    document: Document = {
        "bundle": str(bundle),
        "format": to,
        "files": [str(path) for path in written],
        "left_open": chosen.left_open(told),
        "publishable": told.release.publishable,
    }
    emit(document) if as_json else _show(document)


def _write(files: dict[str, bytes], out: Path) -> list[Path]:
    """The files, none of them in place of another."""
    paths = {out / name: content for name, content in files.items()}
    there = [path for path in paths if path.exists()]
    if there:
        raise BundleError(f"'{there[0]}' already exists.", remedy="Choose another --out.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, content in paths.items():
            path.write_bytes(content)
    except OSError as reason:
        raise BundleError(
            f"cannot write to '{out}': {reason.strerror}.", remedy="Choose another --out."
        ) from None
    return list(paths)


def _show(document: Document) -> None:
    for path in document["files"]:
        line("Wrote", path)
    for what in document["left_open"]:
        line("Fill in", what)
    if not document["publishable"]:
        paragraph("NOT FOR PUBLICATION: the bundle was drawn with a seed.", style="bold red")
