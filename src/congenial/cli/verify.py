"""`congenial verify`: is a bundle whole, does it agree with its figures, does its promise hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import BundleFolder, Json, with_examples
from congenial.cli.output import Document, Tell, emit, paragraph, table, working

FAILED = 1


@with_examples(
    "congenial verify bundles/sex-by-age",
    "congenial verify bundles/sex-by-age --digest 3f5a...",
)
def verify(
    bundle: BundleFolder,
    digest: Annotated[
        str | None, typer.Option(help="The digest its publisher announced elsewhere.")
    ] = None,
    signer: Annotated[
        Path | None,
        typer.Option(help="The publisher's public key (.pub), or a file of allowed signers."),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Look into the files of one part of a large bundle only.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a bundle: digests, published figures, schema, promise. Exit code 1 if a check fails."""
    with working("checking the bundle") as tell:
        document = examine(bundle, digest, signer, part, tell)
    emit(document) if as_json else show(document)
    if not document["holds"]:
        raise typer.Exit(FAILED)


def examine(
    bundle: Path,
    digest: str | None = None,
    signer: Path | None = None,
    part: str | None = None,
    progress: Tell = lambda _: None,
) -> Document:
    """The checks as plain data."""
    from congenial.publication.verification import verify

    checks = verify(bundle, digest, signer, part, progress)
    return {
        "bundle": str(bundle),
        "holds": all(check.holds for check in checks),
        "digest_given": digest is not None,
        "signer_given": signer is not None,
        "checks": [
            {"what": check.what, "holds": check.holds, "detail": check.detail} for check in checks
        ],
    }


def show(document: Document) -> None:
    """The checks for people."""
    from congenial.publication.verification import ADDED

    rows = [
        ("ok" if one["holds"] else "FAILED", one["what"], one["detail"])
        for one in document["checks"]
    ]
    table(("", "check", "detail"), rows)
    failed = [one["what"] for one in document["checks"] if not one["holds"]]
    if failed == [ADDED]:
        paragraph(
            "Every file that the bundle lists is as released, but files were added to the folder. "
            "Remove them and verify again.",
            style="bold red",
        )
    elif failed:
        paragraph("Do not use this bundle as it is.", style="bold red")
    elif not document["digest_given"] and not document["signer_given"]:
        paragraph(
            "All checks hold. They detect accidents, not forgery: compare the digest with one "
            "published elsewhere (--digest), or ask for a signature (--signer)."
        )
    else:
        paragraph("All checks hold.")
