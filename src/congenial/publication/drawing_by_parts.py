"""From a release that is drawn part by part to its bundle, through any number of interruptions.

The private folder `runs/NAME` beside the plan (`run_folder`) holds run.json: which release of which
ledger this is, what it is drawn from (digest and totals of the counts of every part), and the
secret (256 bits) from which every part's noise follows. Order, so that a crash or a power cut never
under-counts and nothing is drawn twice:

1. prepare: the data are read and checked into the folder, synced; nothing is spent.
2. reserve in the ledger; write run.json, synced; mark as drawn. Spent from here on.
3. draw what is not there yet, write the bundle, rename it, commit, remove the folder.

A run that stops once run.json is there is found by the next `congenial release`: the ledger has it
as reserved or drawn, so it goes on without a new reservation, from the same secret, and makes again
what is missing or damaged. One that stops before is begun anew. So Ctrl-C may stop it at any time,
and nothing has to be kept back. A folder that may be paid for is never removed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from congenial.data.durable_files import sync, write_whole
from congenial.errors import BundleError
from congenial.kinds.kind import (
    Document,
    Offer,
    PartedRun,
    Secret,
)
from congenial.ledger.ledger import Ledger, Reservation
from congenial.publication import bundle
from congenial.publication.claim import Claim, claimed, run_folder
from congenial.publication.drawing import (
    ReleaseResult,
    after_draw,
    promise_of,
    promised,
    publish,
    refuse_changed,
)
from congenial.publication.plan import Plan

RUN = "run.json"


def carry_out_by_parts(
    plan: Plan,
    offer: Offer,
    run: PartedRun,
    folder: Path,
    ledger: Ledger,
    progress: Callable[[str], Any],
) -> ReleaseResult:
    """Go on with an interrupted run, or begin one: prepare, reserve, mark as drawn, draw, write."""
    place = run_folder(plan, folder)
    with claimed(folder, place) as claim:
        state = _unfinished(folder, place, ledger, run)
        counted = None if state is None else state["counted"]
        if state is None:
            bundle.check_absent(folder)
            with _nothing_drawn(place):
                _make_room(place, folder, run)
                counts = run.prepare(place)
            state = _reserved(plan, offer, run, counts, place, ledger)
        with after_draw(offer.name, offer.guarantee, claim):
            if counted is not None:
                progress("continuing an earlier run")
                run.prepare(place, counted)
            drawn = promised(run.draw(place, _secret(state)), offer.guarantee)
            words = promise_of(offer.guarantee, ledger)
            progress("writing the bundle")
            digest = _published(drawn, folder, words, offer, claim)
            Reservation(ledger, state["release"]).commit(digest)
        _remove(place, f"'{offer.name}' is published in '{folder}' and recorded in the ledger.")
    return ReleaseResult(bundle.read(folder), folder, digest, words)


def _reserved(
    plan: Plan, offer: Offer, run: PartedRun, counted: Document, place: Path, ledger: Ledger
) -> Document:
    """Take the release's share of the budget, keep its secret, mark it as drawn."""
    parts = (offer.description, offer.guarantee, offer.name, plan.digest)
    with ledger.reserve(*parts) as reservation:
        refuse_changed(offer, ledger)
        secret = run.secret()
        state = {
            "release": reservation.id,
            "ledger": ledger.where,
            "fingerprint": run.fingerprint,
            "counted": counted,
            "randomness": secret.label,
            "publishable": secret.publishable,
            "secret": secret.bits.hex(),
        }
        with _nothing_drawn(place):
            write_whole(place / RUN, json.dumps(state).encode(), mode=0o600)
            for above in (place.parent, place.parent.parent):
                sync(above)
        reservation.mark_drawn()
    return state


@contextmanager
def _nothing_drawn(place: Path) -> Iterator[None]:
    """Say of a folder that cannot be written to that nothing is lost by it."""
    try:
        yield
    except OSError as reason:
        raise BundleError(
            f"'{place}' cannot be written to: {reason.strerror}. Nothing was drawn.",
            remedy=f"Make room, or make '{place.parent}' a link to a folder on another disk.",
        ) from None


def _unfinished(folder: Path, place: Path, ledger: Ledger, run: PartedRun) -> Document | None:
    """The run.json of an interrupted run that has drawn; None where nothing was spent.

    What belongs to no draw is removed, so that a new run begins with the data as they are.
    """
    if not place.exists():
        return None
    state = _told(place)
    if state is None:
        _remove(place, "Nothing was drawn.")
        return None
    release = str(state["release"])
    entry = ledger.find(release)
    if entry is None:
        raise BundleError(
            f"'{folder.name}' was started as release {release} of the ledger '{state['ledger']}'. "
            f"The ledger '{ledger.where}' has no such release: it is a different ledger or an "
            "older copy. Nothing was drawn or removed.",
            remedy="Name the ledger in which it was started, and release again: it spends nothing "
            f"more. To start again, move '{place}' away; what it spent stays spent.",
        )
    if not entry.pending:  # published, or given up
        _remove(place, "Nothing was drawn now.")
        return None
    if state["fingerprint"] != run.fingerprint:
        raise BundleError(
            f"'{folder.name}' was started, and its cost recorded, with another plan or other "
            "data. Nothing was drawn.",
            remedy="Restore that plan and those data and release again; or give it up with "
            f"`congenial ledger abandon`, then delete '{place}'.",
        )
    if entry.status == "reserved":  # it stopped between run.json and the mark
        Reservation(ledger, release).mark_drawn()
    return state


def _published(drawn: Any, folder: Path, words: str, offer: Offer, claim: Claim) -> str:
    """The digest of the bundle, which is written unless an interrupted run did that."""
    if folder.exists():
        there = bundle.read_index(folder)
        if there.get("folders") != bundle.folders_of(drawn):
            raise BundleError(
                f"'{folder}' contains other files.", remedy="Move it away, then release again."
            )
        return bundle.sha256(bundle.read_bytes(folder / bundle.INDEX))
    return publish(drawn, folder, words, offer, claim)


def _make_room(place: Path, folder: Path, run: PartedRun) -> None:
    """Make the private folder, and refuse where its disk, or that of the bundle, is nearly full."""
    place.mkdir(mode=0o700, parents=True)
    for where in (place, folder.parent):
        free = shutil.disk_usage(where).free
        if free < run.room:
            place.rmdir()
            raise BundleError(
                f"there is no room for the bundle in '{where}': it needs about "
                f"{run.room / 2**30:.1f} GiB, and {free / 2**30:.1f} are free. Nothing was drawn.",
                remedy="Make room, or choose another folder for the bundle with --out, and for "
                f"CONFIDENTIAL counts with a link at '{place.parent}'.",
            )


def _remove(place: Path, so_far: str) -> None:
    """Remove the private folder, run.json last: as long as anything is left it says what it is."""
    try:
        for path in place.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != RUN:
                path.unlink()
        sync(place)
        (place / RUN).unlink(missing_ok=True)
        place.rmdir()
    except OSError as reason:
        raise BundleError(
            f"{so_far} But '{place}' cannot be deleted: {reason.strerror}. It holds CONFIDENTIAL "
            "counts, and the secret from which the noise is drawn.",
            remedy="Delete it by hand.",
        ) from None


def _told(place: Path) -> Document | None:
    """What run.json says; None where a run stopped before it, with nothing spent."""
    file = place / RUN
    if not file.exists() and not (place / "drawn").exists():
        return None
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        _ = (
            _secret(state),
            state["release"],
            state["ledger"],
            state["fingerprint"],
            state["counted"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise BundleError(
            f"'{file}' is missing or damaged. It identifies this release and contains its secret; "
            "its cost may be recorded. Nothing was drawn or removed.",
            remedy="Restore the file from a copy, and release again. Without a copy: `congenial "
            "ledger pending` lists what is recorded; give it up with `congenial ledger "
            f"abandon`, then delete '{place}'.",
        ) from None
    return dict(state)


def _secret(told: Document) -> Secret:
    bits = bytes.fromhex(told["secret"])
    return Secret(bits, str(told["randomness"]), bool(told["publishable"]))
