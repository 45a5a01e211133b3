"""`congenial verify`: are bundles whole, do they agree with their figures, do promises hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, complain, emit, heading, say, working
from congenial.errors import BundleError, CongenialError
from congenial.publication.verification import verification_document

FAILED = 1


@with_examples(
    "congenial verify bundles/sex-by-age",
    "congenial verify bundles/sex-by-age --digest 3f5a...",
    "congenial verify bundles/*",
)
def verify(
    bundles: Annotated[
        list[Path],
        typer.Argument(metavar="BUNDLE...", help="Folders of bundles; each is checked separately."),
    ],
    digest: Annotated[
        str | None, typer.Option(help="The digest its publisher announced elsewhere.")
    ] = None,
    signer: Annotated[
        Path | None,
        typer.Option(help="The publisher's public key (.pub), or a file of allowed signers."),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="Check only the files of this part, if the bundle was released by parts."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check bundles: files, exact figures, numbers, promise.

    Exit code 1 if a check fails.
    """
    if len(bundles) > 1:
        return _verify_each(bundles, digest, signer, part, as_json)
    with working("checking the bundle") as tell:
        document = verification_document(bundles[0], digest, signer, part, tell)
    emit(document) if as_json else _show(document)
    return _leave(0 if document["holds"] else FAILED)


def _verify_each(
    bundles: Sequence[Path], digest: str | None, signer: Path | None, part: str | None, silent: bool
) -> None:
    """One bundle after the other; one that cannot be read does not keep the others from it."""
    if digest is not None:
        raise BundleError(
            f"--digest belongs to one bundle, but {len(bundles)} are given.",
            remedy="Give one bundle, or ask for signatures with --signer.",
        )

    documents, worst = [], 0
    for bundle in bundles:
        if not silent:
            heading(str(bundle))
        try:
            with working(f"checking {bundle.name}") as tell:
                document = verification_document(bundle, None, signer, part, tell)
            code = 0 if document["holds"] else FAILED
        except CongenialError as error:
            document = {"bundle": str(bundle), "holds": False, "error": str(error)}
            code = error.exit_code
        documents.append(document)
        worst = max(worst, code)
        if not silent:
            _show(document)
    if silent:
        emit(documents)
    _leave(worst)


def _leave(code: int) -> None:
    if code:
        raise typer.Exit(code)


def _show(document: Document) -> None:
    if "error" in document:
        complain(document["error"])
    else:
        say("verify.txt", verification=document)
