"""A release's share of the budget, from promise to publication."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

from congenial.errors import LedgerError
from congenial.ledger.stores.store import Log
from congenial.privacy.descriptions import AnyDescription
from congenial.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from congenial.ledger.ledger import Ledger

PATIENCE = 12  # times the usual wait


class Promised(Protocol):
    """Whatever has a law and a promise: a release, or the mechanism itself."""

    @property
    def description(self) -> AnyDescription:
        """The law."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""


class Recordable(Promised, Protocol):
    """What `Ledger.record` needs of a release."""

    @property
    def name(self) -> str:
        """What the curator calls it."""


class Reservation:
    """A release's share of the budget, from promise to publication.

    Call `mark_drawn` before the noise is drawn and `commit` when the bundle is written. As a
    context manager it gives the share back when the block ends without a draw; after a draw the
    release stays spent, and pending until it is committed or abandoned.
    """

    def __init__(self, ledger: Ledger, release: str) -> None:
        self._ledger = ledger
        self._open = True
        self.id = release

    def mark_drawn(self) -> None:
        """Record that noise is about to be drawn; draw nothing if this raises.

        The share then stays counted, which many other writers are no reason for: it waits longer.
        """
        self._open = False
        try:
            with self._ledger._store.patient(PATIENCE):
                self._ledger._step(self.id, "draw")
        except LedgerError as error:
            raise type(error)(
                f"{error.what} Nothing was drawn now, but release {self.id} stays counted.",
                remedy=f"{error.remedy} `congenial ledger pending` lists it; `congenial ledger "
                "abandon` gives back what was not drawn.",
            ) from None

    def commit(self, bundle_digest: str) -> None:
        """Record that the release was published in the bundle with this digest.

        It is out already, so that many other writers are no reason to give up soon.
        """
        with self._ledger._store.patient(PATIENCE):
            self._ledger._step(self.id, "commit", {"bundle_digest": bundle_digest})

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._open:
            return
        if error is None:
            self._ledger.abandon(self.id)
        else:  # the first error is the one to see; a share not given back is merely counted
            with suppress(Exception):
                self._ledger.abandon(self.id)


def append_reserve(
    log: Log, description: AnyDescription, guarantee: Guarantee, name: str, plan_digest: str
) -> str:
    """Add the event that gives a release its share, and return the release's id."""
    release = uuid4().hex[:12]
    payload = {
        "name": name,
        "description": description.to_dict(),
        "guarantee": guarantee.to_dict(),
        "plan_digest": plan_digest,
    }
    log.append("reserve", release, payload)
    return release
