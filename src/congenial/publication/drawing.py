"""From a release that is ready to a bundle that is out, whatever kind of release it is.

Order, so that a crash never under-counts and a full disk loses nothing that is paid for: rehearse,
claim the folder and its room, reserve in the ledger, mark as drawn, draw, keep what was drawn,
write the bundle under a temporary name, rename it, commit. What was marked as drawn stays spent.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from congenial.data.arguments import PATH, expect
from congenial.errors import (
    BundleError,
    CongenialError,
    FigureError,
    LedgerError,
    RandomnessError,
    SpentNote,
)
from congenial.kinds.kind import Offer
from congenial.ledger.ledger import Ledger, Reservation
from congenial.ledger.spent_and_left import NO_LEDGER, guess_after_all
from congenial.ledger.state import Entry
from congenial.mechanisms.released import Released
from congenial.privacy.descriptions import AnyDescription
from congenial.privacy.guarantee import Guarantee
from congenial.publication import bundle
from congenial.publication.claim import (
    Claim,
    claimed,
    nothing_drawn,
    refuse_kept,
    room_for,
    unpacked,
)
from congenial.publication.plan import Plan
from congenial.publication.verification import report_of


@dataclass(frozen=True)
class ReleaseResult:
    """Result of `release`: what was drawn, where the bundle is, and the promise in words.

    `states_people`: whether the number of people was recorded as an exact figure with it.
    """

    release: Any
    folder: Path
    digest: str
    promise: str
    states_people: bool = False


def carry_out(
    plan: Plan, offer: Offer, folder: Path, ledger: Ledger, progress: Callable[[str], Any]
) -> ReleaseResult:
    """Claim the folder and its room, reserve, mark as drawn, draw, keep, write, rename, commit."""
    guarantee = offer.guarantee
    with (
        claimed(folder) as claim,
        _with_room(claim, offer, ledger),
        ledger.reserve(offer.description, guarantee, offer.name, plan.digest) as reservation,
    ):
        progress("drawing")
        assert offer.draw is not None  # there is no run
        refuse_changed(offer, ledger)
        with _to_the_end(progress):
            reservation.mark_drawn()
            with after_draw(offer.name, guarantee, claim):
                drawn = promised(offer.draw(), guarantee)
                claim.keep(drawn, reservation.id)
                words = promise_of(guarantee, ledger)
                progress("writing the bundle")
                digest = publish(drawn, folder, words, offer, claim)
                reservation.commit(digest)
            claim.done()
    return ReleaseResult(drawn, folder, digest, words)


def refuse_changed(offer: Offer, ledger: Ledger) -> None:
    """Refuse to draw where a figure was published since the offer was made."""
    if not offer.holds(ledger):
        raise FigureError(
            "a figure was published while this release was being prepared.",
            remedy="Run the release again; nothing was drawn.",
        )


def publish(drawn: Any, folder: Path, words: str, offer: Offer, claim: Claim) -> str:
    """Write the bundle under a temporary name and rename it; its digest."""
    prepared = bundle.write(drawn, folder, words, offer.report(drawn, words), claim.partial)
    prepared.publish()
    return prepared.digest


def promised(release: Any, guarantee: Guarantee) -> Any:
    """A release with the promise that was offered and reserved for."""
    return release if release.guarantee == guarantee else replace(release, guarantee=guarantee)


def promise_of(guarantee: Guarantee, ledger: Ledger) -> str:
    """The promise in words, with what is spent now and what all releases together promise, up to
    this one and once the whole budget is spent.
    """
    pairs = guarantee.adjacency
    account = ledger.account(pairs.counted)
    once = guarantee.explain(account)
    if not (pairs.guesser and pairs.same(ledger.adjacency)):
        return once
    several = sum(entry.counted for entry in ledger.entries()) > 1
    return f"{once} {guess_after_all(account, several)}".rstrip()


@contextmanager
def _with_room(claim: Claim, offer: Offer, ledger: Ledger) -> Iterator[None]:
    """Refuse a place that holds something, and take its room, while nothing is spent."""
    with nothing_drawn(claim.folder):
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
    now = bundle.time_of(made_up)
    files = bundle.files_of(made_up, words, offer.report(made_up, words), now)
    index = json.loads(json.dumps(bundle.index_of(made_up, words, dict.fromkeys(files, ""), now)))
    bundle.assemble(index, lambda name: json.loads(files[name]), files, Path(offer.name))
    return replace(offer, room=offer.room + sum(map(len, files.values())))


@contextmanager
def after_draw(name: str, guarantee: Guarantee, claim: Claim) -> Iterator[None]:
    """From the draw on every failure says what is spent, and where it can be finished.

    An error that nobody foresaw stays what it is. A note says it once more (`SpentNote`), which is
    found even where clean-up fails later and raises an error of its own.
    """
    drawn = f"'{name}' ({guarantee.tradeoff.words})"
    try:
        yield
    except (CongenialError, OSError) as error:
        why = error.what if isinstance(error, CongenialError) else f"{_reason(error)}."
        kind = type(error) if isinstance(error, LedgerError | RandomnessError) else BundleError
        what, remedy = _spent(drawn, claim, why)
        said = kind(what, remedy=remedy)
        said.add_note(SpentNote(said))
        raise said from None
    except KeyboardInterrupt as error:
        error.add_note(SpentNote(" ".join(_spent(drawn, claim, "interrupted."))))
        raise
    except Exception as error:
        error.add_note(SpentNote(" ".join(_spent(drawn, claim, "an unexpected error."))))
        raise


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__  # its text may quote data


def _spent(drawn: str, claim: Claim, why: str) -> tuple[str, str]:
    """What to say of a release that failed after its draw, and what to do about it."""
    # `os.path.exists` never raises: a disk that fails must not hide what is spent.
    if claim.run is not None and os.path.exists(claim.run):  # noqa: PTH110
        return (
            f"{drawn} has started and its cost is recorded, but it is not finished: {why}",
            "Fix that, then run `congenial release` again: it continues where it stopped, and "
            "spends nothing more.",
        )
    if os.path.exists(claim.kept):  # noqa: PTH110
        return (
            f"{drawn} was drawn and its cost is spent. It is saved in '{claim.kept}', but the "
            f"bundle is not finished: {why}",
            "Fix that, then run `congenial ledger finish PLAN`; it spends nothing more.",
        )
    return (
        f"{drawn} counts as spent, because its noise may have been drawn, and it could not be "
        f"saved: {why}",
        "Find the cause before you draw anything else: every draw spends budget. `congenial "
        "ledger pending` lists it; `congenial ledger finish PLAN` looks again for a saved draw.",
    )


HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _to_the_end(progress: Callable[[str], Any]) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP wait until what was drawn is published: it stays spent in any
    case.

    A second Ctrl-C is obeyed at once; the others may come several times when a session ends.
    Outside the main thread nothing can be held back, and what is ignored (a job in the background)
    stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {signal_number: signal.getsignal(signal_number) for signal_number in HELD}
    asked: list[int] = []

    def wait(number: int, _: Any) -> None:
        if number == signal.SIGINT:
            if number in asked:
                signal.signal(number, usual[signal.SIGINT])
                raise KeyboardInterrupt
            with suppress(OSError):  # nobody may be there to read it
                progress(
                    "the noise is drawn, so the bundle is being finished; press again to give it "
                    "up (its cost stays spent)"
                )
        asked.append(number)

    for signal_number, handler in usual.items():
        if handler not in (signal.SIG_IGN, None):
            signal.signal(signal_number, wait)
    try:
        yield
    finally:
        for signal_number, handler in usual.items():
            if handler is not None:
                signal.signal(signal_number, handler)
    if asked:
        _obey(asked[0], usual[signal.Signals(asked[0])])


def _obey(number: int, usual: Any) -> None:
    """Do what a signal asked for, later; ending the process leaves time to clean up."""
    if usual is signal.SIG_DFL:
        raise SystemExit(128 + number)
    signal.raise_signal(number)


# ---- releases that were drawn and never finished -------------------------------------------------


Report = Callable[[Any, str], str]


@dataclass(frozen=True)
class Finished:
    """A release that has its bundle and its record now."""

    name: str
    folder: Path
    digest: str


def finish(ledger: Ledger, folder: Path, report: Report = report_of) -> list[Finished]:
    """Finish every release whose drawn values are kept in `folder`; spends nothing.

    What was given up in the ledger is refused: its record can no longer be made.
    """
    done = []
    for path in sorted(folder.glob(".*.drawn")):
        place = path.with_name(path.name.removeprefix(".").removesuffix(".drawn"))
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


# ---- a release that Python holds ----------------------------------------------------------------


def save(release: Released, folder: str | Path, ledger: Ledger | None = None) -> str:
    """Write the bundle of a release to a new folder, and return its digest.

    The files are those that `congenial release` writes; `congenial.read` reads them back, and
    `verify` checks them. A folder that exists is refused.

    ledger: where the release is counted. One that was reserved and drawn there is committed with
    the digest; one that is not there is recorded first, and nothing is written where that is
    refused. Without a ledger the promise ends with "Spent: not counted, because no ledger records
    this release".

    A release that was read is written again to the letter, with the words and the date of the
    bundle it came from; signatures are not copied.

    >>> from tempfile import TemporaryDirectory
    >>> from congenial import Guarantee, ReplaceOne, Schema, Table, calibrate, read, release_table
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> release = release_table(mechanism, Table(schema, ["sex"], [90, 110]), name="sex")
    >>> with TemporaryDirectory() as folder:
    ...     digest = save(release, Path(folder) / "sex")
    ...     again = read(Path(folder) / "sex").save(Path(folder) / "copy")
    >>> again == digest
    True
    """
    expect(release, Released, "the release", "Give what a mechanism released.", BundleError)
    expect(folder, PATH, "the folder", "Give its path.", BundleError)
    expect(ledger, (Ledger, type(None)), "the ledger", "Give Ledger.open(...).", BundleError)
    folder = Path(folder)
    bundle.check_absent(folder)
    if ledger is not None:
        return _saved_and_recorded(release, folder, ledger)
    origin = release.origin
    promise = release.guarantee.explain(NO_LEDGER) if origin is None else origin.promise
    return _saved(release, folder, promise)


def _saved_and_recorded(release: Released, folder: Path, ledger: Ledger) -> str:
    """The same with a ledger that counts it: recorded, written, committed."""
    entries = [past for past in ledger.entries() if _is_of(past, release)]
    pending = [past.id for past in entries if past.status == "drawn"]
    if entries and not pending:
        raise BundleError(
            f"release '{release.name}' is committed in this ledger already. Nothing was written.",
            remedy="For a copy of its bundle, save what `read` returns, without a ledger. A second "
            "draw needs another name.",
        )
    if release.origin is not None:  # a page that makes no sense is refused before it is counted
        report_of(release, release.origin.promise)
    entry = pending[0] if pending else ledger.record(release, pending=True)
    promise = promise_of(release.guarantee, ledger)
    digest = _saved(release, folder, promise)
    Reservation(ledger, entry).commit(digest)
    return digest


def _is_of(entry: Entry, release: Released) -> bool:
    """Whether an entry was drawn as this release."""
    return (
        entry.status in ("drawn", "committed")
        and entry.name == release.name
        and _law(entry.description) == _law(release.description)
    )


def _law(description: AnyDescription) -> dict[str, Any]:
    """What was drawn; a mechanism describes its one table, a release also how it is printed."""
    only = getattr(description, "only_law", None)
    return (only or description).to_dict()


def _saved(release: Released, folder: Path, promise: str) -> str:
    prepared = bundle.write(release, folder, promise, report_of(release, promise))
    prepared.publish()
    return prepared.digest
