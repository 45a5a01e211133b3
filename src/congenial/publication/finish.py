"""Finish releases that were drawn, and so are paid for, and whose bundle or record is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from congenial.errors import BundleError
from congenial.ledger.ledger import Ledger, Reservation
from congenial.ledger.state import Entry
from congenial.publication import bundle, rerender
from congenial.publication.claim import Claim, claimed, unpacked
from congenial.publication.drawing import after_draw, promise_of

Report = Callable[[Any, str], str]


@dataclass(frozen=True)
class Finished:
    """A release that has its bundle and its record now."""

    name: str
    folder: Path
    digest: str


def finish(ledger: Ledger, folder: Path, report: Report = rerender.report) -> list[Finished]:
    """Finish every release whose drawn values are kept in `folder`; spends nothing.

    What was given up in the ledger is refused: its record can no longer be made.
    """
    done = []
    for kept in sorted(folder.glob(".*.drawn")):
        place = kept.with_name(kept.name.removeprefix(".").removesuffix(".drawn"))
        with claimed(place) as claim:
            if claim.kept.exists():  # another run may have finished it meanwhile
                done.append(_finished(ledger, claim, report))
    return done


def _finished(ledger: Ledger, claim: Claim, report: Report) -> Finished:
    release, drawn = unpacked(claim.kept)
    entry = _entry(ledger, release, claim)
    with after_draw(drawn.name, drawn.guarantee, claim):
        digest = entry.bundle_digest
        if entry.status == "drawn":
            digest = _written(ledger, claim, drawn, report)
            Reservation(ledger, release).commit(digest)
    claim.done()
    return Finished(drawn.name, claim.folder, digest)


def _entry(ledger: Ledger, release: str, claim: Claim) -> Entry:
    entry = ledger.find(release)
    if entry is None or entry.status not in ("drawn", "committed"):
        status = "is not in this ledger" if entry is None else f"is {entry.status} in the ledger"
        raise BundleError(
            f"what is saved in '{claim.kept}' {status}, so it cannot be recorded as published.",
            remedy="Name the ledger in which it was drawn. Delete the file if the release was "
            "given up.",
        )
    return entry


def _written(ledger: Ledger, claim: Claim, drawn: Any, report: Report) -> str:
    """The digest of the bundle, which is written unless it is there already."""
    if claim.folder.exists():
        there = bundle.read_index(claim.folder).get("files", {})
        files = {name: bundle.sha256(text) for name, text in bundle.drawn_files(drawn).items()}
        if any(there.get(name) != digest for name, digest in files.items()):
            raise BundleError(
                f"'{claim.folder}' contains other files.",
                remedy="Move it away, then finish again.",
            )
        return bundle.sha256(bundle.read_bytes(claim.folder / bundle.INDEX))
    words = promise_of(drawn.guarantee, ledger)
    page = report(drawn, words)
    prepared = bundle.write(drawn, claim.folder, words, page, claim.partial)
    prepared.publish()
    return prepared.digest
