"""`congenial explain`: the promise of a plan or of a bundle, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, Tell, emit, say, working
from congenial.errors import BundleError
from congenial.publication import workflow
from congenial.publication.bundle import read, read_index
from congenial.publication.plan import Plan
from congenial.publication.verification import SYSTEM, verify
from congenial.report.explained_for import explained_for
from congenial.report.release_page import in_short


@with_examples(
    "congenial explain plan.toml",
    "congenial explain bundles/sex-by-age",
    "congenial explain bundles/sex-by-age --for journalist",
)
def explain(
    what: Annotated[
        Path, typer.Argument(metavar="PLAN|BUNDLE", help="A plan file or a bundle's folder.")
    ],
    reader: Annotated[
        str | None,
        typer.Option(
            "--for", help="Explain a bundle to this reader: analyst, journalist or engineer."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain in words what a plan or a bundle promises."""
    if reader is not None and not what.is_dir():
        raise BundleError(
            f"'{what}' is not a bundle, and --for needs one.",
            remedy="Give a bundle's folder, or leave out --for.",
        )
    with working("reading") as tell:
        document = of_bundle(what, tell) if what.is_dir() else of_plan(what, tell)
        if reader is not None:
            document |= for_reader(what, reader)
    emit(document) if as_json else show(document)


def for_reader(folder: Path, reader: str) -> Document:
    """What one reader has to know about a bundle."""
    texts = explained_for(read(folder), reader, str(read_index(folder).get("promise", "")))
    parts = [{"heading": heading, "text": text} for heading, text in texts.items()]
    return {"reader": reader, "parts": parts}


def of_plan(path: Path, progress: Tell = lambda _: None) -> Document:
    """The promise of each release of a plan."""
    result = workflow.check(Plan.load(path), again=True, progress=progress)
    promises = [
        {
            "name": release.section.name,
            "in_short": release.guarantee.in_short,
            "promise": release.guarantee.explain(),
            "guarantee": release.guarantee.to_dict(),
            "words": release.guarantee.tradeoff.words,
        }
        for release in result.releases
    ]
    return {"plan": str(path), "basis": result.basis, "promises": promises}


def of_bundle(folder: Path, progress: Tell = lambda _: None) -> Document:
    """The promise a bundle states, with its building blocks; whether it holds is for `verify`."""
    release = read(folder)
    failed = [check.what for check in verify(folder, progress=progress) if not check.holds]
    if not release.publishable:  # said on its own
        failed = [what for what in failed if what != SYSTEM]
    paragraph = str(read_index(folder).get("promise", ""))
    promise = {
        "name": release.name,
        "in_short": dict(in_short(release.guarantee, paragraph)),
        "promise": paragraph,
        "guarantee": release.guarantee.to_dict(),
        "words": release.guarantee.tradeoff.words,
    }
    return {
        "bundle": str(folder),
        "publishable": release.publishable,
        "randomness": release.randomness,
        "failed": failed,
        "promises": [promise],
    }


def show(document: Document) -> None:
    """The promises for people."""
    say("explain.txt", document=document)
