"""From a release that is drawn part by part to its bundle, through any number of interruptions.

The private folder `.name.run` beside the bundle holds run.json (which release of the ledger this
is, what it is drawn from) and secret (256 bits, from which every part's noise follows). Order, so
that a crash never under-counts and nothing is drawn twice:

1. prepare: the data are read and checked into the folder; nothing is spent.
2. reserve in the ledger; write run.json and secret, synced; mark as drawn. Spent from here on.
3. draw what is not there yet, write the bundle, rename it, commit, remove the folder.

A run that stops once run.json is there is found by the next `congenial release`: the ledger has it
as reserved or drawn, so it goes on without a new reservation, from the same secret. One that stops
before is begun anew. So Ctrl-C may stop it at any time, and nothing has to be kept back.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from congenial.errors import BundleError, MandateError
from congenial.kinds.kind import Offer, PartedRun, Secret
from congenial.ledger.ledger import Ledger
from congenial.ledger.reservation import Reservation
from congenial.publication import bundle
from congenial.publication.claim import Claim, claimed
from congenial.publication.drawing import ReleaseResult, after_draw, promise_of, promised
from congenial.publication.plan import Plan

RUN, SECRET = "run.json", "secret"


def carry_out_by_parts(
    plan: Plan,
    offer: Offer,
    run: PartedRun,
    folder: Path,
    ledger: Ledger,
    progress: Callable[[str], Any],
) -> ReleaseResult:
    """Go on with an interrupted run, or begin one: prepare, reserve, mark as drawn, draw, write."""
    with claimed(folder) as claim:
        release = _unfinished(claim, ledger, run)
        if release is None:
            bundle.check_absent(folder)
            _make_room(claim, run)
            with _nothing_drawn(claim):
                run.prepare(claim.run)
            release = _reserved(plan, offer, run, claim, ledger)
        else:
            progress("going on with what an earlier run has drawn")
        with after_draw(offer.name, offer.guarantee, claim):
            run.prepare(claim.run)  # again only where an earlier run's counts were lost
            drawn = promised(run.draw(claim.run, _secret(claim)), offer.guarantee)
            words = promise_of(offer.guarantee, ledger)
            progress("writing the bundle")
            digest = _published(drawn, folder, words, offer, claim)
            Reservation(ledger, release).commit(digest)
        shutil.rmtree(claim.run, ignore_errors=True)
    return ReleaseResult(bundle.read(folder), folder, digest, words)


def _reserved(plan: Plan, offer: Offer, run: PartedRun, claim: Claim, ledger: Ledger) -> str:
    """Take the release's share of the budget, keep its secret, mark it as drawn."""
    given = (offer.description, offer.guarantee, offer.name, plan.digest)
    with ledger.reserve(*given) as reservation:
        if not offer.holds(ledger):
            raise MandateError(
                "a figure was published while this release was being prepared.",
                remedy="Run the release again; nothing was drawn.",
            )
        secret = run.secret()
        told = {
            "release": reservation.id,
            "fingerprint": run.fingerprint,
            "randomness": secret.label,
            "publishable": secret.publishable,
        }
        with _nothing_drawn(claim):
            _write_private(claim.run / SECRET, secret.bits)
            _write_private(claim.run / RUN, json.dumps(told).encode())
            bundle.sync(claim.run)
            bundle.sync(claim.run.parent)
        reservation.mark_drawn()
    return reservation.id


@contextmanager
def _nothing_drawn(claim: Claim) -> Iterator[None]:
    """Say of a folder that cannot be written to that nothing is lost by it."""
    try:
        yield
    except OSError as reason:
        raise BundleError(
            f"'{claim.run}' cannot be written to: {reason.strerror}. Nothing was drawn.",
            remedy="Make room, or choose another folder with --out.",
        ) from None


def _unfinished(claim: Claim, ledger: Ledger, run: PartedRun) -> str | None:
    """The release that an interrupted run has drawn from; None where nothing was spent.

    What belongs to no draw is removed, so that a new run begins with the data as they are.
    """
    if not claim.run.exists():
        return None
    told = _told(claim)
    release = str(told.get("release", ""))
    status = next((one.status for one in ledger.entries() if one.id == release), None)
    if status not in ("reserved", "drawn"):
        shutil.rmtree(claim.run)
        return None
    if told.get("fingerprint") != run.fingerprint:
        raise BundleError(
            f"'{claim.folder.name}' was begun and is paid for, with another plan or other data "
            "than now. Nothing was drawn now.",
            remedy="Bring plan and data back and release again; or give it up with "
            f"`congenial ledger abandon`, and remove '{claim.run}'.",
        )
    if status == "reserved":  # it stopped between the secret and the mark
        Reservation(ledger, release).mark_drawn()
    return release


def _published(drawn: Any, folder: Path, words: str, offer: Offer, claim: Claim) -> str:
    """The digest of the bundle, which is written unless an interrupted run did that."""
    if folder.exists():
        there = bundle.read_index(folder)
        if there.get("folders") != bundle.folders_of(drawn):
            raise BundleError(
                f"'{folder}' holds something else.", remedy="Move it away, then release again."
            )
        return bundle.sha256(bundle.read_bytes(folder / bundle.INDEX))
    report = offer.report(drawn, words)
    prepared = bundle.write(drawn, folder, words, report, claim.partial)
    prepared.publish()
    return prepared.digest


def _make_room(claim: Claim, run: PartedRun) -> None:
    """Make the private folder, and refuse where the disk is nearly full."""
    claim.run.mkdir(mode=0o700, parents=True)
    free = shutil.disk_usage(claim.run).free
    if free < run.room:
        claim.run.rmdir()
        raise BundleError(
            f"there is no room for the bundle in '{claim.folder.parent}': it needs about "
            f"{run.room / 2**30:.1f} GiB, and {free / 2**30:.1f} are free. Nothing was drawn.",
            remedy="Make room, or choose another folder with --out.",
        )


def _told(claim: Claim) -> dict[str, Any]:
    try:
        told = json.loads((claim.run / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # it stopped before anything was spent
        return {}
    return told if isinstance(told, dict) else {}


def _secret(claim: Claim) -> Secret:
    told = _told(claim)
    bits = bundle.read_bytes(claim.run / SECRET)
    return Secret(bits, str(told["randomness"]), bool(told["publishable"]))


def _write_private(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)
