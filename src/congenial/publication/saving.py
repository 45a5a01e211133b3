"""`save`: the bundle of a release that Python holds, as `congenial release` would write it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from congenial.data.arguments import PATH, expect
from congenial.errors import BundleError
from congenial.ledger.ledger import Ledger, Reservation
from congenial.ledger.spent_and_left import NO_LEDGER
from congenial.mechanisms.released import Released
from congenial.publication.bundle import check_absent, write
from congenial.publication.drawing import promise_of
from congenial.publication.verification import report_of

if TYPE_CHECKING:
    from congenial.ledger.state import Entry
    from congenial.privacy.descriptions import AnyDescription


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
    check_absent(folder)
    if ledger is not None:
        return _recorded(release, folder, ledger)
    origin = release.origin
    promise = release.guarantee.explain(NO_LEDGER) if origin is None else origin.promise
    return _written(release, folder, promise)


def _recorded(release: Released, folder: Path, ledger: Ledger) -> str:
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
    digest = _written(release, folder, promise)
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


def _written(release: Released, folder: Path, promise: str) -> str:
    prepared = write(release, folder, promise, report_of(release, promise))
    prepared.publish()
    return prepared.digest
