"""From a release that is ready to a bundle that is out, whatever kind of release it is.

Order, so that a crash never under-counts and a full disk loses nothing that is paid for: rehearse,
claim the folder and its room, reserve in the ledger, mark as drawn, draw, keep what was drawn,
write the bundle under a temporary name, rename it, commit. What was marked as drawn stays spent.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from congenial.errors import (
    BundleError,
    CongenialError,
    LedgerError,
    MandateError,
    RandomnessError,
    SpentNote,
)
from congenial.kinds.kind import Offer
from congenial.ledger.ledger import Ledger
from congenial.privacy.guarantee import Guarantee
from congenial.publication import bundle
from congenial.publication.claim import Claim, claimed, refuse_kept, room_for
from congenial.publication.plan import Plan


@dataclass(frozen=True)
class ReleaseResult:
    """Result of `release`: what was drawn, where the bundle is, and the promise in words."""

    release: Any
    folder: Path
    digest: str
    promise: str


def carry_out(
    plan: Plan, offer: Offer, folder: Path, ledger: Ledger, progress: Callable[[str], Any]
) -> ReleaseResult:
    """Claim the folder and its room, reserve, mark as drawn, draw, keep, write, rename, commit."""
    if offer.run is not None:
        from congenial.publication.drawing_by_parts import carry_out_by_parts

        return carry_out_by_parts(plan, offer, offer.run, folder, ledger, progress)
    guarantee = offer.guarantee
    with (
        claimed(folder) as claim,
        _with_room(claim, offer, ledger),
        ledger.reserve(offer.description, guarantee, offer.name, plan.digest) as reservation,
    ):
        progress("drawing")
        assert offer.draw is not None  # there is no run
        if not offer.holds(ledger):
            raise MandateError(
                "a figure was published while this release was being prepared.",
                remedy="Run the release again; nothing was drawn.",
            )
        with _to_the_end(progress):
            reservation.mark_drawn()
            with after_draw(offer.name, guarantee, claim):
                drawn = promised(offer.draw(), guarantee)
                claim.keep(drawn, reservation.id)
                words = promise_of(guarantee, ledger)
                progress("writing the bundle")
                report = offer.report(drawn, words)
                prepared = bundle.write(drawn, folder, words, report, claim.partial)
                prepared.publish()
                reservation.commit(prepared.digest)
            claim.done()
    return ReleaseResult(drawn, folder, prepared.digest, words)


def promised(release: Any, guarantee: Guarantee) -> Any:
    """A release with the promise that was offered and reserved for."""
    return release if release.guarantee is guarantee else replace(release, guarantee=guarantee)


def promise_of(guarantee: Guarantee, ledger: Ledger) -> str:
    """The promise in words, with what is spent now."""
    return guarantee.explain(ledger.account(guarantee.adjacency.counted))


@contextmanager
def _with_room(claim: Claim, offer: Offer, ledger: Ledger) -> Iterator[None]:
    """Refuse a place that holds something, and take its room, while nothing is spent."""
    refuse_kept(claim, ledger)
    bundle.check_absent(claim.folder)
    claim.take_room(room_for(offer.description) + offer.room)
    yield


def rehearse(offer: Offer) -> Offer:
    """Write everything once, in memory, about something made up, and read it back: what no draw
    could be written with (a law without words, a picture that fails) is found out while nothing
    is spent. The offer that is returned knows how much room all that takes.
    """
    made_up = promised(offer.rehearsal(), offer.guarantee)
    words = offer.guarantee.explain()
    files = bundle.files_of(made_up, words, offer.report(made_up, words))
    index = json.loads(json.dumps(bundle.index_of(made_up, words, dict.fromkeys(files, ""))))
    bundle.assemble(index, lambda name: json.loads(files[name]), files, Path(offer.name))
    return replace(offer, room=offer.room + sum(map(len, files.values())))


@contextmanager
def after_draw(name: str, guarantee: Guarantee, claim: Claim) -> Iterator[None]:
    """From the draw on every failure says what is spent, and where it can be finished.

    An error that nobody foresaw stays what it is, with a note that says so (`SpentNote`).
    """
    drawn = f"'{name}' ({guarantee.tradeoff.words})"
    try:
        yield
    except (CongenialError, OSError) as error:
        why = error.what if isinstance(error, CongenialError) else f"{error.strerror}."
        kind = type(error) if isinstance(error, LedgerError | RandomnessError) else BundleError
        what, remedy = _spent(drawn, claim, why)
        raise kind(what, remedy=remedy) from None
    except Exception as error:
        error.add_note(SpentNote(" ".join(_spent(drawn, claim, "an unexpected error."))))
        raise


def _spent(drawn: str, claim: Claim, why: str) -> tuple[str, str]:
    """What to say of a release that failed after its draw, and what to do about it."""
    if claim.run.exists():
        return (
            f"{drawn} is begun and paid for, but it is not finished: {why}",
            "Mend that, then run `congenial release` again: it goes on where it stopped, draws "
            "nothing twice and spends nothing.",
        )
    if claim.kept.exists():
        return (
            f"{drawn} is drawn and spent, and kept in '{claim.kept}', but it is not finished: "
            f"{why}",
            "Mend that, then run `congenial ledger finish PLAN`; it spends nothing.",
        )
    return (
        f"{drawn} is spent, since its noise may have been drawn, and could not be kept: {why}",
        "`congenial ledger pending` lists it. Find the cause before anything else is drawn: every "
        "draw spends.",
    )


@contextmanager
def _to_the_end(progress: Callable[[str], Any]) -> Iterator[None]:
    """Let Ctrl-C wait until what was drawn is published: it stays spent in any case.

    A second Ctrl-C is obeyed at once. Outside the main thread nothing can be held back, and where
    it is ignored (a job in the background) nothing has to be.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    asked = False

    def wait(*_: Any) -> None:
        nonlocal asked
        if asked:
            signal.signal(signal.SIGINT, usual)
            raise KeyboardInterrupt
        asked = True
        progress("drawn already, so finishing; press again to give it up, spent all the same")

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if asked:
        raise KeyboardInterrupt
