"""`congenial explain`: the promise of a plan or of a bundle, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from congenial.cli.command_options import Json, with_examples
from congenial.cli.output import Document, Tell, emit, facts, heading, paragraph, working
from congenial.errors import BundleError


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
            "--for", help="With a bundle: analyst, journalist or engineer; in words for them."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say in words what a plan would promise, or what a bundle promises."""
    if reader is not None and not what.is_dir():
        raise BundleError(
            f"'{what}' is no bundle, and --for is about bundles.",
            remedy="Give a bundle's folder, or leave out --for.",
        )
    with working("reading") as tell:
        document = of_bundle(what, tell) if what.is_dir() else of_plan(what, tell)
        if reader is not None:
            document |= for_reader(what, reader)
    emit(document) if as_json else show(document)


def for_reader(folder: Path, reader: str) -> Document:
    """What one reader has to know about a bundle."""
    from congenial.publication.bundle import read
    from congenial.report.explained_for import explained_for

    told = [{"heading": h, "text": t} for h, t in explained_for(read(folder), reader)]
    return {"reader": reader, "told": told}


def of_plan(path: Path, progress: Tell = lambda _: None) -> Document:
    """The promise of each release of a plan."""
    from congenial.publication import workflow
    from congenial.publication.plan import Plan

    result = workflow.check(Plan.load(path), again=True, progress=progress)
    promises = [
        {
            "name": one.section.name,
            "promise": one.guarantee.explain(),
            "guarantee": one.guarantee.to_dict(),
            "words": one.guarantee.tradeoff.words,
        }
        for one in result.releases
    ]
    return {"plan": str(path), "basis": result.basis, "promises": promises}


def of_bundle(folder: Path, progress: Tell = lambda _: None) -> Document:
    """The promise a bundle states, with its building blocks; whether it holds is for `verify`."""
    from congenial.publication.bundle import read, read_index
    from congenial.publication.verification import SYSTEM, verify

    release = read(folder)
    failed = [one.what for one in verify(folder, progress=progress) if not one.holds]
    if not release.publishable:  # said on its own
        failed = [what for what in failed if what != SYSTEM]
    promise = {
        "name": release.name,
        "promise": str(read_index(folder).get("promise", "")),
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


def _apart(adjacency: Document) -> str:
    """How far apart look-alike databases are, where the pairs are databases."""
    return f", at most {adjacency['records']} records" if "reading" in adjacency else ""


def show(document: Document) -> None:
    """The promises for people."""
    if not document.get("publishable", True):
        paragraph(f"NOT FOR PUBLICATION: {document['randomness']}", style="bold red")
    if document.get("failed"):
        failed = "; ".join(document["failed"])
        paragraph(f"DO NOT RELY ON THIS: `congenial verify` fails ({failed}).", style="bold red")
    if "told" in document:
        for part in document["told"]:
            heading(part["heading"])
            paragraph(part["text"])
        return
    for one in document["promises"]:
        heading(one["name"])
        paragraph(one["promise"])
        paragraph("")
        guarantee = one["guarantee"]
        adjacency = guarantee["adjacency"]
        facts(
            {
                "Domain": guarantee["domain"],
                "Universe": guarantee["universe"],
                "Adjacency": f"{adjacency['words']} ({adjacency['metric']}{_apart(adjacency)})",
                "Promise": one["words"],
                "Basis": guarantee["basis"],
                "Assumed": "; ".join(guarantee["assumptions"]) or "nothing else",
                "Source": guarantee["citation"] or "-",
            }
        )
    if "basis" in document:
        paragraph(f"These are {document['basis']}.")
